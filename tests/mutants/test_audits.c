/* test_audits.c - the audits of whole runs, reduced, with the system's bits; scripts/mutants runs
 * them with a fault in the program. */
#include "dpinfer/audit_path.h"
#include "dpinfer/audit_training.h"
#include "dpinfer/augpe.h"
#include "tests/support/audit_run.h"

static void hold(dpi_status (*run)(const dpi_audit_options *, dpi_audit_fn, void *, int32_t *,
                                   dpi_error *)) {
    char folder[256];
    int32_t n;
    dpi_audit_options o = begin_audit(.1);
    o.folder = make_dir(folder, sizeof folder);
    const dpi_status status = run(&o, print_result, NULL, &n, ERR);
    remove_dir(folder);
    end_audit(status);
}

TEST(path) { hold(dpi_audit_path_run); }
TEST(evolution) { hold(dpi_audit_augpe_run); }
TEST(canaries) { hold(dpi_audit_training_run); }
