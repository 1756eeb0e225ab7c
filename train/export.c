#include "train/export.h"

#include "kernels/weight_types.h"
#include "train/tensors.h"

static void metadata(dpi_gguf_builder *w, const dpi_train_config *config,
                     const dpi_graph_shape *s) {
    dpi_gguf_put_string(w, "general.architecture", s->arch->name);
    dpi_gguf_put_string(w, "general.name", config->name);
    dpi_gguf_put_u32(w, "general.file_type", 0); /* all F32 */
    if (config->sampling_top_k > 0)
        dpi_gguf_put_u32(w, "general.sampling.top_k", (uint32_t)config->sampling_top_k);
    if (config->sampling_temp > 0)
        dpi_gguf_put_f32(w, "general.sampling.temp", (float)config->sampling_temp);
    const dpi_model_shape model = {
        .n_layer = s->n_layer, .n_embd = s->dim, .n_ff = s->ffn, .n_head = s->n_head,
        .n_kv_head = s->n_kv_head, .n_vocab = s->n_vocab, .n_ctx_train = s->context,
        .rope_freq_base = s->rope_base,
    };
    dpi_gguf_put_shape(w, &model, s->rms_eps);
}

/* First all tensors are listed, then their data is written. */
static void put_tensors(dpi_gguf_builder *w, const dpi_graph_shape *shape, const float *params) {
    int32_t n = dpi_train_tensor_count(shape);
    for (int32_t i = 0; i < n; i++) {
        dpi_train_tensor t = dpi_train_tensor_at(shape, i);
        int64_t size[2] = {t.n_in, t.n_rows};
        dpi_gguf_put_tensor(w, t.name, DPI_TYPE_F32, t.n_rows ? 2 : 1, size);
    }
    for (int32_t i = 0; i < n; i++) {
        dpi_train_tensor t = dpi_train_tensor_at(shape, i);
        dpi_gguf_put_data(w, params + t.offset,
                          (uint64_t)dpi_train_tensor_size(&t) * sizeof *params);
    }
}

dpi_status dpi_export_gguf(const char *path, const dpi_train_config *config,
                           const dpi_graph_shape *shape, const dpi_vocab_text *vocab,
                           const float *params, dpi_error *err) {
    dpi_gguf_builder *w;
    dpi_status status = dpi_gguf_builder_create(path, -1, &w, err);
    if (status != DPI_STATUS_OK)
        return status;
    metadata(w, config, shape);
    dpi_vocab_text_put(w, vocab);
    if (params)
        put_tensors(w, shape, params);
    return dpi_gguf_builder_finish(w, err);
}
