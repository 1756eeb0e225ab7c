/* Sessions: arguments, limits, states, memory, and every allocation failing once. */
#include <math.h>

#include "engine/matrix.h"
#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

static void *image;
static dpi_model *model;

static int setup(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    model = tiny_open(&spec, 7, &image);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dpi_model_close(model);
    free(image);
    return 0;
}

static void test_options(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        int32_t value;
        const char *message;
    } bad[] = {
        {offsetof(dpi_session_options, n_seq), 0, "n_seq must be 1..1048577"},
        {offsetof(dpi_session_options, n_seq), 1048578, "n_seq must be 1..1048577"},
        {offsetof(dpi_session_options, n_ctx), -1, "n_ctx is -1"},
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
        dpi_error err;
        dpi_session_options_init(&o);
        if (bad[i].offset == 0)
            o.struct_size = (size_t)bad[i].value;
        else
            memcpy((char *)&o + bad[i].offset, &bad[i].value, sizeof bad[i].value);
        assert_error(dpi_session_create(model, &o, &s, &err), DPI_STATUS_ARG, &err,
                     bad[i].message);
        assert_null(s);
    }
}

static void test_limits(void **state) {
    (void)state;
    dpi_session *s = open_session(model, NULL, 2, 10);
    dpi_error err;
    int32_t tokens[16] = {5, 6, 7}, seqs[2] = {1, 1};
    assert_null(dpi_session_logits(s, 0));
    assert_null(dpi_session_logits(s, 2));
    assert_int_equal(dpi_session_length(s, -1), -1);
    assert_error(dpi_session_prefill(s, 0, tokens, 0, NULL, &err), DPI_STATUS_ARG, &err,
                 "no tokens");
    assert_error(dpi_session_prefill(s, 2, tokens, 1, NULL, &err), DPI_STATUS_ARG, &err,
                 "sequence 2, must be one of the session's");
    assert_error(dpi_session_prefill(s, 0, tokens, 11, NULL, &err), DPI_STATUS_LIMIT, &err,
                 "context of 10");
    tokens[1] = 320;
    assert_error(dpi_session_prefill(s, 0, tokens, 2, NULL, &err), DPI_STATUS_ARG, &err, "0..319");
    assert_int_equal(dpi_session_length(s, 0), 0);
    tokens[1] = 6;
    assert_ok(dpi_session_prefill(s, 0, tokens, 10, NULL, &err), &err);
    assert_ok(dpi_session_prefill(s, 1, tokens, 1, NULL, &err), &err);
    assert_error(dpi_session_step(s, 2, seqs, tokens, &err), DPI_STATUS_ARG, &err, "twice");
    seqs[0] = 0; /* full: sequence 1 must not advance either */
    assert_error(dpi_session_step(s, 2, seqs, tokens, &err), DPI_STATUS_LIMIT, &err,
                 "sequence 0 would exceed");
    assert_int_equal(dpi_session_length(s, 1), 1);
    assert_error(dpi_session_step(s, 3, seqs, tokens, &err), DPI_STATUS_ARG, &err,
                 "n_rows must be 1 to");
    dpi_session_reset(s, 0);
    assert_int_equal(dpi_session_length(s, 0), 0);
    assert_null(dpi_session_logits(s, 0));
    assert_ok(dpi_session_step(s, 2, seqs, tokens, &err), &err);
    assert_int_equal(dpi_session_length(s, 0), 1);
    dpi_session_free(s);
    dpi_session_free(NULL);
}

/* Logits of chosen tokens: what may be asked for, and when. */
static void test_chosen_logits(void **state) {
    (void)state;
    dpi_session *s = open_session(model, NULL, 3, 64);
    dpi_error err;
    int32_t tokens[3] = {5, 6, 7}, seqs[3] = {2, 0, 1}, ids[3] = {3, 17, 319};
    assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, &err), DPI_STATUS_STATE, &err,
                 "after a step");
    for (int32_t i = 0; i < 3; i++)
        assert_ok(dpi_session_prefill(s, i, tokens, 2, NULL, &err), &err);
    assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, &err), DPI_STATUS_STATE, &err,
                 "after a step");
    assert_error(dpi_session_step_partial(s, 3, seqs, tokens, 4, &err), DPI_STATUS_ARG, &err,
                 "n_logits must be");
    assert_error(dpi_session_step_partial(s, 3, seqs, tokens, -1, &err), DPI_STATUS_ARG, &err,
                 "n_logits must be");
    assert_int_equal(dpi_session_length(s, 0), 2);
    assert_ok(dpi_session_step_partial(s, 3, seqs, tokens, 1, &err), &err);
    assert_non_null(dpi_session_logits(s, 2));
    ids[2] = 320;
    assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, &err), DPI_STATUS_ARG, &err, "0..319");
    ids[2] = -1;
    assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, &err), DPI_STATUS_ARG, &err, "0..319");
    ids[2] = 17;
    assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, &err), DPI_STATUS_ARG, &err, "ascend");
    assert_error(dpi_session_logits_at(s, 1, 2, ids, -1, &err), DPI_STATUS_ARG, &err, "0 or more");
    ids[2] = 18;
    static const int32_t rows[][2] = {{0, 3}, {0, 1}, {1, 3}, {2, -1}, {3, 1}, {-1, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_error(dpi_session_logits_at(s, rows[i][0], rows[i][1], ids, 3, &err), DPI_STATUS_ARG,
                     &err, "rows that the step left without");
    assert_ok(dpi_session_logits_at(s, 2, 1, ids, 3, &err), &err);
    assert_ok(dpi_session_logits_at(s, 3, 0, ids, 3, &err), &err);
    assert_null(dpi_session_logits(s, 0));
    assert_non_null(dpi_session_logits(s, 1));
    assert_ok(dpi_session_logits_at(s, 1, 2, ids, 3, &err), &err);
    assert_non_null(dpi_session_logits(s, 0));
    assert_non_null(dpi_session_logits(s, 1));
    for (int way = 0; way < 3; way++) { /* the activations of the step are gone */
        dpi_session_reset(s, 2);
        assert_ok(dpi_session_step_partial(s, 2, seqs, tokens, 0, &err), &err);
        if (way == 0)
            assert_ok(dpi_session_prefill(s, 1, tokens, 1, NULL, &err), &err);
        else if (way == 1)
            dpi_session_reset(s, 0);
        else
            assert_ok(dpi_session_fork(s, 2, 1, 1, &err), &err);
        assert_error(dpi_session_logits_at(s, 1, 2, ids, 3, &err), DPI_STATUS_STATE, &err,
                     "after a step");
    }
    dpi_session_free(s);
}

static int32_t cancel_second(void *user) { return ++*(int *)user == 2; }

/* Features give the logits when they are multiplied with the output head, and are the same bits
 * whatever was read before; for texts of less and of more than a chunk. */
static void test_features(void **state) {
    (void)state;
    enum { N_MOST = 150 };
    static const size_t lengths[] = {1, 9, 63, 64, 65, 130, N_MOST};
    dpi_session *s = open_session(model, NULL, 2, 2 * N_MOST);
    dpi_session *alone = open_session(model, NULL, 1, 0);
    const int32_t n_embd = (int32_t)s->work.norm.n;
    float a[256], b[256], row[256];
    int32_t tokens[N_MOST];
    uint64_t seed = 4;
    dpi_error err;
    assert_true(n_embd <= 256);
    for (int i = 0; i < N_MOST; i++)
        tokens[i] = 3 + random_below(&seed, 200);
    assert_error(dpi_session_features(s, 0, a, &err), DPI_STATUS_STATE, &err, "after a prefill");
    assert_error(dpi_session_features(s, 2, a, &err), DPI_STATUS_ARG, &err, "sequence 2");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        dpi_session_reset(s, 1);
        dpi_session_reset(alone, 0);
        assert_ok(dpi_session_prefill(s, 0, tokens, 1 + i, NULL, &err), &err);
        assert_ok(dpi_session_prefill(s, 1, tokens, lengths[i], NULL, &err), &err);
        assert_ok(dpi_session_features(s, 1, a, &err), &err);
        assert_error(dpi_session_features(s, 0, b, &err), DPI_STATUS_STATE, &err,
                     "after a prefill");
        assert_ok(dpi_session_prefill(alone, 0, tokens, lengths[i], NULL, &err), &err);
        assert_ok(dpi_session_features(alone, 0, b, &err), &err);
        assert_memory_equal(a, b, (size_t)n_embd * sizeof *a);
        const float *logits = dpi_session_logits(s, 1);
        for (int32_t y = 0; y < 50; y++) {
            double sum = 0;
            dpi_matrix_row(&model->output, y, row);
            for (int32_t k = 0; k < n_embd; k++)
                sum += (double)row[k] * (double)a[k];
            assert_true(fabs(sum - (double)logits[y]) < 1e-3);
        }
        assert_ok(dpi_session_step(s, 1, &(int32_t){1}, tokens, &err), &err);
        assert_error(dpi_session_features(s, 1, a, &err), DPI_STATUS_STATE, &err,
                     "after a prefill");
    }
    dpi_session_free(s);
    dpi_session_free(alone);
}

/* Those of each token are what the token has as the last one, bit for bit. */
static void test_features_last(void **state) {
    (void)state;
    enum { N = 100, HELD = N - 64 };
    dpi_session *s = open_session(model, NULL, 1, 0);
    const int32_t n_embd = (int32_t)s->work.norm.n;
    static float all[HELD * 256], one[256], logits[N * 512];
    int32_t tokens[N];
    uint64_t seed = 9;
    dpi_error err;
    assert_true(n_embd <= 256 && model->n_vocab <= 512);
    for (int i = 0; i < N; i++)
        tokens[i] = 3 + random_below(&seed, 200);
    assert_ok(dpi_session_prefill(s, 0, tokens, N, NULL, &err), &err);
    assert_error(dpi_session_features_last(s, 0, 2, all, &err), DPI_STATUS_ARG, &err, "1 to 1");
    dpi_session_reset(s, 0);
    assert_ok(dpi_session_prefill(s, 0, tokens, N, logits, &err), &err);
    assert_error(dpi_session_features_last(s, 0, HELD + 1, all, &err), DPI_STATUS_ARG, &err,
                 "1 to 36");
    assert_error(dpi_session_features_last(s, 0, 0, all, &err), DPI_STATUS_ARG, &err, "1 to 36");
    assert_ok(dpi_session_features_last(s, 0, HELD, all, &err), &err);
    for (int i = 0; i < HELD; i++) {
        dpi_session_reset(s, 0);
        assert_ok(dpi_session_prefill(s, 0, tokens, (size_t)(65 + i), NULL, &err), &err);
        assert_ok(dpi_session_features(s, 0, one, &err), &err);
        assert_memory_equal(one, all + i * n_embd, (size_t)n_embd * sizeof *one);
    }
    dpi_session_free(s);
}

static void test_cancel(void **state) {
    (void)state;
    int calls = 0;
    int32_t tokens[200];
    dpi_session_options o;
    dpi_session *s = NULL;
    dpi_error err;
    for (int i = 0; i < 200; i++)
        tokens[i] = 3 + i;
    dpi_session_options_init(&o);
    o.cancel = cancel_second;
    o.cancel_user = &calls;
    assert_ok(dpi_session_create(model, &o, &s, &err), &err);
    assert_error(dpi_session_prefill(s, 0, tokens, 200, NULL, &err), DPI_STATUS_CANCELLED, &err,
                 "cancelled");
    assert_int_equal(calls, 2);
    assert_int_equal(dpi_session_length(s, 0), 0); /* the first chunk is gone too */
    dpi_session_free(s);
}

/* A reset leaves nothing of a sequence in its logits. */
static void test_wiped(void **state) {
    (void)state;
    dpi_session *s = open_session(model, NULL, 2, 64);
    dpi_error err;
    int32_t token = 9;
    assert_ok(dpi_session_prefill(s, 1, &token, 1, NULL, &err), &err);
    const float *logits = dpi_session_logits(s, 1);
    dpi_session_reset(s, 1);
    for (int32_t i = 0; i < model->n_vocab; i++)
        assert_true(logits[i] == 0);
    assert_int_equal(s->kv.seqs[1].n_blocks, 0);
    dpi_session_free(s);
}

static int64_t distinct_blocks(const dpi_session *s) {
    int64_t n = 0;
    for (int32_t i = 0; i < s->n_seq; i++)
        for (int32_t b = 0; b < s->kv.seqs[i].n_blocks; b++) {
            bool seen = false;
            for (int32_t j = 0; j < i; j++)
                seen |= b < s->kv.seqs[j].n_blocks &&
                        s->kv.seqs[j].blocks[b] == s->kv.seqs[i].blocks[b];
            n += !seen;
        }
    return n;
}

/* A fork goes its own way: whatever becomes of the two, each has the bits it has alone. */
static void test_fork(void **state) {
    (void)state;
    enum { N = 160, FORK = 147 }; /* 2 blocks, a group of 16 and 3 more */
    dpi_session *s = open_session(model, NULL, 3, 256);
    dpi_session *alone = open_session(model, NULL, 1, 256);
    dpi_error err;
    int32_t tokens[N], other = 77, seqs[2] = {0, 1}, both[2] = {5, 6};
    for (int i = 0; i < N; i++)
        tokens[i] = 3 + i;
    assert_error(dpi_session_fork(s, 0, 1, 1, &err), DPI_STATUS_ARG, &err, "more tokens than");
    assert_ok(dpi_session_prefill(s, 0, tokens, N, NULL, &err), &err);
    assert_error(dpi_session_fork(s, 0, 1, 0, &err), DPI_STATUS_ARG, &err, "or none");
    assert_error(dpi_session_fork(s, 0, 1, N + 1, &err), DPI_STATUS_ARG, &err, "more tokens than");
    assert_error(dpi_session_fork(s, 0, 0, 1, &err), DPI_STATUS_ARG, &err, "sequence 0 to 0");
    assert_error(dpi_session_fork(s, 0, 3, 1, &err), DPI_STATUS_ARG, &err, "sequence 0 to 3");
    assert_error(dpi_session_fork(s, -1, 0, 1, &err), DPI_STATUS_ARG, &err, "sequence -1 to 0");
    assert_ok(dpi_session_prefill(s, 1, &other, 1, NULL, &err), &err); /* is emptied by the fork */
    assert_ok(dpi_session_fork(s, 0, 1, FORK, &err), &err);
    assert_int_equal(dpi_session_length(s, 1), FORK);
    assert_null(dpi_session_logits(s, 1));
    assert_int_equal(distinct_blocks(s), 4); /* 64 + 64 shared, 19 of 32 copied */
    assert_ok(dpi_session_fork(s, 0, 2, N, &err), &err);
    assert_memory_equal(dpi_session_logits(s, 0), dpi_session_logits(s, 2),
                        (size_t)model->n_vocab * sizeof(float));
    assert_ok(dpi_session_step(s, 2, seqs, both, &err), &err);
    assert_ok(dpi_session_prefill(alone, 0, tokens, FORK, NULL, &err), &err);
    assert_ok(dpi_session_step(alone, 1, seqs, &both[1], &err), &err);
    dpi_session_reset(s, 0); /* its blocks live on where they are shared */
    assert_ok(dpi_session_prefill(s, 0, tokens + 5, N - 5, NULL, &err), &err);
    assert_ok(dpi_session_step(s, 1, &seqs[1], &other, &err), &err);
    assert_ok(dpi_session_step(alone, 1, seqs, &other, &err), &err);
    assert_memory_equal(dpi_session_logits(s, 1), dpi_session_logits(alone, 0),
                        (size_t)model->n_vocab * sizeof(float));
    dpi_session_reset(alone, 0);
    assert_ok(dpi_session_prefill(alone, 0, tokens, N, NULL, &err), &err);
    assert_ok(dpi_session_step(alone, 1, seqs, &other, &err), &err);
    seqs[0] = 2;
    assert_ok(dpi_session_step(s, 1, seqs, &other, &err), &err);
    assert_memory_equal(dpi_session_logits(s, 2), dpi_session_logits(alone, 0),
                        (size_t)model->n_vocab * sizeof(float));
    dpi_session_free(s);
    dpi_session_free(alone);
}

/* Sequences that only hold tokens give them back with the same bits, and can do nothing else. */
static void test_kept(void **state) {
    (void)state;
    enum { N = 100, N_SEQ = 2, N_KEPT = 3 };
    dpi_session *s, *alone = open_session(model, NULL, 1, 256);
    dpi_session_options o;
    dpi_error err;
    int32_t tokens[N], kept = N_SEQ + 1;
    for (int i = 0; i < N; i++)
        tokens[i] = 3 + i;
    dpi_session_options_init(&o);
    o.n_seq = N_SEQ, o.n_ctx = 256, o.n_kept = -1;
    assert_error(dpi_session_create(model, &o, &s, &err), DPI_STATUS_ARG, &err, "n_kept");
    o.n_kept = N_KEPT;
    assert_ok(dpi_session_create(model, &o, &s, &err), &err);
    assert_error(dpi_session_prefill(s, kept, tokens, N, NULL, &err), DPI_STATUS_ARG, &err,
                 "sequence 3");
    assert_error(dpi_session_step(s, 1, &kept, tokens, &err), DPI_STATUS_ARG, &err, "sequence 3");
    assert_ok(dpi_session_prefill(s, 0, tokens, N, NULL, &err), &err);
    assert_ok(dpi_session_fork(s, 0, kept, N, &err), &err);
    assert_ok(dpi_session_fork(s, kept, kept + 1, 70, &err), &err);
    assert_error(dpi_session_fork(s, 0, N_SEQ + N_KEPT, N, &err), DPI_STATUS_ARG, &err,
                 "sequence 0 to 5");
    dpi_session_reset(s, 0);
    assert_int_equal(dpi_session_length(s, kept), N);
    assert_null(dpi_session_logits(s, kept));
    assert_ok(dpi_session_fork(s, kept + 1, 1, 70, &err), &err);
    assert_null(dpi_session_logits(s, 1));
    dpi_session_reset(s, kept + 1);
    assert_int_equal(dpi_session_length(s, kept + 1), 0);
    assert_ok(dpi_session_prefill(s, 1, tokens + 70, N - 70, NULL, &err), &err);
    assert_ok(dpi_session_prefill(alone, 0, tokens, N, NULL, &err), &err);
    assert_memory_equal(dpi_session_logits(s, 1), dpi_session_logits(alone, 0),
                        (size_t)model->n_vocab * sizeof(float));
    dpi_session_free(s);
    dpi_session_free(alone);
}

/* What dpi_session_memory promises is what is allocated. */
static void test_memory(void **state) {
    (void)state;
    dpi_session_options o;
    dpi_error err;
    uint64_t bytes;
    int32_t tokens[130];
    for (int i = 0; i < 130; i++)
        tokens[i] = 3 + i;
    dpi_session_options_init(&o);
    o.n_seq = 3;
    o.n_threads = 2;
    assert_ok(dpi_session_memory(model, &o, 130, 0, &bytes, &err), &err);
    dpi_session *s = NULL;
    assert_ok(dpi_session_create(model, &o, &s, &err), &err);
    uint64_t held = sizeof *s + s->memory_bytes;
    for (int32_t i = 0; i < 3; i++) {
        assert_ok(dpi_session_prefill(s, i, tokens, 130, NULL, &err), &err);
        held += (uint64_t)s->kv.seqs[i].n_blocks * s->kv.block_bytes;
    }
    assert_int_equal(held, bytes);
    assert_ok(dpi_session_memory(model, &o, 130, 100, &bytes, &err), &err);
    dpi_session_reset(s, 2);
    assert_ok(dpi_session_fork(s, 1, 2, 100, &err), &err);
    assert_ok(dpi_session_prefill(s, 2, tokens, 30, NULL, &err), &err);
    assert_int_equal(bytes, sizeof *s + s->memory_bytes +
                                (uint64_t)distinct_blocks(s) * s->kv.block_bytes);
    assert_error(dpi_session_memory(model, &o, 130, 131, &bytes, &err), DPI_STATUS_ARG, &err,
                 "n_prefix is 131, must be 0..130");
    dpi_session_free(s);
    assert_error(dpi_session_memory(model, &o, 513, 0, &bytes, &err), DPI_STATUS_ARG, &err,
                 "n_tokens is 513, must be 0..512");
}

/* Opens, creates, computes; every allocation on the way fails once. OpenMP and OpenBLAS allocate
 * outside of our reach, so one thread and no BLAS. */
static dpi_status whole_way(size_t n_bytes, dpi_error *err) {
    dpi_model *m = NULL;
    dpi_session *s = NULL;
    dpi_session_options o;
    int32_t tokens[70] = {1, 2, 3}, seq = 0;
    dpi_session_options_init(&o);
    o.n_seq = 2;
    o.n_threads = 1;
    o.prefill = DPI_PREFILL_KERNELS;
    dpi_status status = dpi_model_open_buffer(image, n_bytes, NULL, &m, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_create(m, &o, &s, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_prefill(s, 0, tokens, 63, NULL, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_step(s, 1, &seq, tokens, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_step(s, 1, &seq, tokens, err); /* needs a second KV block */
    if (status == DPI_STATUS_OK)
        status = dpi_session_fork(s, 0, 1, 65, err); /* one block is shared, one copied */
    dpi_session_free(s);
    dpi_model_close(m);
    return status;
}

static void test_allocation_failures(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    void *own;
    size_t n_bytes;
    dpi_error err;
    tiny_build(&spec, 7, &own, &n_bytes);
    fail_allocation(0);
    assert_ok(whole_way(n_bytes, &err), &err);
    int64_t n = fail_allocation(0);
    assert_true(n > 10);
    for (int64_t i = 1; i <= n; i++) {
        fail_allocation(i);
        dpi_status status = whole_way(n_bytes, &err);
        fail_allocation(0);
        assert_error(status, DPI_STATUS_MEMORY, &err, "memory");
    }
    free(own);
}

static void test_vocab_only(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    void *own;
    size_t n_bytes;
    dpi_model_options o;
    dpi_model *m = NULL;
    dpi_session *s = NULL;
    dpi_error err;
    tiny_build(&spec, 7, &own, &n_bytes);
    dpi_model_options_init(&o);
    o.vocab_only = 1;
    assert_ok(dpi_model_open_buffer(own, n_bytes, &o, &m, &err), &err);
    assert_error(dpi_session_create(m, NULL, &s, &err), DPI_STATUS_STATE, &err,
                 "without its weights");
    dpi_model_close(m);
    free(own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),       cmocka_unit_test(test_limits),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_features_last),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_wiped),
        cmocka_unit_test(test_chosen_logits), cmocka_unit_test(test_fork),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_vocab_only),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
