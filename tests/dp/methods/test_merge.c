/* A text whose references are spread over several samplers is the text of one sampler that has them
 * all: tokens, budgets of records, length. */
#include "tests/dp/samplers.h"

enum { V = 70, B = 8, T = 12 };

static batch text[T];
static uint64_t seed;

/* Which slots are null is the same in all steps. */
static void random_text(void) {
    static const batch_law law = {.n_vocab = V, .n_slots = B, .sure = 3, .spread = 2};
    const uint64_t nulls = random_u64(&seed) & random_u64(&seed);
    for (int t = 0; t < T; t++) {
        random_batch(&text[t], &law, &seed);
        for (int j = 0; j < B; j++)
            text[t].slots[j] = nulls >> j & 1 ? NULL : text[t].slots[j];
    }
}

SETUP_EACH {
    seed = 51;
    random_text();
}

/* Of another random text, in parts of at least a slot. */
static void compare(const dpi_sampler_options *o, int32_t n_parts) {
    int32_t first[B + 1] = {0};
    for (int32_t i = 0; i < n_parts; i++) {
        const int32_t left = B - first[i] - (n_parts - 1 - i); /* one for each part to come */
        first[i + 1] = i + 1 == n_parts ? B : first[i] + 1 + random_below(&seed, left);
    }
    random_text();
    compare_parts(o, text, n_parts, first, random_below(&seed, n_parts));
}

static dpi_sampler_options make_options(void) {
    dpi_sampler_options o = ink_options(V, B, T, 1, 3);
    o.denominator = B, o.top_k = 20;
    return o;
}

TEST(test_same_text) {
    for (int i = 0; i < 60; i++) {
        dpi_sampler_options o = make_options();
        o.adjacency = i % 3, o.center = i % 2, o.top_k = i % 5 ? 20 : 0;
        o.accountant = i % 4 ? DPI_ACCOUNTANT_ZCDP : DPI_ACCOUNTANT_FILTER;
        o.pace = i % 7 < 3 ? DPI_PACE_TOP : DPI_PACE_NONE;
        o.pace_theta = o.pace == DPI_PACE_TOP ? .6 : 0;
        compare(&o, 1 + i % 5);
    }
}

/* Records that have used up their budget are silent in parts as they are in the whole: with a clip
 * bound so large that each can pay once. */
TEST(test_filter) {
    for (int i = 0; i < 20; i++) {
        dpi_sampler_options o = make_options();
        o.accountant = DPI_ACCOUNTANT_FILTER, o.clip = 2 + i, o.rho = .05;
        compare(&o, 2 + i % 4);
    }
}

/* ---- What is refused ------------------------------------------------------------------------- */

static int64_t sums[SUMS_MAX];
static int32_t n, token;

static dpi_status partial(dpi_sampler *s, int t, int64_t *to) {
    return dpi_sampler_partial(s, text[t].public_logits, text[t].slots, to, &n, ERR);
}

static dpi_status step_merged(dpi_sampler *s, int t, int32_t n_sums) {
    return dpi_sampler_step_merged(s, text[t].public_logits, sums, n_sums, &token, ERR);
}

TEST(test_order_of_calls) {
    uint64_t bits = 1;
    dpi_sampler_options o = make_options();
    dpi_part part;
    SAMPLER s = begin_text(o, &bits);
    n = SUMS_MAX;
    assert_error(step_merged(s, 0, n), STATE, "once after each");
    for (int t = 0; t < T; t++) {
        assert_ok(partial(s, t, sums));
        assert_ok(step_merged(s, t, n));
        assert_error(step_merged(s, t, n), STATE, "once after each");
    }
    assert_error(partial(s, 0, sums), BUDGET, "all 12 tokens");
    assert_int_equal(dpi_sampler_tokens_left(s), 0);
    assert_ok(dpi_sampler_begin(s, ERR));
    assert_error(step_merged(s, 0, n), STATE, "once after each");
    /* Without bits no token, and the same sums may be tried again. */
    limited_source source = {.seed = 3, .n = 0};
    o.random = limited_bits, o.random_user = &source;
    SAMPLER limited = open_sampler(&o);
    assert_error(partial(limited, 0, sums), STATE, "begin");
    assert_ok(dpi_sampler_begin(limited, ERR));
    assert_ok(partial(limited, 0, sums));
    token = -1;
    assert_error(step_merged(limited, 0, n), ENTROPY, "");
    assert_int_equal(token, -1);
    source.n = 1;
    assert_ok(step_merged(limited, 0, n));

    o.method = DPI_METHOD_AMIN;
    SAMPLER amin = begin_text(o, &bits);
    assert_error(partial(amin, 0, sums), UNSUPPORTED, "amin has no sums that merge");
    dpi_part_init(&part);
    assert_error(dpi_sampler_begin_part(amin, &part, ERR), UNSUPPORTED,
                 "amin has no sums that merge");
    assert_error(partial(NULL, 0, sums), ARG, "NULL");
    assert_error(dpi_sampler_step_merged(amin, text[0].public_logits, NULL, n, &token, ERR), ARG,
                 "NULL");
}

/* What is wrong with a part or with sums is said, and nothing is drawn or changed. */
TEST(test_refused) {
    static int64_t others[SUMS_MAX], kept[SUMS_MAX];
    uint64_t bits = 1;
    dpi_part part;
    SAMPLER a = begin_part(make_options(), 3, 0, 2, &bits);
    SAMPLER b = begin_part(make_options(), B - 3, 1, 2, &bits);
    dpi_part_init(&part);
    part.count = DPI_PARTS_MAX + 1;
    assert_error(dpi_sampler_begin_part(a, &part, ERR), ARG, "count is 257, must be 1..256");
    part.count = part.index = 2;
    assert_error(dpi_sampler_begin_part(a, &part, ERR), ARG, "index is 2, must be 0..1");
    part.struct_size--;
    assert_error(dpi_sampler_begin_part(a, &part, ERR), ARG, "must be a multiple of 8 from 16 to");
    assert_error(dpi_sampler_begin_part(a, NULL, ERR), ARG, "NULL");

    token = -1;
    assert_error(dpi_sampler_step(a, text[0].public_logits, text[0].slots, &token, ERR), STATE,
                 "one of 2 parts");
    assert_ok(partial(a, 0, sums));
    assert_ok(partial(b, 0, others));
    assert_error(step_merged(a, 0, n), ARG, "not those of all 2 parts");
    assert_error(dpi_sums_merge(sums, others, DPI_SUMS_HEADER - 1, ERR), ARG, "must be 11 or more");
    assert_error(dpi_sums_merge(sums, NULL, n, ERR), ARG, "NULL");
    memcpy(kept, others, sizeof kept);
    others[0] = -1;
    assert_error(dpi_sums_merge(sums, others, n, ERR), ARG, "the header of parts");
    memcpy(others, kept, sizeof kept);
    assert_ok(dpi_sums_merge(sums, others, n, ERR));
    memcpy(kept, sums, sizeof kept);
    assert_error(dpi_sums_merge(sums, others, n, ERR), ARG, "counts once");
    assert_memory_equal(sums, kept, (size_t)n * sizeof *sums);
    assert_error(step_merged(a, 0, n - 1), ARG, "entries of sums, must be");
    assert_error(step_merged(a, 1, n), ARG, "");
    assert_int_equal(token, -1);
    assert_ok(step_merged(a, 0, n));
}

/* Whether the sums of a part that was made with these options are drawn from, beside one of the
 * usual ones. */
static bool merges_with(const dpi_sampler_options *o) {
    static int64_t others[SUMS_MAX];
    uint64_t bits = 1;
    SAMPLER a = begin_part(make_options(), 3, 0, 2, &bits);
    SAMPLER b = begin_part(*o, 2, 1, 2, &bits);
    assert_ok(partial(b, 0, others));
    assert_ok(partial(a, 0, sums));
    dpi_status status = dpi_sums_merge(sums, others, n, ERR);
    if (status == DPI_STATUS_OK)
        status = step_merged(a, 0, n);
    assert_true(status == DPI_STATUS_OK || status == DPI_STATUS_ARG);
    return status == DPI_STATUS_OK;
}

/* All parts have one set of options: what a record may add to the sums follows from these. */
TEST(test_other_options) {
    dpi_sampler_options o = make_options();
    assert_true(merges_with(&o));
#define OTHER(change) o = make_options(), change, assert_false(merges_with(&o))
    OTHER(o.max_per_unit = 2);
    OTHER(o.center = 1);
    OTHER(o.adjacency = DPI_ADJACENCY_ZERO_OUT);
    OTHER((o.accountant = DPI_ACCOUNTANT_FILTER, o.clip = 2));
    OTHER(o.denominator = B + 1);
    OTHER(o.tau = 1.5);
    OTHER(o.rho = 2);
    OTHER(o.n_tokens = T + 1);
#undef OTHER
}

/* As many parts as there may be: their bits are in eight entries of the header. */
TEST(test_most_parts) {
    enum { N = DPI_PARTS_MAX };
    static const batch b = {
        .public_logits = {1, 0, -1}, .reference = {{0, 3, 0}}, .slots = {b.reference[0]}};
    static int64_t part[SUMS_MAX];
    dpi_sampler_options o = make_options();
    uint64_t bits = 3;
    o.n_vocab = 3, o.top_k = 0, o.denominator = N;
    SAMPLER first = begin_part(o, 1, 0, N, &bits);
    memset(sums, 0, sizeof sums);
    for (int32_t i = 0; i < N; i++) {
        SAMPLER other = i > 0 ? begin_part(o, 1, i, N, &bits) : NULL;
        assert_ok(
            dpi_sampler_partial(i > 0 ? other : first, b.public_logits, b.slots, part, &n, ERR));
        assert_ok(dpi_sums_merge(sums, part, n, ERR));
        assert_int_equal(dpi_sampler_step_merged(first, b.public_logits, sums, n, &token, ERR),
                         i + 1 < N ? DPI_STATUS_ARG : DPI_STATUS_OK);
    }
}
