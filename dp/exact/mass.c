/* mass.c - see mass.h. */
#include "dp/exact/mass.h"

#include "dp/exact/order.h"

/* floor(2^106 / z), 2^44 <= z < 2^63, bit by bit: the division instruction's time depends on its
 * operands. The first 44 bits of 2^106 leave the remainder 2^43 and the quotient 0. */
static uint64_t reciprocal(uint64_t z) {
    uint64_t remainder = UINT64_C(1) << 43, quotient = 0;
    for (int bit = 0; bit < 63; bit++) {
        remainder <<= 1;
        uint64_t fits = ~dpi_mask_hide(0 - ((remainder - z) >> 63)); /* both are below 2^64 */
        remainder -= z & fits;
        quotient = quotient << 1 | (fits & 1);
    }
    return quotient;
}

/* 2^44 e^-gap, rounded down, gap in [0, 41]: an integer in [0, 2^44], 2^44 at 0. With n the integer
 * next to gap / ln2, e^-gap = 2^-n e^x and |x| < 0.347, where ten terms leave 3e-13. The tables of
 * weights.c would be exact to 2^-40; nothing rests on it here. */
static inline int64_t exponential(double gap) {
    double bits = gap * 0x1.71547652b82fep+0; /* 1 / ln2 */
    int64_t n = dpi_round_even(bits);
    double x = ((double)n - bits) * 0x1.62e42fefa39efp-1, e = 1;
    for (int k = 10; k > 0; k--)
        e = 1 + x * e / k;
    return (int64_t)(e * 0x1p44) >> n;
}

/* z = sum e is at least 2^44 (the best token) and at most 2^18 * 2^44. mass = floor(e r / 2^76)
 * with r = floor(2^106 / z), so sum(mass) <= z r / 2^76 <= 2^30. [] No property of the logits is
 * used, nor how good the exponential is, but that all e are >= 0 and one is 2^44. */
void dpi_mass(const float *logits, size_t n, int64_t *mass) {
    const double top = dpi_order_peak(logits, n);
    uint64_t z = 0;
    for (size_t y = 0; y < n; y++) {
        mass[y] = exponential(dpi_order_gap(logits[y], top, 1, 41));
        z += (uint64_t)mass[y];
    }
    const uint64_t r = reciprocal(z);
    for (size_t y = 0; y < n; y++)
        mass[y] = (int64_t)((dpi_u128)(uint64_t)mass[y] * r >> 76);
}
