/* vocab_text.h - a vocabulary as sentencepiece writes it for people: "piece TAB score" lines, whose
 * number is the id. Internal. */
#ifndef DPI_TRAIN_VOCAB_TEXT_H
#define DPI_TRAIN_VOCAB_TEXT_H

#include "gguf/gguf_write.h"

typedef struct dpi_vocab_text {
    int32_t n;
    int32_t unk, bos, eos;        /* <unk>, <s>, <|im_end|> */
    unsigned char *texts;         /* [n] u64 length and bytes, as in a GGUF array */
    uint64_t n_bytes, n_capacity; /* of texts */
    float *scores;                /* [n] */
    int32_t *types;               /* [n] tokenizer.ggml.token_type */
    int32_t capacity;             /* of scores and types */
} dpi_vocab_text;

/* Control tokens are <s>, </s>, <pad> and <|name|>. On failure *vocab holds nothing.
 * Errors: IO, FORMAT (file and line; a token that training needs is missing), MEMORY. */
dpi_status dpi_vocab_text_read(const char *path, dpi_vocab_text *vocab, dpi_error *err);
void dpi_vocab_text_free(dpi_vocab_text *vocab);

/* tokenizer.* of a GGUF file, with the ChatML template. */
void dpi_vocab_text_put(dpi_gguf_builder *builder, const dpi_vocab_text *vocab);

#endif
