#include "dp/exact/weights.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* WHY |ln(w / ideal)| < 2^-40, w from the kernel exp2_weights. Table entries are within 2^-63
 * relative of their ideal, the three products and the correction lose at most 2^-62 each by
 * truncation, and the third-order term of e^-x that is left out is below (2^-24.5)^3 / 6 < 2^-76:
 * mant is within 2^-59. The last shift truncates to an integer >= 2^40, which loses less than one
 * unit, 2^-40 relative, always downwards. From gap * a >= 69 * 2^48 on, weight and ideal are 2^40
 * exactly. The errors are one-sided but for 2^-59, so ln(w/w') over neighbours has a range of at
 * most the ideal one + 2 * (2^-40 + 2^-58) < ideal + 2^-38: the slack in eta. */

enum {
    CHAIN_BITS = 126, /* fixed point of the square-root chain */
    N_CHAIN = 24,     /* 2^-(2^-j), j = 1..24 */
};

/* product[na + nb] = a[na] * b[nb], 64-bit words, least significant first. */
static void multiply(const uint64_t *a, int na, const uint64_t *b, int nb, uint64_t *product) {
    memset(product, 0, (size_t)(na + nb) * sizeof *product);
    for (int i = 0; i < na; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < nb; j++) {
            dpi_u128 t = (dpi_u128)a[i] * b[j] + product[i + j] + carry;
            product[i + j] = (uint64_t)t;
            carry = (uint64_t)(t >> 64);
        }
        product[i + nb] = carry;
    }
}

static void multiply_u128(dpi_u128 a, dpi_u128 b, uint64_t product[4]) {
    uint64_t x[2] = {(uint64_t)a, (uint64_t)(a >> 64)};
    uint64_t y[2] = {(uint64_t)b, (uint64_t)(b >> 64)};
    multiply(x, 2, y, 2, product);
}

/* a <= b for 256-bit numbers. Public values only: it branches. */
static int at_most(const uint64_t a[4], const uint64_t b[4]) {
    for (int i = 3; i >= 0; i--)
        if (a[i] != b[i])
            return a[i] < b[i];
    return 1;
}

/* floor(sqrt(s * 2^126)): the square root of s in 126-bit fixed point, s < 2^126. */
static dpi_u128 square_root(dpi_u128 s) {
    uint64_t lo = (uint64_t)s, hi = (uint64_t)(s >> 64);
    uint64_t shifted[4] = {0, lo << 62, lo >> 2 | hi << 62, hi >> 2};
    dpi_u128 root = 0;
    for (int bit = CHAIN_BITS - 1; bit >= 0; bit--) {
        dpi_u128 trial = root | (dpi_u128)1 << bit;
        uint64_t square[4];
        multiply_u128(trial, trial, square);
        if (at_most(square, shifted))
            root = trial;
    }
    return root;
}

/* a * b in 126-bit fixed point, rounded down. */
static dpi_u128 multiply_fixed(dpi_u128 a, dpi_u128 b) {
    uint64_t p[4];
    multiply_u128(a, b, p);
    return (dpi_u128)(p[2] >> 62 | p[3] << 2) << 64 | (p[1] >> 62 | p[2] << 2);
}

void dpi_weights_tables(dpi_weight_tables *tables) {
    dpi_u128 chain[N_CHAIN + 1]; /* chain[j] = 2^-(2^-j) */
    chain[0] = (dpi_u128)1 << (CHAIN_BITS - 1);
    for (int j = 1; j <= N_CHAIN; j++)
        chain[j] = square_root(chain[j - 1]);
    for (int t = 0; t < 3; t++) {
        for (int j = 0; j < 256; j++) {
            dpi_u128 value = (dpi_u128)1 << CHAIN_BITS;
            for (int bit = 0; bit < 8; bit++)
                if (j >> bit & 1) /* worth 2^(bit - 8) of this table's unit interval */
                    value = multiply_fixed(value, chain[8 * t + 8 - bit]);
            dpi_u128 half = (dpi_u128)1 << (CHAIN_BITS - 64);
            tables->table[t][j] = (uint64_t)((value + half) >> (CHAIN_BITS - 63));
        }
    }
}

uint64_t dpi_weights_scale(int32_t n_ref, double tau) {
    const double ln2 = 0x1.62e42fefa39efp-1;
    /* Any integer near the quotient would do: the budget is counted from the integer. */
    return (uint64_t)rint(0x1p28 / (ln2 * ((double)n_ref * tau)));
}

/* ---- No branch or address below depends on private data ------------------------------------- */

size_t dpi_weights_draw(const dpi_u128 *weights, size_t n, const uint64_t bits[DPI_DRAW_WORDS]) {
    dpi_u128 sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += weights[i];
    uint64_t words[2] = {(uint64_t)sum, (uint64_t)(sum >> 64)};
    uint64_t product[DPI_DRAW_WORDS + 2];
    multiply(bits, DPI_DRAW_WORDS, words, 2, product);
    dpi_u128 r = (dpi_u128)product[5] << 64 | product[4];

    /* Sums are below 2^127, so the top bit of r - cumulative says r < cumulative. */
    dpi_u128 cumulative = 0;
    uint64_t index = 0;
    for (size_t i = 0; i < n; i++) {
        cumulative += weights[i];
        index += 1 - (uint64_t)((r - cumulative) >> 127);
    }
    dpi_wipe(words, sizeof words);
    dpi_wipe(product, sizeof product);
    return (size_t)index;
}
