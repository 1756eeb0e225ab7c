/* lora.h - low-rank adapters: which matrices have one, and where its numbers lie. Internal.
 *
 * An adapter of the matrix W [n_out, n_in] is A [rank, n_in] and B [n_out, rank]: the product
 * becomes (W + scale B A) x with scale = alpha / rank. The weights themselves do not change (Hu et
 * al. 2021). */
#ifndef DPI_TRAIN_LORA_H
#define DPI_TRAIN_LORA_H

#include "dpinfer/status.h"
#include "train/graph.h"

/* The matrices of a layer with attention, in the order of graph.h; bit i of `targets` is matrix i.
 * Those of a delta net have the order of their table (engine/arch/qwen35.c): the four that read its
 * input have adapters where q, k or v is a target, w_values where o is one. */
enum {
    DPI_LORA_Q = 0,
    DPI_LORA_K = 1,
    DPI_LORA_V = 2,
    DPI_LORA_O = 3,
    DPI_LORA_GATE = 4,
    DPI_LORA_UP = 5,
    DPI_LORA_DOWN = 6,
    DPI_LORA_MATRICES = 7,
    DPI_LORA_ALL = (1 << DPI_LORA_MATRICES) - 1
};

/* Offsets in numbers. Matrices that are one tensor of the file have one adapter, that of the first
 * of them. */
typedef struct dpi_lora_matrix {
    int64_t weights;     /* of W, from the layer's begin in the parameters */
    int64_t n_in, n_out; /* 0: the layer has no such matrix */
    int64_t n_adapted;   /* rows of B: n_out, and that of the matrices behind it in its tensor */
    int64_t a, b;        /* of A and B, in the adapters; -1: no adapter */
} dpi_lora_matrix;

struct dpi_lora {
    const dpi_arch *arch;
    int32_t rank;
    float scale; /* alpha / rank */
    uint32_t targets;
    int64_t layers[DPI_LAYERS_MAX]; /* [n_layer] where the adapters of each begin */
    int64_t n_params;               /* of all layers */
};

/* The adapters of a layer. */
typedef struct dpi_lora_layer {
    dpi_lora_matrix matrix[DPI_GRAPH_MATRICES]; /* those of its table, in their order */
    int64_t end;
} dpi_lora_layer;

/* Whether `targets` are in 1..DPI_LORA_ALL, and have all matrices of a tensor of the file or none.
 * Errors: ARG. */
DPI_MUST_CHECK dpi_status dpi_lora_check_targets(const dpi_arch *arch, uint32_t targets,
                                                 dpi_error *err);

/* rank >= 1, alpha > 0, checked targets. */
void dpi_lora_of(const dpi_graph_shape *shape, int32_t rank, float alpha, uint32_t targets,
                 dpi_lora *lora);

/* Those of a layer of that shape. */
dpi_lora_layer dpi_lora_layer_of(const dpi_lora *lora, const dpi_graph_shape *shape,
                                 int32_t layer);

/* A that is normal with deviation 1 / sqrt(n_in), B of zeros: the model begins as it was. */
void dpi_lora_init(const dpi_lora *lora, const dpi_graph_shape *shape, uint64_t seed,
                   float *adapters);

#endif
