/* pace.h - a pace without tuning: what a text's steps may cost, from a few public texts.
 *
 * A pace (dpi_pace) needs a number that fits the texts: a theta and a quota, or a share. This
 * finds it on texts that the model draws from the public prompt alone. They read no record and cost
 * nothing: their numbers may be told and looked at (dp/PRIVACY.md section 13). The guarantee does
 * not depend on the numbers. If private texts are longer or more surprising than the public ones,
 * their budget ends before they do, and the rest of the text is public. */
#ifndef DPINFER_PACE_H
#define DPINFER_PACE_H

#include "dpinfer/grammar.h"
#include "dpinfer/method.h"
#include "dpinfer/session.h"
#include "dpinfer/wording.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DPI_PACE_TEXTS_MAX = 64 };

typedef struct dpi_pace_search {
    size_t struct_size;
    dpi_session *session; /* its sequences 0..n_texts-1 are empty, and are so again afterwards */
    const int32_t *public_tokens; /* [n_public] the public prompt. Trusted: no record is in it */
    size_t n_public;
    int32_t n_texts; /* drawn side by side, in shared passes: 1..DPI_PACE_TEXTS_MAX; default 8 */
    int32_t n_steps; /* tokens of each, at most; 0 (default): the method's n_tokens. A text that has
                        not ended by then counts as if it went on like this */
    dpi_cancel_fn cancel; /* between steps; may be NULL */
    void *cancel_user;
    dpi_mask *mask; /* the texts are of its grammar, as those of the run will be; NULL (default):
                       any text */
    const dpi_word_rules *rules; /* how texts are worded, as those of the run; NULL (default): as
                                    the model writes them */
    int32_t n_answer;       /* with rules: as in dpi_generation_options */
    int32_t reserved;
    struct dpi_pace_texts **texts; /* where the texts go that were drawn, the caller's then, who
                                      frees them; NULL there: none were. NULL (default): nowhere */
} dpi_pace_search;

DPI_API void dpi_pace_search_init_size(dpi_pace_search *search, size_t size);
#define dpi_pace_search_init(o) dpi_pace_search_init_size((o), sizeof *(o))

/* 1: dpi_pace_find has something to find for this method, which is one with a pace. */
DPI_API int32_t dpi_pace_is_open(const dpi_sampler_options *method);

/* The method without a pace, and without all that goes with one. */
DPI_API void dpi_pace_drop(dpi_sampler_options *method);

/* Settles the pace of a method of which all else is filled in, budget, lengths and n_vocab too:
 *     AUTO    becomes TOP, or SHARE where share is given; NONE with a sparse vector (AMIN)
 *     theta   0 of TOP, CHANGE: the one with which references move the private steps most, at the
 *             clip bound that the budget leaves each of them: a small budget has few, a large one
 *             all that the public model is not quite sure of (.5 to .95)
 *     tokens  0 of TOP, CHANGE: as many steps as a public text has below theta, on average; the
 *             field of AMIN is n_private
 *     share   0 of SHARE: the sum of 1 - top over the steps of a public text, on average
 *     free_top_k  0: DPI_PACE_FREE_TOP_K, or top_k if that is less
 * What is not 0 stays. The texts are drawn from fixed bits: the same model, prompt and options give
 * the same numbers on one machine. Leaves NONE, and methods without a pace, as they are (AUTO of
 * these becomes NONE).
 * Trusted: public_tokens and the options depend on no record. `search` may be NULL where
 * dpi_pace_is_open says 0. The session is used by nobody else meanwhile. Beside it some 200 bytes
 * are needed for each token of a text.
 * Errors: ARG, NUMERIC, MEMORY, LIMIT (the context), CANCELLED, STATE (a sequence is not empty),
 * those of dpi_sampler_plan_make; *method is then as it was. */
DPI_API DPI_MUST_CHECK dpi_status dpi_pace_find(const dpi_pace_search *search,
                                                dpi_sampler_options *method, dpi_error *err);

/* The same from texts of any engine, which the caller has drawn from its public prompt, without a
 * grammar: of each the public logits alone are looked at, one text after the other.
 *     dpi_pace_texts_create(&method, &texts, &err);
 *     dpi_pace_texts_add(texts, logits, n_tokens, ended, &err);    of each text
 *     dpi_pace_texts_settle(texts, &method, &err);
 *     dpi_pace_texts_free(texts);
 * How many texts there are, and their logits, must depend on no record. */
typedef struct dpi_pace_texts dpi_pace_texts;

/* For a method of which all but the pace is filled in, as for dpi_pace_find; it is copied. *texts
 * is the caller's; NULL after a failure. Errors: those of dpi_sampler_plan_make, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_pace_texts_create(const dpi_sampler_options *method,
                                                        dpi_pace_texts **texts, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_pace_texts_free(dpi_pace_texts *texts);
/* One more text: logits [n_tokens, n_vocab], of which a row is what each token was drawn from,
 * n_tokens 1..n_tokens of the method. ended: 1, its last token ended it; 0, it was cut, and counts
 * as if it went on like this. Some 200 bytes are kept for each token. After an error the text is
 * not there. Errors: ARG (also where dpi_pace_is_open says 0), NUMERIC (a logit), LIMIT (more than
 * DPI_PACE_TEXTS_MAX texts), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_pace_texts_add(dpi_pace_texts *texts, const float *logits,
                                                     int32_t n_tokens, int32_t ended,
                                                     dpi_error *err);
/* Makes *method that of create with its pace, as dpi_pace_find does. Errors: ARG (a pace is open,
 * and no text was added), those of dpi_sampler_plan_make; *method is then as it was. */
DPI_API DPI_MUST_CHECK dpi_status dpi_pace_texts_settle(const dpi_pace_texts *texts,
                                                        dpi_sampler_options *method,
                                                        dpi_error *err);

/* The same for another method: *method has all but the pace filled in, and n_tokens is at most that
 * of create. The kind of pace and what was given of it are those of create. Errors: as
 * dpi_pace_texts_settle. */
DPI_API DPI_MUST_CHECK dpi_status dpi_pace_texts_settle_other(const dpi_pace_texts *texts,
                                                              dpi_sampler_options *method,
                                                              dpi_error *err);

/* What public texts are. All of it is public. */
typedef struct dpi_public_texts {
    int32_t n_texts;   /* 0: none */
    int32_t n_ended;   /* of them; the others were cut */
    int32_t n_longest; /* tokens of the longest */
    int32_t n_mean;    /* of all on average, rounded up */
    int32_t are_same;  /* 1: more than one, and all say the same. 0 where logits were added: what
                          the texts say is not known */
    int32_t n_enough;  /* n_tokens that would do for texts like these: a half more than the longest,
                          a multiple of 8; 0: a text was cut, or it would be no quarter less than
                          n_tokens is */
} dpi_public_texts;
/* texts NULL: none. */
DPI_API void dpi_pace_texts_tell(const dpi_pace_texts *texts, dpi_public_texts *told);

/* k of free steps: the likeliest tokens keep the form of a text (bench/UTILITY.md). */
#define DPI_PACE_FREE_TOP_K 5

#ifdef __cplusplus
}
#endif
#endif
