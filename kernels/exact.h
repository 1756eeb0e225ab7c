/* exact.h - integers and fixed point for values that are private: no branch or address depends on
 * an argument. What the kernels of the sampler and dp/ share. Internal. */
#ifndef DPI_EXACT_H
#define DPI_EXACT_H

#include <stdint.h>
#include <string.h>

__extension__ typedef unsigned __int128 dpi_u128;

#define DPI_UNIT 0x1p20                         /* fixed point: 2^20 per logit */
#define DPI_LN2_63 UINT64_C(0x58b90bfbe8e7bcd5) /* floor(ln2 * 2^63) */

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

/* Nearest integer, ties to even, |x| < 2^51: adding 1.5 * 2^52 leaves no fraction bits. The same
 * as llrint in the default rounding mode; in any other mode still an integer next to x. */
static inline int64_t dpi_round_even(double x) {
    const double shift = 0x1.8p52;
    double shifted = x + shift;
    int64_t bits, zero;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&zero, &shift, sizeof zero);
    return bits - zero;
}

/* a if `is`, 1 or 0, else b: a choice between doubles in C is a branch on AArch64. */
static inline double dpi_select(int is, double a, double b) {
    const uint64_t mask = dpi_mask_hide(0 - (uint64_t)is);
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = (x & mask) | (y & ~mask);
    memcpy(&a, &x, sizeof a);
    return a;
}

/* x, or +0 if it is not finite; without a branch. */
static inline double dpi_finite_or_zero(double x) {
    const uint64_t exponent = UINT64_C(0x7ff) << 52;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= dpi_mask_hide(0 - (uint64_t)((bits & exponent) != exponent));
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
