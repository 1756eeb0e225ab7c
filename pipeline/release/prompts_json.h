/* prompts_json.h - the prompts of a release as JSON, written in one way: what their hash in the
 * claim is made of, and what a report shows. Internal. */
#ifndef DPI_RELEASE_PROMPTS_JSON_H
#define DPI_RELEASE_PROMPTS_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "pipeline/release/plan.h"

/* The bytes that jansson writes of that object, *json with a NUL behind it: private memory, as what
 * prompts say is kept from others until somebody asks for it. The caller frees it with
 * dpi_private_free. Errors: those of dpi_prompts_create, but for lengths; MEMORY. */
dpi_status dpi_plan_prompts_json(const dpi_plan *plan, char **json, dpi_error *err);

/* Whether it has the keys of that object, and under each what it may have. */
bool dpi_prompts_json_is(const json_t *prompts);

/* Their SHA-256 into the claim of the plan. Errors: the same. */
dpi_status dpi_plan_hash_prompts(dpi_plan *plan, dpi_error *err);

#endif
