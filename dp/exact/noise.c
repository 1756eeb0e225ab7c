/* noise.c - see noise.h.
 *
 * WHY THE LAW IS RIGHT, scale t (Canonne, Kamath, Steinke 2020, Propositions 25 and 28 in short).
 * bernoulli_exp: the k-th trial succeeds with u/(n k), so the chance of more than k successes in a
 * row is x^k / k! with x = u/n <= 1, and the chance that the first failure comes at an odd trial
 * is 1 - x + x^2/2 - ... = e^-x.
 * laplace: R uniform below t, kept with e^(-R/t), and Q geometric with ratio e^-1 make
 * R + t Q = m with probability proportional to e^(-m/t), each m >= 0 once. A fair sign, of which
 * minus zero is refused so that 0 is not counted twice, gives the two-sided law. */
#include "dp/exact/noise.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

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

/* The margin covers tanh and two products: glibc is good to 2 units in the last place. */
double dpi_rho_pure_bound(double eps) {
    return nextafter(eps * tanh(eps / 2) * (1 + 0x1p-48), INFINITY);
}
