/* count_noise.h - how far noisy counts are from the true ones: 95 % intervals by the law of the
 * noise, which is public. Nothing here looks at a count.
 *
 * Noise Z of a cell is a discrete Gaussian: P(z) in proportion to e^(-z^2 / (2 s)), s = variance /
 * 256 (dpinfer/counts.h). Cells are independent. */
#ifndef DPI_EVAL_COUNT_NOISE_H
#define DPI_EVAL_COUNT_NOISE_H

#include "dpinfer/status.h"

/* The least h with P(|Z| <= h for each of n cells) >= .95; n 1: of a cell by itself. variance in
 * units of 1/256, >= 16. */
int64_t eval_noise_of_cells(int64_t variance, int32_t n);

/* h with P(|Z_1 + .. + Z_n| <= h) >= .95: that of one discrete Gaussian of n times the variance,
 * which is not less spread than the sum. */
int64_t eval_noise_of_sum(int64_t variance, int32_t n);

/* h with P(|Z_1| + .. + |Z_n| <= h) >= .95, at most a few percent above the least one. n >= 1.
 * Errors: MEMORY. */
dpi_status eval_noise_of_sizes(int64_t variance, int32_t n, double *h, dpi_error *err);

#endif
