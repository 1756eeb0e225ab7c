/* test_ledger_power.c - a power cut at each write of a charge. */
#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/support/power.h"

SETUP { power_sqlite(); }
TEARDOWN_EACH { folder_remove(); }

/* One charge, with the power cut at the call `at`; *n_before charges are there, and more after it.
 * False: it came to its end before. */
static bool charge_once(int at, int64_t *n_before) {
    int64_t n;
    power_cut_at(at);
    dpi_status status = open_ledger(path, OPEN, &the_ledger);
    if (status == DPI_STATUS_OK)
        status = reserve(rho_of(1 << 20));
    const bool was_cut = power_cut(); /* now, if not before */
    close_ledger();
    power_restore();
    reopen_ledger();
    const int64_t sum = sum_charges(&n);
    assert_int_equal(sum, n * (1 << 20));
    assert_in_range(n, *n_before + (status == DPI_STATUS_OK), *n_before + 1);
    close_ledger();
    power_restore(); /* a clean stop: all is synced, or the next start repairs it */
    *n_before = n;
    return was_cut;
}

TEST(test_power_cut) {
    int64_t n = 0;
    make_ledger(DPI_SCOPE_DATASET);
    close_ledger();
    power_settle();
    for (int round = 0; round < 12; round++) {
        int at = 1;
        while (charge_once(at, &n))
            at++;
        assert_true(at > 6); /* open, writes, syncs, delete */
    }
}

/* A file of form 1 is brought to the present one as a whole, or not at all. */
TEST(test_power_cut_of_form_1) {
    int64_t n;
    int n_cuts = 0;
    for (bool was_cut = true; was_cut; n_cuts++) {
        make_ledger_of_form_1();
        power_settle();
        power_cut_at(n_cuts + 1);
        (void)!open_ledger(path, OPEN, &the_ledger);
        was_cut = power_cut();
        close_ledger();
        power_restore();
        reopen_ledger();
        assert_int_equal(sum_charges(&n), 3221225472);
        close_ledger();
        power_restore();
        assert_int_equal(read_sql("SELECT COUNT(*) FROM unit WHERE"
                                  " (hex(hash) LIKE '0D1F%' AND spent = 3221225472) OR"
                                  " (hex(hash) LIKE '30C5%' AND spent = 1073741824) OR"
                                  " (hex(hash) LIKE '7539%' AND spent = 2147483648)"),
                         3);
        power_restore();
    }
    assert_true(n_cuts > 6);
}
