/* model.h - an immutable LLaMA model: hyperparameters, weights in place in the file image, the
 * vocabulary. Internal. */
#ifndef DPI_MODEL_H
#define DPI_MODEL_H

#include "config.h"
#include "pack.h"
#include "quant.h"
#include "tokenizer.h"

/* A weight matrix [n_out, n_in]: rows of contiguous blocks of its type in the file image, or, if
 * `layout` is not NULL, packed groups of 16 rows (pack.h) in the model's own memory. */
typedef struct dpi_mat {
    const dpi_type *type; /* NULL: no such matrix */
    const dpi_layout *layout;
    const unsigned char *data;
    int64_t n_out, n_in;
} dpi_mat;

/* Vectors are f32 copies, owned by the model; a bias is NULL if the file has none. */
typedef struct dpi_layer {
    const float *attn_norm; /* [n_embd] */
    dpi_mat wq;             /* [n_head * head_dim, n_embd] */
    dpi_mat wk;             /* [n_kv_head * head_dim, n_embd] */
    dpi_mat wv;             /* [n_kv_head * head_dim_v, n_embd] */
    dpi_mat wo;             /* [n_embd, n_head * head_dim_v] */
    const float *bq, *bk, *bv, *bo;
    const float *ffn_norm;    /* [n_embd] */
    dpi_mat w_gate, w_up;     /* [n_ff, n_embd] */
    dpi_mat w_down;           /* [n_embd, n_ff] */
} dpi_layer;

struct dpi_model {
    dpi_gguf *gguf;
    dpi_vocab *vocab;
    dpi_config config;
    int32_t n_vocab;
    int32_t vocab_only; /* 1: no weights, layers is NULL */
    dpi_mat embedding;  /* [n_vocab, n_embd] */
    dpi_mat output;     /* [n_vocab, n_embd]; the embedding if tied */
    int32_t tied_output;
    const float *output_norm; /* [n_embd] */
    const float *rope_freqs;  /* [n_rot / 2] divisors of the frequencies, or NULL */
    dpi_layer *layers;        /* [n_layer] */
    unsigned char *packed;    /* every packed matrix */
    uint64_t packed_bytes;
    float **vectors;          /* every owned vector, for freeing */
    int32_t n_vectors, max_vectors;
};

/* Row `row` of a matrix as f32 [n_in]. */
void dpi_mat_row(const dpi_mat *mat, int64_t row, float *out);

/* Reads every weight of the file. Errors: NUMERIC (one is not finite), MEMORY. */
dpi_status dpi_model_check(const dpi_model *m, dpi_error *err);

/* Packs every matrix that has a packed form into m->packed, with all processors, and gives the
 * file's own copy back as it goes: the weights are in memory once. Errors: MEMORY. */
dpi_status dpi_model_pack(dpi_model *m, dpi_error *err);

#endif
