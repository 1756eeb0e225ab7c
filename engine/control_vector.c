#include "engine/control_vector.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "engine/base_mark.h"
#include "engine/model.h"

static dpi_status check_kind(const dpi_gguf *file, dpi_error *err) {
    static const char *const known[] = {"model_hint", "layer_count", NULL};
    const char *name = dpi_gguf_name(file);
    const int64_t n_tensors = dpi_gguf_tensor_count(file);
    dpi_str arch = {"", 0}, hint = {"", 0};
    int64_t n_layers = n_tensors;
    DPI_TRY(dpi_gguf_get_string(file, "general.architecture", &arch, NULL, err));
    if (!dpi_str_is(arch, "controlvector"))
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is no control vector: general.architecture is '%.*s', must be "
                        "'controlvector'",
                        name, (int)(arch.n_bytes > 32 ? 32 : arch.n_bytes), arch.data);
    DPI_TRY(dpi_gguf_check_keys(file, "controlvector.", known, err));
    /* A hint, no fact: some write the architecture of the GGUF file, others that of its source. */
    DPI_TRY(dpi_gguf_get_string(file, "controlvector.model_hint", &hint, NULL, err));
    DPI_TRY(dpi_gguf_get_int(file, "controlvector.layer_count", 0, 1 << 20, &n_layers, NULL, err));
    if (n_tensors == 0 || n_layers != n_tensors)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: controlvector.layer_count is %lld, and there are %lld tensors: must "
                        "be as many, at least 1",
                        name, (long long)n_layers, (long long)n_tensors);
    return DPI_STATUS_OK;
}

/* The layer that a tensor's name has; -1: none, or not as it is written. */
static int32_t layer_of(const char *name) {
    char same[32];
    int layer = -1;
    if (sscanf(name, "direction.%6d", &layer) != 1)
        return -1;
    snprintf(same, sizeof same, "direction.%d", layer);
    return strcmp(same, name) == 0 ? layer : -1;
}

/* to [n_sets, n_embd]: its place. */
static dpi_status read_tensor(const dpi_model *m, const dpi_gguf_tensor *t, float *to,
                              dpi_error *err) {
    dpi_control_vector *control = m->control;
    const int32_t n_layer = m->config.n_layer, n_embd = m->config.n_embd;
    const int32_t layer = layer_of(t->name);
    if (layer < 1 || layer >= n_layer)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: tensor %s: must be direction.N, with N 1..%d for this model", t->file,
                        t->name, (int)n_layer - 1);
    if (t->type != DPI_TYPE_F32 || t->n_dims > 2 || t->shape[0] != n_embd ||
        t->shape[1] != control->n_sets)
        return dpi_fail_at(err, DPI_STATUS_FORMAT, t->offset,
                           "%s: tensor %s is %s [%lld, %lld] of %d dimensions: must be F32 [%d] "
                           "for this model, or [%d, N] with the same N for all",
                           t->file, t->name, dpi_type_find(t->type)->name, (long long)t->shape[0],
                           (long long)t->shape[1], (int)t->n_dims, (int)n_embd, (int)n_embd);
    const int64_t n = (int64_t)control->n_sets * n_embd;
    memcpy(to, t->data, (size_t)n * sizeof *to);
    for (int64_t i = 0; i < n; i++) {
        to[i] *= control->scale;
        if (!isfinite(to[i]))
            return dpi_fail_at(err, DPI_STATUS_NUMERIC, t->offset,
                               "%s: tensor %s, number %d is %g with its scale, must be finite",
                               t->file, t->name, (int)(i % n_embd), (double)to[i]);
    }
    control->n += !control->of[layer];
    control->of[layer] = to;
    return DPI_STATUS_OK;
}

/* That of the first tensor, which the others must share. One of another width is refused later, and
 * no memory is taken for it. */
static dpi_status count_sets(const dpi_gguf *file, int32_t n_embd, int32_t *n_sets,
                             dpi_error *err) {
    const dpi_gguf_tensor *t = dpi_gguf_tensor_at(file, 0);
    *n_sets = t->shape[0] == n_embd ? (int32_t)t->shape[1] : 1;
    return t->shape[1] >= 1 && t->shape[1] <= DPI_CONTROL_SETS_MAX
               ? DPI_STATUS_OK
               : dpi_fail_at(err, DPI_STATUS_FORMAT, t->offset,
                             "%s: tensor %s has %lld vectors, must have 1..%d", t->file, t->name,
                             (long long)t->shape[1], DPI_CONTROL_SETS_MAX);
}

static dpi_status read_labels(const dpi_gguf *file, dpi_control_vector *control, dpi_error *err) {
    dpi_str lines = {"", 0};
    bool found = false;
    DPI_TRY(dpi_gguf_get_string(file, DPI_TASK_KEY "labels", &lines, &found, err));
    if (found && !(control->labels = strndup(lines.data, lines.n_bytes)))
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the labels");
    return DPI_STATUS_OK;
}

static dpi_status read_file(dpi_model *m, const dpi_gguf *file, const char *path, float scale,
                            dpi_error *err) {
    const int64_t n_tensors = dpi_gguf_tensor_count(file);
    int32_t n_sets;
    DPI_TRY(check_kind(file, err));
    DPI_TRY(count_sets(file, m->config.n_embd, &n_sets, err));
    const size_t n = (size_t)n_sets * (size_t)m->config.n_embd;
    dpi_control_vector *control = m->control = dpi_calloc(1, sizeof *m->control);
    if (control) {
        control->scale = scale;
        control->n_sets = n_sets;
        control->path = strdup(path);
        control->of = dpi_calloc((size_t)m->config.n_layer, sizeof *control->of);
        control->numbers = dpi_calloc((size_t)n_tensors * n, sizeof(float));
    }
    if (!control || !control->path || !control->of || !control->numbers)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a control vector");
    DPI_TRY(read_labels(file, control, err));
    for (int64_t i = 0; i < n_tensors; i++)
        DPI_TRY(read_tensor(m, dpi_gguf_tensor_at(file, i), control->numbers + (size_t)i * n,
                            err));
    return DPI_STATUS_OK;
}

dpi_status dpi_control_vector_open(dpi_model *m, const char *path, float scale, uint64_t mark,
                                   dpi_error *err) {
    dpi_gguf *file;
    if (m->vocab_only)
        return dpi_fail(err, DPI_STATUS_ARG, "a control vector needs the weights of its model");
    if (!(fabsf(scale) <= 1e3f))
        return dpi_fail(err, DPI_STATUS_ARG, "control_vector_scale is %g, must be -1000..1000",
                        (double)scale);
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    dpi_status status = dpi_base_mark_check(file, mark, err);
    if (status == DPI_STATUS_OK)
        status = read_file(m, file, path, scale, err);
    dpi_gguf_close(file);
    return status;
}

const char *dpi_model_control_vector(const dpi_model *m) {
    return m->control ? m->control->path : NULL;
}

void dpi_control_vector_free(dpi_control_vector *control) {
    if (!control)
        return;
    free(control->numbers);
    free(control->of);
    free(control->labels);
    free(control->path);
    free(control);
}
