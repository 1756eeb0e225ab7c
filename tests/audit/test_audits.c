/* test_audits.c - the audits of whole runs, reduced, with the system's bits; scripts/mutants runs
 * them with a fault in the program. */
#include "audit/lines.h"
#include "tests/audit/audit_run.h"

static void hold(dpi_status (*audit)(dpi_audit *)) {
    char folder[256];
    int32_t n;
    dpi_audit_options o = begin_audit(.1);
    o.folder = make_dir(folder, sizeof folder);
    const dpi_status status = dpi_audit_all(&o, &audit, 1, print_result, NULL, &n, ERR);
    remove_dir(folder);
    end_audit(status);
}

TEST(counts) { hold(dpi_audit_counts); }
TEST(path) { hold(dpi_audit_path); }
TEST(evolution) { hold(dpi_audit_evolution); }
TEST(canaries) { hold(dpi_audit_canaries); }
