/* graph_tmpl.h - the graph and its gradient in the type `real`; a template: graph_*.c include
 * it with GRAPH_NAME, the dpi_graph to define. Internal. */
#include <stdbool.h>

#include "train/attention.h"
#include "train/graph.h"
#include "train/lora.h"

enum {
    HEAD_ROWS = 64,       /* rows whose logits are in the cache at a time */
    BASE_HEAD_ROWS = 256, /* with a base: each time its weights are made again */
    TILE_REALS = 1 << 20  /* most weights of a base that are f32 at a time */
};

/* ---- Work space ------------------------------------------------------------------------------ */

/* What the backward pass of a layer needs of the forward pass. */
typedef struct activations {
    real *x;      /* [context, dim] input of the layer */
    real *r1;     /* [context] of the first norm */
    real *n1;     /* [context, dim] normalised */
    real *qkv;    /* [context, qkv], rotated */
    real *att;    /* [context, att] output of attention */
    real *lse;    /* [context, n_head] */
    real *middle; /* [context, dim] x + attention */
    real *r2;     /* [context] */
    real *n2;     /* [context, dim] */
    real *gu;     /* [context, 2 ffn] */
    real *h;      /* [context, ffn] */
} activations;

/* Views of one array; layers' activations one after the other. */
typedef struct work {
    real *cs; /* [context, n_rot]: cosines and sines */
    activations first;
    int64_t layer_size;
    real *x;      /* [context, dim] output of the last layer */
    real *r;      /* [context] of the last norm */
    real *norm;   /* [context, dim] the last norm, rows that have a loss only */
    real *dnorm;  /* [context, dim] */
    real *packed; /* [context] weights of those rows */
    int32_t *rows, *targets; /* [context] which rows they are, and their targets */
    real *logits; /* [head_rows, n_vocab] */
    real *blocks; /* [2, ATTN_BLOCK, context] */
    real *dx;     /* [context, dim] */
    real *dn;     /* [context, the larger of dim and att] */
    real *dqkv;   /* as qkv */
    real *dh;     /* [context, ffn] */
    real *low;    /* [2, context, rank] where adapters are trained */
    real *unused; /* [dim] gradients of norms that are not trained */
    real *tile;   /* [tile_reals] with a base */
    size_t size;  /* of all, in reals */
} work;

static int32_t head_rows(const dpi_graph_shape *s) {
    const int32_t most = s->base ? BASE_HEAD_ROWS : HEAD_ROWS;
    return s->context < most ? s->context : most;
}
static int64_t tile_reals(const dpi_graph_shape *s) {
    const dpi_graph_widths wide = dpi_graph_widths_of(s);
    const int64_t sizes[] = {s->dim, s->n_vocab, s->ffn, wide.q, wide.att};
    int64_t rows = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        rows = sizes[i] > rows ? sizes[i] : rows;
    const int64_t most = s->dim * rows; /* of the largest matrix */
    return most < TILE_REALS ? most : TILE_REALS;
}
static int32_t n_rot_of(const dpi_graph_shape *s) {
    return s->n_rot ? s->n_rot : dpi_graph_widths_of(s).head;
}
static int32_t qkv_of(const dpi_graph_shape *s) { return dpi_graph_widths_of(s).qkv; }
static int32_t att_of(const dpi_graph_shape *s) { return dpi_graph_widths_of(s).att; }

/* The next n reals of `base` (NULL: only counts), beginning on a cache line. */
static real *place(real *base, size_t *used, int64_t n) {
    const size_t line = 64 / sizeof(real);
    real *p = base ? base + *used : NULL;
    *used += ((size_t)n + line - 1) / line * line;
    return p;
}

static work work_map(const dpi_graph_shape *s, real *base) {
    int64_t n = s->context, dim = s->dim, qkv = qkv_of(s), att = att_of(s), ffn = s->ffn;
    size_t used = 0;
    work w = {.cs = place(base, &used, n * n_rot_of(s))};
    w.x = place(base, &used, n * dim);
    w.r = place(base, &used, n);
    w.norm = place(base, &used, n * dim);
    w.dnorm = place(base, &used, n * dim);
    w.packed = place(base, &used, n);
    /* A real has at least the size of an int32. */
    w.rows = (int32_t *)(void *)place(base, &used, n);
    w.targets = (int32_t *)(void *)place(base, &used, n);
    w.logits = place(base, &used, (int64_t)head_rows(s) * s->n_vocab);
    w.blocks = place(base, &used, 2 * ATTN_BLOCK * n);
    w.dx = place(base, &used, n * dim);
    w.dn = place(base, &used, n * (att > dim ? att : dim));
    w.dqkv = place(base, &used, n * qkv);
    w.dh = place(base, &used, n * ffn);
    w.low = place(base, &used, s->lora ? 2 * n * s->lora->rank : 0);
    w.unused = place(base, &used, s->lora ? dim : 0);
    w.tile = place(base, &used, s->base ? tile_reals(s) : 0);
    size_t before = used;
    w.first.x = place(base, &used, n * dim);
    w.first.r1 = place(base, &used, n);
    w.first.n1 = place(base, &used, n * dim);
    w.first.qkv = place(base, &used, n * qkv);
    w.first.att = place(base, &used, n * att);
    w.first.lse = place(base, &used, n * s->n_head);
    w.first.middle = place(base, &used, n * dim);
    w.first.r2 = place(base, &used, n);
    w.first.n2 = place(base, &used, n * dim);
    w.first.gu = place(base, &used, n * 2 * ffn);
    w.first.h = place(base, &used, n * ffn);
    w.layer_size = (int64_t)(used - before);
    w.size = before + (size_t)(w.layer_size * s->n_layer);
    return w;
}

static activations layer_activations(const work *w, int32_t layer) {
    int64_t skip = layer * w->layer_size;
    activations a = w->first;
    a.x += skip, a.r1 += skip, a.n1 += skip, a.qkv += skip, a.att += skip, a.lse += skip;
    a.middle += skip, a.r2 += skip, a.n2 += skip, a.gu += skip, a.h += skip;
    return a;
}

static size_t work_size(const dpi_graph_shape *shape) { return work_map(shape, NULL).size; }

/* Angles as the engine has them (session.c): position / base^(2 i / n_rot), in double. */
static void work_init(const dpi_graph_shape *shape, void *base) {
    const double magnitude = shape->rope_magnitude > 0 ? shape->rope_magnitude : 1;
    int32_t n_rot = n_rot_of(shape);
    real *cs = work_map(shape, base).cs;
    for (int32_t t = 0; t < shape->context; t++)
        for (int32_t i = 0; i < n_rot; i += 2, cs += 2) {
            double angle = t * (shape->frequencies
                                    ? shape->frequencies[i / 2]
                                    : pow((double)shape->rope_base, -(double)i / n_rot));
            cs[0] = (real)(magnitude * cos(angle));
            cs[1] = (real)(magnitude * sin(angle));
        }
}

/* ---- Forward --------------------------------------------------------------------------------- */

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
    const int64_t offset = at->layers + layer * at->layer_size;
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

/* Of adapter a [rank, n_in], b [n_out, rank] of a layer: y [n, n_out] += s (x A^T) B^T, whose rows
 * are `stride` apart. */
static void add_adapter(const pass *p, int32_t layer, const dpi_lora_matrix *m, real *y,
                        int32_t stride, const real *x) {
    const dpi_lora *lora = p->s->lora;
    const real *of_layer = p->adapters + layer * lora->layer_size;
    const int32_t n = p->row->n, rank = lora->rank, n_in = (int32_t)m->n_in;
    GEMM(p->s->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, n, rank, n_in, 1, x, n_in,
         of_layer + m->a, n_in, 0, p->w.low, rank);
    GEMM(p->s->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, n, (int32_t)m->n_out, rank,
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

/* Rows of the embedding. */
static void embed(const pass *p) {
    const dpi_graph_shape *s = p->s;
    if (!s->base) {
        op_embed(p->w.first.x, p->params + p->at.embedding, p->row->tokens, p->row->n, s->dim);
        return;
    }
    for (int32_t t = 0; t < p->row->n; t++)
        s->base->rows(s->base->model, 0, DPI_GRAPH_EMBEDDING, p->row->tokens[t], 1,
                      (float *)(void *)(p->w.first.x + (int64_t)t * s->dim));
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static attn_head head_of(const pass *p, const activations *a, int32_t segment, int32_t head) {
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
                       .scale = 1 / SQRT((real)w.head)};
}

/* Queries and keys lie side by side: rotated (sign 1) or turned back (-1) as one. */
static void rope_qk(const pass *p, real *qkv, real sign) {
    const dpi_graph_shape *s = p->s;
    op_rope(qkv, qkv_of(s), p->w.cs, p->row->begins, p->row->n_segments, s->n_head + s->n_kv_head,
            dpi_graph_widths_of(s).head, n_rot_of(s), sign);
}

static void attention_forward(const pass *p, const activations *a) {
    const dpi_graph_shape *s = p->s;
    for (int32_t segment = 0; segment < p->row->n_segments; segment++)
        for (int32_t head = 0; head < s->n_head; head++) {
            attn_head h = head_of(p, a, segment, head);
            int64_t begin = p->row->begins[segment];
            attn_forward(&h, a->att + begin * h.out_stride + head * h.head_dim_v,
                         a->lse + begin * s->n_head + head, s->n_head, p->w.blocks);
        }
}

/* From a.x to `out`, the input of the next layer. */
static void layer_forward(const pass *p, int32_t layer, real *out) {
    const dpi_graph_shape *s = p->s;
    const dpi_graph_layout *at = &p->at;
    const real *w = p->params + at->layers + layer * at->layer_size;
    activations a = layer_activations(&p->w, layer);
    int32_t n = p->row->n, dim = s->dim;
    size_t bytes = (size_t)n * (size_t)dim * sizeof(real);
    op_rmsnorm(a.n1, a.r1, a.x, w + at->attn_norm, n, dim, s->rms_eps);
    linear(p, layer, DPI_LORA_Q, a.qkv, a.n1, 0);
    rope_qk(p, a.qkv, 1);
    attention_forward(p, &a);
    memcpy(a.middle, a.x, bytes);
    linear(p, layer, DPI_LORA_O, a.middle, a.att, 1);
    op_rmsnorm(a.n2, a.r2, a.middle, w + at->ffn_norm, n, dim, s->rms_eps);
    linear(p, layer, DPI_LORA_GATE, a.gu, a.n2, 0);
    op_swiglu(a.h, a.gu, n, s->ffn);
    memcpy(out, a.middle, bytes);
    linear(p, layer, DPI_LORA_DOWN, out, a.h, 1);
}

static void forward(const pass *p) {
    embed(p);
    for (int32_t l = 0; l < p->s->n_layer; l++)
        layer_forward(p, l, l + 1 < p->s->n_layer ? layer_activations(&p->w, l + 1).x : p->w.x);
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
        loss += op_cross_entropy(p->w.logits, p->w.targets + from, p->w.packed + from, rows,
                                 s->n_vocab, scale);
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
    const int32_t n_out = (int32_t)m->n_out;
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

static void attention_backward(const pass *p, const activations *a, const real *datt) {
    const dpi_graph_shape *s = p->s;
    int32_t width = qkv_of(s);
    memset(p->w.dqkv, 0, (size_t)p->row->n * (size_t)width * sizeof(real));
    for (int32_t segment = 0; segment < p->row->n_segments; segment++)
        for (int32_t head = 0; head < s->n_head; head++) {
            attn_head h = head_of(p, a, segment, head);
            int64_t begin = p->row->begins[segment];
            int64_t out = begin * h.out_stride + head * h.head_dim_v;
            const real *lse = a->lse + begin * s->n_head + head;
            attn_backward(&h, a->att + out, datt + out, lse, s->n_head,
                          p->w.dqkv + (h.q - a->qkv), p->w.dqkv + (h.k - a->qkv),
                          p->w.dqkv + (h.v - a->qkv), p->w.blocks);
        }
}

/* w.dx: from the gradient of the layer's output to that of its input. */
static void layer_backward(const pass *p, int32_t layer) {
    const dpi_graph_shape *s = p->s;
    const dpi_graph_layout *at = &p->at;
    int64_t offset = at->layers + layer * at->layer_size;
    const real *w = p->params + offset;
    activations a = layer_activations(&p->w, layer);
    real *dx = p->w.dx, *dn = p->w.dn;
    int32_t n = p->row->n, dim = s->dim;
    linear_backward(p, layer, DPI_LORA_DOWN, p->w.dh, dx, a.h);
    op_swiglu_grad(a.gu, p->w.dh, n, s->ffn);
    linear_backward(p, layer, DPI_LORA_GATE, dn, a.gu, a.n2);
    op_rmsnorm_grad(dx, norm_gradient(p, offset + at->ffn_norm), dn, a.middle, w + at->ffn_norm,
                    a.r2, n, dim);
    linear_backward(p, layer, DPI_LORA_O, dn, dx, a.att);
    attention_backward(p, &a, dn);
    rope_qk(p, p->w.dqkv, -1);
    linear_backward(p, layer, DPI_LORA_Q, dn, p->w.dqkv, a.n1);
    op_rmsnorm_grad(dx, norm_gradient(p, offset + at->attn_norm), dn, a.x, w + at->attn_norm, a.r1,
                    n, dim);
}

/* What the operators add to instead of writing begins at zero. */
static void clear_gradient(const pass *p) {
    const dpi_graph_layout *at = &p->at;
    size_t dim = (size_t)p->s->dim, table = dim * (size_t)p->s->n_vocab * sizeof(real);
    memset(p->gradient + at->embedding, 0, table);
    memset(p->gradient + at->output, 0, table);
    memset(p->gradient + at->output_norm, 0, dim * sizeof(real));
    for (int32_t l = 0; l < p->s->n_layer; l++) {
        real *g = p->gradient + at->layers + l * at->layer_size;
        memset(g + at->attn_norm, 0, dim * sizeof(real));
        memset(g + at->ffn_norm, 0, dim * sizeof(real));
    }
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
    pass p = {.s = s, .row = row, .params = params, .gradient = gradient, .w = work_map(s, base)};
    dpi_graph_layout_of(s, &p.at);
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
    if (!p.adapters)
        op_embed_grad(p.gradient + p.at.embedding, p.w.dx, row->tokens, row->n, s->dim);
    return sum;
}

static void logits(const dpi_graph_shape *s, const void *params, const dpi_row *row, void *out,
                   void *base) {
    pass p = begin_pass(s, params, row, NULL, base);
    head_logits(&p, out, p.w.norm, row->n);
}

const dpi_graph GRAPH_NAME = {.real_size = sizeof(real), .work_size = work_size,
                              .work_init = work_init, .loss = loss, .logits = logits};
