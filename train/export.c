#include "train/export.h"

#include <stdio.h>

#include "kernels/weight_types.h"

enum { MAX_NAME = 64 };

/* Where tensors go, and what with them: first all are listed, then their data is written. */
typedef struct exporter {
    dpi_gguf_writer *w;
    const float *params;
    int data; /* 0: list, 1: write */
} exporter;

/* n_rows 0: a vector. */
static void tensor(const exporter *e, const char *name, int64_t offset, int64_t n_in,
                   int64_t n_rows) {
    int64_t shape[2] = {n_in, n_rows};
    if (e->data)
        dpi_gguf_put_data(e->w, e->params + offset,
                          (uint64_t)(n_in * (n_rows ? n_rows : 1)) * sizeof *e->params);
    else
        dpi_gguf_put_tensor(e->w, name, DPI_TYPE_F32, n_rows ? 2 : 1, shape);
}

static void layer(const exporter *e, const dpi_graph_shape *s, const dpi_graph_layout *at,
                  int32_t index) {
    int64_t base = at->layers + index * at->layer_size, dim = s->dim, ffn = s->ffn;
    int64_t n_kv = dim / s->n_head * s->n_kv_head;
    const struct {
        const char *name;
        int64_t offset, n_in, n_rows;
    } tensors[] = {
        {"attn_norm", at->attn_norm, dim, 0},
        {"attn_q", at->wqkv, dim, dim},
        {"attn_k", at->wqkv + dim * dim, dim, n_kv},
        {"attn_v", at->wqkv + (dim + n_kv) * dim, dim, n_kv},
        {"attn_output", at->wo, dim, dim},
        {"ffn_norm", at->ffn_norm, dim, 0},
        {"ffn_gate", at->w_gate_up, dim, ffn},
        {"ffn_up", at->w_gate_up + ffn * dim, dim, ffn},
        {"ffn_down", at->w_down, ffn, dim},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        char name[MAX_NAME];
        snprintf(name, sizeof name, "blk.%d.%s.weight", (int)index, tensors[i].name);
        tensor(e, name, base + tensors[i].offset, tensors[i].n_in, tensors[i].n_rows);
    }
}

static void tensors(const exporter *e, const dpi_graph_shape *s) {
    dpi_graph_layout at;
    dpi_graph_layout_of(s, &at);
    tensor(e, "token_embd.weight", at.embedding, s->dim, s->n_vocab);
    tensor(e, "output_norm.weight", at.output_norm, s->dim, 0);
    if (!s->tied)
        tensor(e, "output.weight", at.output, s->dim, s->n_vocab);
    for (int32_t l = 0; l < s->n_layer; l++)
        layer(e, s, &at, l);
}

static void metadata(dpi_gguf_writer *w, const char *name, const dpi_graph_shape *s) {
    dpi_gguf_put_string(w, "general.architecture", "llama");
    dpi_gguf_put_string(w, "general.name", name);
    dpi_gguf_put_u32(w, "general.file_type", 0); /* all F32 */
    const dpi_model_shape model = {
        .n_layer = s->n_layer, .n_embd = s->dim, .n_ff = s->ffn, .n_head = s->n_head,
        .n_kv_head = s->n_kv_head, .n_vocab = s->n_vocab, .n_ctx_train = s->context,
        .rope_freq_base = s->rope_base,
    };
    dpi_gguf_put_shape(w, &model, s->rms_eps);
}

dpi_status dpi_export_gguf(const char *path, const char *name, const dpi_graph_shape *shape,
                           const dpi_vocab_text *vocab, const float *params, dpi_error *err) {
    exporter e = {.params = params};
    dpi_status status = dpi_gguf_writer_create(path, &e.w, err);
    if (status != DPI_STATUS_OK)
        return status;
    metadata(e.w, name, shape);
    dpi_vocab_text_put(e.w, vocab);
    for (e.data = 0; params && e.data < 2; e.data++)
        tensors(&e, shape);
    return dpi_gguf_writer_finish(e.w, err);
}
