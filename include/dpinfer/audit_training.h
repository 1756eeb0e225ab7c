/* audit_training.h - audit D of training: canaries in one run. Part of libdpinfer_full. */
#ifndef DPINFER_AUDIT_TRAINING_H
#define DPINFER_AUDIT_TRAINING_H

#include "dpinfer/audit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Trains once (finetune.h) on made-up units, the canaries, of which each is there by a coin. The
 * gradient of each is the worst one, of any length in a direction of its own. From what the steps
 * release it is guessed for some of the canaries whether they are there, in two ways, and reported
 * which epsilon the right guesses prove, beside the one that the accountant claims (Steinke, Nasr
 * and Jagielski 2023; dp/PRIVACY.md section 17). A model is made in options->folder; without a
 * folder nothing is done. Results, n_failed and errors as dpi_audit_run; IO (the folder). */
DPI_API DPI_MUST_CHECK dpi_status dpi_audit_training_run(const dpi_audit_options *options,
                                                         dpi_audit_fn on_result, void *user,
                                                         int32_t *n_failed, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
