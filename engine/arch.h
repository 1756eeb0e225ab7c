/* arch.h - architectures as data: the tensors of a layer, and the keys. Internal.
 *
 * Whoever walks the tensors of a layer walks this table: the loader, adapters, packing, training,
 * models that are made up. What a file holds beyond the table is refused by name, as it could
 * change logits. */
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
} dpi_extent;

typedef struct dpi_config dpi_config; /* config.h */

int64_t dpi_extent_of(const dpi_config *config, dpi_extent extent);

/* A tensor of every layer: blk.N.NAME.weight. A matrix may have a bias [n_out] beside it,
 * blk.N.NAME.bias. */
typedef struct dpi_arch_tensor {
    const char *name;
    dpi_extent n_in, n_out; /* n_out NONE: a vector */
    size_t at;              /* in a dpi_layer (model.h): a dpi_matrix, or a pointer to the vector */
    int32_t place;          /* of a matrix: among those that share its input */
} dpi_arch_tensor;

typedef struct dpi_arch {
    const char *name;               /* general.architecture; its keys are NAME.KEY */
    const dpi_arch_tensor *tensors; /* [n_tensors], in the order of a file and of a pass */
    int32_t n_tensors, n_matrices;
    const char *const *keys; /* for dpi_gguf_check_keys */
} dpi_arch;

extern const dpi_arch dpi_arch_llama;

/* That of a file. Errors: FORMAT (the key is missing), UNSUPPORTED, by name. */
DPI_MUST_CHECK dpi_status dpi_arch_of(const dpi_gguf *gguf, const dpi_arch **arch, dpi_error *err);

/* The i-th tensor of a layer that is a matrix; i < n_matrices. */
const dpi_arch_tensor *dpi_arch_matrix(const dpi_arch *arch, int32_t i);

/* "blk.3.attn_q.bias": what a file calls a tensor of a layer; `suffix` is "weight" or "bias". */
typedef struct dpi_tensor_name {
    char text[64];
} dpi_tensor_name;
dpi_tensor_name dpi_arch_tensor_name(const dpi_arch_tensor *tensor, int32_t layer,
                                     const char *suffix);

#endif
