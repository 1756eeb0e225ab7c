/* config.h - the hyperparameters of a LLaMA model, read from metadata and checked. Internal. */
#ifndef DPI_CONFIG_H
#define DPI_CONFIG_H

#include "gguf/gguf.h"

typedef struct dpi_config {
    int32_t n_layer;     /* llama.block_count */
    int32_t n_embd;      /* llama.embedding_length */
    int32_t n_ff;        /* llama.feed_forward_length */
    int32_t n_head;      /* llama.attention.head_count */
    int32_t n_kv_head;   /* llama.attention.head_count_kv; divides n_head */
    int32_t head_dim;    /* llama.attention.key_length, or n_embd / n_head */
    int32_t head_dim_v;  /* llama.attention.value_length, or n_embd / n_head */
    int32_t n_rot;       /* llama.rope.dimension_count, or head_dim; even, <= head_dim */
    int32_t n_ctx_train; /* llama.context_length */
    float rms_eps;       /* llama.attention.layer_norm_rms_epsilon */
    float rope_freq_base;
    float rope_freq_scale; /* positions are multiplied by it: 1 / llama.rope.scaling.factor where
                              llama.rope.scaling.type is linear */
    /* llama.rope.scaling.type llama3: low frequencies are divided by `factor`, high ones kept; used
     * where the file has no rope_freqs.weight. factor 0: not this type. */
    struct {
        float factor, low_freq_factor, high_freq_factor, original_context;
    } llama3;
    int32_t n_ctx_max; /* positions beyond which the model would need a feature that is missing */
} dpi_config;

/* Errors: UNSUPPORTED (architecture, experts, rope scaling, by name), FORMAT (missing, or out of
 * range, by key). */
dpi_status dpi_config_read(const dpi_gguf *gguf, dpi_config *config, dpi_error *err);

/* What frequency `radians` (per position) is divided by under Llama 3's scaling. Source: the
 * rope_scaling of Llama 3.1's published configuration. */
double dpi_config_llama3_divisor(const dpi_config *config, double radians);

#endif
