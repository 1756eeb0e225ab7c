/* graph.c - what does not depend on the number type: the layout, which version to run, its cost. */
#include "train/graph.h"

#include "dpinfer.h"

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

void dpi_graph_layout_of(const dpi_graph_shape *s, dpi_graph_layout *layout) {
    const dpi_graph_widths wide = dpi_graph_widths_of(s);
    const int64_t dim = s->dim;
    const int64_t width = s->base ? 0 : dim; /* of matrices: those of a base are not here */
    int64_t end = 0, in_layer = 0;
    dpi_graph_layout l;
    l.attn_norm = next(&in_layer, dim);
    l.wqkv = next(&in_layer, wide.qkv * width);
    l.wo = next(&in_layer, wide.att * width);
    l.ffn_norm = next(&in_layer, dim);
    l.w_gate_up = next(&in_layer, 2 * s->ffn * width);
    l.w_down = next(&in_layer, s->ffn * width);
    l.layer_size = in_layer;
    l.embedding = next(&end, s->n_vocab * width);
    l.output = s->tied ? l.embedding : next(&end, s->n_vocab * width);
    l.output_norm = next(&end, dim);
    l.layers = next(&end, in_layer * s->n_layer);
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

double dpi_graph_flops(const dpi_graph_shape *s, const dpi_row *row) {
    const dpi_graph_widths wide = dpi_graph_widths_of(s);
    double dim = s->dim, layer = (wide.qkv + wide.att + 3.0 * s->ffn) * dim;
    double products = row->n * s->n_layer * layer, pairs = 0;
    for (int32_t t = 0; t < row->n; t++)
        products += row->weights[t] < 0 || row->weights[t] > 0 ? dim * s->n_vocab : 0;
    for (int32_t i = 0; i < row->n_segments; i++) {
        double n = row->begins[i + 1] - row->begins[i];
        pairs += n * (n + 1) / 2;
    }
    return 3 * 2 * (products + (double)(wide.q + wide.att) * s->n_layer * pairs);
}
