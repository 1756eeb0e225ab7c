/* arch.h - architectures as data: the tensors of a layer, the keys, and what its pass has beyond
 * LLaMA's. Internal.
 *
 * An architecture is one dpi_arch, in a file of engine/arch/, and its name in DPI_ARCHS. Whoever
 * walks the tensors of a layer walks its table: the loader, adapters, packing, training, models
 * that are made up. What a file holds beyond the table is refused by name, as it could change
 * logits. */
#ifndef DPI_ARCH_H
#define DPI_ARCH_H

#include <stddef.h>

#include "gguf/gguf.h"

/* A side of a tensor. */
typedef enum dpi_extent {
    DPI_EXTENT_NONE, /* of a vector, which has one side */
    DPI_EXTENT_EMBD, /* n_embd */
    DPI_EXTENT_FF,   /* n_ff */
    DPI_EXTENT_Q,    /* n_head * head_dim */
    DPI_EXTENT_K,    /* n_kv_head * head_dim */
    DPI_EXTENT_V,    /* n_kv_head * head_dim_v */
    DPI_EXTENT_ATT,  /* n_head * head_dim_v */
    DPI_EXTENT_HEAD, /* head_dim */
    DPI_EXTENT_QG,   /* 2 * n_head * head_dim: of each head the query, then a gate */
    /* of a delta net */
    DPI_EXTENT_TAPS,    /* n_tap */
    DPI_EXTENT_KEYS,    /* 2 * n_k_head * dim + n_v_head * dim_v: queries, keys, values */
    DPI_EXTENT_VALUES,  /* n_v_head * dim_v */
    DPI_EXTENT_V_HEADS, /* n_v_head */
    DPI_EXTENT_DIM_V,   /* dim_v */
    DPI_EXTENT_INPUT, /* n_input */
    DPI_EXTENT_ONE,  /* 1 */
} dpi_extent;

/* What not every layer of an architecture has: bits. */
enum {
    DPI_PART_KEYS = 1,   /* keys and values of its own */
    DPI_PART_VALUES = 2, /* a matrix for values, else they are made of what keys are made of */
    DPI_PART_INPUT = 4,  /* an input of its own for each token */
    DPI_PART_SCALE = 8,  /* a scale of what it gives */
};

typedef struct dpi_config dpi_config; /* config.h */

/* The sizes of a delta net; 0 where a layer is none. */
typedef struct dpi_delta_shape {
    int32_t n_tap;    /* ssm.conv_kernel: positions that the filter sees */
    int32_t n_k_head; /* ssm.group_count; divides n_v_head */
    int32_t n_v_head; /* ssm.time_step_rank */
    int32_t dim;      /* ssm.state_size: of a query and of a key */
    int32_t dim_v;    /* ssm.inner_size / n_v_head: of a value */
} dpi_delta_shape;

/* The sizes of a layer. Keys are those of the architecture, which may give a number for each
 * layer. */
typedef struct dpi_shape {
    int32_t n_embd;     /* embedding_length */
    int32_t n_ff;       /* feed_forward_length */
    int32_t n_head;     /* attention.head_count */
    int32_t n_kv_head;  /* attention.head_count_kv; divides n_head */
    int32_t head_dim;   /* attention.key_length, or n_embd / n_head */
    int32_t head_dim_v; /* attention.value_length, or n_embd / n_head */
    int32_t n_rot;      /* rope.dimension_count, or head_dim; even, <= head_dim */
    dpi_delta_shape delta;
    int32_t n_input;    /* embedding_length_per_layer_input; 0: none */
    uint32_t parts;     /* of DPI_PART_KEYS.., which the architecture's read() sets */
    int32_t kv_back;    /* it attends to keys and values of the layer so many before it; 0: its
                           own */
} dpi_shape;

int64_t dpi_extent_of(const dpi_shape *shape, dpi_extent extent);

/* A tensor of layers of a kind: blk.N.NAME.weight. A matrix may have a bias [n_out] beside it,
 * blk.N.NAME.bias. Matrices of one name follow each other in the table and are one tensor of the
 * file, whose rows are those of the first, then those of the next. Those that have `joined` in
 * common may be one, too, of that name: it counts where the file has it, and its rows are of those
 * that the layer has. Arrays are what no product reads: vectors, and filters [n_out, n_in]. */
typedef struct dpi_arch_tensor {
    const char *name, *joined; /* joined: of a matrix */
    dpi_extent n_in, n_out; /* n_out NONE: a vector */
    size_t at;              /* in a dpi_layer (model.h): a dpi_matrix, or a pointer to the array */
    int32_t place;          /* of a matrix: among those that share its input */
    bool is_array;
    bool is_bare; /* the file calls it blk.N.NAME, without an ending */
    uint32_t needs;         /* only layers that have all of these parts have it; 0: every layer */
} dpi_arch_tensor;

/* What mixes the tokens of a layer. */
typedef enum dpi_layer_kind {
    DPI_LAYER_ATTENTION,
    DPI_LAYER_DELTA, /* a delta net: a state of fixed size in place of a KV cache */
    DPI_LAYER_KINDS,
} dpi_layer_kind;

/* The tensors of layers of one kind. */
typedef struct dpi_arch_table {
    const dpi_arch_tensor *tensors; /* [n_tensors], in the order of a file and of a pass */
    int32_t n_tensors, n_matrices;
} dpi_arch_table;

typedef struct dpi_arch {
    const char *name;                      /* general.architecture; its keys are NAME.KEY */
    dpi_arch_table layers[DPI_LAYER_KINDS]; /* of no tensors: it has no layer of the kind */
    const char *const *keys;               /* for dpi_gguf_check_keys */
    /* Sets in the config what the layers have beyond LLaMA's, after all common keys are read. NULL:
     * nothing. Errors: FORMAT, UNSUPPORTED, by key. */
    dpi_status (*read)(const dpi_gguf *gguf, dpi_config *config, dpi_error *err);
    bool rotates_halves;  /* pairs of dimensions are (j, n_rot / 2 + j), else (2j, 2j + 1) */
    bool has_gated_queries; /* each head's query comes with a gate of its result */
    bool has_gelu;        /* the gate of the feed-forward; else SiLU */
    bool norms_all_heads; /* attn_q_norm, attn_k_norm: of all heads as one vector */
    bool norms_values;    /* each head of values by itself, without weights */
    bool needs_output;    /* no tied head */
    bool needs_rope_freqs; /* a file without the tensor is refused */
    bool has_output_bias; /* may have */
    bool has_windows;     /* read() reads attention.sliding_window; else it limits the context */
    bool has_rope_factors; /* rope_factors_long and _short count wherever they are; else where
                              rope.scaling.type is longrope */
} dpi_arch;

/* That of a file. Errors: FORMAT (the key is missing), UNSUPPORTED, by name. */
DPI_MUST_CHECK dpi_status dpi_arch_of(const dpi_gguf *gguf, const dpi_arch **arch, dpi_error *err);

/* That of a name; NULL: there is none. */
const dpi_arch *dpi_arch_find(const char *name);

/* The i-th tensor of a layer that is a matrix; i < n_matrices. */
const dpi_arch_tensor *dpi_arch_matrix(const dpi_arch_table *table, int32_t i);

/* Whether a layer of this shape has it. */
static inline bool dpi_arch_has(const dpi_arch_tensor *tensor, const dpi_shape *shape) {
    return (tensor->needs & ~shape->parts) == 0;
}

/* How many entries from this one on, the first of its name, are one tensor of the file; and how
 * many may be. */
int32_t dpi_arch_parts(const dpi_arch_table *table, const dpi_arch_tensor *tensor);
int32_t dpi_arch_joined(const dpi_arch_table *table, const dpi_arch_tensor *tensor);

/* "blk.3.attn_q.bias": what a file calls a tensor of a layer; `suffix` is "weight" or "bias", and
 * not part of a bare name. */
typedef struct dpi_tensor_name {
    char text[64];
} dpi_tensor_name;
dpi_tensor_name dpi_arch_tensor_name(const dpi_arch_tensor *tensor, int32_t layer,
                                     const char *suffix);
dpi_tensor_name dpi_arch_joined_name(const dpi_arch_tensor *tensor, int32_t layer,
                                     const char *suffix);

/* All of them: NAME is dpi_arch_NAME, of engine/arch/NAME.c. */
#define DPI_ARCHS(ARCH)                                                                            \
    ARCH(llama) ARCH(qwen2) ARCH(qwen3) ARCH(gemma2) ARCH(gemma3) ARCH(phi3) ARCH(smollm3)         \
    ARCH(granite) ARCH(olmo2) ARCH(mistral3) ARCH(vaultgemma) ARCH(qwen35) ARCH(gemma4)

#define DPI_ARCH_DECLARED(name) extern const dpi_arch dpi_arch_##name;
DPI_ARCHS(DPI_ARCH_DECLARED)

#endif
