/* test_plan.c - from options to integers: golden vectors, refusals, accountants, adjacencies. */
#include "tests/dp/samplers.h"

static void assert_digits(double value, double printed, double relative) {
    if (!(fabs(value / printed - 1) <= relative))
        fail_msg("%.13g, the table has %.13g", value, printed);
}

TEST(test_golden_vectors) {
    static const struct row {
        double epsilon;
        int32_t T, B;
        double tau, clip;
        uint64_t a;
        int64_t K;
        double eta, rho_total, epsilon_out;
    } rows[] = {
        {1, 500, 7, 1.1, .0760017232, 50294870, 79693, .0197405628274, .0243556137964, .9999921611},
        {10, 500, 7, 1.1, .604198106, 50294870, 633547, .156934415264, 1.53927566838, 9.999988095},
        {3, 200, 15, 1.2, .774355399, 21515028, 811970, .0860394378204, .185069621511, 2.999998044},
        {5, 100, 31, 1.0, 2.98330506, 12492597, 3128222, .192471291767, .463064976929, 4.99999992},
        {10, 100, 127, 1.0, 22.2831897, 3049374, 23365618, .350916371518, 1.53927874749,
         9.999999937},
    };
    for (const struct row *r = rows; r < END(rows); r++) {
        double rho, epsilon;
        assert_ok(dpi_zcdp_rho(r->epsilon, 1e-6, &rho, ERR));
        const dpi_sampler_options o = ink_options(32000, r->B, r->T, r->tau, rho);
        const dpi_sampler_plan plan = make_plan(&o);
        assert_int_equal(plan.a, r->a);
        assert_int_equal(plan.K, r->K);
        assert_digits(plan.clip, r->clip, 2e-9); /* 9 digits are printed */
        assert_digits(plan.eta, r->eta, 4e-12);
        assert_digits(plan.rho_total, r->rho_total, 4e-12);
        assert_true(plan.rho_total <= rho);
        assert_digits(plan.rho_token * r->T, plan.rho_total, 1e-15);
        assert_ok(dpi_zcdp_epsilon(plan.rho_total, 1e-6, &epsilon, ERR));
        assert_digits(epsilon, r->epsilon_out, 6e-10);
        assert_true(epsilon <= r->epsilon);
    }
}

/* The budget is that of the whole run: one of k batches inside, a probability of joining
 * outside. */
TEST(test_allocation_and_subsample) {
    for (double q = .1; q <= 1; q += .3)
        for (int32_t accountant = 0; accountant <= DPI_ACCOUNTANT_FILTER; accountant++) {
            dpi_sampler_options o = ink_options(100, 4, 20, 1, 0);
            double epsilon, delta = 1e-6, ignored;
            o.epsilon = 2, o.delta = delta, o.accountant = accountant;
            o.denominator = 4, o.allocation = 30;
            o.subsample = q < 1 ? q : 0;
            o.adjacency = q < 1 ? DPI_ADJACENCY_REPLACE_BY_NULL : DPI_ADJACENCY_ADD_REMOVE;
            const dpi_sampler_plan plan = make_plan(&o);
            if (q < 1)
                delta /= q;
            if (accountant == DPI_ACCOUNTANT_BR)
                assert_ok(dpi_allocation_br_epsilon(plan.eta, 20, 30, delta, &epsilon, ERR));
            else
                assert_ok(dpi_allocation_epsilon(plan.rho_total, 30, delta, &epsilon, ERR));
            if (q < 1)
                assert_ok(dpi_subsample_outside(epsilon, delta, q, &epsilon, &ignored, ERR));
            assert_true(epsilon <= 2 * (1 + 1e-9) && epsilon > 1.998);
            assert_true(plan.epsilon <= 2 && plan.epsilon > 1.998);
        }
}

TEST(test_options_are_refused_with_their_range) {
    const dpi_sampler_options good = ink_options(100, 4, 10, 1, 1);
    dpi_sampler_options o;
    REFUSED(ARG, "dpi_sampler_options.struct_size is", o.struct_size -= 8);
    REFUSED(ARG, "dpi_sampler_options.room[7] is 1, must be 0", o.room[7] = 1);
    REFUSED(ARG, "method is -1", o.method = -1);
    REFUSED(ARG, "method is 99, must be 0..", o.method = 99);
    REFUSED(ARG, "n_vocab is 0, must be 1..262144", o.n_vocab = 0);
    REFUSED(ARG, "must be 1..262144", o.n_vocab = (1 << 18) + 1);
    REFUSED(ARG, "n_ref is 0, must be 1..4096", o.n_ref = 0);
    REFUSED(ARG, "must be 1..4096", o.n_ref = 4097);
    REFUSED(ARG, "n_tokens is 0, must be 1..1048576", o.n_tokens = 0);
    REFUSED(ARG, "must be 1..1048576", o.n_tokens = (1 << 20) + 1);
    REFUSED(ARG, "top_k is -1, must be 1..262144, or 0 (all)", o.top_k = -1);
    REFUSED(ARG, "must be 0..100", o.top_k = 101);
    REFUSED(ARG, "allocation is 1, must be 2..1073741824, or 0 (", o.allocation = 1);
    REFUSED(ARG, "allocation is 9: which batch a record is in is secret with add/remove",
            o.rho = 0, o.epsilon = o.delta = .1, o.allocation = 9);
    REFUSED(UNSUPPORTED, "rho: found a budget with batches that stay secret (allocation)",
            o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.denominator = 4, o.allocation = 9);
    REFUSED(ARG, "tau is 0, must be 0.01..100", o.tau = 0);
    REFUSED(ARG, "must be 0.01..100", o.tau = .0099);
    REFUSED(ARG, "must be 0.01..100", o.tau = 100.1);
    REFUSED(ARG, "must be 0.01..100", o.tau = NAN);
    REFUSED(ARG, "rho is 0, must be above 0", o.rho = 0);
    REFUSED(ARG, "rho is -1, must be 0 < x <= 1e+06", o.rho = -1);
    REFUSED(ARG, "must be 0 < x <= 1e+06", o.rho = NAN);
    REFUSED(ARG, "must be 0 < x <= 1e+06", o.rho = INFINITY);
    REFUSED(ARG, "n_ref is 4, must be 0..0", o.method = DPI_METHOD_PLAIN);
    REFUSED(ARG, "must be 0.01..100, or 0 (the likeliest", o.method = DPI_METHOD_PLAIN, o.n_ref = 0,
            o.tau = -1);
    assert_refused(NULL, DPI_STATUS_ARG, "NULL");

    dpi_sampler_plan plan = {.struct_size = 3};
    assert_error(dpi_sampler_plan_make(&good, &plan, ERR), ARG, "struct_size is 3");
    o = ink_options(100, 1, 1 << 20, .01, 1e-12);
    assert_refused(&o, DPI_STATUS_BUDGET, "rho 1e-12");
    plan.struct_size = sizeof plan;
    assert_int_equal(dpi_sampler_plan_make(&o, &plan, NULL), DPI_STATUS_BUDGET);
}

/* ---- Accountants, adjacencies, secret assignment --------------------------------------------- */

/* A budget of epsilon at delta 1e-6. */
static dpi_sampler_options epsilon_options(int32_t n_ref, int32_t n_tokens, double tau,
                                           double epsilon) {
    dpi_sampler_options o = ink_options(100, n_ref, n_tokens, tau, 0);
    o.epsilon = epsilon, o.delta = 1e-6;
    return o;
}

TEST(test_budgets_are_refused_with_the_reason) {
    dpi_sampler_options o, good = ink_options(100, 4, 10, 1, 1);
    REFUSED(ARG, "rho is 1 and epsilon 1", o.epsilon = 1);
    REFUSED(ARG, "delta is 1, must be above 0 and below 1", o.delta = 1);
    REFUSED(ARG, "delta is -1", o.delta = -1);
    REFUSED(ARG, "accountant is 3, must be 0..2", o.accountant = 3);
    REFUSED(ARG, "adjacency is 3, must be 0..2", o.adjacency = 3);
    REFUSED(ARG, "center is 2, must be 0..1", o.center = 2);
    REFUSED(ARG, "denominator is 4097, must be 1..4096", o.denominator = 4097);
    REFUSED(ARG, "denominator is -1", o.denominator = -1);
    REFUSED(ARG, "clip is 1: only the accountant filter", o.clip = 1);
    REFUSED(ARG, "subsample is 1.5", o.subsample = 1.5);
    REFUSED(UNSUPPORTED, "a pace is not proven for the method tang", o.method = DPI_METHOD_TANG,
            o.pace = DPI_PACE_TOP, o.pace_theta = .5);
    REFUSED(UNSUPPORTED, "the pace 'share' is not proven for the method amin",
            o.method = DPI_METHOD_AMIN, o.pace = DPI_PACE_SHARE, o.pace_share = 1);
    REFUSED(ARG, "denominator is 0: with add/remove", o.adjacency = DPI_ADJACENCY_ADD_REMOVE);
    REFUSED(UNSUPPORTED, "rho: found a budget with the accountant br",
            o.accountant = DPI_ACCOUNTANT_BR);
    REFUSED(UNSUPPORTED, "rho: found a budget with secret assignment", o.subsample = .5);
    good.accountant = DPI_ACCOUNTANT_FILTER;
    REFUSED(ARG, "clip is 2048, must be 0 < x <= 2047", o.clip = 2048);
    REFUSED(ARG, "clip is nan", o.clip = NAN);
    REFUSED(BUDGET, "no clip range", o.clip = 1e-7);
    good = epsilon_options(4, 10, 1, 2);
    make_plan(&good);
    REFUSED(ARG, "delta is 0", o.delta = 0);
    good.subsample = .5, good.denominator = 4;
    REFUSED(UNSUPPORTED, "a zeroed record that joins a batch still moves it",
            o.adjacency = DPI_ADJACENCY_ZERO_OUT);
    REFUSED(ARG, "n_ref must be 0..", o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.n_ref = 123456789);
    assert_null(strstr(ERR->message, "123456789")); /* it is private */
}

/* The same budget either way, and what comes out is within it. */
TEST(test_budget_of_epsilon) {
    uint64_t seed = 25;
    for (int i = 0; i < 200; i++) {
        dpi_sampler_options o = epsilon_options(1 + random_below(&seed, 30), 300, 1.1,
                                                exp(4 * random_uniform(&seed) - 1));
        const dpi_sampler_plan by_epsilon = make_plan(&o);
        double rho, epsilon;
        assert_ok(dpi_zcdp_rho(o.epsilon, o.delta, &rho, ERR));
        assert_true(by_epsilon.rho_budget == rho);
        assert_true(by_epsilon.epsilon <= o.epsilon && by_epsilon.delta == o.delta);
        assert_ok(dpi_zcdp_epsilon(by_epsilon.rho_total, o.delta, &epsilon, ERR));
        assert_true(by_epsilon.epsilon == epsilon || by_epsilon.epsilon == o.epsilon);
        o.rho = rho, o.epsilon = 0;
        const dpi_sampler_plan by_rho = make_plan(&o);
        assert_int_equal(by_rho.K, by_epsilon.K);
        assert_true(by_rho.epsilon == epsilon);
        o.delta = 0;
        assert_true(make_plan(&o).epsilon == 0);
    }
}

/* docs/spec.md section 1: zero-out has twice the range; the denominator, not the slots, is B. */
TEST(test_adjacencies) {
    dpi_sampler_options o = ink_options(100, 7, 500, 1.1, 1.539);
    const dpi_sampler_plan null = make_plan(&o);
    o.adjacency = DPI_ADJACENCY_ZERO_OUT;
    const dpi_sampler_plan zero = make_plan(&o);
    assert_digits(zero.clip, null.clip / 2, 1e-15);
    assert_true(llabs(2 * zero.K - null.K) <= 1);
    assert_digits(zero.eta, null.eta, 1e-5);
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.denominator = 7;
    for (o.n_ref = 0; o.n_ref <= 1 << 20; o.n_ref = 3 * o.n_ref + 1) {
        const dpi_sampler_plan any = make_plan(&o); /* whatever the batch holds */
        assert_true(any.K == null.K && any.a == null.a);
        assert_true(any.eta == null.eta && any.rho_total == null.rho_total);
    }
}

/* docs/spec.md 4.4: gains in C at epsilon 1, delta 1e-6. */
TEST(test_gain_of_secret_assignment) {
    static const double rows[3][2] = {{.1, 2.94}, {.01, 5.41}, {.001, 8.24}};
    dpi_sampler_options o = epsilon_options(8, 100, 1, 1);
    o.denominator = 8;
    const double clip = make_plan(&o).clip;
    for (int i = 0; i < 3; i++) {
        o.subsample = rows[i][0];
        const dpi_sampler_plan plan = make_plan(&o);
        assert_true(fabs(plan.clip / clip - rows[i][1]) < .00501);
        assert_true(plan.epsilon <= 1 && plan.epsilon > .9999 && plan.delta == 1e-6);
    }
    o.subsample = 1;
    assert_digits(make_plan(&o).clip, clip, 1e-12);
}

/* K is the largest that fits exact composition. */
TEST(test_exact_composition_in_the_plan) {
    dpi_sampler_options o = epsilon_options(8, 20, 1, 3);
    const dpi_sampler_plan zcdp = make_plan(&o);
    o.accountant = DPI_ACCOUNTANT_BR;
    const dpi_sampler_plan br = make_plan(&o);
    double delta, eta = br.eta;
    assert_true(br.K > zcdp.K && br.rho_budget == 0);
    assert_ok(dpi_br_delta(eta, 20, 3, &delta, ERR));
    assert_true(delta <= 1e-6);
    eta *= 1 + 2. / (double)br.K;
    assert_ok(dpi_br_delta(eta, 20, 3, &delta, ERR));
    assert_true(delta > 1e-6);
    assert_true(br.epsilon <= 3 && br.epsilon > 2.99999);
    assert_ok(dpi_br_delta(br.eta, 20, br.epsilon, &delta, ERR));
    assert_true(delta <= 1e-6);
}

TEST(test_filter_plan) {
    dpi_sampler_options o = ink_options(100, 8, 200, 1.2, .7);
    const dpi_sampler_plan zcdp = make_plan(&o);
    o.accountant = DPI_ACCOUNTANT_FILTER;
    const dpi_sampler_plan filter = make_plan(&o);
    assert_digits(filter.clip, DPI_FILTER_CLIP_FACTOR * zcdp.clip, 1e-15);
    assert_int_equal(filter.K, llrint(filter.clip * 1048576));
    assert_true(filter.rho_total == .7);
    o.clip = 5;
    assert_int_equal(make_plan(&o).K, 5 << 20);
    o.n_tokens = 1 << 20; /* any number of tokens */
    assert_int_equal(make_plan(&o).K, 5 << 20);
}

/* A plain sampler claims nothing. */
TEST(test_plain_plan) {
    dpi_sampler_options o = ink_options(100, 0, 10, 0, 0);
    o.method = DPI_METHOD_PLAIN;
    const dpi_sampler_plan plan = make_plan(&o);
    assert_true(isinf(plan.eta) && isinf(plan.rho_token) && isinf(plan.rho_total));
    assert_int_equal(plan.K, 0);
}
