/* intervals.c - see intervals.h. */
#include "eval/intervals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"

void eval_add_interval(evaluation *e, const char *group, const char *key, const char *label,
                       double value, double low, double high) {
    if (e->n < EVAL_VALUES_MAX)
        e->at[e->n++] = (eval_value){group, key, label, value, low, high, NULL};
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

/* x [EVAL_RESAMPLES], sorted here, of a number that is `value`. */
static void find_interval(double *x, double value, bool is_distance, double *low, double *high) {
    double mean = 0, squares = 0;
    qsort(x, EVAL_RESAMPLES, sizeof *x, eval_compare_double);
    *low = x[EVAL_RESAMPLES / 40];
    *high = x[EVAL_RESAMPLES - 1 - EVAL_RESAMPLES / 40];
    if (!is_distance)
        return;
    for (int32_t r = 0; r < EVAL_RESAMPLES; r++)
        mean += x[r] / EVAL_RESAMPLES;
    for (int32_t r = 0; r < EVAL_RESAMPLES; r++)
        squares += (x[r] - mean) * (x[r] - mean);
    const double away = 1.96 * sqrt(squares / (EVAL_RESAMPLES - 1));
    *low = fmax(value - away, 0);
    *high = fmin(value + away, 1);
}

dpi_status eval_find_number(const eval_number *number, uint64_t stream, double *draws,
                            double *value, double *low, double *high, dpi_error *err) {
    const size_t n_all = (size_t)number->n[0] + (size_t)number->n[1];
    double *x = dpi_private_malloc(EVAL_RESAMPLES * sizeof *x);
    int32_t *index = dpi_private_malloc(n_all * sizeof *index);
    if (!x || !index) {
        dpi_private_free(x);
        dpi_private_free(index);
        return eval_no_memory(err, "intervals");
    }
    const int32_t *const which[2] = {index, number->n[1] > 0 ? index + number->n[0] : NULL};
    uint64_t state[2] = {stream, 2};
    for (size_t i = 0; i < n_all; i++)
        index[i] = (int32_t)i - ((int32_t)i < number->n[0] ? 0 : number->n[0]);
    *value = number->of(number->user, which);
    for (int32_t r = 0; r < EVAL_RESAMPLES; r++) {
        for (size_t i = 0; i < n_all; i++) {
            const bool second = (int32_t)i >= number->n[0];
            index[i] = eval_resample(&state[second], number->n[second]);
        }
        x[r] = number->of(number->user, which);
    }
    if (draws)
        memcpy(draws, x, EVAL_RESAMPLES * sizeof *x);
    find_interval(x, *value, number->is_distance, low, high);
    dpi_private_free(x);
    dpi_private_free(index);
    return DPI_STATUS_OK;
}

dpi_status eval_add_number(evaluation *e, const char *group, const char *key, const char *label,
                           const eval_number *number, dpi_error *err) {
    double value, low, high;
    if (number->n[0] == 0 || e->n == EVAL_VALUES_MAX)
        return DPI_STATUS_OK;
    double *draws = dpi_private_malloc(EVAL_RESAMPLES * sizeof *draws);
    const dpi_status status =
        draws ? eval_find_number(number, e->stream, draws, &value, &low, &high, err)
              : eval_no_memory(err, "intervals");
    if (status != DPI_STATUS_OK) {
        dpi_private_free(draws);
        return status;
    }
    eval_add_interval(e, group, key, label, value, low, high);
    e->at[e->n - 1].draws = draws;
    return DPI_STATUS_OK;
}

typedef struct numbers {
    const double *x;
    int32_t n;
} numbers;

static double mean_of(const void *user, const int32_t *const which[2]) {
    const numbers *a = user;
    double sum = 0;
    for (int32_t i = 0; i < a->n; i++)
        sum += a->x[which[0][i]];
    return sum / a->n;
}

dpi_status eval_add_mean(evaluation *e, const char *group, const char *key, const char *label,
                         const double *x, int32_t n, dpi_error *err) {
    double *own = dpi_private_malloc(((size_t)n + 1) * sizeof *own);
    numbers a = {.x = own};
    if (!own)
        return eval_no_memory(err, "intervals");
    for (int32_t i = 0; i < n; i++)
        if (!isnan(x[i]))
            own[a.n++] = x[i];
    const eval_number number = {.of = mean_of, .user = &a, .n = {a.n}};
    const dpi_status status = eval_add_number(e, group, key, label, &number, err);
    dpi_private_free(own);
    return status;
}

typedef struct counts {
    const int32_t *count;
    int32_t n;
} counts;

static double sum_of(const void *user, const int32_t *const which[2]) {
    const counts *a = user;
    double sum = 0;
    for (int32_t i = 0; i < a->n; i++)
        sum += a->count[which[0][i]];
    return sum;
}

dpi_status eval_add_sum(evaluation *e, const char *group, const char *key, const char *label,
                        const int32_t *count, int32_t n, dpi_error *err) {
    const counts a = {count, n};
    const eval_number number = {.of = sum_of, .user = &a, .n = {n}};
    return eval_add_number(e, group, key, label, &number, err);
}

dpi_status eval_add_share(evaluation *e, const char *group, const char *key, const char *label,
                          int32_t count, int32_t n, dpi_error *err) {
    double *x = dpi_private_malloc(((size_t)n + 1) * sizeof *x);
    if (!x)
        return eval_no_memory(err, "intervals");
    for (int32_t i = 0; i < n; i++)
        x[i] = i < count;
    const dpi_status status = eval_add_mean(e, group, key, label, x, n, err);
    dpi_private_free(x);
    return status;
}
