/* values.h - values of an evaluation, and their intervals. */
#ifndef DPI_EVAL_VALUES_H
#define DPI_EVAL_VALUES_H

#include "eval/evaluate.h"

/* group, key and label must outlive the evaluation. Without an interval, and with one. */
void eval_add(evaluation *e, const char *group, const char *key, const char *label, double value);
void eval_add_interval(evaluation *e, const char *group, const char *key, const char *label,
                       double value, double low, double high);

/* The mean of x [n], with its 95 %: percentiles of the means of 1000 resamples. Nothing for n = 0.
 * Errors: MEMORY. */
dpi_status eval_add_mean(evaluation *e, const char *group, const char *key, const char *label,
                         const double *x, int32_t n, dpi_error *err);
/* The same of a share: count of n. */
dpi_status eval_add_share(evaluation *e, const char *group, const char *key, const char *label,
                          int32_t count, int32_t n, dpi_error *err);

/* One of 0..n-1 for a resample; *state: any constant first. */
int32_t eval_resample(uint64_t *state, int32_t n);
int eval_compare_double(const void *a, const void *b);

#endif
