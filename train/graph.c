/* graph.c - what does not depend on the number type: the layout, which version to run, its cost. */
#include "train/graph.h"

#include "dpinfer.h"
#include "train/tensors.h"

static int64_t next(int64_t *end, int64_t size) {
    int64_t begin = *end;
    *end += size;
    return begin;
}

dpi_graph_widths dpi_graph_widths_of(const dpi_graph_shape *s) {
    const int32_t head = s->head_dim ? s->head_dim : s->dim / s->n_head;
    const int32_t head_v = s->head_dim_v ? s->head_dim_v : s->dim / s->n_head;
    dpi_graph_widths w = {.head = head, .head_v = head_v, .q = s->n_head * head,
                          .k = s->n_kv_head * head, .v = s->n_kv_head * head_v,
                          .att = s->n_head * head_v};
    w.qkv = w.q + w.k + w.v;
    return w;
}

/* Tells the layout where a tensor of a layer begins, and its size. False: the graph has no place
 * for it. */
static bool place(dpi_graph_layout *l, const dpi_arch_tensor *tensor, const dpi_train_tensor *t) {
    const int64_t at = t->offset;
    const dpi_graph_norm norm = {at, (int32_t)dpi_train_tensor_size(t)};
    switch (tensor->at) {
    case offsetof(dpi_layer, attn_norm): l->attn_norm = norm; return true;
    case offsetof(dpi_layer, wq):
    case offsetof(dpi_layer, w_keys): l->wqkv = at, l->n_mixed = (int32_t)t->n_rows; return true;
    case offsetof(dpi_layer, wk): /* behind the one before it */
    case offsetof(dpi_layer, wv):
    case offsetof(dpi_layer, w_z):
    case offsetof(dpi_layer, w_beta):
    case offsetof(dpi_layer, w_decay): l->n_mixed += (int32_t)t->n_rows; return true;
    case offsetof(dpi_layer, filter): l->filter = norm; return true;
    case offsetof(dpi_layer, rate): l->rate = norm; return true;
    case offsetof(dpi_layer, decay_bias): l->decay_bias = norm; return true;
    case offsetof(dpi_layer, value_norm): l->value_norm = norm; return true;
    case offsetof(dpi_layer, q_norm): l->q_norm = norm; return true;
    case offsetof(dpi_layer, k_norm): l->k_norm = norm; return true;
    case offsetof(dpi_layer, wo):
    case offsetof(dpi_layer, w_values): l->wo = at, l->n_mix = (int32_t)t->n_in; return true;
    case offsetof(dpi_layer, post_attn_norm): l->post_attn_norm = norm; return true;
    case offsetof(dpi_layer, ffn_norm): l->ffn_norm = norm; return true;
    case offsetof(dpi_layer, w_gate): l->w_gate_up = at; return true;
    case offsetof(dpi_layer, w_down): l->w_down = at; return true;
    case offsetof(dpi_layer, post_ffn_norm): l->post_ffn_norm = norm; return true;
    case offsetof(dpi_layer, w_up): return true; /* behind the gate */
    default: return false;
    }
}

const dpi_arch_tensor *dpi_graph_unknown(const dpi_arch *arch) {
    dpi_graph_layout unused = {0};
    for (int32_t kind = 0; kind < DPI_LAYER_KINDS; kind++) {
        const dpi_arch_table *table = &arch->layers[kind];
        for (const dpi_arch_tensor *t = table->tensors; t < table->tensors + table->n_tensors; t++)
            if (!place(&unused, t, &(dpi_train_tensor){0}))
                return t;
    }
    return NULL;
}

int64_t dpi_graph_before(const dpi_graph_layer *layers, int32_t layer,
                         const int64_t sizes[DPI_LAYER_KINDS]) {
    int64_t sum = 0;
    for (int32_t l = 0; l < layer; l++)
        sum += sizes[dpi_graph_kind(layers, l)];
    return sum;
}

/* Where the tensors of a layer of a kind lie. Returns its size. */
static int64_t place_all(const dpi_graph_shape *s, dpi_layer_kind kind, dpi_graph_layout *l) {
    const dpi_arch_table *table = &s->arch->layers[kind];
    int64_t size = 0;
    for (const dpi_arch_tensor *a = table->tensors; a < table->tensors + table->n_tensors; a++) {
        const dpi_train_tensor t = dpi_train_layer_tensor(s, kind, a);
        place(l, a, &t);
        size = t.offset + (s->base && !a->is_array ? 0 : dpi_train_tensor_size(&t));
    }
    return size;
}

void dpi_graph_layout_of_kind(const dpi_graph_shape *s, dpi_layer_kind kind,
                              dpi_graph_layout *layout) {
    const int64_t width = s->base ? 0 : s->dim; /* of matrices: those of a base are not here */
    int64_t end = 0;
    dpi_graph_layout l = {.kind = kind};
    for (int32_t i = 0; i < DPI_LAYER_KINDS; i++)
        l.sizes[i] = place_all(s, (dpi_layer_kind)i, &(dpi_graph_layout){0});
    place_all(s, kind, &l);
    l.embedding = next(&end, s->n_vocab * width);
    l.output = s->tied ? l.embedding : next(&end, s->n_vocab * width);
    l.output_norm = next(&end, s->dim);
    l.layers = next(&end, dpi_graph_before(s->layers, s->n_layer, l.sizes));
    l.n_params = end;
    *layout = l;
}

void dpi_graph_layout_of(const dpi_graph_shape *s, dpi_graph_layout *layout) {
    dpi_graph_layout_of_kind(s, DPI_LAYER_ATTENTION, layout);
}

int64_t dpi_graph_layer_at(const dpi_graph_shape *s, const dpi_graph_layout *layout,
                           int32_t layer) {
    return layout->layers + dpi_graph_before(s->layers, layer, layout->sizes);
}

int64_t dpi_graph_bias_size(const dpi_graph_shape *s) {
    int64_t most = 0;
    for (int32_t kind = 0; kind < DPI_LAYER_KINDS; kind++) {
        dpi_graph_layout l = {0};
        place_all(s, (dpi_layer_kind)kind, &l);
        most = l.n_mixed > most ? l.n_mixed : most;
    }
    return most + 2 * s->ffn + 2 * s->dim;
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

/* Multiplications and additions of a row's layer beside its products: keys met by queries, or
 * columns of states read, written and read again. */
static double mixing(const dpi_graph_shape *s, const dpi_row *row, int32_t layer) {
    const dpi_graph_widths wide = dpi_graph_widths_of(s);
    double pairs = 0;
    if (dpi_graph_kind(s->layers, layer) == DPI_LAYER_DELTA)
        return 3.0 * row->n * s->delta.n_v_head * s->delta.dim * s->delta.dim_v;
    for (int32_t i = 0; i < row->n_segments; i++)
        pairs += pairs_of(row->begins[i + 1] - row->begins[i],
                          s->layers ? s->layers[layer].window : 0);
    return (double)(wide.q + wide.att) * pairs;
}

double dpi_graph_flops(const dpi_graph_shape *s, const dpi_row *row) {
    dpi_graph_layout at[DPI_LAYER_KINDS];
    const double dim = s->dim;
    double products = 0;
    for (int32_t kind = 0; kind < DPI_LAYER_KINDS; kind++)
        dpi_graph_layout_of_kind(s, (dpi_layer_kind)kind, &at[kind]);
    for (int32_t t = 0; t < row->n; t++)
        products += row->weights[t] < 0 || row->weights[t] > 0 ? dim * s->n_vocab : 0;
    for (int32_t l = 0; l < s->n_layer; l++) {
        const dpi_graph_layout *of = &at[dpi_graph_kind(s->layers, l)];
        products += row->n * (of->n_mixed + of->n_mix + 3.0 * s->ffn) * dim + mixing(s, row, l);
    }
    return 3 * 2 * products;
}
