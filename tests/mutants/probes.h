/* probes.h - programs in small that hold what a mutant must break. Each is independent of the tests
 * of its folder, draws with the system's bits, and has bounds that a sound program does not miss in
 * 10^9 runs (docs/testing.md). */
#ifndef DPI_TESTS_PROBES_H
#define DPI_TESTS_PROBES_H

#include "pipeline/finetune/finetune.h"
#include "tests/pipeline/journal/job_support.h"

/* Of 8000 words, so that the candidates are few. */
extern dpi_model *model;

/* Fails the test with these words unless it is so. */
static inline void hold(bool is_so, const char *fault) {
    if (!is_so)
        fail_msg("%s", fault);
}

/* Releases with labels and a histogram that is charged; part of the probe of the ledger. */
void probe_labels(void);

/* Of trainings: options with sigma 2 and delta 1e-3, charged to "people" in `ledger`, if it is
 * open.
 */
dpi_finetune_options training_options(const dpi_records *records, int32_t n_steps);
dpi_finetune *open_training(const dpi_finetune_options *o);
/* The claim is no less than what all steps and pure epsilons cost, and so is the charge. */
void assert_claim(const dpi_finetune *f, int32_t n_steps, double pure);
void assert_charge(const dpi_finetune *f, int32_t n_steps, double pure);
/* A histogram of labels before a training: noise, units, its part of epsilon and of the charge;
 * part of the probe of trainings. */
void probe_histogram(void);

#endif
