/* graph_tmpl.h - the graph and its gradient in the type `real`; a template: graph_*.c include
 * it with GRAPH_NAME, the dpi_graph to define. Internal. */
#include <stdbool.h>

#include "train/work.h"

/* ---- Work space ------------------------------------------------------------------------------ */

static work map(const dpi_graph_shape *s, void *base) {
    dpi_graph_layout at;
    dpi_graph_layout_of(s, &at);
    return work_map(s, &at, base);
}

static size_t work_size(const dpi_graph_shape *shape) { return map(shape, NULL).size; }

/* Angles as the engine has them (session.c): position / base^(2 i / n_rot), in double. */
static void work_init(const dpi_graph_shape *shape, void *base) {
    const int32_t n_rot = n_rot_of(shape);
    real *cs = map(shape, base).cs;
    for (int32_t r = 0; r < n_rotations_of(shape); r++) {
        const double magnitude = shape->magnitudes[r] > 0 ? shape->magnitudes[r] : 1;
        for (int32_t t = 0; t < shape->context; t++)
            for (int32_t i = 0; i < n_rot; i += 2, cs += 2) {
                double angle = t * (shape->frequencies
                                        ? shape->frequencies[(r * n_rot + i) / 2]
                                        : pow((double)shape->rope_base, -(double)i / n_rot));
                cs[0] = (real)(magnitude * cos(angle));
                cs[1] = (real)(magnitude * sin(angle));
            }
    }
}

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
    activations a;
    map_layer(p->s, &p->at, p->w.layers + layer * p->w.layer_size, &a);
    return a;
}

static int64_t offset_of(const pass *p, int32_t layer) {
    return p->at.layers + layer * p->at.layer_size;
}

static dpi_graph_layer layer_of(const pass *p, int32_t layer) {
    return p->s->layers ? p->s->layers[layer] : (dpi_graph_layer){0};
}

/* Numbers of the residual stream. */
static int64_t stream_size(const pass *p) { return (int64_t)p->row->n * p->s->dim; }

/* ---- Products with weights ------------------------------------------------------------------- */

/* Matrices whose input is the same: `n` of lora.h from `first` on, whose outputs stand side by
 * side. So do their weights, from `at` on, and their biases, from `bias` in those of the layer. */
typedef struct matrices {
    int32_t layer, first, n, n_in, n_out; /* n_out: of all of them */
    int64_t at, bias;
} matrices;

static matrices matrices_of(const pass *p, int32_t layer, int32_t first) {
    const dpi_graph_shape *s = p->s;
    const dpi_graph_layout *at = &p->at;
    const int64_t offset = offset_of(p, layer);
    const int32_t dim = s->dim, ffn = s->ffn, qkv = qkv_of(s);
    switch (first) {
    case DPI_LORA_Q: return (matrices){layer, first, 3, dim, qkv, offset + at->wqkv, 0};
    case DPI_LORA_O: return (matrices){layer, first, 1, att_of(s), dim, offset + at->wo, qkv};
    case DPI_LORA_GATE:
        return (matrices){layer, first, 2, dim, 2 * ffn, offset + at->w_gate_up, qkv + dim};
    case DPI_LORA_DOWN:
        return (matrices){layer, first, 1, ffn, dim, offset + at->w_down, qkv + dim + 2 * ffn};
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
    for (int32_t i = 0; base && m->first < DPI_LORA_MATRICES && i < m->n; i++) {
        end = before + (int32_t)p->s->lora->matrix[m->first + i].n_out;
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

/* Of adapter a [rank, n_in], b [n_adapted, rank] of a layer: y [n, n_adapted] += s (x A^T) B^T. Its
 * rows are `stride` apart. */
static void add_adapter(const pass *p, int32_t layer, const dpi_lora_matrix *m, real *y,
                        int32_t stride, const real *x) {
    const dpi_lora *lora = p->s->lora;
    const real *of_layer = p->adapters + layer * lora->layer_size;
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
    const dpi_lora_matrix *a = p->adapters ? &p->s->lora->matrix[first] : NULL;
    for (int32_t column = 0; a && column < m.n_out; column += (int32_t)a++->n_out)
        if (a->a >= 0)
            add_adapter(p, layer, a, y + column, m.n_out, x);
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

/* ---- Layers ---------------------------------------------------------------------------------- */

static attn_head head_of(const pass *p, int32_t layer, const activations *a, int32_t segment,
                         int32_t head) {
    const dpi_graph_shape *s = p->s;
    const dpi_graph_widths w = dpi_graph_widths_of(s);
    int32_t group = head / (s->n_head / s->n_kv_head), begin = p->row->begins[segment];
    const real *qkv = a->qkv + (int64_t)begin * w.qkv;
    return (attn_head){.blas = s->blas,
                       .q = qkv + head * w.head,
                       .k = qkv + w.q + group * w.head,
                       .v = qkv + w.q + w.k + group * w.head_v,
                       .stride = w.qkv,
                       .n = p->row->begins[segment + 1] - begin,
                       .head_dim = w.head,
                       .head_dim_v = w.head_v,
                       .out_stride = w.att,
                       .scale = s->attention_scale > 0 ? (real)s->attention_scale
                                                       : 1 / SQRT((real)w.head),
                       .cap = (real)s->attention_cap,
                       .window = layer_of(p, layer).window,
                       .temperature = (real)s->temperature_scale,
                       .n_original = s->n_ctx_original};
}

/* Queries and keys lie side by side: rotated (sign 1) or turned back (-1) as one. */
static void rope_qk(const pass *p, int32_t layer, real *qkv, real sign) {
    const dpi_graph_shape *s = p->s;
    const int32_t n_rot = n_rot_of(s), rotation = (int32_t)layer_of(p, layer).rotation;
    const op_pairs pairs = s->arch->rotates_halves ? (op_pairs){n_rot / 2, 1, n_rot / 2}
                                                   : (op_pairs){n_rot / 2, 2, 1};
    if (rotation != DPI_ROTATION_NONE)
        op_rope(qkv, qkv_of(s), p->w.cs + (int64_t)rotation * s->context * n_rot, p->row->begins,
                p->row->n_segments, s->n_head + s->n_kv_head, dpi_graph_widths_of(s).head, pairs,
                sign);
}

/* q and k by their norms: of each head, or of all of them as one. What they were is kept. */
static void norm_qk(const pass *p, int32_t layer, const activations *a) {
    const dpi_graph_widths w = dpi_graph_widths_of(p->s);
    const dpi_graph_norm q = p->at.q_norm, k = p->at.k_norm;
    const real *of_layer = p->params + offset_of(p, layer);
    for (int64_t t = 0; q.n && t < p->row->n; t++) {
        real *to = a->qkv + t * w.qkv, *from = a->qk + t * (w.q + w.k);
        memcpy(from, to, (size_t)(w.q + w.k) * sizeof *to);
        op_rmsnorm(to, a->rq + t * (w.q / q.n), from, of_layer + q.at, w.q / q.n, q.n,
                   p->s->rms_eps);
        op_rmsnorm(to + w.q, a->rk + t * (w.k / k.n), from + w.q, of_layer + k.at, w.k / k.n, k.n,
                   p->s->rms_eps);
    }
}

static void attention_forward(const pass *p, int32_t layer, const activations *a) {
    const dpi_graph_shape *s = p->s;
    for (int32_t segment = 0; segment < p->row->n_segments; segment++)
        for (int32_t head = 0; head < s->n_head; head++) {
            attn_head h = head_of(p, layer, a, segment, head);
            int64_t begin = p->row->begins[segment];
            attn_forward(&h, a->att + begin * h.out_stride + head * h.head_dim_v,
                         a->lse + begin * s->n_head + head, s->n_head, p->w.blocks);
        }
}

/* What a block computes with: x, normalised where a norm stands before it, to `in`. */
static void input(const pass *p, int32_t layer, dpi_graph_norm norm, real *in, real *r,
                  const real *x) {
    if (norm.n)
        op_rmsnorm(in, r, x, p->params + offset_of(p, layer) + norm.at, p->row->n, norm.n,
                   p->s->rms_eps);
}

/* to = x + residual_scale w in, normalised before where a norm stands after the block: then what
 * the block adds is kept in `added`. */
static void output(const pass *p, int32_t layer, int32_t matrix, real *to, const real *x,
                   const real *in, dpi_graph_norm norm, real *added, real *r) {
    const int64_t n = stream_size(p);
    if (!norm.n && !has_residual_scale(p->s)) {
        memcpy(to, x, (size_t)n * sizeof *to);
        linear(p, layer, matrix, to, in, 1);
        return;
    }
    real *y = norm.n ? added : p->w.added;
    linear(p, layer, matrix, y, in, 0);
    if (norm.n)
        op_rmsnorm(to, r, y, p->params + offset_of(p, layer) + norm.at, p->row->n, norm.n,
                   p->s->rms_eps);
    op_add_scaled(to, x, norm.n ? to : y, norm.n ? 1 : scale_or_1(p->s->residual_scale), n);
}

/* From a.x to `out`, the input of the next layer. */
static void layer_forward(const pass *p, int32_t layer, real *out) {
    const dpi_graph_layout *at = &p->at;
    const activations a = activations_of(p, layer);
    input(p, layer, at->attn_norm, a.n1, a.r1, a.x);
    linear(p, layer, DPI_LORA_Q, a.qkv, a.n1, 0);
    norm_qk(p, layer, &a);
    rope_qk(p, layer, a.qkv, 1);
    attention_forward(p, layer, &a);
    output(p, layer, DPI_LORA_O, a.middle, a.x, a.att, at->post_attn_norm, a.attended, a.r_att);
    input(p, layer, at->ffn_norm, a.n2, a.r2, a.middle);
    linear(p, layer, DPI_LORA_GATE, a.gu, a.n2, 0);
    (p->s->arch->has_gelu ? op_geglu : op_swiglu)(a.h, a.gu, p->row->n, p->s->ffn);
    output(p, layer, DPI_LORA_DOWN, out, a.middle, a.h, at->post_ffn_norm, a.fed, a.r_ffn);
}

static void forward(const pass *p) {
    embed(p, activations_of(p, 0).x);
    for (int32_t l = 0; l < p->s->n_layer; l++)
        layer_forward(p, l, l + 1 < p->s->n_layer ? activations_of(p, l + 1).x : p->w.x);
}

/* ---- The head: norm, logits, loss ------------------------------------------------------------ */

/* Only rows with a weight have logits: masked prompts cost nothing here. Returns how many. */
static int32_t gather_rows(const pass *p) {
    int32_t n = 0, dim = p->s->dim;
    for (int32_t t = 0; t < p->row->n; t++) {
        if (!(p->row->weights[t] < 0 || p->row->weights[t] > 0))
            continue;
        p->w.rows[n] = t;
        p->w.targets[n] = p->row->targets[t];
        p->w.packed[n] = (real)p->row->weights[t];
        memmove(p->w.norm + (int64_t)n * dim, p->w.norm + (int64_t)t * dim,
                (size_t)dim * sizeof(real));
        n++;
    }
    return n;
}

/* Logits [rows, n_vocab] of rows x of the last norm. */
static void head_logits(const pass *p, real *y, const real *x, int32_t rows) {
    const matrices m = matrices_of(p, 0, DPI_GRAPH_OUTPUT);
    for (tile t = {0}; next_tile(p, &m, &t);)
        op_linear(p->s->blas, y + t.column, m.n_out, x, t.weights, rows, m.n_in, t.rows, 0);
    if (p->s->output_bias)
        op_add_bias(y, p->s->output_bias, rows, m.n_out);
}

/* The scale and the cap of a row of logits; their derivative is kept. */
static void bend(const pass *p, real *y) {
    op_soft_cap(y, p->w.slope, p->s->n_vocab, scale_or_1(p->s->logit_scale),
                (real)p->s->final_cap);
}

/* Loss of rows of logits, which become its gradient: `from` is their place among the gathered. */
static double logits_loss(const pass *p, int32_t from, int32_t rows, double scale) {
    const int32_t n_vocab = p->s->n_vocab, *targets = p->w.targets + from;
    double loss = 0;
    if (!bends_logits(p->s))
        return op_cross_entropy(p->w.logits, targets, p->w.packed + from, rows, n_vocab, scale);
    for (int32_t t = 0; t < rows; t++) {
        real *y = p->w.logits + (int64_t)t * n_vocab;
        bend(p, y);
        loss += op_cross_entropy(y, targets + t, p->w.packed + from + t, 1, n_vocab, scale);
        for (int32_t i = 0; i < n_vocab; i++)
            y[i] *= p->w.slope[i];
    }
    return loss;
}

/* Loss of the n gathered rows. With a gradient: of the output matrix, and of the rows in dnorm. */
static double head_loss(const pass *p, int32_t n, double scale) {
    const dpi_graph_shape *s = p->s;
    const int32_t most = head_rows(s);
    double loss = 0;
    for (int32_t from = 0; from < n; from += most) {
        int32_t rows = n - from < most ? n - from : most;
        const real *x = p->w.norm + (int64_t)from * s->dim;
        head_logits(p, p->w.logits, x, rows);
        loss += logits_loss(p, from, rows, scale);
        if (!p->gradient)
            continue;
        const matrices m = matrices_of(p, 0, DPI_GRAPH_OUTPUT);
        for (tile t = {0}; next_tile(p, &m, &t);)
            op_linear_dx(s->blas, p->w.dnorm + (int64_t)from * s->dim, p->w.logits + t.column,
                         m.n_out, t.weights, rows, m.n_in, t.rows, t.column > 0);
        if (!p->adapters)
            op_linear_dw(s->blas, p->gradient + p->at.output, p->w.logits, x, rows, s->dim,
                         s->n_vocab, 1);
    }
    return loss;
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* The gradient of a norm's weights is added there. */
static real *norm_gradient(const pass *p, int64_t offset) {
    return p->adapters ? p->w.unused : p->gradient + offset;
}

/* Of the adapter of matrix m: u = x A^T, du = s dy B, dB = s dy^T u, dA = du^T x, and
 * dx += du A. Rows of dy are `stride` apart. */
static void adapter_backward(const pass *p, int32_t layer, const dpi_lora_matrix *m, real *dx,
                             const real *dy, int32_t stride, const real *x) {
    const dpi_blas *blas = p->s->blas;
    const dpi_lora *lora = p->s->lora;
    const real scale = (real)lora->scale, *of_layer = p->adapters + layer * lora->layer_size;
    const int32_t n = p->row->n, rank = lora->rank, n_in = (int32_t)m->n_in;
    const int32_t n_out = (int32_t)m->n_adapted;
    real *gradient = p->gradient + layer * lora->layer_size;
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
    const dpi_lora_matrix *a = &p->s->lora->matrix[first];
    for (int32_t column = 0; column < m.n_out; column += (int32_t)a++->n_out)
        if (a->a >= 0)
            adapter_backward(p, layer, a, dx, dy + column, m.n_out, x);
}

static void attention_backward(const pass *p, int32_t layer, const activations *a,
                               const real *datt) {
    const dpi_graph_shape *s = p->s;
    int32_t width = qkv_of(s);
    memset(p->w.dqkv, 0, (size_t)p->row->n * (size_t)width * sizeof(real));
    for (int32_t segment = 0; segment < p->row->n_segments; segment++)
        for (int32_t head = 0; head < s->n_head; head++) {
            attn_head h = head_of(p, layer, a, segment, head);
            int64_t begin = p->row->begins[segment];
            int64_t out = begin * h.out_stride + head * h.head_dim_v;
            const real *lse = a->lse + begin * s->n_head + head;
            attn_backward(&h, a->att + out, datt + out, lse, s->n_head,
                          p->w.dqkv + (h.q - a->qkv), p->w.dqkv + (h.k - a->qkv),
                          p->w.dqkv + (h.v - a->qkv), p->w.blocks);
        }
}

/* w.dqkv: from the gradient by normalised q and k to that by what the product gave. */
static void norm_qk_backward(const pass *p, int32_t layer, const activations *a) {
    const dpi_graph_widths w = dpi_graph_widths_of(p->s);
    const dpi_graph_norm q = p->at.q_norm, k = p->at.k_norm;
    const int64_t offset = offset_of(p, layer);
    const size_t n_bytes = (size_t)(w.q + w.k) * sizeof(real);
    for (int64_t t = 0; q.n && t < p->row->n; t++) {
        real *d = p->w.dqkv + t * w.qkv, *by = p->w.dqk;
        const real *from = a->qk + t * (w.q + w.k);
        memcpy(by, d, n_bytes);
        memset(d, 0, n_bytes);
        op_rmsnorm_grad(d, norm_gradient(p, offset + q.at), by, from, p->params + offset + q.at,
                        a->rq + t * (w.q / q.n), w.q / q.n, q.n);
        op_rmsnorm_grad(d + w.q, norm_gradient(p, offset + k.at), by + w.q, from + w.q,
                        p->params + offset + k.at, a->rk + t * (w.k / k.n), w.k / k.n, k.n);
    }
}

/* w.dx += the gradient through the input of a block, of which w.dn is that by the input itself. */
static void input_backward(const pass *p, int32_t layer, dpi_graph_norm norm, const real *x,
                           const real *r) {
    const int64_t offset = offset_of(p, layer) + norm.at;
    if (norm.n)
        op_rmsnorm_grad(p->w.dx, norm_gradient(p, offset), p->w.dn, x, p->params + offset, r,
                        p->row->n, norm.n);
    else
        op_add_scaled(p->w.dx, p->w.dx, p->w.dn, 1, stream_size(p));
}

/* The gradient by what a block adds, of which w.dx is that by x. */
static const real *output_backward(const pass *p, int32_t layer, dpi_graph_norm norm,
                                   const real *added, const real *r) {
    const int64_t offset = offset_of(p, layer) + norm.at, n = stream_size(p);
    if (!norm.n && !has_residual_scale(p->s))
        return p->w.dx;
    if (norm.n) {
        memset(p->w.added, 0, (size_t)n * sizeof *p->w.added);
        op_rmsnorm_grad(p->w.added, norm_gradient(p, offset), p->w.dx, added, p->params + offset, r,
                        p->row->n, norm.n);
    } else {
        op_scale(p->w.added, p->w.dx, scale_or_1(p->s->residual_scale), n);
    }
    return p->w.added;
}

/* w.dx: from the gradient of the layer's output to that of its input. */
static void layer_backward(const pass *p, int32_t layer) {
    const dpi_graph_layout *at = &p->at;
    const activations a = activations_of(p, layer);
    const real *added = output_backward(p, layer, at->post_ffn_norm, a.fed, a.r_ffn);
    linear_backward(p, layer, DPI_LORA_DOWN, p->w.dh, added, a.h);
    (p->s->arch->has_gelu ? op_geglu_grad : op_swiglu_grad)(a.gu, p->w.dh, p->row->n, p->s->ffn);
    linear_backward(p, layer, DPI_LORA_GATE, p->w.dn, a.gu, a.n2);
    input_backward(p, layer, at->ffn_norm, a.middle, a.r2);
    added = output_backward(p, layer, at->post_attn_norm, a.attended, a.r_att);
    linear_backward(p, layer, DPI_LORA_O, p->w.dn, added, a.att);
    attention_backward(p, layer, &a, p->w.dn);
    rope_qk(p, layer, p->w.dqkv, -1);
    norm_qk_backward(p, layer, &a);
    linear_backward(p, layer, DPI_LORA_Q, p->w.dn, p->w.dqkv, a.n1);
    input_backward(p, layer, at->attn_norm, a.x, a.r1);
}

/* What the operators add to instead of writing begins at zero. */
static void clear_gradient(const pass *p) {
    const dpi_graph_layout *at = &p->at;
    const dpi_graph_norm norms[] = {at->attn_norm, at->q_norm,   at->k_norm,
                                    at->post_attn_norm, at->ffn_norm, at->post_ffn_norm};
    size_t dim = (size_t)p->s->dim, table = dim * (size_t)p->s->n_vocab * sizeof(real);
    memset(p->gradient + at->embedding, 0, table);
    memset(p->gradient + at->output, 0, table);
    memset(p->gradient + at->output_norm, 0, dim * sizeof(real));
    for (int32_t l = 0; l < p->s->n_layer; l++)
        for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
            memset(p->gradient + offset_of(p, l) + norms[i].at, 0,
                   (size_t)norms[i].n * sizeof(real));
}

/* dnorm [n, dim], of the gathered rows, to w.dx, of all rows, through the last norm. */
static void norm_backward(const pass *p, int32_t n) {
    const dpi_graph_shape *s = p->s;
    memset(p->w.dx, 0, (size_t)p->row->n * (size_t)s->dim * sizeof(real));
    for (int32_t i = 0; i < n; i++) {
        int64_t at = (int64_t)p->w.rows[i] * s->dim;
        op_rmsnorm_grad(p->w.dx + at, norm_gradient(p, p->at.output_norm),
                        p->w.dnorm + (int64_t)i * s->dim, p->w.x + at,
                        p->params + p->at.output_norm, p->w.r + p->w.rows[i], 1, s->dim);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static pass begin_pass(const dpi_graph_shape *s, const void *params, const dpi_row *row,
                       void *gradient, void *base) {
    pass p = {.s = s, .row = row, .params = params, .gradient = gradient};
    dpi_graph_layout_of(s, &p.at);
    p.w = work_map(s, &p.at, base);
    p.adapters = s->lora ? p.params + p.at.n_params : NULL;
    forward(&p);
    op_rmsnorm(p.w.norm, p.w.r, p.w.x, p.params + p.at.output_norm, row->n, s->dim, s->rms_eps);
    return p;
}

static double loss(const dpi_graph_shape *s, const void *params, const dpi_row *row, double scale,
                   void *gradient, void *base) {
    pass p = begin_pass(s, params, row, gradient, base);
    int32_t n = gather_rows(&p);
    if (gradient && !p.adapters)
        clear_gradient(&p);
    double sum = head_loss(&p, n, scale);
    if (!gradient)
        return sum;
    norm_backward(&p, n);
    for (int32_t l = s->n_layer - 1; l >= 0; l--)
        layer_backward(&p, l);
    if (!p.adapters) {
        op_scale(p.w.dx, p.w.dx, scale_or_1(s->embedding_scale), stream_size(&p));
        op_embed_grad(p.gradient + p.at.embedding, p.w.dx, row->tokens, row->n, s->dim);
    }
    return sum;
}

static void logits(const dpi_graph_shape *s, const void *params, const dpi_row *row, void *out,
                   void *base) {
    pass p = begin_pass(s, params, row, NULL, base);
    head_logits(&p, out, p.w.norm, row->n);
    for (int64_t t = 0; bends_logits(s) && t < row->n; t++)
        bend(&p, (real *)out + t * s->n_vocab);
}

const dpi_graph GRAPH_NAME = {.real_size = sizeof(real), .work_size = work_size,
                              .work_init = work_init, .loss = loss, .logits = logits};
