/* rounds.h - what texts of earlier rounds have given to the prompts of later ones, with n_released.
 * Internal; private, as its texts may not be told yet.
 *
 * The k-th text of a label is in round k / n_released, and its prompts have the texts of the round
 * before that are not empty. So they are a function of the plan and of released texts: neither of
 * what is drawn at the same time, nor of what a record says. Texts begin in their order. */
#ifndef DPI_RELEASE_ROUNDS_H
#define DPI_RELEASE_ROUNDS_H

#include "pipeline/release/source.h"

typedef struct dpi_rounds {
    const dpi_plan *plan;
    dpi_span *ended; /* [2 n_released] text i at i modulo that, private memory: whoever sees it has
                        begun when the text comes that takes its place */
} dpi_rounds;

/* The plan must outlive the rounds. Errors: MEMORY. */
dpi_status dpi_rounds_open(dpi_rounds *rounds, const dpi_plan *plan, dpi_error *err);
/* Wipes. */
void dpi_rounds_free(dpi_rounds *rounds);

/* The texts that a text sees: those of the round before; n 0: none. The source is open. */
dpi_batch_range dpi_rounds_seen(const dpi_rounds *rounds, const dpi_source *source, int32_t text);
/* A text has ended; all that is shown of it. Errors: MEMORY. */
dpi_status dpi_rounds_put(dpi_rounds *rounds, int32_t text, const char *bytes, size_t n_bytes,
                          dpi_error *err);
/* The prompts of a text for which all that it sees has ended: *prompts is the caller's; NULL: they
 * are those of the plan. Where tokens of a text are more when it is read than when it was drawn,
 * and the context has no room, the first ones are left out. Errors: MEMORY, UNSUPPORTED. */
dpi_status dpi_rounds_prompts(const dpi_rounds *rounds, const dpi_source *source, int32_t text,
                              dpi_prompts **prompts, dpi_error *err);

#endif
