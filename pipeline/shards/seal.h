/* seal.h - keyed digests of what a job is: HMAC-SHA-256 under its key. Whoever does not have the
 * key learns nothing from them and cannot make them. Internal. */
#ifndef DPI_SHARDS_SEAL_H
#define DPI_SHARDS_SEAL_H

#include <jansson.h>
#include <stdbool.h>

#include "pipeline/journal/digest.h"
#include "pipeline/release/plan.h"

/* Of bytes. `purpose` keeps digests of different things apart. */
void dpi_seal_bytes(const uint8_t *key, const char *purpose, const void *bytes, size_t n_bytes,
                    char hex[DPI_DIGEST_HEX + 1]);
/* Of everything that the prompts of a release and its caches depend on but the records. Errors:
 * those of dpi_prompts_encode. */
dpi_status dpi_seal_prompts(const uint8_t *key, const dpi_plan *plan,
                            char hex[DPI_DIGEST_HEX + 1], dpi_error *err);
/* Of all records and the units that they are of, in their order. PRIVATE without the key. Errors:
 * those of dpi_records_read, CANCELLED. */
dpi_status dpi_seal_records(const uint8_t *key, const dpi_plan *plan,
                            char hex[DPI_DIGEST_HEX + 1], dpi_error *err);

/* Adds "seal" to an object, and says whether the one that it has is right. */
bool dpi_seal_json(const uint8_t *key, json_t *object);
bool dpi_seal_json_holds(const uint8_t *key, json_t *object);

#endif
