#include "train/lora.h"

#include <math.h>
#include <string.h>

#include "train/random.h"
#include "train/tensors.h"

const char *dpi_lora_name(int32_t matrix) {
    return dpi_arch_matrix(&dpi_arch_llama.layers[DPI_LAYER_ATTENTION], matrix)->name;
}

void dpi_lora_of(const dpi_graph_shape *s, int32_t rank, float alpha, uint32_t targets,
                 dpi_lora *lora) {
    *lora = (dpi_lora){.rank = rank, .scale = alpha / (float)rank};
    for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
        dpi_lora_matrix *m = &lora->matrix[i];
        const dpi_train_tensor t = dpi_train_layer_tensor(
            s, dpi_arch_matrix(&dpi_arch_llama.layers[DPI_LAYER_ATTENTION], i));
        *m = (dpi_lora_matrix){t.offset, t.n_in, t.n_rows, -1, -1};
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
