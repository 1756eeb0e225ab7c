/* test_audit.c - the audits of docs/spec.md section 5, reproducible and with the system's bits; and
 * whether they would notice. (tests/mutations has the faults that they must catch.) */
#include "dp/audit/audit.h"

#include <math.h>

#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static void print_result(void *user, const dpi_audit_result *r) {
    (void)user;
    print_message("%s %s: %s %.12g in %g..%g, %lld cases, %.2f s%s%s\n", r->audit, r->subject,
                  r->quantity, r->measured, r->min, r->max, (long long)r->n_cases, r->seconds,
                  r->passed ? "" : ": FAILED: ", r->passed ? "" : r->failure);
}

static void run_audits(const dpi_audit_options *options) {
    int32_t n_failed = -1;
    dpi_error err;
    assert_ok(dpi_audit_run(options, print_result, NULL, &n_failed, &err), &err);
    assert_int_equal(n_failed, 0);
}

/* Every audit in full, but where sanitizers make it slow. */
static void test_reproducible(void **state) {
    (void)state;
    dpi_audit_options o;
    tiny_spec spec = tiny_default();
    uint64_t seed = 1000;
    void *image;
    spec.n_vocab = 8000; /* so that the candidates are few */
    dpi_model *model = tiny_open(&spec, 1, &image);
    dpi_audit_options_init(&o);
#ifdef __SANITIZE_ADDRESS__
    o.effort = .1;
#endif
    o.model = model;
    o.session.n_threads = 2;
    o.random = dpi_random_insecure;
    o.random_user = &seed;
    run_audits(&o);
    dpi_model_close(model);
    free(image);
}

/* As a user runs it, but with bounds that no machine will ever meet by chance. */
static void test_system_bits(void **state) {
    (void)state;
    dpi_audit_options o;
    dpi_audit_options_init(&o);
    o.effort = .2;
    o.false_alarm = 1e-11;
    run_audits(&o);
}

/* ---- Power ---------------------------------------------------------------------------------- */

static void keep_result(void *user, const dpi_audit_result *r) { *(dpi_audit_result *)user = *r; }

/* Chance of k heads or more of 8, by counting. */
static double heads(double p, int k) {
    static const double choose[] = {1, 8, 28, 56, 70, 56, 28, 8, 1};
    double sum = 0;
    for (; k <= 8; k++)
        sum += choose[k] * pow(p, k) * pow(1 - p, 8 - k);
    return sum;
}

/* A sampler whose sensitivity is wrong by a factor. The likelihood ratio speaks for the record from
 * 5 wanted tokens of 8 on, which have probability 1 / (1 + e^-eta) against 1/2. */
static void test_game_notices(void **state) {
    (void)state;
    static const double factors[] = {1, 1.25, 1.5, 2};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        uint64_t seed = 7 + i;
        dpi_audit_result result = {0};
        dpi_error err;
        dpi_audit a = {.on_result = keep_result, .user = &result, .err = &err};
        dpi_audit_options_init(&a.options);
        a.options.random = dpi_random_insecure;
        a.options.random_user = &seed;
        assert_ok(dpi_audit_play(&a, .5 * factors[i], .5), &err);
        const double tpr = heads(1 / (1 + exp(-.5 * factors[i])), 5), fpr = heads(.5, 5);
        const double deviation = sqrt((tpr * (1 - tpr) + fpr * (1 - fpr)) / 20000);
        const double margin = 3.719 * (sqrt(tpr * (1 - tpr)) + sqrt(fpr * (1 - fpr))) / sqrt(20000);
        print_message("factor %g: lower bound %.4f, allowed %.4f\n", factors[i], result.measured,
                      result.max);
        assert_true(fabs(result.measured - (tpr - fpr - margin)) < 4 * deviation);
        /* No less than this attack gains, no more than docs/spec.md's discretisation. */
        assert_true(result.max > heads(1 / (1 + exp(-.5)), 5) - fpr && result.max < .2872);
        assert_int_equal(result.passed, factors[i] == 1);
    }
}

/* ---- Statistics ----------------------------------------------------------------------------- */

static void test_chi_square_tail(void **state) {
    (void)state;
    /* From tables: the 95 % and 99.9 % points. */
    assert_true(fabs(dpi_chi_square_tail(24.9958, 15) - .05) < 1e-5);
    assert_true(fabs(dpi_chi_square_tail(37.6973, 15) - .001) < 1e-6);
    assert_true(fabs(dpi_chi_square_tail(18.3070, 10) - .05) < 1e-5);
    assert_true(fabs(dpi_chi_square_tail(82.5287, 63) - .05) < 1e-5);
}

static void test_binomial_bounds(void **state) {
    (void)state;
    assert_true(fabs(dpi_binomial_tail(10, 8, .5) - 56 / 1024.) < 1e-12);
    assert_true(fabs(dpi_binomial_tail(3, 1, .2) - .488) < 1e-12);
    /* Closed forms at the ends: alpha^(1/n), 1 - (1 - alpha)^(1/n). */
    assert_true(fabs(dpi_binomial_lower(10, 10, .025) - pow(.025, .1)) < 1e-9);
    assert_true(fabs(dpi_binomial_lower(10, 1, .025) - (1 - pow(.975, .1))) < 1e-9);
    assert_true(fabs(dpi_binomial_upper(10, 0, .025) - (1 - pow(.025, .1))) < 1e-9);
    assert_true(dpi_binomial_lower(10, 0, .025) < 1e-9);
    /* Clopper and Pearson's 95 % interval for 5 of 20, from tables: .0866..0.4910. */
    assert_true(fabs(dpi_binomial_lower(20, 5, .025) - .0866) < 5e-5);
    /* By a second program after Steinke, Nasr and Jagielski 2023, appendix D. */
    static const struct {
        int32_t m, r, v;
        double delta, alpha, epsilon;
    } guesses[] = {{1000, 400, 400, 1e-10, 1e-4, 3.759586791},
                   {1000, 100, 100, 1e-5, .05, 3.465376348},
                   {1000, 1000, 700, 0, .05, .732010862},
                   {500, 200, 180, 1e-5, .01, 1.653762434},
                   {100, 50, 26, 0, .05, 0},
                   {2000, 300, 260, 1e-6, 1e-3, 1.357138425}};
    for (size_t i = 0; i < sizeof guesses / sizeof guesses[0]; i++)
        assert_true(fabs(dpi_canary_epsilon(guesses[i].m, guesses[i].r, guesses[i].v,
                                            guesses[i].delta, guesses[i].alpha) -
                         guesses[i].epsilon) < 1e-7);
    assert_true(fabs(dpi_binomial_upper(20, 5, .025) - .4910) < 5e-5);
}

/* The bits of a token draw it, and one less the token before. */
static void test_bits(void **state) {
    (void)state;
    uint64_t seed = 9;
    for (int round = 0; round < 300; round++) {
        dpi_u128 weights[20];
        uint64_t bits[DPI_DRAW_WORDS];
        for (int i = 0; i < 20; i++)
            weights[i] = ((dpi_u128)random_u64(&seed) << 45 >> random_below(&seed, 69)) + 1;
        for (size_t i = 0; i < 20; i++) {
            dpi_audit_bits(weights, 20, i, bits);
            assert_int_equal(dpi_weights_draw(weights, 20, bits), i);
        }
    }
}

/* ---- Options --------------------------------------------------------------------------------- */

static int32_t always(void *user) {
    (void)user;
    return 1;
}

static void test_options_are_refused(void **state) {
    (void)state;
    dpi_audit_options o;
    int32_t n_failed = -1;
    dpi_error err;
    dpi_audit_options_init(&o);
    o.effort = 0;
    assert_error(dpi_audit_run(&o, print_result, NULL, &n_failed, &err), DPI_STATUS_ARG, &err,
                 "effort is 0, must be in .1..1");
    o.effort = NAN;
    assert_error(dpi_audit_run(&o, print_result, NULL, &n_failed, &err), DPI_STATUS_ARG, &err,
                 "effort is nan");
    dpi_audit_options_init(&o);
    o.false_alarm = .5;
    assert_error(dpi_audit_run(&o, print_result, NULL, &n_failed, &err), DPI_STATUS_ARG, &err,
                 "false_alarm is 0.5, must be 1e-12..0.01");
    o.struct_size = 3;
    assert_error(dpi_audit_run(&o, print_result, NULL, &n_failed, &err), DPI_STATUS_ARG, &err,
                 "audit options of 3 bytes");
    dpi_audit_options_init(&o);
    assert_error(dpi_audit_run(&o, NULL, NULL, &n_failed, &err), DPI_STATUS_ARG, &err, "NULL");
    assert_int_equal(n_failed, -1);
    o.cancel = always;
    assert_error(dpi_audit_run(&o, print_result, NULL, &n_failed, &err), DPI_STATUS_CANCELLED, &err,
                 "between audits");
    assert_int_equal(n_failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chi_square_tail),
        cmocka_unit_test(test_binomial_bounds),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_reproducible),
        cmocka_unit_test(test_system_bits),
        cmocka_unit_test(test_game_notices),
        cmocka_unit_test(test_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
