/* released_counts.h - the few metrics of private real texts that can be released: counts of
 * records, with noise (dpinfer/counts.h, dp/PRIVACY.md section 26).
 *
 * Synthetic texts are public here. Each real text is in one cell of each histogram, which follows
 * from it and from the synthetic texts alone: its length in words, in bins up to the longest
 * synthetic text; its label, of those that synthetic texts have; whether a classifier of the
 * synthetic texts finds it; whether it is JSON; whether a grammar accepts it. A null record is in
 * none. What is printed is computed from the noisy counts. */
#ifndef DPI_EVAL_RELEASED_COUNTS_H
#define DPI_EVAL_RELEASED_COUNTS_H

#include "dpinfer/counts.h"
#include "eval/evaluate.h"

/* The groups of counts that these sources need: known before a real text is read. Labels count by
 * has_labels. */
int32_t eval_released_groups(const eval_sources *sources, bool has_labels);

/* counts: opened with that many groups, none released; info is kept for the report. Errors: those
 * of the parts; CANCELLED. */
dpi_status evaluate_released(const eval_sources *sources, bool has_labels, dpi_counts *counts,
                             evaluation *e, dpi_error *err);

#endif
