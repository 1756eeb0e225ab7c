/* release.h - the parts of a release, see dpinfer/release.h. Internal. */
#ifndef DPI_RELEASE_RELEASE_H
#define DPI_RELEASE_RELEASE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "dpinfer/generation.h"
#include "dpinfer/release.h"
#include "pipeline/partition.h"

/* The private prompt of a record; tokens NULL: null. */
typedef struct dpi_prompt {
    int32_t *tokens; /* private memory */
    size_t n_tokens;
} dpi_prompt;

struct dpi_release {
    /* Settled by open; public. */
    dpi_release_options options; /* with every default filled in */
    dpi_claim claim;
    dpi_model_info info;
    dpi_prompts *prompts;
    dpi_prompts_info prompts_info;
    dpi_sampler *sampler; /* from open on by position, from begin on where records are assigned */

    int64_t charge; /* its id in the ledger; 0: none, or given back */

    /* From begin on; private. */
    dpi_partition *partition;
    dpi_prompt *kept; /* [units, max_per_unit] by content: the prompts of records that were read; else NULL */
    size_t n_kept;
    dpi_session *session;
    int64_t n_null;
    atomic_int cancelled;

    /* The text that is being drawn, and its batch. */
    bool begun;
    int32_t index;
    size_t n_slots; /* prompts of references: with max_per_unit so many for each unit */
    int32_t **tokens; /* [n_slots] its prompts, private memory; NULL: null */
    size_t *n_tokens; /* [n_slots] */
    dpi_generation *generation; /* NULL: none is drawn */
    int32_t n_drawn;            /* tokens of it that are released */
    bool ended;                 /* its END was told */
    dpi_error failure;          /* code: what every further call returns; OK: none yet */
};

/* Slots of the sampler: units. */
int32_t dpi_release_n_ref(const dpi_release *r);
/* Takes the charge back, if there is one: no record was read. */
void dpi_release_give_back(dpi_release *r);

/* Records to batches, and room for one batch. Errors: as dpi_release_begin. */
dpi_status dpi_release_make_batches(dpi_release *r, dpi_error *err);
/* Wipes them. */
void dpi_release_free_batches(dpi_release *r);

/* The prompts of text `index` into r->tokens. Errors: IO, MEMORY, FORMAT, CANCELLED. */
dpi_status dpi_release_load_batch(dpi_release *r, int32_t index, dpi_error *err);
/* Wipes them. */
void dpi_release_drop_batch(dpi_release *r);

/* Whether dpi_release_cancel was called, or the caller's own function says so. */
bool dpi_release_is_cancelled(const dpi_release *r);

#endif
