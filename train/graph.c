/* graph.c - what does not depend on the number type: the layout, which version to run, its cost. */
#include "train/graph.h"

#include "dpinfer.h"
#include "train/tensors.h"

static int64_t next(int64_t *end, int64_t size) {
    int64_t begin = *end;
    *end += size;
    return begin;
}

dpi_shape dpi_graph_sizes(const dpi_graph_shape *s, int32_t layer) {
    const int32_t head = s->head_dim ? s->head_dim : s->dim / s->n_head;
    if (s->shapes)
        return s->shapes[layer];
    return (dpi_shape){.n_embd = s->dim, .n_ff = s->ffn, .n_head = s->n_head,
                       .n_kv_head = s->n_kv_head, .head_dim = head,
                       .head_dim_v = s->head_dim_v ? s->head_dim_v : s->dim / s->n_head,
                       .n_rot = s->n_rot ? s->n_rot : head};
}

/* Columns of q, k and v for which a layer has matrices. */
static int64_t made_of(const dpi_graph_shape *s, const dpi_shape *c) {
    const dpi_arch_table *table = dpi_train_table(s->arch);
    int64_t n = 0;
    for (const dpi_arch_tensor *t = table->tensors; t < table->tensors + table->n_tensors; t++)
        if ((t->at == offsetof(dpi_layer, wq) || t->at == offsetof(dpi_layer, wk) ||
             t->at == offsetof(dpi_layer, wv)) && dpi_arch_has(t, c))
            n += dpi_extent_of(c, t->n_out);
    return n;
}

dpi_graph_widths dpi_graph_widths_of(const dpi_graph_shape *s, int32_t layer) {
    const dpi_shape c = dpi_graph_sizes(s, layer);
    dpi_graph_widths w = {.head = c.head_dim, .head_v = c.head_dim_v, .q = c.n_head * c.head_dim,
                          .k = c.n_kv_head * c.head_dim, .v = c.n_kv_head * c.head_dim_v,
                          .made = (int32_t)made_of(s, &c), .att = c.n_head * c.head_dim_v,
                          .n_head = c.n_head, .n_kv_head = c.n_kv_head, .ffn = c.n_ff,
                          .input = c.n_input};
    w.qkv = w.q + (c.kv_back > 0 ? 0 : w.k + w.v);
    return w;
}

static void keep_most(int32_t *most, int32_t n) { *most = n > *most ? n : *most; }

dpi_graph_widths dpi_graph_widest(const dpi_graph_shape *s) {
    dpi_graph_widths most = dpi_graph_widths_of(s, 0);
    for (int32_t l = 1; l < s->n_layer; l++) {
        const dpi_graph_widths w = dpi_graph_widths_of(s, l);
        keep_most(&most.head, w.head), keep_most(&most.head_v, w.head_v);
        keep_most(&most.q, w.q), keep_most(&most.k, w.k), keep_most(&most.v, w.v);
        keep_most(&most.qkv, w.qkv), keep_most(&most.made, w.made), keep_most(&most.att, w.att);
        keep_most(&most.n_head, w.n_head), keep_most(&most.n_kv_head, w.n_kv_head);
        keep_most(&most.ffn, w.ffn), keep_most(&most.input, w.input);
    }
    return most;
}

/* Tells the places where a tensor of a layer begins, and a norm's length. False: the graph has no
 * place for it. */
static bool place(dpi_graph_places *l, const dpi_arch_tensor *tensor, int64_t at, int64_t n) {
    const dpi_graph_norm norm = {at, (int32_t)n};
    switch (tensor->at) {
    case offsetof(dpi_layer, attn_norm): l->attn_norm = norm; return true;
    case offsetof(dpi_layer, wq): l->wqkv = at; return true;
    case offsetof(dpi_layer, q_norm): l->q_norm = norm; return true;
    case offsetof(dpi_layer, k_norm): l->k_norm = norm; return true;
    case offsetof(dpi_layer, wo): l->wo = at; return true;
    case offsetof(dpi_layer, post_attn_norm): l->post_attn_norm = norm; return true;
    case offsetof(dpi_layer, ffn_norm): l->ffn_norm = norm; return true;
    case offsetof(dpi_layer, w_gate): l->w_gate_up = at; return true;
    case offsetof(dpi_layer, w_down): l->w_down = at; return true;
    case offsetof(dpi_layer, post_ffn_norm): l->post_ffn_norm = norm; return true;
    case offsetof(dpi_layer, w_input_gate): l->w_input_gate = at; return true;
    case offsetof(dpi_layer, w_input): l->w_input = at; return true;
    case offsetof(dpi_layer, post_input_norm): l->post_input_norm = norm; return true;
    case offsetof(dpi_layer, output_scale): l->output_scale = norm; return true;
    case offsetof(dpi_layer, wk): /* behind the one before it */
    case offsetof(dpi_layer, wv):
    case offsetof(dpi_layer, w_up): return true;
    default: return false;
    }
}

const dpi_arch_tensor *dpi_graph_unknown(const dpi_arch *arch) {
    dpi_graph_places unused;
    const dpi_arch_table *table = dpi_train_table(arch);
    for (const dpi_arch_tensor *t = table->tensors; t < table->tensors + table->n_tensors; t++)
        if (!place(&unused, t, 0, 0))
            return t;
    const dpi_arch_table *delta = &arch->layers[DPI_LAYER_DELTA];
    return delta->n_tensors > 0 ? &delta->tensors[1] : NULL; /* the first one that others lack */
}

dpi_graph_places dpi_graph_places_of(const dpi_graph_shape *s, int32_t layer) {
    const dpi_arch_table *table = dpi_train_table(s->arch);
    const dpi_shape c = dpi_graph_sizes(s, layer);
    dpi_graph_places l = {0};
    for (const dpi_arch_tensor *a = table->tensors; a < table->tensors + table->n_tensors; a++) {
        const dpi_train_tensor t = dpi_train_next_tensor(s, &c, a, &l.size);
        place(&l, a, t.offset, t.n_in);
    }
    return l;
}

void dpi_graph_layout_of(const dpi_graph_shape *s, dpi_graph_layout *layout) {
    const int64_t width = s->base ? 0 : s->dim; /* of matrices: those of a base are not here */
    int64_t end = 0;
    dpi_graph_layout l = {0};
    l.embedding = next(&end, s->n_vocab * width);
    l.output = s->tied ? l.embedding : next(&end, s->n_vocab * width);
    l.output_norm = next(&end, s->dim);
    for (int32_t i = 0; i < s->n_layer; i++)
        l.layers[i] = next(&end, dpi_graph_places_of(s, i).size);
    l.n_params = end;
    *layout = l;
}

int64_t dpi_graph_bias_size(const dpi_graph_shape *s) {
    const dpi_graph_widths most = dpi_graph_widest(s);
    return (int64_t)most.made + 2 * most.ffn + 2 * s->dim;
}

const dpi_graph *dpi_graph_best(void) {
#if defined(__x86_64__)
    switch (dpi_isa_best()) {
    case DPI_ISA_AVX512: return &dpi_graph_f32_avx512;
    case DPI_ISA_AVX2: return &dpi_graph_f32_avx2;
    default: break;
    }
#endif
    return &dpi_graph_f32;
}

/* Of an example of n positions, in a window: each with those that it sees. */
static double pairs_of(double n, double window) {
    const double wide = window > 0 && window < n ? window : n;
    return wide * (wide + 1) / 2 + (n - wide) * wide;
}

double dpi_graph_flops(const dpi_graph_shape *s, const dpi_row *row) {
    const double dim = s->dim;
    double products = 0, attention = 0;
    for (int32_t t = 0; t < row->n; t++)
        products += row->weights[t] < 0 || row->weights[t] > 0 ? dim * s->n_vocab : 0;
    for (int32_t l = 0; l < s->n_layer; l++) {
        const dpi_graph_widths w = dpi_graph_widths_of(s, l);
        products += row->n * (w.made + w.att + 3.0 * w.ffn + 2.0 * w.input) * dim;
        for (int32_t i = 0; i < row->n_segments; i++)
            attention += (w.q + w.att) * pairs_of(row->begins[i + 1] - row->begins[i],
                                                  s->layers ? s->layers[l].window : 0);
    }
    return 3 * 2 * (products + attention);
}
