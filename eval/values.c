/* values.c - see values.h. */
#include "eval/values.h"

#include <math.h>
#include <stdlib.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"

enum { RESAMPLES = 1000 };

void eval_add_interval(evaluation *e, const char *group, const char *key, const char *label,
                       double value, double low, double high) {
    if (e->n < EVAL_VALUES_MAX)
        e->at[e->n++] = (eval_value){group, key, label, value, low, high};
}

void eval_add(evaluation *e, const char *group, const char *key, const char *label, double value) {
    eval_add_interval(e, group, key, label, value, NAN, NAN);
}

int eval_compare_double(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int32_t eval_resample(uint64_t *state, int32_t n) {
    uint64_t bits;
    (void)dpi_random_insecure(state, &bits, sizeof bits); /* it cannot fail */
    return (int32_t)((bits >> 32) * (uint64_t)n >> 32);
}

dpi_status eval_add_mean(evaluation *e, const char *group, const char *key, const char *label,
                         const double *x, int32_t n, dpi_error *err) {
    double *mean = dpi_private_malloc(RESAMPLES * sizeof *mean), sum = 0;
    uint64_t state = 1; /* any constant */
    if (!mean)
        return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for intervals");
    for (int32_t i = 0; i < n; i++)
        sum += x[i];
    for (int32_t r = 0; r < RESAMPLES; r++) {
        mean[r] = 0;
        for (int32_t i = 0; i < n; i++)
            mean[r] += x[eval_resample(&state, n)] / n;
    }
    qsort(mean, RESAMPLES, sizeof *mean, eval_compare_double);
    if (n > 0)
        eval_add_interval(e, group, key, label, sum / n, mean[RESAMPLES / 40],
                          mean[RESAMPLES - 1 - RESAMPLES / 40]);
    dpi_private_free(mean);
    return DPI_STATUS_OK;
}

dpi_status eval_add_share(evaluation *e, const char *group, const char *key, const char *label,
                          int32_t count, int32_t n, dpi_error *err) {
    double *x = dpi_private_malloc(((size_t)n + 1) * sizeof *x);
    if (!x)
        return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for intervals");
    for (int32_t i = 0; i < n; i++)
        x[i] = i < count;
    const dpi_status status = eval_add_mean(e, group, key, label, x, n, err);
    dpi_private_free(x);
    return status;
}
