/* test_br.c - exact composition against closed forms, brute force, the discretisation of
 * docs/spec.md 4.2 and its table of gains. */
#include <math.h>

#include "dp/account/account.h"
#include "tests/support/support.h"

static double br_delta(double eta, int32_t n, double epsilon) {
    double delta;
    assert_ok(dpi_br_delta(eta, n, epsilon, &delta, ERR));
    return delta;
}

TEST(test_one_token) {
    uint64_t seed = 60;
    for (int i = 0; i < 1000; i++) {
        double eta = exp(6 * random_uniform(&seed) - 4), epsilon = eta * random_uniform(&seed);
        long double exact[2]; /* at epsilon, and a little below it */
        for (int k = 0; k < 2; k++) {
            long double below = epsilon * (1 - k * 0x1p-43L) - k * 0x1p-43L * eta - eta;
            exact[k] = powl(expm1l(below / 2), 2) / -expm1l(-eta);
        }
        double delta = br_delta(eta, 1, epsilon);
        assert_true(delta >= exact[0] && delta <= exact[1] * (1 + 0x1p-40L));
    }
    assert_true(br_delta(1, 1, 1 + 1e-12) == 0 && br_delta(.1, 10, 1.01) == 0);
}

static double p_of(double t, double eta) { return expm1(t - eta) / expm1(-eta); }

/* W_k(l) by trying n + 1 values of each t: never above the exact value. */
static double brute(int k, double l, double eta, double epsilon, int n) {
    if (k == 0)
        return l > epsilon ? -expm1(epsilon - l) : 0;
    double best = 0;
    for (int i = 0; i <= n; i++) {
        double t = eta * i / n, p = p_of(t, eta);
        best = fmax(best, p * brute(k - 1, l + t, eta, epsilon, n) +
                              (1 - p) * brute(k - 1, l + t - eta, eta, epsilon, n));
    }
    return best;
}

TEST(test_two_and_three_tokens) {
    static const struct row {
        double eta, epsilon;
    } cases[] = {{.1, .05}, {.1, .15}, {.5, .3}, {1, 1}, {2, .5}, {3, 4}, {6, 2}};
    for (const struct row *r = cases; r < END(cases); r++)
        for (int n = 2; n <= 3; n++) {
            const double found = br_delta(r->eta, n, r->epsilon);
            const double least = brute(n, 0, r->eta, r->epsilon, n == 2 ? 400 : 70);
            assert_true(found >= least * (1 - 1e-12));
            assert_true(found <= least * (1 + (n == 2 ? 4e-4 : 3e-3)));
        }
}

/* docs/spec.md 4.2: t on a grid of N cells per eta, steps of `range` cells: N + 1 gives an upper
 * bound, N a lower one. */
static double grid_delta(double eta, int n, double epsilon, int N, int range) {
    enum { HALF = 20 * 49 };
    static double w[2][2 * HALF + 1]; /* of k tokens that are left, and of k + 1 */
    const double h = eta / N;
    assert_true(n * range <= HALF);
    for (int j = -n * range; j <= n * range; j++)
        w[0][j + HALF] = j * h > epsilon ? -expm1(epsilon - j * h) : 0;
    for (int k = 1; k <= n; k++)
        for (int j = -(n - k) * range; j <= (n - k) * range; j++) {
            const double *last = w[1 - k % 2] + j + HALF;
            double *best = &w[k % 2][j + HALF];
            *best = 0;
            for (int t = 0; t <= range; t++) {
                const double p = p_of(t * h, range * h);
                *best = fmax(*best, p * last[t] + (1 - p) * last[t - range]);
            }
        }
    return w[n % 2][HALF];
}

TEST(test_against_the_grid) {
    static const struct row {
        double eta;
        int n;
        double epsilon;
    } cases[] = {{.3, 12, .8}, {.3, 12, 2.5}, {.05, 20, .1}, {1.5, 8, 4}};
    for (const struct row *r = cases; r < END(cases); r++) {
        const double low = grid_delta(r->eta, r->n, r->epsilon, 48, 48);
        const double high = grid_delta(r->eta, r->n, r->epsilon, 48, 49);
        const double delta = br_delta(r->eta, r->n, r->epsilon);
        assert_true(delta >= low && delta <= high);
        assert_true(delta <= low + .1 * (high - low)); /* most of the way to the lower one */
    }
}

/* C is proportional to eta. The table is for N = 256, whose rounding costs 1/256 of eta. */
TEST(test_gains) {
    static const struct row {
        double epsilon, gain[2];
    } rows[] = {
        {1, {1.069, 1.068}}, {3, {1.062, 1.061}}, {5, {1.059, 1.057}}, {10, {1.054, 1.050}}};
    static const int32_t n_tokens[2] = {100, 500};
    for (const struct row *r = rows; r < END(rows); r++)
        for (int k = 0; k < 2; k++) {
            double rho, eta;
            assert_ok(dpi_zcdp_rho(r->epsilon, 1e-6, &rho, ERR));
            assert_ok(dpi_br_eta(r->epsilon, 1e-6, n_tokens[k], &eta, ERR));
            const double gain = eta / sqrt(8 * rho / n_tokens[k]);
            print_message("epsilon %g, %d tokens: gain %.4f\n", r->epsilon, n_tokens[k], gain);
            assert_true(gain >= r->gain[k] && gain / (257. / 256) <= r->gain[k] + .0005);
        }
}

/* What comes back passes its own test, and a little more does not. */
TEST(test_safe_ends) {
    uint64_t seed = 61;
    for (int i = 0; i < 12; i++) {
        double epsilon = exp(5 * random_uniform(&seed) - 2), eta, back;
        double target = exp(-25 * random_uniform(&seed) - .5);
        int32_t n = 1 + random_below(&seed, i < 5 ? 2 : 20);
        assert_ok(dpi_br_eta(epsilon, target, n, &eta, ERR));
        assert_true(br_delta(eta, n, epsilon) <= target);
        assert_true(eta >= 900 || br_delta(eta * (1 + 1e-8), n, epsilon) > target);
        assert_ok(dpi_br_epsilon(eta, n, target, &back, ERR));
        assert_true(br_delta(eta, n, back) <= target);
        assert_true(fabs(back / epsilon - 1) < 1e-6 || eta >= 900);
        assert_true(br_delta(eta, n, back * (1 - 1e-7)) > target || eta >= 900);
        /* The same from a guess, good or bad. */
        static const double guesses[] = {1, 1 + 1e-7, 1.1, .9};
        for (size_t k = 0; k < sizeof guesses / sizeof *guesses; k++) {
            double below;
            assert_ok(dpi_br_epsilon_below(eta, n, target, back * guesses[k], &below, ERR));
            assert_true(br_delta(eta, n, below) <= target);
            assert_true(fabs(below / back - 1) < 2.1e-9 || eta >= 900);
        }
    }
}

TEST(test_extremes) {
    double delta = br_delta(.01, DPI_BR_TOKENS_MAX, 5), rho_delta, x;
    assert_ok(dpi_zcdp_delta(DPI_BR_TOKENS_MAX * .01 * .01 / 8, 5, &rho_delta, ERR));
    assert_true(delta > 0 && delta < rho_delta);
    assert_true(br_delta(1e3, 20, 1) > .999 && br_delta(1e3, 20, 1) <= 1);
    assert_true(br_delta(1e-12, 20, 1e-13) < 1e-11);
    assert_true(br_delta(1, 3, 1e-12) > 0);
    assert_ok(dpi_br_eta(1e-9, 1e-300, 7, &x, ERR));
    assert_true(x >= 1e-9 / 7 * (1 - 1e-9) && x < 1e-9);
    assert_ok(dpi_br_eta(1e6, .999, 1, &x, ERR));
    assert_true(x == 1e3);
    assert_ok(dpi_br_epsilon(1e-9, 3, .9, &x, ERR));
    assert_true(x > 0 && x < 1e-9);
}

TEST(test_refusals) {
    double x = 7;
    static const double bad[] = {0, -1, NAN, INFINITY, 1.1e6};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_error(dpi_br_delta(bad[i], 3, 1, &x, ERR), ARG, "eta is");
        assert_error(dpi_br_delta(1, 3, bad[i], &x, ERR), ARG, "epsilon is");
        assert_error(dpi_br_epsilon(bad[i], 3, .1, &x, ERR), ARG, "eta is");
        assert_error(dpi_br_epsilon(1, 3, bad[i], &x, ERR), ARG, "delta is");
        assert_error(dpi_br_eta(bad[i], .1, 3, &x, ERR), ARG, "epsilon is");
        assert_error(dpi_br_eta(1, bad[i], 3, &x, ERR), ARG, "delta is");
    }
    assert_error(dpi_br_delta(1, 0, 1, &x, ERR), ARG, "must be 1..10240");
    assert_error(dpi_br_delta(1, 10241, 1, &x, ERR), ARG, "must be 1..10240");
    assert_error(dpi_br_eta(1, .1, 10241, &x, ERR), ARG, "must be 1..10240");
    assert_true(x == 7);
    fail_allocation(0);
    for (int64_t i = 1; i <= 2; i++) {
        fail_allocation(i);
        dpi_status status = dpi_br_delta(1, 3, 1, &x, ERR);
        fail_allocation(0);
        assert_error(status, MEMORY, "no memory");
    }
}
