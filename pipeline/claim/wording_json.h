/* wording_json.h - a wording as a JSON object, written in one way, and its hash. Internal. */
#ifndef DPI_CLAIM_WORDING_JSON_H
#define DPI_CLAIM_WORDING_JSON_H

#include <jansson.h>

#include "dpinfer/claim.h"
#include "dpinfer/wording.h"

/* Null for a default one. NULL if out of memory. */
json_t *dpi_wording_json(const dpi_wording *wording);
/* The SHA-256 of the bytes of that object, in hexadecimal; "" for a default one. Errors: MEMORY. */
dpi_status dpi_wording_digest(const dpi_wording *wording, char hex[DPI_DIGEST_HEX + 1],
                              dpi_error *err);
/* The object back, of a file that comes from anywhere: *wording is the caller's, NULL for null.
 * Errors: FORMAT (a key that is missing, not known, of another type or out of range, by its name),
 * MEMORY. */
dpi_status dpi_wording_of_json(const json_t *object, dpi_wording **wording, dpi_error *err);

#endif
