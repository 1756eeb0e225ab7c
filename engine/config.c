#include "engine/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { MAX_CTX = 1 << 24 };

/* Positions are divided by the factor: angles stay finite. */
static const double ROPE_FACTOR_MIN = 1e-6;

/* A key of the file's architecture. */
typedef struct full_key {
    char text[80];
} full_key;

static full_key key_of(const dpi_config *c, const char *key) {
    full_key full;
    snprintf(full.text, sizeof full.text, "%s.%s", c->arch->name, key);
    return full;
}

dpi_status dpi_config_demand(const dpi_gguf *gguf, const dpi_config *c, const char *key,
                             dpi_error *err) {
    const full_key full = key_of(c, key);
    if (dpi_gguf_find(gguf, full.text))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s: key %s is missing", dpi_gguf_name(gguf),
                    full.text);
}

dpi_status dpi_config_count(const dpi_gguf *gguf, const dpi_config *c, const char *key, int64_t min,
                            int64_t max, int32_t *out, dpi_error *err) {
    int64_t value = *out;
    DPI_TRY(dpi_gguf_get_int(gguf, key_of(c, key).text, min, max, &value, NULL, err));
    *out = (int32_t)value;
    return DPI_STATUS_OK;
}

/* A count that must be there. */
static dpi_status required(const dpi_gguf *gguf, const dpi_config *c, const char *key, int64_t max,
                           int32_t *out, dpi_error *err) {
    DPI_TRY(dpi_config_demand(gguf, c, key, err));
    return dpi_config_count(gguf, c, key, 1, max, out, err);
}

/* A count whose default is *out. */
static dpi_status optional(const dpi_gguf *gguf, const dpi_config *c, const char *key, int64_t max,
                           int32_t *out, dpi_error *err) {
    return dpi_config_count(gguf, c, key, 1, max, out, err);
}

dpi_status dpi_config_check_items(const dpi_gguf *gguf, const dpi_config *c, const char *key,
                                  const dpi_gguf_kv *array, dpi_error *err) {
    if (array->n_items == (uint64_t)c->n_layer)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s has %llu items, must have one for each of "
                    "the %d layers", dpi_gguf_name(gguf), key_of(c, key).text,
                    (unsigned long long)array->n_items, (int)c->n_layer);
}

/* A member of the shapes, `at` bytes from their begin: one number for all layers, or an array with
 * one for each. Absent: they stay as they are. */
static dpi_status each(const dpi_gguf *gguf, dpi_config *c, const char *key, int32_t max, size_t at,
                       bool is_needed, dpi_error *err) {
    const full_key full = key_of(c, key);
    const dpi_gguf_kv *kv = dpi_gguf_find(gguf, full.text);
    const bool is_array = kv && kv->type == DPI_GGUF_ARRAY;
    int32_t all = 0;
    if (is_array)
        DPI_TRY(dpi_config_check_items(gguf, c, key, kv, err));
    else if (is_needed)
        DPI_TRY(required(gguf, c, key, max, &all, err));
    else
        DPI_TRY(optional(gguf, c, key, max, &all, err));
    for (int32_t l = 0; l < c->n_layer; l++) {
        const int32_t n = is_array ? dpi_gguf_item_i32(kv, (uint64_t)l) : all;
        if (is_array && (n < 1 || n > max))
            return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s[%d] is %d, must be 1..%d",
                            dpi_gguf_name(gguf), full.text, (int)l, (int)n, (int)max);
        if (n > 0)
            memcpy((unsigned char *)&c->shapes[l] + at, &n, sizeof n);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_config_number(const dpi_gguf *gguf, const dpi_config *c, const char *key,
                             double min, double max, double *out, bool *found, dpi_error *err) {
    return dpi_gguf_get_float(gguf, key_of(c, key).text, min, max, out, found, err);
}

/* ---- Rotation -------------------------------------------------------------------------------- */

/* By what rotation is slower: `min` or more, and 0 says 1. If absent, *factor stays. The older key
 * counts only where the newer one is absent. */
static dpi_status read_factor(const dpi_gguf *gguf, const dpi_config *c, double min, double *factor,
                              dpi_error *err) {
    bool found = false;
    DPI_TRY(dpi_config_number(gguf, c, "rope.scaling.factor", 0, 1e6, factor, &found, err));
    if (!found)
        DPI_TRY(dpi_config_number(gguf, c, "rope.scale_linear", 0, 1e6, factor, NULL, err));
    if (*factor != 0 && *factor < min)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s is %g, must be 0 (none) or %g..1e6",
                        dpi_gguf_name(gguf), key_of(c, "rope.scaling.factor").text, *factor, min);
    *factor = *factor == 0 ? 1 : *factor;
    return DPI_STATUS_OK;
}

static dpi_status read_llama3(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    double factor = 8, low = 1, high = 4; /* those of Llama 3.1 */
    int32_t context = 8192;
    DPI_TRY(read_factor(gguf, c, 1, &factor, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.scaling.low_freq_factor", 1e-3, 1e3, &low, NULL, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.scaling.high_freq_factor", 1e-3, 1e3, &high, NULL,
                              err));
    DPI_TRY(optional(gguf, c, "rope.scaling.original_context_length", INT32_MAX, &context, err));
    if (high <= low)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: %s is %g, must be above low_freq_factor, %g", dpi_gguf_name(gguf),
                        key_of(c, "rope.scaling.high_freq_factor").text, high, low);
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

/* The pair of dimensions that turns `rotations` times in the original context. */
static double yarn_pair(const dpi_config *c, double context, double rotations) {
    return c->n_rot * log(context / (rotations * 6.283185307179586)) /
           (2 * log((double)c->rope_freq_base));
}

/* Peng et al. 2023, with the magnitude of their published code: YaRN makes rotated queries and keys
 * longer, by 1 + ln(factor) / 10, which the key yarn_attn_factor replaces. */
static dpi_status read_yarn(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    double factor = 1, fast = 32, slow = 1, ext = 1, log_multiplier = 0;
    DPI_TRY(read_factor(gguf, c, 1, &factor, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, &fast, NULL, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, &slow, NULL, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.scaling.yarn_ext_factor", 1, 1, &ext, NULL, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.scaling.yarn_log_multiplier", 0, 1e3, &log_multiplier,
                              NULL, err));
    const double first = floor(yarn_pair(c, c->n_ctx_original, fast));
    const double last = ceil(yarn_pair(c, c->n_ctx_original, slow));
    c->yarn.factor = factor;
    c->yarn.first = first > 0 ? first : 0;
    c->yarn.last = last < c->n_rot - 1 ? last : c->n_rot - 1;
    c->rope_magnitude = (1 + .1 * log(factor)) / (1 + .1 * log_multiplier * log(factor));
    return dpi_config_number(gguf, c, "rope.scaling.yarn_attn_factor", 1e-3, 1e3,
                             &c->rope_magnitude, NULL, err);
}

double dpi_config_yarn_divisor(const dpi_config *c, int32_t pair) {
    const double width = c->yarn.last - c->yarn.first;
    const double ramp = (pair - c->yarn.first) / (width > .001 ? width : .001);
    const double scaled = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return 1 / (1 - scaled + scaled / c->yarn.factor);
}

static dpi_status read_linear(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    double factor = 1;
    DPI_TRY(read_factor(gguf, c, ROPE_FACTOR_MIN, &factor, err));
    c->rope_freq_scale = (float)(1.0 / factor);
    return DPI_STATUS_OK;
}

static dpi_status read_scaling(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    const full_key key = key_of(c, "rope.scaling.type");
    dpi_str type = {"", 0};
    bool has_type = false;
    DPI_TRY(dpi_gguf_get_string(gguf, key.text, &type, &has_type, err));
    if (!has_type || dpi_str_is(type, "linear"))
        return read_linear(gguf, c, err);
    if (dpi_str_is(type, "llama3"))
        return read_llama3(gguf, c, err);
    if (dpi_str_is(type, "yarn"))
        return read_yarn(gguf, c, err);
    c->needs_rope_factors = dpi_str_is(type, "longrope");
    c->has_rope_factors |= c->needs_rope_factors;
    if (c->needs_rope_factors || dpi_str_is(type, "none"))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                    "%s: %s is '%.*s', only none, linear, llama3, yarn and longrope are supported",
                    dpi_gguf_name(gguf), key.text,
                    (int)(type.n_bytes > 32 ? 32 : type.n_bytes), type.data);
}

static dpi_status read_rope(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    double base = 10000, attn_factor = 1;
    c->n_rot = c->head_dim;
    c->rope_freq_scale = 1;
    c->rope_magnitude = 1;
    c->n_ctx_original = c->n_ctx_train;
    c->has_rope_factors = c->arch->has_rope_factors;
    DPI_TRY(optional(gguf, c, "rope.scaling.original_context_length", INT32_MAX, &c->n_ctx_original,
                     err));
    DPI_TRY(optional(gguf, c, "rope.dimension_count", c->head_dim, &c->n_rot, err));
    if (c->n_rot % 2)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s is %d, must be even", dpi_gguf_name(gguf),
                        key_of(c, "rope.dimension_count").text, (int)c->n_rot);
    DPI_TRY(dpi_config_number(gguf, c, "rope.freq_base", 1, 1e12, &base, NULL, err));
    c->rope_freq_base = (float)base;
    DPI_TRY(read_scaling(gguf, c, err));
    DPI_TRY(dpi_config_number(gguf, c, "rope.scaling.attn_factor", 1e-3, 1e3, &attn_factor, NULL,
                              err));
    c->rope_magnitude *= attn_factor;
    return DPI_STATUS_OK;
}

/* ---- What layers have beyond LLaMA's --------------------------------------------------------- */

dpi_status dpi_config_read_windows(const dpi_gguf *gguf, dpi_config *c, int32_t window,
                                   int32_t period, dpi_error *err) {
    const full_key window_key = key_of(c, "attention.sliding_window");
    static const char name[] = "attention.sliding_window_pattern";
    const full_key key = key_of(c, name);
    const dpi_gguf_kv *pattern = dpi_gguf_find(gguf, key.text);
    const bool is_array = pattern && pattern->type == DPI_GGUF_ARRAY;
    int64_t size = window, n = period;
    DPI_TRY(dpi_gguf_get_int(gguf, window_key.text, 0, INT32_MAX, &size, NULL, err));
    if (is_array)
        DPI_TRY(dpi_gguf_get_array(gguf, key.text, DPI_GGUF_BOOL, &pattern, err));
    else
        DPI_TRY(dpi_gguf_get_int(gguf, key.text, 0, DPI_LAYERS_MAX, &n, NULL, err));
    if (is_array)
        DPI_TRY(dpi_config_check_items(gguf, c, name, pattern, err));
    c->window = (int32_t)size;
    for (int32_t l = 0; size > 0 && l < c->n_layer; l++)
        c->has_window[l] = is_array ? dpi_gguf_item_bool(pattern, (uint64_t)l)
                                    : n == 0 || l % n < n - 1;
    return DPI_STATUS_OK;
}

dpi_status dpi_config_read_caps(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    double attention = (double)c->attention_cap, final = (double)c->final_cap;
    DPI_TRY(dpi_config_number(gguf, c, "attn_logit_softcapping", 0, 1e6, &attention, NULL, err));
    DPI_TRY(dpi_config_number(gguf, c, "final_logit_softcapping", 0, 1e6, &final, NULL, err));
    c->attention_cap = (float)attention;
    c->final_cap = (float)final;
    return DPI_STATUS_OK;
}

const dpi_arch_table *dpi_config_table(const dpi_config *c, int32_t layer) {
    return &c->arch->layers[c->kind[layer]];
}

int32_t dpi_config_count_layers(const dpi_config *c, dpi_layer_kind kind) {
    int32_t n = 0;
    for (int32_t l = 0; l < c->n_layer; l++)
        n += c->kind[l] == kind;
    return n;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Features that would change the logits and are not implemented: never ignored. */
static dpi_status refuse_unsupported(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    const full_key experts = key_of(c, "expert_count");
    const full_key window_key = key_of(c, "attention.sliding_window");
    int64_t n_expert = 0, window = 0;
    DPI_TRY(dpi_gguf_get_int(gguf, experts.text, 0, INT32_MAX, &n_expert, NULL, err));
    if (n_expert > 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s: %s is %d: mixtures of experts are not supported",
                        dpi_gguf_name(gguf), experts.text, (int)n_expert);
    DPI_TRY(dpi_gguf_check_keys(gguf, key_of(c, "").text, c->arch->keys, err));
    if (!c->arch->has_windows)
        DPI_TRY(dpi_gguf_get_int(gguf, window_key.text, 0, INT32_MAX, &window, NULL, err));
    /* Within its window a sliding-window model is like any other. */
    c->n_ctx_max = window > 0 && window < MAX_CTX ? (int32_t)window : MAX_CTX;
    if (c->n_ctx_train > c->n_ctx_max)
        c->n_ctx_train = c->n_ctx_max;
    return DPI_STATUS_OK;
}

static void raise(int32_t *most, int32_t n) { *most = n > *most ? n : *most; }

static void find_most(dpi_config *c) {
    for (int32_t l = 0; l < c->n_layer; l++) {
        const dpi_shape *s = &c->shapes[l];
        raise(&c->n_ff, s->n_ff), raise(&c->n_head, s->n_head);
        raise(&c->n_kv_head, s->n_kv_head), raise(&c->n_rot, s->n_rot);
        raise(&c->head_dim, s->head_dim), raise(&c->head_dim_v, s->head_dim_v);
    }
}

/* One length of heads for all layers. */
static dpi_status read_heads(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    const int32_t n_head = c->shapes[0].n_head;
    bool is_known = c->n_embd % n_head == 0; /* else both keys must be there */
    for (int32_t l = 0; l < c->n_layer; l++)
        is_known &= c->shapes[l].n_head == n_head;
    c->head_dim = c->head_dim_v = is_known ? c->n_embd / n_head : 0;
    DPI_TRY(optional(gguf, c, "attention.key_length", 1 << 12, &c->head_dim, err));
    DPI_TRY(optional(gguf, c, "attention.value_length", 1 << 12, &c->head_dim_v, err));
    if (c->head_dim == 0 || c->head_dim_v == 0)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: embedding_length %d is not a multiple of head_count %d, the same in "
                        "all layers, and attention.key_length or value_length is missing",
                        dpi_gguf_name(gguf), (int)c->n_embd, (int)n_head);
    for (int32_t l = 0; l < c->n_layer; l++)
        c->shapes[l].head_dim = c->head_dim, c->shapes[l].head_dim_v = c->head_dim_v;
    return DPI_STATUS_OK;
}

static dpi_status read_shapes(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    DPI_TRY(each(gguf, c, "feed_forward_length", 1 << 22, offsetof(dpi_shape, n_ff), true, err));
    DPI_TRY(each(gguf, c, "attention.head_count", 1 << 12, offsetof(dpi_shape, n_head), true, err));
    for (int32_t l = 0; l < c->n_layer; l++)
        c->shapes[l].n_embd = c->n_embd, c->shapes[l].n_kv_head = c->shapes[l].n_head;
    DPI_TRY(each(gguf, c, "attention.head_count_kv", 1 << 12, offsetof(dpi_shape, n_kv_head), false,
                 err));
    for (int32_t l = 0; l < c->n_layer; l++)
        if (c->shapes[l].n_head % c->shapes[l].n_kv_head)
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s: attention.head_count is %d, not a multiple of head_count_kv %d",
                            dpi_gguf_name(gguf), (int)c->shapes[l].n_head,
                            (int)c->shapes[l].n_kv_head);
    DPI_TRY(read_heads(gguf, c, err));
    find_most(c);
    return DPI_STATUS_OK;
}

dpi_status dpi_config_read(const dpi_gguf *gguf, dpi_config *config, dpi_error *err) {
    dpi_config c;
    memset(&c, 0, sizeof c);
    DPI_TRY(dpi_arch_of(gguf, &c.arch, err));
    DPI_TRY(required(gguf, &c, "block_count", DPI_LAYERS_MAX, &c.n_layer, err));
    DPI_TRY(required(gguf, &c, "context_length", INT32_MAX, &c.n_ctx_train, err));
    DPI_TRY(required(gguf, &c, "embedding_length", 1 << 20, &c.n_embd, err));
    DPI_TRY(read_shapes(gguf, &c, err));
    double eps = 0;
    const char *key = "attention.layer_norm_rms_epsilon";
    DPI_TRY(dpi_config_demand(gguf, &c, key, err));
    DPI_TRY(dpi_config_number(gguf, &c, key, 0, 1, &eps, NULL, err));
    c.rms_eps = (float)eps;
    c.embedding_scale = c.residual_scale = c.logit_scale = 1;
    c.attention_scale = 1.0f / sqrtf((float)c.head_dim);
    DPI_TRY(read_rope(gguf, &c, err));
    for (int32_t l = 0; l < c.n_layer; l++)
        c.shapes[l].n_rot = c.n_rot;
    DPI_TRY(refuse_unsupported(gguf, &c, err));
    if (c.arch->read)
        DPI_TRY(c.arch->read(gguf, &c, err));
    find_most(&c);
    *config = c;
    return DPI_STATUS_OK;
}
