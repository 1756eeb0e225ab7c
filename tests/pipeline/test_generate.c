/* The loop: what it emits is what a caller who feeds session and sampler by hand would get; null
 * slots, limits, cancellation, and that nothing private outlives it. */
#include <math.h>

#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

enum { N_REF = 3, N_TOKENS = 12 };

static void *image;
static dpi_model *model;
static int32_t public_prompt[] = {1, 261, 262};
static int32_t first_prompt[] = {1, 290, 291, 292, 293}, third_prompt[] = {1, 300};
static const int32_t *prompts[N_REF] = {first_prompt, NULL, third_prompt};
static size_t lengths[N_REF] = {5, 0, 2};

static int setup(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    spec.n_vocab = 2005; /* some 20 candidates are few */
    model = tiny_open(&spec, 11, &image);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dpi_model_close(model);
    free(image);
    return 0;
}

static dpi_sampler_options options_of(int32_t method, int32_t n_ref, double tau) {
    dpi_sampler_options o = ink_options(model->n_vocab, n_ref, N_TOKENS, tau, 5);
    o.method = method;
    o.top_k = 40;
    return o;
}

static dpi_sampler *seeded(dpi_sampler_options o, uint64_t *seed) {
    o.random = dpi_random_insecure;
    o.random_user = seed;
    return open_sampler(&o);
}

static dpi_sampler *make_sampler(int32_t method, int32_t n_ref, double tau, uint64_t *seed) {
    return seeded(options_of(method, n_ref, tau), seed);
}

typedef struct record {
    int32_t tokens[N_TOKENS + 1], n;
    int32_t progress, stop_at, asked;
} record;

static int32_t on_token(void *user, int32_t token) {
    record *r = user;
    assert_true(r->n < N_TOKENS);
    r->tokens[r->n++] = token;
    return r->stop_at && r->n == r->stop_at;
}

static void on_progress(void *user, int32_t n_drawn, int32_t n_tokens) {
    record *r = user;
    assert_int_equal(n_tokens, N_TOKENS);
    assert_int_equal(n_drawn, r->progress);
    r->progress++;
}

static int32_t on_cancel(void *user) {
    record *r = user;
    return r->asked-- == 0;
}

static dpi_generate_input input_of(int32_t n_ref) {
    dpi_generate_input in;
    dpi_generate_input_init(&in);
    in.public_tokens = public_prompt;
    in.n_public = 3;
    in.reference_tokens = prompts;
    in.n_reference_tokens = lengths;
    in.n_ref = n_ref;
    in.n_tokens = N_TOKENS;
    return in;
}

/* By hand, one sequence a session, in the order of the definition. */
static int32_t by_hand(dpi_sampler *sampler, int32_t *tokens) {
    dpi_session *s[N_REF + 1] = {0};
    const float *logits[N_REF] = {0};
    dpi_error err;
    int32_t n = 0, seq = 0;
    assert_ok(dpi_sampler_begin(sampler, &err), &err);
    for (int i = 0; i <= N_REF; i++) {
        const int32_t *prompt = i ? prompts[i - 1] : public_prompt;
        if (!prompt)
            continue;
        s[i] = open_session(model, NULL, 1, 64);
        assert_ok(dpi_session_prefill(s[i], 0, prompt, i ? lengths[i - 1] : 3, NULL, &err), &err);
    }
    while (n < N_TOKENS) {
        for (int i = 0; i < N_REF; i++)
            logits[i] = s[i + 1] ? dpi_session_logits(s[i + 1], 0) : NULL;
        int32_t token;
        assert_ok(dpi_sampler_step(sampler, dpi_session_logits(s[0], 0), logits, &token, &err),
                  &err);
        tokens[n++] = token;
        if (token == 2)
            break;
        for (int i = 0; i <= N_REF; i++)
            if (s[i])
                assert_ok(dpi_session_step(s[i], 1, &seq, &token, &err), &err);
    }
    for (int i = 0; i <= N_REF; i++)
        dpi_session_free(s[i]);
    return n;
}

static void test_equals_by_hand(void **state) {
    (void)state;
    uint64_t seed = 42, seed_by_hand = 42;
    dpi_session *session = open_session(model, NULL, N_REF + 1, 64);
    dpi_sampler *sampler = make_sampler(DPI_METHOD_INVISIBLEINK, N_REF, 1, &seed);
    dpi_sampler *other = make_sampler(DPI_METHOD_INVISIBLEINK, N_REF, 1, &seed_by_hand);
    dpi_generate_input input = input_of(N_REF);
    dpi_error err;
    for (int text = 0; text < 5; text++) { /* the session and the sampler serve text after text */
        record r = {0};
        dpi_generate_hooks hooks = {sizeof hooks, on_token, on_progress, NULL, &r};
        dpi_generate_result result = {.struct_size = sizeof result};
        assert_ok(dpi_generate(session, sampler, &input, &hooks, &result, &err), &err);
        int32_t wanted[N_TOKENS], n = by_hand(other, wanted);
        assert_int_equal(r.n, n);
        assert_int_equal(result.n_drawn, n);
        assert_int_equal(result.ended, wanted[n - 1] == 2);
        assert_int_equal(r.progress, n + 1);
        assert_memory_equal(r.tokens, wanted, (size_t)n * sizeof *wanted);
        for (int i = 0; i <= N_REF; i++) { /* wiped */
            assert_int_equal(dpi_session_length(session, i), 0);
            for (int32_t v = 0; v < model->n_vocab; v++)
                assert_true(session->logits[i * model->n_vocab + v] == 0);
        }
    }
    dpi_sampler_free(sampler);
    dpi_sampler_free(other);
    dpi_session_free(session);
}

/* What a step has not computed is not read: NaN in the references' logits before each step changes
 * no token. Where there are few candidates most of it stays. */
typedef struct poison {
    record r;
    dpi_session *session;
    bool few;
} poison;

static int32_t on_token_poison(void *user, int32_t token) {
    poison *p = user;
    const int32_t n = model->n_vocab, present[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        float *logits = p->session->logits + present[i] * n;
        int32_t n_left = 0;
        for (int32_t y = 0; y < n; y++) {
            n_left += isnan(logits[y]) != 0;
            logits[y] = NAN;
        }
        if (p->r.n > 0) /* the prompts give all */
            assert_true(p->few ? n_left > n / 2 : n_left == 0);
    }
    return on_token(&p->r, token);
}

static void check_poisoned(dpi_sampler_options o, bool few) {
    uint64_t seed = 44, seed_by_hand = 44;
    dpi_session *session = open_session(model, NULL, N_REF + 1, 64);
    dpi_sampler *sampler = seeded(o, &seed), *other = seeded(o, &seed_by_hand);
    dpi_generate_input input = input_of(N_REF);
    dpi_error err;
    int32_t wanted[N_TOKENS], n_steps = 0;
    for (int text = 0; text < 3; text++) {
        poison p = {.session = session, .few = few};
        dpi_generate_hooks hooks = {sizeof hooks, on_token_poison, NULL, NULL, &p};
        assert_ok(dpi_generate(session, sampler, &input, &hooks, NULL, &err), &err);
        assert_int_equal(p.r.n, by_hand(other, wanted));
        assert_memory_equal(p.r.tokens, wanted, (size_t)p.r.n * sizeof *wanted);
        n_steps += p.r.n - 1;
    }
    assert_true(n_steps > N_TOKENS);
    dpi_sampler_free(sampler);
    dpi_sampler_free(other);
    dpi_session_free(session);
}

static void test_only_candidates(void **state) {
    (void)state;
    dpi_sampler_options o = options_of(DPI_METHOD_INVISIBLEINK, N_REF, 1);
    o.denominator = N_REF;
    o.top_k = 20;
    o.rho = .02; /* a small slack */
    for (o.center = 0; o.center <= 1; o.center++)
        for (o.adjacency = 0; o.adjacency <= DPI_ADJACENCY_ZERO_OUT; o.adjacency++)
            for (o.accountant = 0; o.accountant <= DPI_ACCOUNTANT_FILTER; o.accountant += 2)
                check_poisoned(o, true);
    o = options_of(DPI_METHOD_INVISIBLEINK, N_REF, 1);
    o.top_k = 500;
    check_poisoned(o, false);
    o.top_k = 0;
    check_poisoned(o, false);
    check_poisoned(options_of(DPI_METHOD_AMIN, N_REF, 1), false);
}

/* Prompts that begin alike: the same text whatever is shared, and full blocks are held once. */
enum { N_ALIKE = 70 };

typedef struct watch {
    record r;
    const dpi_session *session;
    int32_t n_shared; /* references 1 and 3 hold so many blocks together, as seen while drawing */
} watch;

static int32_t on_token_watch(void *user, int32_t token) {
    watch *w = user;
    const dpi_kv_seq *a = &w->session->kv.seqs[1], *b = &w->session->kv.seqs[3];
    for (w->n_shared = 0; w->n_shared < a->n_blocks && w->n_shared < b->n_blocks; w->n_shared++)
        if (a->blocks[w->n_shared] != b->blocks[w->n_shared])
            break;
    return on_token(&w->r, token);
}

static void test_prefix(void **state) {
    (void)state;
    static const size_t n_prefix[] = {0, 1, 2, 63, 64, 65, 70, 71, 1000};
    int32_t public[N_ALIKE], first[N_ALIKE + 5], third[N_ALIKE + 2];
    for (int32_t i = 0; i < N_ALIKE + 5; i++)
        first[i] = i == 0 ? 1 : 260 + i % 40;
    memcpy(third, first, sizeof third);
    third[N_ALIKE] = 300;
    memcpy(public, first, sizeof public);
    public[2] = 301; /* begins alike for two tokens */
    const int32_t *references[N_REF] = {first, NULL, third};
    size_t n_reference[N_REF] = {N_ALIKE + 5, 0, N_ALIKE + 2};
    dpi_session *session = open_session(model, NULL, N_REF + 1, 128);
    watch wanted = {0};
    for (size_t i = 0; i < sizeof n_prefix / sizeof *n_prefix; i++) {
        uint64_t seed = 43;
        dpi_sampler *sampler = make_sampler(DPI_METHOD_INVISIBLEINK, N_REF, 1, &seed);
        dpi_generate_input input = input_of(N_REF);
        input.public_tokens = public;
        input.n_public = N_ALIKE;
        input.reference_tokens = references;
        input.n_reference_tokens = n_reference;
        input.n_prefix = n_prefix[i];
        watch w = {.session = session};
        dpi_generate_hooks hooks = {sizeof hooks, on_token_watch, NULL, NULL, &w};
        dpi_error err;
        assert_ok(dpi_generate(session, sampler, &input, &hooks, NULL, &err), &err);
        if (i == 0)
            wanted = w;
        assert_int_equal(w.r.n, wanted.r.n);
        assert_memory_equal(w.r.tokens, wanted.r.tokens, (size_t)w.r.n * sizeof *w.r.tokens);
        assert_int_equal(w.n_shared, n_prefix[i] >= 64);
        dpi_sampler_free(sampler);
    }
    dpi_session_free(session);
}

/* tau = 0 without references: the most likely token every time. */
static void test_plain_greedy(void **state) {
    (void)state;
    uint64_t seed = 1;
    dpi_session *session = open_session(model, NULL, 1, 64);
    dpi_session *check = open_session(model, NULL, 1, 64);
    dpi_sampler *sampler = make_sampler(DPI_METHOD_PLAIN, 0, 0, &seed);
    dpi_generate_input input = input_of(0);
    record r = {0};
    dpi_generate_hooks hooks;
    dpi_generate_result result;
    dpi_generate_hooks_init(&hooks);
    dpi_generate_result_init(&result);
    hooks.on_token = on_token;
    hooks.user = &r;
    dpi_error err;
    int32_t seq = 0;
    assert_ok(dpi_generate(session, sampler, &input, &hooks, &result, &err), &err);
    assert_int_equal(result.n_drawn, r.n);
    assert_ok(dpi_session_prefill(check, 0, public_prompt, 3, NULL, &err), &err);
    for (int32_t t = 0; t < r.n; t++) {
        const float *logits = dpi_session_logits(check, 0);
        for (int32_t v = 0; v < model->n_vocab; v++)
            assert_true(logits[v] <= logits[r.tokens[t]]);
        assert_ok(dpi_session_step(check, 1, &seq, &r.tokens[t], &err), &err);
    }
    dpi_sampler_free(sampler);
    dpi_session_free(session);
    dpi_session_free(check);
}

static void test_cancel(void **state) {
    (void)state;
    uint64_t seed = 42;
    dpi_session *session = open_session(model, NULL, N_REF + 1, 64);
    dpi_sampler *sampler = make_sampler(DPI_METHOD_INVISIBLEINK, N_REF, 1, &seed);
    dpi_generate_input input = input_of(N_REF);
    dpi_error err;
    record r = {.stop_at = 2};
    dpi_generate_hooks hooks = {sizeof hooks, on_token, NULL, NULL, &r};
    dpi_generate_result result = {.struct_size = sizeof result};
    assert_error(dpi_generate(session, sampler, &input, &hooks, &result, &err),
                 DPI_STATUS_CANCELLED, &err, "after a token");
    assert_int_equal(result.n_drawn, 2);
    for (int asked = 0; asked < 6; asked++) { /* 4 slots, then before each token */
        r = (record){.asked = asked};
        hooks.cancel = on_cancel;
        assert_error(dpi_generate(session, sampler, &input, &hooks, &result, &err),
                     DPI_STATUS_CANCELLED, &err, asked < 4 ? "reading prompts" : "between tokens");
        assert_int_equal(result.n_drawn, asked < 4 ? 0 : asked - 4);
        assert_int_equal(dpi_session_length(session, 0), 0);
    }
    dpi_sampler_free(sampler);
    dpi_session_free(session);
}

static void test_limits(void **state) {
    (void)state;
    uint64_t seed = 42;
    dpi_error err;
    dpi_sampler *sampler = make_sampler(DPI_METHOD_INVISIBLEINK, N_REF, 1, &seed);
    dpi_session *session = open_session(model, NULL, N_REF + 1, N_TOKENS + 2);
    dpi_generate_input input = input_of(N_REF);
    assert_error(dpi_generate(session, sampler, &input, NULL, NULL, &err), DPI_STATUS_ARG, &err,
                 "the public prompt: more than the 2 tokens that a context of 14 leaves");
    input.n_public = 0;
    assert_error(dpi_generate(session, sampler, &input, NULL, NULL, &err), DPI_STATUS_ARG, &err,
                 "the public prompt has no tokens");
    input = input_of(N_REF);
    input.struct_size = 8;
    assert_error(dpi_generate(session, sampler, &input, NULL, NULL, &err), DPI_STATUS_ARG, &err,
                 "struct_size of input is 8");
    input = input_of(N_REF - 1);
    assert_error(dpi_generate(session, sampler, &input, NULL, NULL, &err), DPI_STATUS_ARG, &err,
                 "n_ref of a generation must be the sampler's");
    input = input_of(N_REF);
    input.n_tokens = N_TOKENS - 1;
    dpi_session_free(session);
    session = open_session(model, NULL, N_REF + 1, 64);
    assert_error(dpi_generate(session, sampler, &input, NULL, NULL, &err), DPI_STATUS_ARG, &err,
                 "n_tokens is 11, must be the sampler's 12");
    dpi_session_free(session);
    session = open_session(model, NULL, 2, 64); /* fewer sequences than slots */
    input = input_of(N_REF);
    assert_error(dpi_generate(session, sampler, &input, NULL, NULL, &err), DPI_STATUS_ARG, &err,
                 "sequence 0 and those of n_ref references after it");
    dpi_session_free(session);
    dpi_sampler_free(sampler);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_by_hand),
        cmocka_unit_test(test_only_candidates),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_plain_greedy),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
