#include "tests/pipeline/generation_lanes.h"

#include <math.h>

#include "pipeline/model_tokens.h"
#include "pipeline/shaping.h"
#include "tests/support/own.h"
#include "tests/support/tiny_model.h"

OWNED(dpi_shaping, dpi_shaping_free)
OWNED(dpi_shaped, dpi_shaped_free)

dpi_model *model;
text texts[N_TEXTS];
static void *image;

/* ---- By hand --------------------------------------------------------------------------------- */

static float *row_of(const text *x, size_t slot) {
    return x->logits + ((size_t)x->n * LANE + slot) * (size_t)model->n_vocab;
}

/* What a wording gives: to each token of a bias, and to each one that has come. */
static void shift_row(const text *x, float *row) {
    const dpi_wording *w = x->wording;
    for (int32_t i = 0; w && i < w->n_biases; i++)
        row[w->biases[i].token] += (float)w->biases[i].bias;
    for (int32_t i = 0; w && w->repeat_penalty != 1 && i < x->n; i++) {
        int32_t first = 0;
        while (x->tokens[first] != x->tokens[i])
            first++;
        if (first == i)
            row[x->tokens[i]] += (float)(-16 * log(w->repeat_penalty));
    }
}

static void allow_tokens(text *x, dpi_shaped *shaped) {
    bool is_end;
    assert_ok(dpi_shaped_reserve(shaped, ERR));
    const uint64_t *bits = dpi_shaped_allow(shaped, NULL, &is_end);
    assert_ok(dpi_sampler_allow(x->sampler, bits, ERR));
}

static void note_logits(text *x, dpi_session *const *s) {
    const size_t n = (size_t)model->n_vocab;
    const int32_t *ids;
    int32_t n_ids;
    for (size_t i = 0; i < LANE; i++)
        if (s[i]) {
            memcpy(row_of(x, i), dpi_session_logits(s[i], 0), n * sizeof *x->logits);
            shift_row(x, row_of(x, i));
        }
    assert_ok(dpi_sampler_candidates(x->sampler, row_of(x, 0), &ids, &n_ids, ERR));
    if (x->options.top_k == 20) /* few candidates */
        assert_true((ids != NULL) == (x->options.method == DPI_METHOD_INVISIBLEINK));
    if (n_ids > 0)
        x->n_needed = x->n + 1;
    for (int32_t i = 0; i < n_ids; i++)
        x->read[(size_t)x->n * n + (size_t)(ids ? ids[i] : i)] = 1;
}

static void write_token(text *x, dpi_decoder *decoder, int32_t token) {
    const char *bytes;
    size_t n;
    if (token >= 0)
        assert_ok(dpi_decoder_push(decoder, token, &bytes, &n, ERR));
    else
        dpi_decoder_finish(decoder, &bytes, &n);
    assert_true(x->n_written + n <= sizeof x->written);
    memcpy(x->written + x->n_written, bytes, n);
    x->n_written += n;
}

static dpi_shaping *make_shaping(const dpi_wording *wording) {
    dpi_model_tokens tokens;
    dpi_shaping *shaping = NULL;
    assert_ok(dpi_model_tokens_read(model, &tokens, ERR));
    if (wording)
        assert_ok(dpi_shaping_make(wording, tokens.at, tokens.n, true, &shaping, ERR));
    dpi_model_tokens_free(&tokens);
    return shaping;
}

void write_by_hand(text *x) {
    OWN(dpi_shaping) shaping = make_shaping(x->wording);
    dpi_shaped *begun = NULL;
    assert_ok(dpi_shaped_create(shaping, &begun, ERR));
    OWN(dpi_shaped) shaped = begun;
    dpi_session *s[LANE] = {0};
    const float *logits[MAX_REF] = {0};
    dpi_decoder *decoder;
    int32_t seq = 0, token = -1;
    x->logits = calloc((size_t)MAX_T * LANE * (size_t)model->n_vocab, sizeof *x->logits);
    x->read = calloc(MAX_T, (size_t)model->n_vocab);
    assert_true(x->logits && x->read);
    x->options.random = dpi_random_insecure, x->options.random_user = &x->seed;
    x->sampler = open_sampler(&x->options);
    x->seed = x->first_seed;
    assert_ok(dpi_decoder_create(model, &decoder, ERR));
    assert_ok(dpi_sampler_begin(x->sampler, ERR));
    for (int32_t i = 0; i <= x->options.n_ref; i++)
        if (i == 0 || x->references[i - 1]) {
            s[i] = open_session(model, NULL, 1, N_CTX);
            assert_ok(dpi_session_prefill(s[i], 0, x->prompts[i], x->n_prompt[i], NULL, ERR));
        }
    while (x->n < x->options.n_tokens && token != EOG) {
        for (int i = 0; token >= 0 && i < LANE; i++)
            if (s[i])
                assert_ok(dpi_session_step(s[i], 1, &seq, &token, ERR));
        allow_tokens(x, shaped);
        note_logits(x, s);
        for (size_t i = 0; i < MAX_REF; i++)
            logits[i] = s[i + 1] ? row_of(x, i + 1) : NULL;
        assert_ok(dpi_sampler_step(x->sampler, row_of(x, 0), logits, &token, ERR));
        dpi_shaped_push(shaped, token);
        x->tokens[x->n++] = token;
        write_token(x, decoder, token);
    }
    write_token(x, decoder, -1);
    for (int i = 0; i < LANE; i++)
        dpi_session_free(s[i]);
    dpi_decoder_free(decoder);
}

/* ---- The texts ------------------------------------------------------------------------------- */

void copy_text(text *to, const text *from) {
    *to = (text){
        .options = from->options, .first_seed = from->first_seed, .n_prefix = from->n_prefix};
    memcpy(to->prompts, from->prompts, sizeof to->prompts);
    memcpy(to->n_prompt, from->n_prompt, sizeof to->n_prompt);
    for (int i = 0; i < MAX_REF; i++)
        to->references[i] = from->references[i] ? to->prompts[i + 1] : NULL;
}

void free_text(text *x) {
    dpi_sampler_free(x->sampler);
    free(x->logits);
    free(x->read);
}

static void make_text(text *x, int32_t method, int32_t accountant, int32_t n_ref, int32_t n_tokens,
                      int32_t n_private) {
    uint64_t seed = x->first_seed = (uint64_t)(x - texts) + 7;
    dpi_sampler_options *o = &x->options;
    *o = ink_options(model->n_vocab, n_ref, n_tokens, 1, .02); /* a small slack */
    o->method = method;
    o->accountant = accountant;
    o->top_k = 20; /* few candidates among 2005 tokens */
    if (accountant == DPI_ACCOUNTANT_BR)
        o->rho = 0, o->epsilon = .5, o->delta = 1e-6;
    if (n_private > 0) /* the first ones */
        o->pace = DPI_PACE_TOP, o->pace_theta = 1, o->pace_tokens = n_private;
    for (int32_t i = 0; i <= n_ref; i++) {
        x->n_prompt[i] = (size_t)(i == 1 ? 80 : 1 + random_below(&seed, MAX_PROMPT));
        for (size_t t = 0; t < MAX_PROMPT; t++)
            x->prompts[i][t] = i > 1 && t < 70 ? x->prompts[1][t] : 3 + random_below(&seed, 300);
        if (i > 0 && (i != 2 || n_ref < 3))
            x->references[i - 1] = x->prompts[i];
    }
    x->n_prefix = method == DPI_METHOD_AMIN ? 0 : 70;
    write_by_hand(x);
}

void lanes_setup(void) {
    tiny_spec spec = tiny_default();
    spec.n_vocab = 2005;
    model = tiny_open(&spec, 11, &image);
    make_text(&texts[0], DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, 3, MAX_T, 0);
    make_text(&texts[1], DPI_METHOD_PLAIN, 0, 0, 7, 0);
    make_text(&texts[2], DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, 2, 9, 0);
    make_text(&texts[3], DPI_METHOD_AMIN, DPI_ACCOUNTANT_ZCDP, 3, 10, 0);
    make_text(&texts[4], DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_BR, 1, 5, 0);
    make_text(&texts[5], DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, 3, MAX_T, 4);
    assert_true(texts[5].n_needed == 4 && texts[5].n > 6);
}

void lanes_teardown(void) {
    for (int i = 0; i < N_TEXTS; i++)
        free_text(&texts[i]);
    dpi_model_close(model);
    free(image);
}

/* ---- Generations of them --------------------------------------------------------------------- */

dpi_session *open_lanes(int32_t n_lanes, int32_t n_threads) {
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.n_threads = n_threads;
    dpi_session *s = open_session(model, &o, n_lanes * LANE, N_CTX);
    s->worth_sharing = 0; /* else one thread does it */
    return s;
}

dpi_generation_options options_of(text *x, dpi_session *s, int32_t first_seq) {
    dpi_generation_options o;
    dpi_generation_options_init(&o);
    o.session = s, o.first_seq = first_seq;
    o.sampler = x->sampler;
    o.public_tokens = x->prompts[0], o.n_public = x->n_prompt[0];
    o.reference_tokens = x->references, o.n_reference_tokens = x->n_prompt + 1;
    o.n_ref = x->options.n_ref;
    o.n_prefix = x->n_prefix;
    o.text = DPI_TEXT_PIECES;
    return o;
}

dpi_generation *create(const dpi_generation_options *o) {
    dpi_generation *g = NULL;
    assert_ok(dpi_generation_create(o, &g, ERR));
    return g;
}

lane begin_with(text *x, const dpi_generation_options *o) {
    x->seed = x->first_seed;
    return (lane){.x = x, .g = create(o), .first_seq = o->first_seq};
}

lane begin(text *x, dpi_session *s, int32_t first_seq, int32_t n_piece) {
    dpi_generation_options o = options_of(x, s, first_seq);
    o.n_piece = n_piece;
    return begin_with(x, &o);
}

dpi_generation_event advance(dpi_generation *g) {
    dpi_generation_event e;
    assert_ok(dpi_generation_advance(&g, 1, &e, ERR));
    return e;
}

static void assert_seq_wiped(const dpi_session *s, int32_t seq) {
    assert_int_equal(dpi_session_length(s, seq), 0);
    for (int32_t y = 0; y < model->n_vocab; y++)
        assert_true(s->logits[(int64_t)seq * model->n_vocab + y] == 0);
}

void assert_wiped(const dpi_session *s, int32_t first_seq) {
    for (int32_t i = first_seq; i < first_seq + LANE; i++)
        assert_seq_wiped(s, i);
}

/* The caches of references go with the last token that needs them, if it is not the text's last. */
static bool is_dropped(const lane *l, int32_t slot) {
    return slot > 0 && l->x->n_needed < l->x->n && l->n >= l->x->n_needed;
}

/* The logits that the last token was drawn from: those that are read; all that prompts give. */
static void check_logits(const lane *l, const dpi_session *s) {
    const size_t n = (size_t)model->n_vocab, t = (size_t)l->n - 1;
    for (int32_t i = 0; i <= l->x->options.n_ref; i++) {
        if (i > 0 && !l->x->references[i - 1])
            continue;
        const float *logits = dpi_session_logits(s, l->first_seq + i);
        if (is_dropped(l, i)) {
            assert_seq_wiped(s, l->first_seq + i);
            continue;
        }
        const float *wanted = l->x->logits + (t * LANE + (size_t)i) * n;
        assert_non_null(logits);
        for (size_t y = 0; y < n; y++)
            if (t == 0 || i == 0 || l->x->read[t * n + y])
                assert_true(memcmp(&logits[y], &wanted[y], sizeof *logits) == 0);
    }
}

void check_event(lane *l, const dpi_session *s, const dpi_generation_event *e) {
    const text *x = l->x;
    assert_true(l->n_written + e->n_bytes <= sizeof l->written);
    memcpy(l->written + l->n_written, e->text, e->n_bytes);
    l->n_written += e->n_bytes;
    if (e->type == DPI_EVENT_ERROR) {
        l->n_failed++;
        l->failure = e->status;
        return;
    }
    assert_int_equal(e->status, DPI_STATUS_OK);
    assert_int_equal(e->n_prompts, x->options.n_ref + 1);
    if (e->type == DPI_EVENT_TOKEN) {
        assert_int_equal(e->token, x->tokens[l->n++]);
        check_logits(l, s);
    }
    const bool last = l->n == x->n;
    assert_int_equal(e->n_drawn, l->n);
    assert_int_equal(e->end, !last                        ? DPI_END_NONE
                             : x->tokens[l->n - 1] == EOG ? DPI_END_EOG
                                                          : DPI_END_LENGTH);
    if (e->type != DPI_EVENT_END)
        return;
    assert_true(last);
    assert_int_equal(l->n_written, x->n_written);
    assert_memory_equal(l->written, x->written, x->n_written);
    assert_wiped(s, l->first_seq);
    dpi_generation_free(l->g);
    l->x = NULL;
}

dpi_status try_lanes(lane *lanes, int32_t n, const dpi_session *s, uint64_t *seed) {
    dpi_generation *live[N_TEXTS];
    dpi_generation_event events[N_TEXTS];
    int32_t order[N_TEXTS], n_live = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!lanes[i].x)
            continue;
        order[n_live] = i;
        const int32_t at = random_below(seed, ++n_live);
        order[n_live - 1] = order[at];
        order[at] = i;
    }
    for (int32_t i = 0; i < n_live; i++)
        live[i] = lanes[order[i]].g;
    const dpi_status status =
        n_live > 0 ? dpi_generation_advance(live, n_live, events, ERR) : DPI_STATUS_OK;
    for (int32_t i = 0; i < n_live; i++)
        check_event(&lanes[order[i]], s, &events[i]);
    return status;
}

int32_t advance_lanes(lane *lanes, int32_t n, const dpi_session *s, uint64_t *seed) {
    int32_t n_live = 0;
    for (int32_t i = 0; i < n; i++)
        n_live += lanes[i].x != NULL;
    assert_ok(try_lanes(lanes, n, s, seed));
    return n_live;
}

void finish_lanes(lane *lanes, int32_t n, const dpi_session *s) {
    uint64_t seed = 1;
    while (advance_lanes(lanes, n, s, &seed) > 0)
        continue;
}
