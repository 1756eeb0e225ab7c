/* values.h - what a schema says in JSON: its values as text, its pointers. Internal. */
#ifndef DPI_SCHEMA_VALUES_H
#define DPI_SCHEMA_VALUES_H

#include <jansson.h>
#include <stdbool.h>

/* An integer: 1, and 1.0, which JSON Schema says is the same. */
bool dpi_schema_is_whole(const json_t *value);
/* The value as it is written, with 1.0 as 1; the caller frees it. NULL: no memory. */
char *dpi_schema_text(json_t *value);
/* What a JSON pointer (RFC 6901) is of, "#" or "#/$defs/NAME"; it is changed. NULL: of nothing. */
const json_t *dpi_schema_find(const json_t *root, char *pointer);

#endif
