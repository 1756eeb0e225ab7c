/* Many texts at a time: each is the one that a session of its own gives, in the order of numbers,
 * however many are drawn side by side and however many prompts share a place; cancelling. */
#include "dpinfer/drawing.h"
#include "tests/support/support.h"

enum { N_PROMPTS = DPI_DRAWING_PROMPTS + 2, N_TEXTS = N_PROMPTS + 3, N_TOKENS = 6, SEED = 9 };

static dpi_model *model;
static int32_t n_vocab;
static dpi_prompts *prompts[N_PROMPTS];
static dpi_decoder *decoder;

static dpi_drawing_options options_of(int32_t n_prompts, int32_t n_texts, int32_t n_parallel) {
    dpi_drawing_options o;
    dpi_drawing_options_init(&o);
    o.model = model, o.prompts = prompts, o.n_prompts = n_prompts;
    o.n_texts = n_texts, o.n_parallel = n_parallel;
    o.method.n_tokens = N_TOKENS, o.method.tau = 1;
    o.seeded = 1, o.seed = SEED;
    return o;
}

static dpi_drawing *open_drawing(const dpi_drawing_options *o) {
    dpi_drawing *d = NULL;
    assert_ok(dpi_drawing_open(o, &d, ERR));
    return d;
}

/* ---- By hand --------------------------------------------------------------------------------- */

typedef struct hearing {
    int32_t n_drawn;
    char text[16 * N_TOKENS];
} hearing;

static int32_t hear(void *user, int32_t token) {
    hearing *h = user;
    const char *piece;
    size_t n;
    assert_ok(dpi_decoder_push(decoder, token, &piece, &n, ERR));
    strncat(h->text, piece, n);
    h->n_drawn++;
    return 0;
}

/* A text is that of its prompt and of bits of its own. */
static void check_text(const dpi_drawn_text *t, int32_t index, int32_t prompt) {
    dpi_prompts_info info = {.struct_size = sizeof info};
    dpi_sampler_options o = options_of(1, 1, 1).method;
    dpi_generate_input in;
    dpi_generate_hooks hooks;
    dpi_generate_result result = {.struct_size = sizeof result};
    hearing h = {0};
    const char *held;
    size_t n_held;
    uint64_t bits = SEED * 0x9e3779b97f4a7c15u + (uint64_t)index;
    assert_ok(dpi_prompts_info_get(prompts[prompt], &info, ERR));
    o.n_vocab = n_vocab, o.random = dpi_random_insecure, o.random_user = &bits;
    dpi_sampler *sampler = open_sampler(&o);
    dpi_session *session = open_session(model, NULL, 1, 256);
    dpi_generate_input_init(&in);
    dpi_generate_hooks_init(&hooks);
    in.public_tokens = dpi_prompts_public(prompts[prompt]), in.n_public = (size_t)info.n_public;
    in.n_tokens = N_TOKENS;
    hooks.on_token = hear, hooks.user = &h;
    assert_ok(dpi_decoder_create(model, &decoder, ERR));
    assert_ok(dpi_generate(session, sampler, &in, &hooks, &result, ERR));
    dpi_decoder_finish(decoder, &held, &n_held);
    strncat(h.text, held, n_held);
    assert_true(t->index == index && t->prompt == prompt);
    assert_true(t->n_drawn == h.n_drawn && t->ended == result.ended);
    assert_int_equal(t->n_bytes, strlen(h.text));
    assert_memory_equal(t->data, h.text, t->n_bytes);
    dpi_decoder_free(decoder);
    dpi_session_free(session);
    dpi_sampler_free(sampler);
}

static void check_all(const dpi_drawing_options *o, const int32_t *prompt) {
    dpi_drawing *d = open_drawing(o);
    dpi_drawn_text t;
    for (int32_t i = 0; i < o->n_texts; i++) {
        assert_ok(dpi_drawing_next(d, &t, ERR));
        check_text(&t, i, prompt ? prompt[i] : i % o->n_prompts);
    }
    for (int i = 0; i < 2; i++) { /* and no more */
        assert_ok(dpi_drawing_next(d, &t, ERR));
        assert_true(t.index == -1 && t.n_bytes == 0);
    }
    dpi_drawing_free(d);
}

TEST(test_each_text) {
    static const int32_t shares[] = {3, 0, 2}, prompt[] = {0, 0, 0, 2, 2}, lanes[] = {1, 2, 32};
    for (int i = 0; i < 3; i++) {
        dpi_drawing_options o = options_of(3, 5, lanes[i]);
        check_all(&o, NULL);
        o.shares = shares;
        check_all(&o, prompt);
    }
}

TEST(test_more_prompts_than_places) {
    const dpi_drawing_options o = options_of(N_PROMPTS, N_TEXTS, 5);
    check_all(&o, NULL);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static int32_t is_cancelled(void *user) { return *(const int32_t *)user; }

/* Those that have begun are told. */
TEST(test_cancel) {
    int32_t cancelled = 0, n = 1;
    dpi_drawn_text t;
    dpi_drawing_options o = options_of(1, 9, 3);
    o.session.cancel = is_cancelled, o.session.cancel_user = &cancelled;
    dpi_drawing *d = open_drawing(&o);
    assert_ok(dpi_drawing_next(d, &t, ERR));
    cancelled = 1;
    dpi_status status;
    while ((status = dpi_drawing_next(d, &t, ERR)) == DPI_STATUS_OK)
        check_text(&t, n++, 0);
    assert_error(status, CANCELLED, "between texts");
    assert_true(n >= 3 && n < 9);
    dpi_drawing_free(d);
}

TEST(test_options) {
    static const int32_t shares[] = {3, 1, 2};
    dpi_drawing *d = NULL;
    dpi_drawing_options o = options_of(3, 5, 1);
    o.shares = shares;
    assert_error(dpi_drawing_open(&o, &d, ERR), ARG, "shares: found 6 texts, allowed n_texts, 5");
    o = options_of(3, 0, 1);
    assert_error(dpi_drawing_open(&o, &d, ERR), ARG, "n_texts");
    o = options_of(3, 5, DPI_DRAWING_PARALLEL_MAX + 1);
    assert_error(dpi_drawing_open(&o, &d, ERR), ARG, "n_parallel");
    o = options_of(3, 5, 1);
    o.method = ink_options(n_vocab, 2, N_TOKENS, 1, 1);
    assert_error(dpi_drawing_open(&o, &d, ERR), ARG, "method");
    o = options_of(3, 5, 1);
    o.struct_size--;
    assert_error(dpi_drawing_open(&o, &d, ERR), ARG, "struct_size");
    assert_null(d);
}

SETUP {
    dpi_model_info info;
    dpi_prompt_options o;
    char text[40];
    dpi_model_info_init(&info);
    dpi_prompt_options_init(&o);
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR));
    assert_ok(dpi_model_info_get(model, &info, ERR));
    n_vocab = info.n_vocab;
    for (int32_t i = 0; i < N_PROMPTS; i++) {
        o.public_prompt = (dpi_bytes){text, (size_t)snprintf(text, sizeof text, "Letter %d.", i)};
        assert_ok(dpi_prompts_create(model, &o, 200, &prompts[i], ERR));
    }
}

TEARDOWN {
    for (int32_t i = 0; i < N_PROMPTS; i++)
        dpi_prompts_free(prompts[i]);
    dpi_model_close(model);
}
