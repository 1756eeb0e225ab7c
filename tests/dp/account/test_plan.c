/* test_plan.c - from options to integers: golden vectors, refusals, accountants, adjacencies. */
#include <math.h>

#include "tests/support/support.h"

static void assert_digits(double value, double printed, double relative) {
    if (!(fabs(value / printed - 1) <= relative))
        fail_msg("%.13g, the table has %.13g", value, printed);
}

static void test_golden_vectors(void **state) {
    (void)state;
    static const struct {
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
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double rho, epsilon;
        dpi_error err;
        assert_ok(dpi_zcdp_rho(rows[i].epsilon, 1e-6, &rho, &err), &err);
        dpi_sampler_options o = ink_options(32000, rows[i].B, rows[i].T, rows[i].tau, rho);
        dpi_sampler_plan plan = {.struct_size = sizeof plan};
        assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
        assert_int_equal(plan.a, rows[i].a);
        assert_int_equal(plan.K, rows[i].K);
        assert_digits(plan.clip, rows[i].clip, 2e-9); /* 9 digits are printed */
        assert_digits(plan.eta, rows[i].eta, 4e-12);
        assert_digits(plan.rho_total, rows[i].rho_total, 4e-12);
        assert_true(plan.rho_total <= rho);
        assert_digits(plan.rho_token * rows[i].T, plan.rho_total, 1e-15);
        assert_ok(dpi_zcdp_epsilon(plan.rho_total, 1e-6, &epsilon, &err), &err);
        assert_digits(epsilon, rows[i].epsilon_out, 6e-10);
        assert_true(epsilon <= rows[i].epsilon);
    }
}

static void test_options_are_refused_with_their_range(void **state) {
    (void)state;
    const dpi_sampler_options good = ink_options(100, 4, 10, 1, 1);
    dpi_sampler_options o;
#define REFUSED(field, value, part) \
    (o = good, o.field = (value), assert_refused(&o, DPI_STATUS_ARG, part))
    REFUSED(struct_size, sizeof o - 8, "bytes");
    REFUSED(method, -1, "method is -1");
    REFUSED(method, 99, "method is 99, must be 0..");
    REFUSED(n_vocab, 0, "n_vocab is 0, must be 1..262144");
    REFUSED(n_vocab, (1 << 18) + 1, "must be 1..262144");
    REFUSED(n_ref, 0, "n_ref is 0, must be 1..4096");
    REFUSED(n_ref, 4097, "must be 1..4096");
    REFUSED(n_tokens, 0, "n_tokens is 0, must be 1..1048576");
    REFUSED(n_tokens, (1 << 20) + 1, "must be 1..1048576");
    REFUSED(top_k, -1, "top_k is -1, must be 1..262144, or 0 (all)");
    REFUSED(top_k, 101, "must be 0..100");
    REFUSED(tau, 0, "tau is 0, must be 0.01..100");
    REFUSED(tau, .0099, "must be 0.01..100");
    REFUSED(tau, 100.1, "must be 0.01..100");
    REFUSED(tau, NAN, "must be 0.01..100");
    REFUSED(rho, 0, "rho is 0, must be above 0");
    REFUSED(rho, -1, "rho is -1, must be 0 < x <= 1e+06");
    REFUSED(rho, NAN, "must be 0 < x <= 1e+06");
    REFUSED(rho, INFINITY, "must be 0 < x <= 1e+06");
    o = good;
    o.method = DPI_METHOD_PLAIN;
    assert_refused(&o, DPI_STATUS_ARG, "n_ref is 4, must be 0..0");
    o.n_ref = 0;
    o.tau = -1;
    assert_refused(&o, DPI_STATUS_ARG, "must be 0.01..100, or 0 (the likeliest");
    assert_refused(NULL, DPI_STATUS_ARG, "NULL");

    dpi_error err;
    dpi_sampler_plan plan = {.struct_size = 3};
    assert_error(dpi_sampler_plan_make(&good, &plan, &err), DPI_STATUS_ARG, &err, "3 bytes");
    o = ink_options(100, 1, 1 << 20, .01, 1e-12);
    plan.struct_size = sizeof plan;
    assert_error(dpi_sampler_plan_make(&o, &plan, &err), DPI_STATUS_BUDGET, &err, "rho 1e-12");
    assert_int_equal(dpi_sampler_plan_make(&o, &plan, NULL), DPI_STATUS_BUDGET);
}

/* ---- Accountants, adjacencies, secret assignment --------------------------------------------- */

static dpi_sampler_plan make_plan(const dpi_sampler_options *o) {
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    dpi_error err;
    assert_ok(dpi_sampler_plan_make(o, &plan, &err), &err);
    return plan;
}

static void assert_unsupported(const dpi_sampler_options *o, const char *part) {
    dpi_error err;
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    assert_error(dpi_sampler_plan_make(o, &plan, &err), DPI_STATUS_UNSUPPORTED, &err, part);
}

static void test_budgets_are_refused_with_the_reason(void **state) {
    (void)state;
    const dpi_sampler_options good = ink_options(100, 4, 10, 1, 1);
    dpi_sampler_options with_epsilon = good, o;
    with_epsilon.rho = 0;
    with_epsilon.epsilon = 2;
    with_epsilon.delta = 1e-6;
    make_plan(&with_epsilon);
    REFUSED(epsilon, 1, "rho is 1 and epsilon 1");
    REFUSED(delta, 1, "delta is 1, must be above 0 and below 1");
    REFUSED(delta, -1, "delta is -1");
    REFUSED(accountant, 3, "accountant is 3, must be 0..2");
    REFUSED(adjacency, 3, "adjacency is 3, must be 0..2");
    REFUSED(center, 2, "center is 2, must be 0..1");
    REFUSED(denominator, 4097, "denominator is 4097, must be 1..4096");
    REFUSED(denominator, -1, "denominator is -1");
    REFUSED(clip, 1, "clip is 1: only the accountant filter");
    REFUSED(subsample, 1.5, "subsample is 1.5");
    REFUSED(adjacency, DPI_ADJACENCY_ADD_REMOVE, "denominator is 0: with add/remove");
    o = good;
    o.accountant = DPI_ACCOUNTANT_BR;
    assert_unsupported(&o, "a budget of rho with exact composition");
    o = good;
    o.subsample = .5;
    assert_unsupported(&o, "a budget of rho with secret assignment");
    o = with_epsilon;
    o.delta = 0;
    assert_refused(&o, DPI_STATUS_ARG, "delta is 0");
    o = with_epsilon;
    o.subsample = .5;
    o.adjacency = DPI_ADJACENCY_ZERO_OUT;
    o.denominator = 4;
    assert_unsupported(&o, "a zeroed record that joins a batch still moves it");
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.n_ref = 123456789;
    dpi_error err;
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    assert_error(dpi_sampler_plan_make(&o, &plan, &err), DPI_STATUS_ARG, &err, "n_ref must be 0..");
    assert_null(strstr(err.message, "123456789")); /* it is private */
    o = good;
    o.accountant = DPI_ACCOUNTANT_FILTER;
    o.clip = 2048;
    assert_refused(&o, DPI_STATUS_ARG, "clip is 2048, must be 0 < x <= 2047");
    o.clip = NAN;
    assert_refused(&o, DPI_STATUS_ARG, "clip is nan");
    o.clip = 1e-7;
    assert_error(dpi_sampler_plan_make(&o, &plan, &err), DPI_STATUS_BUDGET, &err, "no clip range");
}
#undef REFUSED

/* The same budget either way, and what comes out is within it. */
static void test_budget_of_epsilon(void **state) {
    (void)state;
    uint64_t seed = 25;
    for (int i = 0; i < 200; i++) {
        dpi_sampler_options o = ink_options(100, 1 + random_below(&seed, 30), 300, 1.1, 0);
        o.epsilon = exp(4 * random_uniform(&seed) - 1);
        o.delta = 1e-6;
        dpi_sampler_plan by_epsilon = make_plan(&o);
        double rho, epsilon;
        assert_ok(dpi_zcdp_rho(o.epsilon, o.delta, &rho, NULL), NULL);
        assert_true(by_epsilon.rho_budget == rho);
        assert_true(by_epsilon.epsilon <= o.epsilon && by_epsilon.delta == o.delta);
        assert_ok(dpi_zcdp_epsilon(by_epsilon.rho_total, o.delta, &epsilon, NULL), NULL);
        assert_true(by_epsilon.epsilon == epsilon || by_epsilon.epsilon == o.epsilon);
        o.rho = rho;
        o.epsilon = 0;
        dpi_sampler_plan by_rho = make_plan(&o);
        assert_int_equal(by_rho.K, by_epsilon.K);
        assert_true(by_rho.epsilon == epsilon);
        o.delta = 0;
        assert_true(make_plan(&o).epsilon == 0);
    }
}

/* docs/spec.md section 1: zero-out has twice the range; the denominator, not the slots, is B. */
static void test_adjacencies(void **state) {
    (void)state;
    dpi_sampler_options o = ink_options(100, 7, 500, 1.1, 1.539);
    const dpi_sampler_plan null = make_plan(&o);
    o.adjacency = DPI_ADJACENCY_ZERO_OUT;
    const dpi_sampler_plan zero = make_plan(&o);
    assert_digits(zero.clip, null.clip / 2, 1e-15);
    assert_true(llabs(2 * zero.K - null.K) <= 1);
    assert_digits(zero.eta, null.eta, 1e-5);
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.denominator = 7;
    for (o.n_ref = 0; o.n_ref <= 1 << 20; o.n_ref = 3 * o.n_ref + 1) {
        const dpi_sampler_plan any = make_plan(&o); /* whatever the batch holds */
        assert_int_equal(any.K, null.K);
        assert_int_equal(any.a, null.a);
        assert_true(any.eta == null.eta && any.rho_total == null.rho_total);
    }
}

/* docs/spec.md 4.4: gains in C at epsilon 1, delta 1e-6. */
static void test_gain_of_secret_assignment(void **state) {
    (void)state;
    static const double rows[3][2] = {{.1, 2.94}, {.01, 5.41}, {.001, 8.24}};
    dpi_sampler_options o = ink_options(100, 8, 100, 1, 0);
    o.epsilon = 1;
    o.delta = 1e-6;
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
static void test_exact_composition_in_the_plan(void **state) {
    (void)state;
    dpi_sampler_options o = ink_options(100, 8, 20, 1, 0);
    o.epsilon = 3;
    o.delta = 1e-6;
    const dpi_sampler_plan zcdp = make_plan(&o);
    o.accountant = DPI_ACCOUNTANT_BR;
    const dpi_sampler_plan br = make_plan(&o);
    double delta, eta = br.eta;
    assert_true(br.K > zcdp.K && br.rho_budget == 0);
    assert_ok(dpi_br_delta(eta, 20, 3, &delta, NULL), NULL);
    assert_true(delta <= 1e-6);
    eta *= 1 + 2. / (double)br.K;
    assert_ok(dpi_br_delta(eta, 20, 3, &delta, NULL), NULL);
    assert_true(delta > 1e-6);
    assert_true(br.epsilon <= 3 && br.epsilon > 2.99999);
    assert_ok(dpi_br_delta(br.eta, 20, br.epsilon, &delta, NULL), NULL);
    assert_true(delta <= 1e-6);
}

static void test_filter_plan(void **state) {
    (void)state;
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
static void test_plain_plan(void **state) {
    (void)state;
    dpi_sampler_options o = ink_options(100, 0, 10, 0, 0);
    o.method = DPI_METHOD_PLAIN;
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    assert_ok(dpi_sampler_plan_make(&o, &plan, NULL), NULL);
    assert_true(isinf(plan.eta) && isinf(plan.rho_token) && isinf(plan.rho_total));
    assert_int_equal(plan.K, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_vectors),
        cmocka_unit_test(test_options_are_refused_with_their_range),
        cmocka_unit_test(test_budgets_are_refused_with_the_reason),
        cmocka_unit_test(test_budget_of_epsilon),
        cmocka_unit_test(test_adjacencies),
        cmocka_unit_test(test_gain_of_secret_assignment),
        cmocka_unit_test(test_exact_composition_in_the_plan),
        cmocka_unit_test(test_filter_plan),
        cmocka_unit_test(test_plain_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
