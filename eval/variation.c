/* variation.c - see variation.h. */
#include "eval/variation.h"

#include <math.h>

double eval_variation(const double *p, const double *q, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += fabs(p[i] - q[i]);
    return fmin(sum / 2, 1); /* shares that were rounded may add up to more */
}

double eval_variation_mean(const double *p, const double *q, int32_t rows, int32_t n) {
    double sum = 0;
    for (int32_t r = 0; r < rows; r++)
        sum += eval_variation(p + (int64_t)r * n, q + (int64_t)r * n, n);
    return rows > 0 ? sum / rows : 0;
}
