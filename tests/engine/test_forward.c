/* Logits against references: llama.cpp's (golden data) and a double-precision oracle over models of
 * many shapes, through prompts and through steps. */
#include <math.h>

#include "engine/model.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

/* Logits [n, n_vocab] after each token: the first n_prompt as a prompt, the others by steps. */
static float *run(const dpi_model *model, const int32_t *tokens, int32_t n, int32_t n_prompt,
                  int32_t exact, int32_t prefill) {
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.isa = forced_isa();
    o.exact = exact;
    o.prefill = prefill;
    dpi_session *s = open_session(model, &o, 1, 0);
    size_t n_vocab = (size_t)model->n_vocab;
    float *logits = malloc((size_t)n * n_vocab * sizeof *logits);
    assert_non_null(logits);
    dpi_error err;
    assert_ok(dpi_session_prefill(s, 0, tokens, (size_t)n_prompt, logits, &err), &err);
    assert_memory_equal(dpi_session_logits(s, 0), logits + (size_t)(n_prompt - 1) * n_vocab,
                        n_vocab * sizeof *logits);
    for (int32_t t = n_prompt; t < n; t++) {
        int32_t seq = 0;
        assert_ok(dpi_session_step(s, 1, &seq, &tokens[t], &err), &err);
        memcpy(logits + (size_t)t * n_vocab, dpi_session_logits(s, 0), n_vocab * sizeof *logits);
    }
    dpi_session_free(s);
    return logits;
}

/* sum (a - b)^2 / sum b^2 */
static double nmse(const float *a, const float *b, size_t n) {
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        power += (double)b[i] * (double)b[i];
    }
    return error / power;
}

static int32_t read_tokens(int32_t *tokens, int32_t max) {
    size_t n_bytes;
    char *text = read_file(data_path("golden/tokens64.txt"), &n_bytes), *p = text, *end;
    int32_t n = 0;
    for (long v = strtol(p, &end, 10); end != p && n < max; v = strtol(p = end, &end, 10))
        tokens[n++] = (int32_t)v;
    free(text);
    return n;
}

static void check_golden(const char *name, double exact_limit, int has_llamacpp) {
    char path[128];
    snprintf(path, sizeof path, "golden/%s.exact.f32", name);
    require_data(path);
    int32_t tokens[64];
    assert_int_equal(read_tokens(tokens, 64), 64);
    size_t n_bytes, n = 64 * 512;
    float *golden = (float *)(void *)read_file(data_path(path), &n_bytes);
    assert_int_equal(n_bytes, n * sizeof *golden);
    snprintf(path, sizeof path, "models/%s.gguf", name);
    dpi_model *model = NULL;
    dpi_error err;
    assert_ok(dpi_model_open(data_path(path), NULL, &model, &err), &err);

    static const int32_t prompts[] = {64, 1, 37};
    for (int i = 0; i < 3; i++)
        for (int prefill = DPI_PREFILL_KERNELS; prefill <= DPI_PREFILL_BLAS; prefill++) {
            float *logits = run(model, tokens, 64, prompts[i], 1, prefill);
            double error = nmse(logits, golden, n);
            if (!(error <= exact_limit))
                fail_msg("%s, exact: NMSE %.3g, at most %.3g", name, error, exact_limit);
            free(logits);
        }
    float *logits = run(model, tokens, 64, 64, 0, DPI_PREFILL_AUTO);
    double error = nmse(logits, golden, n), limit = 1e-6;
    free(logits);
    if (has_llamacpp) { /* be at least as close as llama.cpp on the same file */
        snprintf(path, sizeof path, "golden/%s.llamacpp.f32", name);
        float *peer = (float *)(void *)read_file(data_path(path), &n_bytes);
        limit = nmse(peer, golden, n);
        free(peer);
    }
    if (!(error <= limit))
        fail_msg("%s as run computes it: NMSE %.3g, at most %.3g", name, error, limit);
    free(golden);
    dpi_model_close(model);
}

static void test_golden_stories260K(void **state) {
    (void)state;
    check_golden("stories260K", 1e-9, 0);
}
static void test_golden_F32(void **state) {
    (void)state;
    check_golden("tiny-gqa-F32", 1e-9, 0);
}
static void test_golden_llama3(void **state) {
    (void)state;
    check_golden("tiny-llama3-F32", 1e-9, 0);
}
static void test_golden_F16(void **state) {
    (void)state;
    check_golden("tiny-gqa-F16", 1e-8, 1);
}
static void test_golden_Q8_0(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q8_0", 1e-8, 1);
}
static void test_golden_BF16(void **state) {
    (void)state;
    check_golden("tiny-gqa-BF16", 1e-8, 1);
}
static void test_golden_Q4_0(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q4_0", 1e-8, 1);
}
static void test_golden_Q4_1(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q4_1", 1e-8, 1);
}
static void test_golden_Q5_0(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q5_0", 1e-8, 1);
}
static void test_golden_Q5_1(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q5_1", 1e-8, 1);
}
static void test_golden_IQ4_NL(void **state) {
    (void)state;
    check_golden("tiny-gqa-IQ4_NL", 1e-8, 1);
}
static void test_golden_Q2_K(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q2_K", 1e-8, 1);
}
static void test_golden_Q3_K_S(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q3_K_S", 1e-8, 1);
}
static void test_golden_Q4_K_S(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q4_K_S", 1e-8, 1);
}
static void test_golden_Q5_K_S(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q5_K_S", 1e-8, 1);
}
static void test_golden_Q6_K(void **state) {
    (void)state;
    check_golden("tiny-gqa-Q6_K", 1e-8, 1);
}
static void test_golden_IQ4_XS(void **state) {
    (void)state;
    check_golden("tiny-gqa-IQ4_XS", 1e-8, 1);
}

/* The usual mixture: there is no exact file, but data/README.md says how far llama.cpp is from the
 * exact logits of its K-quants, which is then how far it may be from ours. */
static void test_golden_Q4_K_M(void **state) {
    (void)state;
    require_data("golden/tiny-gqa-Q4_K_M.llamacpp.f32");
    int32_t tokens[64];
    assert_int_equal(read_tokens(tokens, 64), 64);
    size_t n_bytes;
    float *peer = (float *)(void *)read_file(data_path("golden/tiny-gqa-Q4_K_M.llamacpp.f32"),
                                             &n_bytes);
    dpi_model *model = NULL;
    dpi_error err;
    assert_ok(dpi_model_open(data_path("models/tiny-gqa-Q4_K_M.gguf"), NULL, &model, &err), &err);
    float *logits = run(model, tokens, 64, 64, 1, DPI_PREFILL_AUTO);
    double error = nmse(peer, logits, n_bytes / sizeof *peer);
    if (!(error <= 4.6e-4))
        fail_msg("Q4_K_M: llama.cpp is at NMSE %.3g", error);
    free(logits), free(peer);
    dpi_model_close(model);
}

/* The prompt of the golden data, tokenized here. */
static void test_golden_prompt(void **state) {
    (void)state;
    require_data("golden/stories260K-prompt.exact.f32");
    const char *text = "Once upon a time, there was a little girl named Lily.";
    dpi_model *model = NULL;
    dpi_error err;
    assert_ok(dpi_model_open(data_path("models/stories260K.gguf"), NULL, &model, &err), &err);
    int32_t tokens[64];
    size_t n, n_bytes;
    assert_ok(dpi_tokenize(model, text, strlen(text), DPI_TOKENIZE_BOS, tokens, 64, &n, &err),
              &err);
    assert_int_equal(n, 16);
    float *golden = (float *)(void *)read_file(data_path("golden/stories260K-prompt.exact.f32"),
                                               &n_bytes);
    float *logits = run(model, tokens, 16, 16, 1, DPI_PREFILL_AUTO);
    assert_true(nmse(logits, golden, 16 * 512) <= 1e-9);
    free(logits), free(golden);
    dpi_model_close(model);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static void check_shape(const tiny_spec *spec, uint64_t seed) {
    enum { N = 70 }; /* more than one KV block and one prompt chunk */
    void *image;
    dpi_model *model = tiny_open(spec, seed, &image);
    int32_t tokens[N];
    for (int i = 0; i < N; i++)
        tokens[i] = random_below(&seed, spec->n_vocab);
    size_t n = (size_t)N * (size_t)spec->n_vocab;
    double *exact = malloc(n * sizeof *exact);
    float *wanted = malloc(n * sizeof *wanted);
    assert_true(exact && wanted);
    oracle_logits(spec, model, tokens, N, exact);
    for (size_t i = 0; i < n; i++)
        wanted[i] = (float)exact[i];
    for (int32_t n_prompt = 1; n_prompt <= N; n_prompt += N - 1) {
        float *logits = run(model, tokens, N, n_prompt, 1, DPI_PREFILL_AUTO);
        double error = nmse(logits, wanted, n);
        if (!(error <= 1e-10))
            fail_msg("prompt of %d: NMSE %.3g against the oracle", (int)n_prompt, error);
        free(logits);
    }
    free(exact), free(wanted);
    dpi_model_close(model);
    free(image);
}

static void test_shapes(void **state) {
    (void)state;
    tiny_spec d = tiny_default(), s;
    check_shape(&d, 1);
    s = d, s.n_kv_head = 4, s.tied = 1; /* no GQA, tied head */
    check_shape(&s, 2);
    s = d, s.n_kv_head = 1, s.bias = 1;
    check_shape(&s, 3);
    s = d, s.head_dim = 32, s.head_dim_v = 32, s.n_rot = 32; /* wider heads than n_embd / n_head */
    check_shape(&s, 4);
    s = d, s.head_dim = 24, s.head_dim_v = 40, s.n_rot = 8; /* odd and unequal, partial rotation */
    check_shape(&s, 5);
    s = d, s.rope_factor = 4, s.rope_base = 500000, s.rope_freqs = 1;
    check_shape(&s, 6);
    s = d, s.llama3_factor = 8, s.head_dim = 48, s.n_rot = 48; /* all three cases of the scaling */
    check_shape(&s, 11);
    s = d, s.n_embd = 60, s.n_head = 6, s.n_kv_head = 3, s.n_ff = 50, s.n_vocab = 333;
    check_shape(&s, 7); /* nothing is a multiple of a vector */
    s = d, s.n_embd = 50, s.n_head = 4, s.head_dim = 14, s.head_dim_v = 10;
    check_shape(&s, 8); /* n_embd is not a multiple of n_head */
    s = d, s.type = DPI_TYPE_Q8_0, s.bias = 1;
    check_shape(&s, 9);
    s = d, s.type = DPI_TYPE_F16, s.n_layer = 3;
    check_shape(&s, 10);
    s = d, s.type = DPI_TYPE_Q4_K, s.n_embd = s.n_ff = 256, s.n_layer = 1;
    check_shape(&s, 11);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void test_greedy_story(void **state) {
    (void)state;
    require_data("models/stories260K.gguf");
    const char *prompt = "Once upon a time";
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.isa = forced_isa();
    const char *wanted = ", there was a little girl named Lily. She loved to play outside in the "
                         "park. One day, she saw a big, red ball.";
    dpi_model *model = NULL;
    dpi_decoder *decoder = NULL;
    dpi_error err;
    assert_ok(dpi_model_open(data_path("models/stories260K.gguf"), NULL, &model, &err), &err);
    assert_ok(dpi_decoder_create(model, &decoder, &err), &err);
    dpi_session *s = open_session(model, &o, 1, 0);
    int32_t tokens[32], seq = 0;
    size_t n, n_bytes;
    assert_ok(dpi_tokenize(model, prompt, strlen(prompt), DPI_TOKENIZE_BOS, tokens, 32, &n, &err),
              &err);
    assert_ok(dpi_session_prefill(s, 0, tokens, n, NULL, &err), &err);
    char text[512] = "";
    while (strlen(text) < strlen(wanted)) {
        const float *logits = dpi_session_logits(s, 0);
        int32_t best = 0;
        for (int32_t i = 1; i < model->n_vocab; i++)
            best = logits[i] > logits[best] ? i : best;
        const char *piece;
        assert_ok(dpi_decoder_push(decoder, best, &piece, &n_bytes, &err), &err);
        assert_true(n_bytes > 0);
        strncat(text, piece, n_bytes);
        assert_ok(dpi_session_step(s, 1, &seq, &best, &err), &err);
    }
    assert_memory_equal(text, wanted, strlen(wanted));
    dpi_decoder_free(decoder);
    dpi_session_free(s);
    dpi_model_close(model);
}

int main(void) {
    forced_isa(); /* skips before the first test */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_stories260K), cmocka_unit_test(test_golden_F32),
        cmocka_unit_test(test_golden_llama3),      cmocka_unit_test(test_golden_F16),
        cmocka_unit_test(test_golden_Q8_0),
        cmocka_unit_test(test_golden_BF16),
        cmocka_unit_test(test_golden_Q4_0),
        cmocka_unit_test(test_golden_Q4_1),
        cmocka_unit_test(test_golden_Q5_0),
        cmocka_unit_test(test_golden_Q5_1),
        cmocka_unit_test(test_golden_IQ4_NL),
        cmocka_unit_test(test_golden_Q2_K),
        cmocka_unit_test(test_golden_Q3_K_S),
        cmocka_unit_test(test_golden_Q4_K_S),
        cmocka_unit_test(test_golden_Q5_K_S),
        cmocka_unit_test(test_golden_Q6_K),
        cmocka_unit_test(test_golden_IQ4_XS),
        cmocka_unit_test(test_golden_Q4_K_M),
        cmocka_unit_test(test_golden_prompt),      cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_greedy_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
