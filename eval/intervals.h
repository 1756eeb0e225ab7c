/* intervals.h - values of an evaluation, and their intervals. */
#ifndef DPI_EVAL_INTERVALS_H
#define DPI_EVAL_INTERVALS_H

#include "eval/evaluate.h"

/* group, key and label must outlive the evaluation. Without an interval, and with one. */
void eval_add(evaluation *e, const char *group, const char *key, const char *label, double value);
void eval_add_interval(evaluation *e, const char *group, const char *key, const char *label,
                       double value, double low, double high);

/* A number of one or two sets of texts, to be computed of resamples too. */
typedef struct eval_number {
    /* Of the texts which[k][i], i < n[k], of set k. which[1] is NULL without a second set. */
    double (*of)(const void *user, const int32_t *const which[2]);
    const void *user;
    int32_t n[2];     /* texts of the sets; n[1] 0: there is one */
    bool is_distance; /* of two sets, 0..1: resamples are further from each other than the sets, so
                         that the interval is value +- 1.96 deviations of 1000 resamples, within
                         0..1. Else percentiles of these */
} eval_number;

enum { EVAL_RESAMPLES = 1000 };

/* It, and its 95 % by bootstrap over texts; n[0] > 0. stream: of the resamples of the first set;
 * those of a second set are always the same, so that numbers of two sets beside it are paired.
 * draws [EVAL_RESAMPLES]: of the resamples; may be NULL. Errors: MEMORY. */
dpi_status eval_find_number(const eval_number *number, uint64_t stream, double *draws,
                            double *value, double *low, double *high, dpi_error *err);
/* Adds it with its interval and draws. Nothing for n[0] = 0. Errors: MEMORY. */
dpi_status eval_add_number(evaluation *e, const char *group, const char *key, const char *label,
                           const eval_number *number, dpi_error *err);

/* The mean of those of x [n] that are not NAN, with its 95 %. Nothing where there is none. Errors:
 * MEMORY. */
dpi_status eval_add_mean(evaluation *e, const char *group, const char *key, const char *label,
                         const double *x, int32_t n, dpi_error *err);
/* The sum of count [n], likewise. */
dpi_status eval_add_sum(evaluation *e, const char *group, const char *key, const char *label,
                        const int32_t *count, int32_t n, dpi_error *err);
/* A share: count of n. */
dpi_status eval_add_share(evaluation *e, const char *group, const char *key, const char *label,
                          int32_t count, int32_t n, dpi_error *err);

/* One of 0..n-1 for a resample; *state: any constant first. */
int32_t eval_resample(uint64_t *state, int32_t n);
int eval_compare_double(const void *a, const void *b);

#endif
