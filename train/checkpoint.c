#include "train/checkpoint.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
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
    dpi_new_file f;
    if (!dpi_new_file_open(&f, path))
        return false;
    bool ok = dpi_file_write(f.fd, h, sizeof *h);
    for (int i = 0; i < N_ARRAYS; i++)
        ok = ok && dpi_file_write(f.fd, arrays[i], array_bytes(&h->state));
    const int reason = errno;
    const bool closed = dpi_new_file_close(&f, ok);
    if (!ok)
        errno = reason;
    return ok && closed;
}

dpi_status dpi_checkpoint_write(const char *path, const dpi_checkpoint *state,
                                const float *const arrays[N_ARRAYS], dpi_error *err) {
    header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, magic, sizeof magic);
    h.version = VERSION;
    h.state = *state;
    h.checksum = checksum(&h, arrays);
    return write_file(path, &h, arrays)
               ? DPI_STATUS_OK
               : dpi_fail(err, dpi_status_of_errno(errno), "cannot write %s: %s", path,
                          dpi_reason(errno));
}

/* ---- Reading --------------------------------------------------------------------------------- */

static dpi_status check_header(const char *path, const header *h, const dpi_checkpoint *expected,
                               const char *may_change, uint64_t n_bytes, dpi_error *err) {
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is not a checkpoint", path);
    if (h->version != VERSION)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s has version %llu, must be %d", path,
                        (unsigned long long)h->version, VERSION);
    if (h->state.config_hash != expected->config_hash || h->state.n_params != expected->n_params)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is of a run with another configuration; only %s, paths and intervals "
                        "may change", path, may_change);
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
                            float *const arrays[N_ARRAYS], const char *may_change, dpi_error *err) {
    header h;
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        return dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", path,
                        dpi_reason(errno));
    if (fread(&h, sizeof h, 1, file) != 1)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s has %lld bytes, a checkpoint has more", path,
                        (long long)info.st_size);
    DPI_TRY(check_header(path, &h, state, may_change, (uint64_t)info.st_size, err));
    for (int i = 0; i < N_ARRAYS; i++)
        if (fread(arrays[i], array_bytes(state), 1, file) != 1)
            return dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", path,
                            dpi_reason(errno));
    if (checksum(&h, (const float *const *)arrays) != h.checksum || h.state.step < 0 ||
        h.state.epoch < 0 || h.state.row < 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is damaged: its checksum is wrong", path);
    *state = h.state;
    return DPI_STATUS_OK;
}

dpi_status dpi_checkpoint_read(const char *path, dpi_checkpoint *state,
                               float *const arrays[N_ARRAYS], const char *may_change,
                               int32_t *found, dpi_error *err) {
    FILE *file;
    *found = access(path, F_OK) == 0 || errno != ENOENT;
    if (!*found)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_file_open(path, &file, err));
    dpi_status status = read_file(path, file, state, arrays, may_change, err);
    fclose(file);
    return status;
}
