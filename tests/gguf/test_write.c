/* Files that are written: the GGUF builder, quantised models, made models. Read back by the loader,
 * which checks the container; compared with their source, with llama.cpp's mixture, with each
 * other. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/model.h"
#include "gguf/gguf.h"
#include "gguf/gguf_write.h"
#include "kernels/weight_types.h"
#include "tests/support/failing.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static char dir[128];

SETUP_EACH { make_dir(dir, sizeof dir); }
TEARDOWN_EACH { remove_dir(dir); }

/* Files in the test's directory. */
static const char *at(const char *name) { return path_in(dir, name); }

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
    char *x = read_file(at(a), &n_a), *y = read_file(at(b), &n_b);
    assert_int_equal(n_a == n_b && memcmp(x, y, n_a) == 0, same);
    free(x), free(y);
}

static dpi_gguf *open_gguf(const char *path) {
    dpi_gguf *g = NULL;
    assert_ok(dpi_gguf_open(path, true, &g, ERR));
    return g;
}

/* The model of a file, with every weight read. */
static dpi_model *open_checked(const char *name) {
    dpi_model_options o;
    dpi_model *model = NULL;
    dpi_model_options_init(&o);
    o.check_weights = 1;
    assert_ok(dpi_model_open(at(name), &o, &model, ERR));
    return model;
}

/* ---- The builder ---------------------------------------------------------------------------- */

static dpi_gguf_builder *begin_two_tensors(void) {
    static const unsigned char strings[] = {1, 0, 0, 0, 0, 0, 0, 0, 'x', 0, 0, 0, 0, 0, 0, 0, 0};
    dpi_gguf_builder *w = NULL;
    assert_ok(dpi_gguf_builder_create(at("w.gguf"), -1, &w, ERR));
    dpi_gguf_put_u32(w, "a", 7);
    dpi_gguf_put_f32(w, "b", 0.5f);
    dpi_gguf_put_bool(w, "c", true);
    dpi_gguf_put_string(w, "d", "text");
    dpi_gguf_put_array(w, "e", DPI_GGUF_STRING, 2, strings, sizeof strings);
    dpi_gguf_put_array(w, "f", DPI_GGUF_U8, 3, "\1\2\3", 3);
    dpi_gguf_put_tensor(w, "t1", DPI_TYPE_F32, 1, (int64_t[]){3});
    dpi_gguf_put_tensor(w, "t2", DPI_TYPE_Q4_0, 2, (int64_t[]){32, 2});
    return w;
}

TEST(test_builder) {
    dpi_gguf_builder *w = begin_two_tensors();
    unsigned char data[12 + 36];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i + 1);
    dpi_gguf_put_data(w, data, 5); /* pieces that do not respect tensors */
    dpi_gguf_put_data(w, data + 5, 30);
    dpi_gguf_put_data(w, data + 35, 13);
    assert_int_not_equal(access(at("w.gguf"), F_OK), 0); /* not before it is whole */
    assert_false(dpi_gguf_builder_failed(w));
    assert_ok(dpi_gguf_builder_finish(w, ERR));
    assert_int_equal(count_files(), 1);

    dpi_gguf *g = open_gguf(at("w.gguf"));
    int64_t a = 0;
    double b = 0;
    bool c = false;
    dpi_str d = {"", 0};
    const dpi_gguf_kv *e = NULL, *f = NULL;
    assert_int_equal(dpi_gguf_kv_count(g), 6);
    assert_ok(dpi_gguf_get_int(g, "a", 0, 100, &a, NULL, ERR));
    assert_ok(dpi_gguf_get_float(g, "b", 0, 100, &b, NULL, ERR));
    assert_ok(dpi_gguf_get_bool(g, "c", &c, NULL, ERR));
    assert_ok(dpi_gguf_get_string(g, "d", &d, NULL, ERR));
    assert_ok(dpi_gguf_get_array(g, "e", DPI_GGUF_STRING, &e, ERR));
    assert_ok(dpi_gguf_get_array(g, "f", DPI_GGUF_U8, &f, ERR));
    assert_true(a == 7 && b == 0.5 && c && d.n_bytes == 4 && memcmp(d.data, "text", 4) == 0);
    assert_true(e->n_items == 2 && f->n_items == 3 && f->data[2] == 3);
    const dpi_gguf_tensor *t1 = dpi_gguf_tensor_find(g, "t1"), *t2 = dpi_gguf_tensor_find(g, "t2");
    assert_true(t1 && t2 && t1->offset % 32 == 0 && t2->offset == t1->offset + 32);
    assert_memory_equal(t1->data, data, 12);
    assert_memory_equal(t2->data, data + 12, 36);
    assert_true(t2->type == DPI_TYPE_Q4_0 && t2->shape[0] == 32 && t2->shape[1] == 2);
    dpi_gguf_close(g);
}

TEST(test_builder_refuses) {
    dpi_gguf_builder *w = NULL;
    unsigned char data[100] = {0};
    assert_error(dpi_gguf_builder_create(at("no/w.gguf"), -1, &w, ERR), IO, "cannot be created");
    assert_error(dpi_gguf_builder_create(dir, -1, &w, ERR), IO, "not a regular file");
    assert_error(dpi_gguf_builder_create("/dev/full", -1, &w, ERR), IO, "not a regular file");
    assert_null(w);
    w = begin_two_tensors();
    dpi_gguf_put_data(w, data, 12);
    assert_error(dpi_gguf_builder_finish(w, ERR), STATE, "data of 1 of 2 tensors");
    w = begin_two_tensors();
    dpi_gguf_put_data(w, data, 49);
    assert_error(dpi_gguf_builder_finish(w, ERR), STATE, "more data");
    w = begin_two_tensors();
    dpi_gguf_put_tensor(w, "t3", DPI_TYPE_Q4_0, 1, (int64_t[]){33});
    assert_true(dpi_gguf_builder_failed(w));
    assert_error(dpi_gguf_builder_finish(w, ERR), LIMIT, "tensor t3");
    w = begin_two_tensors();
    dpi_gguf_put_data(w, data, 20);
    dpi_gguf_builder_discard(w);
    assert_int_equal(count_files(), 0); /* nothing stays behind */
}

/* ---- Quantised models ------------------------------------------------------------------------ */

static dpi_status quantize_file(const char *in, const char *out, const char *type,
                                int32_t n_threads) {
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = type, o.n_threads = n_threads;
    return dpi_model_quantize(in, at(out), &o, ERR);
}

static dpi_status quantize(const char *in, const char *out, const char *type, int32_t n_threads) {
    return quantize_file(at(in), out, type, n_threads);
}

/* Every matrix of `out` is that of `in` as its type's quantiser has it, whose error test_quantize.c
 * knows; every other tensor and every key are the same. */
static void check_quantized(const char *in, const char *out, const char *type) {
    static unsigned char wanted[4200 * 256 * 4];
    dpi_gguf *a = open_gguf(at(in)), *b = open_gguf(at(out));
    assert_int_equal(dpi_gguf_tensor_count(a), dpi_gguf_tensor_count(b));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(a); i++) {
        const dpi_gguf_tensor *x = dpi_gguf_tensor_at(a, i);
        const dpi_gguf_tensor *y = dpi_gguf_tensor_find(b, x->name);
        assert_non_null(y);
        assert_memory_equal(x->shape, y->shape, sizeof x->shape);
        assert_string_equal(dpi_type_name(y->type), x->n_dims == 1 ? "F32" : type);
        memcpy(wanted, x->data, x->n_bytes);
        if (y->type != x->type)
            dpi_type_find(y->type)->quantize((const float *)x->data, wanted,
                                             x->shape[0] * x->shape[1]);
        assert_memory_equal(y->data, wanted, y->n_bytes);
    }
    for (int64_t i = 0; i < dpi_gguf_kv_count(a); i++) {
        const dpi_gguf_kv *x = dpi_gguf_kv_at(a, i), *y = dpi_gguf_find(b, x->key);
        assert_true(y && x->type == y->type && x->n_bytes == y->n_bytes);
        assert_memory_equal(x->data, y->data, x->n_bytes);
    }
    assert_int_equal(dpi_gguf_kv_count(b), dpi_gguf_kv_count(a) + 2); /* file_type, version */
    dpi_gguf_close(a), dpi_gguf_close(b);
    dpi_model_close(open_checked(out));
}

TEST(test_quantize) {
    static const char *const types[] = {"F32",  "F16",  "BF16", "Q8_0", "Q4_0", "Q4_1",
                                        "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"};
    tiny_spec spec = tiny_default();
    spec.n_embd = spec.n_ff = 256, spec.n_layer = 1, spec.bias = 1;
    tiny_write(&spec, 1, at("in"));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_ok(quantize("in", "out", types[i], 1));
        check_quantized("in", "out", types[i]);
        assert_ok(quantize("in", "again", types[i], 3));
        assert_same_files("out", "again", true);
        assert_ok(quantize("out", "again", types[i], 2)); /* already so: a copy */
        assert_same_files("out", "again", true);
    }
    assert_int_equal(count_files(), 3);
    spec.n_vocab = 4200, spec.tied = 1; /* more weights than are read at once */
    tiny_write(&spec, 1, at("in"));
    assert_ok(quantize("in", "out", "Q8_0", 2));
    check_quantized("in", "out", "Q8_0");
}

/* A tensor of a file, of a layer or (-1) of none, is of this type. */
static void assert_type(const char *file, int layer, const char *tensor, const char *type) {
    char name[64];
    if (layer < 0)
        snprintf(name, sizeof name, "%s.weight", tensor);
    else
        snprintf(name, sizeof name, "blk.%d.%s.weight", layer, tensor);
    dpi_gguf *g = open_gguf(at(file));
    const dpi_gguf_tensor *t = dpi_gguf_tensor_find(g, name);
    assert_non_null(t);
    if (strcmp(dpi_type_name(t->type), type) != 0)
        fail_msg("%s is %s, must be %s", name, dpi_type_name(t->type), type);
    dpi_gguf_close(g);
}

/* What llama.cpp falls back to where rows do not fit. */
TEST(test_fallback) {
    static const struct {
        int32_t n_embd;
        const char *type, *tensor, *wanted;
    } cases[] = {
        {320, "Q4_K", "attn_q", "Q5_0"},   {320, "Q4_K", "ffn_down", "Q4_K"},
        {320, "Q4_K", "output", "Q5_0"},   {320, "Q4_K_M", "attn_q", "Q5_0"},
        {320, "Q4_K_M", "output", "Q8_0"}, {320, "Q5_K", "attn_q", "Q5_1"},
        {320, "Q6_K", "attn_q", "Q8_0"},   {320, "Q6_K", "attn_norm", "F32"},
        {80, "Q4_0", "attn_q", "F16"},     {80, "Q4_0", "ffn_down", "Q4_0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny_spec spec = tiny_default();
        spec.n_embd = cases[i].n_embd, spec.n_ff = 512, spec.n_layer = 1;
        if (i == 0 || strcmp(cases[i].type, cases[i - 1].type) != 0) {
            tiny_write(&spec, 1, at("in"));
            assert_ok(quantize("in", "out", cases[i].type, 2));
        }
        assert_type("out", strcmp(cases[i].tensor, "output") ? 0 : -1, cases[i].tensor,
                    cases[i].wanted);
    }
}

/* The types of every tensor, as llama.cpp chose them. */
TEST(test_mixture_golden) {
    require_data("models/tiny-gqa-Q4_K_M.gguf");
    assert_ok(quantize_file(data_path("models/tiny-gqa-F32.gguf"), "out", "Q4_K_M", 0));
    dpi_gguf *a = open_gguf(data_path("models/tiny-gqa-Q4_K_M.gguf")), *b = open_gguf(at("out"));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(a); i++) {
        const dpi_gguf_tensor *x = dpi_gguf_tensor_at(a, i);
        const dpi_gguf_tensor *y = dpi_gguf_tensor_find(b, x->name);
        assert_true(y && x->type == y->type);
    }
    dpi_gguf_close(a), dpi_gguf_close(b);
}

static int32_t cancel_third(void *user) { return ++*(int *)user == 3; }

TEST(test_quantize_refuses) {
    tiny_spec spec = tiny_default();
    int asked = 0;
    dpi_write_options o;
    tiny_write(&spec, 1, at("in"));
    assert_error(quantize("in", "in", "Q8_0", 1), ARG, "output is the input");
    assert_error(quantize("in", "out", "Q2_K", 1), ARG,
                 "type 'Q2_K' cannot be written, allowed: F32 F16 BF16");
    assert_error(quantize("in", "out", "Q8_0", -1), ARG, "n_threads is -1");
    assert_error(quantize("none", "out", "Q8_0", 1), IO, "none");
    dpi_write_options_init(&o);
    o.type = "Q8_0", o.cancel = cancel_third, o.user = &asked;
    assert_error(dpi_model_quantize(at("in"), at("out"), &o, ERR), CANCELLED, "cancelled");
    o.struct_size = 1;
    assert_error(dpi_model_quantize(at("in"), at("out"), &o, ERR), ARG, "struct_size is 1");
    assert_int_equal(count_files(), 1);

    /* Values that a type cannot hold. */
    static const float bad[] = {NAN, INFINITY, 65505};
    size_t n_bytes;
    char *image = read_file(at("in"), &n_bytes);
    dpi_gguf *g = open_gguf(at("in"));
    const uint64_t row = dpi_gguf_tensor_find(g, "blk.1.ffn_up.weight")->offset + 64 * 4 * 5;
    dpi_gguf_close(g);
    for (int i = 0; i < 3; i++) {
        memcpy(image + row + 4, &bad[i], 4);
        write_file(at("bad"), image, n_bytes);
        assert_error(quantize("bad", "out", "Q4_0", 2), NUMERIC,
                     "tensor blk.1.ffn_up.weight, row 5 has a weight that Q4_0 cannot hold");
        assert_int_equal(ERR->offset, row);
    }
    assert_ok(quantize("bad", "out", "BF16", 2)); /* 65505 fits there */
    free(image);
}

/* ---- Made models ----------------------------------------------------------------------------- */

static dpi_model_shape small_shape(void) {
    dpi_model_shape s = {.struct_size = sizeof s, .n_layer = 2, .n_embd = 96, .n_ff = 160};
    s.n_head = 6, s.n_kv_head = 3, s.n_vocab = 320, s.n_ctx_train = 128, s.rope_freq_base = 50000;
    return s;
}

static dpi_status make(const dpi_model_shape *shape, const char *vocab, uint64_t seed,
                       const char *name, const char *type) {
    dpi_write_options o;
    dpi_write_options_init(&o);
    o.type = type;
    return dpi_model_make(shape, vocab, seed, at(name), &o, ERR);
}

/* A disk that is full: a limit on the file's size. */
TEST(test_full_disk) {
    struct rlimit old, small = {0};
    dpi_model_shape shape = small_shape();
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 100000;
    setrlimit(RLIMIT_FSIZE, &small);
    dpi_status status = make(&shape, NULL, 1, "m", "F32");
    setrlimit(RLIMIT_FSIZE, &old);
    assert_error(status, SYSTEM, "cannot be written: File too large");
    assert_int_equal(count_files(), 0);
}

/* attn_v and ffn_down of 22 layers (TinyLlama) in Q6_K: first and last eighth, every third between.
 * The list is that of TinyLlama's Q4_K_M file. */
TEST(test_mixture_layers) {
    static const int more[] = {0, 1, 4, 7, 10, 13, 16, 19, 20, 21};
    dpi_model_shape s = {.struct_size = sizeof s, .n_layer = 22, .n_embd = 256, .n_ff = 256};
    s.n_head = 4, s.n_kv_head = 2, s.n_vocab = 300, s.n_ctx_train = 64;
    s.tied_output = 1, s.rope_freq_base = 10000;
    assert_ok(make(&s, NULL, 1, "m", "Q5_K_M"));
    for (int i = 0, j = 0; i < 22; i++) {
        bool is_more = j < 10 && more[j] == i;
        j += is_more;
        assert_type("m", i, "attn_v", is_more ? "Q6_K" : "Q5_K");
        assert_type("m", i, "ffn_down", is_more ? "Q6_K" : "Q5_K");
        assert_type("m", i, "ffn_gate", "Q5_K");
    }
    assert_type("m", -1, "token_embd", "Q6_K");
    assert_type("m", -1, "output_norm", "F32");
}

/* The model computes: logits of deviation about 3 after every token of a text. */
static void check_logits(dpi_model *model) {
    static const char text[] = "a made up text, 123 \xc3\xa9!";
    int32_t tokens[128];
    size_t n, n_bytes;
    assert_ok(dpi_tokenize(model, text, strlen(text), DPI_TOKENIZE_BOS, tokens, 128, &n, ERR));
    dpi_decoder *decoder = NULL;
    assert_ok(dpi_decoder_create(model, &decoder, ERR));
    char back[64] = "";
    for (size_t i = 0; i < n; i++) {
        const char *piece;
        assert_ok(dpi_decoder_push(decoder, tokens[i], &piece, &n_bytes, ERR));
        strncat(back, piece, n_bytes);
    }
    assert_string_equal(back[0] == ' ' ? back + 1 : back, text);
    dpi_decoder_free(decoder);
    dpi_session *s = open_session(model, NULL, 1, 0);
    const size_t n_logits = n * (size_t)model->n_vocab;
    float *logits = malloc(n_logits * sizeof *logits);
    assert_non_null(logits);
    assert_ok(dpi_session_prefill(s, 0, tokens, n, logits, ERR));
    double square = 0;
    for (size_t i = 0; i < n_logits; i++)
        square += (double)logits[i] * (double)logits[i];
    assert_true(square > 4 * (double)n_logits && square < 20.25 * (double)n_logits);
    free(logits);
    dpi_session_free(s);
}

TEST(test_make) {
    static const char *const types[] = {"F32",  "F16",  "BF16", "Q8_0", "Q4_0",   "Q4_1",  "Q5_0",
                                        "Q5_1", "Q4_K", "Q5_K", "Q6_K", "Q4_K_M", "Q5_K_M"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        dpi_model_shape shape = small_shape();
        if (i >= 8)
            shape.n_embd = 256, shape.n_head = 4, shape.n_kv_head = 1, shape.n_ff = 320,
            shape.n_layer = 1;
        shape.tied_output = (int32_t)i % 2;
        assert_ok(make(&shape, NULL, 1, "m", types[i]));
        dpi_model *model = open_checked("m");
        dpi_model_info info = {.struct_size = sizeof info};
        assert_ok(dpi_model_info_get(model, &info, ERR));
        assert_true(info.random_weights == 1 && info.n_layer == shape.n_layer &&
                    info.n_embd == shape.n_embd);
        assert_true(info.n_ff == shape.n_ff && info.n_head == shape.n_head && info.n_vocab == 320);
        assert_true(info.n_kv_head == shape.n_kv_head && info.tied_output == shape.tied_output);
        assert_true(info.n_ctx_train == 128 && info.rope_freq_base == 50000);
        check_logits(model);
        dpi_model_close(model);
    }
}

TEST(test_make_seed) {
    dpi_model_shape shape = small_shape();
    assert_ok(make(&shape, NULL, 5, "a", "Q4_0"));
    assert_ok(make(&shape, NULL, 5, "b", "Q4_0"));
    assert_ok(make(&shape, NULL, 6, "c", "Q4_0"));
    assert_same_files("a", "b", true);
    assert_same_files("a", "c", false);
}

TEST(test_make_vocab) {
    require_data("models/stories260K.gguf");
    const char *stories = data_path("models/stories260K.gguf");
    dpi_model_shape shape = small_shape();
    assert_ok(make(&shape, stories, 1, "m", "Q8_0"));
    dpi_model *a = open_checked("m"), *b = NULL;
    assert_ok(dpi_model_open(stories, NULL, &b, ERR));
    int32_t x[64], y[64];
    size_t n_x, n_y;
    assert_ok(dpi_tokenize(a, "once upon a time", 16, 1, x, 64, &n_x, ERR));
    assert_ok(dpi_tokenize(b, "once upon a time", 16, 1, y, 64, &n_y, ERR));
    assert_true(n_x == n_y && memcmp(x, y, n_x * sizeof *x) == 0);
    check_logits(a);
    dpi_model_close(a), dpi_model_close(b);
    assert_error(make(&shape, at("none"), 1, "x", "Q8_0"), IO, "none");
    assert_int_equal(count_files(), 1);
}

TEST(test_make_refuses) {
    enum { N = 9 };
    dpi_model_shape s[N];
    static const char *const messages[N] = {
        "even multiple of n_head", "multiple of n_kv_head", "n_layer is 0, must be 1..4096",
        "n_vocab is 259",          "rope_freq_base",        "struct_size is 4",
        "delta_dim is 8, must be 0..0", "n_delta_k_head is 0, must be 1..1024",
        "n_delta_v_head is 3, not a multiple of n_delta_k_head, which is 2"};
    for (int i = 0; i < N; i++)
        s[i] = small_shape();
    s[6].delta_dim = s[8].delta_dim = 8, s[7].architecture = s[8].architecture = "qwen35";
    s[8].n_delta_k_head = 2, s[8].n_delta_v_head = 3;
    s[0].n_head = 5, s[1].n_kv_head = 4, s[2].n_layer = 0, s[3].n_vocab = 259;
    s[4].rope_freq_base = NAN, s[5].struct_size = 4;
    for (int i = 0; i < N; i++)
        assert_error(make(&s[i], NULL, 1, "m", "F16"), ARG, messages[i]);
    s[0] = small_shape();
    assert_error(make(&s[0], NULL, 1, "m", "IQ4_NL"), ARG, "type 'IQ4_NL'");
    assert_error(dpi_model_shape_find("gpt-5", &s[0], ERR), ARG,
                 "tinyllama-1.1b, llama-3.2-1b, llama-3.2-3b, llama-3-8b, ");
    s[0].architecture = "granite";
    assert_error(make(&s[0], NULL, 1, "m", "F16"), ARG, "architecture is 'granite'");
    s[0].architecture = "qwen3", s[0].head_dim = 7;
    assert_error(make(&s[0], NULL, 1, "m", "F16"), ARG, "head_dim is 7");
    assert_int_equal(count_files(), 0);
}

/* docs/spec.md's table of shapes; weights read per token of TinyLlama: 1.034e9. */
TEST(test_shapes) {
    dpi_model_shape s = {.struct_size = sizeof s};
    assert_ok(dpi_model_shape_find("tinyllama-1.1b", &s, ERR));
    int64_t per_layer = 2ll * s.n_embd * s.n_embd + 3ll * s.n_embd * s.n_ff +
                        2ll * s.n_embd * s.n_embd / s.n_head * s.n_kv_head;
    double weights = (double)(per_layer * s.n_layer + (int64_t)s.n_vocab * s.n_embd);
    assert_true(fabs(weights / 1.034e9 - 1) < 0.001 && s.n_kv_head == 4 && !s.tied_output);
    assert_ok(dpi_model_shape_find("llama-3.2-1b", &s, ERR));
    assert_true(s.n_layer == 16 && s.n_embd == 2048 && s.n_ff == 8192 && s.n_head == 32);
    assert_true(s.n_kv_head == 8 && s.n_vocab == 128256 && s.tied_output);
    assert_ok(dpi_model_shape_find("llama-3-8b", &s, ERR));
    assert_true(s.n_layer == 32 && s.n_embd == 4096 && s.n_ff == 14336 && s.n_head == 32);
    assert_true(s.n_kv_head == 8 && s.n_vocab == 128256 && !s.tied_output);
}

/* The other architectures load as what they are said to be: the published sizes, of so many layers
 * that each kind has its share. */
TEST(test_made_architectures) {
    static const struct {
        const char *shape, *architecture;
        double parameters; /* of all layers, millions, as published; qwen35: by its matrices */
    } cases[] = {{"qwen3-0.6b", "qwen3", 596}, {"gemma-3-270m", "gemma3", 268},
                 {"phi-4-mini", "phi3", 3836}, {"smollm2-135m", "llama", 134.5},
                 {"qwen3.5-0.8b", "qwen35", 752}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dpi_model_shape s = {.struct_size = sizeof s};
        dpi_model *model = NULL;
        dpi_model_info info;
        assert_ok(dpi_model_shape_find(cases[i].shape, &s, ERR));
        const int64_t n_layer = s.n_layer, n_vocab = s.n_vocab;
        s.n_layer = 4, s.n_vocab = 320;
        assert_ok(make(&s, NULL, 1, "m", "Q4_0"));
        assert_ok(dpi_model_open(at("m"), NULL, &model, ERR));
        dpi_model_info_init(&info);
        assert_ok(dpi_model_info_get(model, &info, ERR));
        assert_string_equal(info.architecture, cases[i].architecture);
        const double outside = (double)(s.n_embd * 321ll);
        const double all = ((double)info.n_params - outside) / 4 * (double)n_layer +
                           (double)(n_vocab + 1) * s.n_embd;
        assert_true(fabs(all / (1e6 * cases[i].parameters) - 1) < .005);
        dpi_model_close(model);
        remove(at("m"));
    }
}

/* Each allocation failing once: an error, and nothing stays behind. */
TEST(test_failing_allocations) {
    dpi_model_shape shape = small_shape();
    assert_ok(make(&shape, NULL, 1, "in", "F16"));
    for (int what = 0; what < 2; what++) {
        for (int64_t n = 1; fails(
                 n, what ? quantize("in", "out", "Q8_0", 1) : make(&shape, NULL, 1, "out", "Q8_0"),
                 "");
             n++)
            assert_true(count_files() == 1 && n < 10000);
        assert_int_equal(count_files(), 2);
        remove(at("out"));
    }
}
