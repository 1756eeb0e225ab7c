/* test_renyi.c - divergences of one integer order, and the budgets that they are counted against.
 * The oracle of every number here is 60-digit arithmetic (mpmath 1.3): the range by golden section
 * over the two-point laws, the pure one by the two powers of randomised response, the Gaussian one
 * by the sum as it is printed. The table of orders is that of the ledger's specification
 * (docs/spec.md 4.8). */
#include "tests/dp/samplers.h"

/* value in [exact, exact (1 + slack)]. `exact` is printed with 20 digits and read to the nearest
 * double, so that it may stand a unit above the truth. */
static void assert_just_above(double value, double exact, double slack) {
    if (!(value >= exact * (1 - 0x1p-52) && value <= exact * (1 + slack)))
        fail_msg("%.17g is not just above %.17g", value, exact);
}

static double divergence(int32_t kind, int32_t order, int32_t n, double x, double q) {
    dpi_cost cost;
    double d;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, kind, n, x, q, ERR));
    assert_ok(dpi_cost_renyi(&cost, order, &d, ERR));
    return d;
}

static double budget_epsilon(double budget, double delta, int32_t order) {
    double epsilon;
    assert_ok(dpi_renyi_epsilon(budget, delta, order, &epsilon, ERR));
    return epsilon;
}

TEST(test_orders) {
    static const struct row {
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
    for (const struct row *r = rows; r < END(rows); r++) {
        int32_t order;
        double budget;
        assert_ok(dpi_renyi_order(r->epsilon, r->delta, &order, ERR));
        assert_int_equal(order, r->order);
        assert_ok(dpi_renyi_budget(r->epsilon, r->delta, order, &budget, ERR));
        assert_true(budget < r->budget && budget > r->budget * (1 - 1e-11));
        assert_true(fabs(budget / order - r->rho) <= 0.6e-6 * fmax(1, r->rho));
        assert_true(fabs(budget_epsilon(budget, r->delta, order) / r->epsilon - 1) < 1e-11);
        assert_true(budget_epsilon(r->budget, r->delta, order) >= r->epsilon);
    }
}

TEST(test_divergences) {
    static const struct row {
        int32_t kind, order;
        double x, q, exact, slack;
    } rows[] = {
        {DPI_COST_ZCDP, 5, .5, 0, 2.5, 1e-15},
        {DPI_COST_RANGE, 2, .01, 0, .000024999895834027772507, 1e-10},
        {DPI_COST_RANGE, 2, 1, 0, .24022901391655504926, 1e-10},
        {DPI_COST_RANGE, 5, .2, 0, .024713668275018216065, 1e-10},
        {DPI_COST_RANGE, 22, .02, 0, .0010971821485016576215, 1e-10},
        {DPI_COST_RANGE, 22, 1, 0, .82812916064202681621, 1e-10},
        {DPI_COST_RANGE, 3, 5, 0, 4.0486540643893446055, 1e-10},
        {DPI_COST_RANGE, 100, .5, 0, .45285453226345913663, 1e-10},
        {DPI_COST_RANGE, 1000, .001, 0, .00012330322150787340237, 1e-10},
        {DPI_COST_RANGE, 5, 30, 0, 29.374496970577288545, 1e-10},
        {DPI_COST_PURE, 2, .01, 0, .000099995833586093825666, 1e-11},
        {DPI_COST_PURE, 2, 1, 0, .73532566405551922471, 1e-11},
        {DPI_COST_PURE, 5, .2, 0, .088709685286120573729, 1e-11},
        {DPI_COST_PURE, 22, .02, 0, .0042706683206837011956, 1e-11},
        {DPI_COST_PURE, 22, 2, 0, 1.9939558089979536906, 1e-11},
        {DPI_COST_PURE, 100, 5, 0, 4.9999321681970796155, 1e-11},
        {DPI_COST_GAUSSIAN, 2, 1, .01, .00017181342207454793099, 1e-8},
        {DPI_COST_GAUSSIAN, 5, 1.1, .0042666666666666667, .000059902135523497465819, 1e-8},
        {DPI_COST_GAUSSIAN, 8, 2, .1, .013725430103219917918, 1e-8},
        {DPI_COST_GAUSSIAN, 22, 4, 1, .6875, 1e-8},
        {DPI_COST_GAUSSIAN, 22, .6, .005, 25.004937362029040941, 1e-8},
        {DPI_COST_GAUSSIAN, 64, 10, .5, .094957297162412835088, 1e-8},
        {DPI_COST_GAUSSIAN, 300, 1, .001, 143.06914186055303975, 1e-8},
    };
    for (const struct row *r = rows; r < END(rows); r++) {
        const double d = divergence(r->kind, r->order, 1, r->x, r->q);
        assert_just_above(d, r->exact, r->slack);
        assert_just_above(divergence(r->kind, r->order, 500, r->x, r->q), 500 * r->exact, r->slack);
        if (r->kind == DPI_COST_RANGE)
            assert_true(d <= r->x && d <= nextafter(r->order * r->x * r->x / 8, INFINITY));
    }
    assert_just_above(divergence(DPI_COST_ZCDP, 22, 3, .01, 0), .66, 1e-15);
}

static double cost_at(const dpi_cost *cost, int32_t order) {
    double d;
    assert_ok(dpi_cost_renyi(cost, order, &d, ERR));
    return d;
}

TEST(test_subsample) {
    static const struct row {
        int32_t order;
        double inside, q, exact;
    } rows[] = {
        {5, .3, .1, .052162088887039079406},
        {22, .5, .01, .2808358196858664658},
        {2, 1e-6, .5, 5.0000012499999999999e-7},
        {22, 40, .01, 39.780706181619614697},
    };
    for (const struct row *r = rows; r < END(rows); r++) {
        dpi_cost cost;
        dpi_cost_init(&cost);
        cost.subsample = r->q;
        assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, r->inside / r->order, 0, ERR));
        assert_just_above(cost_at(&cost, r->order), r->exact, 1e-10);
        cost.subsample = 1;
        assert_just_above(cost_at(&cost, r->order), r->inside, 1e-14);
    }
}

/* One of k texts. The oracle takes Gaussian texts of the same rho, whose moments zCDP allows:
 * for a unit that goes E[M^A] is the sum over all ways of A factors among k ratios, here by
 * recursion; for one that comes the bound by the geometric mean, and below an integral that it
 * must not beat. */
static double log_moment_of_mean(int32_t A, int32_t k, double rho) {
    double ways[32] = {1}; /* A! / (prod j_i!) e^(rho sum j_i (j_i - 1)), of the ratios so far */
    for (int32_t i = 0; i < k; i++)
        for (int32_t n = A; n >= 0; n--) {
            double sum = 0;
            for (int32_t j = 0; j <= n; j++)
                sum += ways[n - j] * exp(rho * j * (j - 1.)) * tgamma(n + 1.) /
                       (tgamma(j + 1.) * tgamma(n - j + 1.));
            ways[n] = sum;
        }
    return log(ways[A]) - A * log(k);
}

TEST(test_allocation) {
    static const int32_t ks[] = {2, 3, 5, 10, 64};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
        for (int32_t A = 2; A <= 16; A += 7)
            for (double rho = .001; rho < 3; rho *= 5) {
                const int32_t k = ks[i];
                dpi_cost cost;
                dpi_cost_init(&cost);
                cost.allocation = k;
                assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho, 0, ERR));
                const double removed = log_moment_of_mean(A, k, rho) / (A - 1);
                const double added = ceil(1 + (A - 1.) / k) * rho; /* by the geometric mean */
                const double d = cost_at(&cost, A);
                assert_true(d >= removed * (1 - 1e-12));
                assert_true(d <= fmin(fmax(removed, added), A * rho) * (1 + 1e-6));
                cost.subsample = .5;
                assert_true(cost_at(&cost, A) < d);
            }
    dpi_cost cost;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, .01, 0, ERR));
    cost.allocation = 1;
    assert_error(dpi_cost_renyi(&cost, 5, &cost.parts[0].x, ERR), ARG, "allocation is 1");
    cost.allocation = 1 << 30;
    assert_true(cost_at(&cost, 5) > 0 && cost_at(&cost, 5) < 1e-4);
    cost.allocation = 10; /* beyond the orders that are computed it is that of a text */
    assert_just_above(cost_at(&cost, 2000), 20, 1e-12);
}

/* For a unit that comes, D_A is that of Q^k from the mean of k. Gaussian texts: the true one, by
 * an integral over two numbers, is not above what is counted; with many texts, by the moments of
 * a mean that is nearly normal, it is not far below. */
TEST(test_allocation_of_a_unit_that_comes) {
    for (double sigma = .6; sigma < 6; sigma *= 2)
        for (int32_t A = 2; A <= 12; A += 5) {
            const long double s = 1 / (long double)sigma, step = .02L;
            long double all = 0;
            for (long double x = -11; x <= 11; x += step)
                for (long double y = -11; y <= 11; y += step) {
                    const long double mean =
                        (expl(s * x - s * s / 2) + expl(s * y - s * s / 2)) / 2;
                    all += expl(-(x * x + y * y) / 2 - (A - 1) * logl(mean));
                }
            dpi_cost cost;
            dpi_cost_init(&cost);
            cost.allocation = 2;
            assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, .5 / (sigma * sigma), 0, ERR));
            const long double exact = logl(all * step * step / (2 * acosl(-1))) / (A - 1);
            assert_true(cost_at(&cost, A) >= (double)exact);
        }
    for (int32_t k = 100; k <= 10000; k *= 10) {
        dpi_cost cost;
        const double rho = .2;
        dpi_cost_init(&cost);
        cost.allocation = k;
        assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho, 0, ERR));
        const double normal = 3 * expm1(2 * rho) / (2 * fmin(k, 1024)); /* A var(M) / 2, A = 3 */
        assert_true(cost_at(&cost, 3) >= .9 * normal && cost_at(&cost, 3) <= 1.05 * normal);
    }
}

/* Parts add up. */
TEST(test_parts) {
    dpi_cost cost;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_RANGE, 10, .2, 0, ERR));
    assert_ok(dpi_cost_add(&cost, DPI_COST_PURE, 3, .2, 0, ERR));
    assert_just_above(cost_at(&cost, 5), 10 * .024713668275018216065 + 3 * .088709685286120573729,
                      1e-11);
}

TEST(test_refused) {
    static const struct row {
        int32_t kind, n;
        double x, q;
    } rows[] = {
        {9, 1, 1, 0},
        {DPI_COST_ZCDP, 0, 1, 0},
        {DPI_COST_ZCDP, 1, NAN, 0},
        {DPI_COST_ZCDP, 1, -1, 0},
        {DPI_COST_ZCDP, 1, 1, .5},
        {DPI_COST_GAUSSIAN, 1, 1, 0},
    };
    dpi_cost cost;
    double d;
    int32_t order;
    dpi_cost_init(&cost);
    assert_error(dpi_cost_renyi(&cost, 5, &d, ERR), ARG, "");
    assert_error(dpi_cost_add(&cost, DPI_COST_APPROXIMATE, 1, 1, 0, ERR), UNSUPPORTED, "");
    for (const struct row *r = rows; r < END(rows); r++)
        assert_error(dpi_cost_add(&cost, r->kind, r->n, r->x, r->q, ERR), ARG, "");
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, 1, 0, ERR));
    assert_error(dpi_cost_renyi(&cost, 1, &d, ERR), ARG, "");
    assert_error(dpi_renyi_order(1e-9, 1e-12, &order, ERR), ARG, "");
    assert_error(dpi_renyi_budget(1, 1e-6, 2, &d, ERR), ARG, "");
    assert_error(dpi_renyi_budget(0, 1e-6, 22, &d, ERR), ARG, "");
    assert_error(dpi_renyi_epsilon(-1, 1e-6, 22, &d, ERR), ARG, "");
}

/* ---- Methods --------------------------------------------------------------------------------- */

static dpi_cost cost_of(dpi_sampler_options *o) {
    dpi_cost cost;
    o->n_vocab = 256, o->n_ref = o->denominator = 7, o->n_tokens = 500, o->delta = 1e-6;
    const dpi_sampler_plan plan = make_plan(o);
    assert_ok(dpi_method_cost(o, &plan, &cost, ERR));
    return cost;
}

/* Each accountant, pace and method: never more than what its rho comes to, and not much less. */
TEST(test_methods) {
    static const struct row {
        int32_t method, accountant, pace;
        double rho, least; /* least: share of A rho */
    } rows[] = {
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE, .5, .98},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_TOP, .5, .9},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_SHARE, .5, 1},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, DPI_PACE_NONE, .5, 1},
        {DPI_METHOD_AMIN, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE, 8, .5},
    };
    for (const struct row *r = rows; r < END(rows); r++) {
        dpi_sampler_options o;
        dpi_sampler_options_init(&o);
        assert_ok(dpi_method_defaults(r->method, &o, ERR));
        o.accountant = r->accountant, o.pace = r->pace, o.rho = r->rho;
        if (r->pace == DPI_PACE_TOP)
            o.pace_theta = .8, o.pace_tokens = 48;
        if (r->method == DPI_METHOD_AMIN)
            o.n_private = 20, o.svt_threshold = .5, o.svt_sigma = 1.2;
        const dpi_cost cost = cost_of(&o);
        const double d = cost_at(&cost, 5);
        assert_true(d <= 5 * r->rho * (1 + 1e-12) && d >= 5 * r->rho * r->least);
    }
}

/* Exact composition spends more rho at the same epsilon: that is counted. Secret assignment is
 * counted with the budget inside. */
TEST(test_epsilon_accountants) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    o.epsilon = 1;
    const dpi_cost zcdp = cost_of(&o);
    o.accountant = DPI_ACCOUNTANT_BR;
    const dpi_cost br = cost_of(&o);
    o.accountant = DPI_ACCOUNTANT_ZCDP, o.subsample = .01;
    const dpi_cost subsample = cost_of(&o);
    assert_true(cost_at(&br, 22) > 1.1 * cost_at(&zcdp, 22)); /* (1.068)^2 of rho */
    assert_true(cost_at(&br, 22) < 1.2 * cost_at(&zcdp, 22));
    assert_true(subsample.subsample == .01);
    assert_true(cost_at(&subsample, 22) > cost_at(&zcdp, 22));
}

TEST(test_no_guarantee) {
    dpi_sampler_options o;
    dpi_sampler_plan plan;
    dpi_cost cost;
    dpi_sampler_options_init(&o);
    dpi_sampler_plan_init(&plan);
    o.method = DPI_METHOD_PLAIN;
    assert_error(dpi_method_cost(&o, &plan, &cost, ERR), UNSUPPORTED, "");
    o.method = DPI_METHOD_ADAPMIXED;
    assert_error(dpi_method_cost(&o, &plan, &cost, ERR), UNSUPPORTED, "");
}
