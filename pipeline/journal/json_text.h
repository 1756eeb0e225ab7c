/* json_text.h - JSON as text, in memory of malloc. Internal. */
#ifndef DPI_JOURNAL_JSON_TEXT_H
#define DPI_JOURNAL_JSON_TEXT_H

#include <jansson.h>

/* A JSON value as text, which the caller frees with free; jansson's own memory belongs to whoever
 * has set its allocators. NULL if out of memory. */
char *dpi_json_text(const json_t *value, size_t flags, size_t *n_bytes);

#endif
