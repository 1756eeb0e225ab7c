#include "train/tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "engine/config.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"

/* ---- Where they lie -------------------------------------------------------------------------- */

dpi_train_tensor dpi_train_layer_tensor(const dpi_graph_shape *s, int32_t layer,
                                        const dpi_arch_tensor *wanted) {
    const dpi_shape sizes = dpi_graph_sizes(s, layer);
    dpi_train_tensor t = {0};
    int64_t end = 0;
    for (const dpi_arch_tensor *a = dpi_train_table(s, layer)->tensors; a <= wanted; a++)
        t = dpi_train_next_tensor(s, &sizes, a, &end);
    return t;
}

dpi_train_tensor dpi_train_file_tensor(const dpi_graph_shape *s, int32_t layer,
                                       const dpi_arch_tensor *first) {
    dpi_train_tensor t = dpi_train_layer_tensor(s, layer, first);
    for (int32_t i = 1; i < dpi_arch_parts(dpi_train_table(s, layer), first); i++)
        t.n_rows += dpi_train_layer_tensor(s, layer, first + i).n_rows;
    return t;
}

/* The entry with which the index-th tensor of a layer begins in the table; NULL: there are
 * fewer. */
static const dpi_arch_tensor *entry_of(const dpi_graph_shape *s, int32_t layer, int32_t index) {
    const dpi_arch_table *table = dpi_train_table(s, layer);
    const dpi_shape sizes = dpi_graph_sizes(s, layer);
    const dpi_arch_tensor *t = table->tensors;
    for (; t < table->tensors + table->n_tensors; t += dpi_arch_parts(table, t))
        if (dpi_arch_has(t, &sizes) && index-- == 0)
            return t;
    return NULL;
}

static int32_t count_in_layer(const dpi_graph_shape *s, int32_t layer) {
    int32_t n = 0;
    while (entry_of(s, layer, n))
        n++;
    return n;
}

static dpi_train_tensor of_layer(const dpi_graph_shape *s, int32_t layer, int32_t index) {
    const dpi_arch_tensor *entry = entry_of(s, layer, index);
    dpi_train_tensor t = dpi_train_file_tensor(s, layer, entry);
    dpi_graph_layout at;
    dpi_graph_layout_of(s, &at);
    t.offset += at.layers[layer];
    snprintf(t.name, sizeof t.name, "%s", dpi_arch_tensor_name(entry, layer, "weight").text);
    return t;
}

/* Those of no layer; of a tied head there is one less. */
static int32_t first_of(const dpi_graph_shape *s, dpi_train_tensor first[3]) {
    dpi_graph_layout at;
    dpi_graph_layout_of(s, &at);
    first[0] = (dpi_train_tensor){"token_embd.weight", at.embedding, s->dim, s->n_vocab};
    first[1] = (dpi_train_tensor){"output_norm.weight", at.output_norm, s->dim, 0};
    first[2] = (dpi_train_tensor){"output.weight", at.output, s->dim, s->n_vocab};
    return 2 + !s->tied;
}

int32_t dpi_train_tensor_count(const dpi_graph_shape *s) {
    int32_t n = 2 + !s->tied;
    for (int32_t l = 0; l < s->n_layer; l++)
        n += count_in_layer(s, l);
    return n;
}

dpi_train_tensor dpi_train_tensor_at(const dpi_graph_shape *s, int32_t index) {
    dpi_train_tensor first[3];
    const int32_t n_first = first_of(s, first);
    int32_t layer = 0;
    if (index < n_first)
        return first[index];
    for (index -= n_first; index >= count_in_layer(s, layer); layer++)
        index -= count_in_layer(s, layer);
    return of_layer(s, layer, index);
}

bool dpi_train_tensor_find(const dpi_graph_shape *s, const char *name, dpi_train_tensor *found) {
    dpi_train_tensor first[3];
    const int32_t n_first = first_of(s, first);
    int32_t layer = -1;
    for (int32_t i = 0; i < n_first; i++)
        if (strcmp(first[i].name, name) == 0) {
            *found = first[i];
            return true;
        }
    if (sscanf(name, "blk.%6d.", &layer) != 1 || layer < 0 || layer >= s->n_layer)
        return false;
    for (int32_t i = 0; i < count_in_layer(s, layer); i++)
        if (strcmp(dpi_arch_tensor_name(entry_of(s, layer, i), layer, "weight").text, name) == 0) {
            *found = of_layer(s, layer, i);
            return true;
        }
    return false;
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
    for (int64_t i = 0; i < dpi_gguf_tensor_count(file); i++) {
        const char *name = dpi_gguf_tensor_at(file, i)->name;
        dpi_train_tensor found;
        if (!dpi_train_tensor_find(shape, name, &found))
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
    if (status == DPI_STATUS_OK && arch != shape->arch)
        status = dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                          "%s: general.architecture is '%s', that of the model in training is '%s'",
                          dpi_gguf_name(file), arch->name, shape->arch->name);
    for (int32_t i = 0; status == DPI_STATUS_OK && i < dpi_train_tensor_count(shape); i++) {
        dpi_train_tensor wanted = dpi_train_tensor_at(shape, i);
        status = read_tensor(file, &wanted, params, err);
    }
    if (status == DPI_STATUS_OK)
        status = refuse_others(file, shape, err);
    dpi_gguf_close(file);
    return status;
}
