/* graph.c - which version of the graph runs, and what it costs. */
#include "train/graph.h"

#include "dpinfer.h"

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
    const dpi_graph_widths w = dpi_graph_widths_of(s, layer);
    double sum = 0;
    if (dpi_graph_kind(s, layer) == DPI_LAYER_DELTA)
        return 3.0 * row->n * w.delta.n_v_head * w.delta.dim * w.delta.dim_v;
    for (int32_t i = 0; i < row->n_segments; i++)
        sum += (w.q + w.att) * pairs_of(row->begins[i + 1] - row->begins[i],
                                        s->layers ? s->layers[layer].window : 0);
    return sum;
}

double dpi_graph_flops(const dpi_graph_shape *s, const dpi_row *row) {
    const double dim = s->dim;
    double sum = 0;
    for (int32_t t = 0; t < row->n; t++)
        sum += row->weights[t] < 0 || row->weights[t] > 0 ? dim * s->n_vocab : 0;
    for (int32_t l = 0; l < s->n_layer; l++) {
        const dpi_graph_widths w = dpi_graph_widths_of(s, l);
        sum += row->n * (w.mixed + w.att + 3.0 * w.ffn + 2.0 * w.input) * dim;
        sum += mixing(s, row, l);
    }
    return 3 * 2 * sum;
}
