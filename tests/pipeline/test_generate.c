/* The loop: what it emits is what a caller who feeds session and sampler by hand would get; null
 * slots, limits, cancellation, and that nothing private outlives it. */
#include <math.h>

#include "tests/pipeline/generation_lanes.h"
#include "tests/support/tiny_model.h"

SETUP { lanes_setup(); }
TEARDOWN { lanes_teardown(); }

static dpi_generate_input input_of(const text *x) {
    dpi_generate_input in;
    dpi_generate_input_init(&in);
    in.public_tokens = x->prompts[0], in.n_public = x->n_prompt[0];
    in.reference_tokens = x->references, in.n_reference_tokens = x->n_prompt + 1;
    in.n_ref = x->options.n_ref;
    in.n_tokens = x->options.n_tokens;
    in.n_prefix = x->n_prefix;
    return in;
}

/* Hears a text, and checks that it is the one by hand. */
typedef struct listener {
    const text *x;
    dpi_session *session;
    int32_t n, progress, stop_at, n_calls; /* cancels at stop_at tokens, or after n_calls */
    bool poisons, few;                     /* see test_only_candidates */
    int32_t n_shared;                      /* see test_prefix */
} listener;

/* NaN in the references' logits before each step; where there are few candidates most of it
 * stays. */
static void poison(const listener *l) {
    const int32_t n = model->n_vocab, present[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        float *logits = l->session->logits + present[i] * n;
        int32_t n_left = 0;
        for (int32_t y = 0; y < n; y++) {
            n_left += isnan(logits[y]) != 0;
            logits[y] = NAN;
        }
        if (l->n > 0) /* the prompts give all */
            assert_true(l->few ? n_left > n / 2 : n_left == 0);
    }
}

static int32_t on_token(void *user, int32_t token) {
    listener *l = user;
    if (l->poisons)
        poison(l);
    const dpi_kv_list *a = l->session->kv.seqs[1].lists, *b = l->session->kv.seqs[3].lists;
    l->n_shared = 0;
    while (l->n_shared < a->n && l->n_shared < b->n &&
           a->blocks[l->n_shared] == b->blocks[l->n_shared])
        l->n_shared++;
    assert_true(l->n < l->x->n);
    assert_int_equal(token, l->x->tokens[l->n++]);
    return l->stop_at && l->n == l->stop_at;
}

static void on_progress(void *user, int32_t n_drawn, int32_t n_tokens) {
    listener *l = user;
    assert_int_equal(n_tokens, l->x->options.n_tokens);
    assert_int_equal(n_drawn, l->progress++);
}

static int32_t on_cancel(void *user) {
    listener *l = user;
    return l->n_calls-- == 0;
}

/* One text, with its bits from the beginning; its caches are wiped. */
static dpi_status generate(dpi_session *s, text *x, listener *l, bool cancels,
                           dpi_generate_result *result) {
    const dpi_generate_input in = input_of(x);
    const dpi_generate_hooks hooks = {sizeof hooks, on_token, on_progress,
                                      cancels ? on_cancel : NULL, l};
    l->x = x, l->session = s;
    x->seed = x->first_seed;
    dpi_generate_result_init(result);
    const dpi_status status = dpi_generate(s, x->sampler, &in, &hooks, result, ERR);
    assert_wiped(s, 0);
    return status;
}

static void expect_whole(dpi_session *s, text *x, listener *l) {
    dpi_generate_result result;
    assert_ok(generate(s, x, l, false, &result));
    assert_true(l->n == x->n && result.n_drawn == x->n && l->progress == x->n + 1);
    assert_int_equal(result.ended, x->tokens[x->n - 1] == EOG);
}

TEST(test_equals_by_hand) {
    dpi_session *s = open_session(model, NULL, LANE, N_CTX);
    for (int i = 0; i < 2 * N_TEXTS; i++) { /* session and samplers serve text after text */
        listener l = {0};
        expect_whole(s, &texts[i / 2], &l);
    }
    dpi_session_free(s);
}

/* What a step has not computed is not read: poison changes no token. */
static void check_poisoned(const dpi_sampler_options *o, bool few) {
    dpi_session *s = open_session(model, NULL, LANE, N_CTX);
    int32_t n_steps = 0;
    for (uint64_t seed = 44; seed < 47; seed++) {
        text x;
        copy_text(&x, &texts[0]);
        x.options = *o, x.first_seed = seed;
        write_by_hand(&x);
        listener l = {.poisons = true, .few = few};
        expect_whole(s, &x, &l);
        n_steps += x.n - 1;
        free_text(&x);
    }
    assert_true(n_steps > MAX_T);
    dpi_session_free(s);
}

TEST(test_only_candidates) {
    dpi_sampler_options o = texts[0].options;
    o.denominator = MAX_REF;
    for (o.center = 0; o.center <= 1; o.center++)
        for (o.adjacency = 0; o.adjacency <= DPI_ADJACENCY_ZERO_OUT; o.adjacency++)
            for (o.accountant = 0; o.accountant <= DPI_ACCOUNTANT_FILTER; o.accountant += 2)
                check_poisoned(&o, true);
    o = ink_options(model->n_vocab, MAX_REF, MAX_T, 1, 5);
    check_poisoned(&o, false);
    o.top_k = 500;
    check_poisoned(&o, false);
    o.method = DPI_METHOD_AMIN, o.top_k = 40;
    check_poisoned(&o, false);
}

/* Prompts that begin alike: the same text whatever is shared, and full blocks are held once. */
static void check_prefix(size_t n_most) { /* of n_prefix, where something is shared */
    static const size_t n_prefix[] = {0, 1, 2, 63, 64, 65, 70, 71, 1000};
    dpi_session *s = open_session(model, NULL, LANE, N_CTX);
    text x;
    copy_text(&x, &texts[0]);
    memcpy(x.prompts[0], x.prompts[1], sizeof x.prompts[0]);
    x.prompts[0][2] = 301; /* begins alike for two tokens */
    x.n_prompt[0] = 70, x.n_prompt[1] = 75, x.n_prompt[3] = 72;
    assert_true(x.prompts[0][2] != x.prompts[1][2] && x.prompts[1][70] != x.prompts[3][70]);
    write_by_hand(&x);
    for (size_t i = 0; i < sizeof n_prefix / sizeof *n_prefix; i++) {
        listener l = {0};
        x.n_prefix = n_prefix[i];
        expect_whole(s, &x, &l);
        assert_int_equal(l.n_shared, n_prefix[i] >= 64 && n_prefix[i] <= n_most);
    }
    free_text(&x);
    dpi_session_free(s);
}

TEST(test_prefix) { check_prefix(SIZE_MAX); }

/* The first prompts have grown beyond their windows when the others are forked from them. */
TEST(test_prefix_windows) {
    enum { WINDOW = 8 };
    dpi_model *whole = model;
    model = tiny_open_windowed(whole->n_vocab, WINDOW);
    check_prefix(70); /* those that begin alike */
    dpi_model_close(model);
    model = whole;
}

/* tau = 0 without references: the most likely token every time. */
TEST(test_plain_greedy) {
    dpi_session *s = open_session(model, NULL, LANE, N_CTX);
    listener l = {0};
    text x;
    copy_text(&x, &texts[1]);
    x.options.tau = 0;
    write_by_hand(&x);
    expect_whole(s, &x, &l);
    for (size_t t = 0; t < (size_t)x.n; t++) {
        const float *logits = x.logits + t * LANE * (size_t)model->n_vocab;
        for (int32_t v = 0; v < model->n_vocab; v++)
            assert_true(logits[v] <= logits[x.tokens[t]]);
    }
    free_text(&x);
    dpi_session_free(s);
}

TEST(test_cancel) {
    dpi_session *s = open_session(model, NULL, LANE, N_CTX);
    dpi_generate_result result;
    listener l = {.stop_at = 2};
    assert_error(generate(s, &texts[0], &l, false, &result), CANCELLED, "after a token");
    assert_int_equal(result.n_drawn, 2);
    for (int n = 0; n < 6; n++) { /* 4 slots, then before each token */
        l = (listener){.n_calls = n};
        assert_error(generate(s, &texts[0], &l, true, &result), CANCELLED,
                     n < 4 ? "reading prompts" : "between tokens");
        assert_int_equal(result.n_drawn, n < 4 ? 0 : n - 4);
    }
    dpi_session_free(s);
}

/* What a generation refuses is in test_generation_failures.c. */
TEST(test_limits) {
    dpi_generate_input in = input_of(&texts[0]);
    dpi_session *whole = open_session(model, NULL, LANE, N_CTX);
    dpi_session *two = open_session(model, NULL, 2, N_CTX); /* fewer sequences than slots */
    assert_error(dpi_generate(two, texts[0].sampler, &in, NULL, NULL, ERR), ARG,
                 "sequence 0 and those of n_ref references after it");
    in.n_tokens = MAX_T - 1;
    assert_error(dpi_generate(whole, texts[0].sampler, &in, NULL, NULL, ERR), ARG,
                 "n_tokens is 11, must be the sampler's 12");
    in.struct_size = 8;
    assert_error(dpi_generate(whole, texts[0].sampler, &in, NULL, NULL, ERR), ARG,
                 "dpi_generate_input.struct_size is 8");
    dpi_session_free(whole);
    dpi_session_free(two);
}
