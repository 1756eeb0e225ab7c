/* journal.c - the life of a job, and its next token. dpinfer/journal.h says what is promised. */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/memory.h"
#include "pipeline/journal/journal.h"

DPI_STRUCT_DEFAULTS(dpi_journal_options, .every = 1)

/* ---- Opening --------------------------------------------------------------------------------- */

/* The folder, and that of its name: a folder that a power cut takes away has lost its job. */
static dpi_status make_folder(dpi_journal *j, dpi_error *err) {
    j->made_folder = mkdir(j->folder, 0700) == 0;
    if (!j->made_folder && errno != EEXIST)
        return dpi_fail(err, DPI_STATUS_IO, "cannot make the folder %s: %s", j->folder,
                        dpi_reason(errno));
    char *parent;
    if (asprintf(&parent, "%s/..", j->folder) < 0)
        return dpi_no_memory(err, "a job");
    const int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(parent);
    return DPI_STATUS_OK;
}

/* Without a lock two processes would draw the same tokens. */
static dpi_status lock_tokens(dpi_journal *j, bool create, dpi_error *err) {
    const int flags = j->read_only ? O_RDONLY : O_RDWR | (create ? O_CREAT : 0);
    j->fd = openat(j->dir, "tokens", flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (j->fd < 0)
        return dpi_journal_fail(j, "open", "tokens", err);
    struct stat st;
    if (fstat(j->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s/tokens is no regular file", j->folder);
    if (j->read_only)
        return DPI_STATUS_OK;
    /* A file that was removed before it was locked was that of a job that has not begun. */
    const bool locked = flock(j->fd, LOCK_EX | LOCK_NB) == 0 && fstat(j->fd, &st) == 0;
    if (locked && st.st_nlink > 0)
        return DPI_STATUS_OK;
    if (locked || errno == EWOULDBLOCK)
        return dpi_fail(err, DPI_STATUS_IO, "%s: another process goes on with this job", j->folder);
    return dpi_journal_fail(j, "lock", "tokens", err);
}

/* A file of tokens that is there already has none: it is what a job has left that did not begin. */
static dpi_status check_unused(const dpi_journal *j, dpi_error *err) {
    uint8_t start[DPI_JOURNAL_HEADER + DPI_JOURNAL_RECORD] = {0};
    const ssize_t n = pread(j->fd, start, sizeof start, 0);
    if (n < 0)
        return dpi_journal_fail(j, "read", "tokens", err);
    const bool ours =
        dpi_journal_is_header(start) || dpi_journal_is_zero(start, DPI_JOURNAL_HEADER);
    return ours && dpi_journal_is_zero(start + DPI_JOURNAL_HEADER, DPI_JOURNAL_RECORD)
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_ARG,
                          "%s/tokens is there already, and is not that of a job "
                          "that has not begun",
                          j->folder);
}

static dpi_status open_new(dpi_journal *j, const char *application, dpi_error *err) {
    bool found = false;
    DPI_TRY(lock_tokens(j, true, err));
    DPI_TRY(dpi_job_read(j, &found, err));
    if (found)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: a job has begun there: it can only go on",
                        j->folder);
    DPI_TRY(check_unused(j, err));
    j->is_ours = true;
    if (application && !(j->application = strdup(application)))
        return dpi_no_memory(err, "a job");
    DPI_TRY(dpi_random_fill(NULL, NULL, j->id, sizeof j->id, err));
    return dpi_random_fill(NULL, NULL, j->key, sizeof j->key, err);
}

static dpi_status open_begun(dpi_journal *j, dpi_error *err) {
    uint8_t header[DPI_JOURNAL_HEADER] = {0};
    DPI_TRY(dpi_job_read(j, &j->begun, err));
    if (!j->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "%s: no job has begun there", j->folder);
    DPI_TRY(lock_tokens(j, false, err));
    if (pread(j->fd, header, sizeof header, 0) < 0)
        return dpi_journal_fail(j, "read", "tokens", err);
    DPI_TRY(dpi_journal_check_header(j, header, err));
    DPI_TRY(dpi_journal_recover(j, err));
    if (!j->read_only)
        dpi_journal_sync_start(j);
    return DPI_STATUS_OK;
}

static dpi_status open_journal(dpi_journal *j, const dpi_journal_options *o, dpi_error *err) {
    if (o->create)
        DPI_TRY(make_folder(j, err));
    j->dir = open(j->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j->dir < 0)
        return dpi_fail(err, DPI_STATUS_IO, "cannot open the folder %s: %s", j->folder,
                        dpi_reason(errno));
    j->root = realpath(j->folder, NULL);
    if (!j->root)
        return dpi_fail(err, DPI_STATUS_IO, "cannot open the folder %s: %s", j->folder,
                        dpi_reason(errno));
    return o->create ? open_new(j, o->application, err) : open_begun(j, err);
}

static dpi_status check_options(const char *folder, const dpi_journal_options *o, dpi_error *err) {
    if (!folder || !folder[0])
        return dpi_fail(err, DPI_STATUS_ARG, "a job needs the name of its folder");
    if (o->create && o->read_only)
        return dpi_fail(err, DPI_STATUS_ARG, "create and read_only: allowed is one of them");
    return dpi_check_range("every", o->every, 1, DPI_JOURNAL_TOKENS_MAX, err);
}

dpi_status dpi_journal_open(const char *folder, const dpi_journal_options *options,
                            dpi_journal **journal, dpi_error *err) {
    DPI_COPY_STRUCT_IF(dpi_journal_options, o, options, err);
    DPI_TRY(check_options(folder, &o, err));
    dpi_journal *j = calloc(1, sizeof *j);
    if (!j || !(j->folder = strdup(folder))) {
        free(j);
        return dpi_no_memory(err, "a job");
    }
    j->dir = j->fd = -1;
    j->every = o.every;
    j->read_only = o.read_only != 0;
    const dpi_status status = open_journal(j, &o, err);
    if (status == DPI_STATUS_OK)
        *journal = j;
    else
        dpi_journal_close(j);
    return status;
}

void dpi_journal_close(dpi_journal *j) {
    if (!j)
        return;
    dpi_journal_sync_stop(j);
    dpi_journal_free_texts(j);
    if (j->is_ours && !j->begun && faccessat(j->dir, "job.json", F_OK, 0) != 0)
        unlinkat(j->dir, "tokens", 0); /* it has none; and the lock is still held */
    if (j->made_folder && !j->begun)
        rmdir(j->folder); /* if nothing is in it */
    if (j->fd >= 0)
        close(j->fd); /* and its lock */
    if (j->dir >= 0)
        close(j->dir);
    free(j->folder);
    free(j->root);
    free(j->application);
    free(j->facts);
    dpi_wipe_free(j, sizeof *j);
}

const char *dpi_journal_root(const dpi_journal *j) { return j->root; }

bool dpi_journal_is_in(const dpi_journal *j, const char *folder) {
    struct stat own, other;
    return fstat(j->dir, &own) == 0 && stat(folder, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

const char *dpi_journal_application(const dpi_journal *j) { return j->application; }
const char *dpi_journal_facts(const dpi_journal *j) { return j->begun ? j->facts : NULL; }
const uint8_t *dpi_journal_key(const dpi_journal *j) { return j->key; }

/* ---- Begin ----------------------------------------------------------------------------------- */

/* The file of tokens without a token. What a job that has not begun has left there is no token. */
static dpi_status make_tokens(dpi_journal *j, dpi_error *err) {
    uint8_t header[DPI_JOURNAL_HEADER];
    dpi_journal_header(j->id, header);
    if (ftruncate(j->fd, 0) != 0 || !dpi_journal_write(j->fd, header, sizeof header, 0) ||
        !dpi_journal_make_room(j) || fsync(j->fd) != 0)
        return dpi_journal_fail(j, "write", "tokens", err);
    return DPI_STATUS_OK;
}

dpi_status dpi_journal_begin(dpi_journal *j, const char *facts, dpi_error *err) {
    if (j->begun || j->read_only)
        return dpi_fail(err, DPI_STATUS_STATE, "%s: the job has begun already", j->folder);
    DPI_TRY(make_tokens(j, err));
    char *copy = strdup(facts);
    if (!copy)
        return dpi_no_memory(err, "a job");
    const dpi_status status = dpi_job_write(j, facts, err);
    if (status != DPI_STATUS_OK) {
        unlinkat(j->dir, "job.json", 0); /* its charge is given back: it could not go on */
        free(copy);
        return status;
    }
    dpi_journal_sync_start(j);
    j->facts = copy;
    j->begun = true;
    return DPI_STATUS_OK;
}

/* ---- Data that is kept ----------------------------------------------------------------------- */

static dpi_status check_name(const char *name, dpi_error *err) {
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");
    if (n == 0 || n > 60 || name[n])
        return dpi_fail(err, DPI_STATUS_ARG,
                        "a name of what a job keeps has 1..60 letters a to z and "
                        "digits");
    return DPI_STATUS_OK;
}

static void digest_data(const dpi_journal *j, const void *data, size_t n_bytes,
                        uint8_t hash[SHA256_DIGEST_SIZE]) {
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, sizeof j->id, j->id);
    sha256_update(&context, n_bytes, data);
    sha256_digest(&context, SHA256_DIGEST_SIZE, hash);
}

dpi_status dpi_journal_keep(dpi_journal *j, const char *name, const void *data, size_t n_bytes,
                            dpi_error *err) {
    DPI_TRY(check_name(name, err));
    if (!j->begun || j->read_only)
        return dpi_fail(err, DPI_STATUS_STATE, "%s: the job has not begun", j->folder);
    if (faccessat(j->dir, name, F_OK, 0) == 0)
        return dpi_fail(err, DPI_STATUS_STATE, "%s/%s is there already", j->folder, name);
    uint8_t *all = dpi_private_malloc(n_bytes + SHA256_DIGEST_SIZE);
    if (!all)
        return dpi_no_memory(err, "a job");
    digest_data(j, data, n_bytes, all);
    memcpy(all + SHA256_DIGEST_SIZE, data, n_bytes);
    const dpi_status status =
        dpi_journal_write_file(j, name, all, n_bytes + SHA256_DIGEST_SIZE, err);
    dpi_private_free(all);
    return status;
}

dpi_status dpi_journal_kept(const dpi_journal *j, const char *name, void **data, size_t *n_bytes,
                            dpi_error *err) {
    uint8_t hash[SHA256_DIGEST_SIZE];
    char *all;
    size_t n;
    *data = NULL;
    *n_bytes = 0;
    DPI_TRY(check_name(name, err));
    DPI_TRY(dpi_journal_read_file(j, name, &all, &n, err));
    if (!all)
        return DPI_STATUS_OK;
    n = n >= sizeof hash ? n - sizeof hash : SIZE_MAX;
    if (n != SIZE_MAX)
        digest_data(j, all + sizeof hash, n, hash);
    if (n == SIZE_MAX || memcmp(all, hash, sizeof hash) != 0) {
        dpi_private_free(all);
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s/%s is damaged: its hash does not hold",
                        j->folder, name);
    }
    memmove(all, all + sizeof hash, n);
    *data = all;
    *n_bytes = n;
    return DPI_STATUS_OK;
}

/* ---- The next token -------------------------------------------------------------------------- */

static dpi_status check_put(dpi_journal *j, int32_t text, int32_t place, int32_t token,
                            dpi_error *err) {
    if (!j->begun || j->read_only)
        return dpi_fail(err, DPI_STATUS_STATE, "%s: the job has not begun", j->folder);
    errno = j->reason ? j->reason : dpi_journal_sync_reason(j);
    if (errno != 0) /* of an earlier write */
        return dpi_journal_fail(j, "write", "tokens", err);
    if (text < 0 || text >= DPI_JOURNAL_TEXTS_MAX || place < 0 || place >= DPI_JOURNAL_TOKENS_MAX ||
        token < 0)
        return dpi_fail(err, DPI_STATUS_ARG, "text, place or token is out of range");
    return DPI_STATUS_OK;
}

/* A record that could not be written whole becomes zero again, if the disk lets it. */
static bool write_record(dpi_journal *j, const dpi_journal_record *r) {
    static const uint8_t zeros[DPI_JOURNAL_RECORD];
    uint8_t bytes[DPI_JOURNAL_RECORD];
    const int64_t at = DPI_JOURNAL_HEADER + r->sequence * DPI_JOURNAL_RECORD;
    dpi_journal_encode(j->id, r, bytes);
    if (!dpi_journal_make_room(j))
        return false;
    if (dpi_journal_write(j->fd, bytes, sizeof bytes, at))
        return true;
    const int reason = errno;
    const bool cleared = dpi_journal_write(j->fd, zeros, sizeof zeros, at);
    (void)cleared; /* if not, the next start says that the file is damaged */
    errno = reason;
    return false;
}

dpi_status dpi_journal_put(dpi_journal *j, int32_t text, int32_t place, int32_t token, int32_t last,
                           int64_t *sequence, dpi_error *err) {
    DPI_TRY(check_put(j, text, place, token, err));
    DPI_TRY(dpi_journal_add(j, text, place, token, err));
    const dpi_journal_record r = {.sequence = j->n_records,
                                  .n_durable = dpi_journal_durable(j),
                                  .text = text,
                                  .place = place,
                                  .token = token};
    if (!write_record(j, &r)) {
        j->reason = errno;
        return dpi_journal_fail(j, "write", "tokens", err);
    }
    j->n_records++;
    dpi_journal_sync_note(j, last || j->n_records - j->sync.n_wanted >= j->every);
    if (sequence)
        *sequence = j->n_records;
    /* Steps do not run away from the disk: so a record that it has lost is known by a later one. */
    const int64_t ahead = j->every + DPI_JOURNAL_AHEAD;
    return j->n_records - dpi_journal_durable(j) > ahead
               ? dpi_journal_wait(j, j->n_records - ahead, err)
               : DPI_STATUS_OK;
}
