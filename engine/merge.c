/* merge.c - a model and its adapter written as one model. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/write.h"
#include "engine/adapter.h"
#include "engine/model.h"
#include "gguf/convert.h"

typedef struct merging {
    const dpi_model *model; /* with the adapter */
    dpi_gguf *adapter;      /* its file */
    char name[64];
} merging;

static const dpi_adapter *find(void *user, const char *tensor) {
    const merging *m = user;
    return dpi_adapter_of(m->model, tensor);
}

static bool is_merged(void *user, const char *tensor) { return find(user, tensor) != NULL; }

/* row += scale * B[row] A: each weight is rounded once. */
static void add_row(void *user, const char *tensor, int64_t row, float *weights, int64_t n) {
    const dpi_adapter *a = find(user, tensor);
    const float *b = a->b + row * a->rank;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int32_t r = 0; r < a->rank; r++)
            sum += (double)b[r] * (double)a->a[r * n + i];
        weights[i] = (float)((double)weights[i] + (double)a->scale * sum);
    }
}

/* What the adapter's file claims of its training, but for the hash of its own tensors. */
static void put_claim(void *user, dpi_gguf_builder *builder) {
    static const char own[] = "dpinfer.finetune.", hash[] = "dpinfer.finetune.tensors_sha256";
    const merging *m = user;
    dpi_gguf_put_string(builder, "general.name", m->name);
    for (int64_t i = 0; i < dpi_gguf_kv_count(m->adapter); i++) {
        const dpi_gguf_kv *kv = dpi_gguf_kv_at(m->adapter, i);
        if (strncmp(kv->key, own, sizeof own - 1) == 0 && strcmp(kv->key, hash) != 0)
            dpi_gguf_put_kv(builder, kv);
    }
}

/* "base + adapter name"; what says NOT PRIVATE of an adapter, or of the base, is in its name. */
static dpi_status name_it(merging *m, dpi_error *err) {
    dpi_model_info info;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(m->model, &info, err));
    dpi_model_adapted_name(&info, m->name);
    return DPI_STATUS_OK;
}

dpi_status dpi_model_merge(const char *in_path, const char *adapter_path, float scale,
                           const char *out_path, const dpi_write_options *options,
                           dpi_error *err) {
    dpi_model_options o;
    dpi_model *model = NULL;
    merging m = {0};
    if (!in_path || !adapter_path)
        return dpi_fail(err, DPI_STATUS_ARG, "a path is NULL");
    dpi_model_options_init(&o);
    o.adapter = adapter_path;
    o.adapter_scale = scale;
    DPI_TRY(dpi_model_open(in_path, &o, &model, err));
    m.model = model;
    dpi_status status = name_it(&m, err);
    if (status == DPI_STATUS_OK)
        status = dpi_gguf_open(adapter_path, true, &m.adapter, err);
    const dpi_conversion_change change = {is_merged, add_row, put_claim, &m};
    if (status == DPI_STATUS_OK)
        status = dpi_conversion_write(in_path, out_path, options, &change, err);
    dpi_gguf_close(m.adapter);
    dpi_model_close(model);
    return status;
}
