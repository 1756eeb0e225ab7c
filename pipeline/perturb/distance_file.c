/* distance_file.c - the distances of a vocabulary, in memory or in a file that is mapped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/system.h"
#include "dp/local/local.h"
#include "pipeline/perturb/vocabulary.h"

/* The first bytes of the file; distances [n, n] as uint32 in the machine's order follow. */
typedef struct header {
    char magic[16];
    uint64_t hash; /* of words and vectors */
    uint32_t n, dim;
    uint32_t shift, order; /* DPI_LOCAL_SHIFT, 1 */
    unsigned char unused[24];
} header;

_Static_assert(sizeof(header) == 64, "distances begin at a cache line");

static header header_of(const dpi_vocabulary *v) {
    return (header){
        .magic = "dpinfer-distance",
        .hash = v->hash,
        .n = (uint32_t)v->n,
        .dim = (uint32_t)v->dim,
        .shift = DPI_LOCAL_SHIFT,
        .order = 1,
    };
}

static size_t distance_bytes(const dpi_vocabulary *v) {
    return (size_t)v->n * (size_t)v->n * sizeof *v->distance;
}

static dpi_status cannot(const char *what, const char *path, dpi_error *err) {
    return dpi_fail(err, dpi_status_of_errno(errno), "cannot %s %s: %s", what, path,
                    dpi_reason(errno));
}

static dpi_status check_file(const dpi_vocabulary *v, int fd, const char *path, dpi_error *err) {
    const header expected = header_of(v);
    header found;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return cannot("read", path, err);
    if (!S_ISREG(st.st_mode))
        return dpi_fail(err, DPI_STATUS_IO, "cannot read %s: it is not a regular file", path);
    const ssize_t n = pread(fd, &found, sizeof found, 0);
    if (n < 0)
        return cannot("read", path, err);
    if ((size_t)n < sizeof found || memcmp(found.magic, expected.magic, sizeof found.magic) != 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is no file of distances", path);
    if (memcmp(&found, &expected, sizeof found) != 0)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s has the distances of other words or vectors: name "
                        "another file, or delete it",
                        path);
    if ((uint64_t)st.st_size != sizeof found + distance_bytes(v))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s has %lld bytes, must have %zu: delete it", path,
                        (long long)st.st_size, sizeof found + distance_bytes(v));
    return DPI_STATUS_OK;
}

static dpi_status map_file(dpi_vocabulary *v, int fd, const char *path, dpi_error *err) {
    DPI_TRY(check_file(v, fd, path, err));
    const size_t n_bytes = sizeof(header) + distance_bytes(v);
    void *map = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return cannot("map", path, err);
    v->mapped = map;
    v->mapped_bytes = n_bytes;
    v->distance = (uint32_t *)((char *)map + sizeof(header));
    return DPI_STATUS_OK;
}

/* In the folder of `path`; -1 where the file system has none. */
static int open_nameless(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const int fd = folder ? dpi_system_open_nameless(folder) : -1;
    free(folder);
    return fd;
}

static bool write_distances(const dpi_vocabulary *v, int fd) {
    const header first = header_of(v);
    return dpi_file_write(fd, &first, sizeof first) &&
           dpi_file_write(fd, v->distance, distance_bytes(v)) && fsync(fd) == 0 &&
           fchmod(fd, 0644) == 0;
}

/* By way of a temporary file beside it. */
static dpi_status store_by_renaming(const dpi_vocabulary *v, const char *path, dpi_error *err) {
    dpi_new_file file;
    if (!dpi_new_file_open(&file, path))
        return cannot("write", path, err);
    const bool whole = write_distances(v, file.fd);
    const int reason = errno;
    const bool closed = dpi_new_file_close(&file, whole);
    if (!whole)
        errno = reason;
    return whole && closed ? DPI_STATUS_OK : cannot("write", path, err);
}

/* The file appears when it is whole. */
static dpi_status store_file(const dpi_vocabulary *v, const char *path, dpi_error *err) {
    const int fd = open_nameless(path);
    if (fd < 0)
        return store_by_renaming(v, path, err);
    dpi_status status = write_distances(v, fd) ? DPI_STATUS_OK : cannot("write", path, err);
    const bool named = status == DPI_STATUS_OK && dpi_system_name_file(fd, path);
    close(fd);
    /* Without /proc it has no name yet. */
    return status == DPI_STATUS_OK && !named ? store_by_renaming(v, path, err) : status;
}

static dpi_status measure(dpi_vocabulary *v, int32_t n_threads, dpi_error *err) {
    const size_t n = (size_t)v->n;
    uint32_t *distance = dpi_calloc(n * n, sizeof *distance);
    if (!distance)
        return dpi_no_memory(err, "the distances of %zu words, %zu MB", n, distance_bytes(v) >> 20);
    const dpi_status status =
        dpi_local_distances(v->vectors, v->n, v->dim, n_threads, distance, err);
    if (status != DPI_STATUS_OK)
        free(distance);
    else
        v->distance = distance;
    return status;
}

dpi_status dpi_vocabulary_measure(dpi_vocabulary *v, const char *cache, int32_t n_threads,
                                  dpi_error *err) {
    if (v->distance)
        return DPI_STATUS_OK;
    if (cache) {
        const int fd = open(cache, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 && errno != ENOENT)
            return cannot("read", cache, err);
        if (fd >= 0) {
            const dpi_status status = map_file(v, fd, cache, err);
            close(fd);
            return status;
        }
    }
    DPI_TRY(measure(v, n_threads, err));
    return cache ? store_file(v, cache, err) : DPI_STATUS_OK;
}
