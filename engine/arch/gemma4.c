/* gemma4.c - Gemma 4, dense: layers with a window and global ones differ in their heads. In the
 * small ones ("E2B") each layer has an input of its own for each token, and the last layers read
 * the keys and values of earlier ones. */
#include <stdio.h>

#include "base/status.h"
#include "engine/arch/gemma.h"

enum { OWN_VALUES = DPI_PART_KEYS | DPI_PART_VALUES };

static const dpi_arch_tensor tensors[] = {
    DPI_ATTN_NORM,
    DPI_PART("attn_q", "attn_qkv", EMBD, Q, wq, 0),
    DPI_PART_OF(DPI_PART_KEYS, "attn_k", "attn_qkv", EMBD, K, wk, 1),
    DPI_PART_OF(OWN_VALUES, "attn_v", "attn_qkv", EMBD, V, wv, 2),
    DPI_NORM("attn_q_norm", HEAD, q_norm),
    DPI_NORM_OF(DPI_PART_KEYS, "attn_k_norm", HEAD, k_norm),
    DPI_ATTN_OUTPUT,
    DPI_POST_ATTN_NORM,
    DPI_FFN_NORM,
    DPI_FFN,
    DPI_POST_FFN_NORM,
    DPI_MATRIX_OF(DPI_PART_INPUT, "inp_gate", EMBD, INPUT, w_input_gate, 0),
    DPI_MATRIX_OF(DPI_PART_INPUT, "proj", INPUT, EMBD, w_input, 0),
    DPI_NORM_OF(DPI_PART_INPUT, "post_norm", EMBD, post_input_norm),
    DPI_NORM_OF(DPI_PART_SCALE, "layer_output_scale", ONE, output_scale),
};

static const char *const keys[] = {DPI_GEMMA_KEYS,
                                   "attention.shared_kv_layers",
                                   "embedding_length_per_layer_input",
                                   "attention.key_length_swa",
                                   "attention.value_length_swa",
                                   "rope.freq_base_swa",
                                   "rope.dimension_count_swa",
                                   NULL};

/* Which layer has a window, no default tells. */
static dpi_status read_windows(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    static const char pattern[] = "gemma4.attention.sliding_window_pattern";
    const dpi_gguf_kv *kv = NULL;
    double base = 10000;
    DPI_TRY(dpi_config_demand(gguf, c, "attention.sliding_window", err));
    DPI_TRY(dpi_config_demand(gguf, c, "attention.sliding_window_pattern", err));
    DPI_TRY(dpi_gguf_get_array(gguf, pattern, DPI_GGUF_BOOL, &kv, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.freq_base_swa", 1, 1e12, &base, NULL, err));
    c->window_rope_base = (float)base;
    return dpi_config_read_windows(gguf, c, 0, 0, err);
}

/* Heads of layers with a window. */
static dpi_status read_heads(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    int32_t head_dim = c->head_dim, head_dim_v = c->head_dim_v;
    DPI_TRY(dpi_config_count(gguf, c, "attention.key_length_swa", 1, 1 << 12, &head_dim, err));
    DPI_TRY(dpi_config_count(gguf, c, "attention.value_length_swa", 1, 1 << 12, &head_dim_v, err));
    int32_t n_rot = head_dim;
    DPI_TRY(dpi_config_count(gguf, c, "rope.dimension_count_swa", 1, head_dim, &n_rot, err));
    if (n_rot % 2)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: gemma4.rope.dimension_count_swa is %d, must be even",
                        dpi_gguf_name(gguf), (int)n_rot);
    for (int32_t l = 0; l < c->n_layer; l++)
        if (c->has_window[l]) {
            c->shapes[l].head_dim = head_dim;
            c->shapes[l].head_dim_v = head_dim_v;
            c->shapes[l].n_rot = n_rot;
        }
    return DPI_STATUS_OK;
}

/* Keys and values of layer l, one of the last: those of the last layer before these that is of its
 * kind. So transformers; llama.cpp takes the last two, which are the same in real files. */
static dpi_status share(const dpi_gguf *gguf, dpi_config *c, int32_t l, int32_t n_shared,
                        dpi_error *err) {
    int32_t from = c->n_layer - n_shared - 1;
    while (from >= 0 && c->has_window[from] != c->has_window[l])
        from--;
    c->shapes[l].kv_back = l - from;
    if (from >= 0 && c->shapes[from].n_kv_head == c->shapes[l].n_kv_head)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_FORMAT,
                    "%s: gemma4.attention.shared_kv_layers is %d: before these there must be a "
                    "layer %s a window, with %d KV heads, for layer %d",
                    dpi_gguf_name(gguf), (int)n_shared, c->has_window[l] ? "with" : "without",
                    (int)c->shapes[l].n_kv_head, (int)l);
}

static bool has_tensor(const dpi_gguf *gguf, int32_t layer, const char *name) {
    char text[64];
    snprintf(text, sizeof text, "blk.%d.%s.weight", (int)layer, name);
    return dpi_gguf_tensor_find(gguf, text) != NULL;
}

/* A global layer may make its values of what its keys are made of: such a file has attn_q and
 * attn_k there, never attn_qkv. */
static bool has_values(const dpi_gguf *gguf, const dpi_config *c, int32_t l) {
    return c->has_window[l] || has_tensor(gguf, l, "attn_v") || has_tensor(gguf, l, "attn_qkv");
}

/* What each layer has. */
static dpi_status read_parts(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    int32_t n_shared = 0;
    DPI_TRY(dpi_config_count(gguf, c, "attention.shared_kv_layers", 0, c->n_layer - 1, &n_shared,
                             err));
    DPI_TRY(dpi_config_demand(gguf, c, "embedding_length_per_layer_input", err));
    DPI_TRY(dpi_config_count(gguf, c, "embedding_length_per_layer_input", 0, 1 << 16, &c->n_input,
                             err));
    for (int32_t l = 0; l < c->n_layer; l++) {
        dpi_shape *s = &c->shapes[l];
        s->n_input = c->n_input;
        s->parts = (l < c->n_layer - n_shared ? DPI_PART_KEYS : 0) |
                   (has_values(gguf, c, l) ? DPI_PART_VALUES : 0) |
                   (c->n_input > 0 ? DPI_PART_INPUT : 0) |
                   (has_tensor(gguf, l, "layer_output_scale") ? DPI_PART_SCALE : 0);
        if (!(s->parts & DPI_PART_KEYS))
            DPI_TRY(share(gguf, c, l, n_shared, err));
        else if (!(s->parts & DPI_PART_VALUES) && s->head_dim != s->head_dim_v)
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s: blk.%d.attn_v.weight is missing, and gemma4.attention.key_length "
                            "is %d, value_length %d: must be equal",
                            dpi_gguf_name(gguf), (int)l, (int)s->head_dim, (int)s->head_dim_v);
    }
    return DPI_STATUS_OK;
}

/* Norms alone keep scores small. Without its key there is no cap of logits, as in transformers;
 * llama.cpp takes 30. */
static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    c->embedding_scale = sqrtf((float)c->n_embd);
    c->attention_scale = 1;
    DPI_TRY(dpi_config_read_caps(gguf, c, err));
    DPI_TRY(read_windows(gguf, c, err));
    DPI_TRY(read_heads(gguf, c, err));
    return read_parts(gguf, c, err);
}

const dpi_arch dpi_arch_gemma4 = {.name = "gemma4", DPI_TENSORS_OF(ATTENTION, tensors, 9),
                                  .keys = keys, .read = read, .rotates_halves = true,
                                  .has_gelu = true, .norms_values = true, .needs_rope_freqs = true,
                                  .has_windows = true};
