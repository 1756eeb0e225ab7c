/* test_allocation.c - random allocation: k texts of which one has the unit, and nobody knows
 * which.
 *
 * Oracles, all from the definition, in long double: for Gaussian noise the ratio X is
 * log-normal, so that E[(M - x)+] given k - 1 of the k ratios is a price of Black and Scholes,
 * and what is left is an integral over k - 1 normal numbers; for tokens of bounded range one
 * attacker's law, binomial sums over k texts; for larger k the interval that the authors'
 * library gives (PLD_accounting 2.0, gaussian_allocation_epsilon_range at delta 1e-6). */
#include "tests/oracle/accountant.h"
#include "tests/support/support.h"

static double of_gaussian(double sigma, int32_t k, double delta) {
    double epsilon;
    assert_ok(dpi_allocation_gaussian_epsilon(sigma, k, delta, &epsilon, ERR));
    return epsilon;
}

static double of_zcdp(double rho, int32_t k, double delta) {
    double epsilon;
    assert_ok(dpi_allocation_epsilon(rho, k, delta, &epsilon, ERR));
    return epsilon;
}

static double of_range(double eta, int32_t n, int32_t k, double delta) {
    double epsilon;
    assert_ok(dpi_allocation_br_epsilon(eta, n, k, delta, &epsilon, ERR));
    return epsilon;
}

/* ---- Gaussian noise: integrals --------------------------------------------------------------- */

/* E[(X - x)+] and E[(x - X)+] for ln X normal with deviation s and E[X] = 1. */
static long double call(long double x, long double s) {
    if (x <= 0)
        return 1 - x;
    const long double d = s / 2 - logl(x) / s;
    return normal_above(-d, 0, 1) - x * normal_above(s - d, 0, 1);
}

static long double put(long double x, long double s) {
    if (x <= 0)
        return 0;
    const long double d = s / 2 - logl(x) / s;
    return x * normal_above(d - s, 0, 1) - normal_above(d, 0, 1);
}

/* `price` over what k - 1 ratios leave of x, with n points for each of them. */
static long double integral(long double (*price)(long double, long double), int32_t k, int32_t n,
                            long double x, long double s) {
    const long double top = 12, step = 2 * top / (n - 1), unit = step / sqrtl(2 * acosl(-1));
    long double all = 0;
    if (k == 1)
        return price(x, s);
    for (int32_t i = 0; i < n; i++) {
        const long double z = -top + step * i, ratio = expl(s * z - s * s / 2);
        all += unit * expl(-z * z / 2) * integral(price, k - 1, n, x - ratio, s);
    }
    return all;
}

static long double exact_delta(double sigma, int32_t k, long double epsilon) {
    const long double s = 1 / (long double)sigma;
    const int32_t n = k == 2 ? 20001 : 401;
    const long double removed = integral(call, k, n, k * expl(epsilon), s) / k;
    const long double added = integral(put, k, n, k * expl(-epsilon), s) * expl(epsilon) / k;
    return fmaxl(removed, added);
}

/* At the epsilon that is stated delta is not above the wanted one, and a little below it is. */
TEST(test_gaussian_by_integration) {
    static const double sigmas[] = {.7, 1.5, 5}, deltas[] = {1e-6, 1e-3};
    for (size_t i = 0; i < sizeof sigmas / sizeof *sigmas; i++)
        for (size_t d = 0; d < sizeof deltas / sizeof *deltas; d++)
            for (int32_t k = 1; k <= 3; k++) {
                const double epsilon = of_gaussian(sigmas[i], k, deltas[d]);
                const long double at = exact_delta(sigmas[i], k, epsilon);
                const long double below = exact_delta(sigmas[i], k, .998L * epsilon);
                if (!(at <= deltas[d] && below > deltas[d]))
                    fail_msg("sigma %g, k %d, delta %g: epsilon %.10g has delta %Lg, .2%% less %Lg",
                             sigmas[i], k, deltas[d], epsilon, at, below);
            }
}

TEST(test_gaussian_beside_a_library) {
    static const struct row {
        double sigma;
        int32_t k;
        double low, high;
    } rows[] = {
        {1.5, 10, 1.152632711723874, 1.2025238678607348},
        {1.5, 100, 0.29741179405017254, 0.3120240550971535},
        {1.5, 1000, 0.08428212455898118, 0.08763637446275263},
        {5, 10, 0.2401824061703097, 0.2521740515447043},
        {5, 100, 0.07032134742630819, 0.073543549930912},
        {5, 1000, 0.020406047609004163, 0.021238636227710612},
    };
    for (const struct row *r = rows; r < END(rows); r++) {
        const double epsilon = of_gaussian(r->sigma, r->k, 1e-6);
        assert_true(epsilon > r->low && epsilon < r->high);
    }
}

/* Gaussian noise is 1 / (2 sigma^2)-zCDP, so it is one of the texts that rho stands for: what is
 * stated of rho is no less. How much more it is for one text is the conversion from zCDP. For many
 * texts it is more, as the law of a text must be the worst one at each epsilon at a time. */
TEST(test_zcdp_is_above_gaussian) {
    static const int32_t ks[] = {1, 2, 7, 100, 4000};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
        for (double sigma = .5; sigma < 10; sigma *= 2) {
            const double rho = .5 / (sigma * sigma), stated = of_zcdp(rho, ks[i], 1e-6);
            assert_true(stated >= of_gaussian(sigma, ks[i], 1e-6));
            assert_true(stated <= (ks[i] == 1 ? 1.09 : 1.45) * of_gaussian(sigma, ks[i], 1e-6));
        }
}

/* ---- Tokens of bounded range ----------------------------------------------------------------- */

/* An attacker for whom each of n tokens has the log ratios t and t - eta: the law of a text's. */
static size_t binomial_ratios(double eta, double t, int32_t n, long double *x, long double *q) {
    const long double up = expm1l(t - eta) / expm1l(-eta); /* under the law with the unit */
    const long double q_up = up * expl(-t);
    for (int32_t i = 0; i <= n; i++) {
        long double choose = 1;
        for (int32_t j = 0; j < i; j++)
            choose = choose * (n - j) / (j + 1);
        x[i] = expl(i * (long double)t + (n - i) * ((long double)t - eta));
        q[i] = choose * powl(q_up, i) * powl(1 - q_up, n - i);
    }
    return (size_t)n + 1;
}

static long double attack(double eta, double t, int32_t n, int32_t k, long double epsilon) {
    long double x[64], q[64], removed = 0, added = 0;
    const size_t m = binomial_ratios(eta, t, n, x, q);
    for (size_t i = 0; i < m * m * (k > 2 ? m : 1); i++) {
        const size_t a = i % m, b = i / m % m, c = i / m / m;
        const long double mean = k > 2 ? (x[a] + x[b] + x[c]) / 3 : (x[a] + x[b]) / 2;
        const long double mass = q[a] * q[b] * (k > 2 ? q[c] : 1);
        removed += mass * fmaxl(mean - expl(epsilon), 0);
        added += mass * fmaxl(1 - expl(epsilon) * mean, 0);
    }
    return fmaxl(removed, added);
}

/* No attacker beats what is stated; the best of them comes near. */
TEST(test_range_against_attackers) {
    static const struct row {
        double eta, delta;
        int32_t n;
    } rows[] = {{.7, 1e-3, 1}, {.3, 1e-4, 12}, {1.2, 1e-5, 5}};
    for (const struct row *r = rows; r < END(rows); r++)
        for (int32_t k = 2; k <= 3; k++) {
            const double epsilon = of_range(r->eta, r->n, k, r->delta);
            long double best = 0, below = 0;
            for (double t = .02 * r->eta; t < r->eta; t += .02 * r->eta) {
                best = fmaxl(best, attack(r->eta, t, r->n, k, epsilon));
                below = fmaxl(below, attack(r->eta, t, r->n, k, .9L * epsilon));
            }
            if (!(best <= r->delta && below > r->delta))
                fail_msg("eta %g, %d tokens, k %d: delta %Lg at epsilon, %Lg below it", r->eta,
                         r->n, k, best, below);
        }
}

/* ---- What holds for all of them -------------------------------------------------------------- */

/* One text is what it is alone; more texts hide more; a unit that is surely in one of k texts is
 * never worse off than if it were known in which. */
TEST(test_one_and_many) {
    for (double rho = .001; rho < 5; rho *= 6) {
        double alone, last;
        assert_ok(dpi_zcdp_epsilon(rho, 1e-5, &alone, ERR));
        last = of_zcdp(rho, 1, 1e-5);
        assert_true(last <= alone && last >= .97 * alone);
        for (int32_t k = 2; k <= 1 << 20; k *= 8) {
            const double next = of_zcdp(rho, k, 1e-5);
            assert_true(next < last);
            last = next;
        }
    }
    assert_true(of_zcdp(1e-9, 1000, 1e-6) <= 2e-4);
    assert_true(of_range(2, 400, 2, 1e-6) < 800); /* nearly all of the loss is beyond e^600 */
}

/* What fits has been put to the test; one part in 1000 more does not fit. */
TEST(test_the_other_way_round) {
    static const int32_t ks[] = {1, 64, 5000};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
        for (double epsilon = .1; epsilon < 20; epsilon *= 50) {
            double rho, alone, eta;
            assert_ok(dpi_allocation_rho(epsilon, 1e-6, ks[i], &rho, ERR));
            assert_ok(dpi_zcdp_rho(epsilon, 1e-6, &alone, ERR));
            assert_true(rho >= alone && of_zcdp(rho, ks[i], 1e-6) <= epsilon);
            assert_true(ks[i] == 1 || of_zcdp(1.001 * rho, ks[i], 1e-6) > epsilon);
            if (ks[i] == 5000)
                continue;
            assert_ok(dpi_allocation_br_eta(epsilon, 1e-6, 30, ks[i], &eta, ERR));
            assert_true(of_range(eta, 30, ks[i], 1e-6) <= epsilon);
            assert_true(30 * eta * eta / 8 >= .99 * rho); /* exact composition is tighter */
        }
}

/* Given one ratio the others have the mean 1, so that delta of all is at least 1 / k of that of a
 * text at ln(k e^epsilon - k + 1): for Gaussian texts too, whatever is lost in sums of small
 * numbers. */
TEST(test_extremes) {
    static const double deltas[] = {1e-3, 1e-12, 1e-60, 1e-99, 1e-150, 1e-300};
    static const int32_t ks[] = {1, 2, 10, 5000};
    for (size_t d = 0; d < sizeof deltas / sizeof *deltas; d++)
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
            for (double rho = 1e-6; rho < 1e5; rho *= 7) {
                const double found = of_zcdp(rho, ks[i], deltas[d]);
                double alone;
                assert_ok(dpi_zcdp_epsilon(rho, deltas[d], &alone, ERR));
                assert_true(found <= alone);
                const long double ratio = ks[i] * expm1l(found) + 1;
                if (!(found < 1e4))
                    continue; /* it is no long double */
                const long double least = gaussian_delta(sqrtl(2 * rho), logl(ratio)) / ks[i];
                if (least > deltas[d] * 1.000001L)
                    fail_msg("rho %g, k %d, delta %g: epsilon %g has at least %Lg", rho, ks[i],
                             deltas[d], found, least);
            }
    double x;
    assert_ok(dpi_allocation_br_eta(720, 1e-6, 500, 10, &x, ERR));
    assert_true(x < 3.3);
    assert_ok(dpi_allocation_rho(720, 1e-6, 10, &x, ERR));
    assert_true(x < 549);
    assert_ok(dpi_allocation_gaussian_epsilon(.0266, 10, 1e-6, &x, ERR));
    assert_true(isinf(x));
    assert_error(dpi_allocation_gaussian_epsilon(1, 10, 1e-101, &x, ERR), ARG, "at least 1e-100");
}

TEST(test_ranges) {
    double x = 77;
    assert_error(dpi_allocation_epsilon(0, 2, 1e-6, &x, ERR), ARG, "rho is 0, must be above 0");
    assert_error(dpi_allocation_epsilon(1, 0, 1e-6, &x, ERR), ARG, "n_batches is 0, must be 1..");
    assert_error(dpi_allocation_epsilon(1, 2, 1, &x, ERR), ARG, "delta is 1");
    assert_error(dpi_allocation_rho(0, 1e-6, 2, &x, ERR), ARG, "epsilon is 0");
    assert_error(dpi_allocation_br_epsilon(1, 0, 2, 1e-6, &x, ERR), ARG, "of 0 tokens");
    assert_error(dpi_allocation_br_eta(1, 1e-6, 1, -1, &x, ERR), ARG, "n_batches is -1");
    assert_error(dpi_allocation_gaussian_epsilon(0, 2, 1e-6, &x, ERR), ARG, "sigma is 0, must be");
    assert_true(x == 77);
}
