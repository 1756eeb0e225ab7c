/* Low-rank adapters: the logits of a model with one are those of the model whose weights are W +
 * scale B A, merged here in double from the files alone; what is refused. That rows stay pure is in
 * test_purity.c. */
#include <math.h>

#include "tests/engine/adapter_build.h"
#include "tests/engine/engine_support.h"

enum { N_TOKENS = 70 };

static char dir[256], path[300];

SETUP {
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/adapter.gguf", dir);
}

TEARDOWN { remove_dir(dir); }

static dpi_status try_adapter(const void *image, size_t n_bytes, float scale, dpi_model **model,
                              dpi_error *err) {
    dpi_model_options o;
    dpi_model_options_init(&o);
    o.adapter = path, o.adapter_scale = scale;
    return dpi_model_open_buffer(image, n_bytes, &o, model, err);
}

/* ---- Logits ---------------------------------------------------------------------------------- */

static float *tensor_of(const dpi_model *model, void *image, const char *name, int64_t *n) {
    for (int64_t i = 0; i < dpi_model_tensor_count(model); i++) {
        const char *found, *type;
        int64_t shape[4];
        uint64_t offset, n_bytes;
        assert_ok(dpi_model_tensor_get(model, i, &found, &type, shape, &offset, &n_bytes, ERR));
        *n = shape[0] * shape[1];
        if (strcmp(found, name) == 0)
            return (float *)(void *)((char *)image + offset);
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

/* The same model in F32, weight for weight, and with `scale` B A. */
static dpi_model *widen(const tiny_spec *spec, const dpi_model *model, double scale, void **image) {
    size_t n_bytes;
    int64_t n;
    dpi_model *made;
    tiny_build(spec, 1, image, &n_bytes);
    assert_ok(dpi_model_open_buffer(*image, n_bytes, NULL, &made, ERR));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(model->gguf); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(model->gguf, i);
        float *to = tensor_of(made, *image, t->name, &n);
        dpi_type_find(t->type)->dequantize(t->data, to, n);
    }
    for (const struct adapted *a = adapted; a < adapted + n_adapted; a++) {
        float *w = tensor_of(made, *image, a->name, &n);
        assert_int_equal(n, a->n_in * a->n_out);
        for (int64_t i = 0; i < n; i++) {
            double sum = (double)w[i];
            for (int r = 0; r < RANK; r++)
                sum += scale * (double)a->b[i / a->n_in * RANK + r] *
                       (double)a->a[r * a->n_in + i % a->n_in];
            w[i] = (float)sum;
        }
    }
    dpi_model_close(made); /* it has copies of vectors */
    assert_ok(dpi_model_open_buffer(*image, n_bytes, NULL, &made, ERR));
    return made;
}

/* Logits of the F32 model with `scale` B A, by the oracle. */
static float *merged_logits(const tiny_spec *spec, const dpi_model *base, double scale,
                            const int32_t *tokens) {
    tiny_spec wide = *spec;
    void *image;
    wide.type = DPI_TYPE_F32;
    dpi_model *model = widen(&wide, base, scale, &image);
    float *logits = exact_logits(&wide, model, tokens, N_TOKENS, NULL);
    dpi_model_close(model);
    free(image);
    return logits;
}

/* alpha 0: the file's own scale is 1. */
static void check_logits(const tiny_spec *spec, uint32_t parts, float alpha, float scale) {
    const size_t n = (size_t)N_TOKENS * (size_t)spec->n_vocab;
    const double whole = (double)scale * (alpha > 0 ? (double)alpha / RANK : 1);
    void *image;
    size_t n_bytes;
    int32_t tokens[N_TOKENS];
    uint64_t seed = 5;
    dpi_model *base, *model;
    random_tokens(tokens, N_TOKENS, spec->n_vocab, &seed);
    tiny_build(spec, 9, &image, &n_bytes);
    write_adapter(path, spec, parts, alpha);
    assert_ok(dpi_model_open_buffer(image, n_bytes, NULL, &base, ERR));
    assert_ok(try_adapter(image, n_bytes, scale, &model, ERR));
    float *logits = floats(n), *plain = merged_logits(spec, base, 0, tokens);
    float *wanted = merged_logits(spec, base, whole, tokens);
    dpi_session_options o = isa_options(1);
    for (o.prefill = DPI_PREFILL_KERNELS; o.prefill <= DPI_PREFILL_BLAS; o.prefill++) {
        dpi_session *s = open_session(model, &o, 1, N_TOKENS);
        assert_ok(dpi_session_prefill(s, 0, tokens, N_TOKENS, logits, ERR));
        const double error = nmse(logits, wanted, n);
        if (!(error < 1e-9 && nmse(logits, plain, n) > 1e-3))
            fail_msg("type %u, parts %u: NMSE %g", spec->type, parts, error);
        dpi_session_free(s);
    }
    dpi_model_info info;
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(model, &info, ERR));
    assert_int_equal(info.adapter_rank, RANK);
    assert_int_equal(info.n_adapted, spec->n_layer * __builtin_popcount(parts));
    assert_true(fabs((double)info.adapter_scale - whole) < 1e-6);
    assert_string_equal(info.adapter_name, "made up");
    dpi_model_close(base), dpi_model_close(model);
    free(image), free(logits), free(wanted), free(plain);
}

TEST(test_logits) {
    tiny_spec spec = tiny_default();
    check_logits(&spec, ALL_PARTS, 3, 1);
    check_logits(&spec, ALL_PARTS, 0, .5f);
    spec.tied = spec.bias = 1;
    for (int i = 0; i < PARTS; i++)
        check_logits(&spec, 1u << i, 20, -1);
}

TEST(test_every_type) {
    const dpi_type *type;
    for (int32_t i = 0; (type = dpi_type_at(i)) != NULL; i++) {
        tiny_spec spec = tiny_of(type->id);
        check_logits(&spec, ALL_PARTS, 4, 1);
    }
}

/* ---- Merging --------------------------------------------------------------------------------- */

static dpi_gguf *open_gguf(const char *file) {
    dpi_gguf *gguf;
    assert_ok(dpi_gguf_open(file, true, &gguf, ERR));
    return gguf;
}

static void assert_same_tensors(const char *one, const char *other) {
    dpi_gguf *a = open_gguf(one), *b = open_gguf(other);
    assert_int_equal(dpi_gguf_tensor_count(a), dpi_gguf_tensor_count(b));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(a); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(a, i);
        const dpi_gguf_tensor *u = dpi_gguf_tensor_find(b, t->name);
        if (!u || t->type != u->type || t->n_bytes != u->n_bytes ||
            memcmp(t->data, u->data, t->n_bytes) != 0)
            fail_msg("%s and %s: tensor %s differs", one, other, t->name);
    }
    dpi_gguf_close(a), dpi_gguf_close(b);
}

/* The base as another type, with half of the adapter or without it. */
static void write_as(const char *base, const char *type, bool with_adapter, const char *out) {
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = type, o.n_threads = 2;
    assert_ok(with_adapter ? dpi_model_merge(base, path, .5f, out, &o, ERR)
                           : dpi_model_quantize(base, out, &o, ERR));
}

static float *logits_of(const char *file, const char *adapter, const int32_t *tokens, size_t *n) {
    dpi_model_options m;
    dpi_session_options o = isa_options(1);
    dpi_model *model;
    dpi_model_options_init(&m);
    m.adapter = adapter, m.adapter_scale = .5f;
    assert_ok(dpi_model_open(file, &m, &model, ERR));
    *n = (size_t)N_TOKENS * (size_t)model->n_vocab;
    float *logits = floats(*n);
    dpi_session *s = open_session(model, &o, 1, N_TOKENS);
    assert_ok(dpi_session_prefill(s, 0, tokens, N_TOKENS, logits, ERR));
    dpi_session_free(s);
    dpi_model_close(model);
    return logits;
}

/* The merged model of floats has the logits of model and adapter; of any type it is what quantising
 * that model gives, and KEEP is the type that there is. */
static void check_merge(const tiny_spec *spec, const char *const *types, int n_types) {
    const char *base = path_in(dir, "base"), *whole = path_in(dir, "whole");
    const char *typed = path_in(dir, "typed"), *other = path_in(dir, "other");
    const char *kept = path_in(dir, "kept");
    int32_t tokens[N_TOKENS];
    uint64_t seed = 6;
    size_t n;
    random_tokens(tokens, N_TOKENS, spec->n_vocab, &seed);
    tiny_write(spec, 9, base);
    write_adapter(path, spec, ALL_PARTS - 8, 4);
    write_as(base, "F32", true, whole);
    float *with = logits_of(base, path, tokens, &n), *merged = logits_of(whole, NULL, tokens, &n);
    float *plain = logits_of(base, NULL, tokens, &n);
    if (!(nmse(merged, with, n) < 1e-11 && nmse(plain, with, n) > 1e-3))
        fail_msg("merged: NMSE %g, the adapter's own %g", nmse(merged, with, n),
                 nmse(plain, with, n));
    free(with), free(merged), free(plain);
    for (int i = 0; i < n_types && !is_thin(); i++) {
        write_as(whole, types[i], false, typed);
        write_as(base, types[i], true, other);
        assert_same_tensors(typed, other);
        write_as(base, types[i], false, typed);
        write_as(typed, types[i], true, other);
        write_as(typed, "KEEP", true, kept);
        assert_same_tensors(other, kept);
    }
    dpi_gguf *gguf = open_gguf(whole);
    dpi_str name = {"", 0};
    assert_ok(dpi_gguf_get_string(gguf, "general.name", &name, NULL, ERR));
    assert_non_null(strstr(name.data, " + adapter made up"));
    dpi_gguf_close(gguf);
}

TEST(test_merge) {
    static const char *const types[] = {"F32",  "F16",  "BF16", "Q8_0",   "Q4_0",
                                        "Q4_1", "Q5_0", "Q5_1", "Q4_K_M", "Q5_K_M"};
    tiny_spec spec = tiny_default();
    check_merge(&spec, types, 8);
    spec = tiny_of(DPI_TYPE_Q4_K), spec.type = DPI_TYPE_F32; /* as wide as the mixtures need */
    check_merge(&spec, types + 8, 2);
}

/* An adapter of every matrix of the layers of a file, whatever it calls them. */
static void write_adapter_of(const char *base) {
    static float numbers[RANK * 512];
    dpi_gguf *gguf = open_gguf(base);
    dpi_str arch = {"", 0};
    char name[32];
    gguf_build b;
    uint64_t seed = 8;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)(.1 * random_normal(&seed));
    assert_ok(dpi_gguf_get_string(gguf, "general.architecture", &arch, NULL, ERR));
    snprintf(name, sizeof name, "%.*s", (int)arch.n_bytes, arch.data);
    begin_adapter(&b, "adapter", "lora", 4, name);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(gguf); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(gguf, i);
        if (strncmp(t->name, "blk.", 4) != 0 || t->n_dims != 2 || strstr(t->name, "conv1d"))
            continue;
        add_part(&b, t->name, "a", t->shape[0], RANK, numbers);
        add_part(&b, t->name, "b", RANK, t->shape[1], numbers + i);
    }
    end_adapter(&b, path);
    dpi_gguf_close(gguf);
}

/* The adapter beside the weights and within them; and the model in other types. */
static void check_architecture(const char *base) {
    char whole[300];
    int32_t tokens[N_TOKENS];
    uint64_t seed = 6;
    size_t n;
    snprintf(whole, sizeof whole, "%s/whole", dir);
    random_tokens(tokens, N_TOKENS, 512, &seed);
    write_as(base, "F32", true, whole);
    float *with = logits_of(base, path, tokens, &n);
    float *merged = logits_of(whole, NULL, tokens, &n);
    float *plain = logits_of(base, NULL, tokens, &n);
    write_as(base, "Q8_0", false, whole);
    float *small = logits_of(whole, NULL, tokens, &n);
    if (!(nmse(merged, with, n) < 1e-11 && nmse(plain, with, n) > 1e-3 &&
          nmse(small, plain, n) < 1e-2))
        fail_msg("%s: merged NMSE %g, the adapter's own %g, Q8_0 %g", base,
                 nmse(merged, with, n), nmse(plain, with, n), nmse(small, plain, n));
    free(with), free(merged), free(plain), free(small);
}

/* Each architecture in F32, with an adapter of all matrices, also of those that are one tensor. */
TEST(test_architectures) {
    static const char *const files[] = {"arch/qwen2-A",   "arch/qwen3-A",   "arch/gemma3-A",
                                        "arch/gemma2-A",  "arch/phi3-A",    "arch/smollm3-A",
                                        "arch/granite-A", "arch/olmo3-A",   "arch/mistral3-A",
                                        "arch/vaultgemma-A", "arch/qwen35-A",  "arch/gemma4-A",
                                        "arch/gemma4-e2b-A"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char base[400];
        snprintf(base, sizeof base, "%s.gguf", files[i]);
        require_data(base);
        snprintf(base, sizeof base, "%s", data_path(base));
        write_adapter_of(base);
        check_architecture(base);
    }
}

/* Where q, k and v are one tensor, an adapter may be of it or of each. */
TEST(test_joined) {
    static const char *const files[] = {"arch/qwen2-A.gguf", "arch/gemma4-A.gguf",
                                        "arch/gemma4-e2b-A.gguf"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char base[300], split[300];
        gguf_build b;
        require_data(files[i]);
        snprintf(split, sizeof split, "%s", data_path(files[i]));
        snprintf(base, sizeof base, "%s/joined", dir);
        build_joined(&b, split);
        write_file(base, b.data, b.n_bytes);
        build_free(&b);
        write_adapter_of(base);
        check_architecture(base);
        check_architecture(split);
        write_adapter_of(split);
        check_architecture(base);
    }
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void assert_refused_file(dpi_status wanted, const char *message) {
    tiny_spec spec = tiny_default();
    void *image;
    size_t n_bytes;
    dpi_model *model = NULL;
    tiny_build(&spec, 9, &image, &n_bytes);
    assert_status(try_adapter(image, n_bytes, 1, &model, ERR), wanted, message);
    assert_null(model);
    free(image);
}

/* A sound adapter's file with other keys, or with other tensors. */
#define REFUSED(type, kind, alpha, status, message, ...)                                           \
    do {                                                                                           \
        gguf_build b;                                                                              \
        begin_adapter(&b, type, kind, alpha, "llama");                                             \
        __VA_ARGS__;                                                                               \
        end_adapter(&b, path);                                                                     \
        assert_refused_file(DPI_STATUS_##status, message);                                         \
    } while (0)
#define REFUSED_TENSORS(status, message, ...)                                                      \
    REFUSED("adapter", "lora", 1, status, message, __VA_ARGS__)

TEST(test_other_architecture) {
    require_data("arch/qwen3-A.gguf");
    write_adapter_of(data_path("arch/qwen3-A.gguf"));
    assert_refused_file(DPI_STATUS_UNSUPPORTED, "is 'qwen3', that of the model is 'llama'");
}

/* A layer that reads the keys of another one has no matrix for them. */
TEST(test_refused_of_layer) {
    static const float x[64 * RANK];
    gguf_build b;
    size_t n_bytes;
    dpi_model *model = NULL;
    require_data("arch/gemma4-e2b-A.gguf");
    char *image = read_file(data_path("arch/gemma4-e2b-A.gguf"), &n_bytes);
    begin_adapter(&b, "adapter", "lora", 1, "gemma4");
    add_part(&b, "blk.3.attn_k.weight", "a", 64, RANK, x);
    end_adapter(&b, path);
    assert_error(try_adapter(image, n_bytes, 1, &model, ERR), UNSUPPORTED,
                 "blk.3.attn_k.weight.lora_a: an adapter may be of attn_q, attn_k, attn_v, "
                 "attn_output, ffn_gate, ffn_up, ffn_down, inp_gate, proj, of layers 0..4 that "
                 "have it");
    free(image);
}

TEST(test_refused) {
    static float x[64 * 2000];
    static const char q[] = "blk.0.attn_q.weight";
    REFUSED("model", "lora", 1, FORMAT, "general.type is 'model'", );
    REFUSED("adapter", "ia3", 1, FORMAT, "adapter.type is 'ia3'", );
    REFUSED("adapter", "lora", -1, FORMAT, "adapter.lora.alpha", );
    REFUSED_TENSORS(FORMAT, "without tensors", );
    REFUSED_TENSORS(UNSUPPORTED, "alora", build_u32(&b, "adapter.alora.invocation_tokens", 1));
    REFUSED_TENSORS(UNSUPPORTED, "adapter.lora.dropout", build_u32(&b, "adapter.lora.dropout", 1));
    static const char *const names[] = {
        "output.weight.lora_a",         "blk.2.attn_q.weight.lora_a", "blk.-1.attn_q.weight.lora_a",
        "blk.0.attn_q.weight",          "blk.0.attn_q.weight.lora_c", "blk.00.attn_q.weight.lora_a",
        "blk.0.attn_norm.weight.lora_a"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        REFUSED_TENSORS(UNSUPPORTED, names[i], add_part(&b, names[i], NULL, 64, 4, x));
    static const int64_t shapes[][4] = {
        {64, 4, 5, 64}, {63, 4, 4, 64}, {64, 4, 4, 63}, {64, 1500, 1500, 64}};
    for (int i = 0; i < 4; i++)
        REFUSED_TENSORS(FORMAT, "must be [64, rank] and [rank, 64]",
                        add_part(&b, q, "a", shapes[i][0], shapes[i][1], x),
                        add_part(&b, q, "b", shapes[i][2], shapes[i][3], x));
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "blk.0.attn_%c.weight", "qv"[i]);
        REFUSED_TENSORS(FORMAT, "another one is of the same weights",
                        add_part(&b, "blk.0.attn_qkv.weight", "a", 64, 4, x),
                        add_part(&b, "blk.0.attn_qkv.weight", "b", 4, 128, x),
                        add_part(&b, name, "a", 64, 4, x),
                        add_part(&b, name, "b", 4, i ? 32 : 64, x));
    }
    REFUSED_TENSORS(FORMAT, "has no lora_a beside it",
                    add_part(&b, "blk.1.ffn_up.weight", "b", 4, 96, x));
    x[17] = INFINITY;
    REFUSED_TENSORS(NUMERIC, "number 17 is inf", add_part(&b, q, "a", 64, 4, x),
                    add_part(&b, q, "b", 4, 64, x));
    write_file(path, "GGUF", 4);
    assert_refused_file(DPI_STATUS_FORMAT, "adapter.gguf");
    remove(path);
    assert_refused_file(DPI_STATUS_IO, "adapter.gguf");
}
