/* test_renyi.c - divergences of one integer order, and the budgets that they are counted against.
 * The oracle of every number here is 60-digit arithmetic (mpmath 1.3): the range by golden section
 * over the two-point laws, the pure one by the two powers of randomised response, the Gaussian one
 * by the sum as it is printed. The table of orders is that of the ledger's specification
 * (docs/spec.md 4.8). */
#include <math.h>

#include "tests/support/support.h"

/* value in [exact, exact (1 + slack)]. `exact` is printed with 20 digits and read to the nearest
 * double, so that it may stand a unit above the truth. */
static void assert_just_above(double value, double exact, double slack) {
    if (!(value >= exact * (1 - 0x1p-52) && value <= exact * (1 + slack)))
        fail_msg("%.17g is not just above %.17g", value, exact);
}

static double divergence(int32_t kind, int32_t order, int32_t n, double x, double q) {
    dpi_cost cost;
    dpi_error err;
    double d;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, kind, n, x, q, &err), &err);
    assert_ok(dpi_cost_renyi(&cost, order, &d, &err), &err);
    return d;
}

static void test_orders(void **state) {
    (void)state;
    static const struct {
        double epsilon, delta;
        int32_t order;
        double budget, rho;
    } rows[] = {
        {1, 1e-6, 22, .53583105827270436885, .024356},
        {3, 1e-6, 9, 1.6654972880778766144, .185055},
        {5, 1e-5, 5, 2.7472716631801777444, .549454},
        {8, 1e-6, 4, 4.1446100068369864323, 1.036153},
        {10, 1e-5, 3, 5.1983085199571050176, 1.732770},
        {.1, 1e-9, 292, .051724308173496693493, .000177138},
        {100, 1e-3, 2, 94.478539082137753567, 47.239270},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dpi_error err;
        int32_t order;
        double budget, epsilon;
        assert_ok(dpi_renyi_order(rows[i].epsilon, rows[i].delta, &order, &err), &err);
        assert_int_equal(order, rows[i].order);
        assert_ok(dpi_renyi_budget(rows[i].epsilon, rows[i].delta, order, &budget, &err), &err);
        assert_true(budget < rows[i].budget);
        assert_true(budget > rows[i].budget * (1 - 1e-11));
        assert_true(fabs(budget / order - rows[i].rho) <= 0.6e-6 * fmax(1, rows[i].rho));
        assert_ok(dpi_renyi_epsilon(budget, rows[i].delta, order, &epsilon, &err), &err);
        assert_true(fabs(epsilon - rows[i].epsilon) < 1e-11 * rows[i].epsilon);
        assert_ok(dpi_renyi_epsilon(rows[i].budget, rows[i].delta, order, &epsilon, &err), &err);
        assert_true(epsilon >= rows[i].epsilon);
    }
}

static void test_zcdp(void **state) {
    (void)state;
    assert_just_above(divergence(DPI_COST_ZCDP, 5, 1, .5, 0), 2.5, 1e-15);
    assert_just_above(divergence(DPI_COST_ZCDP, 22, 3, .01, 0), .66, 1e-15);
}

static void test_range(void **state) {
    (void)state;
    static const struct {
        int32_t order;
        double eta, exact;
    } rows[] = {
        {2, .01, .000024999895834027772507}, {2, 1, .24022901391655504926},
        {5, .2, .024713668275018216065},     {22, .02, .0010971821485016576215},
        {22, 1, .82812916064202681621},      {3, 5, 4.0486540643893446055},
        {100, .5, .45285453226345913663},    {1000, .001, .00012330322150787340237},
        {5, 30, 29.374496970577288545},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double d = divergence(DPI_COST_RANGE, rows[i].order, 1, rows[i].eta, 0);
        assert_just_above(d, rows[i].exact, 1e-10);
        assert_just_above(divergence(DPI_COST_RANGE, rows[i].order, 500, rows[i].eta, 0),
                          500 * rows[i].exact, 1e-10);
        assert_true(d <= nextafter(rows[i].order * rows[i].eta * rows[i].eta / 8, INFINITY));
        assert_true(d <= rows[i].eta);
    }
}

static void test_pure(void **state) {
    (void)state;
    static const struct {
        int32_t order;
        double epsilon, exact;
    } rows[] = {
        {2, .01, .000099995833586093825666}, {2, 1, .73532566405551922471},
        {5, .2, .088709685286120573729},     {22, .02, .0042706683206837011956},
        {22, 2, 1.9939558089979536906},      {100, 5, 4.9999321681970796155},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_just_above(divergence(DPI_COST_PURE, rows[i].order, 1, rows[i].epsilon, 0),
                          rows[i].exact, 1e-11);
}

static void test_gaussian(void **state) {
    (void)state;
    static const struct {
        int32_t order;
        double sigma, q, exact;
    } rows[] = {
        {2, 1, .01, .00017181342207454793099},
        {5, 1.1, .0042666666666666667, .000059902135523497465819},
        {8, 2, .1, .013725430103219917918},
        {22, 4, 1, .6875},
        {22, .6, .005, 25.004937362029040941},
        {64, 10, .5, .094957297162412835088},
        {300, 1, .001, 143.06914186055303975},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_just_above(
            divergence(DPI_COST_GAUSSIAN, rows[i].order, 1, rows[i].sigma, rows[i].q),
            rows[i].exact, 1e-8);
}

/* Published epsilons of subsampled Gaussians by Renyi accountants, which use real orders too: the
 * best integer order is a little above. */
static void test_gaussian_epsilons(void **state) {
    (void)state;
    static const struct {
        double sigma, q;
        int32_t n_steps;
        double delta, epsilon;
    } rows[] = {
        {1.0, .01, 1000, 1e-5, 2.101367}, {0.8, .02, 500, 1e-5, 5.371863},
        {2.0, .1, 100, 1e-6, 2.914174},   {4.0, 1, 50, 1e-5, 9.234959},
        {10, .5, 200, 1e-5, 3.219205},    {1.5, .04, 2250, 1e-5, 7.329111},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double best = INFINITY;
        for (int32_t order = 2; order < 256; order++) {
            dpi_error err;
            double epsilon;
            const double d =
                divergence(DPI_COST_GAUSSIAN, order, rows[i].n_steps, rows[i].sigma, rows[i].q);
            assert_ok(dpi_renyi_epsilon(d, rows[i].delta, order, &epsilon, &err), &err);
            best = fmin(best, epsilon);
        }
        assert_true(best >= rows[i].epsilon - 1e-6);
        assert_true(best <= rows[i].epsilon * 1.02);
    }
}

static void test_subsample(void **state) {
    (void)state;
    static const struct {
        int32_t order;
        double inside, q, exact;
    } rows[] = {
        {5, .3, .1, .052162088887039079406},
        {22, .5, .01, .2808358196858664658},
        {2, 1e-6, .5, 5.0000012499999999999e-7},
        {22, 40, .01, 39.780706181619614697},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dpi_cost cost;
        dpi_error err;
        double d;
        dpi_cost_init(&cost);
        cost.subsample = rows[i].q;
        assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rows[i].inside / rows[i].order, 0, &err),
                  &err);
        assert_ok(dpi_cost_renyi(&cost, rows[i].order, &d, &err), &err);
        assert_just_above(d, rows[i].exact, 1e-10);
        cost.subsample = 1;
        assert_ok(dpi_cost_renyi(&cost, rows[i].order, &d, &err), &err);
        assert_just_above(d, rows[i].inside, 1e-14);
    }
}

/* Parts add up. */
static void test_parts(void **state) {
    (void)state;
    dpi_cost cost;
    dpi_error err;
    double d;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_RANGE, 10, .2, 0, &err), &err);
    assert_ok(dpi_cost_add(&cost, DPI_COST_PURE, 3, .2, 0, &err), &err);
    assert_ok(dpi_cost_renyi(&cost, 5, &d, &err), &err);
    assert_just_above(d, 10 * .024713668275018216065 + 3 * .088709685286120573729, 1e-11);
}

static void test_refused(void **state) {
    (void)state;
    dpi_cost cost;
    dpi_error err;
    double d;
    int32_t order;
    dpi_cost_init(&cost);
    assert_int_equal(dpi_cost_renyi(&cost, 5, &d, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_cost_add(&cost, DPI_COST_APPROXIMATE, 1, 1, 0, &err),
                     DPI_STATUS_UNSUPPORTED);
    assert_int_equal(dpi_cost_add(&cost, 9, 1, 1, 0, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_cost_add(&cost, DPI_COST_ZCDP, 0, 1, 0, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, NAN, 0, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, -1, 0, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, 1, .5, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_cost_add(&cost, DPI_COST_GAUSSIAN, 1, 1, 0, &err), DPI_STATUS_ARG);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, 1, 0, &err), &err);
    assert_int_equal(dpi_cost_renyi(&cost, 1, &d, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_renyi_order(1e-9, 1e-12, &order, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_renyi_budget(1, 1e-6, 2, &d, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_renyi_budget(0, 1e-6, 22, &d, &err), DPI_STATUS_ARG);
    assert_int_equal(dpi_renyi_epsilon(-1, 1e-6, 22, &d, &err), DPI_STATUS_ARG);
}

/* ---- Methods --------------------------------------------------------------------------------- */

static dpi_cost cost_of(dpi_sampler_options *o) {
    dpi_sampler_plan plan;
    dpi_cost cost;
    dpi_error err;
    o->n_vocab = 256;
    o->n_ref = o->denominator = 7;
    o->n_tokens = 500;
    o->delta = 1e-6;
    dpi_sampler_plan_init(&plan);
    assert_ok(dpi_sampler_plan_make(o, &plan, &err), &err);
    assert_ok(dpi_method_cost(o, &plan, &cost, &err), &err);
    return cost;
}

static double cost_at(const dpi_cost *cost, int32_t order) {
    dpi_error err;
    double d;
    assert_ok(dpi_cost_renyi(cost, order, &d, &err), &err);
    return d;
}

/* Each accountant, pace and method: never more than what its rho comes to, and not much less. */
static void test_methods(void **state) {
    (void)state;
    static const struct {
        int32_t method, accountant, pace;
        double rho, least; /* least: share of A rho */
    } rows[] = {
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE, .5, .98},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_TOP, .5, .9},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_SHARE, .5, 1},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, DPI_PACE_NONE, .5, 1},
        {DPI_METHOD_AMIN, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE, 8, .5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dpi_sampler_options o;
        dpi_error err;
        dpi_sampler_options_init(&o);
        assert_ok(dpi_method_defaults(rows[i].method, &o, &err), &err);
        o.accountant = rows[i].accountant;
        o.pace = rows[i].pace;
        o.rho = rows[i].rho;
        if (rows[i].pace == DPI_PACE_TOP) {
            o.pace_theta = .8;
            o.pace_tokens = 48;
        }
        if (rows[i].method == DPI_METHOD_AMIN) {
            o.n_private = 20;
            o.svt_threshold = .5;
            o.svt_sigma = 1.2;
        }
        const dpi_cost cost = cost_of(&o);
        const double d = cost_at(&cost, 5);
        assert_true(d <= 5 * rows[i].rho * (1 + 1e-12));
        assert_true(d >= 5 * rows[i].rho * rows[i].least);
    }
}

/* Exact composition spends more rho at the same epsilon: that is counted. Secret assignment is
 * counted with the budget inside. */
static void test_epsilon_accountants(void **state) {
    (void)state;
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    o.epsilon = 1;
    const dpi_cost zcdp = cost_of(&o);
    o.accountant = DPI_ACCOUNTANT_BR;
    const dpi_cost br = cost_of(&o);
    o.accountant = DPI_ACCOUNTANT_ZCDP;
    o.subsample = .01;
    const dpi_cost subsample = cost_of(&o);
    assert_true(cost_at(&br, 22) > 1.1 * cost_at(&zcdp, 22)); /* (1.068)^2 of rho */
    assert_true(cost_at(&br, 22) < 1.2 * cost_at(&zcdp, 22));
    assert_true(subsample.subsample == .01);
    assert_true(cost_at(&subsample, 22) > cost_at(&zcdp, 22));
}

static void test_no_guarantee(void **state) {
    (void)state;
    static const int32_t methods[] = {DPI_METHOD_PLAIN, DPI_METHOD_ADAPMIXED};
    for (size_t i = 0; i < 2; i++) {
        dpi_sampler_options o;
        dpi_sampler_plan plan;
        dpi_cost cost;
        dpi_error err;
        dpi_sampler_options_init(&o);
        dpi_sampler_plan_init(&plan);
        o.method = methods[i];
        assert_int_equal(dpi_method_cost(&o, &plan, &cost, &err), DPI_STATUS_UNSUPPORTED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_zcdp),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_pure),
        cmocka_unit_test(test_gaussian),
        cmocka_unit_test(test_gaussian_epsilons),
        cmocka_unit_test(test_subsample),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_epsilon_accountants),
        cmocka_unit_test(test_no_guarantee),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
