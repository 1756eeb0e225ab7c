/* ref_sampler.c - the kernels of the sampler: their definition. No branch or address depends on
 * what the arrays hold. */
#include "kernels/exact.h"
#include "kernels/kernels.h"

/* ---- Clipping ------------------------------------------------------------------------------- */

/* An integer in [-K, K] for any bits of `x`. The clamp of doubles keeps the rounding in range, the
 * clamp of integers is the one that the proof needs (dp/PRIVACY.md, Lemma 1): it comes last. */
static inline int64_t clip(float x, float p, double centre, int64_t K) {
    const double bound = (double)K;
    double d = dpi_finite_or_zero(((double)x - (double)p - centre) * DPI_UNIT);
    d = dpi_select(d < -bound, -bound, d);
    d = dpi_select(d > bound, bound, d);
    return dpi_i64_max(dpi_i64_min(dpi_round_even(d), K), -K);
}

static void clip_add_ref(int64_t *sum, const float *x, const float *p, const int64_t *null,
                         double centre, int64_t K, uint64_t mask, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        sum[i] += (int64_t)((uint64_t)(clip(x[i], p[i], centre, K) - null[i]) & mask);
}

static void clip_range_ref(int64_t range[2], const float *x, const float *p, const int64_t *null,
                           double centre, int64_t K, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t moved = clip(x[i], p[i], centre, K) - null[i];
        range[0] = dpi_i64_min(range[0], moved);
        range[1] = dpi_i64_max(range[1], moved);
    }
}

/* ---- Weights -------------------------------------------------------------------------------- */

#define ONE_63 (UINT64_C(1) << 63)

/* All ones if a == b, else zero; a, b < 2^63. */
static inline uint64_t equal_mask(uint64_t a, uint64_t b) {
    return dpi_mask_hide(0 - (((a ^ b) - 1) >> 63));
}

/* Two 64-bit lanes, which every x86-64 and AArch64 has; comparisons in 32-bit lanes. */
typedef uint64_t pair __attribute__((vector_size(16)));
typedef uint32_t quad __attribute__((vector_size(16)));

static inline pair load_pair(const uint64_t *p) {
    pair v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* All ones in lane 0 if low == i, in lane 1 if low == j. */
static inline pair lane_mask(quad low, uint32_t i, uint32_t j) {
    return (pair)(low == (quad){i, i, j, j});
}

/* table[index], index < 256, by reading every entry: the row of 16, then the entry in it. Eight
 * columns of the table at a time, so that their sums stay in registers. */
static inline uint64_t look_up(const uint64_t table[256], uint64_t index) {
    uint32_t high = (uint32_t)(index >> 4), low = (uint32_t)(index & 15);
    quad highs = {high, high, high, high}, lows = {low, low, low, low};
    pair value = {0, 0};
    for (uint32_t j = 0; j < 16; j += 8) {
        pair c0 = {0, 0}, c2 = {0, 0}, c4 = {0, 0}, c6 = {0, 0};
        for (uint32_t i = 0; i < 16; i++) {
            const uint64_t *row = &table[16 * i + j];
            pair mask = lane_mask(highs, i, i);
            c0 |= load_pair(row) & mask;
            c2 |= load_pair(row + 2) & mask;
            c4 |= load_pair(row + 4) & mask;
            c6 |= load_pair(row + 6) & mask;
        }
        value |= c0 & lane_mask(lows, j, j + 1);
        value |= c2 & lane_mask(lows, j + 2, j + 3);
        value |= c4 & lane_mask(lows, j + 4, j + 5);
        value |= c6 & lane_mask(lows, j + 6, j + 7);
    }
    return value[0] | value[1];
}

static inline uint64_t multiply_63(uint64_t a, uint64_t b) {
    return (uint64_t)((dpi_u128)a * b >> 63);
}

/* 2^-(r / 2^48) as a 63-bit fraction, r < 2^48. */
static inline uint64_t exp2_fraction(const uint64_t table[3][256], uint64_t r) {
    uint64_t mant = look_up(table[0], r >> 40);
    mant = multiply_63(mant, look_up(table[1], r >> 32 & 255));
    mant = multiply_63(mant, look_up(table[2], r >> 24 & 255));
    uint64_t x = (uint64_t)((dpi_u128)(r & 0xffffff) * DPI_LN2_63 >> 48); /* 63-bit fraction */
    uint64_t half_square = (uint64_t)((dpi_u128)x * x >> 64);
    return multiply_63(mant, ONE_63 - x + half_square);
}

/* max(mant * 2^46 >> q, 2^40), q <= 69. */
static inline dpi_u128 scale_weight(uint64_t mant, uint64_t q) {
    uint64_t hi = mant >> 18, lo = mant << 46;
    uint64_t whole = dpi_mask_hide(0 - (q >> 6)); /* all ones: shift by a whole word first */
    lo = (lo & ~whole) | (hi & whole);
    hi &= ~whole;
    q &= 63;
    lo = lo >> q | (hi << 1) << (63 - q);
    hi >>= q;
    uint64_t below = equal_mask(hi | lo >> DPI_FLOOR_BITS, 0);
    lo = (lo & ~below) | ((UINT64_C(1) << DPI_FLOOR_BITS) & below);
    return (dpi_u128)hi << 64 | lo;
}

static void exp2_weights_ref(dpi_u128 *w, const int64_t *u, uint64_t a,
                             const uint64_t table[3][256], int64_t n) {
    int64_t top = u[0];
    for (int64_t i = 1; i < n; i++)
        top = dpi_i64_max(top, u[i]);
    for (int64_t i = 0; i < n; i++) {
        int64_t gap = dpi_i64_min(top - u[i], dpi_gap_max(a));
        uint64_t e = (uint64_t)gap * a; /* <= 69 * 2^48 + a < 2^56 */
        uint64_t mant = exp2_fraction(table, e & ((UINT64_C(1) << 48) - 1));
        w[i] = scale_weight(mant, e >> 48);
    }
}

void dpi_kernels_init_ref_sampler(dpi_kernels *k) {
    k->clip_add = clip_add_ref;
    k->clip_range = clip_range_ref;
    k->exp2_weights = exp2_weights_ref;
}
