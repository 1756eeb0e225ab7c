/* graph.h - a model of LLaMA's kind as it is trained: where each parameter lies, what a packed row
 * is, and the loss of a row with its gradient. Internal.
 *
 * What an architecture (engine/arch.h) has beyond LLaMA's is told by its table of tensors, and by
 * members of the shape that are 0 where there is nothing (engine/config.h has their meaning).
 *
 * A row is computed by one thread from end to end and writes a gradient of its own; the trainer
 * (trainer.c) runs rows in parallel and adds their gradients in a fixed order. So no sum
 * depends on how many threads there are or which one was faster. It is also where per-example
 * gradients belong: a row that holds one example gives that example's gradient, to be clipped
 * before it is added.
 *
 * The arithmetic is written once (ops.h, attention.h, delta.h, work.h, products.h, graph_tmpl.h),
 * in the type `real`, and compiled as graph_*.c: f32 for each instruction set, and f64, in which
 * finite differences are checked.
 */
#ifndef DPI_TRAIN_GRAPH_H
#define DPI_TRAIN_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model.h"
#include "kernels/gemm.h"

typedef struct dpi_lora dpi_lora; /* lora.h */

/* Matrices that are not in params: those of an open model in any weight type, whose rows are made
 * f32 a few at a time. Where only adapters are trained, by f32 graphs. */
typedef struct dpi_graph_base {
    /* Rows [first, first + n) of a matrix (lora.h, or below) into `to` [n, n_in]. Any number of
     * threads at a time. */
    void (*rows)(const void *model, int32_t layer, int32_t matrix, int64_t first, int64_t n,
                 float *to);
    const void *model;
} dpi_graph_base;

/* Behind the matrices of a layer with attention that may have adapters (lora.h): others of such a
 * layer, and behind those of any layer, those of none. */
enum {
    DPI_GRAPH_INPUT_GATE = 7,
    DPI_GRAPH_INPUT = 8,
    DPI_GRAPH_MATRICES = 9, /* the most that a layer has */
    DPI_GRAPH_EMBEDDING = DPI_GRAPH_MATRICES,
    DPI_GRAPH_OUTPUT
};

/* What a layer has of its own. */
typedef struct dpi_graph_layer {
    int32_t window; /* a position sees so many, its own included; 0: all before it */
    dpi_rotation rotation;
    dpi_layer_kind kind;
} dpi_graph_layer;

typedef struct dpi_graph_shape {
    const dpi_arch *arch; /* the tensors of a layer, the gate, the pairs that turn together */
    int32_t n_layer, dim, n_head, n_kv_head, ffn, n_vocab;
    int32_t context; /* the most positions of a row */
    int32_t tied;    /* 1: the output head is the embedding */
    int32_t head_dim, head_dim_v; /* of q and k, and of v; 0: dim / n_head */
    int32_t n_rot; /* dimensions of a head that are rotated, its first ones; even; 0: all */
    float rms_eps, rope_base;
    int32_t n_rotations;       /* 0: 1 */
    const double *frequencies; /* [n_rotations, n_rot / 2] radians per position; NULL: of rope_base.
                                  Not owned */
    double magnitudes[DPI_ROTATIONS]; /* of rotated queries and keys; 0: 1 */
    const dpi_graph_layer *layers; /* [n_layer]; NULL: attention, without windows, and one rotation.
                                      Not owned */
    const dpi_shape *shapes; /* [n_layer] their sizes, of which those here are the most; NULL: all
                                have those here. Not owned */
    const dpi_model *inputs; /* of which layers have inputs of their own: what makes these is not
                                trained. NULL: they have none. Not owned */
    float embedding_scale, residual_scale, logit_scale; /* 0: 1 */
    float attention_scale;                              /* 0: 1 / sqrt(head_dim) */
    float attention_cap, final_cap;                     /* 0: none */
    float temperature_scale;                            /* of scores, by position; 0: none */
    int32_t n_ctx_original;                             /* with temperature_scale */
    const float *biases; /* [n_layer, dpi_graph_bias_size]: what is added to each product of a
                            layer; never trained. NULL: none. Not owned */
    const float *output_bias; /* [n_vocab], the same of the head. NULL: none. Not owned */
    const dpi_lora *lora; /* what is trained in place of the weights; NULL: the weights. Not
                             owned */
    const dpi_graph_base *base; /* the matrices; NULL: in params. Needs lora. Not owned */
    const dpi_blas *blas; /* open, for those who compute with the shape; not owned */
} dpi_graph_shape;

static inline dpi_layer_kind dpi_graph_kind(const dpi_graph_shape *shape, int32_t layer) {
    return shape->layers ? shape->layers[layer].kind : DPI_LAYER_ATTENTION;
}
/* The tensors of a layer: those of its kind. */
static inline const dpi_arch_table *dpi_train_table(const dpi_graph_shape *shape, int32_t layer) {
    return &shape->arch->layers[dpi_graph_kind(shape, layer)];
}
/* The sizes of a layer, and which parts it has. */
dpi_shape dpi_graph_sizes(const dpi_graph_shape *shape, int32_t layer);

/* How wide a layer is. Of a delta net the members of heads, q, k and v are 0. */
typedef struct dpi_graph_widths {
    int32_t head, head_v; /* of one head: q and k, and v */
    int32_t q, k, v;      /* of all heads; k and v may be those of another layer */
    int32_t qkv;          /* of q, and of k and v if they are its own; of a delta net mixed */
    int32_t made;         /* of what its matrices give of these: v may be made as k is */
    int32_t mixed;        /* rows of these matrices: made, and gates if queries have them */
    int32_t att;          /* what attention or the delta net gives, and its last matrix takes */
    int32_t n_head, n_kv_head, ffn;
    dpi_delta_shape delta; /* of a delta net; else 0 */
    int32_t input; /* its own for each token; 0: none */
} dpi_graph_widths;

dpi_graph_widths dpi_graph_widths_of(const dpi_graph_shape *shape, int32_t layer);
/* The most of any layer. */
dpi_graph_widths dpi_graph_widest(const dpi_graph_shape *shape);

/* The weights of a norm or of another array, in a layer from its beginning. */
typedef struct dpi_graph_norm {
    int64_t at;
    int32_t n; /* 0: the layer has none there */
} dpi_graph_norm;

/* Offsets into the flat array of parameters, in reals; with a base those of arrays alone. Matrices
 * are [n_out, n_in], row-major, as in GGUF; those that share an input lie one after the other and
 * are computed as one. */
typedef struct dpi_graph_layout {
    int64_t embedding;   /* [n_vocab, dim] */
    int64_t output;      /* [n_vocab, dim]; the embedding if tied */
    int64_t output_norm; /* [dim] */
    int64_t layers[DPI_LAYERS_MAX]; /* [n_layer] where each begins */
    int64_t n_params;
} dpi_graph_layout;

/* The same in a layer, from its beginning. */
typedef struct dpi_graph_places {
    dpi_graph_norm attn_norm;      /* [dim] before attention, or before the delta net */
    int64_t wqkv;                  /* [mixed, dim]: q, with gates if the architecture gates
                                      queries, k, v; of a delta net keys, z, beta, decay */
    dpi_graph_norm q_norm, k_norm; /* [head] of each head, or of all of them as one vector */
    dpi_graph_norm filter, rate, decay_bias, value_norm; /* of a delta net (delta.h) */
    int64_t wo;                    /* [dim, att] */
    dpi_graph_norm post_attn_norm; /* [dim] of what attention adds */
    dpi_graph_norm ffn_norm;       /* [dim] before the feed-forward */
    int64_t w_gate_up;             /* [2 ffn, dim]: gate, up */
    int64_t w_down;                /* [dim, ffn] */
    dpi_graph_norm post_ffn_norm;  /* [dim] of what the feed-forward adds */
    int64_t w_input_gate;          /* [input, dim] */
    int64_t w_input;               /* [dim, input] */
    dpi_graph_norm post_input_norm; /* [dim] of what the layer's input adds */
    dpi_graph_norm output_scale;   /* [1] of all that the layer gives */
    int64_t size;
} dpi_graph_places;

void dpi_graph_layout_of(const dpi_graph_shape *shape, dpi_graph_layout *layout);
dpi_graph_places dpi_graph_places_of(const dpi_graph_shape *shape, int32_t layer);
/* A tensor of a layer that the graph has no place for; NULL: it has all of the architecture. */
const dpi_arch_tensor *dpi_graph_unknown(const dpi_arch *arch);
/* Numbers of a layer's biases: as many as its matrices have rows, in their order (lora.h); the most
 * of any layer. */
int64_t dpi_graph_bias_size(const dpi_graph_shape *shape);

/* Examples packed one after the other. Attention does not cross them, and positions start at 0 in
 * each. */
typedef struct dpi_row {
    int32_t n;              /* positions, 1..context */
    int32_t n_segments;
    const int32_t *begins;  /* [n_segments + 1]: first position of each example; then n */
    const int32_t *tokens;  /* [n] inputs */
    const int32_t *targets; /* [n] the token after; not read where the weight is 0 */
    const float *weights;   /* [n] of each position's loss; below 0: a loss that is to grow */
} dpi_row;

/* One compiled version of the graph. `void` is an array of its real type. */
typedef struct dpi_graph {
    size_t real_size;
    /* Reals of work space for rows of up to shape->context positions. */
    size_t (*work_size)(const dpi_graph_shape *shape);
    /* Fills the tables of a zeroed work space (rotations). Once, before its first use. */
    void (*work_init)(const dpi_graph_shape *shape, void *work);
    /* The sum over positions of weight * -log p(target). If `gradient` [n_params] is not NULL it
     * becomes the gradient of `scale` times that; what it held before does not matter.
     * With shape->lora, params is [n_params + lora->n_params]: the weights, and behind them the
     * adapters, of which gradient [lora->n_params] is. */
    double (*loss)(const dpi_graph_shape *shape, const void *params, const dpi_row *row,
                   double scale, void *gradient, void *work);
    /* Logits [n, n_vocab] of every position, with their scale and their cap. */
    void (*logits)(const dpi_graph_shape *shape, const void *params, const dpi_row *row,
                   void *logits, void *work);
} dpi_graph;

extern const dpi_graph dpi_graph_f64, dpi_graph_f32;
#if defined(__x86_64__)
extern const dpi_graph dpi_graph_f32_avx2, dpi_graph_f32_avx512;
#endif

/* The f32 version for the best instruction set that this processor has. */
const dpi_graph *dpi_graph_best(void);

/* Operations of a forward and backward pass over a row: two for each multiply and add of the matrix
 * products and of attention or of delta nets, each of which the backward pass does twice. */
double dpi_graph_flops(const dpi_graph_shape *shape, const dpi_row *row);

#endif
