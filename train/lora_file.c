#include "train/lora_file.h"

#include <stdio.h>

#include "kernels/weight_types.h"

void dpi_lora_visit(const dpi_lora *lora, const dpi_graph_shape *shape, const float *adapters,
                    dpi_lora_visit_fn *visit, void *user) {
    char name[80];
    for (int32_t l = 0; l < shape->n_layer; l++) {
        const dpi_lora_layer layer = dpi_lora_layer_of(lora, shape, l);
        const dpi_arch_table *table = dpi_train_table(shape, l);
        for (int32_t i = 0; i < table->n_matrices; i++) {
            const dpi_lora_matrix *m = &layer.matrix[i];
            const dpi_tensor_name tensor =
                dpi_arch_tensor_name(dpi_arch_matrix(table, i), l, "weight");
            if (m->a < 0)
                continue;
            snprintf(name, sizeof name, "%s.lora_a", tensor.text);
            visit(user, name, m->n_in, lora->rank, adapters + m->a);
            snprintf(name, sizeof name, "%s.lora_b", tensor.text);
            visit(user, name, lora->rank, m->n_adapted, adapters + m->b);
        }
    }
}

static void put_entry(void *user, const char *name, int64_t n_columns, int64_t n_rows,
                      const float *data) {
    (void)data;
    dpi_gguf_put_tensor(user, name, DPI_TYPE_F32, 2, (int64_t[]){n_columns, n_rows});
}

static void put_data(void *user, const char *name, int64_t n_columns, int64_t n_rows,
                     const float *data) {
    (void)name;
    dpi_gguf_put_data(user, data, (uint64_t)(n_columns * n_rows) * sizeof *data);
}

void dpi_lora_put_keys(dpi_gguf_builder *w, const dpi_lora *lora, const char *name) {
    dpi_gguf_put_string(w, "general.architecture", lora->arch->name);
    dpi_gguf_put_string(w, "general.type", "adapter");
    dpi_gguf_put_string(w, "general.name", name);
    dpi_gguf_put_string(w, "adapter.type", "lora");
    dpi_gguf_put_f32(w, "adapter.lora.alpha", lora->scale * (float)lora->rank);
}

void dpi_lora_put_tensors(dpi_gguf_builder *w, const dpi_lora *lora, const dpi_graph_shape *shape,
                          const float *adapters) {
    dpi_lora_visit(lora, shape, adapters, put_entry, w);
    dpi_lora_visit(lora, shape, adapters, put_data, w);
}
