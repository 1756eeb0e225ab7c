/* job_files.c - whole files of a job, and writes into the file of its tokens. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/status.h"
#include "base/system.h"
#include "dpinfer/memory.h"
#include "pipeline/journal/journal.h"

dpi_status dpi_journal_fail(const dpi_journal *j, const char *what, const char *name,
                            dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_IO, "cannot %s %s/%s: %s", what, j->folder, name,
                    dpi_reason(errno));
}

bool dpi_journal_write(int fd, const void *data, size_t n_bytes, int64_t offset) {
    const uint8_t *at = data;
    while (n_bytes > 0) {
        const ssize_t n = pwrite(fd, at, n_bytes, offset);
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0) {
            errno = EIO;
            return false;
        }
        if (n > 0) {
            at += n;
            offset += n;
            n_bytes -= (size_t)n;
        }
    }
    return true;
}

/* The zeros are on the disk, with the file's size, before a record is written among them. */
bool dpi_journal_make_room(dpi_journal *j) {
    static const uint8_t zeros[DPI_JOURNAL_GROW];
    if (j->n_records + 2 <= j->n_room)
        return true;
    const int64_t end = DPI_JOURNAL_HEADER + j->n_room * DPI_JOURNAL_RECORD;
    if (!dpi_journal_write(j->fd, zeros, sizeof zeros, end) || !dpi_system_sync(j->fd))
        return false;
    j->n_room += DPI_JOURNAL_GROW / DPI_JOURNAL_RECORD;
    return true;
}

/* ---- Whole files ----------------------------------------------------------------------------- */

static bool write_temporary(const dpi_journal *j, const char *name, const void *data, size_t n) {
    const int fd =
        openat(j->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    const bool ok = dpi_journal_write(fd, data, n, 0) && fsync(fd) == 0;
    const int reason = errno;
    const bool closed = close(fd) == 0;
    errno = ok ? errno : reason;
    return ok && closed;
}

dpi_status dpi_journal_write_file(const dpi_journal *j, const char *name, const void *data,
                                  size_t n_bytes, dpi_error *err) {
    char temporary[80];
    snprintf(temporary, sizeof temporary, "%s.new", name);
    if (!write_temporary(j, temporary, data, n_bytes) ||
        renameat(j->dir, temporary, j->dir, name) != 0 || fsync(j->dir) != 0)
        return dpi_journal_fail(j, "write", name, err);
    return DPI_STATUS_OK;
}

static dpi_status read_open(const dpi_journal *j, const char *name, int fd, char **data,
                            size_t *n_bytes, dpi_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return dpi_journal_fail(j, "read", name, err);
    if (!S_ISREG(st.st_mode))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s/%s is no regular file", j->folder, name);
    const size_t size = (size_t)st.st_size;
    char *text = dpi_private_malloc(size + 1);
    if (!text)
        return dpi_no_memory(err, "a job");
    size_t n = 0;
    ssize_t got = 1;
    while (n < size && got != 0) {
        got = pread(fd, text + n, size - n, (off_t)n);
        if (got < 0 && errno != EINTR) {
            dpi_private_free(text);
            return dpi_journal_fail(j, "read", name, err);
        }
        n += got > 0 ? (size_t)got : 0;
    }
    text[n] = '\0';
    *data = text;
    *n_bytes = n;
    return DPI_STATUS_OK;
}

dpi_status dpi_journal_read_file(const dpi_journal *j, const char *name, char **data,
                                 size_t *n_bytes, dpi_error *err) {
    const int fd = openat(j->dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    *data = NULL;
    *n_bytes = 0;
    if (fd < 0)
        return errno == ENOENT ? DPI_STATUS_OK : dpi_journal_fail(j, "read", name, err);
    const dpi_status status = read_open(j, name, fd, data, n_bytes, err);
    close(fd);
    return status;
}
