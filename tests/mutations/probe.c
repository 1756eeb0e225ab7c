/* probe.c - the program that every mutant is linked into: reduced audits, with the system's random
 * bits and bounds that a sound program never misses. Exit code 0: nothing was noticed; 1: an audit
 * failed, and stdout says which; 2: something else went wrong. */
#include "dpinfer/audit_path.h"
#include "tests/mutations/probe_journal.h"
#include "tests/mutations/probe_ledger.h"
#include "tests/mutations/probe_perturb.h"
#include "tests/mutations/probe_shards.h"
#include "tests/mutations/probe_training.h"
#include "tests/mutations/probe_tuner.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static int32_t n_failed;

static void on_result(void *user, const dpi_audit_result *r) {
    (void)user;
    if (r->passed || n_failed++)
        return;
    printf("AUDIT FAILED: %s | %s | %s (%.6g)\n", r->audit, r->subject, r->failure, r->measured);
}

/* One failure is enough. */
static int32_t cancel(void *user) {
    (void)user;
    return n_failed > 0;
}

static void on_fault(const char *subject, const char *fault) {
    n_failed++;
    printf("AUDIT FAILED: %s | %s\n", subject, fault);
}

/* Both sets of audits. */
static dpi_status run_audits(dpi_audit_options *o, dpi_error *err) {
    char folder[256];
    int32_t n;
    o->folder = make_dir(folder, sizeof folder);
    const char *fault = probe_ledger(o->model, folder);
    if (fault)
        on_fault("ledger | budgets and charges", fault);
    else if ((fault = probe_shards(o->model, folder)))
        on_fault("shards | jobs and merges", fault);
    else if ((fault = probe_journal(folder)))
        on_fault("journal | jobs that go on", fault);
    else if ((fault = probe_training()))
        on_fault("training | epsilon", fault);
    else if ((fault = probe_tuner()))
        on_fault("training | steps", fault);
    else if ((fault = probe_perturb()))
        on_fault("perturbed words | laws", fault);
    if (fault) {
        remove_dir(folder);
        return DPI_STATUS_OK;
    }
    dpi_status status = dpi_audit_path_run(o, on_result, NULL, &n, err);
    remove_dir(folder);
    return status == DPI_STATUS_OK ? dpi_audit_run(o, on_result, NULL, &n, err) : status;
}

int main(void) {
    tiny_spec spec = tiny_default();
    dpi_audit_options o;
    dpi_error err = {0};
    void *image;
    spec.n_vocab = 8000; /* so that the candidates are few */
    dpi_model *model = tiny_open(&spec, 1, &image);
    dpi_audit_options_init(&o);
    o.model = model;
    o.session.n_threads = 2;
    o.effort = .1;
    o.false_alarm = 1e-11;
    o.cancel = cancel;
    dpi_status status = run_audits(&o, &err);
    dpi_model_close(model);
    free(image);
    if (n_failed > 0)
        return 1;
    if (status != DPI_STATUS_OK)
        fprintf(stderr, "%s: %s\n", dpi_status_name((int32_t)status), err.message);
    return status == DPI_STATUS_OK ? 0 : 2;
}
