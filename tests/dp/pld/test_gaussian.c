/* test_gaussian.c - the cost of training: against published values, the closed forms of one step
 * and of steps without sampling, an integral for two steps, and the law of the loss itself. */
#include "dp/pld/compose.h"
#include "dpinfer/gaussian.h"
#include "tests/oracle/accountant.h"
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
    double epsilon;
    assert_ok(dpi_gaussian_epsilon(&g, delta, &epsilon, ERR));
    return epsilon;
}

static double sigma_of(double q, int32_t n_steps, int32_t accountant, double epsilon,
                       double delta) {
    const dpi_gaussian g = make(1, q, n_steps, accountant);
    double sigma;
    assert_ok(dpi_gaussian_sigma(&g, epsilon, delta, &sigma, ERR));
    return sigma;
}

/* ---- Oracles --------------------------------------------------------------------------------- */

/* delta of one step at any epsilon, of a unit that is removed (P is the mixture) or added (Q is).
 * The loss rises with x, so P - e^epsilon Q is positive above one place, or below one. */
static long double one_step(bool is_removed, long double sigma, long double q,
                            long double epsilon) {
    const long double rest = (expl(is_removed ? epsilon : -epsilon) - (1 - q)) / q;
    if (rest <= 0)
        return is_removed ? 1 - expl(epsilon) : 0;
    const long double x = sigma * sigma * logl(rest) + 0.5L, side = is_removed ? 1 : -1;
    const long double normal = normal_above(side * x, 0, sigma);
    const long double mixed = (1 - q) * normal + q * normal_above(side * x, side, sigma);
    return is_removed ? mixed - expl(epsilon) * normal : normal - expl(epsilon) * mixed;
}

/* delta of two steps: over the outcome of the first, what the second adds (Simpson's rule). */
static long double two_steps(bool is_removed, long double sigma, long double q,
                             long double epsilon) {
    const int n = 20000;
    const long double low = -14 * sigma, high = 1 + 14 * sigma, h = (high - low) / n;
    long double sum = 0;
    for (int i = 0; i <= n; i++) {
        const long double x = low + i * h, c = 1 / (sigma * sqrtl(2 * acosl(-1)));
        const long double normal = c * expl(-x * x / (2 * sigma * sigma));
        const long double moved = c * expl(-(x - 1) * (x - 1) / (2 * sigma * sigma));
        const long double mixed = (1 - q) * normal + q * moved, loss = logl(mixed / normal);
        const long double weight = i == 0 || i == n ? 1 : i % 2 ? 4 : 2;
        sum += weight * (is_removed ? mixed : normal) *
               one_step(is_removed, sigma, q, epsilon - (is_removed ? loss : -loss));
    }
    return sum * h / 3;
}

typedef long double two_ways(bool is_removed, long double sigma, long double q,
                             long double epsilon);

static long double worst(two_ways *f, long double sigma, long double q, long double epsilon) {
    return fmaxl(f(true, sigma, q, epsilon), f(false, sigma, q, epsilon));
}

/* Where a falling delta is `delta`: one_step's of a unit that is removed or added, or, for an
 * infinite q, that of sums without sampling. */
static double solve(bool is_removed, long double sigma, long double q, long double delta) {
    long double low = 0, high = 2000;
    for (int i = 0; i < 100; i++) {
        const long double e = (low + high) / 2;
        const long double found =
            isinf(q) ? gaussian_delta(1 / sigma, e) : one_step(is_removed, sigma, q, e);
        *(found > delta ? &low : &high) = e;
    }
    return high < 1e-12L ? 0 : (double)high; /* where delta is reached without any epsilon */
}

static void assert_above(double found, double truth, double share, const char *what) {
    if (!(found >= truth && found <= truth * (1 + share) + 1e-9))
        fail_msg("%s: found %.9g, the truth is %.9g", what, found, truth);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Published values: a public PLD library and its Renyi accountant, whose orders are fractions too,
 * so that integer orders may be somewhat above. */
TEST(test_published) {
    static const struct row {
        double sigma, q;
        int32_t n_steps;
        double delta, renyi, low, high;
    } rows[] = {
        {1.0, .01, 1000, 1e-5, 2.101367, 1.828237, 1.828237},
        {0.8, .02, 500, 1e-5, 5.371863, 4.668012, 4.668012},
        {1.3, .256, 195, 1e-4, 17.874704, 16.205950, 16.205950},
        {2.0, .1, 100, 1e-6, 2.914174, 2.675035, 2.675035},
        {4.0, 1, 50, 1e-5, 9.234959, 8.595866, 8.595866},
        {0.5, .001, 5000, 1e-5, 5.536062, 4.387771, 4.387771},
        {10, .5, 200, 1e-5, 3.219205, 2.967773, 2.967773},
        /* Published as 6.7678..6.7778, from a coarse grid. The truth is below that: losses
         * rounded to the nearest of a grid of 2e-5, without a bound, come to 6.767044 for one
         * step less. */
        {1.5, .04, 2250, 1e-5, 7.329111, 6.767044, 6.7778},
        {1.1, 256. / 60000, 14062, 1e-5, 0, 2.37160, 2.39160},
        /* Nearly the most steps, of few units: by transforms of losses rounded to the nearest of
         * two grids, with their mean, which agree to 1.5e-4. At most 1e-3 above. */
        {.7, 1e-4, 1000000, 1e-6, 0, 1.12475, 1.12604},
    };
    for (const struct row *r = rows; r < END(rows); r++) {
        const double pld = epsilon_of(r->sigma, r->q, r->n_steps, DPI_GAUSSIAN_PLD, r->delta);
        const double renyi = epsilon_of(r->sigma, r->q, r->n_steps, DPI_GAUSSIAN_RENYI, r->delta);
        /* Half a unit of the last printed digit. */
        if (!(pld >= r->low - 5e-7 && pld <= r->high * (1 + 1e-4)))
            fail_msg("row %td: PLD %.9g, published %g..%g", r - rows, pld, r->low, r->high);
        assert_true(pld < renyi);
        if (r->renyi > 0 && !(renyi >= r->renyi - 5e-7 && renyi <= 1.03 * r->renyi))
            fail_msg("row %td: Renyi %.9g, published %g", r - rows, renyi, r->renyi);
    }
}

TEST(test_without_sampling) {
    static const struct row {
        double sigma;
        int32_t n_steps;
        double delta;
    } rows[] = {{4, 50, 1e-5}, {1, 1, 1e-6}, {0.3, 1, 1e-9}, {100, 10000, 1e-30},
                {3, 7, 1e-90}, {50, 3, 0.3}, {0.1, 2, 1e-6}};
    for (const struct row *r = rows; r < END(rows); r++)
        assert_above(epsilon_of(r->sigma, 1, r->n_steps, DPI_GAUSSIAN_PLD, r->delta),
                     solve(true, r->sigma / sqrtl(r->n_steps), INFINITY, r->delta), 1e-4,
                     "without sampling");
}

TEST(test_one_and_two_steps) {
    static const struct row {
        double sigma, q, delta;
    } rows[] = {{1, .1, 1e-5}, {0.5, .01, 1e-6}, {2, .9, 1e-3}, {0.4, .001, 1e-4}, {5, .3, 1e-8}};
    for (const struct row *r = rows; r < END(rows); r++) {
        const double truth =
            fmax(solve(true, r->sigma, r->q, r->delta), solve(false, r->sigma, r->q, r->delta));
        assert_above(epsilon_of(r->sigma, r->q, 1, DPI_GAUSSIAN_PLD, r->delta), truth, 1e-3,
                     "one step");
        /* At what is found for two delta is reached, a thousandth below it is not. */
        const double found = epsilon_of(r->sigma, r->q, 2, DPI_GAUSSIAN_PLD, r->delta);
        const long double at = worst(two_steps, r->sigma, r->q, found);
        const long double below = worst(two_steps, r->sigma, r->q, found * .999);
        if (!(at <= r->delta * (1 + 1e-9) && below > r->delta))
            fail_msg("two steps, sigma %g, q %g: delta %Lg at %g and %Lg below it, wanted %g",
                     r->sigma, r->q, at, found, below, r->delta);
    }
}

/* The law keeps the masses of P and of Q; each grid gives a bound, a finer one a better one. */
TEST(test_law) {
    for (int direction = LOSS_REMOVE; direction <= LOSS_ADD; direction++) {
        const double truth = solve(direction == LOSS_REMOVE, 1.2L, .2L, 1e-5L);
        double last = INFINITY;
        for (double step = 0.5; step > 1e-3; step /= 4) {
            loss_law law;
            double epsilon, p = 0, q = 0;
            assert_ok(loss_law_make(1.2, .2, direction, step, 1e-12, 1 << 20, &law, ERR));
            assert_true(law.step == step);
            for (size_t i = 0; i < law.n; i++) {
                assert_true(law.mass[i] >= 0);
                p += law.mass[i];
                q += law.mass[i] * exp(-step * (double)(law.first + (int64_t)i));
            }
            assert_true(fabs(p + law.infinite - 1) < 1e-12 && law.infinite <= 2e-12);
            assert_true(q <= 1 + 1e-12 && q > 1 - 1e-6);
            assert_ok(loss_sum_epsilon(&law, 1, 1e-5, 1 << 20, &epsilon, ERR));
            free(law.mass);
            assert_true(epsilon >= truth && epsilon <= last);
            last = epsilon;
        }
    }
}

/* A grid that is coarser than wanted, since the points are few, gives a bound too. */
TEST(test_few_points) {
    loss_law law;
    double epsilon;
    assert_ok(loss_law_make(1, .01, LOSS_REMOVE, 1e-6, 1e-15, 256, &law, ERR));
    assert_true(law.n <= 256 && law.step > 1e-6);
    assert_ok(loss_sum_epsilon(&law, 1000, 1e-5, 256, &epsilon, ERR));
    free(law.mass);
    assert_true(epsilon >= 1.828236);
}

TEST(test_sigma) {
    for (int32_t accountant = DPI_GAUSSIAN_RENYI; accountant <= DPI_GAUSSIAN_PLD; accountant++) {
        const double sigma = sigma_of(.05, 60, accountant, 2, 1e-6);
        assert_true(epsilon_of(sigma, .05, 60, accountant, 1e-6) <= 2);
        assert_true(epsilon_of(sigma * (1 - 1e-5), .05, 60, accountant, 1e-6) > 2);
    }
    /* One step, by the closed form. */
    static const struct row { double q, epsilon, delta; } rows[] = {{1e-3, 1, 1e-5}, {1, 3, 1e-6}};
    for (const struct row *r = rows; r < END(rows); r++) {
        const double found = sigma_of(r->q, 1, DPI_GAUSSIAN_PLD, r->epsilon, r->delta);
        const long double at = worst(one_step, found, r->q, r->epsilon);
        const long double below = worst(one_step, found * .999, r->q, r->epsilon);
        if (!(at <= r->delta * (1 + 1e-12) && below > r->delta * (1 + 1e-12)))
            fail_msg("q %g: delta %Lg at sigma %.9g, %Lg below it", r->q, at, found, below);
    }
    /* The least that is allowed is enough. */
    assert_true(fabs(sigma_of(1e-3, 1, DPI_GAUSSIAN_RENYI, 1e5, 1e-6) - 0.1) < 1e-9);
}

TEST(test_errors) {
    static const struct row {
        double sigma, q;
        int32_t n_steps, accountant;
        double delta;
        const char *part;
    } rows[] = {
        {0.09, .1, 1, DPI_GAUSSIAN_PLD, 1e-6, "sigma is 0.09, must be 0.1..1e+06"},
        {NAN, .1, 1, DPI_GAUSSIAN_PLD, 1e-6, ""},
        {1, 0, 1, DPI_GAUSSIAN_PLD, 1e-6, "q is 0, must be above 0 and at most 1"},
        {1, 1, 0, DPI_GAUSSIAN_PLD, 1e-6, ""},
        {1, 1, 1, 2, 1e-6, ""},
        {1, 1, 1, DPI_GAUSSIAN_PLD, 1, ""},
        {1, 1, 1, DPI_GAUSSIAN_PLD, NAN, ""},
    };
    double x;
    for (const struct row *r = rows; r < END(rows); r++) {
        const dpi_gaussian g = make(r->sigma, r->q, r->n_steps, r->accountant);
        assert_error(dpi_gaussian_epsilon(&g, r->delta, &x, ERR), ARG, r->part);
    }
    dpi_gaussian g = make(1, 1, 1 << 20, DPI_GAUSSIAN_RENYI);
    assert_error(dpi_gaussian_sigma(&g, 1e-9, 1e-9, &x, ERR), ARG, "");
    g.struct_size--;
    assert_error(dpi_gaussian_epsilon(&g, 1e-6, &x, ERR), ARG, "");
}
