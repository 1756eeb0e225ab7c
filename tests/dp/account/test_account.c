/* test_account.c - zCDP conversions and the cost of tokens, against published tables, values
 * computed with 50 digits, and brute force. */
#include <float.h>

#include "dp/account/account.h"
#include "dp/exact/weights.h"
#include "tests/oracle/accountant.h"
#include "tests/support/support.h"

static const double DELTAS[3] = {1e-5, 1e-6, 1e-9};

/* One of dpi_zcdp_delta(rho, epsilon), dpi_zcdp_epsilon(rho, delta), dpi_zcdp_rho(epsilon, delta).
 */
typedef dpi_status conversion(double x, double y, double *out, dpi_error *err);

static double convert(conversion *f, double x, double y) {
    double out;
    assert_ok(f(x, y, &out, ERR));
    return out;
}

/* docs/spec.md 4.1; `unit` is half of the last printed digit. */
static void assert_printed(double value, double printed, double unit) {
    if (!(fabs(value - printed) <= unit))
        fail_msg("%.12g, the table has %.12g", value, printed);
}

TEST(test_rho_table) {
    static const struct row {
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
    for (const struct row *r = rows; r < END(rows); r++)
        for (int j = 0; j < 3; j++)
            assert_printed(convert(dpi_zcdp_rho, r->epsilon, DELTAS[j]), r->rho[j], r->unit[j]);
}

TEST(test_epsilon_table) {
    static const struct row {
        double rho, epsilon[3];
    } rows[] = {
        {.001, {.157335, .182895, .245119}},    {.01, {.545726, .621693, .810174}},
        {.1, {1.914239, 2.141939, 2.715482}},   {.5, {4.728387, 5.221534, 6.474070}},
        {1, {7.077197, 7.766217, 9.521464}},    {2, {10.724824, 11.688596, 14.150148}},
        {5, {19.047260, 20.551949, 24.405988}},
    };
    for (const struct row *r = rows; r < END(rows); r++)
        for (int j = 0; j < 3; j++)
            assert_printed(convert(dpi_zcdp_epsilon, r->rho, DELTAS[j]), r->epsilon[j], 5.01e-7);
}

/* Upper bounds: never below the exact value, and above it by no more than rounding. The exact
 * values are of the doubles that are passed, computed with 50 digits. */
TEST(test_safe_ends) {
    static const struct row {
        double x, y, exact;
    } deltas[] = {
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
    static const struct row epsilons[] = {
        {1e-6, 1e-6, 0.0044964939806486115982}, {.001, 1e-5, 0.15733539316121550505},
        {.1, 1e-9, 2.7154818867305020057},      {1, 1e-30, 17.238322109043022943},
        {5, 1e-6, 20.551948814041251857},       {50, .5, 58.540051819530247782},
        {1e4, 1e-6, 10739.073156563853529},     {1e6, 1e-12, 1010506.7925828034423},
    };
    static const struct row rhos[] = {
        {.001, 1e-6, 6.5493061789009654148e-8}, {.1, 1e-5, 0.00043299372940180956898},
        {1, 1e-6, 0.024355970359538372796},     {10, 1e-9, 1.0907857043970156234},
        {3, .4, 2.0513093289393717075},         {100, 1e-6, 49.545762799404681924},
        {1e4, 1e-8, 9181.6160975871417668},
    };
    for (const struct row *r = deltas; r < END(deltas); r++) {
        const double value = convert(dpi_zcdp_delta, r->x, r->y);
        /* The margin grows with the terms that cancel, here up to 1e5. */
        const double margin = 1e-12 * (1 + r->x * 10);
        assert_true(value >= r->exact && value <= r->exact * (1 + margin));
    }
    /* Then: the end that is returned passes the test of the other function. */
    for (const struct row *r = epsilons; r < END(epsilons); r++) {
        const double value = convert(dpi_zcdp_epsilon, r->x, r->y);
        assert_true(value >= r->exact && value <= r->exact * (1 + 1e-12));
        assert_true(value > 1e6 || convert(dpi_zcdp_delta, r->x, value) <= r->y);
    }
    for (const struct row *r = rhos; r < END(rhos); r++) {
        const double value = convert(dpi_zcdp_rho, r->x, r->y);
        assert_true(value <= r->exact && value >= r->exact * (1 - 1e-12));
        assert_true(convert(dpi_zcdp_delta, value, r->x) <= r->y);
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

TEST(test_against_brute_force) {
    uint64_t seed = 41;
    for (int i = 0; i < 60; i++) {
        const double rho = exp(-9 + 12 * random_uniform(&seed));
        const double epsilon = rho + 4 * sqrt(rho) * random_uniform(&seed);
        const double delta = convert(dpi_zcdp_delta, rho, epsilon);
        const double brute = brute_delta(rho, epsilon); /* its grid misses the minimum by < 1e-5 */
        assert_true(delta <= brute * (1 + 1e-9) && delta >= brute * (1 - 1e-4));
        /* And there and back, on the safe side each time. */
        double back = convert(dpi_zcdp_epsilon, rho, delta);
        assert_true(back <= epsilon && back >= epsilon * (1 - 1e-9));
        back = convert(dpi_zcdp_rho, epsilon, delta);
        assert_true(back >= rho && back <= rho * (1 + 1e-9));
    }
}

/* Extremes end, and are bounds: strictly between. */
TEST(test_extremes) {
    static const struct row {
        conversion *f;
        double x, y, low, high;
    } rows[] = {
        {dpi_zcdp_delta, DBL_MIN, 1, 0, 1e-300},
        {dpi_zcdp_delta, 1e6, 1e-300, .999, 1 + DBL_EPSILON},
        {dpi_zcdp_epsilon, DBL_MIN, DBL_MIN, 0, 1e-100},
        {dpi_zcdp_epsilon, .01, 1 - DBL_EPSILON, -DBL_MIN, 1},
        {dpi_zcdp_rho, 1e6, 1 - DBL_EPSILON, 0, 1e6 + 1e-9},
    };
    for (const struct row *r = rows; r < END(rows); r++) {
        const double value = convert(r->f, r->x, r->y);
        assert_true(value > r->low && value < r->high);
    }
    double value;
    assert_error(dpi_zcdp_rho(1e-300, 1e-300, &value, ERR), ARG, "too small");
}

TEST(test_refusals) {
    double out = 7;
    static const double bad[] = {0, -1, NAN, INFINITY, -INFINITY, 1.1e6};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_error(dpi_zcdp_delta(bad[i], 1, &out, ERR), ARG, "rho is");
        assert_error(dpi_zcdp_delta(1, bad[i], &out, ERR), ARG, "at most 1e+06");
        assert_error(dpi_zcdp_epsilon(bad[i], .1, &out, ERR), ARG, "rho is");
        assert_error(dpi_zcdp_epsilon(1, bad[i], &out, ERR), ARG, "below 1");
        assert_error(dpi_zcdp_rho(bad[i], .1, &out, ERR), ARG, "epsilon is");
        assert_error(dpi_zcdp_rho(1, bad[i], &out, ERR), ARG, "delta is");
    }
    assert_error(dpi_zcdp_rho(1, 1, &out, ERR), ARG, "below 1");
    assert_int_equal(dpi_zcdp_rho(1, 1, &out, NULL), DPI_STATUS_ARG);
    assert_true(out == 7);
}

/* eta, rho per token and rho total never fall below the real values, and not far above. */
TEST(test_token_cost_is_rounded_up) {
    uint64_t seed = 42;
    for (int i = 0; i < 100000; i++) {
        int64_t K = (int64_t)(random_u64(&seed) >> (33 + random_below(&seed, 30)));
        uint64_t a = 945 + (random_u64(&seed) >> (27 + random_below(&seed, 20))) % 38000000000u;
        int32_t n = 1 + random_below(&seed, 1 << 20);
        const long double eta = exact_eta(2 * K, a), up = (long double)dpi_eta_bound(2 * K, a);
        assert_true(up >= eta && up <= eta * (1 + 0x1p-49L));
        const long double rho = up * up / 8, rho_up = dpi_rho_token_bound((double)up);
        assert_true(rho_up >= rho && rho_up <= rho * (1 + 0x1p-51L));
        const double total = dpi_rho_total_bound((double)rho_up, n);
        assert_true(total >= rho_up * n && total <= rho_up * (n * (1 + 0x1p-51L)));
    }
}

/* The calibrated K fits and K + 1 does not, by long double arithmetic. */
TEST(test_calibration) {
    uint64_t seed = 43;
    for (int i = 0; i < 20000; i++) {
        uint64_t a = dpi_weights_scale(1 + random_below(&seed, 64), .2 + 2 * random_uniform(&seed));
        int32_t n = 1 + random_below(&seed, 2000);
        double rho = exp(-10 + 12 * random_uniform(&seed));
        int64_t K = dpi_clip_calibrate(a, 2, n, rho);
        assert_in_range(K, 1, DPI_CLIP_MAX);
        assert_true(n * powl(exact_eta(2 * K, a), 2) / 8 <= rho);
        assert_true(K == DPI_CLIP_MAX || n * powl(exact_eta(2 * (K + 1), a), 2) / 8 > rho);
    }
    assert_int_equal(dpi_clip_calibrate(1000, 2, 1, 1e6), DPI_CLIP_MAX);
    assert_int_equal(dpi_clip_calibrate(UINT64_C(1) << 36, 2, 1 << 20, 1e-12), 0);
}
