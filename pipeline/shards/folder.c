/* folder.c - see folder.h. */
#include "pipeline/shards/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "base/status.h"
#include "dpinfer/memory.h"

enum { FILE_BYTES_MAX = 1 << 30 };

static dpi_status fail_io(dpi_error *err, const char *what, const char *path) {
    const int reason = errno;
    return dpi_fail(err, reason == EEXIST ? DPI_STATUS_STATE : DPI_STATUS_IO, "cannot %s %s: %s",
                    what, path, dpi_reason(reason));
}

dpi_status dpi_folder_path(const char *folder, const char *name, char **path, dpi_error *err) {
    const int n = name ? asprintf(path, "%s/%s", folder, name) : asprintf(path, "%s", folder);
    return n >= 0 ? DPI_STATUS_OK : dpi_no_memory(err, "a path");
}

dpi_status dpi_folder_make(const char *path, dpi_error *err) {
    const bool made = mkdir(path, 0700) == 0;
    if (!made && errno == EEXIST)
        return dpi_fail(err, DPI_STATUS_STATE, "%s is there already, and a new job makes its own "
                        "folder", path);
    if (!made || !dpi_file_sync_names(path))
        return fail_io(err, "make", path);
    return DPI_STATUS_OK;
}

/* A link appears with the whole file behind it, or fails: on network file systems, too. */
static dpi_status appear(const char *temporary, const char *path, dpi_error *err) {
    if (link(temporary, path) != 0 || !dpi_file_sync_names(path))
        return fail_io(err, "make", path);
    return DPI_STATUS_OK;
}

static dpi_status write_temporary(char *temporary, const char *path, const void *bytes,
                                  size_t n_bytes, dpi_error *err) {
    const int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return fail_io(err, "write", path);
    const bool written = dpi_file_write(fd, bytes, n_bytes) && fsync(fd) == 0;
    dpi_status status = written ? DPI_STATUS_OK : fail_io(err, "write", path);
    if (close(fd) != 0 && status == DPI_STATUS_OK)
        status = fail_io(err, "write", path);
    if (status == DPI_STATUS_OK)
        status = appear(temporary, path, err);
    unlink(temporary);
    return status;
}

dpi_status dpi_folder_write(const char *folder, const char *name, const void *bytes, size_t n_bytes,
                            dpi_error *err) {
    char *path = NULL, *temporary = NULL;
    DPI_TRY(dpi_folder_path(folder, name, &path, err));
    if (asprintf(&temporary, "%s.part-XXXXXX", path) < 0) {
        free(path);
        return dpi_no_memory(err, "a path");
    }
    const dpi_status status = write_temporary(temporary, path, bytes, n_bytes, err);
    free(temporary);
    free(path);
    return status;
}

static dpi_status read_fd(int fd, const char *path, int secret, char **bytes, size_t *n_bytes,
                          dpi_error *err) {
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return fail_io(err, "read", path);
    if (secret && (st.st_mode & 077) != 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s has mode %03o, allowed 600: others can read it", path,
                        (unsigned)st.st_mode & 0777);
    return dpi_private_read(fd, FILE_BYTES_MAX, bytes, n_bytes) ? DPI_STATUS_OK
                                                                : fail_io(err, "read", path);
}

dpi_status dpi_folder_read(const char *folder, const char *name, int secret, char **bytes,
                           size_t *n_bytes, dpi_error *err) {
    char *path;
    DPI_TRY(dpi_folder_path(folder, name, &path, err));
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const dpi_status status = read_fd(fd, path, secret, bytes, n_bytes, err);
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

dpi_status dpi_folder_remove(const char *folder, const char *name, dpi_error *err) {
    char *path;
    DPI_TRY(dpi_folder_path(folder, name, &path, err));
    const bool removed = (unlink(path) == 0 || errno == ENOENT) && dpi_file_sync_names(path);
    const dpi_status status = removed ? DPI_STATUS_OK : fail_io(err, "remove", path);
    free(path);
    return status;
}

dpi_status dpi_folder_sync(const char *folder, const char *name, dpi_error *err) {
    char *path;
    DPI_TRY(dpi_folder_path(folder, name, &path, err));
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool synced = fd >= 0 && fsync(fd) == 0 && dpi_file_sync_names(path);
    const dpi_status status = synced ? DPI_STATUS_OK : fail_io(err, "sync", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}
