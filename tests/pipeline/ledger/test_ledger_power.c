/* test_ledger_power.c - a power cut at each write of a charge. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/support/power.h"
#include "tests/support/power_sqlite.h"

/* ---- The test -------------------------------------------------------------------------------- */

/* One charge, with the power cut at the call `at`; *n_before charges are there, and more after it.
 * False: it came to its end before. */
static bool charge_once(const char *path, int at, int64_t *n_before) {
    dpi_ledger *ledger = NULL;
    dpi_error err;
    int64_t n;
    power_cut_at(at);
    dpi_status status = dpi_ledger_open(path, NULL, &ledger, &err);
    if (status == DPI_STATUS_OK)
        status = reserve_rho(ledger, "letters", rho_of(1 << 20), NULL, &err);
    const bool was_cut = power_cut(); /* now, if not before */
    dpi_ledger_close(ledger);
    power_restore();
    power_cut_at(0);
    ledger = open_ledger(path, 0);
    assert_true(sum_charges(ledger, "letters", &n) == n * (1 << 20));
    if (status == DPI_STATUS_OK)
        assert_int_equal(n, *n_before + 1);
    else
        assert_in_range(n, *n_before, *n_before + 1);
    dpi_ledger_close(ledger);
    power_restore(); /* a clean stop: all is synced, or the next start repairs it */
    *n_before = n;
    return was_cut;
}

static void test_power_cut(void **state) {
    (void)state;
    bench b;
    int64_t n = 0;
    int last = 0;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_ledger_close(ledger);
    power_restore();
    for (int round = 0; round < 12; round++) {
        int at = 1;
        while (charge_once(b.path, at, &n))
            at++;
        last = at;
    }
    assert_true(last > 6); /* open, writes, syncs, delete */
    bench_remove(&b);
}

/* A file of form 1 is brought to the present one as a whole, or not at all. */
static void test_power_cut_of_form_1(void **state) {
    (void)state;
    bench b;
    dpi_ledger *ledger;
    int64_t n;
    int n_cuts = 0;
    for (bool was_cut = true; was_cut; n_cuts++) {
        bench_make(&b);
        make_ledger_of_form_1(b.path);
        power_sync_names(NULL); /* the disk has all of it */
        power_restore();
        power_cut_at(n_cuts + 1);
        ledger = NULL;
        (void)!dpi_ledger_open(b.path, NULL, &ledger, NULL);
        was_cut = power_cut();
        dpi_ledger_close(ledger);
        power_restore();
        power_cut_at(0);
        ledger = open_ledger(b.path, 0);
        assert_true(sum_charges(ledger, "letters", &n) == 3221225472);
        dpi_ledger_close(ledger);
        power_restore();
        exec_sql(b.path, "CREATE TEMP TABLE t(right INTEGER CHECK(right = 3));"
                         "INSERT INTO t SELECT COUNT(*) FROM unit WHERE"
                         " (hex(hash) LIKE '0D1F%' AND spent = 3221225472) OR"
                         " (hex(hash) LIKE '30C5%' AND spent = 1073741824) OR"
                         " (hex(hash) LIKE '7539%' AND spent = 2147483648)");
        power_restore();
        bench_remove(&b);
    }
    assert_true(n_cuts > 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_power_cut),
                                       cmocka_unit_test(test_power_cut_of_form_1)};
    power_sqlite();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
