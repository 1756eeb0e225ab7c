#include "engine/config.h"

#include <string.h>

#include "base/status.h"

enum { MAX_CTX = 1 << 24 };

/* Positions are divided by the factor: angles stay finite. */
static const double ROPE_FACTOR_MIN = 1e-6;

static bool equals(dpi_str s, const char *text) {
    return s.n_bytes == strlen(text) && memcmp(s.data, text, s.n_bytes) == 0;
}

/* A count that must be there. */
static dpi_status required(const dpi_gguf *gguf, const char *key, int64_t max, int32_t *out,
                           dpi_error *err) {
    int64_t value = 0;
    bool found = false;
    DPI_TRY(dpi_gguf_get_int(gguf, key, 1, max, &value, &found, err));
    if (!found)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: key %s is missing", dpi_gguf_name(gguf), key);
    *out = (int32_t)value;
    return DPI_STATUS_OK;
}

/* A count whose default is *out. */
static dpi_status optional(const dpi_gguf *gguf, const char *key, int64_t max, int32_t *out,
                           dpi_error *err) {
    int64_t value = *out;
    DPI_TRY(dpi_gguf_get_int(gguf, key, 1, max, &value, NULL, err));
    *out = (int32_t)value;
    return DPI_STATUS_OK;
}

static dpi_status read_llama3(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    double factor = 8, low = 1, high = 4, original = 8192; /* those of Llama 3.1 */
    DPI_TRY(dpi_gguf_get_float(gguf, "llama.rope.scaling.factor", 1, 1e6, &factor, NULL, err));
    DPI_TRY(dpi_gguf_get_float(gguf, "llama.rope.scaling.low_freq_factor", 1e-3, 1e3, &low, NULL,
                               err));
    DPI_TRY(dpi_gguf_get_float(gguf, "llama.rope.scaling.high_freq_factor", 1e-3, 1e3, &high, NULL,
                               err));
    int64_t context = (int64_t)original;
    DPI_TRY(dpi_gguf_get_int(gguf, "llama.rope.scaling.original_context_length", 1, INT32_MAX,
                             &context, NULL, err));
    if (high <= low)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: llama.rope.scaling.high_freq_factor is %g, must be above "
                        "low_freq_factor, %g",
                        dpi_gguf_name(gguf), high, low);
    c->llama3.factor = (float)factor;
    c->llama3.low_freq_factor = (float)low;
    c->llama3.high_freq_factor = (float)high;
    c->llama3.original_context = (float)context;
    return DPI_STATUS_OK;
}

double dpi_config_llama3_divisor(const dpi_config *c, double radians) {
    double rotations = (double)c->llama3.original_context * radians / 6.283185307179586;
    double low = (double)c->llama3.low_freq_factor, high = (double)c->llama3.high_freq_factor;
    double factor = (double)c->llama3.factor;
    if (rotations > high)
        return 1;
    if (rotations < low)
        return factor;
    double smooth = (rotations - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
}

static dpi_status read_rope(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    c->n_rot = c->head_dim;
    DPI_TRY(optional(gguf, "llama.rope.dimension_count", c->head_dim, &c->n_rot, err));
    if (c->n_rot % 2)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: llama.rope.dimension_count is %d, must be even", dpi_gguf_name(gguf),
                        (int)c->n_rot);
    double base = 10000, factor = 1;
    DPI_TRY(dpi_gguf_get_float(gguf, "llama.rope.freq_base", 1, 1e12, &base, NULL, err));

    dpi_str type = {"", 0};
    bool has_type = false;
    DPI_TRY(dpi_gguf_get_string(gguf, "llama.rope.scaling.type", &type, &has_type, err));
    bool linear = !has_type || equals(type, "linear");
    if (has_type && equals(type, "llama3"))
        DPI_TRY(read_llama3(gguf, c, err));
    else if (!linear && !equals(type, "none"))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s: llama.rope.scaling.type is '%.*s', only none, linear and llama3 are "
                        "supported",
                        dpi_gguf_name(gguf), (int)(type.n_bytes > 32 ? 32 : type.n_bytes),
                        type.data);
    if (linear) {
        /* The older key counts only where the newer one is absent. */
        bool found = false;
        DPI_TRY(dpi_gguf_get_float(gguf, "llama.rope.scaling.factor", 0, 1e6, &factor, &found,
                                   err));
        if (!found)
            DPI_TRY(dpi_gguf_get_float(gguf, "llama.rope.scale_linear", 0, 1e6, &factor, NULL,
                                       err));
    }
    if (factor != 0 && factor < ROPE_FACTOR_MIN)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: llama.rope.scaling.factor is %g, must be 0 (none) or %g..1e6",
                        dpi_gguf_name(gguf), factor, ROPE_FACTOR_MIN);
    c->rope_freq_base = (float)base;
    c->rope_freq_scale = factor == 0 ? 1.0f : (float)(1.0 / factor);
    return DPI_STATUS_OK;
}

/* Features that would change the logits and are not implemented: never ignored. */
static dpi_status refuse_unsupported(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    int64_t n_expert = 0, window = 0;
    DPI_TRY(dpi_gguf_get_int(gguf, "llama.expert_count", 0, INT32_MAX, &n_expert, NULL, err));
    if (n_expert > 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s: llama.expert_count is %d: mixtures of experts are not supported",
                        dpi_gguf_name(gguf), (int)n_expert);
    DPI_TRY(dpi_gguf_get_int(gguf, "llama.attention.sliding_window", 0, INT32_MAX, &window, NULL,
                             err));
    /* Within its window a sliding-window model is like any other. */
    c->n_ctx_max = window > 0 && window < MAX_CTX ? (int32_t)window : MAX_CTX;
    if (c->n_ctx_train > c->n_ctx_max)
        c->n_ctx_train = c->n_ctx_max;
    return DPI_STATUS_OK;
}

dpi_status dpi_config_read(const dpi_gguf *gguf, dpi_config *config, dpi_error *err) {
    dpi_config c;
    memset(&c, 0, sizeof c);
    DPI_TRY(dpi_gguf_check_architecture(gguf, err));
    DPI_TRY(required(gguf, "llama.block_count", 4096, &c.n_layer, err));
    DPI_TRY(required(gguf, "llama.context_length", INT32_MAX, &c.n_ctx_train, err));
    DPI_TRY(required(gguf, "llama.embedding_length", 1 << 20, &c.n_embd, err));
    DPI_TRY(required(gguf, "llama.feed_forward_length", 1 << 22, &c.n_ff, err));
    DPI_TRY(required(gguf, "llama.attention.head_count", 1 << 12, &c.n_head, err));
    c.n_kv_head = c.n_head;
    DPI_TRY(optional(gguf, "llama.attention.head_count_kv", c.n_head, &c.n_kv_head, err));
    if (c.n_head % c.n_kv_head)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: llama.attention.head_count is %d, not a multiple of head_count_kv %d",
                        dpi_gguf_name(gguf), (int)c.n_head, (int)c.n_kv_head);
    c.head_dim = c.n_embd / c.n_head;
    c.head_dim_v = c.head_dim;
    if (c.head_dim == 0 || c.n_embd % c.n_head) /* then both lengths must be given */
        c.head_dim = c.head_dim_v = 0;
    DPI_TRY(optional(gguf, "llama.attention.key_length", 1 << 12, &c.head_dim, err));
    DPI_TRY(optional(gguf, "llama.attention.value_length", 1 << 12, &c.head_dim_v, err));
    if (c.head_dim == 0 || c.head_dim_v == 0)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: llama.embedding_length %d is not a multiple of head_count %d, and "
                        "attention.key_length or value_length is missing",
                        dpi_gguf_name(gguf), (int)c.n_embd, (int)c.n_head);

    double eps = 0;
    bool found = false;
    DPI_TRY(dpi_gguf_get_float(gguf, "llama.attention.layer_norm_rms_epsilon", 0, 1, &eps, &found,
                               err));
    if (!found)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: key llama.attention.layer_norm_rms_epsilon is missing",
                        dpi_gguf_name(gguf));
    c.rms_eps = (float)eps;
    DPI_TRY(read_rope(gguf, &c, err));
    DPI_TRY(refuse_unsupported(gguf, &c, err));
    *config = c;
    return DPI_STATUS_OK;
}
