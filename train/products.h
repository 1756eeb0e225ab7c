/* products.h - a pass over a row, and its products with weights and adapters, both ways, in the
 * type `real`. Internal; a template like ops.h. */
#ifndef DPI_TRAIN_PRODUCTS_H
#define DPI_TRAIN_PRODUCTS_H

#include <stdbool.h>

#include "train/work.h"

/* ---- A pass ---------------------------------------------------------------------------------- */

/* Everything a pass is about. */
typedef struct pass {
    const dpi_graph_shape *s;
    dpi_graph_layout at;
    const dpi_row *row;
    const real *params;
    real *gradient; /* of the parameters, or of shape->lora; NULL: forward only */
    const real *adapters; /* [lora->n_params]; NULL: the weights are trained */
    work w;
} pass;

static activations activations_of(const pass *p, int32_t layer) {
    activations a = {0};
    real *at = p->w.layers;
    for (int32_t l = 0; l <= layer; l++)
        at += map_layer(p->s, l, at, &a);
    a.dqkv = a.dqkv ? a.dqkv : p->w.dqkv;
    return a;
}

static int64_t offset_of(const pass *p, int32_t layer) { return p->at.layers[layer]; }

static dpi_graph_widths widths_of(const pass *p, int32_t layer) {
    return dpi_graph_widths_of(p->s, layer);
}
static dpi_graph_places places_of(const pass *p, int32_t layer) {
    return dpi_graph_places_of(p->s, layer);
}

static dpi_graph_layer layer_of(const pass *p, int32_t layer) {
    return p->s->layers ? p->s->layers[layer] : (dpi_graph_layer){0};
}

/* Numbers of the residual stream. */
static int64_t stream_size(const pass *p) { return (int64_t)p->row->n * p->s->dim; }

/* ---- Products with weights ------------------------------------------------------------------- */

/* Matrices whose input is the same: `n` of a layer from `first` on, whose outputs stand side by
 * side. So do their weights, from `at` on, and their biases, from `bias` in those of the layer. */
typedef struct matrices {
    int32_t layer, first, n, n_in, n_out; /* n_out: of all of them */
    int64_t at, bias;
} matrices;

/* Those of which graph.h has the first one where a layer has attention. A delta net has one more
 * that reads the layer's input, before all others. */
static matrices matrices_of(const pass *p, int32_t layer, int32_t first) {
    const dpi_graph_shape *s = p->s;
    const dpi_graph_widths w = widths_of(p, layer);
    const dpi_graph_places at = places_of(p, layer);
    const int64_t offset = offset_of(p, layer), bias = w.mixed;
    const int32_t dim = s->dim, ffn = w.ffn, input = w.input;
    const int32_t more = dpi_graph_kind(s, layer) == DPI_LAYER_DELTA, index = first + more;
    switch (first) {
    case DPI_LORA_Q: return (matrices){layer, first, 3 + more, dim, w.mixed, offset + at.wqkv, 0};
    case DPI_LORA_O: return (matrices){layer, index, 1, w.att, dim, offset + at.wo, bias};
    case DPI_LORA_GATE:
        return (matrices){layer, index, 2, dim, 2 * ffn, offset + at.w_gate_up, bias + dim};
    case DPI_LORA_DOWN:
        return (matrices){layer, index, 1, ffn, dim, offset + at.w_down, bias + dim + 2 * ffn};
    case DPI_GRAPH_INPUT_GATE:
        return (matrices){layer, first, 1, dim, input, offset + at.w_input_gate,
                          bias + 2 * dim + 2 * ffn};
    case DPI_GRAPH_INPUT:
        return (matrices){layer, first, 1, input, dim, offset + at.w_input,
                          bias + 2 * dim + 2 * ffn + input};
    default: return (matrices){0, DPI_GRAPH_OUTPUT, 1, dim, s->n_vocab, p->at.output, 0};
    }
}

/* Weights [rows, n_in] whose outputs begin at `column`. */
typedef struct tile {
    const real *weights;
    int32_t column, rows;
} tile;

/* The first tile, or with `t` filled in the next; false: there is none. Without a base all of the
 * matrices are one. */
static bool next_tile(const pass *p, const matrices *m, tile *t) {
    const dpi_graph_base *base = p->s->base;
    int32_t end = m->n_out, matrix = m->first, before = 0;
    t->column += t->rows;
    if (t->column == m->n_out)
        return false;
    const dpi_lora_layer lora =
        base ? dpi_lora_layer_of(p->s->lora, p->s, m->layer) : (dpi_lora_layer){0};
    for (int32_t i = 0; base && m->first < DPI_GRAPH_MATRICES && i < m->n; i++) {
        end = before + (int32_t)lora.matrix[m->first + i].n_out;
        matrix = m->first + i;
        if (t->column < end)
            break;
        before = end;
    }
    const int32_t most = base ? (int32_t)(tile_reals(p->s) / m->n_in) : m->n_out;
    t->rows = end - t->column < most ? end - t->column : most;
    t->weights = base ? p->w.tile : p->params + m->at;
    if (base)
        base->rows(base->model, m->layer, matrix, t->column - before, t->rows,
                   (float *)(void *)p->w.tile);
    return true;
}

/* Of adapter a [rank, n_in], b [n_adapted, rank]: y [n, n_adapted] += s (x A^T) B^T. Its
 * rows are `stride` apart. */
static void add_adapter(const pass *p, const dpi_lora_matrix *m, real *y, int32_t stride,
                        const real *x) {
    const dpi_lora *lora = p->s->lora;
    const int32_t n = p->row->n, rank = lora->rank, n_in = (int32_t)m->n_in;
    GEMM(p->s->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, n, rank, n_in, 1, x, n_in,
         p->adapters + m->a, n_in, 0, p->w.low, rank);
    GEMM(p->s->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, n, (int32_t)m->n_adapted, rank,
         (real)lora->scale, p->w.low, rank, p->adapters + m->b, rank, 1, y, stride);
}

/* Those of a layer; without any their end is 0. */
static dpi_lora_layer adapters_of(const pass *p, int32_t layer) {
    return p->adapters ? dpi_lora_layer_of(p->s->lora, p->s, layer) : (dpi_lora_layer){0};
}

/* The matrices of a layer with their adapters and biases: y [n, n_out], plus y if `add`. */
static void linear(const pass *p, int32_t layer, int32_t first, real *y, const real *x, int add) {
    const matrices m = matrices_of(p, layer, first);
    for (tile t = {0}; next_tile(p, &m, &t);)
        op_linear(p->s->blas, y + t.column, m.n_out, x, t.weights, p->row->n, m.n_in, t.rows, add);
    const dpi_lora_layer lora = adapters_of(p, layer);
    const dpi_lora_matrix *a = &lora.matrix[m.first];
    for (int32_t column = 0; lora.end && column < m.n_out; column += (int32_t)a++->n_out)
        if (a->a >= 0)
            add_adapter(p, a, y + column, m.n_out, x);
    if (p->s->biases)
        op_add_bias(y, p->s->biases + layer * dpi_graph_bias_size(p->s) + m.bias, p->row->n,
                    m.n_out);
}

/* x = embedding_scale times the rows of the embedding. */
static void embed(const pass *p, real *x) {
    const dpi_graph_shape *s = p->s;
    if (!s->base)
        op_embed(x, p->params + p->at.embedding, p->row->tokens, p->row->n, s->dim);
    for (int32_t t = 0; s->base && t < p->row->n; t++)
        s->base->rows(s->base->model, 0, DPI_GRAPH_EMBEDDING, p->row->tokens[t], 1,
                      (float *)(void *)(x + (int64_t)t * s->dim));
    op_scale(x, x, scale_or_1(s->embedding_scale), stream_size(p));
}

/* Of the adapter of matrix m: u = x A^T, du = s dy B, dB = s dy^T u, dA = du^T x, and
 * dx += du A. Rows of dy are `stride` apart. */
static void adapter_backward(const pass *p, const dpi_lora_matrix *m, real *dx, const real *dy,
                             int32_t stride, const real *x) {
    const dpi_blas *blas = p->s->blas;
    const dpi_lora *lora = p->s->lora;
    const real scale = (real)lora->scale, *a = p->adapters + m->a, *b = p->adapters + m->b;
    const int32_t n = p->row->n, rank = lora->rank, n_in = (int32_t)m->n_in;
    const int32_t n_out = (int32_t)m->n_adapted;
    real *u = p->w.low, *du = u + (int64_t)p->s->context * rank;
    GEMM(blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, n, rank, n_in, 1, x, n_in, a, n_in, 0, u,
         rank);
    GEMM(blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, n_out, rank, n, scale, dy, stride, u, rank, 0,
         p->gradient + m->b, rank);
    GEMM(blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, n, rank, n_out, scale, dy, stride, b, rank, 0, du,
         rank);
    GEMM(blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, rank, n_in, n, 1, du, rank, x, n_in, 0,
         p->gradient + m->a, n_in);
    GEMM(blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, n, n_in, rank, 1, du, rank, a, n_in, 1, dx, n_in);
}

/* The other way through the matrices: dx [n, n_in] from dy [n, n_out], and the gradient of their
 * weights or of their adapters. */
static void linear_backward(const pass *p, int32_t layer, int32_t first, real *dx, const real *dy,
                            const real *x) {
    const matrices m = matrices_of(p, layer, first);
    for (tile t = {0}; next_tile(p, &m, &t);)
        op_linear_dx(p->s->blas, dx, dy + t.column, m.n_out, t.weights, p->row->n, m.n_in, t.rows,
                     t.column > 0);
    if (!p->adapters) {
        op_linear_dw(p->s->blas, p->gradient + m.at, dy, x, p->row->n, m.n_in, m.n_out, 0);
        return;
    }
    const dpi_lora_layer lora = adapters_of(p, layer);
    const dpi_lora_matrix *a = &lora.matrix[m.first];
    for (int32_t column = 0; lora.end && column < m.n_out; column += (int32_t)a++->n_out)
        if (a->a >= 0)
            adapter_backward(p, a, dx, dy + column, m.n_out, x);
}

#endif
