/* Counts with noise: budgets against the formulas, the charge, and what a failure leaves. Audit F
 * (audit_counts.c) has the law of the noise; it runs here too. */
#include <math.h>

#include "dpinfer/counts.h"
#include "pipeline/release/audit_path.h"
#include "tests/support/support.h"

static dpi_counts_options options_of(double epsilon, double delta, int32_t n_groups) {
    dpi_counts_options o;
    dpi_counts_options_init(&o);
    o.epsilon = epsilon;
    o.delta = delta;
    o.n_groups = n_groups;
    return o;
}

/* rho is that of the budget, but for the grid of variances; the noise has the variance that
 * n_groups / (2 rho) says. */
static void test_budget(void **state) {
    (void)state;
    for (int32_t n = 1; n <= 64; n *= 4)
        for (double epsilon = .5; epsilon < 9; epsilon *= 2) {
            const dpi_counts_options o = options_of(epsilon, 1e-6, n);
            dpi_counts_info info;
            dpi_counts *c;
            double rho;
            dpi_error err;
            dpi_counts_info_init(&info);
            assert_ok(dpi_zcdp_rho(epsilon, 1e-6, &rho, &err), &err);
            assert_ok(dpi_counts_open(&o, &c, &err), &err);
            dpi_counts_info_get(c, &info);
            assert_true(info.rho <= rho && info.rho > rho * .98);
            assert_true(info.epsilon <= epsilon && info.epsilon > epsilon * .98);
            assert_true(fabs(info.deviation * info.deviation * 2 * info.rho / n - 1) < 1e-9);
            assert_true(info.n_left == n && info.charge.id == 0);
            dpi_counts_close(c);
        }
}

static void test_refusals(void **state) {
    (void)state;
    dpi_counts *c;
    dpi_error err;
    dpi_counts_options o = options_of(1, 1e-6, 0);
    assert_error(dpi_counts_open(&o, &c, &err), DPI_STATUS_ARG, &err, "allowed 1..64");
    o = options_of(1, 1e-6, 65);
    assert_error(dpi_counts_open(&o, &c, &err), DPI_STATUS_ARG, &err, "allowed 1..64");
    o = options_of(1, 0, 1);
    assert_error(dpi_counts_open(&o, &c, &err), DPI_STATUS_ARG, &err, "delta");
    o = options_of(1e-9, 1e-6, 1);
    assert_error(dpi_counts_open(&o, &c, &err), DPI_STATUS_ARG, &err, "too small");
    o.struct_size = 1;
    assert_error(dpi_counts_open(&o, &c, &err), DPI_STATUS_ARG, &err, "options");
    assert_null(c);
}

/* Bits that fail: nothing of the counts is left, and the group is spent. */
static void test_failure(void **state) {
    (void)state;
    dpi_counts_options o = options_of(1, 1e-6, 2);
    limited_source bits = {.seed = 1, .n = 40};
    int64_t cells[200];
    dpi_counts_info info;
    dpi_counts *c;
    dpi_error err;
    o.random = limited_bits;
    o.random_user = &bits;
    dpi_counts_info_init(&info);
    assert_ok(dpi_counts_open(&o, &c, &err), &err);
    for (int i = 0; i < 200; i++)
        cells[i] = 1000;
    assert_int_equal(dpi_counts_release(c, cells, 200, &err), DPI_STATUS_ENTROPY);
    for (int i = 0; i < 200; i++)
        assert_true(cells[i] == 0);
    dpi_counts_info_get(c, &info);
    assert_int_equal(info.n_left, 1);
    assert_error(dpi_counts_release(c, cells, 0, &err), DPI_STATUS_ARG, &err, "1 or more");
    dpi_counts_close(c);
}

static void note(void *user, const dpi_audit_result *result) {
    (void)user;
    if (!result->passed)
        fail_msg("%s: %s, %g of %g..%g", result->subject, result->failure ? result->failure : "",
                 result->measured, result->min, result->max);
}

static void test_audit(void **state) {
    (void)state;
    static dpi_status (*const audits[])(dpi_audit *) = {dpi_path_audit_counts};
    char folder[64];
    int32_t n_failed;
    dpi_audit_options o;
    dpi_error err;
    dpi_audit_options_init(&o);
    o.folder = make_dir(folder, sizeof folder);
    o.false_alarm = 1e-11; /* the draws come from the system */
    assert_ok(dpi_audit_all(&o, audits, 1, note, NULL, &n_failed, &err), &err);
    assert_int_equal(n_failed, 0);
    remove_dir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_audit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
