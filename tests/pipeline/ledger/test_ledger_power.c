/* test_ledger_power.c - a power cut at each write of a charge. A layer below SQLite keeps what the
 * disk really has: writes since the last sync arrive by chance, in pieces of 512 bytes, and so do
 * entries of the folder since its last sync. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/pipeline/ledger/ledger_support.h"

enum { FILES_MAX = 8, WRITES_MAX = 256, FILE_BYTES = 1 << 18, SECTOR = 512 };

typedef struct pending {
    size_t at, n; /* n 0: cut to `at` bytes */
    char *data;
} pending;

/* What is known of one file. */
typedef struct disk_file {
    char path[512];
    char durable[FILE_BYTES];
    size_t n_durable;
    bool entry_durable, entry_now; /* the folder has the name: on the disk, now */
    bool is_journal;
    pending writes[WRITES_MAX];
    int n_writes;
} disk_file;

static disk_file *disk; /* [FILES_MAX] */
static int n_files, n_calls, cut_at;
static bool dead;
static uint64_t chance = 1;
static sqlite3_vfs *below;

/* Counts calls that change the disk. False: the power is off. */
static bool powered(void) {
    if (++n_calls == cut_at)
        dead = true;
    return !dead;
}

static void apply(disk_file *f, const pending *w) {
    if (w->n == 0) {
        f->n_durable = w->at < f->n_durable ? w->at : f->n_durable;
        return;
    }
    assert_true(w->at + w->n <= FILE_BYTES);
    memcpy(f->durable + w->at, w->data, w->n);
    if (w->at + w->n > f->n_durable)
        f->n_durable = w->at + w->n;
}

static void forget_writes(disk_file *f) {
    for (int i = 0; i < f->n_writes; i++)
        free(f->writes[i].data);
    f->n_writes = 0;
}

static disk_file *find(const char *path) {
    for (int i = 0; i < n_files; i++)
        if (strcmp(disk[i].path, path) == 0)
            return &disk[i];
    assert_true(n_files < FILES_MAX);
    disk_file *f = &disk[n_files++];
    *f = (disk_file){.n_writes = 0};
    snprintf(f->path, sizeof f->path, "%s", path);
    FILE *file = fopen(path, "rb");
    if (file) {
        f->n_durable = fread(f->durable, 1, FILE_BYTES, file);
        f->entry_durable = f->entry_now = true;
        fclose(file);
    }
    return f;
}

/* ---- The layer ---------------------------------------------------------------------------------
 */

typedef struct layer_file {
    sqlite3_file base;
    disk_file *known;
    sqlite3_file *real;
} layer_file;

#define REAL(file) (((layer_file *)(file))->real)
#define PASS(file, method, ...) REAL(file)->pMethods->method(REAL(file), ##__VA_ARGS__)

static int layer_close(sqlite3_file *f) { return PASS(f, xClose); }
static int layer_read(sqlite3_file *f, void *data, int n, sqlite3_int64 at) {
    return PASS(f, xRead, data, n, at);
}

static void note(disk_file *f, size_t at, const void *data, size_t n) {
    assert_true(f->n_writes < WRITES_MAX);
    pending *w = &f->writes[f->n_writes++];
    *w = (pending){.at = at, .n = n, .data = n ? malloc(n) : NULL};
    if (n)
        memcpy(w->data, data, n);
}

static int layer_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at) {
    if (!powered() && n_calls != cut_at)
        return SQLITE_IOERR_WRITE;
    note(((layer_file *)f)->known, (size_t)at, data, (size_t)n);
    return dead ? SQLITE_IOERR_WRITE : PASS(f, xWrite, data, n, at);
}

static int layer_truncate(sqlite3_file *f, sqlite3_int64 size) {
    if (!powered())
        return SQLITE_IOERR_TRUNCATE;
    note(((layer_file *)f)->known, (size_t)size, NULL, 0);
    return PASS(f, xTruncate, size);
}

static int layer_sync(sqlite3_file *file, int flags) {
    disk_file *f = ((layer_file *)file)->known;
    (void)flags;
    if (!powered())
        return SQLITE_IOERR_FSYNC;
    for (int i = 0; i < f->n_writes; i++)
        apply(f, &f->writes[i]);
    forget_writes(f);
    f->entry_durable |= f->is_journal; /* SQLite syncs the folder of a new journal with it */
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
    if ((flags & SQLITE_OPEN_CREATE) && !powered())
        return SQLITE_CANTOPEN;
    f->known = find(name);
    f->known->entry_now = true;
    f->known->is_journal = flags & SQLITE_OPEN_MAIN_JOURNAL;
    f->real = (sqlite3_file *)&f[1];
    const int code = below->xOpen(below, name, f->real, flags, out);
    if (code == SQLITE_OK)
        f->base.pMethods = &methods;
    return code;
}

static int layer_delete(sqlite3_vfs *vfs, const char *name, int sync_folder) {
    disk_file *f = find(name);
    (void)vfs;
    if (!powered())
        return SQLITE_IOERR_DELETE;
    f->entry_now = false;
    if (sync_folder) {
        f->entry_durable = false;
        forget_writes(f);
        f->n_durable = 0;
    }
    return below->xDelete(below, name, 0);
}

/* The disk as the next start finds it. */
static void restore(void) {
    for (int i = 0; i < n_files; i++) {
        disk_file *f = &disk[i];
        bool exists = f->entry_now == f->entry_durable ? f->entry_now : random_below(&chance, 2);
        for (int k = 0; k < f->n_writes; k++) {
            const pending *w = &f->writes[k];
            for (size_t at = 0; at < w->n || (at == 0 && w->n == 0); at += SECTOR) {
                const size_t n = w->n - at < SECTOR ? w->n - at : SECTOR;
                const pending piece = {.at = w->at + at, .n = n, .data = w->data + at};
                if (random_below(&chance, 2))
                    apply(f, &piece);
            }
        }
        forget_writes(f);
        if (exists)
            write_file(f->path, f->durable, f->n_durable);
        else
            unlink(f->path);
    }
    n_files = 0;
    dead = false;
}

/* ---- The test ----------------------------------------------------------------------------------
 */

/* One charge, with the power cut at the call `at`; *n_before charges are there, and more after it.
 * False: it came to its end before. */
static bool charge_once(const char *path, int at, int64_t *n_before) {
    dpi_ledger *ledger = NULL;
    dpi_error err;
    int64_t n;
    n_calls = 0;
    cut_at = at;
    dpi_status status = dpi_ledger_open(path, NULL, &ledger, &err);
    if (status == DPI_STATUS_OK)
        status = reserve_rho(ledger, "letters", rho_of(1 << 20), NULL, &err);
    const bool was_cut = dead;
    dead = true; /* now, if not before */
    dpi_ledger_close(ledger);
    restore();
    cut_at = 0;
    ledger = open_ledger(path, 0);
    assert_true(sum_charges(ledger, "letters", &n) == n * (1 << 20));
    if (status == DPI_STATUS_OK)
        assert_int_equal(n, *n_before + 1);
    else
        assert_in_range(n, *n_before, *n_before + 1);
    dpi_ledger_close(ledger);
    restore(); /* a clean stop: all is synced, or the next start repairs it */
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
    n_files = 0;
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
        n_files = n_calls = 0;
        cut_at = n_cuts + 1;
        ledger = NULL;
        (void)!dpi_ledger_open(b.path, NULL, &ledger, NULL);
        was_cut = dead;
        dead = true;
        dpi_ledger_close(ledger);
        restore();
        cut_at = 0;
        ledger = open_ledger(b.path, 0);
        assert_true(sum_charges(ledger, "letters", &n) == 3221225472);
        dpi_ledger_close(ledger);
        restore();
        exec_sql(b.path, "CREATE TEMP TABLE t(right INTEGER CHECK(right = 3));"
                         "INSERT INTO t SELECT COUNT(*) FROM unit WHERE"
                         " (hex(hash) LIKE '0D1F%' AND spent = 3221225472) OR"
                         " (hex(hash) LIKE '30C5%' AND spent = 1073741824) OR"
                         " (hex(hash) LIKE '7539%' AND spent = 2147483648)");
        bench_remove(&b);
    }
    assert_true(n_cuts > 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_power_cut),
                                       cmocka_unit_test(test_power_cut_of_form_1)};
    disk = calloc(FILES_MAX, sizeof *disk);
    below = sqlite3_vfs_find(NULL);
    sqlite3_vfs layer = *below;
    layer.zName = "power";
    layer.szOsFile = (int)sizeof(layer_file) + below->szOsFile;
    layer.xOpen = layer_open;
    layer.xDelete = layer_delete;
    if (!disk || sqlite3_vfs_register(&layer, 1) != SQLITE_OK)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(disk);
    return failed;
}
