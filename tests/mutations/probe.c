/* probe.c - the program that every mutant is linked into: reduced audits, with the system's random
 * bits and bounds that a sound program never misses.
 *   mutant [NAME]   NAME: which of `probes` is run first; the others follow in their order
 * Exit code 0: nothing was noticed; 1: an audit failed, and stdout says which; 2: something else
 * went wrong. */
#include "dpinfer/audit_path.h"
#include "dpinfer/audit_training.h"
#include "dpinfer/augpe.h"
#include "tests/mutations/probe_finetune.h"
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

static dpi_status run_path(const dpi_audit_options *o, dpi_error *err) {
    int32_t n;
    return dpi_audit_path_run(o, on_result, NULL, &n, err);
}

static dpi_status run_canaries(const dpi_audit_options *o, dpi_error *err) {
    int32_t n;
    return dpi_audit_training_run(o, on_result, NULL, &n, err);
}

static dpi_status run_evolution(const dpi_audit_options *o, dpi_error *err) {
    int32_t n;
    return dpi_audit_augpe_run(o, on_result, NULL, &n, err);
}

static dpi_status run_methods(const dpi_audit_options *o, dpi_error *err) {
    int32_t n;
    return dpi_audit_run(o, on_result, NULL, &n, err);
}

/* One of `fault` and `audit`. */
typedef struct probe {
    const char *name, *subject;
    const char *(*fault)(const dpi_model *model, const char *folder);
    dpi_status (*audit)(const dpi_audit_options *o, dpi_error *err);
} probe;

/* What takes longest comes last. */
static const probe probes[] = {
    {"ledger", "ledger | budgets and charges", probe_ledger, NULL},
    {"shards", "shards | jobs and merges", probe_shards, NULL},
    {"journal", "journal | jobs that go on", probe_journal, NULL},
    {"perturb", "perturbed words | laws", probe_perturb, NULL},
    {"evolution", NULL, NULL, run_evolution},
    {"path", NULL, NULL, run_path},
    {"tuner", "training | steps", probe_tuner, NULL},
    {"canaries", NULL, NULL, run_canaries},
    {"finetune", "training | records to adapter", probe_finetune, NULL},
    {"training", "training | epsilon", probe_training, NULL},
    {"methods", NULL, NULL, run_methods},
};
enum { N_PROBES = sizeof probes / sizeof *probes };

static dpi_status run(const probe *p, const dpi_audit_options *o, dpi_error *err) {
    if (p->audit)
        return p->audit(o, err);
    const char *fault = p->fault(o->model, o->folder);
    if (fault && n_failed++ == 0)
        printf("AUDIT FAILED: %s | %s\n", p->subject, fault);
    return DPI_STATUS_OK;
}

/* All of them, `first` before the others, until one fails. */
static dpi_status run_all(const probe *first, const dpi_audit_options *o, dpi_error *err) {
    dpi_status status = run(first, o, err);
    for (int i = 0; i < N_PROBES && status == DPI_STATUS_OK && n_failed == 0; i++)
        if (&probes[i] != first)
            status = run(&probes[i], o, err);
    return status;
}

static const probe *find(const char *name) {
    for (int i = 0; i < N_PROBES; i++)
        if (strcmp(probes[i].name, name) == 0)
            return &probes[i];
    return NULL;
}

int main(int argc, char **argv) {
    const probe *first = find(argc > 1 ? argv[1] : probes[0].name);
    if (!first) {
        fprintf(stderr, "no probe has the name %s\n", argv[1]);
        return 2;
    }
    char folder[256];
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
    o.folder = make_dir(folder, sizeof folder);
    dpi_status status = run_all(first, &o, &err);
    remove_dir(folder);
    dpi_model_close(model);
    free(image);
    if (n_failed > 0)
        return 1;
    if (status != DPI_STATUS_OK)
        fprintf(stderr, "%s: %s\n", dpi_status_name((int32_t)status), err.message);
    return status == DPI_STATUS_OK ? 0 : 2;
}
