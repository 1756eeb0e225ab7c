/* test_ledger_power.c - a power cut at each write of a charge. A layer below SQLite keeps what the
 * disk really has (power.h). */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/support/power.h"

static sqlite3_vfs *below;

/* ---- The layer ------------------------------------------------------------------------------- */

typedef struct layer_file {
    sqlite3_file base;
    power_file *known;
    bool is_journal;
    sqlite3_file *real;
} layer_file;

#define REAL(file) (((layer_file *)(file))->real)
#define PASS(file, method, ...) REAL(file)->pMethods->method(REAL(file), ##__VA_ARGS__)

static int layer_close(sqlite3_file *f) { return PASS(f, xClose); }
static int layer_read(sqlite3_file *f, void *data, int n, sqlite3_int64 at) {
    return PASS(f, xRead, data, n, at);
}

static int layer_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at) {
    bool last;
    const bool powered = power_call(&last);
    if (powered || last)
        power_write(((layer_file *)f)->known, (size_t)at, data, (size_t)n);
    return powered ? PASS(f, xWrite, data, n, at) : SQLITE_IOERR_WRITE;
}

static int layer_truncate(sqlite3_file *f, sqlite3_int64 size) {
    if (!power_call(NULL))
        return SQLITE_IOERR_TRUNCATE;
    power_write(((layer_file *)f)->known, (size_t)size, NULL, 0);
    return PASS(f, xTruncate, size);
}

static int layer_sync(sqlite3_file *file, int flags) {
    const layer_file *f = (layer_file *)file;
    (void)flags;
    if (!power_call(NULL))
        return SQLITE_IOERR_FSYNC;
    power_sync(f->known);
    if (f->is_journal) /* SQLite syncs the folder of a new journal with it */
        power_sync_name(f->known);
    return SQLITE_OK;
}

static int layer_size(sqlite3_file *f, sqlite3_int64 *size) { return PASS(f, xFileSize, size); }
static int layer_lock(sqlite3_file *f, int level) { return PASS(f, xLock, level); }
static int layer_unlock(sqlite3_file *f, int level) { return PASS(f, xUnlock, level); }
static int layer_reserved(sqlite3_file *f, int *found) {
    return PASS(f, xCheckReservedLock, found);
}
static int layer_control(sqlite3_file *f, int op, void *arg) {
    return PASS(f, xFileControl, op, arg);
}
static int layer_sector(sqlite3_file *f) { return PASS(f, xSectorSize); }
static int layer_traits(sqlite3_file *f) { return PASS(f, xDeviceCharacteristics); }

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = layer_close,
    .xRead = layer_read,
    .xWrite = layer_write,
    .xTruncate = layer_truncate,
    .xSync = layer_sync,
    .xFileSize = layer_size,
    .xLock = layer_lock,
    .xUnlock = layer_unlock,
    .xCheckReservedLock = layer_reserved,
    .xFileControl = layer_control,
    .xSectorSize = layer_sector,
    .xDeviceCharacteristics = layer_traits,
};

static int layer_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                      int *out) {
    layer_file *f = (layer_file *)file;
    (void)vfs;
    f->base.pMethods = NULL;
    if ((flags & SQLITE_OPEN_CREATE) && !power_call(NULL))
        return SQLITE_CANTOPEN;
    f->known = power_find(name);
    power_name(f->known, true);
    f->is_journal = flags & SQLITE_OPEN_MAIN_JOURNAL;
    f->real = (sqlite3_file *)&f[1];
    const int code = below->xOpen(below, name, f->real, flags, out);
    if (code == SQLITE_OK)
        f->base.pMethods = &methods;
    return code;
}

static int layer_delete(sqlite3_vfs *vfs, const char *name, int sync_folder) {
    power_file *f = power_find(name);
    (void)vfs;
    if (!power_call(NULL))
        return SQLITE_IOERR_DELETE;
    power_name(f, false);
    if (sync_folder)
        power_sync_name(f);
    return below->xDelete(below, name, 0);
}

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
        power_sync_names(); /* the disk has all of it */
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
    below = sqlite3_vfs_find(NULL);
    sqlite3_vfs layer = *below;
    layer.zName = "power";
    layer.szOsFile = (int)sizeof(layer_file) + below->szOsFile;
    layer.xOpen = layer_open;
    layer.xDelete = layer_delete;
    if (sqlite3_vfs_register(&layer, 1) != SQLITE_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
