/* Logits against references: llama.cpp's (golden data) and a double-precision oracle over models of
 * many shapes, through prompts and through steps. */
#include <math.h>

#include "tests/engine/engine_support.h"

/* Logits [n, n_vocab] after each token: the first n_prompt as a prompt, the others by steps. */
static float *run(const dpi_model *model, const int32_t *tokens, int32_t n, int32_t n_prompt,
                  int32_t exact, int32_t prefill) {
    dpi_session_options o = isa_options(exact);
    o.prefill = prefill;
    dpi_session *s = open_session(model, &o, 1, n);
    const size_t n_vocab = (size_t)model->n_vocab, n_bytes = n_vocab * sizeof(float);
    float *logits = floats((size_t)n * n_vocab);
    assert_ok(dpi_session_prefill(s, 0, tokens, (size_t)n_prompt, logits, ERR));
    assert_memory_equal(dpi_session_logits(s, 0), logits + (size_t)(n_prompt - 1) * n_vocab,
                        n_bytes);
    for (int32_t t = n_prompt; t < n; t++) {
        assert_ok(dpi_session_step(s, 1, &(int32_t){0}, &tokens[t], ERR));
        memcpy(logits + (size_t)t * n_vocab, dpi_session_logits(s, 0), n_bytes);
    }
    dpi_session_free(s);
    return logits;
}

/* Fails unless run's logits are within `limit` of those wanted. */
static void check_run(const char *what, const dpi_model *model, const int32_t *tokens, int32_t n,
                      int32_t n_prompt, int32_t exact, int32_t prefill, const float *wanted,
                      double limit) {
    float *logits = run(model, tokens, n, n_prompt, exact, prefill);
    double error = nmse(logits, wanted, (size_t)n * (size_t)model->n_vocab);
    if (!(error <= limit))
        fail_msg("%s, prompt of %d, exact %d, prefill %d: NMSE %.3g, at most %.3g", what, n_prompt,
                 exact, prefill, error, limit);
    free(logits);
}

/* ---- Golden data ----------------------------------------------------------------------------- */

enum { N = 64, N_LOGITS = N * 512 };

static const int32_t *golden_tokens(void) {
    static int32_t tokens[N];
    assert_int_equal(read_tokens("golden/tokens64.txt", tokens, N), N);
    return tokens;
}

/* golden/NAME.KIND.f32. */
static float *read_golden(const char *name, const char *kind, size_t n) {
    char path[96], file[128];
    snprintf(path, sizeof path, "golden/%s", name);
    snprintf(file, sizeof file, "%s.%s.f32", path, kind);
    require_data(file);
    return read_floats(path, kind, n);
}

/* How far llama.cpp is from the golden logits on the same file; `peer` [n] is freed. */
static double error_of_peer(float *peer, const float *golden, size_t n) {
    const double error = nmse(peer, golden, n);
    free(peer);
    return error;
}

static dpi_model *open_golden(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "models/%s.gguf", name);
    return open_shared(path);
}

static void check_golden(const char *name, double exact_limit, bool has_llamacpp) {
    static const struct {
        int32_t n_prompt, prefill;
        bool is_thin; /* runs on a lesser instruction set, too */
    } ways[] = {
        {N, DPI_PREFILL_BLAS, true},
        {37, DPI_PREFILL_KERNELS, true},
        {N, DPI_PREFILL_KERNELS, false},
        {1, DPI_PREFILL_KERNELS, false},
    };
    float *golden = read_golden(name, "exact", N_LOGITS);
    const int32_t *tokens = golden_tokens();
    dpi_model *model = open_golden(name);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].is_thin || !is_thin())
            check_run(name, model, tokens, N, ways[i].n_prompt, 1, ways[i].prefill, golden,
                      exact_limit);
    const double limit = /* at least as close as llama.cpp */
        has_llamacpp ? error_of_peer(read_golden(name, "llamacpp", N_LOGITS), golden, N_LOGITS)
                     : 1e-6;
    check_run(name, model, tokens, N, N, 0, DPI_PREFILL_AUTO, golden, limit);
    free(golden);
    dpi_model_close(model);
}

TEST(test_golden_stories260K) { check_golden("stories260K", 1e-9, false); }
TEST(test_golden_llama3) { check_golden("tiny-llama3-F32", 1e-9, false); }
TEST(test_golden_F32) { check_golden("tiny-gqa-F32", 1e-9, false); }

#define GOLDEN(type)                                                                               \
    TEST(test_golden_##type) { check_golden("tiny-gqa-" #type, 1e-8, true); }
GOLDEN(F16)
GOLDEN(BF16)
GOLDEN(Q8_0)
GOLDEN(Q4_0)
GOLDEN(Q4_1)
GOLDEN(Q5_0)
GOLDEN(Q5_1)
GOLDEN(IQ4_NL)
GOLDEN(Q2_K)
GOLDEN(Q3_K_S)
GOLDEN(Q4_K_S)
GOLDEN(Q5_K_S)
GOLDEN(Q6_K)
GOLDEN(IQ4_XS)

/* The usual mixture: there is no exact file, but data/README.md says how far llama.cpp is from the
 * exact logits of its K-quants, which is then how far it may be from ours. */
TEST(test_golden_Q4_K_M) {
    float *peer = read_golden("tiny-gqa-Q4_K_M", "llamacpp", N_LOGITS);
    dpi_model *model = open_golden("tiny-gqa-Q4_K_M");
    float *logits = run(model, golden_tokens(), N, N, 1, DPI_PREFILL_AUTO);
    double error = nmse(peer, logits, N_LOGITS);
    if (!(error <= 4.6e-4))
        fail_msg("Q4_K_M: llama.cpp is at NMSE %.3g", error);
    free(logits), free(peer);
    dpi_model_close(model);
}

/* The prompt of the golden data, tokenized here. */
TEST(test_golden_prompt) {
    static const char text[] = "Once upon a time, there was a little girl named Lily.";
    float *golden = read_golden("stories260K-prompt", "exact", 16 * 512);
    dpi_model *model = open_golden("stories260K");
    int32_t tokens[64];
    size_t n;
    assert_ok(dpi_tokenize(model, text, strlen(text), DPI_TOKENIZE_BOS, tokens, 64, &n, ERR));
    assert_int_equal(n, 16);
    check_run(text, model, tokens, 16, 16, 1, DPI_PREFILL_AUTO, golden, 1e-9);
    free(golden);
    dpi_model_close(model);
}

/* Files of others: PATH.gguf; of PATH and `text`, .tokens and .exact.f32, and of what is quantised
 * .llamacpp.f32, than which the usual path is to be no farther from the exact logits. */
static void check_file(const char *path, const char *text) {
    char name[160], of_text[96];
    int32_t tokens[N];
    snprintf(name, sizeof name, "%s.gguf", path);
    require_data(name);
    dpi_model *model = open_shared(name);
    snprintf(of_text, sizeof of_text, "%s%s", path, text);
    snprintf(name, sizeof name, "%s.tokens", of_text);
    const int32_t n = read_tokens(name, tokens, N);
    float *golden = read_floats(of_text, "exact", (size_t)n * 512);
    for (int32_t n_prompt = 1; n_prompt <= n; n_prompt += n - 1)
        check_run(path, model, tokens, n, n_prompt, 1, DPI_PREFILL_AUTO, golden, 1e-11);
    const double limit =
        strstr(path, "-Q-")
            ? error_of_peer(read_floats(of_text, "llamacpp", (size_t)n * 512), golden, N_LOGITS)
            : 1e-6;
    check_run(path, model, tokens, n, n, 0, DPI_PREFILL_AUTO, golden, limit);
    free(golden);
    dpi_model_close(model);
}

/* Every feature of layers: biases of all matrices, YaRN and its
 * magnitude, scaled rotation, and what data/arch/README.md has of each architecture. */
TEST(test_golden_files) {
    static const char *const paths[] = {
        "../cases/mlp-bias",    "arch/llama-bias-A",    "arch/llama-yarn-A",
        "arch/llama-linear-A",  "arch/llama-attnfactor-A",
        "arch/qwen2-A",         "arch/qwen3-A",         "arch/qwen3-Q-Q4_K_M",
        "arch/qwen3-Q-Q8_0",    "arch/gemma3-A",        "arch/gemma3-linear8-A",
        "arch/gemma3-Q-Q4_K_M", "arch/gemma3-Q-Q8_0",   "arch/gemma2-A",
        "arch/gemma2-27b-A",    "arch/smollm3-A",       "arch/granite-A",
        "arch/olmo2-A",         "arch/olmo3-A",         "arch/phi3-A",
        "arch/phi3-longrope-A", "arch/phi3-Q-Q4_K_M",   "arch/phi3-Q-Q8_0",
        "arch/mistral3-A",      "arch/vaultgemma-A",    "arch/qwen35-A",
        "arch/qwen35-Q-Q4_K_M", "arch/gemma4-A",        "arch/gemma4-e2b-A",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        check_file(paths[i], "");
    check_file("arch/phi3-longrope-A", ".short"); /* a context that takes the other factors */
}

/* The three matrices that read the same input may be one tensor, in each architecture. */
TEST(test_joined) {
    static const char *const paths[] = {"arch/llama-bias-A", "arch/qwen2-A", "arch/qwen3-Q-Q8_0",
                                        "arch/gemma2-A", "arch/olmo3-A", "arch/gemma4-A",
                                        "arch/gemma4-e2b-A"};
    for (size_t i = 0; i < 2 * sizeof paths / sizeof *paths; i++) {
        const int32_t exact = i % 2;
        char path[64];
        gguf_build b;
        dpi_model *joined = NULL;
        int32_t tokens[N];
        uint64_t seed = i + 1;
        snprintf(path, sizeof path, "%s.gguf", paths[i / 2]);
        require_data(path);
        build_joined(&b, data_path(path));
        dpi_model *model = open_shared(path);
        assert_ok(dpi_model_open_buffer(b.data, b.n_bytes, NULL, &joined, ERR));
        random_tokens(tokens, N, model->n_vocab, &seed);
        float *wanted = run(model, tokens, N, N / 2, exact, DPI_PREFILL_AUTO);
        float *found = run(joined, tokens, N, N / 2, exact, DPI_PREFILL_AUTO);
        assert_memory_equal(found, wanted, N_LOGITS * sizeof *wanted);
        free(wanted), free(found);
        dpi_model_close(model), dpi_model_close(joined);
        build_free(&b);
    }
}

/* With one layer a window of 16 is all that a row knows of, wherever it stands: the last logits of
 * a long text are those of its last 16 tokens alone, and not those of 15. */
TEST(test_window) {
    enum { N_TEXT = 150, WINDOW = 16 };
    int32_t tokens[N_TEXT];
    uint64_t seed = 3;
    size_t n_bytes;
    dpi_model *model = NULL;
    require_data("arch/phi3-Q-Q8_0.gguf");
    static const char none[] = "phi3.attention.sliding_window\4\0\0\0\0";
    static const char some[] = "phi3.attention.sliding_window\4\0\0\0\20"; /* WINDOW */
    char *image = patched_file("arch/phi3-Q-Q8_0.gguf", none, some, sizeof none - 1, &n_bytes);
    assert_ok(dpi_model_open_buffer(image, n_bytes, NULL, &model, ERR));
    random_tokens(tokens, N_TEXT, model->n_vocab, &seed);
    const size_t n_vocab = (size_t)model->n_vocab;
    for (int32_t n_prompt = 1; n_prompt <= N_TEXT; n_prompt += N_TEXT - 1)
        for (int32_t n = WINDOW - 1; n <= WINDOW + 1; n++) {
            float *all = run(model, tokens, N_TEXT, n_prompt, 1, DPI_PREFILL_AUTO);
            float *last = run(model, tokens + N_TEXT - n, n, n, 1, DPI_PREFILL_AUTO);
            const double error = nmse(last + (size_t)(n - 1) * n_vocab,
                                      all + (size_t)(N_TEXT - 1) * n_vocab, n_vocab);
            if ((error < 1e-10) != (n >= WINDOW))
                fail_msg("prompt of %d, the last %d tokens: NMSE %.3g", n_prompt, n, error);
            free(all), free(last);
        }
    dpi_model_close(model);
    free(image);
}

/* Windows, and caches that layers share, over several blocks: the first logits after 200 tokens, of
 * a pass in double precision that was written from data/arch/README.md and read the file alone. */
TEST(test_gemma4_blocks) {
    enum { N_TEXT = 200, N_SEEN = 6 };
    static const struct {
        const char *path;
        float logits[N_SEEN];
    } cases[] = {
        {"arch/gemma4-A.gguf",
         {4.2530985f, -6.5398837f, 2.7528976f, 1.7442976f, -5.5810311f, .3446580f}},
        {"arch/gemma4-e2b-A.gguf",
         {-1.7470103f, -1.3753014f, 2.3577639f, .0757682f, 4.3435537f, 1.9559797f}},
    };
    int32_t tokens[N_TEXT] = {1};
    for (int32_t i = 1; i < N_TEXT; i++)
        tokens[i] = (7 * i * i + 3 * i) % 509 + 3;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        require_data(cases[i].path);
        dpi_model *model = open_shared(cases[i].path);
        for (int32_t n_prompt = 1; n_prompt <= N_TEXT; n_prompt += N_TEXT - 1) {
            float *all = run(model, tokens, N_TEXT, n_prompt, 1, DPI_PREFILL_AUTO);
            const float *last = all + (size_t)(N_TEXT - 1) * (size_t)model->n_vocab;
            assert_true(nmse(last, cases[i].logits, N_SEEN) < 1e-11);
            free(all);
        }
        dpi_model_close(model);
    }
}

/* Without the key of a cap of logits there is none: the cap of the file makes the golden logits of
 * those of the file without. */
TEST(test_no_cap) {
    int32_t tokens[N];
    size_t n_bytes;
    dpi_model *model = NULL;
    require_data("arch/gemma4-A.gguf");
    char *image = patched_file("arch/gemma4-A.gguf", "gemma4.final_logit", "author.final_logit", 18,
                               &n_bytes);
    assert_ok(dpi_model_open_buffer(image, n_bytes, NULL, &model, ERR));
    assert_int_equal(read_tokens("arch/gemma4-A.tokens", tokens, N), N);
    float *golden = read_floats("arch/gemma4-A", "exact", N_LOGITS);
    float *logits = run(model, tokens, N, N, 1, DPI_PREFILL_AUTO);
    for (int32_t i = 0; i < N_LOGITS; i++)
        logits[i] = (float)(12 * tanh((double)logits[i] / 12));
    assert_true(nmse(logits, golden, N_LOGITS) < 1e-11);
    free(golden), free(logits);
    dpi_model_close(model);
    free(image);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static void check_shape(const char *what, const tiny_spec *spec) {
    enum { N_SHAPE = 70 }; /* more than one KV block and one prompt chunk */
    static uint64_t seed = 1;
    int32_t tokens[N_SHAPE];
    void *image;
    dpi_model *model = tiny_open(spec, seed, &image);
    random_tokens(tokens, N_SHAPE, spec->n_vocab, &seed);
    float *wanted = exact_logits(spec, model, tokens, N_SHAPE, NULL);
    for (int32_t n_prompt = 1; n_prompt <= N_SHAPE; n_prompt += N_SHAPE - 1)
        check_run(what, model, tokens, N_SHAPE, n_prompt, 1, DPI_PREFILL_AUTO, wanted, 1e-10);
    free(wanted);
    dpi_model_close(model);
    free(image);
}

/* The default shape, changed. */
#define SHAPE(what, ...)                                                                           \
    do {                                                                                           \
        tiny_spec s = tiny_default();                                                              \
        __VA_ARGS__;                                                                               \
        check_shape(what, &s);                                                                     \
    } while (0)

TEST(test_shapes) {
    SHAPE("default", s.bias = 0);
    SHAPE("no GQA, tied head", s.n_kv_head = 4, s.tied = 1);
    SHAPE("one KV head, biases", s.n_kv_head = 1, s.bias = 1);
    SHAPE("heads wider than n_embd / n_head", s.head_dim = s.head_dim_v = s.n_rot = 32);
    SHAPE("unequal heads, partial rotation", s.head_dim = 24, s.head_dim_v = 40, s.n_rot = 8);
    SHAPE("scaled rotation", s.rope_factor = 4, s.rope_base = 500000, s.rope_freqs = 1);
    SHAPE("all three cases of Llama 3's scaling", s.llama3_factor = 8, s.head_dim = s.n_rot = 48);
    SHAPE("nothing is a multiple of a vector", s.n_embd = 60, s.n_head = 6, s.n_kv_head = 3,
          s.n_ff = 50, s.n_vocab = 333);
    SHAPE("n_embd is no multiple of n_head", s.n_embd = 50, s.n_head = 4, s.head_dim = 14,
          s.head_dim_v = 10);
    SHAPE("longer queries and keys", s.attn_factor = 1.3f, s.n_rot = 8);
    SHAPE("8 bits, biases", s.type = DPI_TYPE_Q8_0, s.bias = 1);
    SHAPE("16 bits, three layers", s.type = DPI_TYPE_F16, s.n_layer = 3);
    SHAPE("blocks of 256", s = tiny_of(DPI_TYPE_Q4_K));
}

/* A factor of 0 says that rotation is not scaled, whatever the type of scaling. */
#define FACTOR(bytes) "rope.scaling.factor\6\0\0\0" bytes /* a float */
static const char no_factor[] = FACTOR("\0\0\0\0");

TEST(test_factor_of_0) {
    static const char eight[] = FACTOR("\0\0\0\101");
    for (int is_llama3 = 0; is_llama3 < 2; is_llama3++) {
        tiny_spec spec = tiny_default();
        int32_t tokens[N];
        uint64_t seed = 2;
        size_t n_bytes;
        void *image;
        dpi_model *model = NULL;
        *(is_llama3 ? &spec.llama3_factor : &spec.rope_factor) = 8;
        tiny_build(&spec, 3, &image, &n_bytes);
        patch(image, n_bytes, eight, no_factor, sizeof eight - 1);
        assert_ok(dpi_model_open_buffer(image, n_bytes, NULL, &model, ERR));
        spec.llama3_factor = spec.rope_factor = 0;
        random_tokens(tokens, N, spec.n_vocab, &seed);
        float *wanted = exact_logits(&spec, model, tokens, N, NULL);
        check_run("factor 0", model, tokens, N, N, 1, DPI_PREFILL_AUTO, wanted, 1e-10);
        free(wanted);
        dpi_model_close(model);
        free(image);
    }
}

TEST(test_yarn_factor_of_0) {
    static const char path[] = "arch/llama-yarn-A.gguf", four[] = FACTOR("\0\0\200\100");
    size_t n_bytes;
    dpi_model *plain = NULL, *yarn = NULL;
    require_data(path);
    char *image = patched_file(path, four, no_factor, sizeof four - 1, &n_bytes);
    assert_ok(dpi_model_open_buffer(image, n_bytes, NULL, &yarn, ERR));
    char *other = patched_file(path, "\0yarn", "\0none", 5, &n_bytes);
    assert_ok(dpi_model_open_buffer(other, n_bytes, NULL, &plain, ERR));
    float *wanted = run(plain, golden_tokens(), N, N, 1, DPI_PREFILL_AUTO);
    check_run(path, yarn, golden_tokens(), N, N, 1, DPI_PREFILL_AUTO, wanted, 1e-12);
    free(wanted);
    dpi_model_close(plain), dpi_model_close(yarn);
    free(image), free(other);
}

/* The older name of the key counts where the newer one is absent. */
TEST(test_yarn_older_factor) {
    static const char path[] = "arch/llama-yarn-A.gguf";
    dpi_gguf *golden;
    dpi_model *older = NULL;
    gguf_build b;
    require_data(path);
    assert_ok(dpi_gguf_open(data_path(path), true, &golden, ERR));
    build_begin(&b);
    build_metadata(&b, golden, "llama.rope.scaling.factor");
    build_f32(&b, "llama.rope.scale_linear", 4);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(golden); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(golden, i);
        build_tensor(&b, t->name, t->type, (uint32_t)t->n_dims, t->shape, t->data, t->n_bytes);
    }
    build_end(&b);
    assert_ok(dpi_model_open_buffer(b.data, b.n_bytes, NULL, &older, ERR));
    dpi_model *model = open_shared(path);
    float *wanted = run(model, golden_tokens(), N, N, 1, DPI_PREFILL_AUTO);
    check_run(path, older, golden_tokens(), N, N, 1, DPI_PREFILL_AUTO, wanted, 0);
    free(wanted);
    dpi_model_close(model), dpi_model_close(older);
    dpi_gguf_close(golden);
    build_free(&b);
}

/* ---- Text ------------------------------------------------------------------------------------ */

TEST(test_greedy_story) {
    static const char prompt[] = "Once upon a time";
    static const char wanted[] = ", there was a little girl named Lily. She loved to play outside "
                                 "in the park. One day, she saw a big, red ball.";
    require_data("models/stories260K.gguf");
    dpi_model *model = open_golden("stories260K");
    dpi_session_options o = isa_options(0);
    dpi_session *s = open_session(model, &o, 1, 0);
    dpi_decoder *decoder = NULL;
    assert_ok(dpi_decoder_create(model, &decoder, ERR));
    int32_t tokens[32], seq = 0;
    size_t n, n_bytes;
    assert_ok(dpi_tokenize(model, prompt, strlen(prompt), DPI_TOKENIZE_BOS, tokens, 32, &n, ERR));
    assert_ok(dpi_session_prefill(s, 0, tokens, n, NULL, ERR));
    char text[512] = "";
    while (strlen(text) < strlen(wanted)) {
        const float *logits = dpi_session_logits(s, 0);
        const char *piece;
        int32_t best = 0;
        for (int32_t i = 1; i < model->n_vocab; i++)
            best = logits[i] > logits[best] ? i : best;
        assert_ok(dpi_decoder_push(decoder, best, &piece, &n_bytes, ERR));
        assert_true(n_bytes > 0);
        strncat(text, piece, n_bytes);
        assert_ok(dpi_session_step(s, 1, &seq, &best, ERR));
    }
    assert_memory_equal(text, wanted, strlen(wanted));
    dpi_decoder_free(decoder);
    dpi_session_free(s);
    dpi_model_close(model);
}
