#include "train/base.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "kernels/weight_types.h"
#include "train/tensors.h"

static dpi_status check(const dpi_model *m, int32_t context, dpi_error *err) {
    if (m->vocab_only)
        return dpi_fail(err, DPI_STATUS_ARG, "the model was opened without its weights");
    const dpi_arch_tensor *unknown = dpi_graph_unknown(m->config.arch);
    if (unknown)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "training: the base model is of architecture '%s', whose layers have a "
                        "tensor that training does not know, %s",
                        m->config.arch->name, unknown->name);
    return dpi_check_range("context", context, 1, m->config.n_ctx_max, err);
}

/* Of the table; a layer may lack some. */
static int32_t n_matrices(const dpi_model *m, int32_t layer) {
    return dpi_config_table(&m->config, layer)->n_matrices;
}

static void read_biases(const dpi_model *m, int64_t layer_size, float *to) {
    for (int32_t l = 0; l < m->config.n_layer; l++, to += layer_size) {
        float *at = to;
        for (int32_t i = 0; i < n_matrices(m, l); i++) {
            const dpi_matrix *w = dpi_layer_matrix(m, l, i);
            if (w->bias)
                memcpy(at, w->bias, (size_t)w->n_out * sizeof *at);
            at += w->n_out;
        }
    }
}

static dpi_status make_tables(const dpi_model *m, int32_t context, dpi_graph_shape *s,
                              dpi_base_tables *tables, dpi_error *err) {
    const bool biased = dpi_model_has_biases(m);
    const int64_t n_biases = dpi_graph_bias_size(s);
    const size_t n_layer = (size_t)s->n_layer, half = (size_t)s->n_rot / 2;
    *tables = (dpi_base_tables){
        .frequencies = dpi_calloc((size_t)s->n_rotations * half, sizeof *tables->frequencies),
        .layers = dpi_calloc(n_layer, sizeof *tables->layers),
        .biases = biased ? dpi_calloc(n_layer * (size_t)n_biases, sizeof *tables->biases) : NULL};
    if (!tables->frequencies || !tables->layers || (biased && !tables->biases))
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the tables of a training");
    for (int32_t r = 0; r < s->n_rotations; r++)
        s->magnitudes[r] = dpi_model_frequencies(m, (dpi_rotation)r, context,
                                                 tables->frequencies + (size_t)r * half);
    for (int32_t l = 0; l < s->n_layer; l++)
        tables->layers[l] = (dpi_graph_layer){m->layers[l].window, m->layers[l].rotation,
                                              (dpi_layer_kind)m->config.kind[l]};
    if (biased)
        read_biases(m, n_biases, tables->biases);
    s->frequencies = tables->frequencies, s->layers = tables->layers, s->biases = tables->biases;
    return DPI_STATUS_OK;
}

void dpi_base_tables_free(dpi_base_tables *tables) {
    free(tables->frequencies), free(tables->layers), free(tables->biases);
    *tables = (dpi_base_tables){0};
}

dpi_status dpi_base_shape(const dpi_model *m, int32_t context, dpi_base_tables *tables,
                          dpi_graph_shape *shape, dpi_error *err) {
    const dpi_config *c = &m->config;
    DPI_TRY(check(m, context, err));
    *shape = (dpi_graph_shape){.arch = c->arch,
                               .n_layer = c->n_layer,
                               .dim = c->n_embd,
                               .n_head = c->n_head,
                               .n_kv_head = c->n_kv_head,
                               .ffn = c->n_ff,
                               .n_vocab = m->n_vocab,
                               .context = context,
                               .tied = m->tied_output,
                               .head_dim = c->head_dim,
                               .head_dim_v = c->head_dim_v,
                               .n_rot = c->n_rot,
                               .rms_eps = c->rms_eps,
                               .n_rotations = dpi_model_rotations(m),
                               .embedding_scale = c->embedding_scale,
                               .residual_scale = c->residual_scale,
                               .logit_scale = c->logit_scale,
                               .attention_scale = c->attention_scale,
                               .attention_cap = c->attention_cap,
                               .final_cap = c->final_cap,
                               .temperature_scale = (float)c->temperature_scale,
                               .n_ctx_original = c->n_ctx_original,
                               .output_bias = m->output.bias,
                               .shapes = c->shapes,
                               .inputs = m->w_inputs.type ? m : NULL};
    return make_tables(m, context, shape, tables, err);
}

/* Or absent. */
static bool is_float(const dpi_matrix *w) {
    return !w->type || w->type->id == DPI_TYPE_F32 || w->type->id == DPI_TYPE_F16 ||
           w->type->id == DPI_TYPE_BF16;
}

dpi_status dpi_base_check_floats(const dpi_model *m, dpi_error *err) {
    const dpi_matrix *bad = is_float(&m->embedding) ? NULL : &m->embedding;
    bad = is_float(&m->output) ? bad : &m->output;
    for (int32_t l = 0; l < m->config.n_layer; l++)
        for (int32_t i = 0; i < n_matrices(m, l); i++)
            bad = is_float(dpi_layer_matrix(m, l, i)) ? bad : dpi_layer_matrix(m, l, i);
    if (!bad)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                    "full: found weights of type %s, allowed are F32, F16 and BF16",
                    bad->type->name);
}

/* Rows of a matrix of the model, as graph.h wants them. */
static void read_rows(const void *model, int32_t layer, int32_t matrix, int64_t first, int64_t n,
                      float *to) {
    const dpi_model *m = model;
    const dpi_matrix *w = matrix == DPI_GRAPH_EMBEDDING || (matrix == DPI_GRAPH_OUTPUT &&
                                                            m->tied_output)
                              ? &m->embedding
                          : matrix == DPI_GRAPH_OUTPUT ? &m->output
                                                       : dpi_layer_matrix(m, layer, matrix);
    for (int64_t row = first; row < first + n; row++, to += w->n_in)
        dpi_matrix_row(w, row, to);
}

dpi_graph_base dpi_base_of(const dpi_model *m) { return (dpi_graph_base){read_rows, m}; }

static const float *layer_array(const dpi_model *m, int32_t layer, const dpi_arch_tensor *t) {
    const float *array;
    memcpy(&array, (const unsigned char *)&m->layers[layer] + t->at, sizeof array);
    return array;
}

void dpi_base_norms(const dpi_model *m, const dpi_graph_shape *s, float *params) {
    dpi_graph_layout at;
    dpi_graph_layout_of(s, &at);
    memcpy(params + at.output_norm, m->output_norm, (size_t)s->dim * sizeof *params);
    for (int32_t l = 0; l < s->n_layer; l++) {
        const dpi_arch_table *table = dpi_train_table(s, l);
        for (const dpi_arch_tensor *a = table->tensors; a < table->tensors + table->n_tensors;
             a++) {
            const dpi_train_tensor t = dpi_train_layer_tensor(s, l, a);
            if (a->is_array && t.n_in > 0)
                memcpy(params + at.layers[l] + t.offset, layer_array(m, l, a),
                       (size_t)dpi_train_tensor_size(&t) * sizeof *params);
        }
    }
}

void dpi_base_read(const dpi_model *m, const dpi_graph_shape *s, float *params) {
    dpi_graph_layout at;
    dpi_graph_layout_of(s, &at);
    dpi_base_norms(m, s, params);
    read_rows(m, 0, DPI_GRAPH_EMBEDDING, 0, s->n_vocab, params + at.embedding);
    if (!s->tied)
        read_rows(m, 0, DPI_GRAPH_OUTPUT, 0, s->n_vocab, params + at.output);
    for (int32_t l = 0; l < s->n_layer; l++)
        for (int32_t i = 0; i < n_matrices(m, l); i++) {
            const dpi_train_tensor t =
                dpi_train_layer_tensor(s, l, dpi_arch_matrix(dpi_train_table(s, l), i));
            read_rows(m, l, i, 0, t.n_rows, params + at.layers[l] + t.offset);
        }
}
