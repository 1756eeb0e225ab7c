/* Failures of generations: one that fails does not touch the others, is as it was before, and can
 * be advanced again; misuse is noticed. */
#include "tests/pipeline/generation_lanes.h"

/* The system gives no bits now and then: the others go on, and another attempt has the same
 * token. */
TEST(test_entropy) {
    dpi_session *s = open_lanes(2, 2);
    uint64_t seed = 1;
    for (int32_t n_bits = 0; n_bits < 4; n_bits++) {
        text *x = &texts[2];
        limited_source source = {x->first_seed, n_bits};
        dpi_sampler_options o = x->options;
        o.random = limited_bits, o.random_user = &source;
        dpi_sampler *kept = x->sampler;
        x->sampler = open_sampler(&o);
        lane lanes[2] = {begin(&texts[0], s, 0, 0), begin(x, s, LANE, 0)};
        while (lanes[0].x || lanes[1].x) {
            if (try_lanes(lanes, 2, s, &seed) == DPI_STATUS_OK)
                continue;
            assert_int_equal(ERR->code, DPI_STATUS_ENTROPY);
            assert_int_equal(lanes[1].failure, DPI_STATUS_ENTROPY);
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
TEST(test_numeric) {
    const size_t n_bytes = (size_t)model->n_vocab * 64 * sizeof(float);
    dpi_session *s = open_lanes(1, 1);
    dpi_generation_event e = {0};
    lane l = begin(&texts[0], s, 0, 0);
    while (e.n_drawn < 2)
        e = advance(l.g);
    void *rows = malloc(n_bytes), *embedding = (void *)(uintptr_t)model->embedding.rows;
    assert_non_null(rows);
    memcpy(rows, embedding, n_bytes);
    memset(embedding, 0xff, n_bytes); /* NaN */
    for (int i = 0; i < 3; i++) {
        assert_error(dpi_generation_advance(&l.g, 1, &e, ERR), NUMERIC, "");
        assert_int_equal(e.type, DPI_EVENT_ERROR);
        assert_int_equal(e.n_drawn, 2);
    }
    memcpy(embedding, rows, n_bytes);
    free(rows);
    dpi_generation_free(l.g);
    assert_wiped(s, 0);
    dpi_session_free(s);
}

static void check_memory(const dpi_word_rules *rules) {
    dpi_session *s = open_lanes(2, 1);
    text *x = &texts[0];
    dpi_generation_options o = options_of(x, s, LANE);
    o.rules = rules;
    int32_t n_failed = 0, n_seen = 0;
    uint64_t seed = 1;
    for (int64_t n = 1;; n += 1 + n / 8) {
        lane lanes[2] = {begin(&texts[2], s, 0, 0), {.x = x, .first_seq = LANE}};
        x->seed = x->first_seed;
        fail_allocation(n);
        dpi_status status = dpi_generation_create(&o, &lanes[1].g, ERR);
        if (status != DPI_STATUS_OK) {
            assert_int_equal(status, DPI_STATUS_MEMORY);
            n_failed++;
            lanes[1].g = create(&o);
        }
        while (lanes[0].x && lanes[1].x) {
            const int32_t before = lanes[0].n_failed + lanes[1].n_failed;
            status = try_lanes(lanes, 2, s, &seed);
            assert_true(status == DPI_STATUS_OK || status == DPI_STATUS_MEMORY);
            const int32_t failed = lanes[0].n_failed + lanes[1].n_failed - before;
            assert_int_equal(failed > 0, status != DPI_STATUS_OK);
            n_failed += status != DPI_STATUS_OK;
        }
        const bool over = fail_allocation(0) < n;
        finish_lanes(lanes, 2, s);
        if (over)
            break;
        n_seen++;
    }
    assert_true(n_failed > 5 && n_failed <= n_seen);
    dpi_session_free(s);
}

/* Each allocation fails once: nothing but the attempt is lost. The same with rules that change
 * nothing of the text. */
TEST(test_memory) {
    dpi_wording wording;
    dpi_word_rules *rules = NULL;
    dpi_wording_init(&wording);
    wording.keep_space = 1;
    assert_ok(dpi_word_rules_create(&wording, model, &rules, ERR));
    check_memory(NULL);
    check_memory(rules);
    dpi_word_rules_free(rules);
}

static int32_t cancel_now(void *user) { return *(int32_t *)user; }

/* The session's cancel stops a prompt, which another attempt reads again. */
TEST(test_session_cancel) {
    int32_t now = 0, n_null = 0;
    uint64_t seed = 1;
    dpi_session_options so;
    dpi_session_options_init(&so);
    so.cancel = cancel_now, so.cancel_user = &now;
    dpi_session *s = open_session(model, &so, LANE, N_CTX);
    for (int32_t after = 0; after < 6; after++) {
        dpi_generation_event e;
        lane l = begin(&texts[0], s, 0, 40);
        for (int32_t i = 0; i < after; i++)
            advance_lanes(&l, 1, s, &seed);
        now = 1;
        dpi_status status = dpi_generation_advance(&l.g, 1, &e, ERR);
        if (e.n_read == 3) { /* the null slot, of which nothing is read */
            assert_ok(status);
            n_null++;
        } else {
            assert_error(status, CANCELLED, "while reading a prompt");
            assert_int_equal(e.type, DPI_EVENT_ERROR);
        }
        now = 0;
        finish_lanes(&l, 1, s);
    }
    assert_int_equal(n_null, 1);
    dpi_session_free(s);
}

/* Sequences and samplers that serve two are noticed, and the first one is not disturbed. */
TEST(test_shared_by_mistake) {
    dpi_session *s = open_lanes(2, 1);
    uint64_t seed = 1;
    lane l = begin(&texts[0], s, 0, 0);
    advance_lanes(&l, 1, s, &seed);
    dpi_generation_options o = options_of(&texts[2], s, 0);
    dpi_generation *other = create(&o), *both[2] = {l.g, other}, *twice[2] = {l.g, l.g};
    dpi_generation_event e[2];
    assert_error(dpi_generation_advance(both, 2, e, ERR), STATE, "sequence 0 is not empty");
    check_event(&l, s, &e[0]);
    assert_int_equal(e[1].status, DPI_STATUS_STATE);
    dpi_generation_free(other);
    while (l.n < 2)
        advance_lanes(&l, 1, s, &seed);
    assert_error(dpi_generation_advance(twice, 2, e, ERR), ARG, "");
    assert_int_equal(e[0].type, DPI_EVENT_ERROR);
    finish_lanes(&l, 1, s);

    l = begin(&texts[0], s, 0, 0);
    while (l.n < 1)
        advance_lanes(&l, 1, s, &seed);
    o = options_of(&texts[0], s, LANE);
    other = create(&o);
    for (int i = 0; i < MAX_REF + 4; i++) /* the sampler's text is the second one's now */
        assert_int_equal(advance(other).type, i <= MAX_REF ? DPI_EVENT_PROMPT : DPI_EVENT_TOKEN);
    assert_error(dpi_generation_advance(&l.g, 1, e, ERR), STATE,
                 "the sampler of a text was used for something else");
    dpi_generation_free(other);
    dpi_generation_free(l.g);
    dpi_session_free(s);
}

static void refuse(const dpi_generation_options *o, const char *part) {
    dpi_generation *g = NULL;
    assert_error(dpi_generation_create(o, &g, ERR), ARG, part);
    assert_null(g);
}

TEST(test_arguments) {
    dpi_session *s = open_lanes(1, 1), *small = open_session(model, NULL, LANE, MAX_T + 2);
    const dpi_generation_options good = options_of(&texts[0], s, 0);
    dpi_generation_options o = good;
    int32_t token = -1;
    refuse(NULL, "dpi_generation_options is NULL");
#define REFUSE(field, value, part)                                                                 \
    o = good, o.field = (value);                                                                   \
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
    REFUSE(text, 3, "text is 3");
    REFUSE(ignore_eog, -1, "ignore_eog is -1");
    REFUSE(n_answer, MAX_PROMPT + 1, "n_answer is");
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
    assert_error(dpi_generation_advance(g, 0, e, ERR), ARG, "no generations");
    assert_error(dpi_generation_advance(g, 1, NULL, ERR), ARG, "no events");
    assert_ok(dpi_generation_advance(&none, 1, e, ERR)); /* a free place */
    assert_error(dpi_generation_advance(g, 2, e, ERR), ARG, "another session");
    dpi_generation_free(g[0]);
    dpi_generation_free(g[1]);
    dpi_generation_free(NULL);
    dpi_session_free(other);
    dpi_session_free(small);
    dpi_session_free(s);
}

SETUP { lanes_setup(); }
TEARDOWN { lanes_teardown(); }
