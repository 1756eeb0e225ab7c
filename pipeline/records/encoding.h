/* encoding.h - texts of other encodings as UTF-8. Internal; private memory. */
#ifndef DPI_ENCODING_H
#define DPI_ENCODING_H

#include <stddef.h>

#include "dpinfer/status.h"

/* Replaces *text [*n_bytes], which is of that encoding (a dpi_encoding), by the same as UTF-8, with
 * a NUL behind it. What is not of the encoding becomes the byte 0xFF, which no UTF-8 has: whoever
 * reads it there sees that. On failure *text is as it was. `name` is the file's, for messages.
 * Errors: FORMAT (UTF-16 without a mark that says which), MEMORY. */
dpi_status dpi_encoding_convert(int32_t encoding, const char *name, char **text, size_t *n_bytes,
                                dpi_error *err);

#endif
