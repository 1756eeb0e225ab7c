#include "base/status.h"
#include "engine/arch/parts.h"

/* The norm before the feed-forward has the name that others give to one behind attention. */
#define FFN_NORM DPI_NORM("post_attention_norm", EMBD, ffn_norm)

static const dpi_arch_tensor attention[] = {
    DPI_ATTN_NORM,
    DPI_PART("attn_q", "attn_qkv", EMBD, QG, wq, 0),
    DPI_PART("attn_k", "attn_qkv", EMBD, K, wk, 1),
    DPI_PART("attn_v", "attn_qkv", EMBD, V, wv, 2),
    DPI_HEAD_NORMS,
    DPI_ATTN_OUTPUT,
    FFN_NORM,
    DPI_FFN,
};

static const dpi_arch_tensor delta[] = {
    DPI_ATTN_NORM,
    DPI_MATRIX("attn_qkv", EMBD, KEYS, w_keys, 0),
    DPI_MATRIX("attn_gate", EMBD, VALUES, w_z, 1),
    DPI_MATRIX("ssm_beta", EMBD, V_HEADS, w_beta, 2),
    DPI_MATRIX("ssm_alpha", EMBD, V_HEADS, w_decay, 3),
    {"ssm_conv1d", NULL, DPI_EXTENT_TAPS, DPI_EXTENT_KEYS, DPI_AT(filter), 0, true, false, 0},
    {"ssm_a", NULL, DPI_EXTENT_V_HEADS, DPI_EXTENT_NONE, DPI_AT(rate), 0, true, true, 0},
    {"ssm_dt.bias", NULL, DPI_EXTENT_V_HEADS, DPI_EXTENT_NONE, DPI_AT(decay_bias), 0, true, true,
     0},
    DPI_NORM("ssm_norm", DIM_V, value_norm),
    DPI_MATRIX("ssm_out", VALUES, EMBD, w_values, 0),
    FFN_NORM,
    DPI_FFN,
};

#define KEY(name) "qwen35." name
#define RECURRENT "attention.recurrent_layers"
#define INTERVAL "full_attention_interval"
#define LEFT_OUT "nextn_predict_layers"
#define TAPS "ssm.conv_kernel"
#define DIM "ssm.state_size"
#define K_HEADS "ssm.group_count"
#define V_HEADS "ssm.time_step_rank"
#define VALUES "ssm.inner_size"

static const char *const keys[] = {
    DPI_KEYS, RECURRENT, INTERVAL, LEFT_OUT, TAPS, DIM, K_HEADS, V_HEADS, VALUES,
    "rope.dimension_sections", /* of pictures: the positions of a text turn all sections alike */
    NULL};

static dpi_status count(const dpi_gguf *gguf, const dpi_config *c, const char *key, int64_t min,
                        int64_t max, int32_t *out, dpi_error *err) {
    DPI_TRY(dpi_config_demand(gguf, c, key, err));
    return dpi_config_count(gguf, c, key, min, max, out, err);
}

static dpi_status check_multiple(const dpi_gguf *gguf, const char *key, int32_t value,
                                 const char *of_key, int32_t of, dpi_error *err) {
    if (value % of == 0)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s is %d, must be a multiple of %s, %d",
                    dpi_gguf_name(gguf), key, (int)value, of_key, (int)of);
}

static dpi_status read_delta(const dpi_gguf *gguf, const dpi_config *c, dpi_shape *s,
                             dpi_error *err) {
    enum { TAPS_MOST = 64, DIM_MOST = 1 << 12, HEADS_MOST = 1 << 12, VALUES_MOST = 1 << 22 };
    int32_t n_values = 0;
    DPI_TRY(count(gguf, c, TAPS, 2, TAPS_MOST, &s->delta.n_tap, err));
    DPI_TRY(count(gguf, c, DIM, 1, DIM_MOST, &s->delta.dim, err));
    DPI_TRY(count(gguf, c, K_HEADS, 1, HEADS_MOST, &s->delta.n_k_head, err));
    DPI_TRY(count(gguf, c, V_HEADS, 1, HEADS_MOST, &s->delta.n_v_head, err));
    DPI_TRY(count(gguf, c, VALUES, 1, VALUES_MOST, &n_values, err));
    DPI_TRY(check_multiple(gguf, KEY(V_HEADS), s->delta.n_v_head, KEY(K_HEADS), s->delta.n_k_head,
                           err));
    DPI_TRY(check_multiple(gguf, KEY(VALUES), n_values, KEY(V_HEADS), s->delta.n_v_head, err));
    s->delta.dim_v = n_values / s->delta.n_v_head;
    return DPI_STATUS_OK;
}

/* Blocks of multi-token prediction are counted, and stand behind the layers. */
static dpi_status leave_out(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    DPI_TRY(dpi_config_count(gguf, c, LEFT_OUT, 0, c->n_layer - 1, &c->n_left_out, err));
    c->n_layer -= c->n_left_out;
    return DPI_STATUS_OK;
}

static dpi_status read_kinds(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    const dpi_gguf_kv *recurrent = NULL;
    int32_t interval = 4;
    dpi_shape shape = {0};
    DPI_TRY(read_delta(gguf, c, &shape, err));
    DPI_TRY(dpi_gguf_get_array(gguf, KEY(RECURRENT), DPI_GGUF_BOOL, &recurrent, err));
    DPI_TRY(dpi_config_count(gguf, c, INTERVAL, 1, DPI_LAYERS_MAX, &interval, err));
    if (recurrent && recurrent->n_items != (uint64_t)(c->n_layer + c->n_left_out))
        DPI_TRY(dpi_config_check_items(gguf, c, RECURRENT, recurrent, err));
    for (int32_t l = 0; l < c->n_layer; l++) {
        const bool is_delta = recurrent ? dpi_gguf_item_bool(recurrent, (uint64_t)l)
                                        : (l + 1) % interval != 0;
        c->kind[l] = is_delta ? DPI_LAYER_DELTA : DPI_LAYER_ATTENTION;
        if (is_delta)
            c->shapes[l].delta = shape.delta;
    }
    return DPI_STATUS_OK;
}

/* Of four layers three are delta nets. */
static dpi_status read(const dpi_gguf *gguf, dpi_config *c, dpi_error *err) {
    if (c->head_dim != c->head_dim_v) /* a query's gate is that of its result */
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s is %d, must be %s, %d",
                        dpi_gguf_name(gguf), KEY("attention.value_length"), (int)c->head_dim_v,
                        KEY("attention.key_length"), (int)c->head_dim);
    DPI_TRY(leave_out(gguf, c, err));
    return read_kinds(gguf, c, err);
}

const dpi_arch dpi_arch_qwen35 = {.name = "qwen35", DPI_TENSORS_OF(ATTENTION, attention, 7),
                                  DPI_TENSORS_OF(DELTA, delta, 8), .keys = keys, .read = read,
                                  .rotates_halves = true, .has_gated_queries = true};
