/* Models: hyperparameters against tensors, variants that are refused by name, inspection, and the
 * check of every weight. */
#include <dirent.h>
#include <math.h>

#include "tests/engine/engine_support.h"

#define EPSILON "llama.attention.layer_norm_rms_epsilon"
static const struct {
    const char *key;
    uint32_t value;
} ints[] = {
    {"llama.block_count", 1},          {"llama.context_length", 64},
    {"llama.embedding_length", 32},    {"llama.feed_forward_length", 64},
    {"llama.attention.head_count", 2},
};
enum { N_INTS = sizeof ints / sizeof *ints };

/* The keys of a one-layer model of 32 x 2 heads, but for `without`. */
static void begin(gguf_build *b, const char *without) {
    build_begin(b);
    if (strcmp(without, "general.architecture") != 0)
        build_string(b, "general.architecture", "llama");
    for (size_t i = 0; i < N_INTS; i++)
        if (strcmp(without, ints[i].key) != 0)
            build_u32(b, ints[i].key, ints[i].value);
    if (strcmp(without, EPSILON) != 0)
        build_f32(b, EPSILON, 1e-5f);
    tiny_vocab(b, 300);
}

/* The tensors of that model; the one called `odd` gets `odd_columns` columns (0: is left out). */
static void add_tensors(gguf_build *b, const char *odd, int64_t odd_columns) {
    static const struct {
        const char *name;
        int64_t columns, rows;
    } tensors[] = {
        {"token_embd.weight", 32, 300},       {"output_norm.weight", 32, 0},
        {"blk.0.attn_norm.weight", 32, 0},    {"blk.0.attn_q.weight", 32, 32},
        {"blk.0.attn_k.weight", 32, 32},      {"blk.0.attn_v.weight", 32, 32},
        {"blk.0.attn_output.weight", 32, 32}, {"blk.0.ffn_norm.weight", 32, 0},
        {"blk.0.ffn_gate.weight", 32, 64},    {"blk.0.ffn_up.weight", 32, 64},
        {"blk.0.ffn_down.weight", 64, 32},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        int64_t shape[2] = {tensors[i].columns, tensors[i].rows};
        if (strcmp(odd, tensors[i].name) == 0)
            shape[0] = odd_columns;
        if (shape[0] > 0)
            build_tensor(b, tensors[i].name, DPI_TYPE_F32, shape[1] ? 2 : 1, shape, NULL,
                         (size_t)(shape[0] * (shape[1] ? shape[1] : 1)) * 4);
    }
}

/* Opens what is built, from a file; frees it. */
static dpi_status open_built(gguf_build *b, const dpi_model_options *options, dpi_model **model) {
    char dir[256];
    make_dir(dir, sizeof dir);
    build_end(b);
    write_file(path_in(dir, "m.gguf"), b->data, b->n_bytes);
    dpi_status status = dpi_model_open(path_in(dir, "m.gguf"), options, model, ERR);
    remove_dir(dir);
    build_free(b);
    return status;
}

/* The model without a key, with what else is built, with an odd tensor, must be refused. */
#define REFUSED(without, odd, odd_columns, status, message, ...)                                   \
    do {                                                                                           \
        gguf_build b;                                                                              \
        dpi_model *model = NULL;                                                                   \
        begin(&b, without);                                                                        \
        __VA_ARGS__;                                                                               \
        add_tensors(&b, odd, odd_columns);                                                         \
        assert_status(open_built(&b, NULL, &model), status, message);                              \
        assert_null(model);                                                                        \
    } while (0)

TEST(test_complete) {
    gguf_build b;
    dpi_model *model = NULL;
    begin(&b, "");
    add_tensors(&b, "", 0);
    assert_ok(open_built(&b, NULL, &model));
    dpi_model_info info = {.struct_size = sizeof info};
    assert_ok(dpi_model_info_get(model, &info, ERR));
    assert_int_equal(info.head_dim, 16);
    assert_int_equal(info.n_kv_head, 2); /* default: n_head */
    assert_int_equal(info.n_rot, 16);
    assert_int_equal(info.tied_output, 1);
    assert_int_equal(info.n_vocab, 300);
    assert_string_equal(info.weight_types, "F32");
    assert_true(info.rope_freq_base == 10000.0f && info.rope_freq_scale == 1.0f);
    dpi_model_close(model);
}

TEST(test_missing_keys) {
    for (size_t i = 0; i < N_INTS + 2; i++) {
        char message[128];
        const char *key = i < N_INTS ? ints[i].key : i == N_INTS ? "general.architecture" : EPSILON;
        snprintf(message, sizeof message, "m.gguf: key %s is missing", key);
        REFUSED(key, "", 0, DPI_STATUS_FORMAT, message, );
    }
}

TEST(test_refused_values) {
    enum { INT, FLOAT, TEXT };
    static const struct {
        const char *key;
        int kind;
        double value;
        const char *text;
        dpi_status status;
        const char *message;
    } cases[] = {
        {"llama.attention.head_count_kv", INT, 3, "", DPI_STATUS_FORMAT, "head_count_kv"},
        {"llama.attention.head_count_kv", INT, 0, "", DPI_STATUS_FORMAT, "head_count_kv"},
        {"llama.rope.dimension_count", INT, 7, "", DPI_STATUS_FORMAT, "is 7, must be even"},
        {"llama.rope.dimension_count", INT, 18, "", DPI_STATUS_FORMAT, "dimension_count"},
        {"llama.rope.freq_base", FLOAT, -1, "", DPI_STATUS_FORMAT, "freq_base"},
        {"llama.rope.freq_base", FLOAT, NAN, "", DPI_STATUS_FORMAT, "freq_base"},
        {"llama.rope.scaling.factor", FLOAT, 1e-30, "", DPI_STATUS_FORMAT, "be 0 (none) or 1e-06"},
        {"llama.rope.scale_linear", FLOAT, 1e-30, "", DPI_STATUS_FORMAT, "be 0 (none) or 1e-06"},
        {"llama.rope.scaling.type", TEXT, 0, "su", DPI_STATUS_UNSUPPORTED, "'su', only none"},
        {"llama.rope.scaling.attn_factor", FLOAT, 0, "", DPI_STATUS_FORMAT, "attn_factor"},
        {"llama.expert_count", INT, 8, "", DPI_STATUS_UNSUPPORTED, "mixtures of experts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        REFUSED("", "", 0, cases[i].status, cases[i].message,
                cases[i].kind == INT     ? build_u32(&b, cases[i].key, (uint32_t)cases[i].value)
                : cases[i].kind == FLOAT ? build_f32(&b, cases[i].key, (float)cases[i].value)
                                         : build_string(&b, cases[i].key, cases[i].text));
    REFUSED("general.architecture", "", 0, DPI_STATUS_UNSUPPORTED, "'mamba', only llama",
            build_string(&b, "general.architecture", "mamba"));
}

/* What is refused of architectures that the engine does not have says what they need. */
TEST(test_missing_architectures) {
    static const char *const cases[][2] = {
        {"qwen3moe", "mixtures of experts"},
        {"bert", "encoders"},
        {"qwen3next", "layers with a recurrent state"},
        {"qwen2vl", "pictures"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[64];
        snprintf(message, sizeof message, "'%s', only llama", cases[i][0]);
        REFUSED("general.architecture", "", 0, DPI_STATUS_UNSUPPORTED, message,
                build_string(&b, "general.architecture", cases[i][0]));
        snprintf(message, sizeof message, "it has %s", cases[i][1]);
        REFUSED("general.architecture", "", 0, DPI_STATUS_UNSUPPORTED, message,
                build_string(&b, "general.architecture", cases[i][0]));
    }
}

/* A sliding window limits the context; within it the model is like any other. */
TEST(test_sliding_window) {
    gguf_build b;
    dpi_model *model = NULL;
    dpi_session *session = NULL;
    dpi_session_options o;
    begin(&b, "");
    build_u32(&b, "llama.attention.sliding_window", 16);
    add_tensors(&b, "", 0);
    assert_ok(open_built(&b, NULL, &model));
    dpi_session_options_init(&o);
    o.n_ctx = 17;
    assert_error(dpi_session_create(model, &o, &session, ERR), ARG, "n_ctx is 17, must be 0..16");
    session = open_session(model, NULL, 1, 0);
    assert_int_equal(dpi_session_n_ctx(session), 16);
    dpi_session_free(session);
    dpi_model_close(model);
}

TEST(test_tensor_shapes) {
    REFUSED("", "blk.0.attn_v.weight", 0, DPI_STATUS_FORMAT,
            "tensor blk.0.attn_v.weight is missing", );
    REFUSED("", "blk.0.ffn_down.weight", 65, DPI_STATUS_FORMAT,
            "tensor blk.0.ffn_down.weight has shape [65, 32, 1, 1], the hyperparameters require "
            "[64, 32]", );
    REFUSED("", "output_norm.weight", 31, DPI_STATUS_FORMAT,
            "output_norm.weight has shape [31, 1, 1, 1]", );
    REFUSED("llama.block_count", "", 0, DPI_STATUS_FORMAT,
            "block_count is 500, but the file has only 11 tensors",
            build_u32(&b, "llama.block_count", 500));
}

/* A number for each layer. */
static void build_numbers(gguf_build *b, const char *key, int32_t number, size_t n) {
    build_array(b, key, DPI_GGUF_I32, &number, n, sizeof number);
}

TEST(test_numbers_of_layers) {
    const char *const n_ff = "llama.feed_forward_length", *const heads = ints[4].key;
    dpi_model *loaded = NULL;
    gguf_build built;
    begin(&built, n_ff);
    build_numbers(&built, n_ff, 64, 1);
    build_numbers(&built, "llama.attention.head_count_kv", 2, 1);
    add_tensors(&built, "", 0);
    assert_ok(open_built(&built, NULL, &loaded));
    dpi_model_close(loaded);
    REFUSED(n_ff, "", 0, DPI_STATUS_FORMAT, "feed_forward_length[0] is 0, must be 1..",
            build_numbers(&b, n_ff, 0, 1));
    REFUSED(heads, "", 0, DPI_STATUS_FORMAT,
            "head_count has 0 items, must have one for each of the 1 layers",
            build_numbers(&b, heads, 2, 0));
    REFUSED(n_ff, "", 0, DPI_STATUS_FORMAT, "has 2 items, must have one for each of the 1 layers",
            build_array(&b, n_ff, DPI_GGUF_I32, (int32_t[]){64, 64}, 2, 4));
    REFUSED(n_ff, "", 0, DPI_STATUS_FORMAT, "tensor blk.0.ffn_gate.weight has shape",
            build_numbers(&b, n_ff, 32, 1));
}

/* What a golden file is given: each may be NULL. */
typedef struct change {
    const char *key, *tensor;     /* one more, a number */
    const dpi_gguf_tensor *longer; /* its last side becomes one longer */
    uint32_t n_left_out;          /* layers more, of those of qwen35 that are left out */
} change;

static void build_changed(gguf_build *b, const dpi_gguf *golden, change c) {
    static const char count[] = "qwen35.block_count";
    build_begin(b);
    build_metadata(b, golden, c.n_left_out > 0 ? count : NULL);
    if (c.key)
        build_f32(b, c.key, 2);
    if (c.n_left_out > 0) {
        const int32_t n = dpi_gguf_item_i32(dpi_gguf_find(golden, count), 0);
        build_u32(b, count, (uint32_t)n + c.n_left_out);
        build_u32(b, "qwen35.nextn_predict_layers", c.n_left_out);
    }
    for (int64_t i = 0; i < dpi_gguf_tensor_count(golden); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(golden, i);
        const int64_t n_rows = t->shape[1] * t->shape[2] * t->shape[3];
        int64_t shape[4];
        memcpy(shape, t->shape, sizeof shape);
        shape[t->n_dims - 1] += t == c.longer;
        if (t == c.longer)
            build_tensor(b, t->name, t->type, (uint32_t)t->n_dims, shape, NULL,
                         t->n_dims == 1 ? t->n_bytes + sizeof(float)
                                        : t->n_bytes + t->n_bytes / (uint64_t)n_rows);
        else
            build_tensor(b, t->name, t->type, (uint32_t)t->n_dims, shape, t->data, t->n_bytes);
    }
    if (c.tensor)
        build_tensor(b, c.tensor, DPI_TYPE_F32, 1, (int64_t[]){1}, &(float){1}, sizeof(float));
    build_end(b);
}

/* Whatever a file holds is used, known to change nothing, or refused by name: by all that load a
 * model, and by those that write it in another form. */
TEST(test_unknown) {
    static const struct {
        const char *key, *tensor; /* one of them */
        bool is_known;
        const char *file; /* NULL: a llama */
    } cases[] = {
        {"llama.attention.scale", NULL, false, NULL},
        {"llama.attention.clamp_kqv", NULL, false, NULL},
        {"llama.rope.scaling.attn_factor_", NULL, false, NULL},
        {"llama.residual_scale", NULL, false, NULL},
        {"tokenizer.ggml.normalizer", NULL, false, NULL},
        {"tokenizer.chat_templat", NULL, false, NULL},
        {"general.license", NULL, true, NULL}, /* metadata */
        {"author.note", NULL, true, NULL},
        {"llama.rope.scaling.finetuned", NULL, true, NULL},
        {"tokenizer.chat_template.tool_use", NULL, true, NULL},
        {NULL, "blk.0.attn_q_norm.weight", false, NULL},
        {NULL, "blk.0.ffn_norm.bias", false, NULL},
        {NULL, "blk.2.attn_q.bias", false, NULL}, /* of a layer beyond the last */
        {NULL, "blk.00.attn_q.bias", false, NULL},
        {NULL, "output.bias", false, NULL},
        {NULL, "rope_factors_long.weight", false, NULL},
        {"qwen3.attention.scale", NULL, false, "arch/qwen3-A"},
        {"gemma3.attn_logit_softcapping", NULL, false, "arch/gemma3-A"},
        {"granite.attention.temperature_scale", NULL, false, "arch/granite-A"},
        {"llama.note", NULL, true, "arch/granite-A"},
        {"granite.expert_shared_feed_forward_length", NULL, true, "arch/granite-A"},
        {"granite.ssm.conv_kernel", NULL, true, "arch/granite-A"},
        {"granite.ssm.state_size", NULL, true, "arch/granite-A"},
        {"granite.ssm.group_count", NULL, true, "arch/granite-A"},
        {"granite.ssm.inner_size", NULL, true, "arch/granite-A"},
        {"granite.ssm.time_step_rank", NULL, true, "arch/granite-A"},
        {NULL, "blk.0.ssm_a", false, "arch/granite-A"}, /* what these keys would be of */
        {NULL, "blk.0.ffn_up_shexp.weight", false, "arch/granite-A"},
        {NULL, "blk.0.attn_q_norm.weight", false, "arch/gemma2-A"},
        {NULL, "blk.0.attn_norm.weight", false, "arch/olmo2-A"},
        {NULL, "blk.0.ffn_gate.weight", false, "arch/phi3-A"},
        {NULL, "blk.0.post_ffw_norm.weight", false, "arch/vaultgemma-A"},
        {NULL, "output.bias", false, "arch/smollm3-A"},
        {NULL, "blk.0.attn_q.weight", false, "arch/qwen35-A"}, /* of another kind of layer */
        {NULL, "blk.3.ssm_a", false, "arch/qwen35-A"},
        {NULL, "blk.4.nextn.eh_proj.weight", false, "arch/qwen35-A"},
        {"gemma4.attn_logit_softcapping", NULL, false, "arch/gemma4-A"},
        {NULL, "blk.0.inp_gate.weight", false, "arch/gemma4-A"},
        {NULL, "blk.3.attn_k_norm.weight", false, "arch/gemma4-e2b-A"}, /* reads another's keys */
    };
    char dir[256];
    dpi_write_options options;
    dpi_write_options_init(&options);
    options.type = "Q8_0";
    make_dir(dir, sizeof dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[300], written[300];
        dpi_model *model = NULL;
        dpi_gguf *golden;
        snprintf(path, sizeof path, "%s.gguf",
                 cases[i].file ? cases[i].file : "models/tiny-gqa-F32");
        require_data(path);
        assert_ok(dpi_gguf_open(data_path(path), true, &golden, ERR));
        snprintf(path, sizeof path, "%s/%zu.gguf", dir, i);
        snprintf(written, sizeof written, "%s/%zu.q.gguf", dir, i);
        gguf_build b;
        build_changed(&b, golden, (change){.key = cases[i].key, .tensor = cases[i].tensor});
        write_file(path, b.data, b.n_bytes);
        build_free(&b);
        const char *name = cases[i].key ? cases[i].key : cases[i].tensor;
        if (cases[i].is_known) {
            assert_ok(dpi_model_open(path, NULL, &model, ERR));
        } else {
            assert_error(dpi_model_open(path, NULL, &model, ERR), UNSUPPORTED, name);
            assert_error(dpi_model_quantize(path, written, &options, ERR), UNSUPPORTED, name);
        }
        dpi_model_close(model);
        dpi_gguf_close(golden);
    }
    remove_dir(dir);
}

/* Blocks of multi-token prediction are no layers; what is behind them is unknown. */
TEST(test_left_out_blocks) {
    static const struct {
        uint32_t n;
        const char *tensor;
        bool is_known;
    } cases[] = {{1, "blk.4.nextn.eh_proj.weight", true},
                 {2, "blk.5.attn_q.weight", true},
                 {1, "blk.5.nextn.eh_proj.weight", false},
                 {1, "blk.3.nextn.eh_proj.weight", false}};
    dpi_gguf *golden;
    require_data("arch/qwen35-A.gguf");
    assert_ok(dpi_gguf_open(data_path("arch/qwen35-A.gguf"), true, &golden, ERR));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dpi_model *model = NULL;
        gguf_build b;
        build_changed(&b, golden, (change){.tensor = cases[i].tensor, .n_left_out = cases[i].n});
        const dpi_status status =
            dpi_model_open_buffer(b.data, b.n_bytes, NULL, &model, ERR);
        if (cases[i].is_known) {
            dpi_model_info info;
            dpi_model_info_init(&info);
            assert_ok(status);
            assert_ok(dpi_model_info_get(model, &info, ERR));
            assert_int_equal(info.n_layer, 4);
            assert_int_equal(info.n_recurrent, 3);
        } else {
            assert_status(status, DPI_STATUS_UNSUPPORTED, cases[i].tensor);
        }
        dpi_model_close(model);
        build_free(&b);
    }
    dpi_gguf_close(golden);
}

static void check_refused(const char *file, const dpi_gguf *golden, change c, dpi_status status,
                          const char *message) {
    gguf_build b;
    dpi_model *model = NULL;
    build_changed(&b, golden, c);
    const dpi_status found = dpi_model_open_buffer(b.data, b.n_bytes, NULL, &model, ERR);
    if (found != status || !strstr(ERR->message, message))
        fail_msg("%s: status %d, '%s', must be %d, '%s'", file, (int)found,
                 found ? ERR->message : "", (int)status, message);
    build_free(&b);
}

/* Keys and tensors that no model has, and a wrong shape of each tensor; of layers, of the first
 * alone. */
static void check_changes(const char *file, const dpi_gguf *golden, const char *arch) {
    static const char *const keys[] = {"surprise", "attention.surprise", "rope.scaling.surprise"};
    static const char *const tensors[] = {"surprise.weight", "output_norm.bias",
                                          "blk.0.surprise.weight", "blk.0.ffn_norm.bias",
                                          "blk.9999.attn_q.weight"};
    char name[96];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(name, sizeof name, "%s.%s", arch, keys[i]);
        check_refused(file, golden, (change){.key = name}, DPI_STATUS_UNSUPPORTED, name);
    }
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        check_refused(file, golden, (change){.tensor = tensors[i]}, DPI_STATUS_UNSUPPORTED,
                      tensors[i]);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(golden); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(golden, i);
        snprintf(name, sizeof name, "tensor %s has shape", t->name);
        if (strncmp(t->name, "blk.", 4) != 0 || strncmp(t->name, "blk.0.", 6) == 0)
            check_refused(file, golden, (change){.longer = t}, DPI_STATUS_FORMAT, name);
    }
}

/* Nothing in a file of any architecture is passed over in silence. */
TEST(test_unknown_everywhere) {
    require_data("arch/README.md");
    DIR *folder = opendir(data_path("arch"));
    assert_non_null(folder);
    int n_checked = 0;
    for (struct dirent *e; (e = readdir(folder));) {
        const char *path = path_in(data_path("arch"), e->d_name);
        if (!strstr(e->d_name, ".gguf"))
            continue;
        dpi_str name = {"", 0};
        dpi_gguf *golden;
        char arch[32];
        assert_ok(dpi_gguf_open(path, true, &golden, ERR));
        assert_ok(dpi_gguf_get_string(golden, "general.architecture", &name, NULL, ERR));
        snprintf(arch, sizeof arch, "%.*s", (int)name.n_bytes, name.data);
        if (dpi_arch_find(arch)) {
            check_changes(e->d_name, golden, arch);
            n_checked++;
        }
        dpi_gguf_close(golden);
    }
    closedir(folder);
    assert_true(n_checked > 0);
}

/* The model of begin() under another name, its keys too, with one key more, or without one. */
static void check_arch_key(const char *arch, const char *without, const char *message,
                           void (*add)(gguf_build *b)) {
    gguf_build b;
    dpi_model *model = NULL;
    build_begin(&b);
    build_string(&b, "general.architecture", arch);
    for (size_t i = 0; i < N_INTS + 2; i++) {
        char key[96];
        const char *rest = i < N_INTS ? ints[i].key + 6 : i == N_INTS ? EPSILON + 6 : "";
        snprintf(key, sizeof key, "%s.%s", arch, *rest ? rest : "logit_scale");
        if (strcmp(key, without) == 0 || (!*rest && strcmp(arch, "granite") != 0))
            continue;
        if (i < N_INTS)
            build_u32(&b, key, ints[i].value);
        else
            build_f32(&b, key, .5f);
    }
    if (add)
        add(&b);
    tiny_vocab(&b, 300);
    add_tensors(&b, "", 0);
    assert_status(open_built(&b, NULL, &model), DPI_STATUS_FORMAT, message);
}

static void add_bad_pattern(gguf_build *b) {
    build_u32(b, "olmo2.attention.sliding_window", 8);
    build_array(b, "olmo2.attention.sliding_window_pattern", DPI_GGUF_BOOL, "\1\1\0", 3, 1);
}

static void add_bad_cap(gguf_build *b) { build_f32(b, "gemma2.attn_logit_softcapping", -1); }

static uint32_t n_value_heads; /* of add_delta_net; 0: no key */

static void add_delta_net(gguf_build *b) {
    static const char *const names[] = {"conv_kernel", "state_size", "group_count", "inner_size",
                                        "time_step_rank"};
    for (size_t i = 0; i < sizeof names / sizeof *names - (n_value_heads == 0); i++) {
        char key[64];
        snprintf(key, sizeof key, "qwen35.ssm.%s", names[i]);
        build_u32(b, key, i < 4 ? 2 : n_value_heads);
    }
    build_array(b, "qwen35.attention.recurrent_layers", DPI_GGUF_BOOL, "\1\1\1", 3, 1);
}

TEST(test_keys_of_architectures) {
    static const char *const messages[] = {
        "key qwen35.ssm.time_step_rank is missing",
        "time_step_rank is 1, must be a multiple of qwen35.ssm.group_count, 2",
        "layers has 3 items, must have one for each of the 1 layers",
        "time_step_rank is 3, must be a multiple of qwen35.ssm.group_count, 2",
        "inner_size is 2, must be a multiple of qwen35.ssm.time_step_rank, 4"};
    for (n_value_heads = 0; n_value_heads < sizeof messages / sizeof *messages; n_value_heads++)
        check_arch_key("qwen35", "", messages[n_value_heads], add_delta_net);
    check_arch_key("qwen35", "", "key qwen35.ssm.conv_kernel is missing", NULL);
    check_arch_key("granite", "granite.logit_scale", "key granite.logit_scale is missing", NULL);
    check_arch_key("granite", "granite.block_count", "granite.block_count is missing", NULL);
    check_arch_key("olmo2", "", "pattern has 3 items, must have one for each of the 1 layers",
                   add_bad_pattern);
    check_arch_key("gemma2", "", "gemma2.attn_logit_softcapping", add_bad_cap);
    check_arch_key("olmo2", "", "tensor output.weight is missing", NULL);
    check_arch_key("phi3", "", "tensor blk.0.attn_qkv.weight is missing", NULL);
    check_arch_key("qwen3", "", "tensor blk.0.attn_q_norm.weight is missing", NULL);
}

/* Golden files with one place changed: a key or a tensor under another name, another value. */
TEST(test_gemma4) {
#define CASE(file, from, to, message) {"arch/" file ".gguf", from, to, sizeof from - 1, message}
#define U32(n) "\4\0\0\0" n "\0\0\0"
    static const struct {
        const char *file, *from, *to;
        size_t n;
        const char *message;
    } cases[] = {
        CASE("gemma4-A", "gemma4.attention.sliding_window", "author.attention.sliding_window",
             "key gemma4.attention.sliding_window is missing"),
        CASE("gemma4-A", "gemma4.attention.sliding_window_p", "author.attention.sliding_window_p",
             "key gemma4.attention.sliding_window_pattern is missing"),
        CASE("gemma4-A", "gemma4.embedding_length_per", "author.embedding_length_per",
             "key gemma4.embedding_length_per_layer_input is missing"),
        CASE("gemma4-A", "rope_freqs", "rope_other", "tensor rope_freqs.weight is missing"),
        CASE("gemma4-A", "blk.0.attn_v", "blk.0.other_", "tensor blk.0.attn_v.weight is missing"),
        CASE("gemma4-A", "gemma4.attention.value_length" U32("\100"),
             "gemma4.attention.value_length" U32("\40"), "key_length is 64, value_length 32"),
        CASE("gemma4-A", "dimension_count_swa" U32("\40"), "dimension_count_swa" U32("\37"),
             "gemma4.rope.dimension_count_swa is 31, must be even"),
        CASE("gemma4-e2b-A", "per_layer_token_embd", "other_layer_to_embd_",
             "tensor per_layer_token_embd.weight is missing"),
        CASE("gemma4-e2b-A", "per_layer_proj_norm", "other_layer_pr_norm",
             "tensor per_layer_proj_norm.weight is missing"),
        CASE("gemma4-e2b-A", "blk.4.proj", "blk.4.othr", "tensor blk.4.proj.weight is missing"),
        CASE("gemma4-e2b-A", "shared_kv_layers" U32("\2"), "shared_kv_layers" U32("\1"),
             "tensor blk.3.attn_k.weight is missing"),
        CASE("gemma4-e2b-A", "shared_kv_layers" U32("\2"), "shared_kv_layers" U32("\3"),
             "there must be a layer without a window, with 1 KV heads, for layer 2"),
        CASE("gemma4-e2b-A", "shared_kv_layers" U32("\2"), "shared_kv_layers" U32("\5"),
             "shared_kv_layers"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n_bytes;
        dpi_model *model = NULL;
        require_data(cases[i].file);
        char *image = patched_file(cases[i].file, cases[i].from, cases[i].to, cases[i].n, &n_bytes);
        assert_status(dpi_model_open_buffer(image, n_bytes, NULL, &model, ERR), DPI_STATUS_FORMAT,
                      cases[i].message);
        free(image);
    }
}

TEST(test_check_weights) {
    gguf_build b;
    dpi_model *model = NULL;
    float values[32] = {[17] = INFINITY};
    dpi_model_options options;
    begin(&b, "");
    add_tensors(&b, "output_norm.weight", 0);
    build_tensor(&b, "output_norm.weight", DPI_TYPE_F32, 1, (int64_t[]){32}, values, sizeof values);
    dpi_model_options_init(&options);
    options.check_weights = 1;
    assert_error(open_built(&b, &options, &model), NUMERIC,
                 "tensor output_norm.weight (F32), row 0, column 17 is inf");
    tiny_spec spec = tiny_default();
    void *image;
    size_t n_bytes;
    tiny_build(&spec, 3, &image, &n_bytes);
    assert_ok(dpi_model_open_buffer(image, n_bytes, &options, &model, ERR));
    dpi_model_close(model);
    free(image);
}

TEST(test_inspection) {
    tiny_spec spec = tiny_default();
    void *image;
    dpi_model *model = tiny_open(&spec, 3, &image);
    const char *key, *type;
    char value[64];
    int64_t n = dpi_model_metadata_count(model), shape[4];
    uint64_t offset, n_bytes;
    bool seen = false;
    for (int64_t i = 0; i < n; i++) {
        assert_ok(dpi_model_metadata_get(model, i, &key, &type, value, sizeof value, ERR));
        assert_int_equal(strcmp(key, "general.architecture") == 0, i == 0);
        if (i == 0)
            assert_string_equal(value, "llama");
        if (strcmp(key, "tokenizer.ggml.tokens") == 0) {
            seen = true;
            assert_string_equal(type, "array");
            assert_memory_equal(value, "[<unk>, <s>, </s>, <0x00>, ", 27);
        }
    }
    assert_true(seen);
    assert_error(dpi_model_metadata_get(model, n, &key, &type, value, sizeof value, ERR), ARG,
                 "metadata index");
    assert_ok(dpi_model_tensor_get(model, 0, &key, &type, shape, &offset, &n_bytes, ERR));
    assert_string_equal(key, "token_embd.weight");
    assert_true(shape[0] == 64 && shape[1] == 320 && n_bytes == 64 * 320 * 4);
    assert_error(dpi_model_tensor_get(model, -1, &key, &type, shape, &offset, &n_bytes, ERR), ARG,
                 "tensor index -1");
    dpi_model_close(model);
    free(image);
}
