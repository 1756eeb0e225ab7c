#include "train/lora.h"

#include <math.h>
#include <string.h>

#include "train/random.h"

const char *dpi_lora_name(int32_t matrix) {
    static const char *const names[DPI_LORA_MATRICES] = {
        "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
    return names[matrix];
}

void dpi_lora_of(const dpi_graph_shape *s, int32_t rank, float alpha, uint32_t targets,
                 dpi_lora *lora) {
    dpi_graph_layout at;
    dpi_graph_layout_of(s, &at);
    const dpi_graph_widths w = dpi_graph_widths_of(s);
    const int64_t dim = s->dim, ffn = s->ffn;
    *lora = (dpi_lora){
        .rank = rank,
        .scale = alpha / (float)rank,
        .matrix = {{at.wqkv, dim, w.q, -1, -1},
                   {at.wqkv + w.q * dim, dim, w.k, -1, -1},
                   {at.wqkv + (w.q + w.k) * dim, dim, w.v, -1, -1},
                   {at.wo, w.att, dim, -1, -1},
                   {at.w_gate_up, dim, ffn, -1, -1},
                   {at.w_gate_up + ffn * dim, dim, ffn, -1, -1},
                   {at.w_down, ffn, dim, -1, -1}},
    };
    for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
        dpi_lora_matrix *m = &lora->matrix[i];
        if (!(targets >> i & 1))
            continue;
        m->a = lora->layer_size;
        m->b = m->a + rank * m->n_in;
        lora->layer_size = m->b + rank * m->n_out;
    }
    lora->n_params = lora->layer_size * s->n_layer;
}

void dpi_lora_init(const dpi_lora *lora, int32_t n_layer, uint64_t seed, float *adapters) {
    memset(adapters, 0, (size_t)lora->n_params * sizeof *adapters);
    for (int32_t l = 0; l < n_layer; l++)
        for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
            const dpi_lora_matrix *m = &lora->matrix[i];
            float *a = adapters + l * lora->layer_size + m->a;
            for (int64_t j = 0; m->a >= 0 && j < lora->rank * m->n_in; j++)
                a[j] = (float)(dpi_train_random_normal(&seed) / sqrt((double)m->n_in));
        }
}
