/* compare.h - what a file says of a run against what follows from it, value by value. Internal. */
#ifndef DPI_CLAIM_COMPARE_H
#define DPI_CLAIM_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

#include "dpinfer/report.h"

enum { DPI_JSON_PATH_MAX = 160 };

/* What is known of a path, "follows.mechanisms[0].K" or "model.files[0].sha256". */
typedef struct dpi_compare_rules {
    /* It is believed, as nothing computes it. */
    bool (*is_given)(const dpi_verification *result, const char *path);
} dpi_compare_rules;

/* Adds a field for each value of one of the two, in the order of `computed`, which holds what was
 * read of `recorded` and all that follows. Errors: MEMORY; the result is freed. */
dpi_status dpi_compare(const json_t *recorded, const json_t *computed,
                       const dpi_compare_rules *rules, dpi_verification *result, dpi_error *err);

/* Finds the first value of `now`, in its order, that is another one in `before`; one that only one
 * of two objects has is a difference, too. What a plan may have found from other values, such as
 * the pace, comes after all others. Gives both values, NULL for one that is not there, and where
 * they are in `path`, "data.M" or "mechanisms[0].T". False: there is none. */
bool dpi_json_difference(const json_t *before, const json_t *now, char path[DPI_JSON_PATH_MAX],
                         const json_t *values[2]);

/* A field of one more check, with words of what was found and of what is needed. Errors: MEMORY;
 * the result is freed. */
dpi_status dpi_compare_add(dpi_verification *result, const char *path, int32_t verdict,
                           const char *found, const char *needed, dpi_error *err);

#endif
