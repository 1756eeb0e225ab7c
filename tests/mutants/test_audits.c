/* test_audits.c - the audits of whole runs, reduced, with the system's bits; scripts/mutants runs
 * them with a fault in the program. One failure is enough. */
#include "dpinfer/audit_path.h"
#include "dpinfer/audit_training.h"
#include "dpinfer/augpe.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static int32_t n_failed;
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

static void on_result(void *user, const dpi_audit_result *r) {
    (void)user;
    if (!r->passed && n_failed++ == 0)
        print_error("%s | %s | %s (%.6g)\n", r->audit, r->subject, r->failure, r->measured);
}

static int32_t cancel(void *user) {
    (void)user;
    return n_failed > 0;
}

static void hold(dpi_status (*run)(const dpi_audit_options *, dpi_audit_fn, void *, int32_t *,
                                   dpi_error *)) {
    char folder[256];
    int32_t n;
    dpi_audit_options o;
    dpi_audit_options_init(&o);
    o.model = model;
    o.session.n_threads = 2;
    o.effort = .1;
    o.cancel = cancel;
    o.folder = make_dir(folder, sizeof folder);
    n_failed = 0;
    const dpi_status status = run(&o, on_result, NULL, &n, ERR);
    remove_dir(folder);
    assert_int_equal(n_failed, 0);
    assert_ok(status);
}

TEST(path) { hold(dpi_audit_path_run); }
TEST(evolution) { hold(dpi_audit_augpe_run); }
TEST(canaries) { hold(dpi_audit_training_run); }
