/* test_journal.c - the files of a job: what is written comes back, and whatever else is found there
 * is refused by its name. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dpinfer/journal.h"
#include "dpinfer/memory.h"
#include "tests/support/support.h"

enum { HEADER = 4096, RECORD = 32, GROWN = 65536 };

/* ---- A disk that fails ----------------------------------------------------------------------- */

static int32_t writes_left = -1; /* -1: any number */
static size_t most_bytes;        /* of one write; 0: any number */
static int32_t failure;          /* errno of what fails */
static bool syncs_fail;

ssize_t __real_pwrite(int fd, const void *data, size_t n_bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t n_bytes, off_t offset);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pwrite(int fd, const void *data, size_t n_bytes, off_t offset) {
    if (writes_left == 0) {
        errno = failure;
        return -1;
    }
    writes_left -= writes_left > 0;
    return __real_pwrite(fd, data, most_bytes && n_bytes > most_bytes ? most_bytes : n_bytes,
                         offset);
}

int __wrap_fdatasync(int fd) {
    if (!syncs_fail)
        return __real_fdatasync(fd);
    errno = EIO;
    return -1;
}

/* ---- A job ----------------------------------------------------------------------------------- */

typedef struct bench {
    char root[256], folder[300], tokens[320], job[320];
} bench;

static int make_bench(void **state) {
    bench *b = calloc(1, sizeof *b);
    make_dir(b->root, sizeof b->root);
    snprintf(b->folder, sizeof b->folder, "%s/job", b->root);
    snprintf(b->tokens, sizeof b->tokens, "%s/tokens", b->folder);
    snprintf(b->job, sizeof b->job, "%s/job.json", b->folder);
    *state = b;
    writes_left = -1;
    most_bytes = 0;
    syncs_fail = false;
    return 0;
}

static int remove_bench(void **state) {
    bench *b = *state;
    remove_dir(b->root);
    free(b);
    return 0;
}

static dpi_status open_job(const bench *b, bool create, bool read_only, dpi_journal **j,
                           dpi_error *err) {
    dpi_journal_options o;
    dpi_journal_options_init(&o);
    o.create = create;
    o.read_only = read_only;
    o.application = create ? "{\"words\":[\"a\",\"b\"]}" : NULL;
    return dpi_journal_open(b->folder, &o, j, err);
}

static dpi_journal *reopen(const bench *b) {
    dpi_journal *j;
    dpi_error err;
    assert_ok(open_job(b, false, false, &j, &err), &err);
    return j;
}

static dpi_journal *begin_job(const bench *b) {
    dpi_journal *j;
    dpi_error err;
    assert_ok(open_job(b, true, false, &j, &err), &err);
    assert_null(dpi_journal_facts(j));
    assert_ok(dpi_journal_begin(j, "{\"top_k\":50,\"tau\":1.1}", &err), &err);
    return j;
}

/* n tokens, of texts 2 and 5, one of each. */
static int32_t token_of(int32_t i) { return 1000 + 7 * i; }

static void put_tokens(dpi_journal *j, int32_t first, int32_t n) {
    dpi_error err;
    for (int32_t i = first; i < first + n; i++) {
        int64_t sequence;
        assert_ok(dpi_journal_put(j, i % 2 ? 5 : 2, i / 2, token_of(i), 0, &sequence, &err), &err);
        assert_int_equal(sequence, i + 1);
    }
    assert_ok(dpi_journal_wait(j, 0, &err), &err);
    assert_int_equal(dpi_journal_durable(j), first + n);
}

static void check_tokens(const dpi_journal *j, int32_t n) {
    const int32_t *tokens;
    int32_t n_texts, n_tokens;
    int64_t n_all;
    dpi_journal_count(j, &n_texts, &n_all);
    assert_int_equal(n_all, n);
    assert_int_equal(n_texts, n > 1 ? 2 : n);
    for (int32_t text = 0; text < 8; text++) {
        dpi_journal_text(j, text, &tokens, &n_tokens);
        assert_int_equal(n_tokens, text == 2 ? (n + 1) / 2 : text == 5 ? n / 2 : 0);
        for (int32_t i = 0; i < n_tokens; i++)
            assert_int_equal(tokens[i], token_of(2 * i + (text == 5)));
    }
}

static void make_job(const bench *b, int32_t n) {
    dpi_journal *j = begin_job(b);
    put_tokens(j, 0, n);
    dpi_journal_close(j);
}

/* The job with other bytes in a file. */
static void assert_damaged(const bench *b, const char *path, const void *data, size_t n,
                           dpi_status status, const char *part) {
    dpi_journal *j = NULL;
    dpi_error err;
    write_file(path, data, n);
    assert_error(open_job(b, false, false, &j, &err), status, &err, part);
}

/* ---- What is written comes back -------------------------------------------------------------- */

static void test_round_trip(void **state) {
    const bench *b = *state;
    const uint8_t secret[] = {1, 2, 3, 0, 5};
    uint8_t key[DPI_JOURNAL_KEY_BYTES];
    void *kept;
    size_t n_kept;
    dpi_error err;
    struct stat st;
    dpi_journal *j = begin_job(b);
    assert_int_equal(stat(b->folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    memcpy(key, dpi_journal_key(j), sizeof key);
    assert_ok(dpi_journal_kept(j, "batches", &kept, &n_kept, &err), &err);
    assert_null(kept);
    assert_ok(dpi_journal_keep(j, "batches", secret, sizeof secret, &err), &err);
    assert_error(dpi_journal_keep(j, "batches", secret, sizeof secret, &err), DPI_STATUS_STATE,
                 &err, "is there already");
    assert_error(dpi_journal_keep(j, "../x", secret, 1, &err), DPI_STATUS_ARG, &err, "letters");
    for (int32_t n = 0; n < 3000; n += 250) { /* the file grows */
        check_tokens(j, n);
        put_tokens(j, n, 250);
        dpi_journal_close(j);
        j = reopen(b);
    }
    check_tokens(j, 3000);
    assert_string_equal(dpi_journal_facts(j), "{\"top_k\":50,\"tau\":1.1000000000000001}");
    assert_string_equal(dpi_journal_application(j), "{\"words\":[\"a\",\"b\"]}");
    assert_memory_equal(key, dpi_journal_key(j), sizeof key);
    assert_ok(dpi_journal_kept(j, "batches", &kept, &n_kept, &err), &err);
    assert_int_equal(n_kept, sizeof secret);
    assert_memory_equal(kept, secret, sizeof secret);
    dpi_private_free(kept);
    dpi_journal_close(j);
    assert_ok(open_job(b, false, true, &j, &err), &err);
    check_tokens(j, 3000);
    assert_error(dpi_journal_put(j, 2, 1500, 1, 0, NULL, &err), DPI_STATUS_STATE, &err, "");
    dpi_journal_close(j);
}

static void test_order(void **state) {
    dpi_error err;
    dpi_journal *j = begin_job(*state);
    assert_error(dpi_journal_put(j, 0, 1, 5, 0, NULL, &err), DPI_STATUS_ARG, &err,
                 "token 0 of text 0 comes next, found token 1");
    assert_ok(dpi_journal_put(j, 0, 0, 5, 0, NULL, &err), &err);
    assert_error(dpi_journal_put(j, 0, 0, 5, 0, NULL, &err), DPI_STATUS_ARG, &err, "comes next");
    assert_error(dpi_journal_put(j, -1, 0, 5, 0, NULL, &err), DPI_STATUS_ARG, &err, "range");
    assert_error(dpi_journal_begin(j, "{}", &err), DPI_STATUS_STATE, &err, "has begun");
    dpi_journal_close(j);
}

/* The disk has tokens in groups of `every`, but the last one of a text at once. */
static void test_every(void **state) {
    const bench *b = *state;
    dpi_journal_options o;
    dpi_journal *j;
    dpi_error err;
    dpi_journal_options_init(&o);
    o.create = 1;
    o.every = 4;
    assert_ok(dpi_journal_open(b->folder, &o, &j, &err), &err);
    assert_ok(dpi_journal_begin(j, "{}", &err), &err);
    for (int32_t i = 0; i < 3; i++)
        assert_ok(dpi_journal_put(j, 0, i, i, 0, NULL, &err), &err);
    assert_int_equal(dpi_journal_durable(j), 0);
    assert_ok(dpi_journal_put(j, 0, 3, 3, 0, NULL, &err), &err);
    assert_ok(dpi_journal_wait(j, 4, &err), &err);
    assert_int_equal(dpi_journal_durable(j), 4);
    assert_ok(dpi_journal_put(j, 0, 4, 4, 1, NULL, &err), &err);
    assert_ok(dpi_journal_wait(j, 5, &err), &err);
    dpi_journal_close(j);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void test_begun_and_not(void **state) {
    const bench *b = *state;
    dpi_journal *j = NULL, *other = NULL;
    dpi_error err;
    assert_error(open_job(b, false, false, &j, &err), DPI_STATUS_IO, &err, "No such file");
    assert_ok(open_job(b, true, false, &j, &err), &err);
    assert_error(open_job(b, true, false, &other, &err), DPI_STATUS_IO, &err, "another process");
    dpi_journal_close(j); /* nothing is left of what has not begun */
    assert_error(open_job(b, false, false, &j, &err), DPI_STATUS_IO, &err, "No such file");
    mkdir(b->folder, 0700);
    assert_error(open_job(b, false, false, &j, &err), DPI_STATUS_STATE, &err, "no job has begun");
    j = begin_job(b); /* such a folder serves too */
    assert_error(open_job(b, false, false, &other, &err), DPI_STATUS_IO, &err, "another process");
    dpi_journal_close(j);
    assert_error(open_job(b, true, false, &j, &err), DPI_STATUS_ARG, &err, "a job has begun there");
}

/* Files of others are not written to. */
static void test_foreign(void **state) {
    const bench *b = *state;
    dpi_journal *j = NULL;
    dpi_error err;
    size_t n;
    mkdir(b->folder, 0700);
    write_file(b->tokens, "mine\n", 5);
    assert_error(open_job(b, true, false, &j, &err), DPI_STATUS_ARG, &err, "is there already");
    char *text = read_file(b->tokens, &n);
    assert_int_equal(n, 5);
    assert_memory_equal(text, "mine\n", 5);
    free(text);
    unlink(b->tokens);
    make_job(b, 3);
    unlink(b->job); /* tokens that were shown, and nothing that says what they are */
    assert_error(open_job(b, true, false, &j, &err), DPI_STATUS_ARG, &err, "is there already");
}

/* Each bit of the header, of records and of the zeros behind them. */
static void test_bit_flips(void **state) {
    const bench *b = *state;
    size_t n;
    make_job(b, 4);
    uint8_t *all = (uint8_t *)read_file(b->tokens, &n);
    assert_int_equal(n, HEADER + GROWN);
    for (size_t bit = 0; bit < 8 * (HEADER + 6 * RECORD);
         bit += bit < 512 || bit > 8 * HEADER ? 1 : 97) {
        dpi_journal *j = NULL;
        dpi_error err;
        all[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_file(b->tokens, all, n);
        const dpi_status status = open_job(b, false, false, &j, &err);
        if (status != DPI_STATUS_FORMAT && status != DPI_STATUS_UNSUPPORTED)
            fail_msg("bit %zu: status %d", bit, (int)status);
        all[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    write_file(b->tokens, all, n);
    dpi_journal *j = reopen(b);
    check_tokens(j, 4);
    dpi_journal_close(j);
    free(all);
}

/* A file that has lost its end is refused wherever a record may be missing. */
static void test_cut(void **state) {
    const bench *b = *state;
    dpi_journal *j = NULL;
    dpi_error err;
    size_t n;
    make_job(b, 40);
    char *all = read_file(b->tokens, &n);
    const size_t used = HEADER + 40 * RECORD;
    for (size_t cut = 0; cut < used + RECORD; cut += cut < HEADER ? 512 : 1)
        assert_damaged(b, b->tokens, all, cut, DPI_STATUS_FORMAT, "");
    for (size_t cut = used + RECORD; cut < used + 4 * RECORD; cut++) {
        write_file(b->tokens, all, cut);
        assert_ok(open_job(b, false, false, &j, &err), &err);
        check_tokens(j, 40);
        put_tokens(j, 40, 10); /* among zeros again */
        dpi_journal_close(j);
        j = reopen(b);
        check_tokens(j, 50);
        dpi_journal_close(j);
    }
    free(all);
}

/* A hole, as a power cut leaves one among writes that the disk was not told to have: what is behind
 * it was not shown, and goes. The same hole where the disk had had everything is damage. */
static void test_hole(void **state) {
    const bench *b = *state;
    static const uint8_t zeros[RECORD];
    dpi_journal_options o;
    dpi_journal *j;
    dpi_error err;
    size_t n;
    dpi_journal_options_init(&o);
    o.create = 1;
    o.every = 100;
    assert_ok(dpi_journal_open(b->folder, &o, &j, &err), &err);
    assert_ok(dpi_journal_begin(j, "{}", &err), &err);
    for (int32_t i = 0; i < 8; i++)
        assert_ok(dpi_journal_put(j, i % 2 ? 5 : 2, i / 2, token_of(i), 0, NULL, &err), &err);
    dpi_journal_close(j);
    char *all = read_file(b->tokens, &n);
    memcpy(all + HEADER + 3 * RECORD, zeros, RECORD);
    write_file(b->tokens, all, n);
    j = reopen(b);
    check_tokens(j, 3);
    dpi_journal_close(j);
    free(all);
    all = read_file(b->tokens, &n);
    for (size_t i = HEADER + 3 * RECORD; i < n; i++)
        assert_int_equal(all[i], 0);
    free(all);
    j = reopen(b);
    put_tokens(j, 3, 5); /* and then two that the disk has before the next is written */
    for (int32_t i = 8; i < 10; i++) {
        assert_ok(dpi_journal_put(j, i % 2 ? 5 : 2, i / 2, token_of(i), 1, NULL, &err), &err);
        assert_ok(dpi_journal_wait(j, 0, &err), &err);
    }
    dpi_journal_close(j);
    all = read_file(b->tokens, &n);
    memcpy(all + HEADER + 3 * RECORD, zeros, RECORD);
    assert_damaged(b, b->tokens, all, n, DPI_STATUS_FORMAT, "is missing");
    free(all);
}

static void test_other_versions_and_jobs(void **state) {
    const bench *b = *state;
    bench other = *b;
    dpi_journal *j = NULL;
    dpi_error err;
    size_t n, n_job;
    make_job(b, 4);
    char *tokens = read_file(b->tokens, &n), *job = read_file(b->job, &n_job);
    tokens[8] = 2;
    assert_damaged(b, b->tokens, tokens, n, DPI_STATUS_UNSUPPORTED, "version 2 of the format");
    tokens[8] = 1;
    char *at = strstr(job, "\"version\": 1");
    assert_non_null(at);
    at[11] = '9';
    assert_damaged(b, b->job, job, n_job, DPI_STATUS_UNSUPPORTED, "version 9 of the format");
    at[11] = '1';
    at = strstr(job, "\"top_k\": 50");
    assert_non_null(at);
    at[10] = '7';
    assert_damaged(b, b->job, job, n_job, DPI_STATUS_FORMAT, "its hash does not hold");
    assert_damaged(b, b->job, job, n_job / 2, DPI_STATUS_FORMAT, "damaged");
    at[10] = '0';
    write_file(b->job, job, n_job);
    snprintf(other.folder, sizeof other.folder, "%s/other", b->root);
    snprintf(other.tokens, sizeof other.tokens, "%s/tokens", other.folder);
    make_job(&other, 4);
    size_t n_other;
    char *foreign = read_file(other.tokens, &n_other);
    assert_damaged(b, b->tokens, foreign, n_other, DPI_STATUS_FORMAT, "that of another job");
    memcpy(foreign, tokens, HEADER); /* records alone */
    assert_damaged(b, b->tokens, foreign, n_other, DPI_STATUS_FORMAT, "a record has changed");
    write_file(b->tokens, tokens, n);
    assert_ok(open_job(b, false, false, &j, &err), &err);
    dpi_journal_close(j);
    free(tokens);
    free(job);
    free(foreign);
}

/* ---- A disk that fails ----------------------------------------------------------------------- */

static void test_short_writes(void **state) {
    const bench *b = *state;
    most_bytes = 5;
    make_job(b, 2100); /* past the first growth */
    dpi_journal *j = reopen(b);
    check_tokens(j, 2100);
    dpi_journal_close(j);
}

/* Each write of a job fails once with a full disk, also in the middle of a record: the token is not
 * taken, and after a restart the job goes on from the one before. */
static void test_full_disk(void **state) {
    const bench *b = *state;
    dpi_error err;
    failure = ENOSPC;
    most_bytes = 20; /* two writes for a record */
    dpi_journal *j = begin_job(b);
    int32_t n = 0;
    for (int32_t at = 0; at < 6; at++) {
        dpi_status status = DPI_STATUS_OK;
        writes_left = at;
        while (status == DPI_STATUS_OK) {
            status = dpi_journal_put(j, n % 2 ? 5 : 2, n / 2, token_of(n), 0, NULL, &err);
            n += status == DPI_STATUS_OK;
        }
        assert_error(status, DPI_STATUS_IO, &err, "No space left");
        writes_left = -1;
        assert_error(dpi_journal_put(j, n % 2 ? 5 : 2, n / 2, 1, 0, NULL, &err), DPI_STATUS_IO,
                     &err, "No space left");
        dpi_journal_close(j);
        if (at % 2) { /* half a record is there, and could not be taken back: it is told */
            dpi_journal *none = NULL;
            assert_error(open_job(b, false, false, &none, &err), DPI_STATUS_FORMAT, &err,
                         "a record has changed");
            size_t n_bytes;
            char *all = read_file(b->tokens, &n_bytes);
            memset(all + HEADER + (size_t)n * RECORD, 0, RECORD);
            write_file(b->tokens, all, n_bytes);
            free(all);
        }
        j = reopen(b);
        check_tokens(j, n);
    }
    dpi_journal_close(j);
}

/* The disk does not have it: no token counts as on the disk from then on. */
static void test_sync_fails(void **state) {
    dpi_error err;
    dpi_journal *j = begin_job(*state);
    put_tokens(j, 0, 3);
    syncs_fail = true;
    assert_ok(dpi_journal_put(j, 5, 1, token_of(3), 0, NULL, &err), &err);
    assert_error(dpi_journal_wait(j, 0, &err), DPI_STATUS_IO, &err, "Input/output error");
    syncs_fail = false;
    assert_error(dpi_journal_wait(j, 0, &err), DPI_STATUS_IO, &err, "Input/output error");
    assert_int_equal(dpi_journal_durable(j), 3);
    assert_error(dpi_journal_put(j, 2, 2, token_of(4), 0, NULL, &err), DPI_STATUS_IO, &err, "");
    dpi_journal_close(j);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bench, remove_bench)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),    TEST(test_order),     TEST(test_every),
        TEST(test_begun_and_not), TEST(test_foreign),   TEST(test_bit_flips),
        TEST(test_cut),           TEST(test_hole),      TEST(test_other_versions_and_jobs),
        TEST(test_short_writes),  TEST(test_full_disk), TEST(test_sync_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
