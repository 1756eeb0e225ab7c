/* merged_model.c - a model written in other types, or with its adapter as one model. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/write.h"
#include "engine/adapter.h"
#include "engine/merged_model.h"
#include "engine/model.h"

static bool is_merged(void *user, const char *tensor) {
    return dpi_adapter_has(((const dpi_merged *)user)->model, tensor);
}

/* row += scale * B[row] A: each weight is rounded once. */
static void add_row(void *user, const char *tensor, int64_t row, float *weights, int64_t n) {
    const dpi_adapter *a = dpi_adapter_of(((const dpi_merged *)user)->model, tensor, &row);
    if (!a)
        return;
    const float *b = a->b + row * a->rank;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int32_t r = 0; r < a->rank; r++)
            sum += (double)b[r] * (double)a->a[r * n + i];
        weights[i] = (float)((double)weights[i] + (double)a->scale * sum);
    }
}

/* What the adapter's file claims of its training: no verification takes it for that of these
 * tensors, whose hash is another one. */
static void put_claim(const dpi_gguf *adapter, dpi_gguf_builder *builder) {
    for (int64_t i = 0; i < dpi_gguf_kv_count(adapter); i++) {
        const dpi_gguf_kv *kv = dpi_gguf_kv_at(adapter, i);
        if (dpi_gguf_is_task(kv->key) || strcmp(kv->key, DPI_CLAIM_KEY) == 0)
            dpi_gguf_put_kv(builder, kv);
    }
}

static void put_keys(void *user, dpi_gguf_builder *builder) {
    const dpi_merged *m = user;
    dpi_gguf_put_string(builder, "general.name", m->name);
    if (m->keys)
        m->keys(m->user, builder);
    else
        put_claim(m->adapter, builder);
}

/* "base + adapter name"; what says NOT PRIVATE of an adapter, or of the base, is in its name. */
static dpi_status name_it(dpi_merged *m, dpi_error *err) {
    dpi_model_info info;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(m->model, &info, err));
    dpi_model_adapted_name(&info, m->name);
    return DPI_STATUS_OK;
}

dpi_status dpi_merge_begin(const char *in_path, const char *adapter_path, float scale,
                           dpi_merged *merge, dpi_error *err) {
    dpi_model_options o;
    *merge = (dpi_merged){0};
    if (!in_path || !adapter_path)
        return dpi_fail(err, DPI_STATUS_ARG, "a path is NULL");
    dpi_model_options_init(&o);
    o.adapter = adapter_path;
    o.adapter_scale = scale;
    DPI_TRY(dpi_model_open(in_path, &o, &merge->model, err));
    DPI_TRY(name_it(merge, err));
    return dpi_gguf_open(adapter_path, true, &merge->adapter, err);
}

dpi_conversion_change dpi_merge_change(dpi_merged *merge) {
    return (dpi_conversion_change){is_merged, add_row, put_keys, merge};
}

void dpi_merge_end(dpi_merged *merge) {
    dpi_gguf_close(merge->adapter);
    dpi_model_close(merge->model);
}

dpi_status dpi_model_merge(const char *in_path, const char *adapter_path, float scale,
                           const char *out_path, const dpi_write_options *options,
                           dpi_error *err) {
    dpi_merged m;
    dpi_status status = dpi_merge_begin(in_path, adapter_path, scale, &m, err);
    const dpi_conversion_change change = dpi_merge_change(&m);
    if (status == DPI_STATUS_OK)
        status = dpi_conversion_write(in_path, out_path, options, &change, err);
    dpi_merge_end(&m);
    return status;
}

/* What the engine would refuse is not written in another form either. */
static dpi_status check_model(const char *path, dpi_error *err) {
    dpi_model_options o;
    dpi_model *model = NULL;
    dpi_model_options_init(&o);
    o.repack = DPI_REPACK_NONE;
    DPI_TRY(dpi_model_open(path, &o, &model, err));
    dpi_model_close(model);
    return DPI_STATUS_OK;
}

dpi_status dpi_model_quantize(const char *in_path, const char *out_path,
                              const dpi_write_options *options, dpi_error *err) {
    if (!in_path)
        return dpi_fail(err, DPI_STATUS_ARG, "a path is NULL");
    DPI_TRY(check_model(in_path, err));
    return dpi_conversion_write(in_path, out_path, options, NULL, err);
}
