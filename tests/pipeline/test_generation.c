/* Generations: whatever shares their passes, texts have the tokens, the text and the bits of logits
 * that a caller gets who gives each sequence a session of its own and feeds a sampler by hand; the
 * order of events, ends, cancellation and null slots. */
#include "dp/audit/audit.h"
#include "dp/methods/method.h"
#include "tests/pipeline/generation_lanes.h"

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

/* ---- Events, ends ---------------------------------------------------------------------------- */

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

/* Prompts that other sequences hold give the same tokens and the same bits of logits, text after
 * text, and stay as they are. A sequence that does not hold its prompt is refused, whichever it
 * is. */
static void test_held_prompts(void **state) {
    (void)state;
    dpi_session *s = open_lanes(2, 1);
    int32_t held[LANE];
    dpi_error err;
    text *x = &texts[0];
    for (int32_t i = 0; i <= x->options.n_ref; i++) {
        held[i] = i == 0 || x->references[i - 1] ? LANE + i : -1;
        if (held[i] >= 0)
            assert_ok(dpi_session_prefill(s, held[i], x->prompts[i], x->n_prompt[i], NULL, &err),
                      &err);
    }
    for (int round = 0; round < 2; round++) {
        text y = *x; /* with bits from the beginning */
        uint64_t seed = x->first_seed;
        dpi_generation_event e = {0};
        int32_t n = 0;
        y.options.random_user = &seed;
        y.sampler = open_sampler(&y.options);
        dpi_generation_options o = options_of(&y, s, 0);
        o.prompt_seqs = held;
        dpi_generation *g = create(&o);
        while (e.type != DPI_EVENT_END) {
            assert_ok(dpi_generation_advance(&g, 1, &e, &err), &err);
            if (e.type == DPI_EVENT_TOKEN)
                assert_int_equal(e.token, x->tokens[n++]);
        }
        assert_int_equal(n, x->n);
        assert_int_equal(dpi_sampler_n_private(y.sampler), n);
        dpi_generation_free(g);
        dpi_sampler_free(y.sampler);
        assert_wiped(s, 0);
        assert_int_equal(dpi_session_length(s, LANE), (int32_t)x->n_prompt[0]);
    }
    dpi_session_reset(s, LANE);
    dpi_generation_options o = options_of(x, s, 0);
    dpi_generation_event e;
    o.prompt_seqs = held;
    dpi_generation *g = create(&o);
    assert_int_equal(dpi_generation_advance(&g, 1, &e, &err), DPI_STATUS_STATE);
    assert_non_null(strstr(err.message, "prompt_seqs does not hold"));
    dpi_generation_free(g);
    dpi_session_free(s);
}

/* A sequence that begins with the first n tokens of a prompt, and goes on in another way. */
static void hold_beginning(dpi_session *s, int32_t seq, const int32_t *prompt, size_t n) {
    const int32_t others[] = {300, 301, 302};
    dpi_error err;
    dpi_session_reset(s, seq);
    if (n > 0)
        assert_ok(dpi_session_prefill(s, seq, prompt, n, NULL, &err), &err);
    assert_ok(dpi_session_prefill(s, seq, others, 3, NULL, &err), &err);
}

/* All prompts are read: their logits have the bits that they have where nothing is held. */
static void assert_prompts_read(const dpi_session *s, const text *x) {
    dpi_session *alone = open_lanes(1, 1);
    dpi_error err;
    for (int32_t i = 0; i <= x->options.n_ref; i++) {
        if (i > 0 && !x->references[i - 1])
            continue;
        assert_ok(dpi_session_prefill(alone, i, x->prompts[i], x->n_prompt[i], NULL, &err), &err);
        assert_memory_equal(dpi_session_logits(s, i), dpi_session_logits(alone, i),
                            (size_t)model->n_vocab * sizeof(float));
    }
    dpi_session_free(alone);
}

/* Prompts that begin with what other sequences hold have the bits that they have without: whatever
 * part of them that is, and in whatever pieces the rest is read. */
static void test_held_beginnings(void **state) {
    (void)state;
    dpi_session *s = open_lanes(2, 1);
    int32_t held[LANE], n_held[LANE];
    dpi_error err;
    text *x = &texts[0];
    for (size_t part = 0; part <= 4; part++) {
        text y = *x;
        uint64_t seed = x->first_seed;
        dpi_generation_event e = {0};
        int32_t n = 0;
        for (int32_t i = 0; i <= x->options.n_ref; i++) {
            held[i] = i == 0 || x->references[i - 1] ? LANE + i : -1;
            n_held[i] = held[i] >= 0 ? (int32_t)(x->n_prompt[i] * part / 4) : 0;
            if (held[i] >= 0)
                hold_beginning(s, held[i], x->prompts[i], (size_t)n_held[i]);
        }
        y.options.random_user = &seed;
        y.sampler = open_sampler(&y.options);
        dpi_generation_options o = options_of(&y, s, 0);
        o.prompt_seqs = held;
        o.n_held = n_held;
        o.n_piece = part % 2 ? 7 : 0;
        dpi_generation *g = create(&o);
        while (e.type != DPI_EVENT_END) {
            assert_ok(dpi_generation_advance(&g, 1, &e, &err), &err);
            if (e.type == DPI_EVENT_PROMPT && e.n_read == e.n_prompts)
                assert_prompts_read(s, x);
            if (e.type == DPI_EVENT_TOKEN)
                assert_int_equal(e.token, x->tokens[n++]);
        }
        assert_int_equal(n, x->n);
        dpi_generation_free(g);
        dpi_sampler_free(y.sampler);
        assert_wiped(s, 0);
        assert_int_equal(dpi_session_length(s, LANE + 1), n_held[1] + 3);
    }
    dpi_session_reset(s, held[1]);
    dpi_generation_options o = options_of(x, s, 0);
    dpi_generation_event e;
    o.prompt_seqs = held;
    o.n_held = n_held;
    dpi_generation *g = create(&o);
    assert_ok(dpi_generation_advance(&g, 1, &e, &err), &err);
    assert_int_equal(dpi_generation_advance(&g, 1, &e, &err), DPI_STATUS_STATE);
    assert_non_null(strstr(err.message, "as many tokens as n_held says"));
    dpi_generation_free(g);
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
    for (int32_t at = 0; at <= 4; at++) {
        ender x = {.at = at % 4};
        const bool ends = at < 3; /* 4: the first token is ignored */
        dpi_generation_event e = {0};
        dpi_error err;
        text y = texts[1];
        y.options.n_tokens = 3;
        y.options.top_k = 0;
        y.options.random = give_end;
        y.options.random_user = &x;
        x.sampler = y.sampler = open_sampler(&y.options);
        dpi_generation_options o = options_of(&y, s, 0);
        o.ignore_eog = at == 4;
        dpi_generation *g = create(&o);
        while (e.type != DPI_EVENT_END)
            assert_ok(dpi_generation_advance(&g, 1, &e, &err), &err);
        assert_int_equal(e.end, ends ? DPI_END_EOG : DPI_END_LENGTH);
        assert_int_equal(e.n_drawn, ends ? at + 1 : 3);
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

/* The whole text with END alone, beside another one's pieces; free places change nothing. */
static void test_whole_text(void **state) {
    (void)state;
    dpi_session *s = open_lanes(2, 1);
    dpi_generation *places[4] = {NULL};
    dpi_generation_event events[4];
    lane lanes[2];
    dpi_error err;
    begin(&lanes[1], &texts[1], s, LANE, 0);
    dpi_generation_options o = options_of(&texts[0], s, 0);
    o.text = DPI_TEXT_WHOLE;
    texts[0].seed = texts[0].first_seed;
    lanes[0] = (lane){.x = &texts[0], .g = create(&o)};
    assert_true(texts[0].n_written > 0);
    while (lanes[0].x || lanes[1].x) {
        places[1] = lanes[1].x ? lanes[1].g : NULL;
        places[3] = lanes[0].x ? lanes[0].g : NULL;
        assert_ok(dpi_generation_advance(places, 4, events, &err), &err);
        for (int i = 0; i < 4; i++) {
            if (!places[i]) {
                assert_int_equal(events[i].type, DPI_EVENT_NONE);
                assert_int_equal(events[i].n_bytes, 0);
                continue;
            }
            if (i == 3 && events[i].type != DPI_EVENT_END)
                assert_int_equal(events[i].n_bytes, 0);
            check_event(&lanes[i == 1], s, &events[i]);
        }
    }
    places[1] = places[3] = NULL;
    assert_ok(dpi_generation_advance(places, 4, events, &err), &err);
    dpi_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_passes),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_held_prompts),
        cmocka_unit_test(test_held_beginnings),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_null_slots),
        cmocka_unit_test(test_whole_text),
    };
    return cmocka_run_group_tests(tests, lanes_setup, lanes_teardown);
}
