/* word_rules.h - one text under the rules of a wording: which tokens may come next, where it ends,
 * and what of it is shown. All of that is a function of the tokens that were released. Internal. */
#ifndef DPI_PIPELINE_WORD_RULES_H
#define DPI_PIPELINE_WORD_RULES_H

#include <stdbool.h>

#include "dpinfer/grammar.h"
#include "dpinfer/method.h"
#include "dpinfer/wording.h"

typedef struct dpi_worded dpi_worded;

/* A text that goes on from the answer's tokens [n_answer], the last ones of its prompt. It is the
 * caller's; the rules must outlive it. Errors: ARG (a token), MEMORY. */
dpi_status dpi_worded_create(const dpi_word_rules *rules, const int32_t *answer, size_t n_answer,
                             dpi_worded **text, dpi_error *err);
/* NULL is allowed. */
void dpi_worded_free(dpi_worded *text);

/* Tells the sampler which tokens may come: those of a grammar, of these the ones that the rules
 * leave. Where min_words would leave none, those of the grammar; where bans or no_repeat leave
 * none, those that end a text. Either may be NULL. Errors: those
 * of dpi_mask_text_allowed and dpi_sampler_allow. */
dpi_status dpi_worded_allow(dpi_mask_text *masked, dpi_worded *text, dpi_sampler *sampler,
                            dpi_error *err);

/* The last dpi_worded_allow left no token but an end, which a grammar need not allow. NULL: not. */
bool dpi_worded_is_cut(const dpi_worded *text);
/* logits[n_vocab] += what the wording gives each token next: the same for all prompts of a text.
 * Either may be NULL: nothing. */
void dpi_worded_shift(const dpi_worded *text, float *logits);

/* The token that came. Errors: ARG (no such token); MEMORY, but not after dpi_worded_allow. Nothing
 * is changed then. */
dpi_status dpi_worded_push(dpi_worded *text, int32_t token, dpi_error *err);
/* The dpi_end of a text behind which no token may follow: STOP, WORDS; else NONE. */
int32_t dpi_worded_end_of(const dpi_worded *text);
/* What can be shown of the text since the last call: *shown [*n_bytes], the text's until the next
 * push. What may still be the beginning of a stop, and white space at the end, is held back. */
void dpi_worded_show(dpi_worded *text, const char **shown, size_t *n_bytes);
/* The same where no token follows: nothing is held back any more. Errors: MEMORY; it may be called
 * again. */
dpi_status dpi_worded_end(dpi_worded *text, const char **shown, size_t *n_bytes,
                          dpi_error *err);

#endif
