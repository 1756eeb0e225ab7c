/* hash.h - SHA-256 of files, read in pieces. */
#ifndef DPI_HASH_H
#define DPI_HASH_H

#include <jansson.h>

#include "tools/cli.h"

enum { HASH_HEX = 64 };

/* SHA-256 of what is in the file, in lower-case hex, and its size. False on failure, with errno. */
bool hash_file(const char *path, char hex[HASH_HEX + 1], int64_t *n_bytes);

/* The files of a model that is opened by `path`, in order, as [{"n_bytes":, "sha256":}]: one, or
 * n_files parts beside each other, whose names end in -00001-of-0000N.gguf. CLI_OK, or an exit code
 * with a message. */
int hash_model(const char *path, int64_t n_files, json_t **files);

#endif
