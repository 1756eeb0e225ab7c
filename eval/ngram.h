/* ngram.h - a small language model of texts: n-grams of words, interpolated after Witten and Bell.
 *
 * p_k(w | h) = (c(h w) + t(h) p_{k-1}(w | h')) / (c(h) + t(h)), with c(h w) how often w follows the
 * k - 1 words h, c(h) how often anything does, t(h) how many different words do, h' without its
 * first word; p_0 = 1 / (words that were seen + 1). A text has n - 1 words before its beginning and
 * one after its end that no text has. Nothing is chosen by the texts that are scored.
 *
 * Sources: Witten, Bell 1991 (method C); Meeus et al. 2025 (membership inference from synthetic
 * texts alone by 2-grams). */
#ifndef DPI_EVAL_NGRAM_H
#define DPI_EVAL_NGRAM_H

#include "eval/text_set.h"

enum { EVAL_NGRAM_MAX = 5 };

typedef struct eval_ngram eval_ngram;

/* n 1..EVAL_NGRAM_MAX. skip: texts whose place modulo 2 is `skip` are left out; -1: none.
 * *model is the caller's; it is private where the texts are. Errors: MEMORY. */
dpi_status eval_ngram_train(const eval_texts *texts, int32_t n, int32_t skip, eval_ngram **model,
                            dpi_error *err);
void eval_ngram_free(eval_ngram *model); /* NULL is allowed */

/* Mean over a text's words and its end of ln p. */
double eval_ngram_score(const eval_ngram *model, const eval_text *text);

#endif
