/* weights.h - exact sampling from softmax: integer utilities to integer weights to a draw.
 * Internal. Source: privacy.md section 2, "Sampler".
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
#include <stdint.h>

__extension__ typedef unsigned __int128 dpi_u128;

enum {
    DPI_WEIGHTS_MAX = 1 << 18, /* candidates */
    DPI_DRAW_WORDS = 4,        /* 64-bit random words per draw */
};

/* Hides a mask from the optimiser, which could otherwise turn a selection into a branch. */
static inline uint64_t dpi_mask_hide(uint64_t mask) {
    __asm__("" : "+r"(mask));
    return mask;
}

/* Of private integers, without a branch; |a - b| < 2^63. */
static inline int64_t dpi_i64_max(int64_t a, int64_t b) {
    uint64_t a_less = dpi_mask_hide(0 - ((uint64_t)(a - b) >> 63));
    return a + (int64_t)((uint64_t)(b - a) & a_less);
}

static inline int64_t dpi_i64_min(int64_t a, int64_t b) {
    uint64_t a_less = dpi_mask_hide(0 - ((uint64_t)(a - b) >> 63));
    return b + (int64_t)((uint64_t)(a - b) & a_less);
}

/* table[t][j] = 2^-(j / 2^(8 (t + 1))) as a 63-bit fraction, rounded to nearest. */
typedef struct dpi_weight_tables {
    uint64_t table[3][256];
} dpi_weight_tables;

/* Integer arithmetic only: the same 768 values on every machine. */
void dpi_weights_tables(dpi_weight_tables *tables);

/* a = rne(2^48 / (ln2 * 2^20 * n_ref * tau)): one unit of U is a / 2^48 bits of log weight.
 * n_ref 1..4096 (1 where there are no references), tau 0.01..100. */
uint64_t dpi_weights_scale(int32_t n_ref, double tau);

/* weights[i] from utility[i], i in [0, n), n >= 1. */
void dpi_weights_compute(const dpi_weight_tables *tables, uint64_t a, const int64_t *utility,
                         size_t n, dpi_u128 *weights);

/* Index in [0, n) with probability weights[i] / sum, up to 2^-256 absolute: R = floor(X * sum /
 * 2^256) for the 256-bit X in `bits` (least significant word first), then the number of
 * cumulative sums that are <= R. n in [1, DPI_WEIGHTS_MAX]. */
size_t dpi_weights_draw(const dpi_u128 *weights, size_t n, const uint64_t bits[DPI_DRAW_WORDS]);

#endif
