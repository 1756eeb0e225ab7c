/* test_kept.c - caches of records between answers: what is found again, what makes room, and that
 * the memory has its bound. */
#include "serve/kept.h"
#include "tests/support/support.h"

enum { N_SEQ = 2, N_CTX = 256, N = 96 };

static dpi_model *model;
static int32_t tokens[N];

typedef struct fixture {
    dpi_session *session;
    kept *k;
    int32_t n_kept;
} fixture;

/* Room for `n_blocks` caches of one token each, and as many as n_records. */
static void open_kept(fixture *f, int64_t n_blocks, int64_t n_records) {
    dpi_session_options o;
    dpi_error err;
    uint64_t with, without;
    dpi_session_options_init(&o);
    o.n_seq = 1, o.n_ctx = N_CTX, o.n_threads = 1;
    assert_ok(dpi_session_memory(model, &o, 1, 0, &with, &err), &err);
    assert_ok(dpi_session_memory(model, &o, 0, 0, &without, &err), &err);
    const int64_t n_bytes = n_blocks * (int64_t)(with - without);
    o.n_seq = N_SEQ;
    assert_ok(kept_count(model, &o, n_bytes, n_records, &o.n_kept, &err), &err);
    f->n_kept = o.n_kept;
    assert_ok(dpi_session_create(model, &o, &f->session, &err), &err);
    assert_ok(kept_create(f->session, model, &o, n_bytes, &f->k, &err), &err);
}

static void close_kept(fixture *f) {
    kept_free(f->k);
    dpi_session_free(f->session);
}

/* Reads a prompt of a record and keeps it. */
static void keep(fixture *f, record_name record, const int32_t *prompt, size_t n) {
    dpi_error err;
    dpi_session_reset(f->session, 0);
    assert_ok(dpi_session_prefill(f->session, 0, prompt, n, NULL, &err), &err);
    kept_add(f->k, record, prompt, n, 0);
    dpi_session_reset(f->session, 0);
}

/* How many tokens are found of a prompt; nobody keeps it. */
static int32_t look(fixture *f, record_name record, const int32_t *prompt, size_t n) {
    int32_t n_held, seq = kept_find(f->k, record, prompt, n, &n_held);
    assert_true((seq >= N_SEQ) == (n_held > 0) && seq < N_SEQ + f->n_kept);
    if (seq >= 0) {
        assert_true(dpi_session_length(f->session, seq) >= n_held);
        kept_leave(f->k, seq);
    }
    return n_held;
}

static void finds_what_is_the_same(void **state) {
    (void)state;
    fixture f;
    int32_t other[N], n_held;
    const record_name a = {0, 7}, b = {1, 7};
    open_kept(&f, 8, 4);
    assert_int_equal(f.n_kept, 4);
    assert_int_equal(look(&f, a, tokens, N), 0);
    keep(&f, a, tokens, N);
    assert_int_equal(look(&f, a, tokens, N), N);
    assert_int_equal(look(&f, a, tokens, 20), 20);
    assert_int_equal(look(&f, b, tokens, N), 0); /* of another dataset */
    assert_int_equal(look(&f, (record_name){0, 8}, tokens, N), 0);
    assert_int_equal(kept_find(f.k, a, NULL, 0, &n_held), -1);
    memcpy(other, tokens, sizeof other);
    other[60]++; /* another question */
    assert_int_equal(look(&f, a, other, N), 60);
    keep(&f, a, other, N); /* what was there stays */
    assert_int_equal(look(&f, a, tokens, N), N);
    other[10]++; /* another form: now it is kept */
    keep(&f, a, other, N);
    assert_int_equal(look(&f, a, other, N), N);
    assert_int_equal(look(&f, a, tokens, N), 10);
    close_kept(&f);
}

/* A prompt that is read from stays, whatever happens; one that was not used for long makes room. */
static void has_a_bound(void **state) {
    (void)state;
    fixture f;
    int32_t n_held;
    open_kept(&f, 3, 100); /* one prompt of two blocks and one of one */
    assert_int_equal(f.n_kept, 3);
    keep(&f, (record_name){0, 0}, tokens, N);
    keep(&f, (record_name){0, 1}, tokens, 5);
    keep(&f, (record_name){0, 2}, tokens, 5); /* there is no room */
    assert_int_equal(look(&f, (record_name){0, 2}, tokens, N), 0);
    const int32_t seq = kept_find(f.k, (record_name){0, 1}, tokens, 5, &n_held);
    assert_int_equal(n_held, 5);
    for (int i = 0; i <= KEPT_ANSWERS; i++)
        kept_count_answer(f.k);
    keep(&f, (record_name){0, 2}, tokens, N); /* the first goes, the second is read from */
    assert_int_equal(look(&f, (record_name){0, 0}, tokens, N), 0);
    assert_int_equal(look(&f, (record_name){0, 1}, tokens, N), 5);
    assert_int_equal(look(&f, (record_name){0, 2}, tokens, N), N);
    kept_leave(f.k, seq);
    keep(&f, (record_name){0, 3}, tokens, N); /* more than there is room for */
    assert_int_equal(look(&f, (record_name){0, 3}, tokens, N), 0);
    close_kept(&f);
    open_kept(&f, 0, 100);
    assert_int_equal(f.n_kept, 0);
    keep(&f, (record_name){0, 0}, tokens, 5);
    assert_int_equal(look(&f, (record_name){0, 0}, tokens, 5), 0);
    close_kept(&f);
}

static int set_up(void **state) {
    dpi_error err;
    (void)state;
    for (int i = 0; i < N; i++)
        tokens[i] = 3 + i;
    return dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, &err) != DPI_STATUS_OK;
}

static int clean_up(void **state) {
    (void)state;
    dpi_model_close(model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_the_same),
        cmocka_unit_test(has_a_bound),
    };
    return cmocka_run_group_tests(tests, set_up, clean_up);
}
