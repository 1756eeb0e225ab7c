/* features.h - what a model makes of texts: hidden states, and how probable they are. */
#ifndef DPI_EVAL_FEATURES_H
#define DPI_EVAL_FEATURES_H

#include "dpinfer/session.h"
#include "eval/mauve.h"
#include "eval/text_set.h"

/* Of a set of texts. Private where they are. */
typedef struct eval_reading {
    eval_vectors features; /* [n, n_embd] the last hidden state after the last token */
    eval_vectors pooled;   /* [n, n_embd] its mean over the text's tokens, BOS not counted */
    double *nll;           /* [n] mean over a text's tokens of -ln p(token | before), in nats */
    int32_t *n_tokens;     /* [n] BOS not counted; longer texts are cut to the context */
    int32_t n, n_cut;
} eval_reading;

typedef struct eval_watch {
    /* `what` begins, or n_done of n_all texts of it are done; n_all 0: they are not counted. May be
     * NULL. */
    void (*progress)(void *user, const char *what, int64_t n_done, int64_t n_all);
    dpi_cancel_fn cancel; /* may be NULL */
    void *user;
} eval_watch;

/* `what` begins. watch may be NULL. */
void eval_begin(const eval_watch *watch, const char *what);

/* The same texts, without white space at their ends, with the model's tokens in the place of words,
 * BOS not counted; their texts and
 * labels are NULL. eval_texts_free also after a failure. Errors: those of dpi_tokenize; LIMIT,
 * MEMORY. */
dpi_status eval_tokenize(const dpi_model *model, const eval_texts *texts, eval_texts *tokens,
                         dpi_error *err);

/* Reads each text by itself, without white space at its ends, behind a BOS token where the model
 * has one; empty texts too. `what`
 * they are, for the watch.
 * eval_reading_free also after a failure. Errors: those of the session; CANCELLED, MEMORY. */
dpi_status eval_read(const dpi_model *model, const dpi_session_options *options,
                     const eval_texts *texts, const char *what, const eval_watch *watch,
                     eval_reading *reading, dpi_error *err);
void eval_reading_free(eval_reading *reading);

#endif
