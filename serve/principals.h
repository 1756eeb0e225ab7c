/* principals.h - who may send requests: names, and SHA-256 hashes of their tokens.
 *
 * A line of the file is a name (letters, digits, '.', '_', '-'), white space, and the hash in
 * hexadecimal digits; empty lines and those that begin with '#' are passed over. Tokens are random
 * and long, so that a hash without salt tells nothing of them. */
#ifndef DPI_SERVE_PRINCIPALS_H
#define DPI_SERVE_PRINCIPALS_H

#include <stddef.h>

#include "dpinfer/status.h"

enum { PRINCIPAL_NAME_MAX = 63, PRINCIPALS_MAX = 1024 };

typedef struct principals principals;

/* From the bytes of a file; `name` is the file's, for messages, which show no line of it.
 * Errors: FORMAT (a line; a name or a hash that is there twice; no line at all), LIMIT, MEMORY. */
dpi_status principals_parse(const char *name, const char *text, size_t n_bytes, principals **p,
                            dpi_error *err);
/* NULL is allowed. */
void principals_free(principals *p);

/* The name that goes with the value of an Authorization field ("Bearer TOKEN"), the principals';
 * NULL: none. Time depends on the length of the value and the number of principals alone. */
const char *principals_find(const principals *p, const char *authorization);

#endif
