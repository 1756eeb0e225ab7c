/* output.c - see output.h. */
#include "tools/terminal/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/terminal/output_end.h"
#include "tools/terminal/program_system.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/terminal.h"

enum { RESERVE_BYTES = 1 << 14, OWN_PART_BYTES = 32 };

/* What the temporary files of a job end with; "": each has an ending of its own. */
static char own_part[OWN_PART_BYTES];

void output_own_parts(const char *ending) {
    snprintf(own_part, sizeof own_part, "%s", ending ? ending : "");
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int write_failed(output *o) {
    if (!o->failed)
        cli_fail(CLI_FAILED, "cannot write %s: %s", o->name, strerror(errno));
    o->failed = true;
    return CLI_FAILED;
}

/* The folder of a path, to be freed; NULL: out of memory. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

void output_tell_leftovers(const char *path) {
    char *real = realpath(path, NULL); /* they are beside the file that a symbolic link leads to */
    const char *target = real ? real : path;
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    const size_t n = strlen(name);
    char *folder = folder_of(target);
    DIR *dir = folder ? opendir(folder) : NULL;
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, name, n) == 0 &&
            strncmp(entry->d_name + n, ".part-", 6) == 0 &&
            strcmp(entry->d_name + n + 6, own_part) != 0)
            cli_note("note: %s%s holds what a run that was killed or still runs has written of %s",
                     slash ? folder : "", entry->d_name, target);
    if (dir)
        closedir(dir);
    free(folder);
    free(real);
}

/* A file that a handler knows from its first moment on. That of a job takes the place of one that
 * a killed process of the same job has left: the job has all that was in it. */
static bool make_temporary(output *o) {
    const sigset_t before = output_hold();
    if (own_part[0]) {
        unlink(o->temporary);
        o->fd = open(o->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } else {
        o->fd = mkostemp(o->temporary, O_CLOEXEC);
    }
    if (o->fd >= 0)
        output_remember(o);
    output_release(before);
    return o->fd >= 0;
}

/* The line for a handler, which cannot make it. */
static bool prepare_telling(output *o) {
    char *line;
    size_t n;
    const int n_line = asprintf(&line, "dpinfer: what was written is in %s", o->temporary);
    char *shown = n_line < 0 ? NULL : terminal_text(line, (size_t)n_line, false, &n);
    if (n_line >= 0)
        free(line);
    const bool ok = shown && asprintf(&o->told, "%s\n", shown) >= 0;
    free(shown);
    if (!ok)
        o->told = NULL;
    return ok;
}

/* Whether rename may replace the file, as far as it can be known before: false with errno. */
static bool is_replaceable(const char *path) {
    struct stat file, folder;
    char *parent = folder_of(path);
    const bool found = stat(path, &file) == 0 && parent && stat(parent, &folder) == 0;
    free(parent);
    if (!found)
        return true; /* there is none, or it is seen when the temporary file is made */
    if (system_is_fixed(path))
        return false;
    errno = EPERM;
    return !((folder.st_mode & S_ISVTX) && geteuid() != 0 && folder.st_uid != geteuid() &&
             file.st_uid != geteuid());
}

/* A temporary file beside the target, so that rename does not cross file systems. */
static bool open_temporary(output *o, const char *path, mode_t mode) {
    if (path[0] == '\0') { /* its temporary file could be made, and only renaming would fail */
        errno = ENOENT;
        return false;
    }
    char *real = realpath(path, NULL); /* the file behind a symbolic link, if there is one */
    o->target = real ? real : strdup(path);
    if (!o->target || asprintf(&o->temporary, "%s.part-%s", o->target,
                                own_part[0] ? own_part : "XXXXXX") < 0) {
        o->temporary = NULL;
        return false;
    }
    if (!o->probes)
        output_tell_leftovers(o->target);
    if (!is_replaceable(o->target) || !make_temporary(o)) {
        free(o->temporary);
        o->temporary = NULL;
        return false;
    }
    return fchmod(o->fd, mode) == 0 && prepare_telling(o);
}

/* Whether a file at `path` can appear as a whole. */
static bool is_regular(const char *path, mode_t *mode) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    mode_t mask = umask(0);
    umask(mask);
    *mode = exists ? st.st_mode & 0777 : 0666 & ~mask;
    return !exists || S_ISREG(st.st_mode);
}

bool output_is_file(const char *path) {
    mode_t mode;
    return strcmp(path, "-") != 0 && is_regular(path, &mode);
}

int output_open(output *o, const char *path, bool replaces) {
    mode_t mode;
    *o = (output){.fd = -1, .name = path, .replaces = replaces};
    if (strcmp(path, "-") == 0) {
        o->name = "standard output";
        o->fd = STDOUT_FILENO;
        output_remember(o);
        return CLI_OK;
    }
    if (is_regular(path, &mode)) {
        if (open_temporary(o, path, mode))
            return CLI_OK;
        write_failed(o);
        output_close(o, OUTPUT_DROPPED);
        return CLI_FAILED;
    }
    signals_interrupt(true); /* a pipe without a reader */
    o->fd = open(path, O_WRONLY | O_CLOEXEC);
    const int reason = errno;
    signals_interrupt(false);
    output_remember(o);
    if (o->fd < 0 && reason == EINTR && signals_stop())
        return signals_code();
    errno = reason;
    return o->fd >= 0 ? CLI_OK : write_failed(o);
}

int output_probe(const char *path) {
    mode_t mode;
    struct stat st;
    output o = {.fd = -1, .name = path, .probes = true};
    if (strcmp(path, "-") == 0)
        return CLI_OK;
    if (!is_regular(path, &mode)) {
        if (stat(path, &st) != 0 || (!S_ISDIR(st.st_mode) && !S_ISSOCK(st.st_mode)))
            return CLI_OK;
        errno = S_ISDIR(st.st_mode) ? EISDIR : ENXIO;
        return write_failed(&o);
    }
    int code = open_temporary(&o, path, mode) ? CLI_OK : write_failed(&o);
    output_close(&o, OUTPUT_DROPPED);
    return code;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Some of what is pending. It waits for a reader with signals let in, and writes with them held,
 * so that a handler knows how much is written. false with errno. */
static bool write_pending(output *o) {
    if (!output_has_room(o->fd, -1) && errno == EINTR)
        return true;
    const sigset_t before = output_hold();
    ssize_t n = 0;
    if (output_has_room(o->fd, 0))
        n = write(o->fd, o->pending, output_chunk(o->n_pending));
    const int reason = errno;
    if (n > 0) {
        o->pending += n;
        o->n_pending -= (size_t)n;
    }
    output_release(before);
    errno = reason;
    return n >= 0 || reason == EINTR || reason == EAGAIN;
}

/* With the tail at once if nothing is to be written. */
static void set_pending(output *o, const void *data, size_t n_bytes, const char *tail) {
    o->pending = data;
    o->n_pending = n_bytes;
    snprintf(o->tail, sizeof o->tail, "%s", tail);
}

/* Room for what is to be written, with its tail: a disk that is full is seen before a line is
 * longer than what can be ended. false with errno. */
static bool reserve(output *o, off_t from, size_t n_bytes) {
    struct rlimit most;
    const int64_t end = (int64_t)from + (int64_t)n_bytes;
    errno = EFBIG;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < (rlim_t)end)
        return false;
    if (end <= o->reserved)
        return true;
    if (fallocate(o->fd, FALLOC_FL_KEEP_SIZE, from, end - from + RESERVE_BYTES) == 0)
        o->reserved = end + RESERVE_BYTES;
    else if (errno == ENOSPC || errno == EDQUOT)
        return fallocate(o->fd, FALLOC_FL_KEEP_SIZE, from, end - from) == 0;
    return true; /* or a file system that does not reserve */
}

int output_reserve(output *o, int64_t n_bytes) {
    if (!o->temporary)
        return cli_fail(CLI_USAGE, "%s: a file is needed: it is written after the charge, and a "
                        "device or a pipe may not take it", o->name);
    return reserve(o, 0, (size_t)n_bytes) ? CLI_OK : write_failed(o);
}

/* What was written of a part goes. */
static void undo_part(output *o, off_t from, const char *tail) {
    const int reason = errno;
    const sigset_t before = output_hold();
    set_pending(o, NULL, 0, tail);
    if (from >= 0 && ftruncate(o->fd, from) == 0)
        lseek(o->fd, from, SEEK_SET);
    output_release(before);
    errno = reason;
}

int output_write_part(output *o, const void *data, size_t n_bytes, const char *tail) {
    char last_tail[OUTPUT_TAIL_BYTES];
    if (o->failed)
        return CLI_FAILED;
    const off_t from = o->temporary ? lseek(o->fd, 0, SEEK_CUR) : -1;
    if (from >= 0 && !reserve(o, from, n_bytes + strlen(tail)))
        return write_failed(o);
    memcpy(last_tail, o->tail, sizeof last_tail);
    const sigset_t before = output_hold();
    set_pending(o, data, n_bytes, tail);
    output_release(before);
    while (o->n_pending > 0)
        if (!write_pending(o)) {
            undo_part(o, from, last_tail);
            return write_failed(o);
        }
    return CLI_OK;
}

int output_write(output *o, const void *data, size_t n_bytes) {
    return output_write_part(o, data, n_bytes, "");
}

int output_show(output *o, const char *text, size_t n_bytes) {
    size_t n;
    if (!isatty(o->fd))
        return output_write(o, text, n_bytes);
    char *shown = terminal_text(text, n_bytes, true, &n);
    const int code = shown ? output_write(o, shown, n) : cli_no_memory("the text");
    free(shown);
    return code;
}

/* Nothing here waits for a reader: the file is a regular one. */
static bool replace_all(output *o, const char *data, size_t n_bytes) {
    bool ok = ftruncate(o->fd, 0) == 0 && lseek(o->fd, 0, SEEK_SET) == 0;
    while (ok && n_bytes > 0) {
        const ssize_t n = write(o->fd, data, n_bytes);
        ok = n >= 0 || errno == EINTR;
        data += n > 0 ? n : 0;
        n_bytes -= n > 0 ? (size_t)n : 0;
    }
    return ok;
}

int output_write_anew(output *o, const void *data, size_t n_bytes, const void *old, size_t n_old) {
    if (!o->temporary)
        return output_show(o, data, n_bytes);
    if (o->failed)
        return CLI_FAILED;
    const sigset_t before = output_hold();
    const bool ok = replace_all(o, data, n_bytes);
    const int reason = errno;
    if (!ok && !(n_old > 0 && replace_all(o, old, n_old)))
        o->appears = false; /* a part of it is of no use */
    output_release(before);
    errno = reason;
    return ok ? CLI_OK : write_failed(o);
}

/* On disk, and its name too, as far as the file system can say. */
static bool sync_file(int fd) {
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
}

static void sync_folder(const char *target) {
    char *folder = folder_of(target);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

/* What becomes of a temporary file. */
typedef enum { ENDED, LEFT, LEFT_BY_FAILURE } ended;

static ended end_temporary(const output *o, output_end end) {
    struct stat st;
    if (end == OUTPUT_PARTIAL && output_is_empty(o))
        end = OUTPUT_DROPPED;
    if (end == OUTPUT_PARTIAL && stat(o->target, &st) == 0)
        return LEFT;
    if (end == OUTPUT_DROPPED)
        return unlink(o->temporary), ENDED;
    return output_appear(o) == 0 ? ENDED : LEFT_BY_FAILURE;
}

/* Closes, under the name or not, and no handler knows the output any more. false with errno. */
static bool end_output(output *o, output_end end, ended *was) {
    const sigset_t before = output_hold();
    const bool closed = o->fd < 0 || close(o->fd) == 0;
    int reason = errno;
    o->fd = -1;
    *was = o->temporary ? end_temporary(o, end) : ENDED;
    if (*was == LEFT_BY_FAILURE)
        reason = errno;
    output_forget(o);
    output_release(before);
    errno = reason;
    return closed && *was != LEFT_BY_FAILURE;
}

/* A file that has not failed ends where it was written to; else the text that was open ends. */
static void finish_temporary(const output *o) {
    if (o->failed)
        output_put(o->fd, o->tail, strlen(o->tail));
    const off_t end = lseek(o->fd, 0, SEEK_CUR);
    if (o->reserved > 0 && end >= 0 && ftruncate(o->fd, end) != 0)
        return; /* it keeps the room */
}

int output_close(output *o, output_end end) {
    ended was;
    if (o->fd >= 0 && o->temporary && end != OUTPUT_DROPPED)
        finish_temporary(o);
    if (o->fd >= 0 && o->temporary && end != OUTPUT_DROPPED && !sync_file(o->fd))
        write_failed(o);
    if (o->failed && end != OUTPUT_DROPPED)
        end = o->appears ? OUTPUT_PARTIAL : OUTPUT_DROPPED;
    if (!end_output(o, end, &was))
        write_failed(o);
    if (was == LEFT)
        cli_note("note: %s is as it was; what was written is in %s", o->target, o->temporary);
    else if (was == LEFT_BY_FAILURE)
        cli_note("note: what was written is in %s", o->temporary);
    else if (o->temporary && end != OUTPUT_DROPPED)
        sync_folder(o->target);
    free(o->temporary);
    free(o->target);
    free(o->told);
    o->temporary = o->target = o->told = NULL;
    return o->failed ? CLI_FAILED : CLI_OK;
}

int output_finish(output *o, output_end end, int code) {
    const int closed = output_close(o, end);
    return code != CLI_OK ? code : closed;
}
