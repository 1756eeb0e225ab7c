/* model.h - a LLaMA model: hyperparameters, weights in place in the file image, the vocabulary. It
 * does not change, but for where the bytes of its matrices are. Internal. */
#ifndef DPI_MODEL_H
#define DPI_MODEL_H

#include <stdatomic.h>

#include "dpinfer/model.h"
#include "engine/config.h"
#include "kernels/cpu.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"
#include "tokenizer/tokenizer.h"

/* A weight matrix [n_out, n_in]: rows of contiguous blocks of its type in the file image, and, if
 * `packed` is not NULL, panels of 16 rows (pack.h) in the model's own memory as soon as *is_packed.
 * Rows may be read at any time, though they cost a page fault once they are packed. */
typedef struct dpi_mat {
    const dpi_type *type; /* NULL: no such matrix */
    const unsigned char *data; /* rows */
    int64_t n_out, n_in;
    unsigned char *packed; /* panels */
    atomic_bool *is_packed;
} dpi_mat;

static inline bool dpi_mat_is_packed(const dpi_mat *mat) {
    return mat->packed && atomic_load_explicit(mat->is_packed, memory_order_acquire);
}

/* How far packing has come. */
typedef struct dpi_packed {
    unsigned char *memory; /* every packed matrix */
    uint64_t n_bytes;
    const dpi_mat **mats;  /* [n] in the order in which they are packed */
    atomic_bool *is_packed; /* [n] */
    int32_t n, n_packed;   /* n_packed belongs to the thread that set `busy` */
    atomic_flag busy;
    atomic_bool is_done;
    atomic_int n_passes;   /* that have begun, of all sessions */
} dpi_packed;

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
    dpi_cpu cpu;              /* features and tuning values for sessions */
    const float *output_norm; /* [n_embd] */
    const float *rope_freqs;  /* [n_rot / 2] divisors of the frequencies, or NULL */
    dpi_layer *layers;        /* [n_layer] */
    dpi_packed *packed;       /* NULL: every matrix is read as it is */
    float **vectors;          /* every owned vector, for freeing */
    int32_t n_vectors, max_vectors;
};

/* Row `row` of a matrix as f32 [n_in]. */
void dpi_mat_row(const dpi_mat *mat, int64_t row, float *out);
/* Packs the panels of a matrix that hold rows [begin, end), of those that there are; begin is a
 * multiple of 16. */
void dpi_mat_pack(const dpi_mat *mat, int64_t begin, int64_t end, unsigned char *to);

/* Reads every weight of the file. Errors: NUMERIC (one is not finite), MEMORY. */
dpi_status dpi_model_check(const dpi_model *m, dpi_error *err);

/* Makes room for every matrix that has a packed form, and packs them with all processors until
 * `seconds` have passed, or all if a row could not be read afterwards. The file's own copy is given
 * back as it goes: the weights are in memory once. Errors: MEMORY. */
dpi_status dpi_model_pack(dpi_model *m, double seconds, dpi_error *err);

/* To be called before each pass. The first one does with what is packed; the second packs the rest,
 * unless another thread is at it. */
void dpi_model_before_pass(const dpi_model *m);

void dpi_packed_free(dpi_packed *packed);

#endif
