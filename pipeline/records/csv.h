/* csv.h - one column of a CSV file, and the list that its fields go to. Internal.
 *
 * All of it is private memory: fields are records. */
#ifndef DPI_CSV_H
#define DPI_CSV_H

#include <stdbool.h>

#include "dpinfer/status.h"

/* A piece of private memory, data NULL: none, and n_bytes says why. */
enum { DPI_SPAN_ABSENT, DPI_SPAN_MALFORMED };

typedef struct dpi_span {
    char *data;
    size_t n_bytes;
} dpi_span;

typedef struct dpi_spans {
    dpi_span *at; /* [n] */
    size_t n, capacity;
} dpi_spans;

/* A copy in private memory with a NUL behind it; NULL if out of memory. */
char *dpi_span_copy(const char *data, size_t n_bytes);
/* Each appends; false if out of memory. */
bool dpi_spans_add(dpi_spans *spans, dpi_span span);
bool dpi_spans_copy(dpi_spans *spans, const char *data, size_t n_bytes);
/* Wipes; with_data: what they point to as well. */
void dpi_spans_free(dpi_spans *spans, bool with_data);

/* What is read: columns by their names in the header row, each to a list of its own. */
typedef struct dpi_csv_column {
    const char *name;
    const char *option; /* that names it, for messages */
    dpi_spans *spans;
} dpi_csv_column;

enum { DPI_CSV_COLUMNS_MAX = 10 };

/* Appends n_columns (1..10) columns, row by row (RFC 4180). Where a row does not have one, it is
 * none there, absent. So is a blank line in all; and a row in which a quote is out of place or
 * never closed, malformed: null in their place. Such a row is one line. Time and memory are linear
 * in n_bytes. `name` is the file's, for messages.
 * Errors: FORMAT (no such column, a quote in the header row that is out of place), MEMORY. */
dpi_status dpi_csv_read(const char *name, const char *content, size_t n_bytes, char delimiter,
                        const dpi_csv_column *columns, int32_t n_columns, dpi_error *err);

#endif
