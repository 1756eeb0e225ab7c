/* Logits that the caller computes: by a second session on the same model, so that everything must
 * be as it is without a caller. What a session asks for, forks, failures, and a whole release. */
#include "tests/pipeline/release_texts.h"

enum { N_CTX = 512 };

/* The caller's engine. */
typedef struct engine {
    dpi_session *session;
    int32_t n_calls, fails_at; /* at this call; 0: never */
    int32_t last[N_CTX], n_last;
} engine;

static engine own;
static dpi_model *outside;
static int32_t n_vocab;

static dpi_status compute(void *user, const int32_t *tokens, int32_t n_tokens, float *logits,
                          dpi_error *err) {
    engine *e = user;
    if (++e->n_calls == e->fails_at) {
        *err = (dpi_error){.code = DPI_STATUS_SYSTEM, .message = "the engine is gone"};
        return DPI_STATUS_SYSTEM;
    }
    memcpy(e->last, tokens, (size_t)n_tokens * sizeof *tokens);
    e->n_last = n_tokens;
    dpi_session_reset(e->session, 0);
    assert_ok(dpi_session_prefill(e->session, 0, tokens, (size_t)n_tokens, NULL, err));
    memcpy(logits, dpi_session_logits(e->session, 0), (size_t)n_vocab * sizeof *logits);
    return DPI_STATUS_OK;
}

static dpi_model_options options_outside(void) {
    dpi_model_options o;
    dpi_model_options_init(&o);
    o.logits = compute, o.logits_user = &own, o.n_ctx = N_CTX;
    return o;
}

SETUP {
    dpi_session_options o;
    dpi_model_info info;
    const dpi_model_options m = options_outside();
    open_documents();
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(model, &info, ERR));
    n_vocab = info.n_vocab;
    dpi_session_options_init(&o);
    o.n_ctx = N_CTX, o.n_threads = 1;
    assert_ok(dpi_session_create(model, &o, &own.session, ERR));
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, &m, &outside, ERR));
}

TEARDOWN {
    dpi_model_close(outside);
    dpi_session_free(own.session);
    close_documents();
}

SETUP_EACH { own.n_calls = own.fails_at = own.n_last = 0; }

static dpi_session *make_session(int32_t n_seq, int32_t n_kept) {
    dpi_session *s = NULL;
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.n_seq = n_seq, o.n_kept = n_kept, o.n_threads = 1;
    assert_ok(dpi_session_create(outside, &o, &s, ERR));
    return s;
}

/* The last call was for these tokens, and sequence seq has its logits. */
static void expect_asked(const dpi_session *s, int32_t seq, const int32_t *tokens, int32_t n) {
    assert_int_equal(own.n_last, n);
    assert_memory_equal(own.last, tokens, (size_t)n * sizeof *tokens);
    assert_int_equal(dpi_session_length(s, seq), n);
    assert_memory_equal(dpi_session_logits(s, seq), dpi_session_logits(own.session, 0),
                        (size_t)n_vocab * sizeof(float));
}

TEST(test_model) {
    dpi_model *m = NULL;
    dpi_model_info info;
    dpi_model_options o = options_outside();
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(outside, &info, ERR));
    assert_string_equal(info.name, "dpinfer-4m (logits by the caller)");
    assert_int_equal(info.n_ctx_train, N_CTX);
    o.n_ctx = 1;
    assert_error(dpi_model_open(DPI_BUILTIN_MODEL, &o, &m, ERR), ARG, "n_ctx is 1");
    o.n_ctx = (1 << 20) + 1;
    assert_error(dpi_model_open(DPI_BUILTIN_MODEL, &o, &m, ERR), ARG, "n_ctx is 1048577");
}

/* Blocks of the cache are crossed, shared and copied in part; a step has other rows beside. */
TEST(test_sequences) {
    enum { N = 150 };
    int32_t tokens[N + 2], other[3] = {9, 8, 7};
    float features[1024];
    for (int32_t i = 0; i < N; i++)
        tokens[i] = 3 + 7 * i % 1000;
    dpi_session *s = make_session(3, 1);
    assert_ok(dpi_session_prefill(s, 0, tokens, N, NULL, ERR));
    assert_int_equal(own.n_calls, 1); /* of the last token alone */
    expect_asked(s, 0, tokens, N);
    assert_ok(dpi_session_fork(s, 0, 2, 100, ERR));
    assert_ok(dpi_session_fork(s, 0, 3, N, ERR)); /* one that only holds tokens */
    assert_null(dpi_session_logits(s, 2));
    assert_ok(dpi_session_prefill(s, 1, other, 2, NULL, ERR));
    tokens[N] = 44;
    assert_ok(dpi_session_step(s, 2, (int32_t[]){1, 0}, (int32_t[]){7, 44}, ERR));
    expect_asked(s, 0, tokens, N + 1);
    tokens[100] = 77;
    assert_ok(dpi_session_step_partial(s, 1, (int32_t[]){2}, &tokens[100], 0, ERR));
    assert_null(dpi_session_logits(s, 2));
    assert_ok(dpi_session_logits_at(s, 0, 1, NULL, 0, ERR));
    expect_asked(s, 2, tokens, 101);
    dpi_session_reset(s, 0);
    assert_ok(dpi_session_fork(s, 3, 0, N, ERR));
    tokens[100] = 3 + 7 * 100 % 1000;
    assert_ok(dpi_session_step(s, 1, (int32_t[]){0}, &tokens[N], ERR));
    expect_asked(s, 0, tokens, N + 1);
    assert_error(dpi_session_features(s, 0, features, ERR), UNSUPPORTED,
                 "logits that the caller computes");
    dpi_session_free(s);
}

/* What the caller says is the error, and nothing is appended. */
TEST(test_failures) {
    const int32_t tokens[] = {5, 6, 7};
    dpi_session *s = make_session(2, 0);
    own.fails_at = 1;
    assert_error(dpi_session_prefill(s, 0, tokens, 3, NULL, ERR), SYSTEM, "the engine is gone");
    assert_int_equal(dpi_session_length(s, 0), 0);
    assert_ok(dpi_session_prefill(s, 0, tokens, 2, NULL, ERR));
    assert_ok(dpi_session_prefill(s, 1, tokens, 1, NULL, ERR));
    own.fails_at = own.n_calls + 2;
    assert_error(dpi_session_step(s, 2, (int32_t[]){0, 1}, (int32_t[]){7, 6}, ERR), SYSTEM, "");
    assert_int_equal(dpi_session_length(s, 0), 2);
    assert_int_equal(dpi_session_length(s, 1), 1);
    assert_error(dpi_session_logits_at(s, 0, 1, NULL, 0, ERR), STATE, "");
    assert_ok(dpi_session_step(s, 1, (int32_t[]){0}, &tokens[2], ERR));
    expect_asked(s, 0, tokens, 3);
    dpi_session_free(s);
}

/* The texts are those of the model itself; the pace is found too, and the claim says whose logits
 * they are. */
TEST(test_release) {
    static char mine[TEXT_BYTES], its[TEXT_BYTES];
    char *json;
    uint64_t seed = 11;
    dpi_claim claim;
    dpi_release_options o = options_of(&seed);
    o.session.n_ctx = N_CTX, o.method.pace = DPI_PACE_AUTO;
    draw_texts(open_release(&o), true, its);
    o.model = outside;
    dpi_release *release = open_release(&o);
    dpi_claim_init(&claim);
    dpi_claim_of_run(dpi_release_run(release), &claim);
    assert_ok(dpi_claim_write(&claim, &json, ERR));
    assert_non_null(strstr(json, "\"model\":\"dpinfer-4m (logits by the caller)\""));
    free(json);
    draw_texts(release, true, mine);
    assert_string_equal(mine, its);
}
