/* test_kept.c - caches of records between answers: what is found again, what makes room, and that
 * the memory has its bound. */
#include "serve/kept.h"
#include "tests/support/support.h"

enum { N_SEQ = 2, N_CTX = 256, N = 96 };

static dpi_model *model;
static int32_t tokens[N], n_kept;
static dpi_session *session;
static kept *k;

/* Room for `n_blocks` caches of one token each, and as many as n_records. */
static void open_kept(int64_t n_blocks, int64_t n_records) {
    dpi_session_options o;
    uint64_t with, without;
    dpi_session_options_init(&o);
    o.n_seq = 1, o.n_ctx = N_CTX, o.n_threads = 1;
    assert_ok(dpi_session_memory(model, &o, 1, 0, &with, ERR));
    assert_ok(dpi_session_memory(model, &o, 0, 0, &without, ERR));
    const int64_t n_bytes = n_blocks * (int64_t)(with - without);
    o.n_seq = N_SEQ;
    assert_ok(kept_count(model, &o, n_bytes, n_records, &o.n_kept, ERR));
    n_kept = o.n_kept;
    assert_ok(dpi_session_create(model, &o, &session, ERR));
    assert_ok(kept_create(session, model, &o, n_bytes, &k, ERR));
}

static void close_kept(void) {
    kept_free(k);
    dpi_session_free(session);
}

/* Reads a prompt of a record and keeps it. */
static void keep(record_name record, const int32_t *prompt, size_t n) {
    dpi_session_reset(session, 0);
    assert_ok(dpi_session_prefill(session, 0, prompt, n, NULL, ERR));
    kept_add(k, record, prompt, n, 0);
    dpi_session_reset(session, 0);
}

/* So many tokens are found of a prompt; nobody keeps it. */
static void expect(record_name record, const int32_t *prompt, size_t n, int32_t wanted) {
    int32_t n_held, seq = kept_find(k, record, prompt, n, &n_held);
    assert_int_equal(n_held, wanted);
    assert_true((seq >= N_SEQ) == (n_held > 0) && seq < N_SEQ + n_kept);
    if (seq >= 0) {
        assert_true(dpi_session_length(session, seq) >= n_held);
        kept_leave(k, seq);
    }
}

TEST(finds_what_is_the_same) {
    int32_t other[N], n_held;
    const record_name a = {0, 7};
    open_kept(8, 4);
    assert_int_equal(n_kept, 4);
    expect(a, tokens, N, 0);
    keep(a, tokens, N);
    expect(a, tokens, N, N);
    expect(a, tokens, 20, 20);
    expect((record_name){1, 7}, tokens, N, 0); /* of another dataset */
    expect((record_name){0, 8}, tokens, N, 0);
    assert_int_equal(kept_find(k, a, NULL, 0, &n_held), -1);
    memcpy(other, tokens, sizeof other);
    other[60]++; /* another question */
    expect(a, other, N, 60);
    keep(a, other, N); /* what was there stays */
    expect(a, tokens, N, N);
    other[10]++; /* another form: now it is kept */
    keep(a, other, N);
    expect(a, other, N, N);
    expect(a, tokens, N, 10);
    close_kept();
}

/* A prompt that is read from stays, whatever happens; one that was not used for long makes room. */
TEST(has_a_bound) {
    static const record_name r[] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}};
    int32_t n_held;
    open_kept(3, 100); /* one prompt of two blocks and one of one */
    assert_int_equal(n_kept, 3);
    keep(r[0], tokens, N);
    keep(r[1], tokens, 5);
    keep(r[2], tokens, 5); /* there is no room */
    expect(r[2], tokens, N, 0);
    const int32_t seq = kept_find(k, r[1], tokens, 5, &n_held);
    assert_int_equal(n_held, 5);
    for (int i = 0; i <= KEPT_ANSWERS; i++)
        kept_count_answer(k);
    keep(r[2], tokens, N); /* the first goes, the second is read from */
    expect(r[0], tokens, N, 0);
    expect(r[1], tokens, N, 5);
    expect(r[2], tokens, N, N);
    kept_leave(k, seq);
    keep(r[3], tokens, N); /* more than there is room for */
    expect(r[3], tokens, N, 0);
    close_kept();
    open_kept(0, 100);
    assert_int_equal(n_kept, 0);
    keep(r[0], tokens, 5);
    expect(r[0], tokens, 5, 0);
    close_kept();
}

/* A recurrent state is that behind a question: nothing would be found. */
TEST(keeps_no_recurrent_state) {
    dpi_model *recurrent = NULL;
    dpi_session_options o;
    int32_t n = -1;
    require_data("arch/qwen35-A.gguf");
    assert_ok(dpi_model_open(data_path("arch/qwen35-A.gguf"), NULL, &recurrent, ERR));
    dpi_session_options_init(&o);
    assert_ok(kept_count(recurrent, &o, 1 << 30, 4, &n, ERR));
    assert_int_equal(n, 0);
    dpi_model_close(recurrent);
}

SETUP {
    for (int i = 0; i < N; i++)
        tokens[i] = 3 + i;
    assert_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, ERR));
}

TEARDOWN { dpi_model_close(model); }
