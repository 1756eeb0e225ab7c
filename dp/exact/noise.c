/* noise.c - see noise.h.
 *
 * WHY THE LAW IS RIGHT, scale t (Canonne, Kamath, Steinke 2020, Propositions 25 and 28 in short).
 * bernoulli_exp: the k-th trial succeeds with u/(n k), so the chance of more than k successes in a
 * row is x^k / k! with x = u/n <= 1, and the chance that the first failure comes at an odd trial
 * is 1 - x + x^2/2 - ... = e^-x.
 * laplace: R uniform below t, kept with e^(-R/t), and Q geometric with ratio e^-1 make
 * R + t Q = m with probability proportional to e^(-m/t), each m >= 0 once. A fair sign, of which
 * minus zero is refused so that 0 is not counted twice, gives the two-sided law.
 * gaussian, s = sigma^2 = w/f: Y of that law with scale t, kept with e^(-(|Y| - s/t)^2 / (2 s)),
 * is m with probability proportional to e^(-|m|/t - (|m| - s/t)^2 / (2 s))
 * = e^(-m^2/(2 s)) e^(-s/(2 t^2)), whatever t is: the second factor is the same for all m
 * (Proposition 31). t = floor(sigma) + 1 is kept often. Exponents are quotients of integers, and a
 * whole part q of one is q trials of e^-1. */
#include "dp/exact/noise.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "kernels/exact.h"

enum { Q_MAX = (1 << 15) - 1 }; /* geometric rounds; e^-32768 to get there */

typedef struct source {
    dpi_random_fn random;
    void *user;
    dpi_error *err;
} source;

/* Uniform in [0, n), n in [1, 2^63): as many bits as n - 1 has, until they are below n. */
static dpi_status uniform_below(const source *s, uint64_t n, uint64_t *value) {
    uint64_t mask = n > 1 ? UINT64_MAX >> __builtin_clzll(n - 1) : 0;
    uint64_t bits;
    do {
        DPI_TRY(dpi_random_fill(s->random, s->user, &bits, sizeof bits, s->err));
        bits &= mask;
    } while (bits >= n);
    *value = bits;
    return DPI_STATUS_OK;
}

/* *success with probability e^(-u/n), 0 <= u <= n < 2^47. */
static dpi_status bernoulli_exp(const source *s, uint64_t u, uint64_t n, bool *success) {
    /* More than 2^15 trials have chance 1 / (2^15)!: the bound keeps n * k in range. */
    uint64_t k = 1;
    for (; k < (1u << 15); k++) {
        uint64_t value;
        DPI_TRY(uniform_below(s, n * k, &value));
        if (value >= u)
            break;
    }
    *success = k & 1;
    return DPI_STATUS_OK;
}

/* |noise| before its sign: m >= 0 with probability proportional to e^(-m/t). */
static dpi_status magnitude(const source *s, uint64_t t, uint64_t *m) {
    uint64_t r, q = 0;
    bool success = false;
    while (!success) {
        DPI_TRY(uniform_below(s, t, &r));
        DPI_TRY(bernoulli_exp(s, r, t, &success));
    }
    for (; q < Q_MAX; q++) {
        DPI_TRY(bernoulli_exp(s, 1, 1, &success));
        if (!success)
            break;
    }
    *m = r + t * q;
    return DPI_STATUS_OK;
}

dpi_status dpi_noise_laplace(int64_t scale, dpi_random_fn random, void *user, int64_t *noise,
                             dpi_error *err) {
    const source s = {random, user, err};
    if (scale < 1 || scale > DPI_NOISE_SCALE_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "a noise scale of %lld, must be 1..%lld",
                        (long long)scale, (long long)DPI_NOISE_SCALE_MAX);
    uint64_t m, minus;
    do {
        DPI_TRY(magnitude(&s, (uint64_t)scale, &m));
        DPI_TRY(uniform_below(&s, 2, &minus));
    } while (minus && m == 0);
    *noise = minus ? -(int64_t)m : (int64_t)m;
    dpi_wipe(&m, sizeof m);
    return DPI_STATUS_OK;
}

/* *success with probability e^(-u/n): u below 2^127, n below 2^47. */
static dpi_status bernoulli_exp_any(const source *s, dpi_u128 u, uint64_t n,
                                    bool *success) {
    const dpi_u128 whole = u / n;
    for (dpi_u128 i = 0; i < whole; i++) {
        DPI_TRY(bernoulli_exp(s, 1, 1, success));
        if (!*success)
            return DPI_STATUS_OK;
    }
    return bernoulli_exp(s, (uint64_t)(u % n), n, success);
}

/* floor(sigma) + 1 for sigma^2 = w / f. */
static int64_t scale_of(int64_t w, int64_t f) {
    int64_t t = 1;
    while (f * t * t <= w)
        t++;
    return t;
}

dpi_status dpi_noise_gaussian(int64_t v, dpi_random_fn random, void *user, int64_t *noise,
                              dpi_error *err) {
    const source s = {random, user, err};
    if (v < DPI_NOISE_VARIANCE_MIN || v > DPI_NOISE_VARIANCE_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "a variance of %lld / 256, must be %d..%d",
                        (long long)v, DPI_NOISE_VARIANCE_MIN, DPI_NOISE_VARIANCE_MAX);
    if (v > DPI_NOISE_VARIANCE_FINE && v % 256 != 0)
        return dpi_fail(err, DPI_STATUS_ARG, "a variance of %lld / 256, above %d it must be whole",
                        (long long)v, DPI_NOISE_VARIANCE_FINE / 256);
    const int64_t f = v > DPI_NOISE_VARIANCE_FINE ? 1 : 256, w = f == 1 ? v / 256 : v;
    const int64_t t = scale_of(w, f);
    const uint64_t n = (uint64_t)(2 * f * w * t * t); /* < 2^46 */
    int64_t z = 0;
    bool kept = false;
    while (!kept) {
        DPI_TRY(dpi_noise_laplace(t, random, user, &z, err));
        const int64_t d = f * t * (z < 0 ? -z : z) - w; /* of (|z| - s/t), times f t */
        DPI_TRY(bernoulli_exp_any(&s, (dpi_u128)d * (dpi_u128)d, n, &kept));
    }
    *noise = z;
    dpi_wipe(&z, sizeof z);
    return DPI_STATUS_OK;
}

/* fma is exact enough to tell whether the quotient was rounded down. */
double dpi_rho_gaussian_bound(int64_t v) {
    const double rho = 128 / (double)v;
    return fma(rho, (double)v, -128) >= 0 ? rho : nextafter(rho, INFINITY);
}

int64_t dpi_noise_variance_for(double rho) {
    if (!(rho >= 128.0 / DPI_NOISE_VARIANCE_MAX && rho <= 128.0 / DPI_NOISE_VARIANCE_MIN))
        return 0;
    int64_t v = (int64_t)ceil(128 / rho);
    const int64_t step = v > DPI_NOISE_VARIANCE_FINE ? 256 : 1;
    v = (v + step - 1) / step * step;
    while (v <= DPI_NOISE_VARIANCE_MAX && dpi_rho_gaussian_bound(v) > rho)
        v += v >= DPI_NOISE_VARIANCE_FINE ? 256 : 1;
    return v <= DPI_NOISE_VARIANCE_MAX ? v : 0;
}

/* The margin covers tanh and two products: glibc is good to 2 units in the last place. */
double dpi_rho_pure_bound(double eps) {
    return nextafter(eps * tanh(eps / 2) * (1 + 0x1p-48), INFINITY);
}
