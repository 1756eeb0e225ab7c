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

/* Tells the layout where a tensor of a layer begins, and a norm's length. False: the graph has no
 * place for it. */
static bool place(dpi_graph_layout *l, const dpi_arch_tensor *tensor, int64_t at, int64_t n) {
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
    case offsetof(dpi_layer, wk): /* behind the one before it */
    case offsetof(dpi_layer, wv):
    case offsetof(dpi_layer, w_up): return true;
    default: return false;
    }
}

const dpi_arch_tensor *dpi_graph_unknown(const dpi_arch *arch) {
    dpi_graph_layout unused;
    const dpi_arch_table *table = dpi_train_table(arch);
    for (const dpi_arch_tensor *t = table->tensors; t < table->tensors + table->n_tensors; t++)
        if (!place(&unused, t, 0, 0))
            return t;
    const dpi_arch_table *delta = &arch->layers[DPI_LAYER_DELTA];
    return delta->n_tensors > 0 ? &delta->tensors[1] : NULL; /* the first one that others lack */
}

void dpi_graph_layout_of(const dpi_graph_shape *s, dpi_graph_layout *layout) {
    const int64_t width = s->base ? 0 : s->dim; /* of matrices: those of a base are not here */
    int64_t end = 0;
    dpi_graph_layout l = {0};
    for (int32_t i = 0; i < dpi_train_table(s->arch)->n_tensors; i++) {
        const dpi_arch_tensor *tensor = &dpi_train_table(s->arch)->tensors[i];
        const dpi_train_tensor t = dpi_train_layer_tensor(s, tensor);
        place(&l, tensor, t.offset, t.n_in);
        l.layer_size = t.offset + (s->base && t.n_rows ? 0 : dpi_train_tensor_size(&t));
    }
    l.embedding = next(&end, s->n_vocab * width);
    l.output = s->tied ? l.embedding : next(&end, s->n_vocab * width);
    l.output_norm = next(&end, s->dim);
    l.layers = next(&end, l.layer_size * s->n_layer);
    l.n_params = end;
    *layout = l;
}

int64_t dpi_graph_bias_size(const dpi_graph_shape *s) {
    return (int64_t)dpi_graph_widths_of(s).qkv + 2 * s->ffn + 2 * s->dim;
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
    const dpi_graph_widths wide = dpi_graph_widths_of(s);
    double dim = s->dim, layer = (wide.qkv + wide.att + 3.0 * s->ffn) * dim;
    double products = row->n * s->n_layer * layer, pairs = 0;
    for (int32_t t = 0; t < row->n; t++)
        products += row->weights[t] < 0 || row->weights[t] > 0 ? dim * s->n_vocab : 0;
    for (int32_t l = 0; l < s->n_layer; l++)
        for (int32_t i = 0; i < row->n_segments; i++)
            pairs += pairs_of(row->begins[i + 1] - row->begins[i],
                              s->layers ? s->layers[l].window : 0);
    return 3 * 2 * (products + (double)(wide.q + wide.att) * pairs);
}
