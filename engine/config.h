/* config.h - the hyperparameters of a model, read from metadata and checked. Internal. */
#ifndef DPI_CONFIG_H
#define DPI_CONFIG_H

#include "engine/arch.h"

/* Keys are those of the architecture: block_count is llama.block_count in a file of llama. */
struct dpi_config {
    const dpi_arch *arch; /* general.architecture */
    int32_t n_layer;     /* block_count */
    int32_t n_embd;      /* embedding_length */
    int32_t n_ff;        /* feed_forward_length */
    int32_t n_head;      /* attention.head_count */
    int32_t n_kv_head;   /* attention.head_count_kv; divides n_head */
    int32_t head_dim;    /* attention.key_length, or n_embd / n_head */
    int32_t head_dim_v;  /* attention.value_length, or n_embd / n_head */
    int32_t n_rot;       /* rope.dimension_count, or head_dim; even, <= head_dim */
    int32_t n_ctx_train; /* context_length */
    float rms_eps;       /* attention.layer_norm_rms_epsilon */
    float rope_freq_base;
    float rope_freq_scale; /* positions are multiplied by it: 1 / rope.scaling.factor where
                              rope.scaling.type is linear */
    /* rope.scaling.type llama3: low frequencies are divided by `factor`, high ones kept; used
     * where the file has no rope_freqs.weight. factor 0: not this type. */
    struct {
        float factor, low_freq_factor, high_freq_factor, original_context;
    } llama3;
    /* rope.scaling.type yarn: pairs of dimensions before `first` turn as they are, those behind
     * `last` are divided by `factor`, between them it is both. factor 0: not this type. */
    struct {
        double factor, first, last;
    } yarn;
    double rope_magnitude; /* cosines and sines are multiplied by it: rope.scaling.attn_factor, and
                              what YaRN adds */
    int32_t n_ctx_max; /* positions beyond which the model would need a feature that is missing */
};

/* Errors: UNSUPPORTED (architecture, experts, rope scaling, an unknown key, by name), FORMAT
 * (missing, or out of range, by key). */
dpi_status dpi_config_read(const dpi_gguf *gguf, dpi_config *config, dpi_error *err);

/* What frequency `radians` (per position) is divided by under Llama 3's scaling. Source: the
 * rope_scaling of Llama 3.1's published configuration. */
double dpi_config_llama3_divisor(const dpi_config *config, double radians);
/* What the frequency of a pair of dimensions, 0..n_rot / 2 - 1, is divided by under YaRN. */
double dpi_config_yarn_divisor(const dpi_config *config, int32_t pair);

#endif
