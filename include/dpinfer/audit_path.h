/* audit_path.h - audit F: from files of records to released texts. Part of libdpinfer_full. */
#ifndef DPINFER_AUDIT_PATH_H
#define DPINFER_AUDIT_PATH_H

#include "dpinfer/audit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs whole releases of made-up records and of their neighbours: files, batches, prompts,
 * generations, with random bits that the audit chooses. It sees which record is in which slot by
 * its logits, which it computes a second time. It holds that each record is in at most one text,
 * that taking one away moves no other and changes no other text, that public prompts, public logits
 * and the number of texts are the same, and that secret assignment has its probabilities
 * (dp/PRIVACY.md section 9).
 *
 * With options->folder the records are in files there, and the model of most releases is a small
 * one that is made there; both are removed again. options->model (may be NULL) gets a few releases
 * of its own. Results, n_failed and errors as dpi_audit_run; IO (the folder). */
DPI_API DPI_MUST_CHECK dpi_status dpi_audit_path_run(const dpi_audit_options *options,
                                                     dpi_audit_fn on_result, void *user,
                                                     int32_t *n_failed, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
