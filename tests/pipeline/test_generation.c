/* Generations: whatever shares their passes, texts have the tokens, the text and the bits of logits
 * that a caller gets who gives each sequence a session of its own and feeds a sampler by hand; the
 * order of events, cancellation, failures of one beside others, and null slots. */
#include <math.h>

#include "dp/audit/audit.h"
#include "dp/methods/method.h"
#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

enum {
    MAX_REF = 3,
    LANE = MAX_REF + 1, /* sequences of a text */
    MAX_T = 12,
    N_TEXTS = 5,
    MAX_PROMPT = 100,
    N_CTX = MAX_PROMPT + MAX_T,
    EOG = 2 /* of a tiny model */
};

/* A text, and what comes of it by hand. */
typedef struct text {
    dpi_sampler_options options;
    dpi_sampler *sampler; /* draws with `seed` */
    uint64_t seed, first_seed;
    int32_t prompts[LANE][MAX_PROMPT];
    size_t n_prompt[LANE];
    const int32_t *references[MAX_REF]; /* NULL: null */
    size_t n_prefix;
    int32_t tokens[MAX_T], n;
    float *logits;       /* [MAX_T, LANE, n_vocab] before each token */
    unsigned char *read; /* [MAX_T, n_vocab] 1: a step reads the references' logits of the token */
    char written[16 * MAX_T];
    size_t n_written;
} text;

static void *image;
static dpi_model *model;
static text texts[N_TEXTS];

/* ---- By hand --------------------------------------------------------------------------------- */

static void note_logits(text *x, dpi_session *const *s) {
    const size_t n = (size_t)model->n_vocab;
    const int32_t *ids;
    int32_t n_ids;
    dpi_error err;
    for (size_t i = 0; i < LANE; i++)
        if (s[i])
            memcpy(x->logits + ((size_t)x->n * LANE + i) * n, dpi_session_logits(s[i], 0),
                   n * sizeof *x->logits);
    assert_ok(dpi_sampler_candidates(x->sampler, dpi_session_logits(s[0], 0), &ids, &n_ids, &err),
              &err);
    assert_true((ids != NULL) == (x->options.method == DPI_METHOD_INVISIBLEINK));
    for (int32_t i = 0; i < n_ids; i++)
        x->read[(size_t)x->n * n + (size_t)(ids ? ids[i] : i)] = 1;
}

static void write_token(text *x, dpi_decoder *decoder, int32_t token) {
    const char *bytes;
    size_t n;
    dpi_error err;
    if (token >= 0)
        assert_ok(dpi_decoder_push(decoder, token, &bytes, &n, &err), &err);
    else
        dpi_decoder_finish(decoder, &bytes, &n);
    assert_true(x->n_written + n <= sizeof x->written);
    memcpy(x->written + x->n_written, bytes, n);
    x->n_written += n;
}

static void write_by_hand(text *x) {
    dpi_session *s[LANE] = {0};
    const float *logits[MAX_REF] = {0};
    dpi_decoder *decoder;
    dpi_error err;
    int32_t seq = 0, token = -1;
    x->logits = calloc((size_t)MAX_T * LANE * (size_t)model->n_vocab, sizeof *x->logits);
    x->read = calloc(MAX_T, (size_t)model->n_vocab);
    assert_true(x->logits && x->read);
    assert_ok(dpi_decoder_create(model, &decoder, &err), &err);
    assert_ok(dpi_sampler_begin(x->sampler, &err), &err);
    for (int32_t i = 0; i <= x->options.n_ref; i++)
        if (i == 0 || x->references[i - 1]) {
            s[i] = open_session(model, NULL, 1, N_CTX);
            assert_ok(dpi_session_prefill(s[i], 0, x->prompts[i], x->n_prompt[i], NULL, &err), &err);
        }
    while (x->n < x->options.n_tokens && token != EOG) {
        for (int i = 0; token >= 0 && i < LANE; i++)
            if (s[i])
                assert_ok(dpi_session_step(s[i], 1, &seq, &token, &err), &err);
        note_logits(x, s);
        for (int i = 0; i < MAX_REF; i++)
            logits[i] = s[i + 1] ? dpi_session_logits(s[i + 1], 0) : NULL;
        assert_ok(dpi_sampler_step(x->sampler, dpi_session_logits(s[0], 0), logits, &token, &err),
                  &err);
        x->tokens[x->n++] = token;
        write_token(x, decoder, token);
    }
    write_token(x, decoder, -1);
    for (int i = 0; i < LANE; i++)
        dpi_session_free(s[i]);
    dpi_decoder_free(decoder);
}

/* ---- The texts -------------------------------------------------------------------------------- */

static void make_text(text *x, int32_t method, int32_t accountant, int32_t n_ref, int32_t n_tokens) {
    uint64_t seed = x->first_seed = (uint64_t)(x - texts) + 7;
    x->options = ink_options(model->n_vocab, n_ref, n_tokens, 1, 5);
    x->options.method = method;
    x->options.accountant = accountant;
    x->options.top_k = 20; /* few candidates among 2005 tokens, with a small slack */
    x->options.rho = .02;
    if (accountant == DPI_ACCOUNTANT_BR) {
        x->options.rho = 0;
        x->options.epsilon = .5;
        x->options.delta = 1e-6;
    }
    x->options.random = dpi_random_insecure;
    x->options.random_user = &x->seed;
    x->sampler = open_sampler(&x->options);
    for (int32_t i = 0; i <= n_ref; i++) {
        x->n_prompt[i] = (size_t)(i == 1 ? 80 : 1 + random_below(&seed, MAX_PROMPT));
        for (size_t t = 0; t < MAX_PROMPT; t++)
            x->prompts[i][t] = i > 1 && t < 70 ? x->prompts[1][t] : 3 + random_below(&seed, 300);
        if (i > 0)
            x->references[i - 1] = x->prompts[i];
    }
    x->n_prefix = method == DPI_METHOD_AMIN ? 0 : 70;
    if (n_ref == 3)
        x->references[1] = NULL;
    x->seed = x->first_seed;
    write_by_hand(x);
}

static int setup(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    spec.n_vocab = 2005;
    model = tiny_open(&spec, 11, &image);
    make_text(&texts[0], DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, 3, MAX_T);
    make_text(&texts[1], DPI_METHOD_PLAIN, 0, 0, 7);
    make_text(&texts[2], DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, 2, 9);
    make_text(&texts[3], DPI_METHOD_AMIN, DPI_ACCOUNTANT_ZCDP, 3, 10);
    make_text(&texts[4], DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_BR, 1, 5);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < N_TEXTS; i++) {
        dpi_sampler_free(texts[i].sampler);
        free(texts[i].logits);
        free(texts[i].read);
    }
    dpi_model_close(model);
    free(image);
    return 0;
}

/* ---- Generations of them ---------------------------------------------------------------------- */

typedef struct lane {
    text *x; /* NULL: the lane is free */
    dpi_generation *g;
    int32_t first_seq, n, n_failed;
    char written[16 * MAX_T];
    size_t n_written;
} lane;

static dpi_session *open_lanes(int32_t n_lanes, int32_t n_threads) {
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.n_threads = n_threads;
    dpi_session *s = open_session(model, &o, n_lanes * LANE, N_CTX);
    s->worth_sharing = 0; /* else one thread does it */
    return s;
}

static dpi_generation_options options_of(text *x, dpi_session *s, int32_t first_seq) {
    dpi_generation_options o;
    dpi_generation_options_init(&o);
    o.session = s;
    o.sampler = x->sampler;
    o.public_tokens = x->prompts[0];
    o.n_public = x->n_prompt[0];
    o.reference_tokens = x->references;
    o.n_reference_tokens = x->n_prompt + 1;
    o.n_ref = x->options.n_ref;
    o.first_seq = first_seq;
    o.n_prefix = x->n_prefix;
    o.text = 1;
    return o;
}

static dpi_generation *create(const dpi_generation_options *o) {
    dpi_generation *g = NULL;
    dpi_error err;
    assert_ok(dpi_generation_create(o, &g, &err), &err);
    return g;
}

static void begin(lane *l, text *x, dpi_session *s, int32_t first_seq, int32_t n_piece) {
    dpi_generation_options o = options_of(x, s, first_seq);
    o.n_piece = n_piece;
    x->seed = x->first_seed;
    *l = (lane){.x = x, .g = create(&o), .first_seq = first_seq};
}

static void assert_wiped(const dpi_session *s, int32_t first_seq) {
    for (int32_t i = first_seq; i < first_seq + LANE; i++) {
        assert_int_equal(dpi_session_length(s, i), 0);
        for (int32_t y = 0; y < model->n_vocab; y++)
            assert_true(s->logits[(int64_t)i * model->n_vocab + y] == 0);
    }
}

/* The logits that the last token was drawn from. */
static void check_logits(const lane *l, const dpi_session *s) {
    const size_t n = (size_t)model->n_vocab, t = (size_t)l->n - 1;
    for (int32_t i = 0; i <= l->x->options.n_ref; i++) {
        if (i > 0 && !l->x->references[i - 1])
            continue;
        const float *logits = dpi_session_logits(s, l->first_seq + i);
        const float *wanted = l->x->logits + (t * LANE + (size_t)i) * n;
        assert_non_null(logits);
        for (size_t y = 0; y < n; y++)
            if (i == 0 || l->x->read[t * n + y])
                assert_true(memcmp(&logits[y], &wanted[y], sizeof *logits) == 0);
    }
}

static void check_event(lane *l, const dpi_session *s, const dpi_generation_event *e) {
    const text *x = l->x;
    assert_true(l->n_written + e->n_bytes <= sizeof l->written);
    memcpy(l->written + l->n_written, e->text, e->n_bytes);
    l->n_written += e->n_bytes;
    if (e->type == DPI_EVENT_ERROR) {
        l->n_failed++;
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
    assert_int_equal(e->end, !last                          ? DPI_END_NONE
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

/* One advance of all lanes that have a text, in random order; how many had. */
static int32_t advance_lanes(lane *lanes, int32_t n, const dpi_session *s, uint64_t *seed) {
    dpi_generation *live[N_TEXTS];
    dpi_generation_event events[N_TEXTS];
    int32_t order[N_TEXTS], n_live = 0;
    dpi_error err;
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
    if (n_live > 0) {
        assert_ok(dpi_generation_advance(live, n_live, events, &err), &err);
        for (int32_t i = 0; i < n_live; i++)
            check_event(&lanes[order[i]], s, &events[i]);
    }
    return n_live;
}

/* All texts in n lanes. A lane goes on with the next text when it is free, after a random pause. */
static void check_lanes(int32_t n, int32_t n_threads, int32_t n_piece, uint64_t seed) {
    lane lanes[N_TEXTS] = {0};
    dpi_session *s = open_lanes(n, n_threads);
    int32_t n_begun = 0, n_live = 0, first = random_below(&seed, N_TEXTS);
    while (n_begun < N_TEXTS || n_live > 0) {
        for (int32_t i = 0; i < n && n_begun < N_TEXTS; i++)
            if (!lanes[i].x && random_below(&seed, 3) == 0)
                begin(&lanes[i], &texts[(first + n_begun++) % N_TEXTS], s, i * LANE, n_piece);
        n_live = advance_lanes(lanes, n, s, &seed);
    }
    dpi_session_free(s);
}

static void test_shared_passes(void **state) {
    (void)state;
    static const int32_t n_lanes[] = {1, 2, 5}, pieces[] = {0, 64, 7};
    uint64_t seed = 3;
    for (int i = 0; i < 3; i++)
        for (int32_t n_threads = 1; n_threads <= 3; n_threads++)
            for (int k = 0; k < 3; k++)
                check_lanes(n_lanes[i], n_threads, pieces[k], random_u64(&seed));
}

/* ---- Events, ends ----------------------------------------------------------------------------- */

/* The events of text 0 alone: each of four slots, null or not, then tokens, END, and nothing. */
static void test_events(void **state) {
    (void)state;
    dpi_session *s = open_lanes(1, 1);
    dpi_generation_event e;
    dpi_error err;
    lane l;
    begin(&l, &texts[0], s, 0, 0);
    for (int32_t i = 0; i <= MAX_REF; i++) {
        assert_ok(dpi_generation_advance(&l.g, 1, &e, &err), &err);
        assert_int_equal(e.type, DPI_EVENT_PROMPT);
        assert_int_equal(e.n_read, i + 1);
        assert_int_equal(e.n_prompts, MAX_REF + 1);
        assert_int_equal(e.n_drawn, 0);
        assert_int_equal(e.token, -1);
        assert_int_equal(e.n_bytes, 0);
    }
    for (int32_t t = 0; t < texts[0].n; t++) {
        assert_ok(dpi_generation_advance(&l.g, 1, &e, &err), &err);
        assert_int_equal(e.type, DPI_EVENT_TOKEN);
        assert_int_equal(e.token, texts[0].tokens[t]);
        assert_int_equal(e.n_drawn, t + 1);
        assert_int_equal(e.end != DPI_END_NONE, t + 1 == texts[0].n);
    }
    const int32_t end = e.end;
    for (int i = 0; i < 3; i++) {
        assert_ok(dpi_generation_advance(&l.g, 1, &e, &err), &err);
        assert_int_equal(e.type, i == 0 ? DPI_EVENT_END : DPI_EVENT_NONE);
        assert_int_equal(e.end, end);
        assert_int_equal(e.n_drawn, texts[0].n);
        dpi_generation_cancel(l.g); /* after the last token it changes nothing */
    }
    dpi_generation_free(l.g);
    dpi_session_free(s);
}

/* Bits for the end-of-generation token at the draw number `at`. */
typedef struct ender {
    const dpi_sampler *sampler;
    int32_t at, n;
} ender;

static int32_t give_end(void *user, void *buffer, size_t n_bytes) {
    ender *x = user;
    uint64_t bits[DPI_DRAW_WORDS];
    assert_int_equal(n_bytes, sizeof bits);
    assert_int_equal(x->sampler->n_support, model->n_vocab);
    dpi_audit_bits(x->sampler->weights, x->sampler->n_support, x->n++ == x->at ? EOG : 300, bits);
    memcpy(buffer, bits, sizeof bits);
    return 0;
}

static void test_ends(void **state) {
    (void)state;
    dpi_session *s = open_lanes(1, 1);
    for (int32_t at = 0; at <= 3; at++) {
        ender x = {.at = at};
        dpi_generation_event e = {0};
        dpi_error err;
        text y = texts[1];
        y.options.n_tokens = 3;
        y.options.top_k = 0;
        y.options.random = give_end;
        y.options.random_user = &x;
        x.sampler = y.sampler = open_sampler(&y.options);
        dpi_generation_options o = options_of(&y, s, 0);
        dpi_generation *g = create(&o);
        while (e.type != DPI_EVENT_END)
            assert_ok(dpi_generation_advance(&g, 1, &e, &err), &err);
        assert_int_equal(e.end, at < 3 ? DPI_END_EOG : DPI_END_LENGTH);
        assert_int_equal(e.n_drawn, at < 3 ? at + 1 : 3);
        dpi_generation_free(g);
        dpi_sampler_free(y.sampler);
    }
    dpi_session_free(s);
}

/* After so many advances, beside another text, which does not notice. */
static void test_cancel(void **state) {
    (void)state;
    dpi_session *s = open_lanes(2, 2);
    uint64_t seed = 1;
    for (int32_t after = 0; after < MAX_REF + 1 + 4; after++) {
        lane lanes[2];
        dpi_generation_event e;
        dpi_error err;
        begin(&lanes[0], &texts[2], s, 0, 30);
        begin(&lanes[1], &texts[0], s, LANE, 30);
        for (int32_t i = 0; i < after; i++)
            advance_lanes(lanes, 2, s, &seed);
        dpi_generation_cancel(lanes[1].g);
        assert_wiped(s, LANE);
        for (int i = 0; i < 2; i++) {
            assert_ok(dpi_generation_advance(&lanes[1].g, 1, &e, &err), &err);
            assert_int_equal(e.type, i == 0 ? DPI_EVENT_END : DPI_EVENT_NONE);
            assert_int_equal(e.end, DPI_END_CANCELLED);
            assert_int_equal(e.n_drawn, lanes[1].n);
        }
        dpi_generation_free(lanes[1].g);
        lanes[1].x = NULL;
        if (after % 2) { /* its sequences serve another text at once, and free is enough for that */
            begin(&lanes[1], &texts[3], s, LANE, 0);
            advance_lanes(lanes, 2, s, &seed);
            dpi_generation_free(lanes[1].g);
            assert_wiped(s, LANE);
            lanes[1].x = NULL;
        }
        while (advance_lanes(lanes, 2, s, &seed) > 0)
            continue;
    }
    dpi_session_free(s);
}

/* A reference that cannot be read is as one that is not there. */
static void test_null_slots(void **state) {
    (void)state;
    static const int32_t outside[] = {5, -1, 5}, beyond[] = {5, 5, 2005};
    static const int32_t over_long[N_CTX - MAX_T + 1] = {1};
    static const struct {
        const int32_t *tokens;
        size_t n;
    } unreadable[] = {{NULL, 9},      {over_long, 0}, {over_long, SIZE_MAX}, {outside, 3},
                      {beyond, 3},    {over_long, N_CTX - MAX_T + 1}};
    dpi_session *s = open_lanes(1, 1);
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        text x = texts[0];
        lane l;
        assert_null(x.references[1]);
        x.references[1] = unreadable[i].tokens;
        x.n_prompt[2] = unreadable[i].n;
        begin(&l, &texts[0], s, 0, 0);
        dpi_generation_free(l.g);
        dpi_generation_options o = options_of(&x, s, 0);
        l.g = create(&o);
        while (l.x && l.n < texts[0].n) {
            dpi_generation_event e;
            dpi_error err;
            assert_ok(dpi_generation_advance(&l.g, 1, &e, &err), &err);
            check_event(&l, s, &e);
            assert_int_equal(dpi_session_length(s, 2), 0);
        }
        while (advance_lanes(&l, 1, s, &seed) > 0)
            continue;
    }
    dpi_session_free(s);
}

/* ---- Failures --------------------------------------------------------------------------------- */

/* The system gives no bits now and then: the others go on, and another attempt has the same token. */
static void test_entropy(void **state) {
    (void)state;
    dpi_session *s = open_lanes(2, 2);
    for (int32_t n_bits = 0; n_bits < 4; n_bits++) {
        text *x = &texts[2];
        limited_source source = {x->first_seed, n_bits};
        dpi_sampler_options o = x->options;
        o.random = limited_bits;
        o.random_user = &source;
        dpi_sampler *kept = x->sampler;
        x->sampler = open_sampler(&o);
        lane lanes[2];
        begin(&lanes[0], &texts[0], s, 0, 0);
        begin(&lanes[1], x, s, LANE, 0);
        while (lanes[0].x || lanes[1].x) {
            dpi_generation *live[2] = {lanes[0].g, lanes[1].g};
            const int32_t begin_at = lanes[0].x ? 0 : 1, n = lanes[1].x ? 2 - begin_at : 1;
            dpi_generation_event e[2];
            dpi_error err;
            dpi_status status = dpi_generation_advance(live + begin_at, n, e, &err);
            for (int32_t i = 0; i < n; i++)
                check_event(&lanes[begin_at + i], s, &e[i]);
            if (status == DPI_STATUS_OK)
                continue;
            assert_int_equal(status, DPI_STATUS_ENTROPY);
            assert_int_equal(e[n - 1].type, DPI_EVENT_ERROR);
            assert_int_equal(e[n - 1].status, DPI_STATUS_ENTROPY);
            assert_int_equal(lanes[1].n, n_bits);
            if (lanes[1].n_failed == 3)
                source.n = INT32_MAX;
        }
        assert_int_equal(lanes[1].n_failed, 3);
        assert_int_equal(lanes[0].n_failed, 0);
        dpi_sampler_free(x->sampler);
        x->sampler = kept;
    }
    dpi_session_free(s);
}

/* Public logits that are not finite end no process and touch no other text; here they come of
 * embeddings that are broken under way, so that the step before had left logits out. */
static void test_numeric(void **state) {
    (void)state;
    const size_t n_bytes = (size_t)model->n_vocab * 64 * sizeof(float);
    dpi_session *s = open_lanes(1, 1);
    dpi_generation_event e = {0};
    dpi_error err;
    lane l;
    begin(&l, &texts[0], s, 0, 0);
    while (e.n_drawn < 2)
        assert_ok(dpi_generation_advance(&l.g, 1, &e, &err), &err);
    void *rows = malloc(n_bytes), *embedding = (void *)(uintptr_t)model->embedding.rows;
    assert_non_null(rows);
    memcpy(rows, embedding, n_bytes);
    memset(embedding, 0xff, n_bytes); /* NaN */
    for (int i = 0; i < 3; i++) {
        assert_error(dpi_generation_advance(&l.g, 1, &e, &err), DPI_STATUS_NUMERIC, &err, "");
        assert_int_equal(e.type, DPI_EVENT_ERROR);
        assert_int_equal(e.n_drawn, 2);
    }
    memcpy(embedding, rows, n_bytes);
    free(rows);
    dpi_generation_free(l.g);
    assert_wiped(s, 0);
    dpi_session_free(s);
}

/* Each allocation fails once: nothing but the attempt is lost. */
static void test_memory(void **state) {
    (void)state;
    dpi_session *s = open_lanes(2, 1);
    uint64_t seed = 1;
    int32_t n_failed = 0, n_seen = 0;
    for (int64_t n = 1;; n += 1 + n / 8) {
        lane lanes[2];
        dpi_error err;
        text *x = &texts[0];
        x->seed = x->first_seed;
        dpi_generation_options o = options_of(x, s, LANE);
        lanes[1] = (lane){.x = x, .first_seq = LANE};
        begin(&lanes[0], &texts[2], s, 0, 0);
        fail_allocation(n);
        dpi_status status = dpi_generation_create(&o, &lanes[1].g, &err);
        if (status != DPI_STATUS_OK) {
            assert_int_equal(status, DPI_STATUS_MEMORY);
            n_failed++;
            lanes[1].g = create(&o);
        }
        while (lanes[0].x && lanes[1].x) {
            dpi_generation *live[] = {lanes[0].g, lanes[1].g};
            dpi_generation_event e[2];
            status = dpi_generation_advance(live, 2, e, &err);
            assert_int_equal(status != DPI_STATUS_OK,
                             e[0].type == DPI_EVENT_ERROR || e[1].type == DPI_EVENT_ERROR);
            for (int i = 0; i < 2; i++) {
                check_event(&lanes[i], s, &e[i]);
                assert_true(e[i].type != DPI_EVENT_ERROR || e[i].status == DPI_STATUS_MEMORY);
            }
            n_failed += status != DPI_STATUS_OK;
        }
        const bool over = fail_allocation(0) < n;
        while (advance_lanes(lanes, 2, s, &seed) > 0)
            continue;
        if (over)
            break;
        n_seen++;
    }
    assert_true(n_failed > 5 && n_failed <= n_seen);
    dpi_session_free(s);
}

static int32_t cancel_now(void *user) { return *(int32_t *)user; }

/* The session's cancel stops a prompt, which another attempt reads again. */
static void test_session_cancel(void **state) {
    (void)state;
    int32_t now = 0, n_null = 0;
    uint64_t seed = 1;
    dpi_session_options so;
    dpi_session_options_init(&so);
    so.cancel = cancel_now;
    so.cancel_user = &now;
    dpi_session *s = open_session(model, &so, LANE, N_CTX);
    for (int32_t after = 0; after < 6; after++) {
        dpi_generation_event e;
        dpi_error err;
        lane l;
        begin(&l, &texts[0], s, 0, 40);
        for (int32_t i = 0; i < after; i++)
            advance_lanes(&l, 1, s, &seed);
        now = 1;
        dpi_status status = dpi_generation_advance(&l.g, 1, &e, &err);
        if (e.n_read == 3) { /* the null slot, of which nothing is read */
            assert_ok(status, &err);
            n_null++;
        } else {
            assert_error(status, DPI_STATUS_CANCELLED, &err, "while reading a prompt");
            assert_int_equal(e.type, DPI_EVENT_ERROR);
        }
        now = 0;
        while (advance_lanes(&l, 1, s, &seed) > 0)
            continue;
    }
    assert_int_equal(n_null, 1);
    dpi_session_free(s);
}

/* Sequences and samplers that serve two are noticed, and the first one is not disturbed. */
static void test_shared_by_mistake(void **state) {
    (void)state;
    dpi_session *s = open_lanes(2, 1);
    uint64_t seed = 1;
    dpi_error err;
    lane l;
    begin(&l, &texts[0], s, 0, 0);
    advance_lanes(&l, 1, s, &seed);
    dpi_generation_options o = options_of(&texts[2], s, 0);
    dpi_generation *other = create(&o), *both[2] = {l.g, other}, *twice[2] = {l.g, l.g};
    dpi_generation_event e[2];
    assert_error(dpi_generation_advance(both, 2, e, &err), DPI_STATUS_STATE, &err,
                 "sequence 0 is not empty");
    check_event(&l, s, &e[0]);
    assert_int_equal(e[1].status, DPI_STATUS_STATE);
    dpi_generation_free(other);
    while (l.n < 2)
        advance_lanes(&l, 1, s, &seed);
    assert_error(dpi_generation_advance(twice, 2, e, &err), DPI_STATUS_ARG, &err, "");
    assert_int_equal(e[0].type, DPI_EVENT_ERROR);
    while (advance_lanes(&l, 1, s, &seed) > 0)
        continue;

    begin(&l, &texts[0], s, 0, 0);
    while (l.n < 1)
        advance_lanes(&l, 1, s, &seed);
    o = options_of(&texts[0], s, LANE);
    other = create(&o);
    for (int i = 0; i < MAX_REF + 2; i++)
        assert_ok(dpi_generation_advance(&other, 1, e, &err), &err);
    assert_int_equal(e[0].type, DPI_EVENT_TOKEN);
    for (int i = 0; i < 2; i++) /* the sampler's text is the second one's now */
        assert_ok(dpi_generation_advance(&other, 1, e, &err), &err);
    assert_error(dpi_generation_advance(&l.g, 1, e, &err), DPI_STATUS_STATE, &err,
                 "the sampler of a text was used for something else");
    dpi_generation_free(other);
    dpi_generation_free(l.g);
    dpi_session_free(s);
}

static void refuse(const dpi_generation_options *o, const char *part) {
    dpi_generation *g = NULL;
    dpi_error err;
    assert_error(dpi_generation_create(o, &g, &err), DPI_STATUS_ARG, &err, part);
    assert_null(g);
}

static void test_arguments(void **state) {
    (void)state;
    dpi_session *s = open_lanes(1, 1), *small = open_session(model, NULL, LANE, MAX_T + 2);
    const dpi_generation_options good = options_of(&texts[0], s, 0);
    dpi_generation_options o = good;
    int32_t token = -1;
    refuse(NULL, "struct_size is 0");
#define REFUSE(field, value, part) \
    o = good, o.field = (value);   \
    refuse(&o, part)
    REFUSE(struct_size, 8, "struct_size is 8");
    REFUSE(session, NULL, "session or the sampler");
    REFUSE(sampler, NULL, "session or the sampler");
    REFUSE(n_public, 0, "the public prompt has no tokens");
    REFUSE(public_tokens, NULL, "the public prompt has no tokens");
    REFUSE(n_public, MAX_PROMPT + 1, "more than the 100 tokens that a context of 112 leaves");
    REFUSE(session, small, "more than the 2 tokens that a context of 14 leaves");
    REFUSE(n_ref, 2, "n_ref of a generation must be the sampler's");
    REFUSE(reference_tokens, NULL, "are NULL");
    REFUSE(n_reference_tokens, NULL, "are NULL");
    REFUSE(first_seq, -1, "sequence -1 and those");
    REFUSE(first_seq, 1, "sequence 1 and those");
    REFUSE(first_seq, INT32_MAX, "and those");
    REFUSE(n_piece, -1, "n_piece is -1");
    REFUSE(text, 2, "text is 2");
    o = good, o.public_tokens = &token, o.n_public = 1;
    refuse(&o, "token id out of range, must be 0..2004");
    dpi_sampler_options so = texts[1].options;
    so.n_vocab = 2004;
    o = options_of(&texts[1], s, 0), o.sampler = open_sampler(&so);
    refuse(&o, "n_vocab is 2004, must be the model's 2005");
    dpi_sampler_free(o.sampler);

    dpi_session *other = open_lanes(1, 1);
    dpi_generation_options on_other = options_of(&texts[1], other, 0);
    dpi_generation *g[] = {create(&good), create(&on_other)}, *none = NULL;
    dpi_generation_event e[2];
    dpi_error err;
    assert_error(dpi_generation_advance(g, 0, e, &err), DPI_STATUS_ARG, &err, "no generations");
    assert_error(dpi_generation_advance(g, 1, NULL, &err), DPI_STATUS_ARG, &err, "no events");
    assert_error(dpi_generation_advance(&none, 1, e, &err), DPI_STATUS_ARG, &err, "0 is NULL");
    assert_error(dpi_generation_advance(g, 2, e, &err), DPI_STATUS_ARG, &err, "another session");
    dpi_generation_free(g[0]);
    dpi_generation_free(g[1]);
    dpi_generation_free(NULL);
    dpi_session_free(other);
    dpi_session_free(small);
    dpi_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_passes),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_null_slots),
        cmocka_unit_test(test_entropy),
        cmocka_unit_test(test_numeric),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_session_cancel),
        cmocka_unit_test(test_shared_by_mistake),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
