/* power.c - see power.h. */
#define _GNU_SOURCE
#include "tests/support/power.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 24, WRITES_MAX = 512, FILE_BYTES = 1 << 18, SECTOR = 512 };

typedef struct pending {
    size_t at, n; /* n 0: cut to `at` bytes */
    char *data;
} pending;

typedef struct power_file {
    char path[512];
    char durable[FILE_BYTES];
    size_t n_durable;
    bool entry_durable, entry_now; /* the folder has the name: on the disk, now */
    pending writes[WRITES_MAX];
    int n_writes;
} power_file;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static power_file *disk; /* [FILES_MAX] */
static int n_files;
static int32_t n_calls, cut_at;
static bool dead, kills;
static uint64_t chance = 1;

void power_cut_at(int32_t at) {
    n_calls = 0;
    cut_at = at;
}

void power_kill_at(int32_t at) {
    kills = true;
    power_cut_at(at);
}

bool power_cut(void) {
    const bool was_cut = dead;
    dead = true;
    return was_cut;
}

/* ---- What is known of a file ----------------------------------------------------------------- */

static power_file *find(const char *path) {
    if (!disk)
        disk = calloc(FILES_MAX, sizeof *disk);
    for (int i = 0; i < n_files; i++)
        if (strcmp(disk[i].path, path) == 0)
            return &disk[i];
    assert_true(disk && n_files < FILES_MAX);
    power_file *f = &disk[n_files++];
    *f = (power_file){.n_writes = 0};
    snprintf(f->path, sizeof f->path, "%s", path);
    FILE *file = fopen(path, "rb");
    if (file) {
        f->n_durable = fread(f->durable, 1, FILE_BYTES, file);
        f->entry_durable = f->entry_now = true;
        fclose(file);
    }
    return f;
}

static void apply(power_file *f, const pending *w) {
    if (w->n == 0) {
        f->n_durable = w->at < f->n_durable ? w->at : f->n_durable;
        return;
    }
    assert_true(w->at + w->n <= FILE_BYTES);
    if (w->at > f->n_durable)
        memset(f->durable + f->n_durable, 0, w->at - f->n_durable);
    memcpy(f->durable + w->at, w->data, w->n);
    if (w->at + w->n > f->n_durable)
        f->n_durable = w->at + w->n;
}

static void add_write(power_file *f, size_t at, const void *data, size_t n) {
    assert_true(f->n_writes < WRITES_MAX);
    pending *w = &f->writes[f->n_writes++];
    *w = (pending){.at = at, .n = n, .data = n ? malloc(n) : NULL};
    if (n)
        memcpy(w->data, data, n);
}

static void forget_writes(power_file *f) {
    for (int i = 0; i < f->n_writes; i++)
        free(f->writes[i].data);
    f->n_writes = 0;
}

static void sync_name(power_file *f) {
    f->entry_durable = f->entry_now;
    if (f->entry_now)
        return;
    forget_writes(f);
    f->n_durable = 0;
}

static bool is_in(const char *folder, const char *path) {
    const size_t n = strlen(folder);
    return strncmp(folder, path, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

/* ---- The calls ------------------------------------------------------------------------------- */

/* Counts one, under the lock, which `done` gives back. */
static bool call(void) {
    if (++n_calls == cut_at && !dead) {
        if (kills)
            raise(SIGKILL);
        dead = true;
    }
    return !dead;
}

static bool done(bool powered) {
    pthread_mutex_unlock(&lock);
    return powered;
}

bool power_open(const char *path, bool creates) {
    pthread_mutex_lock(&lock);
    const bool powered = !creates || call();
    if (powered)
        find(path)->entry_now = true;
    return done(powered);
}

bool power_write(const char *path, size_t at, const void *data, size_t n) {
    pthread_mutex_lock(&lock);
    power_file *f = find(path);
    const bool arrives = !dead, powered = call();
    f->entry_now = true;
    if (arrives)
        add_write(f, at, data, n);
    return done(powered);
}

bool power_sync(const char *path) {
    struct stat st;
    pthread_mutex_lock(&lock);
    if (!call())
        return done(false);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        for (int i = 0; i < n_files; i++)
            if (is_in(path, disk[i].path))
                sync_name(&disk[i]);
        return done(true);
    }
    power_file *f = find(path);
    f->entry_now = true;
    for (int i = 0; i < f->n_writes; i++)
        apply(f, &f->writes[i]);
    forget_writes(f);
    return done(true);
}

bool power_unlink(const char *path) {
    pthread_mutex_lock(&lock);
    power_file *f = find(path);
    const bool powered = call();
    f->entry_now &= !powered;
    return done(powered);
}

/* The old name keeps what it has on the disk until the folder is synced. */
bool power_rename(const char *from_path, const char *to_path) {
    pthread_mutex_lock(&lock);
    power_file *from = find(from_path), *to = find(to_path);
    if (!call())
        return done(false);
    forget_writes(to);
    memcpy(to->durable, from->durable, from->n_durable);
    to->n_durable = from->n_durable;
    for (int i = 0; i < from->n_writes; i++)
        add_write(to, from->writes[i].at, from->writes[i].data, from->writes[i].n);
    to->entry_now = true;
    from->entry_now = false;
    return done(true);
}

void power_sync_name(const char *path) {
    pthread_mutex_lock(&lock);
    sync_name(find(path));
    done(true);
}

/* ---- The next start -------------------------------------------------------------------------- */

void power_restore(void) {
    for (int i = 0; i < n_files; i++) {
        power_file *f = &disk[i];
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
    power_cut_at(0);
}

void power_settle(void) {
    for (int i = 0; i < n_files; i++)
        sync_name(&disk[i]);
    power_restore();
}
