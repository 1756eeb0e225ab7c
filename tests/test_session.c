/* Sessions: arguments, limits, states, memory, and every allocation failing once. */
#include "model.h"
#include "session.h"
#include "support.h"
#include "tiny_model.h"

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
        {offsetof(dpi_session_options, n_seq), 0, "n_seq must be 1..4097"},
        {offsetof(dpi_session_options, n_seq), 4098, "n_seq must be 1..4097"},
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
    assert_error(dpi_session_step(s, 3, seqs, tokens, &err), DPI_STATUS_ARG, &err, "n_rows must be 1 to");
    dpi_session_reset(s, 0);
    assert_int_equal(dpi_session_length(s, 0), 0);
    assert_null(dpi_session_logits(s, 0));
    assert_ok(dpi_session_step(s, 2, seqs, tokens, &err), &err);
    assert_int_equal(dpi_session_length(s, 0), 1);
    dpi_session_free(s);
    dpi_session_free(NULL);
}

static int32_t cancel_second(void *user) { return ++*(int *)user == 2; }

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
    assert_ok(dpi_session_memory(model, &o, 130, &bytes, &err), &err);
    dpi_session *s = NULL;
    assert_ok(dpi_session_create(model, &o, &s, &err), &err);
    uint64_t held = sizeof *s + s->memory_bytes;
    for (int32_t i = 0; i < 3; i++) {
        assert_ok(dpi_session_prefill(s, i, tokens, 130, NULL, &err), &err);
        held += (uint64_t)s->kv.seqs[i].n_blocks * s->kv.block_bytes;
    }
    assert_int_equal(held, bytes);
    dpi_session_free(s);
    assert_error(dpi_session_memory(model, &o, 513, &bytes, &err), DPI_STATUS_ARG, &err,
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
        cmocka_unit_test(test_options),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_cancel),     cmocka_unit_test(test_wiped),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_vocab_only),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
