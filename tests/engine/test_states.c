/* States of prompts: those of the oracle, added up in the order of positions. */
#include <math.h>

#include "tests/engine/engine_support.h"
#include "tests/support/own.h"
#include "tests/support/tiny_model.h"

enum { N_TOKENS = 150, N_LAYER = 4, N_EMBD = 64, N_WANTED = 2 };

static const int32_t layers[N_WANTED] = {1, 2}; /* the last one is not needed */
static tiny_spec spec;
static void *image;
static dpi_model *model;
static int32_t tokens[N_TOKENS];

SETUP {
    uint64_t seed = 5;
    size_t n_bytes;
    spec = tiny_default();
    spec.n_layer = N_LAYER;
    assert_int_equal(spec.n_embd, N_EMBD);
    tiny_build(&spec, 9, &image, &n_bytes);
    assert_ok(dpi_model_open_buffer(image, n_bytes, NULL, &model, ERR));
    random_tokens(tokens, N_TOKENS, spec.n_vocab, &seed);
}

TEARDOWN {
    dpi_model_close(model);
    free(image);
}

typedef struct added_up {
    double sums[N_WANTED * N_EMBD], sizes[N_WANTED];
} added_up;

static added_up read_from(dpi_session *s, int32_t seq, int32_t first, int32_t n) {
    added_up a = {{0}, {0}};
    const dpi_states states = {layers, N_WANTED, a.sums, a.sizes};
    assert_ok(dpi_session_read_states(s, seq, tokens + first, (size_t)n, &states, ERR));
    return a;
}

/* Of tokens [first, N_TOKENS). */
static added_up wanted_from(int32_t first) {
    added_up a = {{0}, {0}};
    for (int w = 0; w < N_WANTED; w++) {
        double *x = oracle_states(&spec, model, tokens, N_TOKENS, NULL, layers[w] + 1);
        for (int32_t t = first; t < N_TOKENS; t++) {
            const double *row = x + t * N_EMBD;
            double square = 0;
            for (int i = 0; i < N_EMBD; i++)
                square += row[i] * row[i];
            const double size = sqrt(square / N_EMBD + (double)model->config.rms_eps);
            a.sizes[w] += size;
            for (int i = 0; i < N_EMBD; i++)
                a.sums[w * N_EMBD + i] += row[i] / size;
        }
        free(x);
    }
    return a;
}

static void assert_like(const added_up *found, const added_up *wanted) {
    double error = 0, square = 0;
    for (int i = 0; i < N_WANTED * N_EMBD; i++) {
        error += pow(found->sums[i] - wanted->sums[i], 2);
        square += pow(wanted->sums[i], 2);
    }
    assert_true(square > 1 && error < 1e-9 * square);
    for (int w = 0; w < N_WANTED; w++)
        assert_true(fabs(found->sizes[w] - wanted->sizes[w]) < 1e-5 * wanted->sizes[w]);
}

TEST(test_sums) {
    DEFAULTS(dpi_session_options, o);
    o.exact = 1;
    dpi_session *s = open_session(model, &o, 1, N_TOKENS);
    const added_up found = read_from(s, 0, 0, N_TOKENS), wanted = wanted_from(0);
    assert_like(&found, &wanted);
    assert_null(dpi_session_logits(s, 0)); /* there are none */
    dpi_session_free(s);
}

/* Behind a beginning that another sequence has read. */
TEST(test_fork) {
    enum { FIRST = 70 };
    DEFAULTS(dpi_session_options, o);
    o.exact = 1;
    dpi_session *s = open_session(model, &o, 2, N_TOKENS);
    read_from(s, 0, 0, FIRST);
    assert_ok(dpi_session_fork(s, 0, 1, FIRST, ERR));
    const added_up found = read_from(s, 1, FIRST, N_TOKENS - FIRST), wanted = wanted_from(FIRST);
    assert_like(&found, &wanted);
    dpi_session_free(s);
}

/* The same bits with any number of threads, and after a pass with logits, which has its own. */
TEST(test_threads) {
    added_up one = {{0}, {0}};
    for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
        DEFAULTS(dpi_session_options, o);
        o.n_threads = n_threads;
        dpi_session *s = open_session(model, &o, 2, N_TOKENS);
        assert_ok(dpi_session_prefill(s, 1, tokens, N_TOKENS, NULL, ERR));
        const added_up found = read_from(s, 0, 0, N_TOKENS);
        if (n_threads == 1)
            one = found;
        assert_memory_equal(&found, &one, sizeof one);
        dpi_session_reset(s, 0);
        assert_ok(dpi_session_prefill(s, 0, tokens, N_TOKENS, NULL, ERR));
        assert_memory_equal(dpi_session_logits(s, 0), dpi_session_logits(s, 1),
                            (size_t)spec.n_vocab * sizeof(float));
        dpi_session_free(s);
    }
}
