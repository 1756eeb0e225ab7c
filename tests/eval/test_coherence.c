/* Coherence of texts and prompts: pooled states against those of each prefix, cosines by hand, and
 * which text has which prompt. */
#include "eval/coherence.h"
#include "tests/eval/eval_support.h"

OWNED(dpi_model, dpi_model_close)
OWNED(dpi_session, dpi_session_free)

static const char *const words[] = {
    "Dear patient, take one tablet in the morning.", "No.",
    "You were admitted with pain in the chest. We have done an examination of the heart, which was "
    "normal, and a test of the blood. Please walk every day, drink enough, and come back in six "
    "weeks. Call us when the pain comes back, when you cannot breathe, or when you have a fever. "
    "Do not drive for two days. Do not lift anything heavy for a week. We wish you all the best."};

static double value_of(const evaluation *e, const char *key) {
    for (int32_t i = 0; i < e->n; i++)
        if (strcmp(e->at[i].key, key) == 0)
            return e->at[i].value;
    return NAN;
}

/* The mean over a text's tokens of the features that it has when it ends there; of a text of more
 * than one chunk too. */
TEST(test_pooled) {
    enum { N_EMBD = 512, N_TOKENS = 256 };
    OWN(dpi_model) model = NULL;
    DEFAULTS(dpi_session_options, o);
    OWN_TEXTS texts = make_texts(words, NULL, 3);
    eval_reading x;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR));
    o.n_ctx = N_TOKENS, o.n_threads = 1;
    OWN(dpi_session) session = open_session(model, &o, 1, N_TOKENS);
    assert_ok(eval_read(model, &o, &texts, "texts", NULL, &x, ERR));
    assert_true(x.pooled.dim <= N_EMBD && x.n_tokens[2] > 70);
    for (int32_t t = 0; t < 3; t++) {
        int32_t tokens[N_TOKENS];
        float one[N_EMBD];
        double sum[N_EMBD] = {0};
        size_t n;
        assert_ok(dpi_tokenize(model, words[t], strlen(words[t]), DPI_TOKENIZE_BOS, tokens,
                               N_TOKENS, &n, ERR));
        assert_int_equal(tokens[0], dpi_token_bos(model));
        assert_int_equal(x.n_tokens[t], n - 1);
        for (size_t k = 2; k <= n; k++) {
            dpi_session_reset(session, 0);
            assert_ok(dpi_session_prefill(session, 0, tokens, k, NULL, ERR));
            assert_ok(dpi_session_features(session, 0, one, ERR));
            for (int32_t d = 0; d < x.pooled.dim; d++)
                sum[d] += (double)one[d];
        }
        for (int32_t d = 0; d < x.pooled.dim; d++)
            assert_true((float)(sum[d] / (double)(n - 1)) == x.pooled.at[t * x.pooled.dim + d]);
    }
    eval_reading_free(&x);
}

/* Texts (1, 0), (0, 2), (3, 4); prompts (1, 1), (0, 1), (4, 3). */
TEST(test_cosines) {
    float text[] = {1, 0, 0, 2, 3, 4}, prompt[] = {1, 1, 0, 1, 4, 3};
    const eval_vectors texts = {text, 3, 2};
    eval_vectors prompts = {prompt, 3, 2};
    OWN_EVALUATION e = {0};
    assert_ok(eval_measure_coherence(&e, &texts, &prompts, ERR));
    assert_near(value_of(&e, "coherence"), (sqrt(.5) + 1 + .96) / 3);
    assert_near(value_of(&e, "coherence_other"), (0 + .6 + 7 / (5 * sqrt(2))) / 3);
    prompts.n = 1;
    evaluation_free(&e);
    assert_ok(eval_measure_coherence(&e, &texts, &prompts, ERR));
    assert_near(value_of(&e, "coherence"), (2 * sqrt(.5) + 7 / (5 * sqrt(2))) / 3);
    assert_true(isnan(value_of(&e, "coherence_other")));
    for (int i = 1; i < 300; i++) { /* three times itself: never above 1 */
        const float x[] = {sqrtf((float)i), 1.f / (float)i, .1f};
        float one[3], other[3];
        for (int d = 0; d < 3; d++)
            one[d] = x[d], other[d] = 3 * x[d];
        const eval_vectors a = {one, 1, 3}, b = {other, 1, 3};
        evaluation_free(&e);
        assert_ok(eval_measure_coherence(&e, &a, &b, ERR));
        assert_true(value_of(&e, "coherence") <= 1);
    }
    prompts.n = 2;
    assert_error(eval_measure_coherence(&e, &texts, &prompts, ERR), ARG, "allowed 1 or 3");
}

/* A null text, and a null prompt: pairs by position in the source. */
TEST(test_pairs) {
    float text[] = {1, 0, 0, 1}, prompt[] = {1, 0, 1, 1};
    eval_text texts[] = {{.record = 0}, {.record = 2}}, prompts[] = {{.record = 1}, {.record = 2}};
    const eval_texts made = {.at = texts, .n = 2, .n_null = 1};
    eval_texts said = {.at = prompts, .n = 2, .n_null = 1};
    const eval_vectors of_made = {text, 2, 2}, of_said = {prompt, 2, 2};
    OWN_EVALUATION e = {0};
    assert_ok(eval_measure_prompts(&e, &made, &of_made, &said, &of_said, ERR));
    assert_near(value_of(&e, "coherence"), sqrt(.5)); /* of record 2 alone */
    said.n_null = 2;
    assert_error(eval_measure_prompts(&e, &made, &of_made, &said, &of_said, ERR), ARG,
                 "prompts: found 4, allowed 1 or 3");
}
