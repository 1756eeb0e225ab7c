/* test_gaussian.c - the cost of training: against published values, the closed forms of one step
 * and of steps without sampling, an integral for two steps, and the law of the loss itself. */
#include <math.h>
#include <stdlib.h>

#include "dp/pld/compose.h"
#include "dpinfer/gaussian.h"
#include "tests/support/support.h"

static dpi_gaussian make(double sigma, double q, int32_t n_steps, int32_t accountant) {
    dpi_gaussian g;
    dpi_gaussian_init(&g);
    g.sigma = sigma, g.sampling = q, g.n_steps = n_steps, g.accountant = accountant;
    return g;
}

static double epsilon_of(double sigma, double q, int32_t n_steps, int32_t accountant,
                         double delta) {
    const dpi_gaussian g = make(sigma, q, n_steps, accountant);
    dpi_error err;
    double epsilon;
    assert_ok(dpi_gaussian_epsilon(&g, delta, &epsilon, &err), &err);
    return epsilon;
}

/* ---- Oracles --------------------------------------------------------------------------------- */

/* Mass of N(mean, sigma^2) above x. */
static long double above(long double x, long double mean, long double sigma) {
    return erfcl((x - mean) / sigma * sqrtl(0.5L)) / 2;
}

/* delta of one step at any epsilon, of a unit that is removed: P is the mixture. The loss rises
 * with x, so P - e^epsilon Q is positive above one place. */
static long double removed(long double sigma, long double q, long double epsilon) {
    const long double rest = (expl(epsilon) - (1 - q)) / q;
    if (rest <= 0)
        return 1 - expl(epsilon);
    const long double x = sigma * sigma * logl(rest) + 0.5L;
    return (1 - q) * above(x, 0, sigma) + q * above(x, 1, sigma) -
           expl(epsilon) * above(x, 0, sigma);
}

/* Of a unit that is added: Q is the mixture. Positive below one place. */
static long double added(long double sigma, long double q, long double epsilon) {
    const long double rest = (expl(-epsilon) - (1 - q)) / q;
    if (rest <= 0)
        return 0;
    const long double x = sigma * sigma * logl(rest) + 0.5L;
    return above(-x, 0, sigma) -
           expl(epsilon) * ((1 - q) * above(-x, 0, sigma) + q * above(-x, -1, sigma));
}

typedef long double (*step_delta)(long double sigma, long double q, long double epsilon);

/* delta of two steps: over the outcome of the first, what the second adds (Simpson's rule). */
static long double two_steps(step_delta one, bool remove, long double sigma, long double q,
                             long double epsilon) {
    const int n = 20000;
    const long double low = -14 * sigma, high = 1 + 14 * sigma, h = (high - low) / n;
    long double sum = 0;
    for (int i = 0; i <= n; i++) {
        const long double x = low + i * h, c = 1 / (sigma * sqrtl(2 * acosl(-1)));
        const long double normal = c * expl(-x * x / (2 * sigma * sigma));
        const long double moved = c * expl(-(x - 1) * (x - 1) / (2 * sigma * sigma));
        const long double mixed = (1 - q) * normal + q * moved;
        const long double p = remove ? mixed : normal, loss = logl(mixed / normal);
        const long double weight = i == 0 || i == n ? 1 : i % 2 ? 4 : 2;
        sum += weight * p * one(sigma, q, epsilon - (remove ? loss : -loss));
    }
    return sum * h / 3;
}

/* The Gaussian mechanism whose mean moves by mu standard deviations (Balle and Wang 2018). */
static long double plain(long double mu, long double epsilon) {
    return above(epsilon / mu - mu / 2, 0, 1) - expl(epsilon) * above(epsilon / mu + mu / 2, 0, 1);
}

/* Where a falling delta is `delta`. */
#define SOLVE(result, expression, wanted)                                                          \
    do {                                                                                           \
        long double low_ = 0, high_ = 2000;                                                        \
        for (int i_ = 0; i_ < 100; i_++) {                                                         \
            const long double e = (low_ + high_) / 2;                                              \
            if ((expression) > (wanted))                                                           \
                low_ = e;                                                                          \
            else                                                                                   \
                high_ = e;                                                                         \
        }                                                                                          \
        result = (double)high_;                                                                    \
    } while (0)

static void assert_above(double found, double truth, double share, const char *what) {
    truth = truth < 1e-12 ? 0 : truth; /* where delta is reached without any epsilon */
    if (!(found >= truth && found <= truth * (1 + share) + 1e-9))
        fail_msg("%s: found %.9g, the truth is %.9g", what, found, truth);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Published values: a public PLD library and its Renyi accountant, whose orders are fractions too,
 * so that integer orders may be somewhat above. */
static void test_published(void **state) {
    (void)state;
    static const struct {
        double sigma, q;
        int32_t n_steps;
        double delta, renyi, low, high;
    } rows[] = {
        {1.0, .01, 1000, 1e-5, 2.101367, 1.828237, 1.828237},
        {0.8, .02, 500, 1e-5, 5.371863, 4.668012, 4.668012},
        {0.6, .005, 2000, 1e-6, 7.402305, 6.352577, 6.352577},
        {1.3, .256, 195, 1e-4, 17.874704, 16.205950, 16.205950},
        {2.0, .1, 100, 1e-6, 2.914174, 2.675035, 2.675035},
        {4.0, 1, 50, 1e-5, 9.234959, 8.595866, 8.595866},
        {0.5, .001, 5000, 1e-5, 5.536062, 4.387771, 4.387771},
        {10, .5, 200, 1e-5, 3.219205, 2.967773, 2.967773},
        /* Published as 6.7678..6.7778, from a coarse grid. The truth is below that: losses
         * rounded to the nearest of a grid of 2e-5, without a bound, come to 6.767044. */
        {1.5, .04, 2249, 1e-5, 0, 6.767044, 6.7778},
        {1.1, 256. / 60000, 14062, 1e-5, 0, 2.37160, 2.39160},
        /* Many steps of few units: by transforms of losses rounded to the nearest of two grids,
         * with their mean, which agree to 1.5e-4. At most 1e-3 above. */
        {.6, 1e-4, 200000, 1e-6, 0, 1.14761, 1.14893},
        {.7, 1e-4, 1000000, 1e-6, 0, 1.12475, 1.12604},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double pld =
            epsilon_of(rows[i].sigma, rows[i].q, rows[i].n_steps, DPI_GAUSSIAN_PLD, rows[i].delta);
        const double renyi = epsilon_of(rows[i].sigma, rows[i].q, rows[i].n_steps,
                                        DPI_GAUSSIAN_RENYI, rows[i].delta);
        /* Half a unit of the last printed digit. */
        if (!(pld >= rows[i].low - 5e-7 && pld <= rows[i].high * (1 + 1e-4)))
            fail_msg("row %zu: PLD %.9g, published %g..%g", i, pld, rows[i].low, rows[i].high);
        assert_true(pld < renyi);
        if (rows[i].renyi > 0 && !(renyi >= rows[i].renyi - 5e-7 && renyi <= 1.03 * rows[i].renyi))
            fail_msg("row %zu: Renyi %.9g, published %g", i, renyi, rows[i].renyi);
    }
}

static void test_without_sampling(void **state) {
    (void)state;
    static const struct {
        double sigma;
        int32_t n_steps;
        double delta;
    } rows[] = {{4, 50, 1e-5}, {1, 1, 1e-6}, {0.3, 1, 1e-9}, {100, 10000, 1e-30},
                {3, 7, 1e-90}, {50, 3, 0.3}, {0.1, 2, 1e-6}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const long double mu = sqrtl(rows[i].n_steps) / rows[i].sigma;
        double truth;
        SOLVE(truth, plain(mu, e), rows[i].delta);
        const double found =
            epsilon_of(rows[i].sigma, 1, rows[i].n_steps, DPI_GAUSSIAN_PLD, rows[i].delta);
        assert_above(found, truth, 1e-4, "without sampling");
    }
}

static void test_one_and_two_steps(void **state) {
    (void)state;
    static const double cases[][3] = {
        {1, .1, 1e-5}, {0.5, .01, 1e-6}, {2, .9, 1e-3}, {0.4, .001, 1e-4}, {5, .3, 1e-8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double sigma = cases[i][0], q = cases[i][1], delta = cases[i][2];
        double one, other, truth;
        SOLVE(one, removed(sigma, q, e), delta);
        SOLVE(other, added(sigma, q, e), delta);
        truth = fmax(one, other);
        assert_above(epsilon_of(sigma, q, 1, DPI_GAUSSIAN_PLD, delta), truth, 1e-3, "one step");
        const double found = epsilon_of(sigma, q, 2, DPI_GAUSSIAN_PLD, delta);
        /* At what was found delta is reached, a thousandth below it is not. */
        const long double at = fmaxl(two_steps(removed, true, sigma, q, found),
                                     two_steps(added, false, sigma, q, found));
        const long double below = fmaxl(two_steps(removed, true, sigma, q, found * .999),
                                        two_steps(added, false, sigma, q, found * .999));
        if (!(at <= delta * (1 + 1e-9) && below > delta))
            fail_msg("two steps, sigma %g, q %g: delta %Lg at %g and %Lg below it, wanted %g",
                     sigma, q, at, found, below, delta);
    }
}

/* The law keeps the masses of P and of Q; each grid gives a bound, a finer one a better one. */
static void test_law(void **state) {
    (void)state;
    for (int direction = LOSS_REMOVE; direction <= LOSS_ADD; direction++) {
        double last = INFINITY;
        for (double step = 0.5; step > 1e-3; step /= 4) {
            loss_law law;
            dpi_error err;
            double epsilon, truth;
            assert_ok(loss_law_make(1.2, .2, direction, step, 1e-12, 1 << 20, &law, &err), &err);
            assert_true(law.step == step);
            double p = 0, q = 0;
            for (size_t i = 0; i < law.n; i++) {
                assert_true(law.mass[i] >= 0);
                p += law.mass[i];
                q += law.mass[i] * exp(-step * (double)(law.first + (int64_t)i));
            }
            assert_true(fabs(p + law.infinite - 1) < 1e-12 && law.infinite <= 2e-12);
            assert_true(q <= 1 + 1e-12 && q > 1 - 1e-6);
            assert_ok(loss_sum_epsilon(&law, 1, 1e-5, 1 << 20, &epsilon, &err), &err);
            free(law.mass);
            if (direction == LOSS_REMOVE)
                SOLVE(truth, removed(1.2L, .2L, e), 1e-5);
            else
                SOLVE(truth, added(1.2L, .2L, e), 1e-5);
            assert_true(epsilon >= truth && epsilon <= last);
            last = epsilon;
        }
    }
}

/* A grid that is coarser than wanted, since the points are few, gives a bound too. */
static void test_few_points(void **state) {
    (void)state;
    loss_law law;
    dpi_error err;
    double epsilon;
    assert_ok(loss_law_make(1, .01, LOSS_REMOVE, 1e-6, 1e-15, 256, &law, &err), &err);
    assert_true(law.n <= 256 && law.step > 1e-6);
    assert_ok(loss_sum_epsilon(&law, 1000, 1e-5, 256, &epsilon, &err), &err);
    free(law.mass);
    assert_true(epsilon >= 1.828236);
}

static void test_sigma(void **state) {
    (void)state;
    for (int32_t accountant = DPI_GAUSSIAN_RENYI; accountant <= DPI_GAUSSIAN_PLD; accountant++) {
        dpi_gaussian g = make(1, .05, 60, accountant);
        dpi_error err;
        double sigma;
        assert_ok(dpi_gaussian_sigma(&g, 2, 1e-6, &sigma, &err), &err);
        assert_true(epsilon_of(sigma, .05, 60, accountant, 1e-6) <= 2);
        assert_true(epsilon_of(sigma * (1 - 1e-5), .05, 60, accountant, 1e-6) > 2);
    }
    /* One step, by the closed form. */
    static const double few[][3] = {{1e-3, 1, 1e-5}, {.05, .1, 1e-5}, {1, 3, 1e-6}, {.3, .5, 1e-4}};
    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++) {
        dpi_gaussian one = make(1, few[i][0], 1, DPI_GAUSSIAN_PLD);
        dpi_error error;
        double found;
        assert_ok(dpi_gaussian_sigma(&one, few[i][1], few[i][2], &found, &error), &error);
        for (int side = 0; side < 2; side++) {
            const double at = found * (side == 0 ? 1 : .999);
            const long double delta = fmaxl(removed(at, few[i][0], few[i][1]),
                                            added(at, few[i][0], few[i][1]));
            if ((delta <= few[i][2] * (1 + 1e-12)) != (side == 0))
                fail_msg("q %g: delta %Lg at sigma %.9g", few[i][0], delta, at);
        }
    }
    /* The least that is allowed is enough. */
    dpi_gaussian g = make(1, 1e-3, 1, DPI_GAUSSIAN_RENYI);
    dpi_error err;
    double sigma;
    assert_ok(dpi_gaussian_sigma(&g, 1e5, 1e-6, &sigma, &err), &err);
    assert_true(sigma == 0.1 || fabs(sigma - 0.1) < 1e-9);
}

static void test_errors(void **state) {
    (void)state;
    dpi_error err;
    double x;
    dpi_gaussian g = make(0.09, .1, 1, DPI_GAUSSIAN_PLD);
    assert_int_equal(dpi_gaussian_epsilon(&g, 1e-6, &x, &err), DPI_STATUS_ARG);
    assert_string_equal(err.message, "sigma is 0.09, must be 0.1..1e+06");
    g = make(NAN, .1, 1, DPI_GAUSSIAN_PLD);
    assert_int_equal(dpi_gaussian_epsilon(&g, 1e-6, &x, &err), DPI_STATUS_ARG);
    g = make(1, 0, 1, DPI_GAUSSIAN_PLD);
    assert_int_equal(dpi_gaussian_epsilon(&g, 1e-6, &x, &err), DPI_STATUS_ARG);
    assert_string_equal(err.message, "q is 0, must be above 0 and at most 1");
    g = make(1, 1, 0, DPI_GAUSSIAN_PLD);
    assert_int_equal(dpi_gaussian_epsilon(&g, 1e-6, &x, &err), DPI_STATUS_ARG);
    g = make(1, 1, 1, 2);
    assert_int_equal(dpi_gaussian_epsilon(&g, 1e-6, &x, &err), DPI_STATUS_ARG);
    g = make(1, 1, 1, DPI_GAUSSIAN_PLD);
    assert_int_equal(dpi_gaussian_epsilon(&g, 1, &x, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_gaussian_epsilon(&g, NAN, &x, &err), DPI_STATUS_ARG);
    g.struct_size--;
    assert_int_equal(dpi_gaussian_epsilon(&g, 1e-6, &x, &err), DPI_STATUS_ARG);
    g = make(1, 1, 1 << 20, DPI_GAUSSIAN_RENYI);
    assert_int_equal(dpi_gaussian_sigma(&g, 1e-9, 1e-9, &x, &err), DPI_STATUS_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_without_sampling),
        cmocka_unit_test(test_one_and_two_steps),
        cmocka_unit_test(test_law),
        cmocka_unit_test(test_few_points),
        cmocka_unit_test(test_sigma),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
