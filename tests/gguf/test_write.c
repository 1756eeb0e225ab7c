/* Files that are written: the GGUF builder, quantised models, made models. Read back by the loader,
 * which checks the container; compared with their source, with llama.cpp's mixture, with each
 * other. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "gguf/gguf_write.h"
#include "kernels/weight_types.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[128];

static int make_test_dir(void **state) {
    (void)state;
    make_dir(dir, sizeof dir);
    return 0;
}
static int remove_test_dir(void **state) {
    (void)state;
    remove_dir(dir);
    return 0;
}

static int count_files(void) {
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void assert_same_files(const char *a, const char *b, bool same) {
    size_t n_a, n_b;
    char *x = read_file(a, &n_a), *y = read_file(b, &n_b);
    assert_int_equal(n_a == n_b && memcmp(x, y, n_a) == 0, same);
    free(x), free(y);
}

/* ---- The builder ---------------------------------------------------------------------------- */

static dpi_gguf_builder *begin_two_tensors(void) {
    dpi_gguf_builder *w = NULL;
    dpi_error err;
    assert_ok(dpi_gguf_builder_create(path_in(dir, "w.gguf"), -1, &w, &err), &err);
    dpi_gguf_put_u32(w, "a", 7);
    dpi_gguf_put_f32(w, "b", 0.5f);
    dpi_gguf_put_bool(w, "c", true);
    dpi_gguf_put_string(w, "d", "text");
    static const unsigned char strings[] = {1, 0, 0, 0, 0, 0, 0, 0, 'x', 0, 0, 0, 0, 0, 0, 0, 0};
    dpi_gguf_put_array(w, "e", DPI_GGUF_STRING, 2, strings, sizeof strings);
    dpi_gguf_put_array(w, "f", DPI_GGUF_U8, 3, "\1\2\3", 3);
    dpi_gguf_put_tensor(w, "t1", DPI_TYPE_F32, 1, (int64_t[]){3});
    dpi_gguf_put_tensor(w, "t2", DPI_TYPE_Q4_0, 2, (int64_t[]){32, 2});
    return w;
}

static void test_builder(void **state) {
    (void)state;
    dpi_error err;
    dpi_gguf_builder *w = begin_two_tensors();
    unsigned char data[12 + 36];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i + 1);
    dpi_gguf_put_data(w, data, 5); /* pieces that do not respect tensors */
    dpi_gguf_put_data(w, data + 5, 30);
    dpi_gguf_put_data(w, data + 35, 13);
    assert_int_not_equal(access(path_in(dir, "w.gguf"), F_OK), 0); /* not before it is whole */
    assert_false(dpi_gguf_builder_failed(w));
    assert_ok(dpi_gguf_builder_finish(w, &err), &err);
    assert_int_equal(count_files(), 1);

    dpi_gguf *g = NULL;
    int64_t a = 0;
    double b = 0;
    bool c = false;
    dpi_str d = {"", 0};
    const dpi_gguf_kv *e = NULL, *f = NULL;
    assert_ok(dpi_gguf_open(path_in(dir, "w.gguf"), true, &g, &err), &err);
    assert_int_equal(dpi_gguf_kv_count(g), 6);
    assert_ok(dpi_gguf_get_int(g, "a", 0, 100, &a, NULL, &err), &err);
    assert_ok(dpi_gguf_get_float(g, "b", 0, 100, &b, NULL, &err), &err);
    assert_ok(dpi_gguf_get_bool(g, "c", &c, NULL, &err), &err);
    assert_ok(dpi_gguf_get_string(g, "d", &d, NULL, &err), &err);
    assert_ok(dpi_gguf_get_array(g, "e", DPI_GGUF_STRING, &e, &err), &err);
    assert_ok(dpi_gguf_get_array(g, "f", DPI_GGUF_U8, &f, &err), &err);
    assert_true(a == 7 && b == 0.5 && c && d.n_bytes == 4 && memcmp(d.data, "text", 4) == 0);
    assert_true(e->n_items == 2 && f->n_items == 3 && f->data[2] == 3);
    const dpi_gguf_tensor *t1 = dpi_gguf_tensor_find(g, "t1"), *t2 = dpi_gguf_tensor_find(g, "t2");
    assert_true(t1 && t2 && t1->offset % 32 == 0 && t2->offset == t1->offset + 32);
    assert_memory_equal(t1->data, data, 12);
    assert_memory_equal(t2->data, data + 12, 36);
    assert_true(t2->type == DPI_TYPE_Q4_0 && t2->shape[0] == 32 && t2->shape[1] == 2);
    dpi_gguf_close(g);
}

static void test_builder_refuses(void **state) {
    (void)state;
    dpi_error err;
    dpi_gguf_builder *w = NULL;
    unsigned char data[100] = {0};
    assert_error(dpi_gguf_builder_create(path_in(dir, "no/w.gguf"), -1, &w, &err), DPI_STATUS_IO,
                 &err, "cannot be created");
    assert_error(dpi_gguf_builder_create(dir, -1, &w, &err), DPI_STATUS_IO, &err,
                 "not a regular file");
    assert_error(dpi_gguf_builder_create("/dev/full", -1, &w, &err), DPI_STATUS_IO, &err,
                 "not a regular file");
    assert_null(w);
    w = begin_two_tensors();
    dpi_gguf_put_data(w, data, 12);
    assert_error(dpi_gguf_builder_finish(w, &err), DPI_STATUS_STATE, &err,
                 "data of 1 of 2 tensors");
    w = begin_two_tensors();
    dpi_gguf_put_data(w, data, 49);
    assert_error(dpi_gguf_builder_finish(w, &err), DPI_STATUS_STATE, &err, "more data");
    w = begin_two_tensors();
    dpi_gguf_put_tensor(w, "t3", DPI_TYPE_Q4_0, 1, (int64_t[]){33});
    assert_true(dpi_gguf_builder_failed(w));
    assert_error(dpi_gguf_builder_finish(w, &err), DPI_STATUS_LIMIT, &err, "tensor t3");
    w = begin_two_tensors();
    dpi_gguf_put_data(w, data, 20);
    dpi_gguf_builder_discard(w);
    assert_int_equal(count_files(), 0); /* nothing stays behind */
}

/* A disk that is full: a limit on the file's size. */
static void test_full_disk(void **state) {
    (void)state;
    struct rlimit old, small = {0};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 100000;
    dpi_model_shape shape = {.struct_size = sizeof shape, .n_layer = 1, .n_embd = 64, .n_ff = 64,
                             .n_head = 2, .n_kv_head = 1, .n_vocab = 1000, .n_ctx_train = 64,
                             .rope_freq_base = 10000};
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = "F32";
    dpi_error err;
    setrlimit(RLIMIT_FSIZE, &small);
    dpi_status status = dpi_model_make(&shape, NULL, 1, path_in(dir, "m.gguf"), &o, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_error(status, DPI_STATUS_SYSTEM, &err, "cannot be written: File too large");
    assert_int_equal(count_files(), 0);
}

/* Opens a model and reads every weight. */
static dpi_model *open_checked(const char *path) {
    dpi_model_options o;
    dpi_model *model = NULL;
    dpi_error err;
    dpi_model_options_init(&o);
    o.check_weights = 1;
    assert_ok(dpi_model_open(path, &o, &model, &err), &err);
    return model;
}

/* ---- Quantised models ------------------------------------------------------------------------ */

static dpi_status quantize(const char *in, const char *out, const char *type, int32_t n_threads,
                           dpi_error *err) {
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = type;
    o.n_threads = n_threads;
    return dpi_model_quantize(in, out, &o, err);
}

static const char *write_tiny(const tiny_spec *spec) {
    void *image;
    size_t n_bytes;
    tiny_build(spec, 1, &image, &n_bytes);
    write_file(path_in(dir, "in.gguf"), image, n_bytes);
    free(image);
    return path_in(dir, "in.gguf");
}

static double tensor_nmse(const dpi_gguf_tensor *a, const dpi_gguf_tensor *b) {
    int64_t n = a->shape[0] * a->shape[1];
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    assert_true(x && y);
    dpi_type_find(a->type)->dequantize(a->data, x, n);
    dpi_type_find(b->type)->dequantize(b->data, y, n);
    double error = 0, power = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        power += (double)x[i] * (double)x[i];
    }
    free(x), free(y);
    return error / power;
}

/* Every tensor of `out` is that of `in` but for rounding; every matrix is `type`; every key is
 * there. */
static void check_quantized(const char *in, const char *out, uint32_t type, double error) {
    dpi_gguf *a = NULL, *b = NULL;
    dpi_error err;
    assert_ok(dpi_gguf_open(in, true, &a, &err), &err);
    assert_ok(dpi_gguf_open(out, true, &b, &err), &err);
    assert_int_equal(dpi_gguf_tensor_count(a), dpi_gguf_tensor_count(b));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(a); i++) {
        const dpi_gguf_tensor *x = dpi_gguf_tensor_at(a, i);
        const dpi_gguf_tensor *y = dpi_gguf_tensor_find(b, x->name);
        assert_non_null(y);
        assert_memory_equal(x->shape, y->shape, sizeof x->shape);
        assert_int_equal(y->type, x->n_dims == 1 ? x->type : type);
        double found = tensor_nmse(x, y);
        if (!(found <= (x->n_dims == 1 ? 0 : error)))
            fail_msg("%s as %s: NMSE %g", x->name, dpi_type_name(type), found);
    }
    for (int64_t i = 0; i < dpi_gguf_kv_count(a); i++) {
        const dpi_gguf_kv *x = dpi_gguf_kv_at(a, i), *y = dpi_gguf_find(b, x->key);
        assert_non_null(y);
        assert_true(x->type == y->type && x->n_bytes == y->n_bytes);
        assert_memory_equal(x->data, y->data, x->n_bytes);
    }
    assert_int_equal(dpi_gguf_kv_count(b), dpi_gguf_kv_count(a) + 2); /* file_type, version */
    dpi_gguf_close(a);
    dpi_gguf_close(b);
    dpi_model_close(open_checked(out));
}

static void test_quantize(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    spec.n_embd = spec.n_ff = 256, spec.n_layer = 1, spec.bias = 1;
    const char *in = write_tiny(&spec);
    static const struct {
        const char *name;
        uint32_t type;
        double error; /* what llama.cpp reaches on normal weights, and 3 % for the sample */
    } cases[] = {
        {"F32", DPI_TYPE_F32, 0},          {"F16", DPI_TYPE_F16, 8e-8},
        {"BF16", DPI_TYPE_BF16, 5.1e-6},   {"Q8_0", DPI_TYPE_Q8_0, 2.95e-5},
        {"Q4_0", DPI_TYPE_Q4_0, 7.6e-3},   {"Q4_1", DPI_TYPE_Q4_1, 6.3e-3},
        {"Q5_0", DPI_TYPE_Q5_0, 1.88e-3},  {"Q5_1", DPI_TYPE_Q5_1, 1.48e-3},
        {"Q4_K", DPI_TYPE_Q4_K, 5.37e-3},  {"Q5_K", DPI_TYPE_Q5_K, 1.53e-3},
        {"Q6_K", DPI_TYPE_Q6_K, 3.29e-4},
    };
    dpi_error err;
    const char *out = path_in(dir, "out.gguf"), *again = path_in(dir, "again.gguf");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(quantize(in, out, cases[i].name, 1, &err), &err);
        check_quantized(in, out, cases[i].type, cases[i].error);
        assert_ok(quantize(in, again, cases[i].name, 3, &err), &err);
        assert_same_files(out, again, true);
        assert_ok(quantize(out, again, cases[i].name, 2, &err), &err); /* already so: a copy */
        assert_same_files(out, again, true);
    }
    assert_int_equal(count_files(), 3);
}

static void assert_types(const char *path, const char *const names[][2], size_t n) {
    dpi_gguf *g = NULL;
    dpi_error err;
    assert_ok(dpi_gguf_open(path, true, &g, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_find(g, names[i][0]);
        assert_non_null(t);
        if (strcmp(dpi_type_name(t->type), names[i][1]) != 0)
            fail_msg("%s is %s, must be %s", t->name, dpi_type_name(t->type), names[i][1]);
    }
    dpi_gguf_close(g);
}

/* What llama.cpp falls back to where rows do not fit. */
static void test_fallback(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    spec.n_embd = 320, spec.n_ff = 512, spec.n_layer = 1;
    const char *in = write_tiny(&spec), *out = path_in(dir, "out.gguf");
    dpi_error err;
    static const char *const q4[][2] = {{"blk.0.attn_q.weight", "Q5_0"},
                                        {"blk.0.ffn_down.weight", "Q4_K"},
                                        {"output.weight", "Q5_0"}};
    static const char *const q4_m[][2] = {{"blk.0.attn_q.weight", "Q5_0"},
                                          {"output.weight", "Q8_0"}};
    static const char *const q5[][2] = {{"blk.0.attn_q.weight", "Q5_1"}};
    static const char *const q6[][2] = {{"blk.0.attn_q.weight", "Q8_0"},
                                        {"blk.0.attn_norm.weight", "F32"}};
    assert_ok(quantize(in, out, "Q4_K", 2, &err), &err);
    assert_types(out, q4, 3);
    assert_ok(quantize(in, out, "Q4_K_M", 2, &err), &err);
    assert_types(out, q4_m, 2);
    assert_ok(quantize(in, out, "Q5_K", 2, &err), &err);
    assert_types(out, q5, 1);
    assert_ok(quantize(in, out, "Q6_K", 2, &err), &err);
    assert_types(out, q6, 2);
    spec.n_embd = 80;
    in = write_tiny(&spec);
    static const char *const f16[][2] = {{"blk.0.attn_q.weight", "F16"},
                                         {"blk.0.ffn_down.weight", "Q4_0"}};
    assert_ok(quantize(in, out, "Q4_0", 2, &err), &err);
    assert_types(out, f16, 2);
}

/* The types of every tensor, as llama.cpp chose them. */
static void test_mixture_golden(void **state) {
    (void)state;
    require_data("models/tiny-gqa-Q4_K_M.gguf");
    dpi_gguf *a = NULL, *b = NULL;
    dpi_error err;
    const char *in = data_path("models/tiny-gqa-F32.gguf");
    assert_ok(quantize(in, path_in(dir, "out.gguf"), "Q4_K_M", 0, &err), &err);
    assert_ok(dpi_gguf_open(data_path("models/tiny-gqa-Q4_K_M.gguf"), true, &a, &err), &err);
    assert_ok(dpi_gguf_open(path_in(dir, "out.gguf"), true, &b, &err), &err);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(a); i++) {
        const dpi_gguf_tensor *x = dpi_gguf_tensor_at(a, i);
        const dpi_gguf_tensor *y = dpi_gguf_tensor_find(b, x->name);
        assert_true(y && x->type == y->type);
    }
    dpi_gguf_close(a);
    dpi_gguf_close(b);
}

/* attn_v and ffn_down of 22 layers (TinyLlama) in Q6_K: first and last eighth, every third between.
 * The list is that of TinyLlama's Q4_K_M file. */
static void test_mixture_layers(void **state) {
    (void)state;
    static const int more[] = {0, 1, 4, 7, 10, 13, 16, 19, 20, 21};
    dpi_model_shape shape = {.struct_size = sizeof shape, .n_layer = 22, .n_embd = 256, .n_ff = 256,
                             .n_head = 4, .n_kv_head = 2, .n_vocab = 300, .n_ctx_train = 64,
                             .tied_output = 1, .rope_freq_base = 10000};
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = "Q5_K_M";
    dpi_error err;
    assert_ok(dpi_model_make(&shape, NULL, 1, path_in(dir, "m.gguf"), &o, &err), &err);
    for (int i = 0, j = 0; i < 22; i++) {
        bool is_more = j < 10 && more[j] == i;
        j += is_more;
        char v[64], down[64], gate[64];
        snprintf(v, sizeof v, "blk.%d.attn_v.weight", i);
        snprintf(down, sizeof down, "blk.%d.ffn_down.weight", i);
        snprintf(gate, sizeof gate, "blk.%d.ffn_gate.weight", i);
        const char *wanted = is_more ? "Q6_K" : "Q5_K";
        const char *const types[][2] = {{v, wanted}, {down, wanted}, {gate, "Q5_K"}};
        assert_types(path_in(dir, "m.gguf"), types, 3);
    }
    static const char *const head[][2] = {{"token_embd.weight", "Q6_K"},
                                          {"output_norm.weight", "F32"}};
    assert_types(path_in(dir, "m.gguf"), head, 2);
}

static int32_t cancel_third(void *user) { return ++*(int *)user == 3; }

static void test_quantize_refuses(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    const char *in = write_tiny(&spec), *out = path_in(dir, "out.gguf");
    const char *with_bad = path_in(dir, "bad.gguf");
    dpi_error err;
    assert_error(quantize(in, in, "Q8_0", 1, &err), DPI_STATUS_ARG, &err, "output is the input");
    assert_error(quantize(in, out, "Q2_K", 1, &err), DPI_STATUS_ARG, &err,
                 "type 'Q2_K' cannot be written, allowed: F32 F16 BF16");
    assert_error(quantize(in, out, "Q8_0", -1, &err), DPI_STATUS_ARG, &err, "n_threads is -1");
    assert_error(quantize(path_in(dir, "none"), out, "Q8_0", 1, &err), DPI_STATUS_IO, &err, "none");
    int asked = 0;
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = "Q8_0";
    o.cancel = cancel_third;
    o.user = &asked;
    assert_error(dpi_model_quantize(in, out, &o, &err), DPI_STATUS_CANCELLED, &err, "cancelled");
    o.struct_size = 1;
    assert_error(dpi_model_quantize(in, out, &o, &err), DPI_STATUS_ARG, &err, "struct_size is 1");
    assert_int_equal(count_files(), 1);

    /* Values that a type cannot hold. */
    dpi_gguf *g = NULL;
    size_t n_bytes;
    char *image = read_file(in, &n_bytes);
    assert_ok(dpi_gguf_open(in, true, &g, &err), &err);
    uint64_t at = dpi_gguf_tensor_find(g, "blk.1.ffn_up.weight")->offset;
    dpi_gguf_close(g);
    static const float bad[] = {NAN, INFINITY, 65505};
    for (int i = 0; i < 3; i++) {
        memcpy(image + at + 64 * 4 * 5 + 4, &bad[i], 4);
        write_file(with_bad, image, n_bytes);
        assert_error(quantize(with_bad, out, "Q4_0", 2, &err), DPI_STATUS_NUMERIC, &err,
                     "tensor blk.1.ffn_up.weight, row 5 has a weight that Q4_0 cannot hold");
        assert_int_equal(err.offset, at + 64 * 4 * 5);
    }
    assert_ok(quantize(with_bad, out, "BF16", 2, &err), &err); /* 65505 fits there */
    free(image);
}

/* ---- Made models ----------------------------------------------------------------------------- */

static dpi_model_shape small_shape(void) {
    return (dpi_model_shape){.struct_size = sizeof(dpi_model_shape), .n_layer = 2, .n_embd = 96,
                             .n_ff = 160, .n_head = 6, .n_kv_head = 3, .n_vocab = 2000,
                             .n_ctx_train = 128, .rope_freq_base = 50000};
}

static dpi_status make(const dpi_model_shape *shape, const char *vocab, uint64_t seed,
                       const char *name, const char *type, dpi_error *err) {
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = type;
    return dpi_model_make(shape, vocab, seed, path_in(dir, name), &o, err);
}

/* The model computes: logits of deviation about 3 after every token of a text. */
static void check_logits(dpi_model *model, int32_t n_vocab) {
    static const char text[] = "a made up text, 123 \xc3\xa9!";
    int32_t tokens[128];
    size_t n;
    dpi_error err;
    assert_ok(dpi_tokenize(model, text, strlen(text), DPI_TOKENIZE_BOS, tokens, 128, &n, &err),
              &err);
    dpi_decoder *decoder = NULL;
    assert_ok(dpi_decoder_create(model, &decoder, &err), &err);
    char back[64] = "";
    for (size_t i = 0; i < n; i++) {
        const char *piece;
        size_t n_bytes;
        assert_ok(dpi_decoder_push(decoder, tokens[i], &piece, &n_bytes, &err), &err);
        strncat(back, piece, n_bytes);
    }
    assert_string_equal(back[0] == ' ' ? back + 1 : back, text);
    dpi_decoder_free(decoder);
    dpi_session *s = NULL;
    float *logits = malloc(n * (size_t)n_vocab * sizeof *logits);
    assert_non_null(logits);
    assert_ok(dpi_session_create(model, NULL, &s, &err), &err);
    assert_ok(dpi_session_prefill(s, 0, tokens, n, logits, &err), &err);
    double square = 0;
    for (size_t i = 0; i < n * (size_t)n_vocab; i++)
        square += (double)logits[i] * (double)logits[i];
    double deviation = sqrt(square / (double)(n * (size_t)n_vocab));
    assert_true(deviation > 2 && deviation < 4.5);
    free(logits);
    dpi_session_free(s);
}

static void test_make(void **state) {
    (void)state;
    static const char *const types[] = {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0",
                                        "Q5_1", "Q4_K", "Q5_K", "Q6_K", "Q4_K_M", "Q5_K_M"};
    dpi_error err;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        dpi_model_shape shape = small_shape();
        if (i >= 8)
            shape.n_embd = 256, shape.n_head = 4, shape.n_kv_head = 1, shape.n_ff = 320;
        shape.tied_output = (int32_t)i % 2;
        assert_ok(make(&shape, NULL, 1, "m.gguf", types[i], &err), &err);
        dpi_model *model = open_checked(path_in(dir, "m.gguf"));
        dpi_model_info info = {.struct_size = sizeof info};
        assert_ok(dpi_model_info_get(model, &info, &err), &err);
        assert_true(info.random_weights == 1 && info.n_layer == 2 && info.n_embd == shape.n_embd);
        assert_true(info.n_ff == shape.n_ff && info.n_head == shape.n_head && info.n_vocab == 2000);
        assert_true(info.n_kv_head == shape.n_kv_head && info.tied_output == shape.tied_output);
        assert_true(info.n_ctx_train == 128 && info.rope_freq_base == 50000);
        check_logits(model, 2000);
        dpi_model_close(model);
    }
}

static void test_make_seed(void **state) {
    (void)state;
    dpi_model_shape shape = small_shape();
    dpi_error err;
    assert_ok(make(&shape, NULL, 5, "a.gguf", "Q4_0", &err), &err);
    assert_ok(make(&shape, NULL, 5, "b.gguf", "Q4_0", &err), &err);
    assert_ok(make(&shape, NULL, 6, "c.gguf", "Q4_0", &err), &err);
    assert_same_files(path_in(dir, "a.gguf"), path_in(dir, "b.gguf"), true);
    assert_same_files(path_in(dir, "a.gguf"), path_in(dir, "c.gguf"), false);
}

static void test_make_vocab(void **state) {
    (void)state;
    require_data("models/stories260K.gguf");
    dpi_model_shape shape = small_shape();
    dpi_error err;
    assert_ok(make(&shape, data_path("models/stories260K.gguf"), 1, "m.gguf", "Q8_0", &err), &err);
    dpi_model *a = NULL, *b = NULL;
    assert_ok(dpi_model_open(path_in(dir, "m.gguf"), NULL, &a, &err), &err);
    assert_ok(dpi_model_open(data_path("models/stories260K.gguf"), NULL, &b, &err), &err);
    int32_t x[64], y[64];
    size_t n_x, n_y;
    assert_ok(dpi_tokenize(a, "once upon a time", 16, 1, x, 64, &n_x, &err), &err);
    assert_ok(dpi_tokenize(b, "once upon a time", 16, 1, y, 64, &n_y, &err), &err);
    assert_true(n_x == n_y && memcmp(x, y, n_x * sizeof *x) == 0);
    check_logits(a, 512);
    dpi_model_close(a);
    dpi_model_close(b);
    assert_error(make(&shape, path_in(dir, "none"), 1, "x.gguf", "Q8_0", &err), DPI_STATUS_IO, &err,
                 "none");
    assert_int_equal(count_files(), 1);
}

static void test_make_refuses(void **state) {
    (void)state;
    dpi_error err;
    dpi_model_shape s = small_shape();
    s.n_head = 5;
    assert_error(make(&s, NULL, 1, "m", "F16", &err), DPI_STATUS_ARG, &err,
                 "even multiple of n_head");
    s = small_shape(), s.n_kv_head = 4;
    assert_error(make(&s, NULL, 1, "m", "F16", &err), DPI_STATUS_ARG, &err,
                 "multiple of n_kv_head");
    s = small_shape(), s.n_layer = 0;
    assert_error(make(&s, NULL, 1, "m", "F16", &err), DPI_STATUS_ARG, &err,
                 "n_layer is 0, must be 1..4096");
    s = small_shape(), s.n_vocab = 259;
    assert_error(make(&s, NULL, 1, "m", "F16", &err), DPI_STATUS_ARG, &err, "n_vocab is 259");
    s = small_shape(), s.rope_freq_base = NAN;
    assert_error(make(&s, NULL, 1, "m", "F16", &err), DPI_STATUS_ARG, &err, "rope_freq_base");
    s.struct_size = 4;
    assert_error(make(&s, NULL, 1, "m", "F16", &err), DPI_STATUS_ARG, &err, "struct_size is 4");
    s = small_shape();
    assert_error(make(&s, NULL, 1, "m", "IQ4_NL", &err), DPI_STATUS_ARG, &err, "type 'IQ4_NL'");
    assert_error(dpi_model_shape_find("gpt-5", &s, &err), DPI_STATUS_ARG, &err,
                 "tinyllama-1.1b, llama-3.2-1b, llama-3-8b");
    assert_int_equal(count_files(), 0);
}

/* docs/spec.md's table of shapes; weights read per token of TinyLlama: 1.034e9. */
static void test_shapes(void **state) {
    (void)state;
    dpi_error err;
    dpi_model_shape s = {.struct_size = sizeof s};
    assert_ok(dpi_model_shape_find("tinyllama-1.1b", &s, &err), &err);
    int64_t per_layer = 2ll * s.n_embd * s.n_embd + 3ll * s.n_embd * s.n_ff +
                        2ll * s.n_embd * s.n_embd / s.n_head * s.n_kv_head;
    double weights = (double)(per_layer * s.n_layer + (int64_t)s.n_vocab * s.n_embd);
    assert_true(fabs(weights / 1.034e9 - 1) < 0.001 && s.n_kv_head == 4 && !s.tied_output);
    assert_ok(dpi_model_shape_find("llama-3.2-1b", &s, &err), &err);
    assert_true(s.n_layer == 16 && s.n_embd == 2048 && s.n_ff == 8192 && s.n_head == 32);
    assert_true(s.n_kv_head == 8 && s.n_vocab == 128256 && s.tied_output);
    assert_ok(dpi_model_shape_find("llama-3-8b", &s, &err), &err);
    assert_true(s.n_layer == 32 && s.n_embd == 4096 && s.n_ff == 14336 && s.n_head == 32);
    assert_true(s.n_kv_head == 8 && s.n_vocab == 128256 && !s.tied_output);
}

/* Each allocation failing once: an error, and nothing stays behind. */
static void test_failing_allocations(void **state) {
    (void)state;
    dpi_model_shape shape = small_shape();
    dpi_error err;
    for (int what = 0; what < 2; what++) {
        assert_ok(make(&shape, NULL, 1, "in.gguf", "F16", &err), &err);
        for (int64_t n = 1;; n++) {
            fail_allocation(n);
            dpi_status status =
                what ? quantize(path_in(dir, "in.gguf"), path_in(dir, "out.gguf"), "Q8_0", 1, &err)
                     : make(&shape, NULL, 1, "out.gguf", "Q8_0", &err);
            bool failed = fail_allocation(0) >= n;
            assert_int_equal(status, failed ? DPI_STATUS_MEMORY : DPI_STATUS_OK);
            assert_int_equal(count_files(), failed ? 1 : 2);
            if (!failed)
                break;
            assert_true(n < 10000);
        }
        remove(path_in(dir, "out.gguf"));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_test_dir, remove_test_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_builder),         TEST(test_builder_refuses), TEST(test_full_disk),
        TEST(test_quantize),       TEST(test_fallback),       TEST(test_mixture_golden),
        TEST(test_mixture_layers), TEST(test_quantize_refuses), TEST(test_make),
        TEST(test_make_seed),      TEST(test_make_vocab),     TEST(test_make_refuses),
        TEST(test_shapes),         TEST(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
