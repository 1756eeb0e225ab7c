/* magnitude.c - see magnitude.h. */
#include "dp/local/magnitude.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dp/exact/noise.h"

/* LN: fraction bits of logarithms. SLACK bounds their error, in units of 2^-44: the series ends
 * before d^4 / 4 < 2^-38, a table has half a unit and libm's error, products lose 4 units. That is
 * below 80; SLACK is three times as much. */
enum { LN = 44, SLACK = 256, FEW = 256, BLOCK = 512 };
#define LN2_44 UINT64_C(12193974156573) /* ln 2 in units of 2^-44 */

void dpi_magnitude_tables_fill(dpi_magnitude_tables *t) {
    for (uint64_t i = 0; i < DPI_MAGNITUDE_CELLS; i++) {
        t->log[i] = (uint64_t)rint(ldexp(log1p((double)i / DPI_MAGNITUDE_CELLS), LN));
        t->inverse[i] = (uint64_t)(((dpi_u128)1 << 72) / ((UINT64_C(1) << 31) + (i << 22)));
    }
}

/* -ln(u / 2^32) in units of 2^-44, to SLACK; u >= 1. u 2^zeros = 2^31 (1 + i / 512) (1 + d). */
static uint64_t minus_log(const dpi_magnitude_tables *t, uint32_t u, int zeros) {
    const uint32_t v = u << zeros, i = v >> 22 & (DPI_MAGNITUDE_CELLS - 1);
    const uint64_t d = (v & 0x3fffff) * t->inverse[i] >> 28, d40 = d >> 4;
    const uint64_t square = d40 * d40 >> 36, cube = square * d40 >> 40;
    return (uint64_t)(zeros + 1) * LN2_44 - t->log[i] - (d - square / 2 + (cube * 21845 >> 16));
}

/* -ln X is in [L - 2^-b, L] for X in the cell of u >= 2^b, L = -ln(u / 2^32). */
bool dpi_magnitude_of(const dpi_magnitude_tables *t, int64_t scale, uint32_t u, uint64_t *m) {
    if (u < FEW)
        return false;
    const int zeros = __builtin_clz(u);
    const uint64_t most = minus_log(t, u, zeros) + SLACK;
    const uint64_t width = 2 * SLACK + (UINT64_C(1) << (LN - 31 + zeros));
    const dpi_u128 product = (dpi_u128)most * (uint64_t)scale;
    *m = (uint64_t)(product >> LN);
    return ((uint64_t)product & ((UINT64_C(1) << LN) - 1)) >= (uint64_t)scale * width;
}

/* ---- Numbers of 256 bits below 1, the lowest limb first -------------------------------------- */

typedef struct wide {
    uint64_t limb[4];
} wide;

static wide times(const wide *a, const wide *b) {
    uint64_t product[8] = {0};
    wide result;
    for (int i = 0; i < 4; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < 4; j++) {
            const dpi_u128 sum = (dpi_u128)a->limb[i] * b->limb[j] + product[i + j] + carry;
            product[i + j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        product[i + 4] = carry;
    }
    for (int i = 0; i < 4; i++)
        result.limb[i] = product[4 + i];
    return result;
}

static wide divided(const wide *a, uint64_t by) {
    wide result;
    uint64_t rest = 0;
    for (int i = 3; i >= 0; i--) {
        const dpi_u128 part = (dpi_u128)rest << 64 | a->limb[i];
        result.limb[i] = (uint64_t)(part / by);
        rest = (uint64_t)(part % by);
    }
    return result;
}

/* a += b or a -= b, modulo 1. */
static void add(wide *a, const wide *b, bool minus) {
    uint64_t carry = minus;
    for (int i = 0; i < 4; i++) {
        const dpi_u128 sum = (dpi_u128)a->limb[i] + (minus ? ~b->limb[i] : b->limb[i]) + carry;
        a->limb[i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64);
    }
}

static bool is_above(const wide *a, const wide *b) {
    for (int i = 3; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] > b->limb[i];
    return false;
}

/* e^(-1 / s) = 1 - 1 / s + 1 / (2 s^2) - ..., the 1 left out: modulo 1. s >= 1; for s = 1 the first
 * two terms are 0. */
static wide root_of(uint64_t s) {
    wide sum = {{0}}, term = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    for (uint64_t i = 1; i < 80; i++) {
        term = divided(&term, i * s);
        add(&sum, &term, i & 1);
    }
    return sum;
}

/* e^(-k / s) < 1, k >= 1. */
static wide power_of(const wide *root, uint64_t k) {
    wide result = *root, square = *root;
    for (k -= 1; k > 0; k >>= 1) {
        if (k & 1)
            result = times(&result, &square);
        square = times(&square, &square);
    }
    return result;
}

uint64_t dpi_magnitude_exactly(int64_t scale, uint32_t u, const uint32_t more[7]) {
    const uint64_t s = (uint64_t)scale;
    const wide root = root_of(s);
    wide x = {{(uint64_t)more[5] << 32 | more[6], (uint64_t)more[3] << 32 | more[4],
               (uint64_t)more[1] << 32 | more[2], (uint64_t)u << 32 | more[0]}};
    const double first = ldexp((double)x.limb[3] + .5, -64);
    uint64_t m = (uint64_t)(-log(first) * (double)s);
    wide power = power_of(&root, m + 1); /* m is the guess of a double: put right from here */
    while (!is_above(&x, &power))
        power = power_of(&root, ++m + 1);
    for (; m > 0; m--) {
        power = power_of(&root, m);
        if (!is_above(&x, &power))
            break;
    }
    return m;
}

/* ---- Noise ----------------------------------------------------------------------------------- */

/* |z| whose first bits are u; others are drawn where they are needed. */
static dpi_status magnitude(const dpi_magnitude_tables *t, int64_t scale, uint32_t u,
                            dpi_random_fn random, void *user, uint64_t *m, dpi_error *err) {
    uint32_t more[7];
    for (;;) {
        if (!dpi_magnitude_of(t, scale, u, m)) {
            DPI_TRY(dpi_random_fill(random, user, more, sizeof more, err));
            *m = dpi_magnitude_exactly(scale, u, more);
            dpi_wipe(more, sizeof more);
        }
        if (*m > 0)
            return DPI_STATUS_OK;
        uint32_t again[2]; /* minus zero is refused */
        DPI_TRY(dpi_random_fill(random, user, again, sizeof again, err));
        if (again[0] & 1)
            return DPI_STATUS_OK;
        u = again[1];
    }
}

static dpi_status add_one(const dpi_magnitude_tables *t, int64_t scale, uint32_t u,
                          dpi_random_fn random, void *user, dpi_u128 *sum, dpi_error *err) {
    uint64_t m;
    if (scale > DPI_MAGNITUDE_SCALE_MAX) {
        int64_t noise;
        DPI_TRY(dpi_noise_laplace(scale, random, user, &noise, err));
        m = (uint64_t)(noise < 0 ? -noise : noise);
    } else {
        DPI_TRY(magnitude(t, scale, u, random, user, &m, err));
    }
    *sum += (dpi_u128)m * m;
    return DPI_STATUS_OK;
}

dpi_status dpi_magnitude_squares(const dpi_magnitude_tables *t, const int64_t *scale, int32_t n,
                                 dpi_random_fn random, void *user, dpi_u128 *sum, dpi_error *err) {
    uint32_t bits[BLOCK];
    dpi_status status = DPI_STATUS_OK;
    *sum = 0;
    for (int32_t begin = 0; begin < n && status == DPI_STATUS_OK; begin += BLOCK) {
        const int32_t n_block = n - begin < BLOCK ? n - begin : BLOCK;
        status = dpi_random_fill(random, user, bits, (size_t)n_block * sizeof *bits, err);
        for (int32_t i = 0; i < n_block && status == DPI_STATUS_OK; i++) {
            const int64_t s = scale[begin + i];
            uint64_t m;
            if (s <= DPI_MAGNITUDE_SCALE_MAX && dpi_magnitude_of(t, s, bits[i], &m) && m > 0)
                *sum += m * m; /* m < 2^27 */
            else
                status = add_one(t, s, bits[i], random, user, sum, err);
        }
    }
    dpi_wipe(bits, sizeof bits);
    return status;
}
