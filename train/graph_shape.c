/* graph_shape.c - sizes and places of a graph, which do not depend on the number type. */
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

/* Whether a tensor is of those that read the normalised input of a layer and come before what mixes
 * its tokens. */
static bool is_mixed(const dpi_arch_tensor *tensor) {
    switch (tensor->at) {
    case offsetof(dpi_layer, wq):
    case offsetof(dpi_layer, wk):
    case offsetof(dpi_layer, wv):
    case offsetof(dpi_layer, w_keys):
    case offsetof(dpi_layer, w_z):
    case offsetof(dpi_layer, w_beta):
    case offsetof(dpi_layer, w_decay): return true;
    default: return false;
    }
}

/* Rows of these that a layer has. */
static int32_t mixed_of(const dpi_graph_shape *s, int32_t layer, const dpi_shape *c) {
    const dpi_arch_table *table = dpi_train_table(s, layer);
    int64_t n = 0;
    for (const dpi_arch_tensor *t = table->tensors; t < table->tensors + table->n_tensors; t++)
        if (is_mixed(t) && dpi_arch_has(t, c))
            n += dpi_extent_of(c, t->n_out);
    return (int32_t)n;
}

dpi_graph_widths dpi_graph_widths_of(const dpi_graph_shape *s, int32_t layer) {
    const dpi_shape c = dpi_graph_sizes(s, layer);
    const int32_t mixed = mixed_of(s, layer, &c);
    if (dpi_graph_kind(s, layer) == DPI_LAYER_DELTA)
        return (dpi_graph_widths){.qkv = mixed, .made = mixed, .mixed = mixed,
                                  .att = (int32_t)dpi_extent_of(&c, DPI_EXTENT_VALUES),
                                  .ffn = c.n_ff, .delta = c.delta, .input = c.n_input};
    dpi_graph_widths w = {.head = c.head_dim, .head_v = c.head_dim_v, .q = c.n_head * c.head_dim,
                          .k = c.n_kv_head * c.head_dim, .v = c.n_kv_head * c.head_dim_v,
                          .mixed = mixed, .att = c.n_head * c.head_dim_v, .n_head = c.n_head,
                          .n_kv_head = c.n_kv_head, .ffn = c.n_ff, .input = c.n_input};
    w.qkv = w.q + (c.kv_back > 0 ? 0 : w.k + w.v);
    w.made = mixed - (s->arch->has_gated_queries ? w.q : 0);
    return w;
}

static void keep_most(int32_t *most, int32_t n) { *most = n > *most ? n : *most; }

static void keep_most_delta(dpi_delta_shape *most, const dpi_delta_shape *d) {
    keep_most(&most->n_tap, d->n_tap), keep_most(&most->n_k_head, d->n_k_head);
    keep_most(&most->n_v_head, d->n_v_head), keep_most(&most->dim, d->dim);
    keep_most(&most->dim_v, d->dim_v);
}

dpi_graph_widths dpi_graph_widest(const dpi_graph_shape *s) {
    dpi_graph_widths most = dpi_graph_widths_of(s, 0);
    for (int32_t l = 1; l < s->n_layer; l++) {
        const dpi_graph_widths w = dpi_graph_widths_of(s, l);
        keep_most(&most.head, w.head), keep_most(&most.head_v, w.head_v);
        keep_most(&most.q, w.q), keep_most(&most.k, w.k), keep_most(&most.v, w.v);
        keep_most(&most.qkv, w.qkv), keep_most(&most.made, w.made), keep_most(&most.att, w.att);
        keep_most(&most.mixed, w.mixed), keep_most_delta(&most.delta, &w.delta);
        keep_most(&most.n_head, w.n_head), keep_most(&most.n_kv_head, w.n_kv_head);
        keep_most(&most.ffn, w.ffn), keep_most(&most.input, w.input);
    }
    return most;
}

/* Tensors of a layer lie one after the other; with a base matrices take no room (graph.h). */
dpi_train_tensor dpi_train_next_tensor(const dpi_graph_shape *s, const dpi_shape *sizes,
                                       const dpi_arch_tensor *a, int64_t *end) {
    dpi_train_tensor t = {.offset = *end};
    if (!dpi_arch_has(a, sizes))
        return t;
    t.n_in = dpi_extent_of(sizes, a->n_in);
    t.n_rows = a->n_out ? dpi_extent_of(sizes, a->n_out) : 0;
    *end += s->base && !a->is_array ? 0 : dpi_train_tensor_size(&t);
    return t;
}

/* Tells the places where a tensor of a layer begins, and an array's size. False: the graph has no
 * place for it. */
static bool place(dpi_graph_places *l, const dpi_arch_tensor *tensor, const dpi_train_tensor *t) {
    const int64_t at = t->offset;
    const dpi_graph_norm norm = {at, (int32_t)dpi_train_tensor_size(t)};
    switch (tensor->at) {
    case offsetof(dpi_layer, attn_norm): l->attn_norm = norm; return true;
    case offsetof(dpi_layer, wq):
    case offsetof(dpi_layer, w_keys): l->wqkv = at; return true;
    case offsetof(dpi_layer, filter): l->filter = norm; return true;
    case offsetof(dpi_layer, rate): l->rate = norm; return true;
    case offsetof(dpi_layer, decay_bias): l->decay_bias = norm; return true;
    case offsetof(dpi_layer, value_norm): l->value_norm = norm; return true;
    case offsetof(dpi_layer, q_norm): l->q_norm = norm; return true;
    case offsetof(dpi_layer, k_norm): l->k_norm = norm; return true;
    case offsetof(dpi_layer, wo):
    case offsetof(dpi_layer, w_values): l->wo = at; return true;
    case offsetof(dpi_layer, post_attn_norm): l->post_attn_norm = norm; return true;
    case offsetof(dpi_layer, ffn_norm): l->ffn_norm = norm; return true;
    case offsetof(dpi_layer, w_gate): l->w_gate_up = at; return true;
    case offsetof(dpi_layer, w_down): l->w_down = at; return true;
    case offsetof(dpi_layer, post_ffn_norm): l->post_ffn_norm = norm; return true;
    case offsetof(dpi_layer, w_input_gate): l->w_input_gate = at; return true;
    case offsetof(dpi_layer, w_input): l->w_input = at; return true;
    case offsetof(dpi_layer, post_input_norm): l->post_input_norm = norm; return true;
    case offsetof(dpi_layer, output_scale): l->output_scale = norm; return true;
    case offsetof(dpi_layer, w_up): return true; /* behind the gate */
    default: return is_mixed(tensor);            /* behind the one before it */
    }
}

const dpi_arch_tensor *dpi_graph_unknown(const dpi_arch *arch) {
    dpi_graph_places unused;
    for (int32_t kind = 0; kind < DPI_LAYER_KINDS; kind++) {
        const dpi_arch_table *table = &arch->layers[kind];
        for (const dpi_arch_tensor *t = table->tensors; t < table->tensors + table->n_tensors; t++)
            if (!place(&unused, t, &(dpi_train_tensor){0}))
                return t;
    }
    return NULL;
}

dpi_graph_places dpi_graph_places_of(const dpi_graph_shape *s, int32_t layer) {
    const dpi_arch_table *table = dpi_train_table(s, layer);
    const dpi_shape c = dpi_graph_sizes(s, layer);
    dpi_graph_places l = {0};
    for (const dpi_arch_tensor *a = table->tensors; a < table->tensors + table->n_tensors; a++) {
        const dpi_train_tensor t = dpi_train_next_tensor(s, &c, a, &l.size);
        place(&l, a, &t);
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
    const int64_t n_input = most.input ? most.input + s->dim : 0;
    return (int64_t)most.mixed + 2 * most.ffn + 2 * s->dim + n_input;
}
