/* Releases and counts in full, reproducible; and with the system's bits on the built-in model.
 * tests/mutants.table has the faults that these audits must catch. */
#include <unistd.h>

#include "audit/lines.h"
#include "tests/support/support.h"

static int32_t n_lines;

static void print_result(void *user, const dpi_audit_result *r) {
    (void)user;
    n_lines++;
    print_message("%s %s: %s %.12g in %g..%g, %lld cases, %.2f s%s%s\n", r->audit, r->subject,
                  r->quantity, r->measured, r->min, r->max, (long long)r->n_cases, r->seconds,
                  r->passed ? "" : ": FAILED: ", r->passed ? "" : r->failure);
}

static dpi_status run(const dpi_audit_options *options, int32_t *n_failed) {
    static dpi_status (*const audits[])(dpi_audit *) = {dpi_audit_counts, dpi_audit_path};
    return dpi_audit_all(options, audits, 2, print_result, NULL, n_failed, ERR);
}

static void run_audits(const dpi_audit_options *options, int32_t n_wanted) {
    int32_t n_failed = -1;
    n_lines = 0;
    assert_ok(run(options, &n_failed));
    assert_int_equal(n_failed, 0);
    assert_int_equal(n_lines, n_wanted);
}

TEST(test_made_model) {
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

TEST(test_real_model) {
    dpi_audit_options o;
    dpi_model *model;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR));
    dpi_audit_options_init(&o);
    o.model = model;
    run_audits(&o, 1);
    dpi_model_close(model);
}

TEST(test_refusals) {
    dpi_audit_options o;
    int32_t n_failed = -1;
    dpi_audit_options_init(&o);
    o.folder = "/no/such/folder";
    assert_error(run(&o, &n_failed), IO, "/no/such/folder");
    o.effort = 2;
    assert_error(run(&o, &n_failed), ARG, "effort is 2");
}
