/* Failures of generations: one that fails does not touch the others, is as it was before, and can
 * be advanced again; misuse is noticed. */
#include "tests/pipeline/generation_lanes.h"

/* The system gives no bits now and then: the others go on, and another attempt has the same
 * token. */
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
    REFUSE(text, 3, "text is 3");
    REFUSE(ignore_eog, -1, "ignore_eog is -1");
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
    assert_ok(dpi_generation_advance(&none, 1, e, &err), &err); /* a free place */
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
        cmocka_unit_test(test_entropy),
        cmocka_unit_test(test_numeric),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_session_cancel),
        cmocka_unit_test(test_shared_by_mistake),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, lanes_setup, lanes_teardown);
}
