#include "train/lora.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "train/random.h"
#include "train/tensors.h"

dpi_status dpi_lora_check_targets(const dpi_arch *arch, uint32_t targets, dpi_error *err) {
    DPI_TRY(dpi_check_range("targets", targets, 1, DPI_LORA_ALL, err));
    const dpi_arch_table *table = &arch->layers[DPI_LAYER_ATTENTION];
    for (int32_t i = 0, n; i < DPI_LORA_MATRICES; i += n) {
        const dpi_arch_tensor *t = dpi_arch_matrix(table, i);
        n = dpi_arch_parts(table, t);
        const uint32_t all = (1u << n) - 1, found = targets >> i & all;
        if (found != 0 && found != all)
            return dpi_fail(err, DPI_STATUS_ARG,
                            "targets: found some of the %d matrices that are one tensor, %s, of "
                            "this model: allowed are all of them or none", n, t->name);
    }
    return DPI_STATUS_OK;
}

/* Whether a matrix of a layer has an adapter. */
static bool is_target(dpi_layer_kind kind, int32_t matrix, uint32_t targets) {
    enum { IN = 1 << DPI_LORA_Q | 1 << DPI_LORA_K | 1 << DPI_LORA_V, N_IN = 4 };
    if (kind == DPI_LAYER_ATTENTION)
        return targets >> matrix & 1;
    return matrix < N_IN ? (targets & IN) != 0 : targets >> (matrix - N_IN + DPI_LORA_O) & 1;
}

dpi_lora_layer dpi_lora_layer_of(const dpi_lora *lora, const dpi_graph_shape *s, int32_t layer) {
    dpi_lora_layer l = {.end = lora->layers[layer]};
    const dpi_arch_table *table = dpi_train_table(s, layer);
    const dpi_layer_kind kind = dpi_graph_kind(s, layer);
    int32_t n_behind = 0; /* matrices that have the adapter of one before them */
    for (int32_t i = table->n_matrices; i < DPI_GRAPH_MATRICES; i++)
        l.matrix[i].a = l.matrix[i].b = -1;
    for (int32_t i = 0; i < table->n_matrices; i++) {
        dpi_lora_matrix *m = &l.matrix[i];
        const dpi_arch_tensor *tensor = dpi_arch_matrix(table, i);
        const dpi_train_tensor t = dpi_train_layer_tensor(s, layer, tensor);
        *m = (dpi_lora_matrix){t.offset, t.n_in, t.n_rows, 0, -1, -1};
        if (n_behind-- > 0 || !is_target(kind, i, lora->targets) || t.n_in == 0)
            continue;
        n_behind = dpi_arch_parts(table, tensor) - 1;
        m->n_adapted = dpi_train_file_tensor(s, layer, tensor).n_rows;
        m->a = l.end;
        m->b = m->a + lora->rank * m->n_in;
        l.end = m->b + lora->rank * m->n_adapted;
    }
    return l;
}

void dpi_lora_of(const dpi_graph_shape *s, int32_t rank, float alpha, uint32_t targets,
                 dpi_lora *lora) {
    *lora = (dpi_lora){.arch = s->arch, .rank = rank, .scale = alpha / (float)rank,
                       .targets = targets};
    for (int32_t l = 0; l < s->n_layer; l++) {
        lora->layers[l] = lora->n_params;
        lora->n_params = dpi_lora_layer_of(lora, s, l).end;
    }
}

void dpi_lora_init(const dpi_lora *lora, const dpi_graph_shape *s, uint64_t seed,
                   float *adapters) {
    memset(adapters, 0, (size_t)lora->n_params * sizeof *adapters);
    for (int32_t l = 0; l < s->n_layer; l++) {
        const dpi_lora_layer layer = dpi_lora_layer_of(lora, s, l);
        for (int32_t i = 0; i < DPI_GRAPH_MATRICES; i++) {
            const dpi_lora_matrix *m = &layer.matrix[i];
            for (int64_t j = 0; m->a >= 0 && j < lora->rank * m->n_in; j++)
                adapters[m->a + j] =
                    (float)(dpi_train_random_normal(&seed) / sqrt((double)m->n_in));
        }
    }
}
