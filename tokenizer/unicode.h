/* unicode.h - what words need to know of characters. Internal.
 * Source: the Unicode Character Database, version 16 (scripts/unicode-tables). */
#ifndef DPI_UNICODE_H
#define DPI_UNICODE_H

#include <stdbool.h>

#include "dpinfer/status.h"

/* By general category; LONG_S is U+017F, which equals s where case does not count, LATER_NUMBER a
 * number that is new in Unicode 17, SPACE the property White_Space. */
typedef enum dpi_char_class {
    DPI_CHAR_OTHER, /* control, format, private, unassigned */
    DPI_CHAR_UPPER, /* and title case */
    DPI_CHAR_LOWER,
    DPI_CHAR_LONG_S,
    DPI_CHAR_LETTER, /* without case */
    DPI_CHAR_MARK,
    DPI_CHAR_NUMBER,
    DPI_CHAR_LATER_NUMBER,
    DPI_CHAR_PUNCTUATION,
    DPI_CHAR_SYMBOL,
    DPI_CHAR_SPACE,
} dpi_char_class;

/* Of a code point from U+0080 on. */
dpi_char_class dpi_char_class_of(uint32_t code);
/* The first code point of whole UTF-8 sequences, and its bytes. */
uint32_t dpi_char_next(const char *text, size_t *n_bytes);
/* Bytes of the white space that begins a text of n_bytes, 0 if none does: White_Space and U+001C to
 * U+001F, as Python's strip() has it. */
size_t dpi_space_bytes(const char *text, size_t n_bytes);
/* Takes it off both ends or the end alone. What is not UTF-8 stays. */
void dpi_trim_end(const char *text, size_t *n_bytes);
void dpi_trim(const char **text, size_t *n_bytes);

/* The text (whole UTF-8 sequences) in NFC, by the tables of Unicode 9, which tokenizers have: at
 * most 3 * n_bytes bytes in *out, to be freed by dpi_wipe_free. *out NULL: the text itself. Time is
 * n_bytes log n_bytes. Errors: MEMORY. */
dpi_status dpi_nfc(const char *text, size_t n_bytes, char **out, size_t *n_out, dpi_error *err);

#endif
