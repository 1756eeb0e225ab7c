#define _GNU_SOURCE /* asprintf */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/status.h"

static dpi_status cannot_read(const char *path, dpi_error *err) {
    return dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", path,
                    dpi_reason(errno));
}

dpi_status dpi_file_open(const char *path, FILE **file, dpi_error *err) {
    /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return cannot_read(path, err);
    struct stat st;
    dpi_status status = DPI_STATUS_OK;
    if (fstat(fd, &st) != 0)
        status = cannot_read(path, err);
    else if (!S_ISREG(st.st_mode))
        status = dpi_fail(err, DPI_STATUS_IO, "cannot read %s: it is not a regular file", path);
    else if (!(*file = fdopen(fd, "r")))
        status = cannot_read(path, err);
    if (status != DPI_STATUS_OK)
        close(fd);
    return status;
}

bool dpi_file_write(int fd, const void *data, size_t n_bytes) {
    const char *at = data;
    while (n_bytes > 0) {
        const ssize_t n = write(fd, at, n_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (n == 0) { /* it would be so for ever */
            errno = EIO;
            return false;
        }
        at += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

bool dpi_file_sync_names(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const bool synced = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    const int reason = errno;
    if (fd >= 0)
        close(fd);
    free(folder);
    errno = reason;
    return synced;
}

/* ---- Files that appear when they are whole --------------------------------------------------- */

int dpi_file_make_beside(const char *path, char **name) {
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        if (asprintf(name, "%s.part-%ld.%d", path, (long)getpid(), i) < 0) {
            errno = ENOMEM;
            return -1;
        }
        const int fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        const int reason = errno;
        free(*name);
        errno = reason;
        if (errno != EEXIST)
            break;
    }
    return -1;
}

void dpi_file_hold_signals(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void dpi_file_release_signals(const sigset_t *before) {
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Gives back what the file holds, with errno as it was. */
static void end_new_file(dpi_new_file *f) {
    const int reason = errno;
    free(f->temporary);
    free(f->target);
    dpi_file_release_signals(&f->signals);
    errno = reason;
}

bool dpi_new_file_open(dpi_new_file *f, const char *path) {
    char *real = realpath(path, NULL);
    *f = (dpi_new_file){.fd = -1, .target = real ? real : strdup(path)};
    dpi_file_hold_signals(&f->signals);
    if (f->target)
        f->fd = dpi_file_make_beside(f->target, &f->temporary);
    if (f->fd >= 0)
        return true;
    f->temporary = NULL;
    end_new_file(f);
    return false;
}

bool dpi_new_file_close(dpi_new_file *f, bool whole) {
    bool ok = !whole || fsync(f->fd) == 0 || errno == EINVAL; /* not every file can be synced */
    int reason = errno;
    if (close(f->fd) != 0 && ok) {
        reason = errno;
        ok = !whole;
    }
    if (ok && whole && rename(f->temporary, f->target) != 0) {
        reason = errno;
        ok = false;
    }
    if (!ok || !whole)
        unlink(f->temporary);
    else
        (void)dpi_file_sync_names(f->target);
    errno = reason;
    end_new_file(f);
    return ok;
}
