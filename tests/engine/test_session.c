/* Sessions: arguments, limits, states, memory, and every allocation failing once. */
#include <math.h>

#include "dpinfer/bench.h"
#include "engine/matrix.h"
#include "tests/engine/engine_support.h"
#include "tests/support/failing.h"

static void *image;
static size_t n_image;
static dpi_model *model;                   /* of 320 tokens */
static int32_t ascending[200], drawn[200]; /* tokens 3, 4, 5, ...; and random ones */

SETUP {
    tiny_spec spec = tiny_default();
    uint64_t seed = 4;
    tiny_build(&spec, 7, &image, &n_image);
    assert_ok(dpi_model_open_buffer(image, n_image, NULL, &model, ERR));
    for (int i = 0; i < 200; i++)
        ascending[i] = 3 + i, drawn[i] = 3 + random_below(&seed, 200);
}

TEARDOWN {
    dpi_model_close(model);
    free(image);
}

static void prefill(dpi_session *s, int32_t seq, const int32_t *tokens, size_t n) {
    assert_ok(dpi_session_prefill(s, seq, tokens, n, NULL, ERR));
}

static void step(dpi_session *s, int32_t seq, int32_t token) {
    assert_ok(dpi_session_step(s, 1, &seq, &token, ERR));
}

static void assert_same_logits(const dpi_session *a, int32_t seq, const dpi_session *b,
                               int32_t seq_b) {
    assert_memory_equal(dpi_session_logits(a, seq), dpi_session_logits(b, seq_b),
                        (size_t)model->n_vocab * sizeof(float));
}

/* A token attends to itself and all before it; a part of a prompt that is forked is not read. */
TEST(test_attention) {
    dpi_model_info info;
    dpi_session_options o;
    dpi_session *s;
    double seconds, operations, later, n_seen = 0;
    const int32_t seqs[] = {0, 1}, tokens[] = {5, 6};
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(model, &info, ERR));
    dpi_session_options_init(&o);
    o.n_seq = 2;
    o.n_threads = 2;
    assert_ok(dpi_session_create(model, &o, &s, ERR));
    dpi_session_attention(s, &seconds, &operations);
    assert_true(seconds == 0 && operations == 0);
    prefill(s, 0, ascending, 20);
    assert_ok(dpi_session_fork(s, 0, 1, 16, ERR));
    prefill(s, 1, drawn, 3);
    assert_ok(dpi_session_step(s, 2, seqs, tokens, ERR));
    for (int32_t n = 1; n <= 20; n++)
        n_seen += n;
    n_seen += 17 + 18 + 19 + 21 + 20;
    dpi_session_attention(s, &seconds, &operations);
    assert_true(seconds > 0);
    assert_true(operations == 2. * n_seen * info.n_layer * info.n_head *
                                  (info.head_dim + info.head_dim_v));
    step(s, 0, 7);
    dpi_session_attention(s, &later, &operations);
    assert_true(later > seconds);
    dpi_session_free(s);
}

TEST(test_options) {
    static const struct {
        size_t offset;
        int32_t value;
        const char *message;
    } bad[] = {
        {offsetof(dpi_session_options, n_seq), 0, "n_seq must be 1..1048577"},
        {offsetof(dpi_session_options, n_seq), 1048578, "n_seq must be 1..1048577"},
        {offsetof(dpi_session_options, n_ctx), -1, "n_ctx is -1"},
        {offsetof(dpi_session_options, n_kept), -1, "n_kept"},
        {offsetof(dpi_session_options, n_threads), 1025, "n_threads is 1025"},
        {offsetof(dpi_session_options, kv_type), 2, "kv_type is 2, must be 0..1"},
        {offsetof(dpi_session_options, exact), 3, "exact is 3"},
        {offsetof(dpi_session_options, prefill), 9, "prefill is 9"},
        {offsetof(dpi_session_options, isa), 77, "isa is 77"},
        {offsetof(dpi_session_options, struct_size), 12, "struct_size is 12"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dpi_session_options o;
        dpi_session *s = NULL;
        dpi_session_options_init(&o);
        if (bad[i].offset == offsetof(dpi_session_options, struct_size))
            o.struct_size = (size_t)bad[i].value;
        else
            memcpy((char *)&o + bad[i].offset, &bad[i].value, sizeof bad[i].value);
        assert_error(dpi_session_create(model, &o, &s, ERR), ARG, bad[i].message);
        if (bad[i].offset == offsetof(dpi_session_options, n_seq)) /* it may be private */
            assert_string_equal(ERR->message, bad[i].message);
        assert_null(s);
    }
}

TEST(test_limits) {
    dpi_session *s = open_session(model, NULL, 2, 10);
    int32_t tokens[16] = {5, 6, 7}, seqs[2] = {1, 1};
    assert_null(dpi_session_logits(s, 0));
    assert_null(dpi_session_logits(s, 2));
    assert_int_equal(dpi_session_length(s, -1), -1);
    assert_error(dpi_session_prefill(s, 0, tokens, 0, NULL, ERR), ARG, "no tokens");
    assert_error(dpi_session_prefill(s, 2, tokens, 1, NULL, ERR), ARG,
                 "sequence 2, must be one of the session's");
    assert_error(dpi_session_prefill(s, 0, tokens, 11, NULL, ERR), LIMIT, "context of 10");
    assert_null(strstr(ERR->message, "11")); /* how long a prompt is may be private */
    tokens[1] = 320;
    assert_error(dpi_session_prefill(s, 0, tokens, 2, NULL, ERR), ARG, "0..319");
    assert_null(strstr(ERR->message, "320")); /* and so may its tokens be */
    assert_int_equal(dpi_session_length(s, 0), 0);
    tokens[1] = 6;
    prefill(s, 0, tokens, 10);
    prefill(s, 1, tokens, 1);
    assert_error(dpi_session_step(s, 2, seqs, tokens, ERR), ARG, "twice");
    seqs[0] = 0; /* full: sequence 1 must not advance either */
    assert_error(dpi_session_step(s, 2, seqs, tokens, ERR), LIMIT, "sequence 0 would exceed");
    assert_int_equal(dpi_session_length(s, 1), 1);
    assert_error(dpi_session_step(s, 3, seqs, tokens, ERR), ARG, "n_rows must be 1 to");
    dpi_session_reset(s, 0);
    assert_int_equal(dpi_session_length(s, 0), 0);
    assert_null(dpi_session_logits(s, 0));
    assert_ok(dpi_session_step(s, 2, seqs, tokens, ERR));
    assert_int_equal(dpi_session_length(s, 0), 1);
    dpi_session_free(s);
    dpi_session_free(NULL);
}

/* Logits of chosen tokens: what may be asked for, and when. */
TEST(test_chosen_logits) {
    dpi_session *s = open_session(model, NULL, 3, 64);
    int32_t tokens[3] = {5, 6, 7}, seqs[3] = {2, 0, 1}, ids[3] = {3, 17, 319};
    assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, ERR), STATE, "after a step");
    for (int32_t i = 0; i < 3; i++)
        prefill(s, i, tokens, 2);
    assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, ERR), STATE, "after a step");
    assert_error(dpi_session_step_partial(s, 3, seqs, tokens, 4, ERR), ARG, "n_logits must be");
    assert_error(dpi_session_step_partial(s, 3, seqs, tokens, -1, ERR), ARG, "n_logits must be");
    assert_int_equal(dpi_session_length(s, 0), 2);
    assert_ok(dpi_session_step_partial(s, 3, seqs, tokens, 1, ERR));
    assert_non_null(dpi_session_logits(s, 2));
    static const struct {
        int32_t last;
        const char *message;
    } bad[] = {{320, "0..319"}, {-1, "0..319"}, {17, "ascend"}};
    for (int i = 0; i < 3; i++) {
        ids[2] = bad[i].last;
        assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, ERR), ARG, bad[i].message);
    }
    assert_error(dpi_session_logits_at(s, 1, 2, ids, -1, ERR), ARG, "0 or more");
    ids[2] = 18;
    static const int32_t rows[][2] = {{0, 3}, {0, 1}, {1, 3}, {2, -1}, {3, 1}, {-1, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_error(dpi_session_logits_at(s, rows[i][0], rows[i][1], ids, 3, ERR), ARG,
                     "rows that the step left without");
    assert_ok(dpi_session_logits_at(s, 2, 1, ids, 3, ERR));
    assert_ok(dpi_session_logits_at(s, 3, 0, ids, 3, ERR));
    assert_null(dpi_session_logits(s, 0));
    assert_non_null(dpi_session_logits(s, 1));
    assert_ok(dpi_session_logits_at(s, 1, 2, ids, 3, ERR));
    assert_non_null(dpi_session_logits(s, 0));
    assert_non_null(dpi_session_logits(s, 1));
    for (int way = 0; way < 3; way++) { /* the activations of the step are gone */
        dpi_session_reset(s, 2);
        assert_ok(dpi_session_step_partial(s, 2, seqs, tokens, 0, ERR));
        if (way == 0)
            prefill(s, 1, tokens, 1);
        else if (way == 1)
            dpi_session_reset(s, 0);
        else
            assert_ok(dpi_session_fork(s, 2, 1, 1, ERR));
        assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, ERR), STATE, "after a step");
    }
    dpi_session_free(s);
}

enum { N_EMBD = 64 };

/* Features give the logits when they are multiplied with the output head, and are the same bits
 * whatever was read before; for texts of less and of more than a chunk. */
TEST(test_features) {
    static const size_t lengths[] = {1, 9, 63, 64, 65, 130, 150};
    dpi_session *s = open_session(model, NULL, 2, 300);
    dpi_session *alone = open_session(model, NULL, 1, 0);
    float a[N_EMBD], b[N_EMBD], row[N_EMBD];
    assert_int_equal(s->work.norm.n, N_EMBD);
    assert_error(dpi_session_features(s, 0, a, ERR), STATE, "after a prefill");
    assert_error(dpi_session_features(s, 2, a, ERR), ARG, "sequence 2");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        dpi_session_reset(s, 1);
        dpi_session_reset(alone, 0);
        prefill(s, 0, drawn, 1 + i);
        prefill(s, 1, drawn, lengths[i]);
        assert_ok(dpi_session_features(s, 1, a, ERR));
        assert_error(dpi_session_features(s, 0, b, ERR), STATE, "after a prefill");
        prefill(alone, 0, drawn, lengths[i]);
        assert_ok(dpi_session_features(alone, 0, b, ERR));
        assert_memory_equal(a, b, sizeof a);
        for (int32_t y = 0; y < 50; y++) {
            double sum = 0;
            dpi_matrix_row(&model->output, y, row);
            for (int32_t k = 0; k < N_EMBD; k++)
                sum += (double)row[k] * (double)a[k];
            assert_true(fabs(sum - (double)dpi_session_logits(s, 1)[y]) < 1e-3);
        }
        step(s, 1, drawn[0]);
        assert_error(dpi_session_features(s, 1, a, ERR), STATE, "after a prefill");
    }
    dpi_session_free(s);
    dpi_session_free(alone);
}

/* Those of each token are what the token has as the last one, bit for bit. */
TEST(test_features_last) {
    enum { N = 100, HELD = N - 64 };
    static float all[HELD * N_EMBD], one[N_EMBD], logits[N * 320];
    dpi_session *s = open_session(model, NULL, 1, 0);
    prefill(s, 0, drawn, N);
    assert_error(dpi_session_features_last(s, 0, 2, all, ERR), ARG, "1 to 1");
    dpi_session_reset(s, 0);
    assert_ok(dpi_session_prefill(s, 0, drawn, N, logits, ERR));
    assert_error(dpi_session_features_last(s, 0, HELD + 1, all, ERR), ARG, "1 to 36");
    assert_error(dpi_session_features_last(s, 0, 0, all, ERR), ARG, "1 to 36");
    assert_ok(dpi_session_features_last(s, 0, HELD, all, ERR));
    for (int i = 0; i < HELD; i++) {
        dpi_session_reset(s, 0);
        prefill(s, 0, drawn, (size_t)(65 + i));
        assert_ok(dpi_session_features(s, 0, one, ERR));
        assert_memory_equal(one, all + i * N_EMBD, sizeof one);
    }
    dpi_session_reset(s, 0); /* of what was there nothing is told */
    assert_error(dpi_session_features(s, 0, one, ERR), STATE, "after a prefill");
    dpi_session_free(s);
}

static int32_t cancel_second(void *user) { return ++*(int *)user == 2; }

TEST(test_cancel) {
    int calls = 0;
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.cancel = cancel_second, o.cancel_user = &calls;
    dpi_session *s = open_session(model, &o, 1, 0);
    assert_error(dpi_session_prefill(s, 0, ascending, 200, NULL, ERR), CANCELLED, "cancelled");
    assert_int_equal(calls, 2);
    assert_int_equal(dpi_session_length(s, 0), 0); /* the first chunk is gone too */
    dpi_session_free(s);
}

/* A reset leaves nothing of a sequence in its logits. */
TEST(test_wiped) {
    dpi_session *s = open_session(model, NULL, 2, 64);
    prefill(s, 1, ascending, 1);
    const float *logits = dpi_session_logits(s, 1);
    dpi_session_reset(s, 1);
    for (int32_t i = 0; i < model->n_vocab; i++)
        assert_true(logits[i] == 0);
    assert_int_equal(s->kv.seqs[1].lists[DPI_KV_ALL].n, 0);
    dpi_session_free(s);
}

/* What is looked at when it is given back (linked with -Wl,--wrap=free). */
static struct {
    const unsigned char *at, *data;
    size_t n_bytes;
    bool is_back, is_wiped;
} watched[4];
static size_t n_watched;

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p) {
    for (size_t i = 0; p && i < n_watched; i++) {
        if (watched[i].at != p)
            continue;
        watched[i].is_back = watched[i].is_wiped = true;
        for (size_t k = 0; k < watched[i].n_bytes; k++)
            watched[i].is_wiped &= watched[i].data[k] == 0;
    }
    __real_free(p);
}

/* `before`: bytes of the block in front of the data. It holds something. */
static void watch(const unsigned char *data, size_t before, size_t n_bytes) {
    bool is_empty = true;
    for (size_t k = 0; k < n_bytes; k++)
        is_empty &= data[k] == 0;
    assert_false(is_empty);
    watched[n_watched].at = data - before, watched[n_watched].data = data;
    watched[n_watched].n_bytes = n_bytes, watched[n_watched].is_back = false;
    n_watched++;
}

/* And nothing of what the tokens have become: caches, a recurrent state, and the one at a pin. */
TEST(test_caches_are_wiped) {
    enum { PIN = 20, N = 40, HEAD = 64 };
    require_data("arch/qwen35-A.gguf");
    dpi_model *recurrent = open_shared("arch/qwen35-A.gguf");
    dpi_session *s = open_session(recurrent, NULL, 1, 64);
    const dpi_kv_seq *seq = &s->kv.seqs[0];
    assert_ok(dpi_session_pin(s, 0, PIN, ERR));
    prefill(s, 0, ascending, N);
    watch(seq->lists[DPI_KV_ALL].blocks[0], HEAD, s->kv.block_bytes[DPI_KV_ALL] - HEAD);
    watch(seq->state, 0, s->kv.state_bytes);
    watch(seq->pinned[0], 0, s->kv.state_bytes);
    dpi_session_reset(s, 0);
    const size_t n = n_watched;
    n_watched = 0;
    for (size_t i = 0; i < n; i++)
        assert_true(watched[i].is_back && watched[i].is_wiped);
    dpi_session_free(s);
    dpi_model_close(recurrent);
}

static int64_t distinct_blocks(const dpi_session *s, dpi_kv_kind kind) {
    int64_t n = 0;
    for (int32_t i = 0; i < s->n_seq; i++)
        for (int32_t b = 0; b < s->kv.seqs[i].lists[kind].n; b++) {
            const unsigned char *block = s->kv.seqs[i].lists[kind].blocks[b];
            bool seen = block == NULL;
            for (int32_t j = 0; j < i; j++)
                seen |= b < s->kv.seqs[j].lists[kind].n &&
                        s->kv.seqs[j].lists[kind].blocks[b] == block;
            n += !seen;
        }
    return n;
}

static uint64_t held_bytes(const dpi_session *s) {
    uint64_t n = sizeof *s + s->memory_bytes;
    for (dpi_kv_kind kind = 0; kind < DPI_KV_KINDS; kind++)
        n += (uint64_t)distinct_blocks(s, kind) * s->kv.block_bytes[kind];
    for (int32_t i = 0; i < s->n_seq; i++) {
        n += s->kv.seqs[i].state ? s->kv.state_bytes : 0;
        for (int32_t k = 0; k < DPI_PINS_MAX; k++)
            n += s->kv.seqs[i].pinned[k] ? s->kv.state_bytes : 0;
    }
    return n;
}

/* A fork goes its own way: whatever becomes of the two, each has the bits it has alone. */
TEST(test_fork) {
    enum { N = 160, FORK = 147, OTHER = 77 }; /* 2 blocks, a group of 16 and 3 more */
    dpi_session *s = open_session(model, NULL, 3, 256);
    dpi_session *alone = open_session(model, NULL, 1, 256);
    assert_error(dpi_session_fork(s, 0, 1, 1, ERR), ARG, "more tokens than");
    prefill(s, 0, ascending, N);
    assert_error(dpi_session_fork(s, 0, 1, 0, ERR), ARG, "or none");
    assert_error(dpi_session_fork(s, 0, 1, N + 1, ERR), ARG, "more tokens than");
    assert_error(dpi_session_fork(s, 0, 0, 1, ERR), ARG, "sequence 0 to 0");
    assert_error(dpi_session_fork(s, 0, 3, 1, ERR), ARG, "sequence 0 to 3");
    assert_error(dpi_session_fork(s, -1, 0, 1, ERR), ARG, "sequence -1 to 0");
    prefill(s, 1, drawn, 1); /* is emptied by the fork */
    assert_ok(dpi_session_fork(s, 0, 1, FORK, ERR));
    assert_int_equal(dpi_session_length(s, 1), FORK);
    assert_null(dpi_session_logits(s, 1));
    assert_int_equal(distinct_blocks(s, DPI_KV_ALL), 4); /* 64 + 64 shared, 19 of 32 copied */
    assert_ok(dpi_session_fork(s, 0, 2, N, ERR));
    assert_same_logits(s, 0, s, 2);
    assert_ok(dpi_session_step(s, 2, (int32_t[]){0, 1}, (int32_t[]){5, 6}, ERR));
    prefill(alone, 0, ascending, FORK);
    step(alone, 0, 6);
    dpi_session_reset(s, 0); /* its blocks live on where they are shared */
    prefill(s, 0, ascending + 5, N - 5);
    step(s, 1, OTHER);
    step(alone, 0, OTHER);
    assert_same_logits(s, 1, alone, 0);
    dpi_session_reset(alone, 0);
    prefill(alone, 0, ascending, N);
    step(alone, 0, OTHER);
    step(s, 2, OTHER);
    assert_same_logits(s, 2, alone, 0);
    dpi_session_free(s);
    dpi_session_free(alone);
}

/* Sequences that only hold tokens give them back with the same bits, and can do nothing else. */
TEST(test_kept) {
    enum { N = 100, N_SEQ = 2, N_KEPT = 3 };
    const int32_t kept = N_SEQ + 1;
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.n_kept = N_KEPT;
    dpi_session *s = open_session(model, &o, N_SEQ, 256);
    dpi_session *alone = open_session(model, NULL, 1, 256);
    assert_error(dpi_session_prefill(s, kept, ascending, N, NULL, ERR), ARG, "sequence 3");
    assert_error(dpi_session_step(s, 1, &kept, ascending, ERR), ARG, "sequence 3");
    prefill(s, 0, ascending, N);
    assert_ok(dpi_session_fork(s, 0, kept, N, ERR));
    assert_ok(dpi_session_fork(s, kept, kept + 1, 70, ERR));
    assert_error(dpi_session_fork(s, 0, N_SEQ + N_KEPT, N, ERR), ARG, "sequence 0 to 5");
    dpi_session_reset(s, 0);
    assert_int_equal(dpi_session_length(s, kept), N);
    assert_null(dpi_session_logits(s, kept));
    assert_ok(dpi_session_fork(s, kept + 1, 1, 70, ERR));
    assert_null(dpi_session_logits(s, 1));
    dpi_session_reset(s, kept + 1);
    assert_int_equal(dpi_session_length(s, kept + 1), 0);
    prefill(s, 1, ascending + 70, N - 70);
    prefill(alone, 0, ascending, N);
    assert_same_logits(s, 1, alone, 0);
    dpi_session_free(s);
    dpi_session_free(alone);
}

/* What dpi_session_memory promises is what is allocated. */
TEST(test_memory) {
    dpi_session_options o;
    uint64_t bytes;
    dpi_session_options_init(&o);
    o.n_seq = 3, o.n_threads = 2;
    assert_ok(dpi_session_memory(model, &o, 130, 0, &bytes, ERR));
    dpi_session *s = open_session(model, &o, 3, 0);
    for (int32_t i = 0; i < 3; i++)
        prefill(s, i, ascending, 130);
    assert_int_equal(held_bytes(s), bytes);
    assert_ok(dpi_session_memory(model, &o, 130, 100, &bytes, ERR));
    dpi_session_reset(s, 2);
    assert_ok(dpi_session_fork(s, 1, 2, 100, ERR));
    prefill(s, 2, ascending, 30);
    assert_int_equal(held_bytes(s), bytes);
    assert_error(dpi_session_memory(model, &o, 130, 131, &bytes, ERR), ARG,
                 "n_prefix is 131, must be 0..130");
    dpi_session_free(s);
    assert_error(dpi_session_memory(model, &o, 513, 0, &bytes, ERR), ARG,
                 "n_tokens is 513, must be 0..512");
}

/* A recurrent state cannot go back but to a pin; from there, and from the end, others go on with
 * the bits that they have alone. It is counted as memory, and wiped. */
TEST(test_recurrent) {
    enum { N = 130, PIN = 100, KEPT = 3 };
    static const int32_t forkable[][2] = {{200, N}, {N, N}, {N - 1, PIN}, {PIN, PIN},
                                          {PIN - 1, 0}};
    uint64_t bytes;
    dpi_session_options o;
    require_data("arch/qwen35-A.gguf");
    dpi_model *recurrent = open_shared("arch/qwen35-A.gguf");
    dpi_session_options_init(&o);
    o.n_threads = 2, o.n_kept = 1;
    dpi_session *s = open_session(recurrent, &o, 3, 0);
    dpi_session *alone = open_session(recurrent, NULL, 1, 0);
    prefill(s, 0, drawn, N);
    prefill(s, 1, ascending, 10);
    assert_ok(dpi_session_pin(s, 0, N, ERR));
    assert_ok(dpi_session_pin(s, 1, PIN, ERR));
    prefill(s, 1, ascending + 10, N - 10);
    for (size_t i = 0; i < sizeof forkable / sizeof *forkable; i++)
        assert_int_equal(dpi_session_forkable(s, 1, forkable[i][0]), forkable[i][1]);
    assert_int_equal(dpi_session_forkable(s, 4, 1), 0);
    assert_error(dpi_session_fork(s, 1, 2, N - 1, ERR), STATE, "was not pinned there");
    assert_ok(dpi_session_fork(s, 1, 2, PIN, ERR));
    prefill(s, 2, drawn, N - PIN);
    o.n_seq = 3;
    assert_ok(dpi_session_memory(recurrent, &o, N, PIN, &bytes, ERR));
    assert_int_equal(bytes, held_bytes(s));
    /* 3 delta nets: 3 positions of 2 * 2 * 32 + 4 * 32 inputs, 4 heads of 32 * 32 */
    assert_int_equal(s->kv.state_bytes, 3 * (3 * 256 + 4 * 32 * 32) * sizeof(float));
    assert_ok(dpi_session_fork(s, 1, KEPT, N, ERR));
    assert_int_equal(dpi_session_forkable(s, KEPT, PIN), 0); /* it has no pin of its own */
    prefill(alone, 0, ascending, PIN);
    prefill(alone, 0, drawn, N - PIN);
    assert_same_logits(s, 2, alone, 0);
    step(s, 1, 7);
    dpi_session_reset(s, 1);
    assert_null(s->kv.seqs[1].state);
    assert_null(s->kv.seqs[1].pinned[0]);
    assert_ok(dpi_session_fork(s, KEPT, 1, N, ERR));
    step(s, 1, 5);
    dpi_session_reset(alone, 0);
    prefill(alone, 0, ascending, N);
    step(alone, 0, 5);
    assert_same_logits(s, 1, alone, 0);
    dpi_session_free(s);
    dpi_session_free(alone);
    dpi_model_close(recurrent);
}

/* Layers with a window hold what later rows see, and what pins need; dpi_session_memory bounds
 * it. */
TEST(test_windows) {
    enum { WINDOW = 70, PIN = 140, N_SEQ = 3, BEGIN = 200, END = 400 };
    dpi_model *windowed = tiny_open_windowed(model->n_vocab, WINDOW);
    dpi_session *s = open_session(windowed, NULL, N_SEQ, 0);
    dpi_session *alone = open_session(windowed, NULL, 1, 0);
    dpi_session_options o;
    uint64_t most;
    dpi_session_options_init(&o);
    o.n_seq = N_SEQ, o.n_threads = dpi_session_n_threads(s);
    assert_ok(dpi_session_pin(s, 0, PIN, ERR));
    prefill(s, 0, ascending, BEGIN);
    assert_int_equal(dpi_session_forkable(s, 0, PIN + 30), PIN + 30); /* blocks are whole */
    assert_error(dpi_session_pin(s, 0, BEGIN - 1, ERR), ARG, "fewer tokens than");
    assert_error(dpi_session_pin(s, 0, 513, ERR), ARG, "more than the context");
    assert_error(dpi_session_pin(s, N_SEQ, 1, ERR), ARG, "sequence 3");
    assert_ok(dpi_session_pin(s, 0, END, ERR));
    assert_error(dpi_session_pin(s, 0, END + 1, ERR), LIMIT, "has 2 of them");
    for (int32_t n = BEGIN; n < END; n++)
        step(s, 0, drawn[n - BEGIN]);
    const dpi_kv_list *list = &s->kv.seqs[0].lists[DPI_KV_WINDOW];
    assert_int_equal(distinct_blocks(s, DPI_KV_ALL), 7);
    assert_int_equal(distinct_blocks(s, DPI_KV_WINDOW), 4); /* two of the pin, two of the window */
    assert_null(list->blocks[0]);
    assert_null(list->blocks[3]);
    assert_int_equal(dpi_session_forkable(s, 0, END), END);
    assert_int_equal(dpi_session_forkable(s, 0, END - WINDOW), PIN);
    assert_int_equal(dpi_session_forkable(s, 0, WINDOW - 10), 0);
    assert_int_equal(dpi_session_forkable(s, 0, 1000), END);
    assert_error(dpi_session_fork(s, 0, 1, WINDOW - 10, ERR), STATE, "was not pinned there");
    prefill(alone, 0, ascending, PIN);
    for (int32_t seq = 1; seq < N_SEQ; seq++)
        assert_ok(dpi_session_fork(s, 0, seq, PIN, ERR));
    assert_ok(dpi_session_memory(windowed, &o, END, PIN, &most, ERR));
    for (int32_t n = PIN; n < END; n++) {
        step(s, 1, drawn[n % 200]), step(s, 2, drawn[n % 199]);
        step(alone, 0, drawn[n % 200]);
        assert_true(held_bytes(s) <= most);
        assert_same_logits(s, 1, alone, 0);
    }
    dpi_session_reset(s, 0);
    assert_int_equal(distinct_blocks(s, DPI_KV_WINDOW), 4);
    dpi_session_free(s);
    dpi_session_free(alone);
    dpi_model_close(windowed);
}

/* Opens, creates, computes. OpenMP and OpenBLAS allocate outside of our reach, so one thread and no
 * BLAS. */
static dpi_status whole_way(const void *bytes, size_t n_bytes, dpi_error *err) {
    dpi_model *m = NULL;
    dpi_session *s = NULL;
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.n_seq = 2, o.n_threads = 1, o.prefill = DPI_PREFILL_KERNELS;
    dpi_status status = dpi_model_open_buffer(bytes, n_bytes, NULL, &m, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_create(m, &o, &s, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_prefill(s, 0, ascending, 63, NULL, err);
    for (int i = 0; i < 2 && status == DPI_STATUS_OK; i++) /* the second needs another KV block */
        status = dpi_session_step(s, 1, &(int32_t){0}, ascending, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_pin(s, 0, 65, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_fork(s, 0, 1, 65, err); /* one block is shared, one copied */
    dpi_session_free(s);
    dpi_model_close(m);
    return status;
}

TEST(test_allocation_failures) {
    int64_t n = 1;
    while (fails(n, whole_way(image, n_image, ERR), "memory"))
        n++;
    assert_true(n > 11);
}

TEST(test_recurrent_allocation_failures) {
    size_t n_bytes;
    int64_t n = 1;
    require_data("arch/qwen35-A.gguf");
    char *recurrent = read_file(data_path("arch/qwen35-A.gguf"), &n_bytes);
    while (fails(n, whole_way(recurrent, n_bytes, ERR), "memory"))
        n++;
    assert_true(n > 11);
    free(recurrent);
}

TEST(test_vocab_only) {
    dpi_model_options o;
    dpi_model *m = NULL;
    dpi_session *s = NULL;
    dpi_model_options_init(&o);
    o.vocab_only = 1;
    assert_ok(dpi_model_open_buffer(image, n_image, &o, &m, ERR));
    assert_error(dpi_session_create(m, NULL, &s, ERR), STATE, "without its weights");
    dpi_model_close(m);
}
