/* tiny_model.h - random LLaMA models of any shape, as GGUF images in memory; the oracle of their
 * logits is tests/oracle/forward.h. */
#ifndef DPI_TINY_MODEL_H
#define DPI_TINY_MODEL_H

#include "dpinfer.h"
#include "tests/oracle/forward.h"
#include "tests/support/gguf_build.h"

typedef struct tiny_spec {
    int32_t n_layer, n_embd, n_ff, n_head, n_kv_head;
    int32_t head_dim, head_dim_v, n_rot; /* 0: n_embd / n_head, the same, head_dim */
    int32_t n_vocab;                     /* >= 300 */
    uint32_t type;                       /* GGML type of every matrix */
    int32_t bias, rope_freqs, tied;      /* 1: the model has them */
    float rope_base, rope_factor;        /* 0: the keys are absent (10000, 1) */
    float attn_factor;                   /* 0: the key is absent (1) */
    float llama3_factor;                 /* 0: no llama3 scaling; original context 64 */
} tiny_spec;

/* A model with every default: 2 layers of 64, GQA, F32. */
tiny_spec tiny_default(void);
/* That of a type, as wide as its blocks need; of those of 256 weights, one layer. */
tiny_spec tiny_of(uint32_t type);

/* The image, aligned to 64 bytes; the caller frees *image. */
void tiny_build(const tiny_spec *spec, uint64_t seed, void **image, size_t *n_bytes);
/* Built and opened; close the model, then free *image. */
dpi_model *tiny_open(const tiny_spec *spec, uint64_t seed, void **image);
/* Built and written. */
void tiny_write(const tiny_spec *spec, uint64_t seed, const char *path);
/* The tokenizer.ggml.* keys of a small SPM vocabulary: <unk> <s> </s>, the 256 bytes, then
 * letters and made-up words up to n_vocab. */
void tiny_vocab(gguf_build *b, int32_t n_vocab);

/* A gemma3 of 7 layers, of which 6 have that window. */
dpi_model *tiny_open_windowed(int32_t n_vocab, int32_t window);

#endif
