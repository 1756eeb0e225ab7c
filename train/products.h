/* products.h - a pass through the graph, and its products with weights, which may have adapters, in
 * the type `real`. Internal; a template like ops.h. */
#ifndef DPI_TRAIN_PRODUCTS_H
#define DPI_TRAIN_PRODUCTS_H

#include <stdbool.h>

#include "train/work.h"

/* ---- A pass ---------------------------------------------------------------------------------- */

/* Everything a pass is about. */
typedef struct pass {
    const dpi_graph_shape *s;
    dpi_graph_layout at; /* that of the layer which is computed */
    const dpi_row *row;
    const real *params;
    real *gradient; /* of the parameters, or of shape->lora; NULL: forward only */
    const real *adapters; /* [lora->n_params]; NULL: the weights are trained */
    work w;
} pass;

/* The same in a layer: with the layout of its kind. */
static pass in_layer(const pass *p, int32_t layer) {
    pass of_layer = *p;
    dpi_graph_layout_of_kind(p->s, dpi_graph_kind(p->s->layers, layer), &of_layer.at);
    return of_layer;
}

/* The input of a layer lies first in its activations. */
static real *input_of(const pass *p, int32_t layer) {
    return p->w.layers + dpi_graph_before(p->s->layers, layer, p->w.sizes);
}

/* In the layer itself. */
static activations activations_of(const pass *p, int32_t layer) {
    activations a;
    map_layer(p->s, &p->at, input_of(p, layer), &a);
    return a;
}

static int64_t offset_of(const pass *p, int32_t layer) {
    return dpi_graph_layer_at(p->s, &p->at, layer);
}

static const dpi_lora_matrix *adapters_of(const pass *p, int32_t layer) {
    return p->s->lora->matrix[dpi_graph_kind(p->s->layers, layer)];
}

static dpi_graph_layer layer_of(const pass *p, int32_t layer) {
    return p->s->layers ? p->s->layers[layer] : (dpi_graph_layer){0};
}

/* Numbers of the residual stream. */
static int64_t stream_size(const pass *p) { return (int64_t)p->row->n * p->s->dim; }

/* ---- Which matrices -------------------------------------------------------------------------- */

/* Matrices whose input is the same: `n` of a layer from `first` on, whose outputs stand side by
 * side. So do their weights, from `at` on, and their biases, from `bias` in those of the layer. */
typedef struct matrices {
    int32_t layer, first, n, n_in, n_out; /* n_out: of all of them */
    int64_t at, bias;
} matrices;

/* Those of which lora.h has the first one where a layer has attention. A delta net has one more
 * that reads the layer's input. */
static matrices matrices_of(const pass *p, int32_t layer, int32_t first) {
    const dpi_graph_shape *s = p->s;
    const dpi_graph_layout *at = &p->at;
    const int64_t offset = offset_of(p, layer);
    const int32_t dim = s->dim, ffn = s->ffn, n = at->n_mixed;
    const int32_t more = at->kind == DPI_LAYER_DELTA, shifted = first + more;
    switch (first) {
    case DPI_LORA_Q: return (matrices){layer, first, 3 + more, dim, n, offset + at->wqkv, 0};
    case DPI_LORA_O: return (matrices){layer, shifted, 1, at->n_mix, dim, offset + at->wo, n};
    case DPI_LORA_GATE:
        return (matrices){layer, shifted, 2, dim, 2 * ffn, offset + at->w_gate_up, n + dim};
    case DPI_LORA_DOWN:
        return (matrices){layer, shifted, 1, ffn, dim, offset + at->w_down, n + dim + 2 * ffn};
    default: return (matrices){0, DPI_GRAPH_OUTPUT, 1, dim, s->n_vocab, at->output, 0};
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
    for (int32_t i = 0; base && m->first < DPI_GRAPH_MATRICES && i < m->n; i++) {
        end = before + (int32_t)adapters_of(p, m->layer)[m->first + i].n_out;
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

/* ---- Forward --------------------------------------------------------------------------------- */

/* Of adapter a [rank, n_in], b [n_adapted, rank] of a layer: y [n, n_adapted] += s (x A^T) B^T. Its
 * rows are `stride` apart. */
static void add_adapter(const pass *p, int32_t layer, const dpi_lora_matrix *m, real *y,
                        int32_t stride, const real *x) {
    const dpi_lora *lora = p->s->lora;
    const real *of_layer = p->adapters + dpi_lora_at(lora, layer);
    const int32_t n = p->row->n, rank = lora->rank, n_in = (int32_t)m->n_in;
    GEMM(p->s->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, n, rank, n_in, 1, x, n_in,
         of_layer + m->a, n_in, 0, p->w.low, rank);
    GEMM(p->s->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, n, (int32_t)m->n_adapted, rank,
         (real)lora->scale, p->w.low, rank, of_layer + m->b, rank, 1, y, stride);
}

/* The matrices of a layer with their adapters and biases: y [n, n_out], plus y if `add`. */
static void linear(const pass *p, int32_t layer, int32_t first, real *y, const real *x, int add) {
    const matrices m = matrices_of(p, layer, first);
    for (tile t = {0}; next_tile(p, &m, &t);)
        op_linear(p->s->blas, y + t.column, m.n_out, x, t.weights, p->row->n, m.n_in, t.rows, add);
    const dpi_lora_matrix *a = p->adapters ? adapters_of(p, layer) + m.first : NULL;
    for (int32_t column = 0; a && column < m.n_out; column += (int32_t)a++->n_out)
        if (a->a >= 0)
            add_adapter(p, layer, a, y + column, m.n_out, x);
    if (p->s->biases)
        op_add_bias(y, p->s->biases + layer * dpi_graph_bias_size(p->s) + m.bias, p->row->n,
                    m.n_out);
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* Of the adapter of matrix m: u = x A^T, du = s dy B, dB = s dy^T u, dA = du^T x, and
 * dx += du A. Rows of dy are `stride` apart. */
static void adapter_backward(const pass *p, int32_t layer, const dpi_lora_matrix *m, real *dx,
                             const real *dy, int32_t stride, const real *x) {
    const dpi_blas *blas = p->s->blas;
    const dpi_lora *lora = p->s->lora;
    const real scale = (real)lora->scale, *of_layer = p->adapters + dpi_lora_at(lora, layer);
    const int32_t n = p->row->n, rank = lora->rank, n_in = (int32_t)m->n_in;
    const int32_t n_out = (int32_t)m->n_adapted;
    real *gradient = p->gradient + dpi_lora_at(lora, layer);
    real *u = p->w.low, *du = u + (int64_t)p->s->context * rank;
    GEMM(blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, n, rank, n_in, 1, x, n_in, of_layer + m->a,
         n_in, 0, u, rank);
    GEMM(blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, n_out, rank, n, scale, dy, stride, u, rank, 0,
         gradient + m->b, rank);
    GEMM(blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, n, rank, n_out, scale, dy, stride, of_layer + m->b,
         rank, 0, du, rank);
    GEMM(blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, rank, n_in, n, 1, du, rank, x, n_in, 0,
         gradient + m->a, n_in);
    GEMM(blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, n, n_in, rank, 1, du, rank, of_layer + m->a, n_in, 1,
         dx, n_in);
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
    const dpi_lora_matrix *a = adapters_of(p, layer) + m.first;
    for (int32_t column = 0; column < m.n_out; column += (int32_t)a++->n_out)
        if (a->a >= 0)
            adapter_backward(p, layer, a, dx, dy + column, m.n_out, x);
}

#endif
