/* gzip.h - what a .gz file holds. Internal.
 *
 * The whole of it is counted before memory is taken for it, so that a small file that would be
 * very large is refused at the price of a little time. All of it is private memory, also that of
 * zlib. */
#ifndef DPI_GZIP_H
#define DPI_GZIP_H

#include <stddef.h>

#include "dpinfer/status.h"

/* Replaces *data [*n_bytes], a gzip file (RFC 1952) of one or more members, perhaps with zero bytes
 * behind them, by what it holds, with a NUL behind it. On failure *data is as it was. `name` is the
 * file's, for messages.
 * Errors: FORMAT (no gzip file; cut short; a checksum that does not hold; it holds more than `most`
 * bytes), MEMORY. */
dpi_status dpi_gzip_expand(const char *name, size_t most, char **data, size_t *n_bytes,
                           dpi_error *err);

#endif
