/* Noise of many cells at once (coordinates of a gradient, votes, cells of a histogram): each cell
 * has it, as much as the others, and no cell's tells another's. The bits are seeded, so that a
 * bound is missed always or never; a sound source misses one with a chance below 1e-9. */
#include <math.h>

#include "dp/exact/gradient.h"
#include "dp/exact/normal.h"
#include "dp/exact/poisson.h"
#include "dp/exact/votes.h"
#include "tests/support/support.h"

enum { ROUNDS = 64, MOST_CELLS = 2 * 1024 + 77 }; /* gradients take noise in pieces of 1024 */

/* Adds the mechanism's noise to z[n]. */
typedef void mechanism(int64_t *z, int32_t n, uint64_t *seed);

static void of_gradient(int64_t *z, int32_t n, uint64_t *seed) {
    assert_ok(dpi_gradient_noise(1e-3, n, dpi_random_insecure, seed, z, ERR));
}

static void of_normal(int64_t *z, int32_t n, uint64_t *seed) {
    assert_ok(dpi_normal_rounded(INT64_C(1) << 40, dpi_random_insecure, seed, z, (size_t)n, ERR));
}

static void of_votes(int64_t *z, int32_t n, uint64_t *seed) {
    assert_ok(dpi_votes_release(z, n, INT64_C(1) << 30, dpi_random_insecure, seed, ERR));
}

/* Who joins a step, as 1000 or -1000. */
static void of_poisson(int64_t *z, int32_t n, uint64_t *seed) {
    uint8_t joins[MOST_CELLS];
    assert_ok(
        dpi_poisson_draw(DPI_POISSON_ONE / 2, (size_t)n, dpi_random_insecure, seed, joins, ERR));
    for (int32_t i = 0; i < n; i++)
        z[i] = joins[i] ? 1000 : -1000;
}

/* z[ROUNDS][n], in units of its deviation. */
static void standardize(const int64_t *noise, int32_t n, double *z) {
    double square = 0;
    for (int32_t i = 0; i < ROUNDS * n; i++)
        square += (double)noise[i] * (double)noise[i];
    const double deviation = sqrt(square / (ROUNDS * (double)n));
    assert_true(deviation > 100); /* so that rounding does not matter */
    for (int32_t i = 0; i < ROUNDS * n; i++)
        z[i] = (double)noise[i] / deviation;
}

/* The sum of z_i z_(i + lag) over rounds, in deviations; lag 0: each cell's own variance. */
static void check_lags(const double *z, int32_t n) {
    for (int32_t lag = 1; lag < n; lag++) {
        double product = 0;
        for (int32_t r = 0; r < ROUNDS; r++)
            for (int32_t i = 0; i + lag < n; i++)
                product += z[r * n + i] * z[r * n + i + lag];
        assert_true(fabs(product) < 8 * sqrt(ROUNDS * (double)(n - lag)) + 30);
    }
}

static void check(mechanism *add, int32_t n) {
    int64_t *noise = calloc(ROUNDS * MOST_CELLS, sizeof *noise);
    double *z = calloc(ROUNDS * MOST_CELLS, sizeof *z);
    uint64_t seed = 77;
    for (int32_t r = 0; r < ROUNDS; r++)
        add(noise + r * n, n, &seed);
    standardize(noise, n, z);
    for (int32_t i = 0; i < n; i++) { /* chi-square of 64: below 17 or above 150 once in 1e10 */
        double sum = 0, square = 0, rounds = 0;
        for (int32_t r = 0; r < ROUNDS; r++) {
            sum += z[r * n + i];
            square += z[r * n + i] * z[r * n + i];
            rounds += r > 0 ? z[r * n + i] * z[(r - 1) * n + i] : 0;
        }
        if (square < 17 || square > 150)
            fail_msg("cell %d of %d has %g times the variance of all", i, n, square / ROUNDS);
        assert_true(fabs(sum) < 52);    /* 6.5 deviations */
        assert_true(fabs(rounds) < 80); /* and a new one in each round */
        double next = 0; /* the one after it: another piece may begin there */
        for (int32_t r = 0; r < ROUNDS && i + 1 < n; r++)
            next += z[r * n + i] * z[r * n + i + 1];
        assert_true(fabs(next) < 60);
    }
    check_lags(z, n);
    free(noise), free(z);
}

TEST(test_gradient) {
    check(of_gradient, MOST_CELLS);
    check(of_gradient, 1024);
}
TEST(test_normal) { check(of_normal, 130); }
TEST(test_poisson) { check(of_poisson, MOST_CELLS); }
TEST(test_votes) { check(of_votes, 130); }
