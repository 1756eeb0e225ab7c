/* pace_texts.h - public texts of dpinfer/pace.h step by step, for whoever draws them side by side.
 * Internal. */
#ifndef DPI_PACE_TEXTS_H
#define DPI_PACE_TEXTS_H

#include "dp/methods/sampler.h"
#include "dpinfer/pace.h"

/* One more text, of at most n_most steps; they are 0, 1, .. in this order. Errors: MEMORY, LIMIT.
 */
dpi_status dpi_pace_texts_begin(dpi_pace_texts *texts, int32_t n_most, dpi_error *err);
/* The next step of a text, of public logits, as dpi_pace_texts_sampler sees them: it was begun, and
 * told which tokens are allowed. Errors: NUMERIC, ARG. */
dpi_status dpi_pace_texts_step(dpi_pace_texts *texts, int32_t text, const float *logits,
                               dpi_error *err);
/* What it says in all. */
void dpi_pace_texts_say(dpi_pace_texts *texts, int32_t text, const char *said, size_t n_bytes);
/* The model has ended it. */
void dpi_pace_texts_end(dpi_pace_texts *texts, int32_t text);
/* What draws the token of the step that was added last, from bits that are a constant. NULL: the
 * method's pace is not open. */
dpi_sampler *dpi_pace_texts_sampler(const dpi_pace_texts *texts);

#endif
