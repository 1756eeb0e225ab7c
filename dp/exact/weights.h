/* weights.h - exact sampling from softmax: integer utilities to integer weights to a draw.
 * Internal. Source: docs/spec.md section 2, "Sampler". The weights themselves are the kernel
 * exp2_weights (kernels.def), the same bits on every ISA.
 *
 * Utilities are int64, |U| < 2^53; a is the inverse temperature, 1 <= a < 2^37, so that the
 * ideal weight of a candidate is 2^(109 - min(gap * a / 2^48, 69)), gap = max U - U. Computed
 * weights are in [2^40, 2^109] and differ from the ideal by less than 2^-40 in the logarithm
 * (weights.c says why). At most DPI_WEIGHTS_MAX candidates, so that sums fit 127 bits.
 *
 * In dp/ terms: utilities are private, the count of candidates and `a` are public. No branch
 * and no memory address depends on a utility, a weight or a random bit; the index that is drawn
 * is what the caller releases. Threads: pure functions over the caller's arrays. */
#ifndef DPI_WEIGHTS_H
#define DPI_WEIGHTS_H

#include <stddef.h>

#include "kernels/exact.h"

enum {
    DPI_WEIGHTS_MAX = 1 << 18, /* candidates */
    DPI_DRAW_WORDS = 4,        /* 64-bit random words per draw */
};

/* table[t][j] = 2^-(j / 2^(8 (t + 1))) as a 63-bit fraction, rounded to nearest. */
typedef struct dpi_weight_tables {
    uint64_t table[3][256];
} dpi_weight_tables;

/* Integer arithmetic only: the same 768 values on every machine. */
void dpi_weights_tables(dpi_weight_tables *tables);

/* a = rne(2^48 / (ln2 * 2^20 * n_ref * tau)): one unit of U is a / 2^48 bits of log weight.
 * n_ref 1..4096 (1 where there are no references), tau 0.01..100. */
uint64_t dpi_weights_scale(int32_t n_ref, double tau);

/* Index in [0, n) with probability weights[i] / sum, up to 2^-256 absolute: R = floor(X * sum /
 * 2^256) for the 256-bit X in `bits` (least significant word first), then the number of
 * cumulative sums that are <= R. n in [1, DPI_WEIGHTS_MAX]. */
size_t dpi_weights_draw(const dpi_u128 *weights, size_t n, const uint64_t bits[DPI_DRAW_WORDS]);

#endif
