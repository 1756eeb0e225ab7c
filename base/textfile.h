/* textfile.h - the rule of dpinfer/textfile.h for a part of a file. Internal. */
#ifndef DPI_BASE_TEXTFILE_H
#define DPI_BASE_TEXTFILE_H

#include "dpinfer/textfile.h"

/* FORMAT if the bytes [n_bytes] have a NUL or are not UTF-8, with the offset in them. */
dpi_status dpi_textfile_refuse(const char *name, const char *text, size_t n_bytes, dpi_error *err);

/* Bytes of the byte order mark that a text begins with: 3 or 0. */
size_t dpi_textfile_mark(const char *text, size_t n_bytes);

#endif
