/* count_noise.c - see count_noise.h. */
#include "eval/count_noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/fail.h"

#define COVERED .95
enum { TAIL = 12, STEPS = 32 }; /* deviations that are looked at; steps of a deviation */

static double weight(double z, double s) { return exp(-z * z / (2 * s)); }

/* Sum of all weights. */
static double total(double s) {
    double sum = 1;
    for (double z = 1; z <= TAIL * sqrt(s) + 1; z++)
        sum += 2 * weight(z, s);
    return sum;
}

int64_t eval_noise_of_cells(int64_t variance, int32_t n) {
    const double s = (double)variance / 256, wanted = pow(COVERED, 1. / n) * total(s);
    double sum = 1;
    int64_t h = 0;
    while (sum < wanted && (double)h <= TAIL * sqrt(s)) {
        h++;
        sum += 2 * weight((double)h, s);
    }
    return h;
}

int64_t eval_noise_of_sum(int64_t variance, int32_t n) {
    return eval_noise_of_cells(n * variance, 1);
}

/* p [n_p] becomes the law of its sum with another draw of q [n_q]; more [n_p + n_q - 1]. */
static void add_draw(double *p, int32_t n_p, const double *q, int32_t n_q, double *more) {
    memset(more, 0, (size_t)(n_p + n_q - 1) * sizeof *more);
    for (int32_t i = 0; i < n_p; i++)
        for (int32_t k = 0; k < n_q; k++)
            more[i + k] += p[i] * q[k];
    memcpy(p, more, (size_t)(n_p + n_q - 1) * sizeof *p);
}

/* |Z| is rounded up to a multiple of a step, so that h is not too small. */
dpi_status eval_noise_of_sizes(int64_t variance, int32_t n, double *h, dpi_error *err) {
    const double s = (double)variance / 256, step = fmax(1, floor(sqrt(s) / STEPS));
    const double of_all = total(s);
    const int32_t n_one = (int32_t)ceil((TAIL * sqrt(s) + 1) / step) + 1, n_all = n * n_one;
    double *one = calloc((size_t)n_one, sizeof *one), sum = 0;
    double *all = calloc(2 * (size_t)n_all, sizeof *all);
    if (!one || !all) {
        free(one);
        free(all);
        return eval_no_memory(err, "the law of noise");
    }
    for (double z = 0; z <= step * (n_one - 1); z++)
        one[(int32_t)ceil(z / step)] += (z > 0 ? 2 : 1) * weight(z, s) / of_all;
    all[0] = 1;
    for (int32_t i = 0, n_now = 1; i < n; i++, n_now += n_one - 1)
        add_draw(all, n_now, one, n_one, all + n_all);
    int32_t i = 0;
    while (i + 1 < n_all && (sum += all[i]) < COVERED)
        i++;
    *h = i * step;
    free(one);
    free(all);
    return DPI_STATUS_OK;
}
