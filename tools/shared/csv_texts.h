/* csv_texts.h - texts as rows of a CSV file, RFC 4180: a header row, quoted texts, and lines that
 * end with a carriage return and a line feed. */
#ifndef DPI_CSV_TEXTS_H
#define DPI_CSV_TEXTS_H

#include <stdbool.h>

#include "dpinfer/claim.h"

/* Whether the name of an output says that it is one. */
bool csv_wanted(const char *path);

/* What a row is made of: the columns of all rows of a claim. Each of the three fits into CSV_BYTES.
 *
 *   csv_head  the header row
 *   csv_begin a row up to its text, with the opening quote; label: `n_label` bytes or NULL, quoted
 *             by csv_quote
 *   csv_end   what follows a text, with the closing quote */
enum { CSV_BYTES = 512 };
void csv_head(const dpi_claim *claim, bool labels, char row[CSV_BYTES]);
void csv_end(const dpi_claim *claim, int32_t n_tokens, bool ended, char row[CSV_BYTES]);
/* In private memory; NULL: out of memory. */
char *csv_begin(int32_t index, const char *label, size_t n_label, size_t *n_bytes);

/* Part of a text as it stands between quotes, with the quotes in it doubled: private memory, NULL
 * if out of memory. */
char *csv_quote(const char *text, size_t n_bytes, size_t *n_quoted);

#endif
