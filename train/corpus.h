/* corpus.h - training examples: JSON lines to tokens. Internal. */
#ifndef DPI_TRAIN_CORPUS_H
#define DPI_TRAIN_CORPUS_H

#include "dpinfer/text.h"

/* Example i is tokens[begins[i] .. begins[i + 1]), of which the first n_prompt[i] are the prompt as
 * inference renders it and the rest is the answer and the end of the turn. */
typedef struct dpi_corpus {
    int64_t n;
    int64_t n_too_long; /* examples that were left out */
    int32_t *tokens;
    int64_t *begins;   /* [n + 1] */
    int32_t *n_prompt; /* [n] */
} dpi_corpus;

/* Lines {"user": .., "assistant": ..} of all files, in order, in ChatML; blank lines are skipped.
 * `model` has the vocabulary, `end` is the token that ends a turn. An example has at most
 * context + 1 tokens (of the last one only the loss is needed). What is read does not depend on
 * n_threads. On failure *corpus holds nothing. Errors: IO, FORMAT (file and line), MEMORY. */
dpi_status dpi_corpus_read(const dpi_model *model, int32_t end, const char *const *paths,
                           int32_t n_paths, int32_t context, int32_t n_threads, dpi_corpus *corpus,
                           dpi_error *err);
void dpi_corpus_free(dpi_corpus *corpus);

/* Positions of example i: all of its tokens but the last are inputs. */
static inline int32_t dpi_corpus_length(const dpi_corpus *c, int64_t i) {
    return (int32_t)(c->begins[i + 1] - c->begins[i]) - 1;
}

uint64_t dpi_corpus_hash(const dpi_corpus *corpus);

#endif
