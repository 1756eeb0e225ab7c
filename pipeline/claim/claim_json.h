/* claim_json.h - a claim as a JSON object: what it says, and what follows from it. Internal. */
#ifndef DPI_CLAIM_CLAIM_JSON_H
#define DPI_CLAIM_CLAIM_JSON_H

#include <jansson.h>

#include "dpinfer/claim.h"

/* What it says. NULL if out of memory. */
json_t *dpi_claim_json(const dpi_claim *claim);
/* What follows from it. NULL if out of memory. */
json_t *dpi_claim_follows(const dpi_claim *claim);
/* The first back, settled. Errors: those of dpi_claim_read. */
dpi_status dpi_claim_of_json(const json_t *object, dpi_claim *claim, dpi_error *err);

/* SHA-256 of a JSON value's bytes, as claims are written, in hexadecimal; "" of null.
 * Errors: MEMORY (also for NULL). */
dpi_status dpi_json_digest(const json_t *value, char hex[DPI_DIGEST_HEX + 1], dpi_error *err);

/* What neighbours are, for people. Static. */
const char *dpi_claim_meaning(const dpi_claim *claim);

#endif
