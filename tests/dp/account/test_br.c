/* test_br.c - exact composition against closed forms, brute force, the discretisation of
 * docs/spec.md 4.2 and its table of gains. */
#include <math.h>

#include "dp/account/account.h"
#include "tests/support/support.h"

static double br_delta(double eta, int32_t n, double epsilon) {
    double delta;
    dpi_error err;
    assert_ok(dpi_br_delta(eta, n, epsilon, &delta, &err), &err);
    return delta;
}

static void test_one_token(void **state) {
    (void)state;
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

static void test_two_and_three_tokens(void **state) {
    (void)state;
    static const double cases[][2] = {{.1, .05}, {.1, .15}, {.5, .3}, {1, 1},
                                      {2, .5},   {3, 4},    {6, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double eta = cases[i][0], epsilon = cases[i][1];
        double two = brute(2, 0, eta, epsilon, 400), delta = br_delta(eta, 2, epsilon);
        assert_true(delta >= two * (1 - 1e-12) && delta <= two * (1 + 4e-4));
        double three = brute(3, 0, eta, epsilon, 70);
        delta = br_delta(eta, 3, epsilon);
        assert_true(delta >= three * (1 - 1e-12) && delta <= three * (1 + 3e-3));
    }
}

/* docs/spec.md 4.2: t on a grid of N cells per eta, steps of `range` cells: N + 1 gives an upper
 * bound, N a lower one. */
static double grid_delta(double eta, int n, double epsilon, int N, int range) {
    int half = n * range;
    double h = eta / N, *w = calloc((size_t)(2 * half + 1), sizeof *w);
    double *next = calloc((size_t)(2 * half + 1), sizeof *next);
    double share[64];
    for (int t = 0; t <= range; t++)
        share[t] = p_of(t * h, range * h);
    for (int j = -half; j <= half; j++)
        w[j + half] = j * h > epsilon ? -expm1(epsilon - j * h) : 0;
    for (int k = 1; k <= n; k++) {
        int reach = (n - k) * range;
        for (int j = -reach; j <= reach; j++) {
            double best = 0;
            for (int t = 0; t <= range; t++) {
                double p = share[t];
                best = fmax(best, p * w[j + t + half] + (1 - p) * w[j + t - range + half]);
            }
            next[j + half] = best;
        }
        double *keep = w;
        w = next;
        next = keep;
    }
    double delta = w[half];
    free(w);
    free(next);
    return delta;
}

static void test_against_the_grid(void **state) {
    (void)state;
    static const double cases[][3] = {{.3, 12, .8}, {.3, 12, 2.5}, {.05, 20, .1}, {1.5, 8, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double eta = cases[i][0], epsilon = cases[i][2];
        int n = (int)cases[i][1];
        double low = grid_delta(eta, n, epsilon, 48, 48),
               high = grid_delta(eta, n, epsilon, 48, 49);
        double delta = br_delta(eta, n, epsilon);
        assert_true(delta >= low && delta <= high);
        assert_true(delta <= low + .1 * (high - low)); /* most of the way to the lower one */
    }
}

/* C is proportional to eta. The table is for N = 256, whose rounding costs 1/256 of eta. */
static void test_gains(void **state) {
    (void)state;
    static const double rows[][3] = {
        {1, 1.069, 1.068}, {3, 1.062, 1.061}, {5, 1.059, 1.057}, {10, 1.054, 1.050}};
    static const int32_t n_tokens[2] = {100, 500};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 2; k++) {
            double rho, eta;
            assert_ok(dpi_zcdp_rho(rows[i][0], 1e-6, &rho, NULL), NULL);
            assert_ok(dpi_br_eta(rows[i][0], 1e-6, n_tokens[k], &eta, NULL), NULL);
            double gain = eta / sqrt(8 * rho / n_tokens[k]);
            print_message("epsilon %g, %d tokens: gain %.4f\n", rows[i][0], n_tokens[k], gain);
            assert_true(gain >= rows[i][k + 1] && gain / (257. / 256) <= rows[i][k + 1] + .0005);
        }
}

/* What comes back passes its own test, and a little more does not. */
static void test_safe_ends(void **state) {
    (void)state;
    uint64_t seed = 61;
    for (int i = 0; i < 12; i++) {
        double epsilon = exp(5 * random_uniform(&seed) - 2), eta, back;
        double target = exp(-25 * random_uniform(&seed) - .5);
        int32_t n = 1 + random_below(&seed, i < 5 ? 2 : 20);
        assert_ok(dpi_br_eta(epsilon, target, n, &eta, NULL), NULL);
        assert_true(br_delta(eta, n, epsilon) <= target);
        if (eta < 900)
            assert_true(br_delta(eta * (1 + 1e-8), n, epsilon) > target);
        assert_ok(dpi_br_epsilon(eta, n, target, &back, NULL), NULL);
        assert_true(br_delta(eta, n, back) <= target);
        assert_true(fabs(back / epsilon - 1) < 1e-6 || eta >= 900);
        assert_true(br_delta(eta, n, back * (1 - 1e-7)) > target || eta >= 900);
        /* The same from a guess, good or bad. */
        static const double guesses[] = {1, 1 + 1e-7, 1.1, .9};
        for (size_t k = 0; k < sizeof guesses / sizeof *guesses; k++) {
            double below;
            assert_ok(dpi_br_epsilon_below(eta, n, target, back * guesses[k], &below, NULL), NULL);
            assert_true(br_delta(eta, n, below) <= target);
            assert_true(fabs(below / back - 1) < 2.1e-9 || eta >= 900);
        }
    }
}

static void test_extremes(void **state) {
    (void)state;
    double delta = br_delta(.01, DPI_BR_TOKENS_MAX, 5), rho_delta, x;
    assert_ok(dpi_zcdp_delta(DPI_BR_TOKENS_MAX * .01 * .01 / 8, 5, &rho_delta, NULL), NULL);
    assert_true(delta > 0 && delta < rho_delta);
    assert_true(br_delta(1e3, 20, 1) > .999 && br_delta(1e3, 20, 1) <= 1);
    assert_true(br_delta(1e-12, 20, 1e-13) < 1e-11);
    assert_true(br_delta(1, 3, 1e-12) > 0);
    assert_ok(dpi_br_eta(1e-9, 1e-300, 7, &x, NULL), NULL);
    assert_true(x >= 1e-9 / 7 * (1 - 1e-9) && x < 1e-9);
    assert_ok(dpi_br_eta(1e6, .999, 1, &x, NULL), NULL);
    assert_true(x == 1e3);
    assert_ok(dpi_br_epsilon(1e-9, 3, .9, &x, NULL), NULL);
    assert_true(x > 0 && x < 1e-9);
}

static void test_refusals(void **state) {
    (void)state;
    double x = 7;
    dpi_error err;
    static const double bad[] = {0, -1, NAN, INFINITY, 1.1e6};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_error(dpi_br_delta(bad[i], 3, 1, &x, &err), DPI_STATUS_ARG, &err, "eta is");
        assert_error(dpi_br_delta(1, 3, bad[i], &x, &err), DPI_STATUS_ARG, &err, "epsilon is");
        assert_error(dpi_br_epsilon(bad[i], 3, .1, &x, &err), DPI_STATUS_ARG, &err, "eta is");
        assert_error(dpi_br_epsilon(1, 3, bad[i], &x, &err), DPI_STATUS_ARG, &err, "delta is");
        assert_error(dpi_br_eta(bad[i], .1, 3, &x, &err), DPI_STATUS_ARG, &err, "epsilon is");
        assert_error(dpi_br_eta(1, bad[i], 3, &x, &err), DPI_STATUS_ARG, &err, "delta is");
    }
    assert_error(dpi_br_delta(1, 0, 1, &x, &err), DPI_STATUS_ARG, &err, "must be 1..10240");
    assert_error(dpi_br_delta(1, 10241, 1, &x, &err), DPI_STATUS_ARG, &err, "must be 1..10240");
    assert_error(dpi_br_eta(1, .1, 10241, &x, &err), DPI_STATUS_ARG, &err, "must be 1..10240");
    assert_true(x == 7);
    fail_allocation(0);
    for (int64_t i = 1; i <= 2; i++) {
        fail_allocation(i);
        dpi_status status = dpi_br_delta(1, 3, 1, &x, &err);
        fail_allocation(0);
        assert_error(status, DPI_STATUS_MEMORY, &err, "no memory");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_token),        cmocka_unit_test(test_two_and_three_tokens),
        cmocka_unit_test(test_against_the_grid), cmocka_unit_test(test_gains),
        cmocka_unit_test(test_safe_ends),        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
