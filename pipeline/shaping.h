/* shaping.h - what may not come next in a text, and which tokens gain or lose logits: bans,
 * no_repeat, repeat_penalty and biases of a wording (dpinfer/wording.h), over a vocabulary and in a
 * text. Internal.
 *
 * All of it is a function of the wording and of the tokens that were released: public, at no cost
 * (dp/PRIVACY.md section 24). What holds of a text after each token, so wherever it ends:
 *  - No ban stands in it, however it is cut into tokens, and none across the end of what the prompt
 *    has begun. Bytes are compared, those of a space before the text that is not shown, too.
 *  - No refusal stands at its beginning, white space left out; what the prompt has begun does not
 *    count.
 *  - No no_repeat words stand in it twice, where a word is a run of bytes other than ASCII white
 *    space, and the last one counts as far as it has come.
 * A token that would break this is not drawn. Where no other is left, those that end a text are: it
 * ends there. With a ban or no_repeat a token without text comes as an end alone.
 *
 * Of a ban the last k bytes of a text may be the first k. Then the tokens that begin with the rest
 * of it complete it: they are neighbours in an order of all tokens, and found once. So a step looks
 * at no token but those that it forbids. */
#ifndef DPI_SHAPING_H
#define DPI_SHAPING_H

#include <stdbool.h>

#include "dpinfer/wording.h"
#include "grammar/mask.h"

/* ---- Over a vocabulary ----------------------------------------------------------------------- */

/* Never changes; all threads may share it. */
typedef struct dpi_shaping dpi_shaping;

/* Whether a wording sets anything of this. */
bool dpi_shaping_is_wanted(const dpi_wording *wording);

/* tokens [n] are not kept. The wording was checked; *shaping is NULL where it is not wanted.
 * `marks_spaces`: U+2581 is shown as a space, so that bytes which spell it may not come: a space is
 * ' ' alone. Some 200 ms with 262,144 tokens. Errors: ARG (a bias of no token),
 * UNSUPPORTED (no token ends a text), MEMORY. */
dpi_status dpi_shaping_make(const dpi_wording *wording, const dpi_mask_token *tokens, int32_t n,
                            bool marks_spaces, dpi_shaping **shaping, dpi_error *err);
void dpi_shaping_free(dpi_shaping *shaping); /* NULL is allowed */

/* ---- In a text ------------------------------------------------------------------------------- */

typedef struct dpi_shaped dpi_shaped;

/* A text that is empty, for the wording that `shaping` was made of; shaping must outlive it. NULL
 * gives NULL, which all calls below take. Errors: MEMORY. */
dpi_status dpi_shaped_create(const dpi_shaping *shaping, dpi_shaped **text, dpi_error *err);
void dpi_shaped_free(dpi_shaped *text); /* wipes */

/* Room for one more token, which all calls below need. Errors: MEMORY. */
dpi_status dpi_shaped_reserve(dpi_shaped *text, dpi_error *err);
/* A token that the prompt ends with, before the first released one. in_text: it is part of the
 * text, so that its words count. */
void dpi_shaped_begin(dpi_shaped *text, int32_t token, bool in_text);
/* A released token. */
void dpi_shaped_push(dpi_shaped *text, int32_t token);
/* Of `bits`, the tokens that a grammar allows (NULL: all), those that may come: bit i % 64 of word
 * i / 64, the text's until its next call; NULL: all. *is_end: none is left, and these are the
 * tokens that end a text. */
const uint64_t *dpi_shaped_allow(dpi_shaped *text, const uint64_t *bits, bool *is_end);
/* logits[n_vocab] += what the tokens gain: the same for the public prompt and each reference. */
void dpi_shaped_shift(const dpi_shaped *text, float *logits);

#endif
