#include "train/tensors.h"

#include <stdio.h>

#include "base/status.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"

enum { OF_LAYER = 9 };

int32_t dpi_train_tensor_count(const dpi_graph_shape *s) {
    return 2 + !s->tied + s->n_layer * OF_LAYER;
}

static dpi_train_tensor of_layer(const dpi_graph_shape *s, const dpi_graph_layout *at,
                                 int32_t layer, int32_t index) {
    int64_t base = at->layers + layer * at->layer_size, dim = s->dim, ffn = s->ffn;
    const dpi_graph_widths w = dpi_graph_widths_of(s);
    const struct {
        const char *name;
        int64_t offset, n_in, n_rows;
    } of[OF_LAYER] = {
        {"attn_norm", at->attn_norm, dim, 0},
        {"attn_q", at->wqkv, dim, w.q},
        {"attn_k", at->wqkv + w.q * dim, dim, w.k},
        {"attn_v", at->wqkv + (w.q + w.k) * dim, dim, w.v},
        {"attn_output", at->wo, w.att, dim},
        {"ffn_norm", at->ffn_norm, dim, 0},
        {"ffn_gate", at->w_gate_up, dim, ffn},
        {"ffn_up", at->w_gate_up + ffn * dim, dim, ffn},
        {"ffn_down", at->w_down, ffn, dim},
    };
    dpi_train_tensor t = {
        .offset = base + of[index].offset, .n_in = of[index].n_in, .n_rows = of[index].n_rows};
    snprintf(t.name, sizeof t.name, "blk.%d.%s.weight", (int)layer, of[index].name);
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
    return of_layer(s, &at, (index - n_first) / OF_LAYER, (index - n_first) % OF_LAYER);
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

dpi_status dpi_train_tensors_read(const char *path, const dpi_graph_shape *shape, float *params,
                                  dpi_error *err) {
    dpi_gguf *file;
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; status == DPI_STATUS_OK && i < dpi_train_tensor_count(shape); i++) {
        dpi_train_tensor wanted = dpi_train_tensor_at(shape, i);
        status = read_tensor(file, &wanted, params, err);
    }
    dpi_gguf_close(file);
    return status;
}
