/* power_sqlite.c - see power_sqlite.h. */
#include "tests/support/power_sqlite.h"

#include <sqlite3.h>

#include "tests/support/power.h"

static sqlite3_vfs *below;

typedef struct layer_file {
    sqlite3_file base;
    power_file *known;
    bool is_journal;
    sqlite3_file *real;
} layer_file;

#define REAL(file) (((layer_file *)(file))->real)
#define BELOW(file) REAL(file)->pMethods

/* power_call under the lock, which is held until `done`. */
static bool call(bool *last) {
    power_lock();
    return power_call(last);
}

static int done(int code) {
    power_unlock();
    return code;
}

static int layer_close(sqlite3_file *f) { return BELOW(f)->xClose(REAL(f)); }
static int layer_read(sqlite3_file *f, void *data, int n, sqlite3_int64 at) {
    return BELOW(f)->xRead(REAL(f), data, n, at);
}

static int layer_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at) {
    bool last;
    const bool powered = call(&last);
    if (powered || last)
        power_write(((layer_file *)f)->known, (size_t)at, data, (size_t)n);
    return done(powered ? BELOW(f)->xWrite(REAL(f), data, n, at) : SQLITE_IOERR_WRITE);
}

static int layer_truncate(sqlite3_file *f, sqlite3_int64 size) {
    if (!call(NULL))
        return done(SQLITE_IOERR_TRUNCATE);
    power_write(((layer_file *)f)->known, (size_t)size, NULL, 0);
    return done(BELOW(f)->xTruncate(REAL(f), size));
}

static int layer_sync(sqlite3_file *file, int flags) {
    const layer_file *f = (layer_file *)file;
    (void)flags;
    if (!call(NULL))
        return done(SQLITE_IOERR_FSYNC);
    power_sync(f->known);
    if (f->is_journal) /* SQLite syncs the folder of a new journal with it */
        power_sync_name(f->known);
    return done(SQLITE_OK);
}

static int layer_size(sqlite3_file *f, sqlite3_int64 *size) {
    return BELOW(f)->xFileSize(REAL(f), size);
}
static int layer_lock(sqlite3_file *f, int level) { return BELOW(f)->xLock(REAL(f), level); }
static int layer_unlock(sqlite3_file *f, int level) { return BELOW(f)->xUnlock(REAL(f), level); }
static int layer_reserved(sqlite3_file *f, int *found) {
    return BELOW(f)->xCheckReservedLock(REAL(f), found);
}
static int layer_control(sqlite3_file *f, int op, void *arg) {
    return BELOW(f)->xFileControl(REAL(f), op, arg);
}
static int layer_sector(sqlite3_file *f) { return BELOW(f)->xSectorSize(REAL(f)); }
static int layer_traits(sqlite3_file *f) { return BELOW(f)->xDeviceCharacteristics(REAL(f)); }

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
    power_lock();
    if ((flags & SQLITE_OPEN_CREATE) && !power_call(NULL))
        return done(SQLITE_CANTOPEN);
    f->known = power_find(name);
    power_name(f->known, true);
    f->is_journal = flags & SQLITE_OPEN_MAIN_JOURNAL;
    f->real = (sqlite3_file *)&f[1];
    const int code = below->xOpen(below, name, f->real, flags, out);
    if (code == SQLITE_OK)
        f->base.pMethods = &methods;
    return done(code);
}

static int layer_delete(sqlite3_vfs *vfs, const char *name, int sync_folder) {
    (void)vfs;
    power_lock();
    power_file *f = power_find(name);
    if (!power_call(NULL))
        return done(SQLITE_IOERR_DELETE);
    power_name(f, false);
    if (sync_folder)
        power_sync_name(f);
    return done(below->xDelete(below, name, 0));
}

void power_sqlite(void) {
    static sqlite3_vfs layer;
    below = sqlite3_vfs_find(NULL);
    layer = *below;
    layer.zName = "power";
    layer.szOsFile = (int)sizeof(layer_file) + below->szOsFile;
    layer.xOpen = layer_open;
    layer.xDelete = layer_delete;
    assert_int_equal(sqlite3_vfs_register(&layer, 1), SQLITE_OK);
}
