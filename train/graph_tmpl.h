/* graph_tmpl.h - the graph and its gradient in the type `real`; a template: graph_*.c include
 * it with GRAPH_NAME, the dpi_graph to define. Internal. */
#include "train/products.h"

/* ---- Work space ------------------------------------------------------------------------------ */

static size_t work_size(const dpi_graph_shape *shape) { return work_map(shape, NULL).size; }

/* Angles as the engine has them (session.c): position / base^(2 i / n_rot), in double. */
static void work_init(const dpi_graph_shape *shape, void *base) {
    const int32_t most = n_rot_of(shape);
    const work w = work_map(shape, base);
    for (int32_t r = 0; r < n_rotations_of(shape); r++) {
        const int32_t n_rot = n_rot_at(shape, r);
        real *cs = w.cs + (int64_t)r * shape->context * most;
        const double magnitude = shape->magnitudes[r] > 0 ? shape->magnitudes[r] : 1;
        for (int32_t t = 0; t < shape->context; t++)
            for (int32_t i = 0; i < n_rot; i += 2, cs += 2) {
                double angle = t * (shape->frequencies
                                        ? shape->frequencies[(r * most + i) / 2]
                                        : pow((double)shape->rope_base, -(double)i / n_rot));
                cs[0] = (real)(magnitude * cos(angle));
                cs[1] = (real)(magnitude * sin(angle));
            }
    }
    const dpi_graph_widths wide = dpi_graph_widest(shape);
    for (int32_t i = 0; shape->arch->norms_values && i < wide.head_v; i++)
        w.ones[i] = 1;
    for (int32_t i = 0; shape->inputs && i < wide.input; i++)
        w.weights_of_inputs[i] = (real)shape->inputs->inputs_norm[i];
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* Keys and values are those of the layer whose q, k and v are `kv`. */
static attn_head head_of(const pass *p, int32_t layer, const activations *a, const real *kv,
                         int32_t segment, int32_t head) {
    const dpi_graph_shape *s = p->s;
    const dpi_graph_widths w = widths_of(p, layer), of = widths_of(p, kv_layer(s, layer));
    int32_t group = head / (w.n_head / w.n_kv_head), begin = p->row->begins[segment];
    const real *k = kv + (int64_t)begin * of.qkv + of.q;
    return (attn_head){.blas = s->blas,
                       .q = a->qkv + (int64_t)begin * w.qkv + head * w.head,
                       .k = k + group * w.head,
                       .v = k + w.k + group * w.head_v,
                       .stride = w.qkv,
                       .kv_stride = of.qkv,
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
    const dpi_graph_widths w = widths_of(p, layer);
    const int32_t n_rot = dpi_graph_sizes(s, layer).n_rot;
    const int32_t rotation = (int32_t)layer_of(p, layer).rotation;
    const op_pairs pairs = s->arch->rotates_halves ? (op_pairs){n_rot / 2, 1, n_rot / 2}
                                                   : (op_pairs){n_rot / 2, 2, 1};
    if (rotation != DPI_ROTATION_NONE)
        op_rope(qkv, w.qkv, p->w.cs + (int64_t)rotation * s->context * n_rot_of(s),
                p->row->begins, p->row->n_segments, w.n_head + (w.qkv > w.q ? w.n_kv_head : 0),
                w.head, pairs, sign);
}

/* Where values are in what matrices made: they may be made as keys are. */
static int32_t values_at(const dpi_graph_widths *w) {
    return w->made > w->q + w->k ? w->q + w->k : w->q;
}

/* Where heads have norms: q, k and v of what matrices made. q and k by norms of each head, or of
 * all of them as one; v by that of each head without weights, or as it is. */
static void norm_heads(const pass *p, int32_t layer, const activations *a) {
    const dpi_graph_widths w = widths_of(p, layer);
    const dpi_graph_places at = places_of(p, layer);
    const dpi_graph_norm q = at.q_norm, k = at.k_norm;
    const real *of_layer = p->params + offset_of(p, layer);
    for (int64_t t = 0; q.n && t < p->row->n; t++) {
        real *to = a->qkv + t * w.qkv, *from = a->made + t * w.made;
        op_rmsnorm(to, a->rq + t * (w.q / q.n), from, of_layer + q.at, w.q / q.n, q.n,
                   p->s->rms_eps);
        if (w.qkv == w.q)
            continue;
        op_rmsnorm(to + w.q, a->rk + t * (w.k / k.n), from + w.q, of_layer + k.at, w.k / k.n, k.n,
                   p->s->rms_eps);
        to += w.q + w.k, from += values_at(&w);
        if (p->s->arch->norms_values)
            op_rmsnorm(to, a->rv + t * w.n_kv_head, from, p->w.ones, w.n_kv_head, w.head_v,
                       p->s->rms_eps);
        else
            memcpy(to, from, (size_t)w.v * sizeof *to);
    }
}

static void attention_forward(const pass *p, int32_t layer, const activations *a) {
    const int32_t n_head = widths_of(p, layer).n_head;
    const activations of = activations_of(p, kv_layer(p->s, layer));
    for (int32_t segment = 0; segment < p->row->n_segments; segment++)
        for (int32_t head = 0; head < n_head; head++) {
            attn_head h = head_of(p, layer, a, of.qkv, segment, head);
            int64_t begin = p->row->begins[segment];
            attn_forward(&h, a->att + begin * h.out_stride + head * h.head_dim_v,
                         a->lse + begin * n_head + head, n_head, p->w.blocks);
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

/* The layer's own inputs of a row. */
static real *inputs_at(const pass *p, real *inputs, int32_t layer, int64_t t) {
    return inputs + (t * p->s->n_layer + layer) * widths_of(p, layer).input;
}

/* out = a.before + norm(w (GELU(w_gate a.before) * u)), u the layer's own inputs. */
static void layer_input(const pass *p, int32_t layer, const activations *a, real *out) {
    const int32_t n = widths_of(p, layer).input;
    const size_t n_bytes = (size_t)n * sizeof(real);
    linear(p, layer, DPI_GRAPH_INPUT_GATE, p->w.gate, a->before, 0);
    for (int64_t t = 0; t < p->row->n; t++) {
        memcpy(a->input_gu + t * 2 * n, p->w.gate + t * n, n_bytes);
        memcpy(a->input_gu + t * 2 * n + n, inputs_at(p, p->w.inputs, layer, t), n_bytes);
    }
    op_geglu(a->input_h, a->input_gu, p->row->n, n);
    output(p, layer, DPI_GRAPH_INPUT, out, a->before, a->input_h,
           places_of(p, layer).post_input_norm, a->put_in, a->r_input);
}

/* From n1 to what attention gives, times gates where queries have them. */
static void attend(const pass *p, int32_t layer, const activations *a) {
    const dpi_graph_widths w = widths_of(p, layer);
    const bool gated = has_gates(p->s);
    linear(p, layer, DPI_LORA_Q, gated ? p->w.mixed : a->made, a->n1, 0);
    if (gated)
        op_split_gates(a->made, a->gates, p->w.mixed, p->row->n, w.q, w.head, w.made);
    norm_heads(p, layer, a);
    rope_qk(p, layer, a->qkv, 1);
    attention_forward(p, layer, a);
    if (gated)
        op_gate(a->gated, a->att, a->gates, p->row->n * (int64_t)w.q);
}

/* A delta net, of what the products of n1 gave. */
static delta_net delta_of(const pass *p, int32_t layer, const activations *a) {
    const dpi_graph_widths w = widths_of(p, layer);
    const dpi_graph_places at = places_of(p, layer);
    const real *of_layer = p->params + offset_of(p, layer);
    return (delta_net){.shape = w.delta,
                       .eps = p->s->rms_eps,
                       .filter = of_layer + at.filter.at,
                       .rate = of_layer + at.rate.at,
                       .decay_bias = of_layer + at.decay_bias.at,
                       .value_norm = of_layer + at.value_norm.at,
                       .begins = p->row->begins,
                       .n_segments = p->row->n_segments,
                       .in = a->qkv,
                       .n_in = w.mixed,
                       .u = a->u,
                       .r_keys = a->r_keys,
                       .gates = a->decay,
                       .read = a->read,
                       .r_read = a->r_read,
                       .out = a->att,
                       .states = p->w.states};
}

static void net_forward(const pass *p, int32_t layer, const activations *a) {
    linear(p, layer, DPI_LORA_Q, a->qkv, a->n1, 0);
    const delta_net net = delta_of(p, layer, a);
    delta_net_forward(&net);
}

/* From a.x to `out`, the input of the next layer. */
static void layer_forward(const pass *p, int32_t layer, real *out) {
    const dpi_graph_places at = places_of(p, layer);
    const dpi_graph_widths w = widths_of(p, layer);
    const activations a = activations_of(p, layer);
    real *given = at.output_scale.n ? a.unscaled : out;
    input(p, layer, at.attn_norm, a.n1, a.r1, a.x);
    (dpi_graph_kind(p->s, layer) == DPI_LAYER_DELTA ? net_forward : attend)(p, layer, &a);
    output(p, layer, DPI_LORA_O, a.middle, a.x, a.gated, at.post_attn_norm, a.attended, a.r_att);
    input(p, layer, at.ffn_norm, a.n2, a.r2, a.middle);
    linear(p, layer, DPI_LORA_GATE, a.gu, a.n2, 0);
    (p->s->arch->has_gelu ? op_geglu : op_swiglu)(a.h, a.gu, p->row->n, w.ffn);
    output(p, layer, DPI_LORA_DOWN, w.input ? a.before : given, a.middle, a.h, at.post_ffn_norm,
           a.fed, a.r_ffn);
    if (w.input)
        layer_input(p, layer, &a, given);
    if (at.output_scale.n)
        op_scale(out, given, p->params[offset_of(p, layer) + at.output_scale.at], stream_size(p));
}

/* Rows [first, first + tile.rows) of the model's matrix that makes the inputs of layers of the
 * embedding. False: there are none. */
static bool next_inputs(const pass *p, tile *t) {
    const dpi_matrix *w = &p->s->inputs->w_inputs;
    const int64_t most = tile_reals(p->s) / w->n_in;
    t->column += t->rows;
    t->rows = (int32_t)(w->n_out - t->column < most ? w->n_out - t->column : most);
    t->weights = p->w.tile;
    for (int32_t r = 0; r < t->rows; r++) {
        dpi_matrix_row(w, t->column + r, p->w.floats);
        for (int64_t i = 0; i < w->n_in; i++)
            p->w.tile[r * w->n_in + i] = (real)p->w.floats[i];
    }
    return t->rows > 0;
}

/* Inputs of layers: (norm(w x / sqrt(dim)) + sqrt(n) e) / sqrt(2), with the embedding x, and e [n]
 * that of the layer. */
static void make_inputs(const pass *p, const real *x) {
    const dpi_graph_shape *s = p->s;
    const int32_t n = widths_of(p, 0).input, all = n * s->n_layer, rows = p->row->n;
    for (tile t = {0}; next_inputs(p, &t);)
        op_linear(s->blas, p->w.raw + t.column, all, x, t.weights, rows, s->dim, t.rows, 0);
    op_scale(p->w.raw, p->w.raw, 1 / SQRT((real)s->dim), (int64_t)rows * all);
    op_rmsnorm(p->w.inputs, p->w.r_raw, p->w.raw, p->w.weights_of_inputs, rows * s->n_layer, n,
               s->rms_eps);
    for (int32_t t = 0; t < rows; t++) {
        real *to = p->w.inputs + (int64_t)t * all;
        dpi_matrix_row(&s->inputs->input_embedding, p->row->tokens[t], p->w.floats);
        for (int32_t i = 0; i < all; i++)
            to[i] = (to[i] + SQRT((real)n) * (real)p->w.floats[i]) * SQRT((real)0.5);
    }
}

static void forward(const pass *p) {
    embed(p, activations_of(p, 0).x);
    if (p->s->inputs)
        make_inputs(p, activations_of(p, 0).x);
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

static void clear_dqkv(const pass *p, int32_t layer) {
    const size_t n = (size_t)p->row->n * (size_t)widths_of(p, layer).qkv;
    memset(activations_of(p, layer).dqkv, 0, n * sizeof(real));
}

static void attention_backward(const pass *p, int32_t layer, const activations *a,
                               const real *datt) {
    const int32_t n_head = widths_of(p, layer).n_head;
    const activations of = activations_of(p, kv_layer(p->s, layer));
    if (!is_shared(p->s, layer)) /* else later layers have added theirs */
        clear_dqkv(p, layer);
    for (int32_t segment = 0; segment < p->row->n_segments; segment++)
        for (int32_t head = 0; head < n_head; head++) {
            attn_head h = head_of(p, layer, a, of.qkv, segment, head);
            int64_t begin = p->row->begins[segment];
            int64_t out = begin * h.out_stride + head * h.head_dim_v;
            const real *lse = a->lse + begin * n_head + head;
            attn_backward(&h, a->att + out, datt + out, lse, n_head, a->dqkv + (h.q - a->qkv),
                          of.dqkv + (h.k - of.qkv), of.dqkv + (h.v - of.qkv), p->w.blocks);
        }
}

/* From the gradient by q, k and v, a.dqkv, to that by what matrices made, which is returned. */
static const real *norm_heads_backward(const pass *p, int32_t layer, const activations *a) {
    const dpi_graph_widths w = widths_of(p, layer);
    const dpi_graph_places at = places_of(p, layer);
    const dpi_graph_norm q = at.q_norm, k = at.k_norm;
    const int64_t offset = offset_of(p, layer);
    if (!q.n)
        return a->dqkv;
    memset(p->w.dmade, 0, (size_t)p->row->n * (size_t)w.made * sizeof(real));
    for (int64_t t = 0; t < p->row->n; t++) {
        real *d = p->w.dmade + t * w.made;
        const real *by = a->dqkv + t * w.qkv, *from = a->made + t * w.made;
        op_rmsnorm_grad(d, norm_gradient(p, offset + q.at), by, from, p->params + offset + q.at,
                        a->rq + t * (w.q / q.n), w.q / q.n, q.n);
        if (w.qkv == w.q)
            continue;
        op_rmsnorm_grad(d + w.q, norm_gradient(p, offset + k.at), by + w.q, from + w.q,
                        p->params + offset + k.at, a->rk + t * (w.k / k.n), w.k / k.n, k.n);
        d += values_at(&w), from += values_at(&w), by += w.q + w.k;
        if (p->s->arch->norms_values)
            op_rmsnorm_grad(d, p->w.unused, by, from, p->w.ones, a->rv + t * w.n_kv_head,
                            w.n_kv_head, w.head_v);
        else
            memcpy(d, by, (size_t)w.v * sizeof *d);
    }
    return p->w.dmade;
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

/* w.dn: from the gradient by what attention gave to that by n1; the same of a delta net. */
static void attend_backward(const pass *p, int32_t layer, const activations *a) {
    const dpi_graph_widths w = widths_of(p, layer);
    const bool gated = has_gates(p->s);
    if (gated)
        op_gate_grad(p->w.dn, a->gates, a->att, p->row->n * (int64_t)w.q);
    attention_backward(p, layer, a, p->w.dn);
    rope_qk(p, layer, a->dqkv, -1);
    const real *made = norm_heads_backward(p, layer, a);
    if (gated)
        op_join_gates(p->w.mixed, made, a->gates, p->row->n, w.q, w.head, w.made);
    linear_backward(p, layer, DPI_LORA_Q, p->w.dn, gated ? p->w.mixed : made, a->n1);
}

static void net_backward(const pass *p, int32_t layer, const activations *a) {
    const int64_t offset = offset_of(p, layer);
    const dpi_graph_places at = places_of(p, layer);
    const delta_net net = delta_of(p, layer, a);
    const delta_gradient d = {.filter = norm_gradient(p, offset + at.filter.at),
                              .rate = norm_gradient(p, offset + at.rate.at),
                              .decay_bias = norm_gradient(p, offset + at.decay_bias.at),
                              .value_norm = norm_gradient(p, offset + at.value_norm.at),
                              .out = p->w.dn,
                              .in = a->dqkv,
                              .u = p->w.du,
                              .gates = p->w.ddecay,
                              .row = p->w.row};
    delta_net_backward(&net, &d);
    linear_backward(p, layer, DPI_LORA_Q, p->w.dn, a->dqkv, a->n1);
}

/* w.dx: through the scale of what the layer gives. */
static void scale_backward(const pass *p, int32_t layer, const activations *a) {
    const int64_t at = offset_of(p, layer) + places_of(p, layer).output_scale.at;
    real sum = 0;
    for (int64_t i = 0; i < stream_size(p); i++)
        sum += p->w.dx[i] * a->unscaled[i];
    norm_gradient(p, at)[0] += sum;
    op_scale(p->w.dx, p->w.dx, p->params[at], stream_size(p));
}

/* w.dx: through the layer's own inputs, whose gradient is kept where the embedding is trained. */
static void layer_input_backward(const pass *p, int32_t layer, const activations *a) {
    const int32_t n = widths_of(p, layer).input;
    const size_t n_bytes = (size_t)n * sizeof(real);
    const real *added = output_backward(p, layer, places_of(p, layer).post_input_norm, a->put_in,
                                        a->r_input);
    linear_backward(p, layer, DPI_GRAPH_INPUT, p->w.dh, added, a->input_h);
    op_geglu_grad(a->input_gu, p->w.dh, p->row->n, n);
    for (int64_t t = 0; t < p->row->n; t++) {
        memcpy(p->w.gate + t * n, a->input_gu + t * 2 * n, n_bytes);
        if (!p->adapters)
            memcpy(inputs_at(p, p->w.dinputs, layer, t), a->input_gu + t * 2 * n + n, n_bytes);
    }
    linear_backward(p, layer, DPI_GRAPH_INPUT_GATE, p->w.dn, p->w.gate, a->before);
    input_backward(p, layer, (dpi_graph_norm){0}, a->before, NULL);
}

/* w.dx: from the gradient of the layer's output to that of its input. */
static void layer_backward(const pass *p, int32_t layer) {
    const dpi_graph_places at = places_of(p, layer);
    const dpi_graph_widths w = widths_of(p, layer);
    const activations a = activations_of(p, layer);
    if (at.output_scale.n)
        scale_backward(p, layer, &a);
    if (w.input)
        layer_input_backward(p, layer, &a);
    const real *added = output_backward(p, layer, at.post_ffn_norm, a.fed, a.r_ffn);
    linear_backward(p, layer, DPI_LORA_DOWN, p->w.dh, added, a.h);
    (p->s->arch->has_gelu ? op_geglu_grad : op_swiglu_grad)(a.gu, p->w.dh, p->row->n, w.ffn);
    linear_backward(p, layer, DPI_LORA_GATE, p->w.dn, a.gu, a.n2);
    input_backward(p, layer, at.ffn_norm, a.middle, a.r2);
    added = output_backward(p, layer, at.post_attn_norm, a.attended, a.r_att);
    linear_backward(p, layer, DPI_LORA_O, p->w.dn, added, a.gated);
    (dpi_graph_kind(p->s, layer) == DPI_LAYER_DELTA ? net_backward : attend_backward)(p, layer, &a);
    input_backward(p, layer, at.attn_norm, a.x, a.r1);
}

/* w.dx, of the embedding: through the inputs of layers, which are made of it. */
static void inputs_backward(const pass *p) {
    const dpi_graph_shape *s = p->s;
    const int32_t n = widths_of(p, 0).input, all = n * s->n_layer, rows = p->row->n;
    const int64_t n_all = (int64_t)rows * all;
    memset(p->w.inputs, 0, (size_t)n_all * sizeof(real));
    op_rmsnorm_grad(p->w.inputs, p->w.unused, p->w.dinputs, p->w.raw, p->w.weights_of_inputs,
                    p->w.r_raw, rows * s->n_layer, n);
    op_scale(p->w.inputs, p->w.inputs, SQRT((real)0.5 / (real)s->dim), n_all);
    for (tile t = {0}; next_inputs(p, &t);)
        op_linear_dx(s->blas, p->w.dx, p->w.inputs + t.column, all, t.weights, rows, s->dim,
                     t.rows, 1);
}

/* What the operators add to instead of writing begins at zero. */
static void clear_gradient(const pass *p) {
    const dpi_graph_layout *at = &p->at;
    size_t dim = (size_t)p->s->dim, table = dim * (size_t)p->s->n_vocab * sizeof(real);
    memset(p->gradient + at->embedding, 0, table);
    memset(p->gradient + at->output, 0, table);
    memset(p->gradient + at->output_norm, 0, dim * sizeof(real));
    for (int32_t l = 0; l < p->s->n_layer; l++) {
        const dpi_graph_places in = places_of(p, l);
        const dpi_graph_norm norms[] = {in.attn_norm,     in.q_norm,   in.k_norm,
                                        in.post_attn_norm, in.ffn_norm, in.post_ffn_norm,
                                        in.post_input_norm, in.output_scale, in.filter,
                                        in.rate,          in.decay_bias, in.value_norm};
        for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
            memset(p->gradient + offset_of(p, l) + norms[i].at, 0,
                   (size_t)norms[i].n * sizeof(real));
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
    pass p = {.s = s, .row = row, .params = params, .gradient = gradient};
    dpi_graph_layout_of(s, &p.at);
    p.w = work_map(s, base);
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
    for (int32_t l = 0; l < s->n_layer; l++)
        if (is_shared(s, l))
            clear_dqkv(&p, l);
    for (int32_t l = s->n_layer - 1; l >= 0; l--)
        layer_backward(&p, l);
    if (!p.adapters) {
        if (s->inputs)
            inputs_backward(&p);
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
