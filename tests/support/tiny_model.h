/* tiny_model.h - random LLaMA models of any shape, as GGUF images in memory, and an oracle that
 * computes their logits in double precision straight from the definition. */
#ifndef DPI_TINY_MODEL_H
#define DPI_TINY_MODEL_H

#include "dpinfer.h"
#include "tests/support/gguf_build.h"

typedef struct tiny_spec {
    int32_t n_layer, n_embd, n_ff, n_head, n_kv_head;
    int32_t head_dim, head_dim_v, n_rot; /* 0: n_embd / n_head, the same, head_dim */
    int32_t n_vocab;                     /* >= 300 */
    uint32_t type;                       /* GGML type of every matrix */
    int32_t bias, rope_freqs, tied;      /* 1: the model has them */
    float rope_base, rope_factor;        /* 0: the keys are absent (10000, 1) */
    float llama3_factor;                 /* 0: no llama3 scaling; original context 64 */
} tiny_spec;

/* A model with every default: 2 layers of 64, GQA, F32. */
tiny_spec tiny_default(void);

/* The image, aligned to 64 bytes; the caller frees *image. */
void tiny_build(const tiny_spec *spec, uint64_t seed, void **image, size_t *n_bytes);
/* Built and opened; close the model, then free *image. */
dpi_model *tiny_open(const tiny_spec *spec, uint64_t seed, void **image);
/* The tokenizer.ggml.* keys of a small SPM vocabulary: <unk> <s> </s>, the 256 bytes, then
 * letters and made-up words up to n_vocab. */
void tiny_vocab(gguf_build *b, int32_t n_vocab);

/* Logits [n, n_vocab] after each of n tokens, in double, from `spec` and the model's weights. */
void oracle_logits(const tiny_spec *spec, const dpi_model *model, const int32_t *tokens, int32_t n,
                   double *logits);

#endif
