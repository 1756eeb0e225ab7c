#include "engine/arch.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "engine/model.h"

/* ---- llama ----------------------------------------------------------------------------------- */

#define AT(member) offsetof(dpi_layer, member)

static const dpi_arch_tensor llama_tensors[] = {
    {"attn_norm", DPI_EXTENT_EMBD, DPI_EXTENT_NONE, AT(attn_norm), 0},
    {"attn_q", DPI_EXTENT_EMBD, DPI_EXTENT_Q, AT(wq), 0},
    {"attn_k", DPI_EXTENT_EMBD, DPI_EXTENT_K, AT(wk), 1},
    {"attn_v", DPI_EXTENT_EMBD, DPI_EXTENT_V, AT(wv), 2},
    {"attn_output", DPI_EXTENT_ATT, DPI_EXTENT_EMBD, AT(wo), 0},
    {"ffn_norm", DPI_EXTENT_EMBD, DPI_EXTENT_NONE, AT(ffn_norm), 0},
    {"ffn_gate", DPI_EXTENT_EMBD, DPI_EXTENT_FF, AT(w_gate), 0},
    {"ffn_up", DPI_EXTENT_EMBD, DPI_EXTENT_FF, AT(w_up), 1},
    {"ffn_down", DPI_EXTENT_FF, DPI_EXTENT_EMBD, AT(w_down), 0},
};

static const char *const llama_keys[] = {
    /* config.c reads them */
    "block_count", "context_length", "embedding_length", "feed_forward_length",
    "attention.head_count", "attention.head_count_kv", "attention.key_length",
    "attention.value_length", "attention.layer_norm_rms_epsilon", "attention.sliding_window",
    "expert_count", "rope.dimension_count", "rope.freq_base", "rope.scale_linear",
    "rope.scaling.type", "rope.scaling.factor", "rope.scaling.low_freq_factor",
    "rope.scaling.high_freq_factor", "rope.scaling.original_context_length",
    "rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_ext_factor",
    "vocab_size",             /* the list of tokens has its own length */
    "rope.scaling.finetuned", /* how the model was trained */
    "expert_used_count",      /* of mixtures of experts, which expert_count tells */
    "tensor_data_layout",     /* where the file was converted from */
    "pooling_type",           /* of embeddings of whole texts */
    NULL,
};

const dpi_arch dpi_arch_llama = {"llama", llama_tensors,
                                 sizeof llama_tensors / sizeof *llama_tensors,
                                 7, llama_keys};

/* ---- All ------------------------------------------------------------------------------------- */

static const dpi_arch *const archs[] = {&dpi_arch_llama};

dpi_status dpi_arch_of(const dpi_gguf *gguf, const dpi_arch **arch, dpi_error *err) {
    dpi_str name = {"", 0};
    bool found = false;
    DPI_TRY(dpi_gguf_get_string(gguf, "general.architecture", &name, &found, err));
    if (!found)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: key general.architecture is missing",
                        dpi_gguf_name(gguf));
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (dpi_str_is(name, archs[i]->name)) {
            *arch = archs[i];
            return DPI_STATUS_OK;
        }
    return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                    "%s: general.architecture is '%.*s', only llama is supported",
                    dpi_gguf_name(gguf), (int)(name.n_bytes > 32 ? 32 : name.n_bytes), name.data);
}

int64_t dpi_extent_of(const dpi_config *c, dpi_extent extent) {
    switch (extent) {
    case DPI_EXTENT_EMBD: return c->n_embd;
    case DPI_EXTENT_FF: return c->n_ff;
    case DPI_EXTENT_Q: return (int64_t)c->n_head * c->head_dim;
    case DPI_EXTENT_K: return (int64_t)c->n_kv_head * c->head_dim;
    case DPI_EXTENT_V: return (int64_t)c->n_kv_head * c->head_dim_v;
    case DPI_EXTENT_ATT: return (int64_t)c->n_head * c->head_dim_v;
    case DPI_EXTENT_NONE: break;
    }
    return 1;
}

const dpi_arch_tensor *dpi_arch_matrix(const dpi_arch *arch, int32_t i) {
    const dpi_arch_tensor *t = arch->tensors;
    while (!t->n_out || i-- > 0)
        t++;
    return t;
}

dpi_tensor_name dpi_arch_tensor_name(const dpi_arch_tensor *tensor, int32_t layer,
                                     const char *suffix) {
    dpi_tensor_name name;
    snprintf(name.text, sizeof name.text, "blk.%d.%s.%s", (int)layer, tensor->name, suffix);
    return name;
}
