/* test_audits.c - the audits of whole runs, reduced, with the system's bits: for scripts/mutants,
 * which runs them with a fault in the program (tests/tools/audit.sh runs them without one). Counts
 * and releases with a seed, and with three times as many cases, and on the built-in model. */
#include <unistd.h>

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

static dpi_status (*const in_full[])(dpi_audit *) = {dpi_audit_counts, dpi_audit_path};

TEST(test_seeded) {
    char folder[256];
    uint64_t seed = 77;
    int32_t n;
    dpi_audit_options o = begin_audit(.3);
    o.model = NULL;
    o.folder = make_dir(folder, sizeof folder);
    o.random = dpi_random_insecure, o.random_user = &seed;
    end_audit(dpi_audit_all(&o, in_full, 2, print_result, NULL, &n, ERR));
    assert_int_equal(n_lines, 32);
    assert_int_equal(rmdir(folder), 0); /* nothing is left in it */
}

TEST(test_builtin_model) {
    int32_t n;
    dpi_model *builtin;
    dpi_audit_options o = begin_audit(1);
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &builtin, ERR));
    o.model = builtin;
    end_audit(dpi_audit_all(&o, in_full, 2, print_result, NULL, &n, ERR));
    assert_int_equal(n_lines, 1);
    dpi_model_close(builtin);
}

TEST(test_no_folder) {
    int32_t n;
    dpi_audit_options o = begin_audit(1);
    o.folder = "/no/such/folder";
    assert_error(dpi_audit_all(&o, in_full, 2, print_result, NULL, &n, ERR), IO, o.folder);
}
