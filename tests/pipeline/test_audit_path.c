/* Audit F in full, reproducible; and with the system's bits on the built-in model. tests/mutations
 * has the faults that it must catch. */
#include <unistd.h>

#include "dpinfer/audit_path.h"
#include "tests/support/support.h"

static int32_t n_lines;

static void print_result(void *user, const dpi_audit_result *r) {
    (void)user;
    n_lines++;
    print_message("%s %s: %s %.12g in %g..%g, %lld cases, %.2f s%s%s\n", r->audit, r->subject,
                  r->quantity, r->measured, r->min, r->max, (long long)r->n_cases, r->seconds,
                  r->passed ? "" : ": FAILED: ", r->passed ? "" : r->failure);
}

static void run_audits(const dpi_audit_options *options, int32_t n_wanted) {
    int32_t n_failed = -1;
    dpi_error err;
    n_lines = 0;
    assert_ok(dpi_audit_path_run(options, print_result, NULL, &n_failed, &err), &err);
    assert_int_equal(n_failed, 0);
    assert_int_equal(n_lines, n_wanted);
}

static void test_made_model(void **state) {
    (void)state;
    dpi_audit_options o;
    char folder[256];
    uint64_t seed = 77;
    dpi_audit_options_init(&o);
    o.folder = make_dir(folder, sizeof folder);
    o.random = dpi_random_insecure;
    o.random_user = &seed;
#ifdef __SANITIZE_ADDRESS__
    o.effort = .2;
#endif
    run_audits(&o, 26);
    assert_int_equal(rmdir(folder), 0); /* nothing is left in it */
}

static void test_real_model(void **state) {
    (void)state;
    dpi_audit_options o;
    dpi_model *model;
    dpi_error err;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, &err), &err);
    dpi_audit_options_init(&o);
    o.model = model;
    run_audits(&o, 1);
    dpi_model_close(model);
}

static void test_refusals(void **state) {
    (void)state;
    dpi_audit_options o;
    int32_t n_failed = -1;
    dpi_error err;
    dpi_audit_options_init(&o);
    o.folder = "/no/such/folder";
    assert_error(dpi_audit_path_run(&o, print_result, NULL, &n_failed, &err), DPI_STATUS_IO, &err,
                 "/no/such/folder");
    o.effort = 2;
    assert_error(dpi_audit_path_run(&o, print_result, NULL, &n_failed, &err), DPI_STATUS_ARG, &err,
                 "effort is 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_model),
        cmocka_unit_test(test_real_model),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
