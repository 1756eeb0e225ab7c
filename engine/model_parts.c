/* model_parts.c - what of a model is where: its tensors by layer and name, its rotations; and its
 * mark. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "engine/model.h"

void *dpi_model_tensor(const dpi_model *m, int32_t layer, const dpi_arch_tensor *t) {
    return (unsigned char *)&m->layers[layer] + t->at;
}

int32_t dpi_model_rotations(const dpi_model *m) {
    return m->config.window_rope_base > 0 && m->config.window > 0 ? DPI_ROTATIONS : 1;
}

double dpi_model_frequencies(const dpi_model *m, dpi_rotation rotation, int32_t n_ctx,
                             double *freqs) {
    const dpi_config *c = &m->config;
    const int32_t n_rot = m->n_rot[rotation];
    const float *factors = n_ctx > c->n_ctx_original ? m->rope_long : m->rope_short;
    if (rotation == DPI_ROTATION_WINDOW) {
        for (int32_t i = 0; i < n_rot / 2; i++)
            freqs[i] = pow((double)c->window_rope_base, -2.0 * i / n_rot);
        return 1;
    }
    for (int32_t i = 0; i < n_rot / 2; i++) {
        double f = pow((double)c->rope_freq_base, -2.0 * i / n_rot) * (double)c->rope_freq_scale;
        if (m->rope_freqs)
            f /= (double)m->rope_freqs[i];
        else if (c->llama3.factor > 0)
            f /= dpi_config_llama3_divisor(c, f);
        if (factors)
            f /= (double)factors[i];
        freqs[i] = c->yarn.factor > 0 ? f / dpi_config_yarn_divisor(c, i) : f;
    }
    return c->rope_magnitude;
}

uint64_t dpi_model_mark(const dpi_model *m) {
    const dpi_config *c = &m->config;
    uint64_t hash = dpi_hash(DPI_HASH_INIT, m->output_norm, (size_t)c->n_embd * sizeof(float));
    for (int32_t l = 0; l < c->n_layer; l++) {
        const dpi_arch_table *table = dpi_config_table(c, l);
        for (int32_t i = 0; i < table->n_tensors; i++) {
            const dpi_arch_tensor *t = &table->tensors[i];
            const float *const *weights = dpi_model_tensor(m, l, t);
            const dpi_shape *shape = &c->shapes[l];
            const int64_t n = dpi_extent_of(shape, t->n_in) * dpi_extent_of(shape, t->n_out);
            if (t->is_array && *weights)
                hash = dpi_hash(hash, *weights, (size_t)n * sizeof(float));
        }
    }
    return hash;
}

dpi_matrix *dpi_layer_matrix(const dpi_model *m, int32_t layer, int32_t i) {
    return dpi_model_tensor(m, layer, dpi_arch_matrix(dpi_config_table(&m->config, layer), i));
}

dpi_matrix *dpi_model_matrix(const dpi_model *m, int32_t i) {
    return i < m->n_products ? m->products[i].w : NULL;
}

/* How many of n entries of a table a layer has. */
static int32_t count_had(const dpi_arch_tensor *t, int32_t n, const dpi_shape *shape) {
    int32_t n_had = 0;
    for (int32_t i = 0; i < n; i++)
        n_had += dpi_arch_has(&t[i], shape);
    return n_had;
}

int32_t dpi_model_find(const dpi_model *m, const char *tensor, int32_t *n) {
    int32_t layer;
    if (sscanf(tensor, "blk.%6d.", &layer) != 1)
        return -1;
    for (int32_t i = 0; i < m->n_products; i++) {
        const dpi_arch_tensor *t = m->products[i].tensor;
        if (!t || m->products[i].layer != layer)
            continue;
        const dpi_arch_table *table = dpi_config_table(&m->config, layer);
        const bool is_own = strcmp(dpi_arch_tensor_name(t, layer, "weight").text, tensor) == 0;
        *n = count_had(t, is_own ? dpi_arch_parts(table, t) : dpi_arch_joined(table, t),
                       &m->config.shapes[layer]);
        if (is_own || strcmp(dpi_arch_joined_name(t, layer, "weight").text, tensor) == 0)
            return i;
    }
    return -1;
}

int32_t dpi_model_row(const dpi_model *m, const char *tensor, int64_t *row) {
    int32_t n = 0, i = dpi_model_find(m, tensor, &n);
    for (; i >= 0 && n > 1 && *row >= m->products[i].w->n_out; n--, i++)
        *row -= m->products[i].w->n_out;
    return i;
}

bool dpi_model_has_biases(const dpi_model *m) {
    bool has = false;
    for (int32_t i = 0; i < m->n_products; i++)
        has |= m->products[i].tensor && m->products[i].w->bias;
    return has;
}
