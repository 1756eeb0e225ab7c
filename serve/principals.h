/* principals.h - who may send requests: names, and SHA-256 hashes of their tokens, and which share
 * of a dataset's budget each has.
 *
 * A line of the file is a name (letters, digits, '.', '_', '-'), white space, the hash in
 * hexadecimal digits, and shares as DATASET=0.25, 0..1, with white space between them. A dataset
 * without a share is bounded by its own budget alone. Empty lines and those that begin with '#' are
 * passed over. Tokens are random and long, so that a hash without salt tells nothing of them. */
#ifndef DPI_SERVE_PRINCIPALS_H
#define DPI_SERVE_PRINCIPALS_H

#include <stdbool.h>
#include <stddef.h>

#include "dpinfer/status.h"

enum { PRINCIPAL_NAME_MAX = 63, PRINCIPALS_MAX = 1024, SHARES_MAX = 8192 };

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
/* The share of a dataset that a principal has, 0..1; -1: none of its own. NULL for p is allowed. */
double principals_share(const principals *p, const char *name, const char *dataset);
/* Each share, in its order: false once there is none with that index. For checks. */
bool principals_share_at(const principals *p, int index, const char **name, const char **dataset);

#endif
