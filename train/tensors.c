#include "train/tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "engine/config.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"

/* Those of every layer. */
static const dpi_arch_table *const table = &dpi_arch_llama.layers[DPI_LAYER_ATTENTION];

int32_t dpi_train_tensor_count(const dpi_graph_shape *s) {
    return 2 + !s->tied + s->n_layer * table->n_tensors;
}

/* Tensors of a layer lie one after the other; with a base matrices take no room (graph.h). */
dpi_train_tensor dpi_train_layer_tensor(const dpi_graph_shape *s, const dpi_arch_tensor *wanted) {
    const dpi_graph_widths w = dpi_graph_widths_of(s);
    const dpi_shape c = {.n_embd = s->dim, .n_ff = s->ffn, .n_head = s->n_head,
                         .n_kv_head = s->n_kv_head, .head_dim = w.head, .head_dim_v = w.head_v};
    dpi_train_tensor t = {0};
    for (const dpi_arch_tensor *a = table->tensors; a <= wanted; a++) {
        if (!s->base || t.n_rows == 0)
            t.offset += dpi_train_tensor_size(&t);
        t.n_in = dpi_extent_of(&c, a->n_in);
        t.n_rows = !a->is_array ? dpi_extent_of(&c, a->n_out) : 0;
    }
    return t;
}

static dpi_train_tensor of_layer(const dpi_graph_shape *s, const dpi_graph_layout *at,
                                 int32_t layer, int32_t index) {
    const dpi_arch_tensor *a = &table->tensors[index];
    const dpi_tensor_name name = dpi_arch_tensor_name(a, layer, "weight");
    dpi_train_tensor t = dpi_train_layer_tensor(s, a);
    t.offset += at->layers + layer * at->layer_size;
    snprintf(t.name, sizeof t.name, "%s", name.text);
    return t;
}

dpi_train_tensor dpi_train_tensor_at(const dpi_graph_shape *s, int32_t index) {
    dpi_graph_layout at;
    dpi_graph_layout_of(s, &at);
    const dpi_train_tensor first[] = {
        {"token_embd.weight", at.embedding, s->dim, s->n_vocab},
        {"output_norm.weight", at.output_norm, s->dim, 0},
        {"output.weight", at.output, s->dim, s->n_vocab},
    };
    int32_t n_first = 2 + !s->tied;
    if (index < n_first)
        return first[index];
    return of_layer(s, &at, (index - n_first) / table->n_tensors,
                    (index - n_first) % table->n_tensors);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static dpi_status read_tensor(const dpi_gguf *file, const dpi_train_tensor *wanted, float *params,
                              dpi_error *err) {
    const dpi_gguf_tensor *t = dpi_gguf_tensor_find(file, wanted->name);
    const char *name = dpi_gguf_name(file);
    if (!t)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: has no tensor %s", name, wanted->name);
    int64_t n = dpi_train_tensor_size(wanted);
    int64_t n_rows = t->shape[1] * t->shape[2] * t->shape[3];
    if (t->shape[0] != wanted->n_in || n_rows != n / wanted->n_in)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s is %lld x %lld, must be %lld x %lld", name,
                        wanted->name, (long long)t->shape[0], (long long)n_rows,
                        (long long)wanted->n_in, (long long)(n / wanted->n_in));
    const dpi_type *type = dpi_type_find(t->type);
    if (!type)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "%s: %s has weight type %u", name,
                        wanted->name, (unsigned)t->type);
    type->dequantize(t->data, params + wanted->offset, n);
    return DPI_STATUS_OK;
}

/* What is not trained would be passed over. */
static dpi_status refuse_others(const dpi_gguf *file, const dpi_graph_shape *shape,
                                dpi_error *err) {
    const int32_t n = dpi_train_tensor_count(shape);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(file); i++) {
        const char *name = dpi_gguf_tensor_at(file, i)->name;
        int32_t k = 0;
        while (k < n && strcmp(dpi_train_tensor_at(shape, k).name, name) != 0)
            k++;
        if (k == n)
            return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                            "%s: tensor %s is none of the model that is trained",
                            dpi_gguf_name(file), name);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_train_tensors_read(const char *path, const dpi_graph_shape *shape, float *params,
                                  dpi_error *err) {
    dpi_gguf *file;
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    const dpi_arch *arch = NULL;
    dpi_status status = dpi_arch_of(file, &arch, err);
    if (status == DPI_STATUS_OK && arch != &dpi_arch_llama)
        status = dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                          "%s: general.architecture is '%s', only %s can be trained",
                          dpi_gguf_name(file), arch->name, dpi_arch_llama.name);
    for (int32_t i = 0; status == DPI_STATUS_OK && i < dpi_train_tensor_count(shape); i++) {
        dpi_train_tensor wanted = dpi_train_tensor_at(shape, i);
        status = read_tensor(file, &wanted, params, err);
    }
    if (status == DPI_STATUS_OK)
        status = refuse_others(file, shape, err);
    dpi_gguf_close(file);
    return status;
}
