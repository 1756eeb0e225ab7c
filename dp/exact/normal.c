/* normal.c - see normal.h.
 *
 * WHY THE LAW IS RIGHT (Karney 2016). An integer k >= 0 with probability proportional to e^(-k/2),
 * kept with e^(-k(k-1)/2), has weight e^(-k^2/2). A uniform x in [0, 1), kept with
 * e^(-x(2k+x)/2), makes it e^(-(k+x)^2/2), the half-normal density at k + x; the sign is fair.
 * keep_fraction: x(2k+x)/2 is k + 1 times x p with p = (2k+x)/(2k+2) <= 1. A run x > z_1 > z_2 >
 * ... of uniform numbers, each kept with p, is longer than m with probability (x p)^m / m!, so an
 * even number of them stands before the first that fails with probability e^(-x p).
 *
 * Reals are words of 64 bits that are drawn when they are needed: every comparison is decided by
 * the bits that differ. */
#include "dp/exact/normal.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

__extension__ typedef unsigned __int128 u128;

enum {
    N_BUFFER = 512, /* words that are fetched at once */
    N_WORDS = 4     /* of a real; a tie of so many has chance 2^-256 */
};

/* Uniform words. After a failure they are zeros, and status says so. */
typedef struct words {
    dpi_random_fn random;
    void *user;
    dpi_error *err;
    dpi_status status;
    size_t used;
    uint64_t word[N_BUFFER];
} words;

static uint64_t next(words *w) {
    if (w->used == N_BUFFER) {
        if (w->status == DPI_STATUS_OK)
            w->status = dpi_random_fill(w->random, w->user, w->word, sizeof w->word, w->err);
        if (w->status != DPI_STATUS_OK)
            memset(w->word, 0, sizeof w->word);
        w->used = 0;
    }
    const uint64_t word = w->word[w->used];
    w->word[w->used++] = 0;
    return word;
}

/* Uniform in [0, 1): 0.word[0] word[1] ... to the base 2^64. */
typedef struct real {
    int32_t n; /* words that are known */
    uint64_t word[N_WORDS];
} real;

static real draw(words *w) { return (real){.n = 1, .word = {next(w)}}; }

static uint64_t digit(words *w, real *x, int32_t i) {
    while (x->n <= i)
        x->word[x->n++] = next(w);
    return x->word[i];
}

static bool less(words *w, real *a, real *b) {
    for (int32_t i = 0; i < N_WORDS; i++) {
        const uint64_t of_a = digit(w, a, i), of_b = digit(w, b, i);
        if (of_a != of_b)
            return of_a < of_b;
    }
    return false;
}

/* Uniform in [0, n), 1 <= n < 2^32. */
static uint64_t below(words *w, uint64_t n) {
    for (;;) { /* a word has two tries of 32 bits */
        const uint64_t bits = next(w), mask = UINT64_MAX >> __builtin_clzll(n | 1);
        for (int32_t i = 0; i < 2; i++) {
            const uint64_t value = (i ? bits >> 32 : bits) & mask;
            if (value < n)
                return value;
        }
        if (w->status != DPI_STATUS_OK)
            return 0;
    }
}

/* True with probability e^(-1/2): a run from one half downwards. */
static bool keep_half(words *w) {
    real y = {.n = N_WORDS, .word = {UINT64_C(1) << 63}};
    for (bool even = true;; even = !even) {
        real z = draw(w);
        if (!less(w, &z, &y) || w->status != DPI_STATUS_OK)
            return even;
        y = z;
    }
}

/* True with probability (2k + x) / (2k + 2). */
static bool keep_part(words *w, uint64_t k, real *x) {
    const uint64_t i = below(w, 2 * k + 2);
    if (i != 2 * k)
        return i < 2 * k;
    real z = draw(w);
    return less(w, &z, x);
}

/* True with probability e^(-x (2k + x) / (2k + 2)). */
static bool keep_once(words *w, uint64_t k, real *x) {
    real last, *y = x; /* x itself: words that a comparison draws are those of x from then on */
    for (bool even = true;; even = !even) {
        real z = draw(w);
        if (!less(w, &z, y) || !keep_part(w, k, x) || w->status != DPI_STATUS_OK)
            return even;
        last = z;
        y = &last;
    }
}

/* True with probability e^(-x (2k + x) / 2). */
static bool keep_fraction(words *w, uint64_t k, real *x) {
    for (uint64_t i = 0; i <= k; i++)
        if (!keep_once(w, k, x))
            return false;
    return true;
}

/* k + x with the half-normal law. */
static uint64_t half_normal(words *w, real *x) {
    for (;;) {
        uint64_t k = 0;
        while (keep_half(w) && w->status == DPI_STATUS_OK)
            k++;
        bool kept = true;
        for (uint64_t i = 0; kept && i < k * (k - (k > 0)); i++)
            kept = keep_half(w);
        if (!kept)
            continue;
        *x = draw(w);
        if (keep_fraction(w, k, x) || w->status != DPI_STATUS_OK)
            return k;
    }
}

/* round(sigma 2^-20 (k + x)). With one word of x the product is known in units of 2^-84 but for
 * less than sigma of them: further words say whether it reaches the next half. */
static int64_t round_product(words *w, uint64_t sigma, uint64_t k, real *x) {
    const u128 low = sigma * (((u128)k << 64) | x->word[0]), one = (u128)1 << 84, half = one / 2;
    const u128 below_it = (low + half) / one, above_it = (low + sigma - 1 + half) / one;
    if (below_it == above_it)
        return (int64_t)below_it;
    uint64_t left = (uint64_t)(above_it * one - half - low); /* in 1..sigma - 1 */
    for (int32_t i = 1; i < N_WORDS; i++) {
        const u128 goal = (u128)left << 64, reached = sigma * (u128)digit(w, x, i);
        if (reached >= goal)
            return (int64_t)above_it;
        if (reached + sigma <= goal)
            return (int64_t)below_it;
        left = (uint64_t)(goal - reached);
    }
    return (int64_t)below_it;
}

dpi_status dpi_normal_rounded(int64_t sigma, dpi_random_fn random, void *user, int64_t *noise,
                              size_t n, dpi_error *err) {
    if (sigma < 1 || sigma > DPI_NORMAL_SIGMA_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "a standard deviation of %lld / 2^20, must be 1..2^54",
                        (long long)sigma);
    words w = {.random = random, .user = user, .err = err, .used = N_BUFFER};
    for (size_t i = 0; i < n; i++) {
        real x;
        const uint64_t k = half_normal(&w, &x), signs = next(&w);
        const int64_t size = round_product(&w, (uint64_t)sigma, k, &x);
        noise[i] = signs & 1 ? -size : size;
        dpi_wipe(&x, sizeof x);
    }
    const dpi_status status = w.status;
    dpi_wipe(&w, sizeof w);
    if (status != DPI_STATUS_OK)
        dpi_wipe(noise, n * sizeof *noise);
    return status;
}
