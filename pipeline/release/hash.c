/* hash.c - see hash.h. SHA-256 is nettle's, which uses the processor's instructions for it. */
#include "pipeline/release/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/status.h"

/* All of fd into the digest; the number of bytes, or -1 with errno. */
static int64_t digest_fd(int fd, struct sha256_ctx *digest) {
    enum { PIECE = 1 << 20 };
    uint8_t *piece = malloc(PIECE);
    int64_t n_bytes = 0;
    ssize_t n = piece ? 1 : -1;
    while (n > 0) {
        n = read(fd, piece, PIECE);
        if (n < 0 && errno == EINTR) {
            n = 1;
            continue;
        }
        if (n > 0)
            sha256_update(digest, (size_t)n, piece);
        n_bytes += n;
    }
    int reason = errno;
    free(piece);
    errno = reason;
    return n < 0 ? -1 : n_bytes;
}

bool dpi_hash_file(const char *path, char hex[DPI_DIGEST_HEX + 1], int64_t *n_bytes) {
    struct sha256_ctx digest;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    sha256_init(&digest);
    int64_t n = fstat(fd, &st) != 0 ? -1 : 0;
    if (n == 0 && !S_ISREG(st.st_mode)) { /* it may have no end */
        errno = S_ISDIR(st.st_mode) ? EISDIR : ENODEV;
        n = -1;
    }
    if (n == 0)
        n = digest_fd(fd, &digest);
    int reason = errno;
    close(fd);
    errno = reason;
    if (n < 0)
        return false;
    dpi_digest_end(&digest, hex);
    *n_bytes = n;
    return true;
}

int64_t dpi_hash_count_files(const dpi_model *model) {
    const char *key, *type;
    char value[32];
    for (int64_t i = 0; i < dpi_model_metadata_count(model); i++)
        if (dpi_model_metadata_get(model, i, &key, &type, value, sizeof value, NULL) ==
                DPI_STATUS_OK && strcmp(key, "split.count") == 0)
            return strtoll(value, NULL, 10);
    return 1;
}

/* What the names of n_files parts end in, from part i = 1 on. */
static void part_suffix(int64_t i, int64_t n_files, char suffix[64]) {
    snprintf(suffix, 64, "-%05" PRId64 "-of-%05" PRId64 ".gguf", i, n_files);
}

dpi_status dpi_hash_one(const char *path, json_t **file, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1];
    int64_t n_bytes;
    if (!dpi_hash_file(path, hex, &n_bytes))
        return dpi_fail(err, dpi_status_of_errno(errno), "cannot read %s: %s", path,
                        dpi_reason(errno));
    *file = json_pack("{s:I, s:s}", "n_bytes", (json_int_t)n_bytes, "sha256", hex);
    return *file ? DPI_STATUS_OK : dpi_no_memory(err, "the hashes of the model");
}

bool dpi_hash_is_file(const json_t *file) {
    const json_t *n_bytes = json_object_get(file, "n_bytes");
    const char *hex = json_string_value(json_object_get(file, "sha256"));
    return json_is_integer(n_bytes) && json_integer_value(n_bytes) > 0 &&
           dpi_is_hex(hex, DPI_DIGEST_HEX) && json_object_size(file) == 2;
}

static dpi_status hash_part(const char *path, json_t *files, dpi_error *err) {
    json_t *file;
    DPI_TRY(dpi_hash_one(path, &file, err));
    return json_array_append_new(files, file) == 0 ? DPI_STATUS_OK
                                                   : dpi_no_memory(err, "the hashes of the model");
}

static dpi_status hash_parts(const char *path, int64_t n_files, json_t *files, dpi_error *err) {
    char suffix[64];
    part_suffix(1, n_files, suffix);
    size_t n = strlen(path), n_suffix = strlen(suffix);
    if (n < n_suffix || strcmp(path + n - n_suffix, suffix) != 0)
        return dpi_fail(err, DPI_STATUS_IO, "%s: the model has %" PRId64 " files, so the name of "
                                            "the first must end in %s", path, n_files, suffix);
    dpi_status status = DPI_STATUS_OK;
    for (int64_t i = 1; i <= n_files && status == DPI_STATUS_OK; i++) {
        char *part;
        part_suffix(i, n_files, suffix);
        if (asprintf(&part, "%.*s%s", (int)(n - n_suffix), path, suffix) < 0)
            return dpi_no_memory(err, "the hashes of the model");
        status = hash_part(part, files, err);
        free(part);
    }
    return status;
}

dpi_status dpi_hash_model(const char *path, int64_t n_files, json_t **files, dpi_error *err) {
    json_t *made = json_array();
    if (!made)
        return dpi_no_memory(err, "the hashes of the model");
    dpi_status status =
        n_files <= 1 ? hash_part(path, made, err) : hash_parts(path, n_files, made, err);
    if (status == DPI_STATUS_OK)
        *files = made;
    else
        json_decref(made);
    return status;
}
