/* audit_run.h - what tests of audits share: a small model, and options that end a run at its first
 * failure, which is enough for a mutant. */
#ifndef DPI_TEST_AUDIT_RUN_H
#define DPI_TEST_AUDIT_RUN_H

#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static int32_t n_lines, n_failed; /* of the current run */
static dpi_model *model;
static void *image;

SETUP {
    tiny_spec spec = tiny_default();
    spec.n_vocab = 8000; /* so that the candidates are few */
    model = tiny_open(&spec, 1, &image);
}

TEARDOWN {
    dpi_model_close(model);
    free(image);
}

static inline void print_result(void *user, const dpi_audit_result *r) {
    (void)user;
    print_message("%s %s: %s %.12g in %g..%g, %lld cases, %.2f s%s%s\n", r->audit, r->subject,
                  r->quantity, r->measured, r->min, r->max, (long long)r->n_cases, r->seconds,
                  r->passed ? "" : ": FAILED: ", r->passed ? "" : r->failure);
    n_lines++;
    n_failed += !r->passed;
}

static inline int32_t cancel(void *user) {
    (void)user;
    return n_failed > 0;
}

/* With the system's bits and a share of the cases. */
static inline dpi_audit_options begin_audit(double effort) {
    dpi_audit_options o;
    dpi_audit_options_init(&o);
    o.model = model;
    o.session.n_threads = 2;
    o.effort = effort;
    o.cancel = cancel;
    n_lines = n_failed = 0;
    return o;
}

static inline void end_audit(dpi_status status) {
    assert_int_equal(n_failed, 0);
    assert_ok(status);
}

#endif
