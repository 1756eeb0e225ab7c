/* make_vocab.h - the vocabulary of a model that is being made. Internal. */
#ifndef DPI_MAKE_VOCAB_H
#define DPI_MAKE_VOCAB_H

#include "gguf/gguf_write.h"

enum { DPI_SYNTHETIC_MIN = 260, DPI_SYNTHETIC_MAX = 1 << 18 };

/* An SPM vocabulary of n tokens: <unk>, <s>, </s>, the 256 bytes, the space mark, then made-up
 * words of a to z, each with and without the mark before it, shorter ones first, so that every word
 * can be merged from shorter ones. n in the range above. Errors: MEMORY. */
dpi_status dpi_synthetic_vocab_put(dpi_gguf_builder *builder, int32_t n, dpi_error *err);

/* Opens a file that has a vocabulary that this library accepts; *n_vocab is its size. The caller
 * closes *gguf. Errors: those of dpi_gguf_open and dpi_vocab_create. */
dpi_status dpi_vocab_source_open(const char *path, dpi_gguf **gguf, int32_t *n_vocab,
                                 dpi_error *err);
/* Its tokenizer.* keys, as they are. */
void dpi_vocab_source_put(dpi_gguf_builder *builder, const dpi_gguf *gguf);

#endif
