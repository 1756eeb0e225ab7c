/* Models: hyperparameters against tensors, variants that are refused by name, inspection, and the
 * check of every weight. */
#include <math.h>

#include "engine/model.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

/* The keys of a one-layer model of 32 x 2 heads, but for `without`; then what `extra` adds. */
static void begin(gguf_build *b, const char *without) {
    static const struct {
        const char *key;
        uint32_t value;
    } keys[] = {
        {"llama.block_count", 1},           {"llama.context_length", 64},
        {"llama.embedding_length", 32},     {"llama.feed_forward_length", 64},
        {"llama.attention.head_count", 2},
    };
    build_begin(b);
    if (strcmp(without, "general.architecture") != 0)
        build_string(b, "general.architecture", "llama");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(without, keys[i].key) != 0)
            build_u32(b, keys[i].key, keys[i].value);
    if (strcmp(without, "llama.attention.layer_norm_rms_epsilon") != 0)
        build_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    tiny_vocab(b, 300);
}

/* The tensors of that model; the one called `odd` gets `odd_columns` columns (0: is left out). */
static void add_tensors(gguf_build *b, const char *odd, int64_t odd_columns) {
    static const struct {
        const char *name;
        int64_t columns, rows;
    } tensors[] = {
        {"token_embd.weight", 32, 300},      {"output_norm.weight", 32, 0},
        {"blk.0.attn_norm.weight", 32, 0},   {"blk.0.attn_q.weight", 32, 32},
        {"blk.0.attn_k.weight", 32, 32},     {"blk.0.attn_v.weight", 32, 32},
        {"blk.0.attn_output.weight", 32, 32}, {"blk.0.ffn_norm.weight", 32, 0},
        {"blk.0.ffn_gate.weight", 32, 64},   {"blk.0.ffn_up.weight", 32, 64},
        {"blk.0.ffn_down.weight", 64, 32},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        int64_t shape[2] = {tensors[i].columns, tensors[i].rows};
        if (strcmp(odd, tensors[i].name) == 0)
            shape[0] = odd_columns;
        if (shape[0] == 0)
            continue;
        uint32_t n_dims = shape[1] ? 2 : 1;
        build_tensor(b, tensors[i].name, DPI_TYPE_F32, n_dims, shape, NULL,
                     (size_t)(shape[0] * (shape[1] ? shape[1] : 1)) * 4);
    }
}

static dpi_status open_built_with(gguf_build *b, const dpi_model_options *options,
                                  dpi_model **model, dpi_error *err) {
    char dir[256], path[300];
    build_end(b);
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    write_file(path, b->data, b->n_bytes);
    dpi_status status = dpi_model_open(path, options, model, err);
    remove_dir(dir);
    build_free(b);
    return status;
}

static dpi_status open_built(gguf_build *b, dpi_model **model, dpi_error *err) {
    return open_built_with(b, NULL, model, err);
}

static void refuse(gguf_build *b, dpi_status status, const char *message) {
    dpi_model *model = NULL;
    dpi_error err;
    assert_error(open_built(b, &model, &err), status, &err, message);
    assert_null(model);
}

static void test_complete(void **state) {
    (void)state;
    gguf_build b;
    dpi_model *model = NULL;
    dpi_error err;
    begin(&b, "");
    add_tensors(&b, "", 0);
    assert_ok(open_built(&b, &model, &err), &err);
    dpi_model_info info = {.struct_size = sizeof info};
    assert_ok(dpi_model_info_get(model, &info, &err), &err);
    assert_int_equal(info.head_dim, 16);
    assert_int_equal(info.n_kv_head, 2); /* default: n_head */
    assert_int_equal(info.n_rot, 16);
    assert_int_equal(info.tied_output, 1);
    assert_int_equal(info.n_vocab, 300);
    assert_string_equal(info.weight_types, "F32");
    assert_true(info.rope_freq_base == 10000.0f && info.rope_freq_scale == 1.0f);
    dpi_model_close(model);
}

static void test_missing_keys(void **state) {
    (void)state;
    static const char *const keys[] = {
        "general.architecture",       "llama.block_count",
        "llama.context_length",       "llama.embedding_length",
        "llama.feed_forward_length",  "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        gguf_build b;
        char message[128];
        begin(&b, keys[i]);
        add_tensors(&b, "", 0);
        snprintf(message, sizeof message, "m.gguf: key %s is missing", keys[i]);
        refuse(&b, DPI_STATUS_FORMAT, message);
    }
}

static void test_refused_values(void **state) {
    (void)state;
    static const struct {
        const char *key;
        double value;
        const char *text; /* a string value, if not NULL */
        dpi_status status;
        const char *message;
    } cases[] = {
        {"llama.attention.head_count_kv", 3, NULL, DPI_STATUS_FORMAT, "head_count_kv"},
        {"llama.attention.head_count_kv", 0, NULL, DPI_STATUS_FORMAT, "head_count_kv"},
        {"llama.rope.dimension_count", 7, NULL, DPI_STATUS_FORMAT, "is 7, must be even"},
        {"llama.rope.dimension_count", 18, NULL, DPI_STATUS_FORMAT, "dimension_count"},
        {"llama.rope.freq_base", -1, "f", DPI_STATUS_FORMAT, "freq_base"},
        {"llama.rope.freq_base", NAN, "f", DPI_STATUS_FORMAT, "freq_base"},
        {"llama.rope.scaling.factor", 1e-30, "f", DPI_STATUS_FORMAT, "must be 0 (none) or 1e-06"},
        {"llama.rope.scale_linear", 1e-30, "f", DPI_STATUS_FORMAT, "must be 0 (none) or 1e-06"},
        {"llama.rope.scaling.type", 0, "yarn", DPI_STATUS_UNSUPPORTED, "'yarn'"},
        {"llama.expert_count", 8, NULL, DPI_STATUS_UNSUPPORTED, "mixtures of experts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gguf_build b;
        begin(&b, "");
        if (cases[i].text && strcmp(cases[i].text, "f") == 0)
            build_f32(&b, cases[i].key, (float)cases[i].value);
        else if (cases[i].text)
            build_string(&b, cases[i].key, cases[i].text);
        else
            build_u32(&b, cases[i].key, (uint32_t)cases[i].value);
        add_tensors(&b, "", 0);
        refuse(&b, cases[i].status, cases[i].message);
    }
}

/* A sliding window limits the context; within it the model is like any other. */
static void test_sliding_window(void **state) {
    (void)state;
    gguf_build b;
    dpi_model *model = NULL;
    dpi_session *session = NULL;
    dpi_session_options o;
    dpi_error err;
    begin(&b, "");
    build_u32(&b, "llama.attention.sliding_window", 16);
    add_tensors(&b, "", 0);
    assert_ok(open_built(&b, &model, &err), &err);
    dpi_session_options_init(&o);
    o.n_ctx = 17;
    assert_error(dpi_session_create(model, &o, &session, &err), DPI_STATUS_ARG, &err,
                 "n_ctx is 17, must be 0..16");
    o.n_ctx = 0;
    assert_ok(dpi_session_create(model, &o, &session, &err), &err);
    assert_int_equal(dpi_session_n_ctx(session), 16);
    dpi_session_free(session);
    dpi_model_close(model);
}

static void test_architecture(void **state) {
    (void)state;
    gguf_build b;
    begin(&b, "general.architecture");
    build_string(&b, "general.architecture", "mamba");
    add_tensors(&b, "", 0);
    refuse(&b, DPI_STATUS_UNSUPPORTED, "'mamba', only llama");
}

static void test_tensor_shapes(void **state) {
    (void)state;
    gguf_build b;
    begin(&b, "");
    add_tensors(&b, "blk.0.attn_v.weight", 0);
    refuse(&b, DPI_STATUS_FORMAT, "tensor blk.0.attn_v.weight is missing");
    begin(&b, "");
    add_tensors(&b, "blk.0.ffn_down.weight", 65);
    refuse(&b, DPI_STATUS_FORMAT,
           "tensor blk.0.ffn_down.weight has shape [65, 32, 1, 1], the hyperparameters require "
           "[64, 32]");
    begin(&b, "");
    add_tensors(&b, "output_norm.weight", 31);
    refuse(&b, DPI_STATUS_FORMAT, "output_norm.weight has shape [31, 1, 1, 1]");
    begin(&b, "llama.block_count");
    build_u32(&b, "llama.block_count", 4000);
    add_tensors(&b, "", 0);
    refuse(&b, DPI_STATUS_FORMAT, "block_count is 4000, but the file has only 11 tensors");
}

static void test_check_weights(void **state) {
    (void)state;
    gguf_build b;
    dpi_model *model = NULL;
    dpi_error err;
    float values[32] = {0};
    int64_t shape[1] = {32};
    dpi_model_options options;
    begin(&b, "");
    add_tensors(&b, "output_norm.weight", 0);
    values[17] = INFINITY;
    build_tensor(&b, "output_norm.weight", DPI_TYPE_F32, 1, shape, values, sizeof values);
    dpi_model_options_init(&options);
    options.check_weights = 1;
    assert_error(open_built_with(&b, &options, &model, &err), DPI_STATUS_NUMERIC, &err,
                 "tensor output_norm.weight (F32), row 0, column 17 is inf");
    tiny_spec spec = tiny_default();
    void *image;
    size_t n_bytes;
    tiny_build(&spec, 3, &image, &n_bytes);
    assert_ok(dpi_model_open_buffer(image, n_bytes, &options, &model, &err), &err);
    dpi_model_close(model);
    free(image);
}

static void test_inspection(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    void *image;
    dpi_model *model = tiny_open(&spec, 3, &image);
    dpi_error err;
    const char *key, *type;
    char value[64];
    int64_t n = dpi_model_metadata_count(model), shape[4];
    uint64_t offset, n_bytes;
    assert_ok(dpi_model_metadata_get(model, 0, &key, &type, value, sizeof value, &err), &err);
    assert_string_equal(key, "general.architecture");
    assert_string_equal(value, "llama");
    bool seen = false;
    for (int64_t i = 0; i < n; i++) {
        assert_ok(dpi_model_metadata_get(model, i, &key, &type, value, sizeof value, &err), &err);
        if (strcmp(key, "tokenizer.ggml.tokens") == 0) {
            seen = true;
            assert_string_equal(type, "array");
            assert_memory_equal(value, "[<unk>, <s>, </s>, <0x00>, ", 27);
        }
    }
    assert_true(seen);
    assert_error(dpi_model_metadata_get(model, n, &key, &type, value, sizeof value, &err),
                 DPI_STATUS_ARG, &err, "metadata index");
    assert_ok(dpi_model_tensor_get(model, 0, &key, &type, shape, &offset, &n_bytes, &err), &err);
    assert_string_equal(key, "token_embd.weight");
    assert_int_equal(shape[0], 64);
    assert_int_equal(shape[1], 320);
    assert_int_equal(n_bytes, 64 * 320 * 4);
    assert_error(dpi_model_tensor_get(model, -1, &key, &type, shape, &offset, &n_bytes, &err),
                 DPI_STATUS_ARG, &err, "tensor index -1");
    dpi_model_close(model);
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete),       cmocka_unit_test(test_missing_keys),
        cmocka_unit_test(test_refused_values), cmocka_unit_test(test_architecture),
        cmocka_unit_test(test_sliding_window),
        cmocka_unit_test(test_tensor_shapes),  cmocka_unit_test(test_check_weights),
        cmocka_unit_test(test_inspection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
