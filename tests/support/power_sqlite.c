/* power_sqlite.c - a layer below SQLite that routes its calls through power.h. Files are those of
 * the layer below, with three calls of its own, and behind each its name. */
#include "tests/support/power.h"

#include <sqlite3.h>

static sqlite3_vfs *below;

typedef struct known {
    const char *path; /* SQLite keeps it until the file is closed */
    bool is_journal;
    const sqlite3_io_methods *real; /* of the layer below: others for a journal */
    sqlite3_io_methods methods;
} known;

static known *known_of(sqlite3_file *f) { return (known *)((char *)f + below->szOsFile); }

static int layer_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at) {
    return power_write(known_of(f)->path, (size_t)at, data, (size_t)n)
               ? known_of(f)->real->xWrite(f, data, n, at)
               : SQLITE_IOERR_WRITE;
}

static int layer_truncate(sqlite3_file *f, sqlite3_int64 size) {
    return power_write(known_of(f)->path, (size_t)size, NULL, 0)
               ? known_of(f)->real->xTruncate(f, size)
               : SQLITE_IOERR_TRUNCATE;
}

static int layer_sync(sqlite3_file *f, int flags) {
    (void)flags;
    if (!power_sync(known_of(f)->path))
        return SQLITE_IOERR_FSYNC;
    if (known_of(f)->is_journal) /* SQLite syncs the folder of a new journal with it */
        power_sync_name(known_of(f)->path);
    return SQLITE_OK;
}

static int layer_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *f, int flags,
                      int *out) {
    (void)vfs;
    f->pMethods = NULL;
    if (!power_open(path, flags & SQLITE_OPEN_CREATE))
        return SQLITE_CANTOPEN;
    const int code = below->xOpen(below, path, f, flags, out);
    if (code != SQLITE_OK)
        return code;
    known *k = known_of(f);
    *k = (known){path, flags & SQLITE_OPEN_MAIN_JOURNAL, f->pMethods, *f->pMethods};
    k->methods.iVersion = 1; /* neither shared memory nor maps, which would go past this */
    k->methods.xWrite = layer_write;
    k->methods.xTruncate = layer_truncate;
    k->methods.xSync = layer_sync;
    f->pMethods = &k->methods;
    return code;
}

static int layer_delete(sqlite3_vfs *vfs, const char *path, int sync_folder) {
    (void)vfs;
    if (!power_unlink(path))
        return SQLITE_IOERR_DELETE;
    if (sync_folder)
        power_sync_name(path);
    return below->xDelete(below, path, 0);
}

void power_sqlite(void) {
    static sqlite3_vfs layer;
    below = sqlite3_vfs_find(NULL);
    layer = *below;
    layer.zName = "power";
    layer.szOsFile = below->szOsFile + (int)sizeof(known);
    layer.xOpen = layer_open;
    layer.xDelete = layer_delete;
    assert_int_equal(sqlite3_vfs_register(&layer, 1), SQLITE_OK);
}
