/* mean.h - the mean of a unit's integers. Internal; PRIVACY.md section 15.
 *
 * The number of records is private like their values: no branch, no address and no division depends
 * on either. Exact: q = floor(n R / 2^44) with R = floor(2^44 / m) + 1 is floor(n / m), because
 * R m = 2^44 + e with 0 < e <= m, so that n R / 2^44 = n / m + n e / (m 2^44), and
 * n e / (m 2^44) <= n / 2^44 < 1 / m.
 *
 * Trusted: that at most `most` records are of one unit. Not trusted: their values, their number.
 * Sensitivity: a mean of integers in [-K, K], rounded, is in [-K, K], so that a unit moves a sum as
 * one record does. Cost and distribution: none, nothing is drawn here. A mean is PRIVATE. */
#ifndef DPI_MEAN_H
#define DPI_MEAN_H

#include "kernels/exact.h"

enum { DPI_UNIT_RECORDS_MAX = 64 };

/* A divisor m in [1, 64]; PRIVATE. */
typedef struct dpi_mean {
    uint64_t m, inverse;
} dpi_mean;

/* n_records in [0, 64]; 0 counts as 1. Reads every divisor up to `most`, which is public. */
static inline dpi_mean dpi_mean_of(int32_t n_records, int32_t most) {
    dpi_mean mean = {1, (UINT64_C(1) << 44) + 1};
    for (int32_t m = 2; m <= most; m++) {
        const uint64_t differs = (uint64_t)(int64_t)(m ^ n_records);
        const uint64_t is_m = dpi_mask_hide(((differs - 1) >> 63) * UINT64_MAX);
        const uint64_t inverse = (UINT64_C(1) << 44) / (uint64_t)m + 1;
        mean.m = ((uint64_t)m & is_m) | (mean.m & ~is_m);
        mean.inverse = (inverse & is_m) | (mean.inverse & ~is_m);
    }
    return mean;
}

/* floor(n / m), n < 2^37. */
static inline uint64_t dpi_mean_floor(dpi_mean mean, uint64_t n) {
    return (uint64_t)((dpi_u128)n * mean.inverse >> 44);
}

/* sum / m to the nearest integer, ties to even, |sum| < 2^37. At most K in magnitude if |sum| is at
 * most m K: K is an integer. */
static inline int64_t dpi_mean_round(dpi_mean mean, int64_t sum) {
    const uint64_t sign = (uint64_t)(sum >> 63);
    const uint64_t n = ((uint64_t)sum ^ sign) - sign;
    uint64_t q = dpi_mean_floor(mean, n);
    const uint64_t twice = 2 * (n - q * mean.m);
    const uint64_t above = (mean.m - twice) >> 63, is_tie = ((mean.m ^ twice) - 1) >> 63;
    q += above | (is_tie & q & 1);
    return (int64_t)((q ^ sign) - sign);
}

#endif
