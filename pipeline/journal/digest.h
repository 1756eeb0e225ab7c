/* digest.h - a SHA-256 as DPI_DIGEST_HEX hexadecimal digits. Internal. */
#ifndef DPI_JOURNAL_DIGEST_H
#define DPI_JOURNAL_DIGEST_H

#include <nettle/sha2.h>
#include <stddef.h>

#include "dpinfer/run.h"

/* Of n bytes. */
void dpi_digest(const void *bytes, size_t n, char hex[DPI_DIGEST_HEX + 1]);
/* Of all that a hash was given; it is as new then. */
void dpi_digest_end(struct sha256_ctx *hash, char hex[DPI_DIGEST_HEX + 1]);

#endif
