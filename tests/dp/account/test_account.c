/* test_account.c - zCDP conversions and the cost of tokens, against published tables, values
 * computed with 50 digits, and brute force. */
#include <float.h>
#include <math.h>

#include "dp/account/account.h"
#include "dp/exact/weights.h"
#include "tests/support/support.h"

static const double DELTAS[3] = {1e-5, 1e-6, 1e-9};

/* docs/spec.md 4.1; `unit` is half of the last printed digit. */
static void assert_printed(double value, double printed, double unit) {
    if (!(fabs(value - printed) <= unit))
        fail_msg("%.12g, the table has %.12g", value, printed);
}

static void test_rho_table(void **state) {
    (void)state;
    static const struct {
        double epsilon, rho[3], unit[3];
    } rows[] = {
        {0.1, {.000432994, .000321048, .000177138}, {5e-10, 5e-10, 5e-10}},
        {0.5, {.00850553, .00664152, .00395319}, {5e-9, 5e-9, 5e-9}},
        {1, {.0305566, .0243560, .0149731}, {5e-8, 5e-8, 5e-8}},
        {3, {.224249, .185070, .120582}, {5e-7, 5e-7, 5e-7}},
        {5, {.550973, .463065, .311693}, {5e-7, 5e-7, 5e-7}},
        {8, {1.22971, 1.05236, .732833}, {5e-6, 5e-6, 5e-7}},
        {10, {1.78270, 1.53928, 1.09079}, {5e-6, 5e-6, 5e-6}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int j = 0; j < 3; j++) {
            double rho;
            assert_ok(dpi_zcdp_rho(rows[i].epsilon, DELTAS[j], &rho, NULL), NULL);
            assert_printed(rho, rows[i].rho[j], rows[i].unit[j]);
        }
}

static void test_epsilon_table(void **state) {
    (void)state;
    static const struct {
        double rho, epsilon[3];
    } rows[] = {
        {.001, {.157335, .182895, .245119}},    {.01, {.545726, .621693, .810174}},
        {.1, {1.914239, 2.141939, 2.715482}},   {.5, {4.728387, 5.221534, 6.474070}},
        {1, {7.077197, 7.766217, 9.521464}},    {2, {10.724824, 11.688596, 14.150148}},
        {5, {19.047260, 20.551949, 24.405988}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int j = 0; j < 3; j++) {
            double epsilon;
            assert_ok(dpi_zcdp_epsilon(rows[i].rho, DELTAS[j], &epsilon, NULL), NULL);
            assert_printed(epsilon, rows[i].epsilon[j], 5.01e-7);
        }
}

static void test_delta_table(void **state) {
    (void)state;
    static const double rows[][3] = {
        {.01, 1, 1.664114e-13}, {.1, 1, 8.933246e-3}, {.1, 3, 1.794435e-11},
        {.5, 5, 2.896123e-6},   {1, 8, 4.345342e-7},  {2, 10, 4.872631e-5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double delta;
        assert_ok(dpi_zcdp_delta(rows[i][0], rows[i][1], &delta, NULL), NULL);
        assert_printed(delta / rows[i][2], 1, 4e-7);
    }
}

/* Upper bounds: never below the exact value, and above it by no more than rounding. The exact
 * values are of the doubles that are passed, computed with 50 digits. */
static void test_safe_ends(void **state) {
    (void)state;
    static const double deltas[][3] = {
        {1e-6, .01, 1.0169180723476506374e-15},
        {.01, 1, 1.6641139773879954372e-13},
        {.1, 1, 0.0089332457718183635181},
        {.1, 3, 1.7944352083338352362e-11},
        {.5, 5, 2.8961228093847950149e-6},
        {1, 8, 4.3453415166484501564e-7},
        {2, 10, 0.000048726307329225036847},
        {20, 50, 3.9024831304052703639e-6},
        {1000, 1200, 3.2426625237536367359e-5},
        {1e5, 1.01e5, 0.079533711045775069548},
        {1e6, 9.9e5, 1},
        {.02435561, .5, 0.0032356994888613326079},
    };
    static const double epsilons[][3] = {
        {1e-6, 1e-6, 0.0044964939806486115982}, {.001, 1e-5, 0.15733539316121550505},
        {.1, 1e-9, 2.7154818867305020057},      {1, 1e-30, 17.238322109043022943},
        {5, 1e-6, 20.551948814041251857},       {50, .5, 58.540051819530247782},
        {1e4, 1e-6, 10739.073156563853529},     {1e6, 1e-12, 1010506.7925828034423},
    };
    static const double rhos[][3] = {
        {.001, 1e-6, 6.5493061789009654148e-8}, {.1, 1e-5, 0.00043299372940180956898},
        {1, 1e-6, 0.024355970359538372796},     {10, 1e-9, 1.0907857043970156234},
        {3, .4, 2.0513093289393717075},         {100, 1e-6, 49.545762799404681924},
        {1e4, 1e-8, 9181.6160975871417668},
    };
    double value, delta = 1;
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++) {
        assert_ok(dpi_zcdp_delta(deltas[i][0], deltas[i][1], &value, NULL), NULL);
        /* The margin grows with the terms that cancel, here up to 1e5. */
        double margin = 1e-12 * (1 + deltas[i][0] * 10);
        assert_true(value >= deltas[i][2] && value <= deltas[i][2] * (1 + margin));
    }
    for (size_t i = 0; i < sizeof epsilons / sizeof *epsilons; i++) {
        assert_ok(dpi_zcdp_epsilon(epsilons[i][0], epsilons[i][1], &value, NULL), NULL);
        assert_true(value >= epsilons[i][2] && value <= epsilons[i][2] * (1 + 1e-12));
        if (value <= 1e6) /* the end that is returned passes the test of the other function */
            assert_ok(dpi_zcdp_delta(epsilons[i][0], value, &delta, NULL), NULL);
        assert_true(value > 1e6 || delta <= epsilons[i][1]);
    }
    for (size_t i = 0; i < sizeof rhos / sizeof *rhos; i++) {
        assert_ok(dpi_zcdp_rho(rhos[i][0], rhos[i][1], &value, NULL), NULL);
        assert_true(value <= rhos[i][2] && value >= rhos[i][2] * (1 - 1e-12));
        assert_ok(dpi_zcdp_delta(value, rhos[i][0], &delta, NULL), NULL);
        assert_true(delta <= rhos[i][1]);
    }
}

/* The infimum over a grid of orders, in long double. */
static double brute_delta(double rho, double epsilon) {
    long double best = 0;
    for (int i = -40000; i <= 40000; i++) {
        long double x = expl(i * 1e-3L);
        long double l = x * ((1 + x) * rho - epsilon) - (1 + x) * log1pl(1 / x) - logl(x);
        best = l < best ? l : best;
    }
    return (double)expl(best);
}

static void test_against_brute_force(void **state) {
    (void)state;
    uint64_t seed = 41;
    for (int i = 0; i < 60; i++) {
        double rho = exp(-9 + 12 * random_uniform(&seed));
        double epsilon = rho + 4 * sqrt(rho) * random_uniform(&seed), delta, back;
        assert_ok(dpi_zcdp_delta(rho, epsilon, &delta, NULL), NULL);
        double brute = brute_delta(rho, epsilon); /* its grid misses the minimum by < 1e-5 */
        assert_true(delta <= brute * (1 + 1e-9) && delta >= brute * (1 - 1e-4));
        /* And there and back, on the safe side each time. */
        assert_ok(dpi_zcdp_epsilon(rho, delta, &back, NULL), NULL);
        assert_true(back <= epsilon && back >= epsilon * (1 - 1e-9));
        assert_ok(dpi_zcdp_rho(epsilon, delta, &back, NULL), NULL);
        assert_true(back >= rho && back <= rho * (1 + 1e-9));
    }
}

/* Extremes end, and are bounds. */
static void test_extremes(void **state) {
    (void)state;
    double value;
    assert_ok(dpi_zcdp_delta(DBL_MIN, 1, &value, NULL), NULL);
    assert_true(value > 0 && value < 1e-300);
    assert_ok(dpi_zcdp_delta(1e6, 1e-300, &value, NULL), NULL);
    assert_true(value > 0.999 && value <= 1);
    assert_ok(dpi_zcdp_epsilon(DBL_MIN, DBL_MIN, &value, NULL), NULL);
    assert_true(value > 0 && value < 1e-100);
    assert_ok(dpi_zcdp_epsilon(.01, 1 - DBL_EPSILON, &value, NULL), NULL);
    assert_true(value >= 0 && value < 1);
    assert_ok(dpi_zcdp_rho(1e6, 1 - DBL_EPSILON, &value, NULL), NULL);
    assert_true(value > 0 && value <= 1e6);
    dpi_error err;
    assert_error(dpi_zcdp_rho(1e-300, 1e-300, &value, &err), DPI_STATUS_ARG, &err, "too small");
}

static void test_refusals(void **state) {
    (void)state;
    dpi_error err;
    double out = 7;
    static const double bad[] = {0, -1, NAN, INFINITY, -INFINITY, 1.1e6};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_error(dpi_zcdp_delta(bad[i], 1, &out, &err), DPI_STATUS_ARG, &err, "rho is");
        assert_error(dpi_zcdp_delta(1, bad[i], &out, &err), DPI_STATUS_ARG, &err, "at most 1e+06");
        assert_error(dpi_zcdp_epsilon(bad[i], .1, &out, &err), DPI_STATUS_ARG, &err, "rho is");
        assert_error(dpi_zcdp_epsilon(1, bad[i], &out, &err), DPI_STATUS_ARG, &err, "below 1");
        assert_error(dpi_zcdp_rho(bad[i], .1, &out, &err), DPI_STATUS_ARG, &err, "epsilon is");
        assert_error(dpi_zcdp_rho(1, bad[i], &out, &err), DPI_STATUS_ARG, &err, "delta is");
    }
    assert_error(dpi_zcdp_rho(1, 1, &out, &err), DPI_STATUS_ARG, &err, "below 1");
    assert_int_equal(dpi_zcdp_rho(1, 1, &out, NULL), DPI_STATUS_ARG);
    assert_true(out == 7);
}

/* eta, rho per token and rho total never fall below the real values, and not far above. */
static void test_token_cost_is_rounded_up(void **state) {
    (void)state;
    const long double ln2 = 0.693147180559945309417232121458176568L;
    uint64_t seed = 42;
    for (int i = 0; i < 100000; i++) {
        int64_t K = (int64_t)(random_u64(&seed) >> (33 + random_below(&seed, 30)));
        uint64_t a = 945 + (random_u64(&seed) >> (27 + random_below(&seed, 20))) % 38000000000u;
        int32_t n = 1 + random_below(&seed, 1 << 20);
        long double eta = 2.0L * (long double)K * (long double)a * ln2 * 0x1p-48L + 0x1p-38L;
        double up = dpi_eta_bound(2 * K, a);
        assert_true(up >= eta && up <= eta * (1 + 0x1p-49L));
        long double rho = (long double)up * up / 8;
        double rho_up = dpi_rho_token_bound(up);
        assert_true(rho_up >= rho && rho_up <= rho * (1 + 0x1p-51L));
        double total = dpi_rho_total_bound(rho_up, n);
        assert_true(total >= (long double)rho_up * n && total <= rho_up * (n * (1 + 0x1p-51L)));
    }
}

/* The calibrated K fits and K + 1 does not, by long double arithmetic. */
static void test_calibration(void **state) {
    (void)state;
    const long double ln2 = 0.693147180559945309417232121458176568L;
    uint64_t seed = 43;
    for (int i = 0; i < 20000; i++) {
        uint64_t a = dpi_weights_scale(1 + random_below(&seed, 64), .2 + 2 * random_uniform(&seed));
        int32_t n = 1 + random_below(&seed, 2000);
        double rho = exp(-10 + 12 * random_uniform(&seed));
        int64_t K = dpi_clip_calibrate(a, 2, n, rho);
        assert_in_range(K, 1, DPI_CLIP_MAX);
        for (int64_t k = K; k <= K + 1; k++) {
            long double eta = 2.0L * (long double)k * (long double)a * ln2 * 0x1p-48L + 0x1p-38L;
            bool fits = n * (eta * eta / 8) <= rho;
            if (k <= DPI_CLIP_MAX)
                assert_int_equal(fits, k == K);
        }
    }
    assert_int_equal(dpi_clip_calibrate(1000, 2, 1, 1e6), DPI_CLIP_MAX);
    assert_int_equal(dpi_clip_calibrate(UINT64_C(1) << 36, 2, 1 << 20, 1e-12), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rho_table),
        cmocka_unit_test(test_epsilon_table),
        cmocka_unit_test(test_delta_table),
        cmocka_unit_test(test_safe_ends),
        cmocka_unit_test(test_against_brute_force),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_token_cost_is_rounded_up),
        cmocka_unit_test(test_calibration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
