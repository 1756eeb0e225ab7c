#include "train/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

enum { N_ARRAYS = 3 };

typedef struct header {
    char magic[8];
    uint64_t version;
    dpi_checkpoint state;
    uint64_t checksum; /* of what is above, and of the arrays */
} header;

static const char magic[8] = "dpitrain";
enum { VERSION = 1 };

static size_t array_bytes(const dpi_checkpoint *state) {
    return (size_t)state->n_params * sizeof(float);
}

static uint64_t checksum(const header *h, const float *const arrays[N_ARRAYS]) {
    uint64_t hash = dpi_hash(DPI_HASH_INIT, h, offsetof(header, checksum));
    for (int i = 0; i < N_ARRAYS; i++)
        hash = dpi_hash(hash, arrays[i], array_bytes(&h->state));
    return hash;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool write_file(const char *path, const header *h, const float *const arrays[N_ARRAYS]) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool ok = dpi_file_write(fd, h, sizeof *h);
    for (int i = 0; i < N_ARRAYS; i++)
        ok = ok && dpi_file_write(fd, arrays[i], array_bytes(&h->state));
    ok = ok && fsync(fd) == 0;
    int reason = errno;
    if (close(fd) != 0 && ok)
        return false;
    errno = reason;
    return ok;
}

dpi_status dpi_checkpoint_write(const char *path, const dpi_checkpoint *state,
                                const float *const arrays[N_ARRAYS], dpi_error *err) {
    header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, magic, sizeof magic);
    h.version = VERSION;
    h.state = *state;
    h.checksum = checksum(&h, arrays);
    size_t n = strlen(path) + sizeof ".new";
    char *fresh = malloc(n);
    if (!fresh)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a file name");
    snprintf(fresh, n, "%s.new", path);
    bool ok = write_file(fresh, &h, arrays) && rename(fresh, path) == 0;
    int reason = errno;
    if (ok)
        (void)dpi_file_sync_names(path);
    else
        unlink(fresh);
    free(fresh);
    return ok ? DPI_STATUS_OK
              : dpi_fail(err, dpi_status_of_errno(reason), "cannot write %s: %s", path,
                         strerror(reason));
}

/* ---- Reading --------------------------------------------------------------------------------- */

static dpi_status check_header(const char *path, const header *h, const dpi_checkpoint *expected,
                               uint64_t n_bytes, dpi_error *err) {
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is not a checkpoint", path);
    if (h->version != VERSION)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s has version %llu, must be %d", path,
                        (unsigned long long)h->version, VERSION);
    if (h->state.config_hash != expected->config_hash || h->state.n_params != expected->n_params)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is of a run with another configuration; only steps, epochs, threads, "
                        "paths and intervals may change",
                        path);
    if (h->state.data_hash != expected->data_hash)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is of a run on other data or another vocabulary", path);
    uint64_t wanted = sizeof *h + N_ARRAYS * (uint64_t)array_bytes(expected);
    if (n_bytes != wanted)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s has %llu bytes, must have %llu", path,
                        (unsigned long long)n_bytes, (unsigned long long)wanted);
    return DPI_STATUS_OK;
}

static dpi_status read_file(const char *path, FILE *file, dpi_checkpoint *state,
                            float *const arrays[N_ARRAYS], dpi_error *err) {
    header h;
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        return dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", path,
                        strerror(errno));
    if (fread(&h, sizeof h, 1, file) != 1)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s has %lld bytes, a checkpoint has more", path,
                        (long long)info.st_size);
    DPI_TRY(check_header(path, &h, state, (uint64_t)info.st_size, err));
    for (int i = 0; i < N_ARRAYS; i++)
        if (fread(arrays[i], array_bytes(state), 1, file) != 1)
            return dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", path,
                            strerror(errno));
    if (checksum(&h, (const float *const *)arrays) != h.checksum || h.state.step < 0 ||
        h.state.epoch < 0 || h.state.row < 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is damaged: its checksum is wrong", path);
    *state = h.state;
    return DPI_STATUS_OK;
}

dpi_status dpi_checkpoint_read(const char *path, dpi_checkpoint *state,
                               float *const arrays[N_ARRAYS], int32_t *found, dpi_error *err) {
    FILE *file = fopen(path, "re");
    *found = file != NULL;
    if (!file && errno == ENOENT)
        return DPI_STATUS_OK;
    if (!file)
        return dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", path,
                        strerror(errno));
    dpi_status status = read_file(path, file, state, arrays, err);
    fclose(file);
    return status;
}
