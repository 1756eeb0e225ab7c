/* Generations: whatever shares their passes, texts have the tokens, the text and the bits of logits
 * that a caller gets who gives each sequence a session of its own and feeds a sampler by hand; the
 * order of events, ends, cancellation and null slots. */
#include "audit/lines.h"
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
                lanes[i] = begin(&texts[(first + n_begun++) % N_TEXTS], s, i * LANE, n_piece);
        n_live = advance_lanes(lanes, n, s, &seed);
    }
    dpi_session_free(s);
}

TEST(test_shared_passes) {
    static const int32_t n_lanes[] = {1, 2, 5}, pieces[] = {0, 64, 7};
    uint64_t seed = 3;
    for (int i = 0; i < 3; i++)
        for (int32_t n_threads = 1; n_threads <= 3; n_threads++)
            for (int k = 0; k < 3; k++)
                check_lanes(n_lanes[i], n_threads, pieces[k], random_u64(&seed));
}

/* ---- Events, ends ---------------------------------------------------------------------------- */

/* The events of text 0 alone: each of four slots, null or not, then tokens, END, and nothing. */
TEST(test_events) {
    dpi_session *s = open_lanes(1, 1);
    dpi_generation_event e;
    const text *x = &texts[0];
    lane l = begin(&texts[0], s, 0, 0);
    for (int32_t i = 0; i <= MAX_REF; i++) {
        e = advance(l.g);
        assert_int_equal(e.type, DPI_EVENT_PROMPT);
        assert_true(e.n_read == i + 1 && e.n_prompts == MAX_REF + 1);
        assert_true(e.n_drawn == 0 && e.token == -1 && e.n_bytes == 0);
    }
    for (int32_t t = 0; t < x->n; t++) {
        e = advance(l.g);
        assert_int_equal(e.type, DPI_EVENT_TOKEN);
        assert_int_equal(e.token, x->tokens[t]);
        assert_int_equal(e.n_drawn, t + 1);
        assert_int_equal(e.end != DPI_END_NONE, t + 1 == x->n);
    }
    const int32_t end = e.end;
    for (int i = 0; i < 3; i++) {
        e = advance(l.g);
        assert_int_equal(e.type, i == 0 ? DPI_EVENT_END : DPI_EVENT_NONE);
        assert_true(e.end == end && e.n_drawn == x->n);
        dpi_generation_cancel(l.g); /* after the last token it changes nothing */
    }
    dpi_generation_free(l.g);
    dpi_session_free(s);
}

/* The second sequences hold parts / 4 of each prompt, and then go on in another way, unless that is
 * all of it. held and n_held are what a generation is told of them. */
static void hold_prompts(dpi_session *s, const text *x, int parts, bool goes_on, int32_t *held,
                         int32_t *n_held) {
    static const int32_t others[] = {300, 301, 302};
    for (int32_t i = 0; i <= x->options.n_ref; i++) {
        const bool is_null = i > 0 && !x->references[i - 1];
        held[i] = is_null ? -1 : LANE + i;
        n_held[i] = is_null ? 0 : (int32_t)x->n_prompt[i] * parts / 4;
        dpi_session_reset(s, held[i]);
        if (n_held[i] > 0)
            assert_ok(dpi_session_prefill(s, held[i], x->prompts[i], (size_t)n_held[i], NULL, ERR));
        if (!is_null && goes_on)
            assert_ok(dpi_session_prefill(s, held[i], others, 3, NULL, ERR));
    }
}

/* Prompts that other sequences hold, or that begin with what these hold, give the same tokens and
 * the same bits of logits, whatever part of them that is and in whatever pieces the rest is read,
 * text after text; the sequences stay as they are. */
TEST(test_held_prompts) {
    dpi_session *s = open_lanes(2, 1);
    int32_t held[LANE], n_held[LANE];
    text *x = &texts[0];
    dpi_generation_options o = options_of(x, s, 0);
    o.prompt_seqs = held;
    for (int part = 0; part <= 6; part++) {
        const bool is_whole = part > 4;
        if (part < 6)
            hold_prompts(s, x, is_whole ? 4 : part, !is_whole, held, n_held);
        o.n_held = is_whole ? NULL : n_held;
        o.n_piece = part % 2 && !is_whole ? 7 : 0;
        lane l = begin_with(x, &o);
        finish_lanes(&l, 1, s);
        assert_int_equal(dpi_sampler_n_private(x->sampler), x->n);
        for (int i = 0; i < 2; i++)
            assert_int_equal(dpi_session_length(s, LANE + i), n_held[i] + (is_whole ? 0 : 3));
    }
    dpi_session_free(s);
}

/* A sequence that does not hold its prompt is refused, whichever it is. */
TEST(test_held_by_mistake) {
    dpi_session *s = open_lanes(2, 1);
    int32_t held[LANE], n_held[LANE];
    dpi_generation_event e;
    dpi_generation_options o = options_of(&texts[0], s, 0);
    o.prompt_seqs = held;
    for (int i = 0; i < 2; i++) {
        hold_prompts(s, &texts[0], 4, i == 1, held, n_held);
        dpi_session_reset(s, held[i]);
        o.n_held = i == 1 ? n_held : NULL;
        dpi_generation *g = create(&o);
        if (i == 1)
            advance(g); /* the public prompt */
        assert_error(dpi_generation_advance(&g, 1, &e, ERR), STATE,
                     i == 1 ? "as many tokens as n_held says" : "prompt_seqs does not hold");
        dpi_generation_free(g);
    }
    dpi_session_free(s);
}

/* A recurrent state cannot go back: the first reference keeps that from where the others begin, in
 * whatever pieces it is read. A sequence that holds more than a prompt's beginning is of no use
 * then, and changes nothing. */
TEST(test_recurrent) {
    int32_t held[LANE], n_held[LANE];
    dpi_model *const usual = model;
    text x;
    require_data("arch/qwen35-A.gguf");
    assert_ok(dpi_model_open(data_path("arch/qwen35-A.gguf"), NULL, &model, ERR));
    copy_text(&x, &texts[0]);
    x.options.n_vocab = model->n_vocab, x.options.top_k = 30;
    x.n_prompt[MAX_REF] = 90; /* 70 in common with that of the first reference */
    write_by_hand(&x);
    dpi_session *s = open_lanes(2, 2);
    for (int part = 0; part <= 4; part++) {
        dpi_generation_options o = options_of(&x, s, 0);
        const dpi_kv_seq *first = &s->kv.seqs[1], *last = &s->kv.seqs[MAX_REF];
        o.n_piece = part % 2 ? 7 : 0;
        if (part > 0) {
            hold_prompts(s, &x, part, part < 4, held, n_held);
            o.prompt_seqs = held, o.n_held = n_held;
        }
        lane l = begin_with(&x, &o);
        while (!dpi_session_logits(s, MAX_REF))
            advance_lanes(&l, 1, s, &(uint64_t){1});
        assert_int_equal(first->lists->blocks[0] == last->lists->blocks[0], part < 4);
        finish_lanes(&l, 1, s);
    }
    dpi_session_free(s);
    free_text(&x);
    dpi_model_close(model);
    model = usual;
}

/* Bits of a seed, or none in every second call. */
typedef struct flaky_source {
    uint64_t *seed;
    int32_t n;
} flaky_source;

static int32_t flaky_bits(void *user, void *buffer, size_t n_bytes) {
    flaky_source *f = user;
    return ++f->n % 2 ? -1 : dpi_random_insecure(f->seed, buffer, n_bytes);
}

/* What a wording bans and gives to logits: the same in all rows, for every method, before the
 * candidates are found; once, though each draw fails and is tried again; and for a text that goes
 * on from tokens that it has released before. */
TEST(test_shaped) {
    for (int i = 0; i < N_TEXTS; i++) {
        const text *plain = &texts[i];
        const dpi_token_bias biases[] = {{.token = plain->tokens[1], .bias = -1},
                                         {.token = 400 + i, .bias = 4}};
        dpi_wording w;
        dpi_wording_init(&w);
        w.bans = &(dpi_bytes){"b", 1}, w.n_bans = 1;
        w.no_repeat = 2;
        w.repeat_penalty = 1.2;
        w.biases = biases, w.n_biases = 2;
        text x;
        copy_text(&x, plain);
        x.wording = &w;
        write_by_hand(&x);
        assert_memory_not_equal(x.tokens, plain->tokens, sizeof x.tokens);
        assert_true(x.n > 4 && !memchr(x.written, 'b', x.n_written));
        dpi_word_rules *rules = NULL;
        assert_ok(dpi_word_rules_create(&w, model, &rules, ERR));
        dpi_session *s = open_lanes(2, 1);
        flaky_source flaky = {&x.seed, 0};
        dpi_sampler *usual = x.sampler;
        const bool recalls = dpi_method_recalls(x.options.method);
        if (recalls) /* the others pay for a draw that fails */
            x.options.random = flaky_bits, x.options.random_user = &flaky;
        for (int32_t n_recalled = 0; n_recalled <= (recalls ? 4 : 0); n_recalled += 4) {
            x.sampler = n_recalled > 0 ? usual : open_sampler(&x.options);
            dpi_generation_options o = options_of(&x, s, LANE);
            o.rules = rules;
            o.recalled_tokens = x.tokens, o.n_recalled = n_recalled;
            lane lanes[2] = {begin(&texts[0], s, 0, 0), begin_with(&x, &o)};
            for (int k = 0; k < n_recalled; k++) { /* bits that were used before */
                uint64_t bits[DPI_DRAW_WORDS];
                assert_int_equal(dpi_random_insecure(&x.seed, bits, sizeof bits), 0);
            }
            while (lanes[0].x || lanes[1].x) {
                uint64_t order = 1;
                const dpi_status status = try_lanes(lanes, 2, s, &order);
                assert_true(status == DPI_STATUS_OK || status == DPI_STATUS_ENTROPY);
            }
            assert_int_equal(lanes[1].n_failed, n_recalled > 0 || !recalls ? 0 : x.n);
            if (n_recalled == 0)
                dpi_sampler_free(x.sampler);
        }
        x.sampler = usual;
        dpi_session_free(s);
        dpi_word_rules_free(rules);
        free_text(&x);
    }
}

/* Where a grammar allows nothing but what is banned, the text ends. */
TEST(test_cut) {
    static const char form[] = "root ::= \"ab\"";
    dpi_grammar *grammar = NULL;
    dpi_mask *mask = NULL;
    dpi_word_rules *rules = NULL;
    dpi_generation_event e = {0};
    dpi_session *s = open_lanes(1, 1);
    dpi_wording w;
    dpi_wording_init(&w);
    w.bans = &(dpi_bytes){"b", 1}, w.n_bans = 1;
    assert_ok(dpi_grammar_parse(form, strlen(form), &grammar, ERR));
    assert_ok(dpi_mask_create(grammar, model, &mask, ERR));
    assert_ok(dpi_word_rules_create(&w, model, &rules, ERR));
    dpi_generation_options o = options_of(&texts[0], s, 0);
    o.mask = mask, o.rules = rules;
    dpi_generation *g = create(&o);
    for (bool shown = false; e.type != DPI_EVENT_END || !shown;) {
        e = advance(g);
        assert_true(e.n_bytes == 0 || (!shown && e.n_bytes == 1 && e.text[0] == 'a'));
        shown |= e.n_bytes > 0;
    }
    assert_int_equal(e.end, DPI_END_EOG);
    dpi_generation_free(g);
    dpi_word_rules_free(rules);
    dpi_mask_free(mask);
    dpi_grammar_free(grammar);
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

TEST(test_ends) {
    dpi_session *s = open_lanes(1, 1);
    for (int32_t at = 0; at <= 4; at++) {
        ender x = {.at = at % 4};
        const bool ends = at < 3; /* 4: the first token is ignored */
        dpi_generation_event e = {0};
        text y = texts[1];
        y.options.n_tokens = 3, y.options.top_k = 0;
        y.options.random = give_end, y.options.random_user = &x;
        x.sampler = y.sampler = open_sampler(&y.options);
        dpi_generation_options o = options_of(&y, s, 0);
        o.ignore_eog = at == 4;
        dpi_generation *g = create(&o);
        while (e.type != DPI_EVENT_END)
            e = advance(g);
        assert_int_equal(e.end, ends ? DPI_END_EOG : DPI_END_LENGTH);
        assert_int_equal(e.n_drawn, ends ? at + 1 : 3);
        dpi_generation_free(g);
        dpi_sampler_free(y.sampler);
    }
    dpi_session_free(s);
}

/* After so many advances, beside another text, which does not notice. */
TEST(test_cancel) {
    dpi_session *s = open_lanes(2, 2);
    uint64_t seed = 1;
    for (int32_t after = 0; after < MAX_REF + 1 + 4; after++) {
        lane lanes[2] = {begin(&texts[2], s, 0, 30), begin(&texts[0], s, LANE, 30)};
        for (int32_t i = 0; i < after; i++)
            advance_lanes(lanes, 2, s, &seed);
        dpi_generation_cancel(lanes[1].g);
        assert_wiped(s, LANE);
        for (int i = 0; i < 2; i++) {
            const dpi_generation_event e = advance(lanes[1].g);
            assert_int_equal(e.type, i == 0 ? DPI_EVENT_END : DPI_EVENT_NONE);
            assert_int_equal(e.end, DPI_END_CANCELLED);
            assert_int_equal(e.n_drawn, lanes[1].n);
        }
        dpi_generation_free(lanes[1].g);
        lanes[1].x = NULL;
        if (after % 2) { /* its sequences serve another text at once, and free is enough for that */
            lanes[1] = begin(&texts[3], s, LANE, 0);
            advance_lanes(lanes, 2, s, &seed);
            dpi_generation_free(lanes[1].g);
            assert_wiped(s, LANE);
            lanes[1].x = NULL;
        }
        finish_lanes(lanes, 2, s);
    }
    dpi_session_free(s);
}

/* A reference that cannot be read is as one that is not there. */
TEST(test_null_slots) {
    static const int32_t outside[] = {5, -1, 5}, beyond[] = {5, 5, 2005};
    static const int32_t over_long[N_CTX - MAX_T + 1] = {1};
    static const struct {
        const int32_t *tokens;
        size_t n;
    } unreadable[] = {{NULL, 9},    {over_long, 0}, {over_long, SIZE_MAX},
                      {outside, 3}, {beyond, 3},    {over_long, N_CTX - MAX_T + 1}};
    dpi_session *s = open_lanes(1, 1);
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        text x = texts[0];
        assert_null(x.references[1]);
        x.references[1] = unreadable[i].tokens;
        x.n_prompt[2] = unreadable[i].n;
        const dpi_generation_options o = options_of(&x, s, 0);
        lane l = begin_with(&texts[0], &o);
        while (l.x && l.n < texts[0].n) {
            const dpi_generation_event e = advance(l.g);
            check_event(&l, s, &e);
            assert_int_equal(dpi_session_length(s, 2), 0);
        }
        finish_lanes(&l, 1, s);
    }
    dpi_session_free(s);
}

/* The whole text with END alone, beside another one's pieces; free places change nothing. */
TEST(test_whole_text) {
    dpi_session *s = open_lanes(2, 1);
    dpi_generation_event e[4];
    dpi_generation_options o = options_of(&texts[0], s, 0);
    o.text = DPI_TEXT_WHOLE;
    lane lanes[2] = {begin_with(&texts[0], &o), begin(&texts[1], s, LANE, 0)};
    assert_true(texts[0].n_written > 0);
    for (bool more = true; more;) {
        dpi_generation *places[4] = {NULL, lanes[1].x ? lanes[1].g : NULL, NULL,
                                     lanes[0].x ? lanes[0].g : NULL};
        more = lanes[0].x || lanes[1].x; /* at last all places are free */
        assert_ok(dpi_generation_advance(places, 4, e, ERR));
        for (int i = 0; i < 4; i++) {
            if (!places[i])
                assert_true(e[i].type == DPI_EVENT_NONE && e[i].n_bytes == 0);
            else
                check_event(&lanes[i == 1], s, &e[i]);
            assert_true(i != 3 || e[i].type == DPI_EVENT_END || e[i].n_bytes == 0);
        }
    }
    dpi_session_free(s);
}

SETUP { lanes_setup(); }
TEARDOWN { lanes_teardown(); }
