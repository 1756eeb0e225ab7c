/* model.h - a model: hyperparameters, weights in place in the file image, the vocabulary. It
 * does not change, but for where the bytes of its matrices are. Internal. */
#ifndef DPI_MODEL_H
#define DPI_MODEL_H

#include "dpinfer/model.h"
#include "engine/adapter.h"
#include "engine/control_vector.h"
#include "engine/config.h"
#include "engine/matrix.h"
#include "tokenizer/tokenizer.h"

/* How far packing has come. */
typedef struct dpi_packed {
    unsigned char *memory; /* every packed matrix */
    uint64_t n_bytes;
    const dpi_matrix **mats; /* [n] in the order in which they are packed */
    atomic_bool *is_packed;  /* [n] */
    int32_t n, n_packed;     /* n_packed belongs to the thread that set `busy` */
    atomic_flag busy;
    atomic_bool is_done;
    atomic_int n_passes; /* that have begun, of all sessions */
} dpi_packed;

/* Which of a model's rotations a layer has: that of windows is another one in some models. */
typedef enum dpi_rotation {
    DPI_ROTATION_ALL,
    DPI_ROTATION_WINDOW,
    DPI_ROTATIONS,
    DPI_ROTATION_NONE = DPI_ROTATIONS,
} dpi_rotation;

/* The tensors of arch.h. Vectors are f32 copies, owned by the model; NULL where the architecture
 * has none. */
typedef struct dpi_layer {
    const float *attn_norm; /* [n_embd] */
    dpi_matrix wq;          /* [n_head * head_dim, n_embd]; where queries are gated [n_head * 2 *
                               head_dim, n_embd], of each head the query, then its gate */
    dpi_matrix wk;          /* [n_kv_head * head_dim, n_embd] */
    dpi_matrix wv;          /* [n_kv_head * head_dim_v, n_embd] */
    const float *q_norm;    /* [head_dim], or [n_head * head_dim]: arch.h */
    const float *k_norm;    /* [head_dim], or [n_kv_head * head_dim] */
    dpi_matrix wo;          /* [n_embd, n_head * head_dim_v] */
    const float *post_attn_norm; /* [n_embd] of what attention adds */
    const float *ffn_norm;  /* [n_embd] */
    dpi_matrix w_gate;      /* [n_ff, n_embd] */
    dpi_matrix w_up;        /* [n_ff, n_embd] */
    dpi_matrix w_down;      /* [n_embd, n_ff] */
    const float *post_ffn_norm; /* [n_embd] of what the feed-forward adds */
    /* Of a delta net. */
    dpi_matrix w_keys;      /* [2 n_k_head dim + n_v_head dim_v, n_embd] queries, keys, values */
    dpi_matrix w_z;         /* [n_v_head * dim_v, n_embd] */
    dpi_matrix w_beta;      /* [n_v_head, n_embd] */
    dpi_matrix w_decay;     /* [n_v_head, n_embd] */
    const float *filter;    /* [2 n_k_head dim + n_v_head dim_v, n_tap] */
    const float *rate;      /* [n_v_head] */
    const float *decay_bias; /* [n_v_head] */
    const float *value_norm; /* [dim_v] */
    dpi_matrix w_values;    /* [n_embd, n_v_head * dim_v] */
    dpi_matrix w_input_gate; /* [n_input, n_embd] of what the layer's input is multiplied with */
    dpi_matrix w_input;     /* [n_embd, n_input] */
    const float *post_input_norm; /* [n_embd] of what the layer's input adds */
    const float *output_scale; /* [1] of all that the layer gives */
    int32_t kv_layer;       /* whose keys and values it attends to: itself, or an earlier one */
    int32_t window;         /* positions that a row sees, its own included; 0: all before it */
    dpi_rotation rotation;
} dpi_layer;

/* A matrix that a pass multiplies with. */
typedef struct dpi_product {
    dpi_matrix *w;
    const dpi_arch_tensor *tensor; /* NULL: it is of no layer */
    int32_t layer;
} dpi_product;

struct dpi_model {
    dpi_gguf *gguf;
    dpi_vocab *vocab;
    dpi_config config;
    int32_t n_vocab;
    int32_t vocab_only; /* 1: no weights, layers is NULL */
    dpi_logits_fn logits; /* computes logits in their place (outside.h); NULL: nothing does */
    void *logits_user;
    dpi_matrix embedding;     /* [n_vocab, n_embd] */
    dpi_matrix output;        /* [n_vocab, n_embd]; the embedding if tied */
    dpi_matrix input_embedding; /* [n_vocab, n_layer * n_input] of the inputs of layers */
    dpi_matrix w_inputs;      /* [n_layer * n_input, n_embd] from the embedding to these inputs */
    const float *inputs_norm; /* [n_input] */
    int32_t tied_output;
    int64_t n_weights;        /* that a row is multiplied with in one pass, all logits included */
    dpi_cpu cpu;              /* features and tuning values for sessions */
    const float *output_norm; /* [n_embd] */
    int32_t n_rot[DPI_ROTATIONS]; /* dimensions that turn, of layers with each rotation */
    const float *rope_freqs;  /* [n_rot / 2] divisors of the frequencies, or NULL */
    const float *rope_long, *rope_short; /* the same for contexts above n_ctx_original, and others;
                                            NULL: none */
    dpi_layer *layers;        /* [n_layer] */
    dpi_product *products;    /* [n_products] that there are, in the order of a pass */
    int32_t n_products;
    dpi_adapters *adapters;   /* NULL: none */
    dpi_control_vector *control; /* NULL: none */
    dpi_packed *packed;       /* NULL: every matrix is read as it is */
    float **vectors;          /* every owned vector, for freeing */
    int32_t n_vectors;
};

/* Where a layer has a tensor of its table: a dpi_matrix, or a pointer to an array. */
void *dpi_model_tensor(const dpi_model *m, int32_t layer, const dpi_arch_tensor *tensor);
/* The i-th matrix of a layer, in the order of its table; its type is NULL where the layer has
 * none. */
dpi_matrix *dpi_layer_matrix(const dpi_model *m, int32_t layer, int32_t i);

/* Of the products the i-th matrix; NULL beyond. The
 * embedding is only looked up, unless it is the output head as well. */
dpi_matrix *dpi_model_matrix(const dpi_model *m, int32_t i);

/* Whose rows a tensor of this name has, "blk.3.attn_qkv.weight": the matrix i in the order of
 * dpi_model_matrix, and *n of them from it on. -1: it is no matrix of a layer. */
int32_t dpi_model_find(const dpi_model *m, const char *tensor, int32_t *n);
/* Which of them has its row *row, which becomes the row of that matrix. */
int32_t dpi_model_row(const dpi_model *m, const char *tensor, int64_t *row);

/* Tells models apart by their norms, which are f32 whatever the type of the matrices: all files of
 * one model that differ in weight types have the same mark. */
uint64_t dpi_model_mark(const dpi_model *m);
/* Whether a matrix of a layer has a bias. */
bool dpi_model_has_biases(const dpi_model *m);
/* freqs [n_rot[rotation] / 2]: radians per position of each pair of rotated dimensions, in a
 * context of n_ctx positions. Returns the magnitude that cosines and sines are multiplied by. */
double dpi_model_frequencies(const dpi_model *m, dpi_rotation rotation, int32_t n_ctx,
                             double *freqs);
/* How many rotations there are, of the first in dpi_rotation. */
int32_t dpi_model_rotations(const dpi_model *m);

/* Reads every weight of the file. Errors: NUMERIC (one is not finite), MEMORY. */
dpi_status dpi_model_check(const dpi_model *m, dpi_error *err);

/* Makes room for every matrix that has a packed form, and packs them with all processors until
 * `seconds` have passed, or all if a row could not be read afterwards. The file's own copy is given
 * back as it goes: the weights are in memory once. Errors: MEMORY. */
dpi_status dpi_model_pack(dpi_model *m, double seconds, dpi_error *err);

/* To be called before each pass. The first pass of all sessions uses what is packed; the second
 * packs the rest, unless another thread does. */
void dpi_model_before_pass(const dpi_model *m);

void dpi_packed_free(dpi_packed *packed);

#endif
