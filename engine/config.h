/* config.h - the hyperparameters of a model, read from metadata and checked. Internal. */
#ifndef DPI_CONFIG_H
#define DPI_CONFIG_H

#include "engine/arch.h"

/* Keys are those of the architecture: block_count is llama.block_count in a file of llama. */
enum { DPI_LAYERS_MAX = 512 };

struct dpi_config {
    const dpi_arch *arch; /* general.architecture */
    int32_t n_layer;     /* block_count */
    int32_t n_embd;      /* embedding_length */
    int32_t n_input;     /* embedding_length_per_layer_input; 0: layers have none */
    int32_t n_ff, n_head, n_kv_head, head_dim, head_dim_v, n_rot; /* the most of any layer */
    dpi_shape shapes[DPI_LAYERS_MAX]; /* of the layers */
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
    /* What layers have beyond LLaMA's; arch.h says which architecture has it. */
    float embedding_scale, residual_scale, logit_scale; /* 1: none */
    float attention_scale; /* of q k; 1 / sqrt(head_dim) */
    float attention_cap, final_cap; /* of scores and of logits: cap tanh(x / cap); 0: none */
    double temperature_scale;       /* t: scores at position p are multiplied by
                                       1 + t ln(1 + floor(p / n_ctx_original)); 0: none */
    int32_t n_ctx_original;         /* rope.scaling.original_context_length, or n_ctx_train */
    bool has_rope_factors; /* rope.scaling.type is longrope, or the architecture's: tensors
                              rope_factors_long of more positions than n_ctx_original, and _short */
    bool needs_rope_factors;
    int32_t window; /* a row sees so many positions, its own included; 0: no layer has one */
    bool has_window[DPI_LAYERS_MAX]; /* of the layers */
    float window_rope_base; /* of layers with a window, which then turn without scaling; 0: as all
                               others */
    int32_t still_period; /* every so-manieth layer does not rotate; 0: all do */
    uint8_t kind[DPI_LAYERS_MAX]; /* of the layers: a dpi_layer_kind */
    int32_t n_left_out; /* blocks behind those of the layers which mean nothing for text */
    int32_t n_ctx_max; /* positions beyond which the model would need a feature that is missing */
};

/* Errors: UNSUPPORTED (architecture, experts, rope scaling, an unknown key, by name), FORMAT
 * (missing, or out of range, by key). */
dpi_status dpi_config_read(const dpi_gguf *gguf, dpi_config *config, dpi_error *err);

/* For the architectures: that the file has the key ARCH.KEY. */
dpi_status dpi_config_demand(const dpi_gguf *gguf, const dpi_config *config, const char *key,
                             dpi_error *err);
/* A count ARCH.KEY whose default is *out. */
dpi_status dpi_config_count(const dpi_gguf *gguf, const dpi_config *config, const char *key,
                            int64_t min, int64_t max, int32_t *out, dpi_error *err);
/* That ARCH.KEY, an array, has an item for each layer. */
dpi_status dpi_config_check_items(const dpi_gguf *gguf, const dpi_config *config, const char *key,
                                  const dpi_gguf_kv *array, dpi_error *err);
/* A number ARCH.KEY whose default is *out; *found (may be NULL): whether
 * the file has it. */
dpi_status dpi_config_number(const dpi_gguf *gguf, const dpi_config *config, const char *key,
                             double min, double max, double *out, bool *found, dpi_error *err);
/* The window and the layers that have it: by attention.sliding_window_pattern, else all but the
 * last of each `period`; period 0: all. */
dpi_status dpi_config_read_windows(const dpi_gguf *gguf, dpi_config *config, int32_t window,
                                   int32_t period, dpi_error *err);
/* Soft caps; the defaults are what the config has. */
dpi_status dpi_config_read_caps(const dpi_gguf *gguf, dpi_config *config, dpi_error *err);

/* How many layers are of a kind. */
int32_t dpi_config_count_layers(const dpi_config *config, dpi_layer_kind kind);
/* The tensors of a layer. */
const dpi_arch_table *dpi_config_table(const dpi_config *config, int32_t layer);

/* What frequency `radians` (per position) is divided by under Llama 3's scaling. Source: the
 * rope_scaling of Llama 3.1's published configuration. */
double dpi_config_llama3_divisor(const dpi_config *config, double radians);
/* What the frequency of a pair of dimensions, 0..n_rot / 2 - 1, is divided by under YaRN. */
double dpi_config_yarn_divisor(const dpi_config *config, int32_t pair);

#endif
