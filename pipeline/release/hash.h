/* hash.h - SHA-256 of files, read in pieces. Internal. */
#ifndef DPI_RELEASE_HASH_H
#define DPI_RELEASE_HASH_H

#include <jansson.h>
#include <stdbool.h>

#include "dpinfer/model.h"
#include "pipeline/journal/digest.h"

/* SHA-256 of what is in the file, in lower-case hex, and its size. False on failure, with errno. */
bool dpi_hash_file(const char *path, char hex[DPI_DIGEST_HEX + 1], int64_t *n_bytes);

/* Files of the model: the number in split.count, 1 without it. */
int64_t dpi_hash_count_files(const dpi_model *model);

/* The files of a model that is opened by `path`, in order, as [{"n_bytes":, "sha256":}]: one, or
 * n_files parts beside each other, whose names end in -00001-of-0000N.gguf. *files is the caller's.
 * Errors: IO (also for a name that has no such end), MEMORY. */
dpi_status dpi_hash_model(const char *path, int64_t n_files, json_t **files, dpi_error *err);

/* {"n_bytes":, "sha256":} of one file. The same errors. */
dpi_status dpi_hash_one(const char *path, json_t **file, dpi_error *err);
/* Whether it has that form, and no other key. */
bool dpi_hash_is_file(const json_t *file);

#endif
