/* compare.h - what a file says of a run against what follows from it, value by value. Internal. */
#ifndef DPI_CLAIM_COMPARE_H
#define DPI_CLAIM_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

#include "dpinfer/report.h"

/* What is known of a path, "realised.K" or "model.files[0].sha256". */
typedef struct dpi_compare_rules {
    /* It is believed, as nothing computes it. */
    bool (*is_given)(const dpi_verification *result, const char *path);
} dpi_compare_rules;

/* Adds a field for each value of one of the two, in the order of `computed`, which holds what was
 * read of `recorded` and all that follows. Errors: MEMORY; the result is freed. */
dpi_status dpi_compare(const json_t *recorded, const json_t *computed,
                       const dpi_compare_rules *rules, dpi_verification *result, dpi_error *err);

/* A field of one more check, with words of what was found and of what is needed. Errors: MEMORY;
 * the result is freed. */
dpi_status dpi_compare_add(dpi_verification *result, const char *path, int32_t verdict,
                           const char *found, const char *needed, dpi_error *err);

#endif
