/* released_text.h - the text of the tokens that a generation has released, in pieces or as a whole.
 * Internal. */
#ifndef DPI_RELEASED_TEXT_H
#define DPI_RELEASED_TEXT_H

#include "base/text.h"
#include "dpinfer.h"
#include "pipeline/word_rules.h"

/* Begins as {0}, which has no text. */
typedef struct dpi_released {
    dpi_worded *ruled; /* where there are rules; then the rest is not used */
    int32_t text;          /* a dpi_text_of_events */
    dpi_decoder *decoder;  /* NULL: no text */
    int32_t *tokens;      /* WHOLE: [n_most] of which n are there; else NULL */
    int32_t n, n_most;
    dpi_text whole;
} dpi_released;

/* text: a dpi_text_of_events; at most n_most tokens come. Errors: MEMORY. */
dpi_status dpi_released_open(const dpi_model *model, int32_t text, int32_t n_most, dpi_released *r,
                             dpi_error *err);
/* With rules: tokens [n_answer + n_begun] are an answer, and behind it those that the text begins
 * with. Errors: ARG (a token), MEMORY. */
dpi_status dpi_released_open_ruled(const dpi_word_rules *rules, int32_t text, const int32_t *tokens,
                                   size_t n_answer, size_t n_begun, dpi_released *r,
                                   dpi_error *err);
/* The text of a TOKEN event; without one *text and *n_bytes stay as they are. Errors: ARG, for a
 * token that the model does not have; MEMORY. Nothing is changed then. */
dpi_status dpi_released_push(dpi_released *r, int32_t token, const char **text, size_t *n_bytes,
                             dpi_error *err);
/* How a text ends with the last token that came, by itself or by its rules; NONE: it goes on. */
int32_t dpi_released_end_of(const dpi_released *r, const dpi_model *model, int32_t token);
/* The text of END, the same. It is there until dpi_released_close. Errors: MEMORY; it may be called
 * again. */
dpi_status dpi_released_end(dpi_released *r, const char **text, size_t *n_bytes, dpi_error *err);
void dpi_released_close(dpi_released *r);

#endif
