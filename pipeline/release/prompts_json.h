/* prompts_json.h - the prompts of a release as a JSON object, written in one way: what its digest
 * in the claim is made of, and what a report shows. Internal. */
#ifndef DPI_RELEASE_PROMPTS_JSON_H
#define DPI_RELEASE_PROMPTS_JSON_H

#include <jansson.h>

#include "pipeline/release/plan.h"

/* Errors: those of dpi_prompts_create, but for lengths; MEMORY. */
dpi_status dpi_plan_prompts_json(const dpi_plan *plan, json_t **object, dpi_error *err);

#endif
