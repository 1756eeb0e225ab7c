/* A text whose references are spread over several samplers is the text of one sampler that has them
 * all: tokens, budgets of records, length. */
#include <math.h>

#include "tests/support/support.h"

enum { V = 70, B = 8, T = 12, SUMS = DPI_SUMS_HEADER + V };

typedef struct world {
    float p[T][V], logits[T][B][V];
    const float *references[T][B];
} world;

static void random_world(world *w, uint64_t *seed) {
    bool is_null[B];
    for (int j = 0; j < B; j++)
        is_null[j] = random_below(seed, 4) == 0;
    for (int t = 0; t < T; t++) {
        for (int y = 0; y < V; y++)
            w->p[t][y] = (float)(3 * random_normal(seed));
        for (int j = 0; j < B; j++) {
            for (int y = 0; y < V; y++)
                w->logits[t][j][y] = w->p[t][y] + (float)(2 * random_normal(seed));
            w->references[t][j] = is_null[j] ? NULL : w->logits[t][j];
        }
    }
}

static dpi_sampler *make(dpi_sampler_options o, int32_t n_ref, uint64_t *bits) {
    dpi_sampler *s;
    dpi_error err;
    o.n_ref = n_ref;
    o.random = dpi_random_insecure;
    o.random_user = bits;
    assert_ok(dpi_sampler_create(&o, &s, &err), &err);
    assert_ok(dpi_sampler_begin(s, &err), &err);
    return s;
}

static void begin_part(dpi_sampler *s, int32_t index, int32_t count) {
    dpi_part part;
    dpi_error err;
    dpi_part_init(&part);
    part.index = index;
    part.count = count;
    part.text = 7;
    assert_ok(dpi_sampler_begin_part(s, &part, &err), &err);
}

/* Every part reads what one sampler would, also after a token that another part has drawn. */
static void compare_candidates(dpi_sampler *whole, dpi_sampler *part, const float *public_logits) {
    const int32_t *ids[2];
    int32_t n[2];
    dpi_error err;
    assert_ok(dpi_sampler_candidates(whole, public_logits, &ids[0], &n[0], &err), &err);
    assert_ok(dpi_sampler_candidates(part, public_logits, &ids[1], &n[1], &err), &err);
    assert_int_equal(n[0], n[1]);
    assert_int_equal(ids[0] == NULL, ids[1] == NULL);
}

/* One text by one sampler and by `n_parts`, which draw with the same bits. */
static void compare(const dpi_sampler_options *o, const world *w, int32_t n_parts, uint64_t *seed) {
    uint64_t bits = 5, parts_bits = 5, unused = 99;
    int32_t first[B + 1] = {0}, drawer = random_below(seed, n_parts);
    dpi_sampler *whole = make(*o, B, &bits), *parts[B];
    for (int32_t i = 0; i < n_parts; i++) {
        const int32_t left = B - first[i] - (n_parts - 1 - i); /* one slot for each part to come */
        first[i + 1] = i + 1 == n_parts ? B : first[i] + 1 + random_below(seed, left);
        parts[i] = make(*o, first[i + 1] - first[i], i == drawer ? &parts_bits : &unused);
        begin_part(parts[i], i, n_parts);
    }
    for (int t = 0; t < T; t++) {
        int64_t sums[SUMS] = {0}, part[SUMS];
        int32_t n = 0, n_first = -1, token, expected;
        dpi_error err;
        for (int32_t i = n_parts - 1; i >= 0; i--) {
            compare_candidates(whole, parts[i], w->p[t]);
            assert_ok(dpi_sampler_partial(parts[i], w->p[t], w->references[t] + first[i], part, &n,
                                          &err), &err);
            assert_true(n_first < 0 || n == n_first); /* the candidates are public */
            n_first = n;
            assert_ok(dpi_sums_merge(sums, part, n, &err), &err);
        }
        assert_ok(dpi_sampler_step_merged(parts[drawer], w->p[t], sums, n, &token, &err), &err);
        assert_ok(dpi_sampler_step(whole, w->p[t], w->references[t], &expected, &err), &err);
        assert_int_equal(token, expected);
        for (int32_t i = 0; i < n_parts; i++)
            assert_int_equal(dpi_sampler_tokens_left(parts[i]), T - 1 - t);
    }
    assert_true(unused == 99); /* only one part draws */
    dpi_sampler_free(whole);
    for (int32_t i = 0; i < n_parts; i++)
        dpi_sampler_free(parts[i]);
}

static dpi_sampler_options make_options(void) {
    dpi_sampler_options o = ink_options(V, B, T, 1, 3);
    o.denominator = B;
    o.top_k = 20;
    return o;
}

static void test_same_text(void **state) {
    (void)state;
    uint64_t seed = 51;
    world *w = calloc(1, sizeof *w);
    for (int i = 0; i < 60; i++) {
        dpi_sampler_options o = make_options();
        o.adjacency = i % 3;
        o.center = i % 2;
        o.top_k = i % 5 ? 20 : 0;
        o.accountant = i % 4 ? DPI_ACCOUNTANT_ZCDP : DPI_ACCOUNTANT_FILTER;
        o.pace = i % 7 < 3 ? DPI_PACE_TOP : DPI_PACE_NONE;
        o.pace_theta = o.pace == DPI_PACE_TOP ? .6 : 0;
        random_world(w, &seed);
        compare(&o, w, 1 + i % 5, &seed);
    }
    free(w);
}

/* Records that have used up their budget are silent in parts as they are in the whole: with a clip
 * bound so large that each can pay once. */
static void test_filter(void **state) {
    (void)state;
    uint64_t seed = 52;
    world *w = calloc(1, sizeof *w);
    for (int i = 0; i < 20; i++) {
        dpi_sampler_options o = make_options();
        o.accountant = DPI_ACCOUNTANT_FILTER;
        o.clip = 2 + i;
        o.rho = .05;
        random_world(w, &seed);
        compare(&o, w, 2 + i % 4, &seed);
    }
    free(w);
}

static void test_order_of_calls(void **state) {
    (void)state;
    uint64_t bits = 1, seed = 53;
    world *w = calloc(1, sizeof *w);
    dpi_sampler_options o = make_options();
    int64_t sums[SUMS];
    int32_t n = SUMS, token = -1;
    dpi_error err;
    random_world(w, &seed);
    dpi_sampler *s = make(o, B, &bits);
    assert_error(dpi_sampler_step_merged(s, w->p[0], sums, n, &token, &err), DPI_STATUS_STATE, &err,
                 "once after each");
    for (int t = 0; t < T; t++) {
        assert_ok(dpi_sampler_partial(s, w->p[t], w->references[t], sums, &n, &err), &err);
        assert_ok(dpi_sampler_step_merged(s, w->p[t], sums, n, &token, &err), &err);
        assert_error(dpi_sampler_step_merged(s, w->p[t], sums, n, &token, &err), DPI_STATUS_STATE,
                     &err, "once after each");
    }
    assert_error(dpi_sampler_partial(s, w->p[0], w->references[0], sums, &n, &err),
                 DPI_STATUS_BUDGET, &err, "all 12 tokens");
    assert_int_equal(dpi_sampler_tokens_left(s), 0);
    assert_ok(dpi_sampler_begin(s, &err), &err);
    assert_error(dpi_sampler_step_merged(s, w->p[0], sums, n, &token, &err), DPI_STATUS_STATE, &err,
                 "once after each");
    /* Without bits no token, and the same sums may be tried again. */
    limited_source source = {.seed = 3, .n = 0};
    dpi_sampler_free(s);
    o.n_ref = B;
    o.random = limited_bits;
    o.random_user = &source;
    assert_ok(dpi_sampler_create(&o, &s, &err), &err);
    assert_error(dpi_sampler_partial(s, w->p[0], w->references[0], sums, &n, &err),
                 DPI_STATUS_STATE, &err, "begin");
    assert_ok(dpi_sampler_begin(s, &err), &err);
    assert_ok(dpi_sampler_partial(s, w->p[0], w->references[0], sums, &n, &err), &err);
    token = -1;
    assert_int_equal(dpi_sampler_step_merged(s, w->p[0], sums, n, &token, &err),
                     DPI_STATUS_ENTROPY);
    assert_int_equal(token, -1);
    source.n = 1;
    assert_ok(dpi_sampler_step_merged(s, w->p[0], sums, n, &token, &err), &err);
    dpi_sampler_free(s);

    o = make_options();
    o.method = DPI_METHOD_AMIN;
    s = make(o, B, &bits);
    assert_error(dpi_sampler_partial(s, w->p[0], w->references[0], sums, &n, &err),
                 DPI_STATUS_UNSUPPORTED, &err, "amin has no sums that merge");
    dpi_part part;
    dpi_part_init(&part);
    assert_error(dpi_sampler_begin_part(s, &part, &err), DPI_STATUS_UNSUPPORTED, &err,
                 "amin has no sums that merge");
    assert_error(dpi_sampler_partial(NULL, w->p[0], w->references[0], sums, &n, &err),
                 DPI_STATUS_ARG, &err, "NULL");
    assert_error(dpi_sampler_step_merged(s, w->p[0], NULL, n, &token, &err), DPI_STATUS_ARG, &err,
                 "NULL");
    dpi_sampler_free(s);
    free(w);
}

/* What is wrong with a part or with sums is said, and nothing is drawn or changed. */
static void test_refused(void **state) {
    (void)state;
    uint64_t bits = 1, seed = 54;
    world *w = calloc(1, sizeof *w);
    const dpi_sampler_options o = make_options();
    dpi_sampler *a = make(o, 3, &bits), *b = make(o, B - 3, &bits);
    dpi_part part;
    int64_t sums[SUMS], others[SUMS], kept[SUMS];
    int32_t n, token = -1;
    dpi_error err;
    random_world(w, &seed);
    dpi_part_init(&part);
    part.count = DPI_PARTS_MAX + 1;
    assert_error(dpi_sampler_begin_part(a, &part, &err), DPI_STATUS_ARG, &err,
                 "count is 257, must be 1..256");
    part.count = part.index = 2;
    assert_error(dpi_sampler_begin_part(a, &part, &err), DPI_STATUS_ARG, &err,
                 "index is 2, must be 0..1");
    part.struct_size--;
    assert_error(dpi_sampler_begin_part(a, &part, &err), DPI_STATUS_ARG, &err, "bytes, must be");
    assert_error(dpi_sampler_begin_part(a, NULL, &err), DPI_STATUS_ARG, &err, "NULL");

    begin_part(a, 0, 2);
    begin_part(b, 1, 2);
    assert_error(dpi_sampler_step(a, w->p[0], w->references[0], &token, &err), DPI_STATUS_STATE,
                 &err, "one of 2 parts");
    assert_ok(dpi_sampler_partial(a, w->p[0], w->references[0], sums, &n, &err), &err);
    assert_ok(dpi_sampler_partial(b, w->p[0], w->references[0] + 3, others, &n, &err), &err);
    assert_error(dpi_sampler_step_merged(a, w->p[0], sums, n, &token, &err), DPI_STATUS_ARG, &err,
                 "not those of all 2 parts");
    assert_error(dpi_sums_merge(sums, others, DPI_SUMS_HEADER - 1, &err), DPI_STATUS_ARG, &err,
                 "must be 11 or more");
    assert_error(dpi_sums_merge(sums, NULL, n, &err), DPI_STATUS_ARG, &err, "NULL");
    memcpy(kept, others, sizeof kept);
    others[0] = -1;
    assert_error(dpi_sums_merge(sums, others, n, &err), DPI_STATUS_ARG, &err,
                 "the header of parts");
    memcpy(others, kept, sizeof kept);
    assert_ok(dpi_sums_merge(sums, others, n, &err), &err);
    memcpy(kept, sums, sizeof kept);
    assert_error(dpi_sums_merge(sums, others, n, &err), DPI_STATUS_ARG, &err, "counts once");
    assert_memory_equal(sums, kept, (size_t)n * sizeof *sums);
    assert_error(dpi_sampler_step_merged(a, w->p[0], sums, n - 1, &token, &err), DPI_STATUS_ARG,
                 &err, "entries of sums, must be");
    assert_error(dpi_sampler_step_merged(a, w->p[1], sums, n, &token, &err), DPI_STATUS_ARG, &err,
                 "");
    assert_int_equal(token, -1);
    assert_ok(dpi_sampler_step_merged(a, w->p[0], sums, n, &token, &err), &err);
    dpi_sampler_free(a);
    dpi_sampler_free(b);
    free(w);
}

/* As many parts as there may be: their bits are in eight entries of the header. */
static void test_most_parts(void **state) {
    (void)state;
    enum { N = DPI_PARTS_MAX, N_VOCAB = 3 };
    const float p[N_VOCAB] = {1, 0, -1}, l[N_VOCAB] = {0, 3, 0};
    const float *reference[] = {l};
    static int64_t sums[DPI_SUMS_HEADER + N_VOCAB], part[DPI_SUMS_HEADER + N_VOCAB];
    dpi_sampler_options o = make_options();
    dpi_sampler *first = NULL;
    uint64_t bits = 3;
    int32_t n, token;
    dpi_error err;
    o.n_vocab = N_VOCAB;
    o.top_k = 0;
    o.denominator = N;
    for (int32_t i = 0; i < N; i++) {
        dpi_sampler *s = make(o, 1, &bits);
        begin_part(s, i, N);
        assert_ok(dpi_sampler_partial(s, p, reference, part, &n, &err), &err);
        assert_ok(dpi_sums_merge(sums, part, n, &err), &err);
        if (i == 0)
            first = s;
        else
            dpi_sampler_free(s);
        assert_int_equal(dpi_sampler_step_merged(first, p, sums, n, &token, &err),
                         i + 1 < N ? DPI_STATUS_ARG : DPI_STATUS_OK);
    }
    dpi_sampler_free(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_text),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_order_of_calls),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_most_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
