/* test_journal.c - the files of a job: what is written comes back, and whatever else is found there
 * is refused by its name. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dpinfer/journal.h"
#include "dpinfer/memory.h"
#include "tests/pipeline/journal/wrap.h"
#include "tests/support/support.h"

enum { HEADER = 4096, RECORD = 32, GROWN = 65536 };

/* ---- A disk that fails ----------------------------------------------------------------------- */

static int32_t writes_left; /* -1: any number */
static size_t most_bytes;   /* of one write; 0: any number */
static int32_t failure;     /* errno of what fails */
static bool syncs_fail;

WRAP(ssize_t, pwrite, int fd, const void *data, size_t n, off_t at) {
    if (writes_left == 0) {
        errno = failure;
        return -1;
    }
    writes_left -= writes_left > 0;
    return __real_pwrite(fd, data, most_bytes && n > most_bytes ? most_bytes : n, at);
}

WRAP(int, fdatasync, int fd) {
    if (!syncs_fail)
        return __real_fdatasync(fd);
    errno = EIO;
    return -1;
}

/* ---- A job ----------------------------------------------------------------------------------- */

static char root[256], folder[300], tokens_path[320], job_path[320];

static void set_folder(const char *name) {
    snprintf(folder, sizeof folder, "%.255s/%s", root, name);
    snprintf(tokens_path, sizeof tokens_path, "%.299s/tokens", folder);
    snprintf(job_path, sizeof job_path, "%.299s/job.json", folder);
}

SETUP_EACH {
    make_dir(root, sizeof root);
    set_folder("job");
    writes_left = -1;
    most_bytes = 0;
    syncs_fail = false;
}

TEARDOWN_EACH { remove_dir(root); }

typedef enum mode { GO_ON, CREATE, READ_ONLY } mode;

static dpi_status open_every(mode m, int32_t every, dpi_journal **j) {
    dpi_journal_options o;
    dpi_journal_options_init(&o);
    o.create = m == CREATE, o.read_only = m == READ_ONLY, o.every = every;
    o.application = m == CREATE ? "{\"words\":[\"a\",\"b\"]}" : NULL;
    *j = NULL;
    return dpi_journal_open(folder, &o, j, ERR);
}

static dpi_status open_job(mode m, dpi_journal **j) { return open_every(m, 1, j); }

static dpi_journal *begin_job(int32_t every) {
    dpi_journal *j;
    assert_ok(open_every(CREATE, every, &j));
    assert_null(dpi_journal_facts(j));
    assert_ok(dpi_journal_begin(j, "{\"top_k\":50,\"tau\":1.1}", ERR));
    return j;
}

/* The i-th token, of the texts 2 and 5, one of each. */
static int32_t token_of(int32_t i) { return 1000 + 7 * i; }

static dpi_status put(dpi_journal *j, int32_t i, int32_t last) {
    int64_t sequence = 0;
    const dpi_status status =
        dpi_journal_put(j, i % 2 ? 5 : 2, i / 2, token_of(i), last, &sequence, ERR);
    assert_int_equal(sequence, status == DPI_STATUS_OK ? i + 1 : 0);
    return status;
}

static void put_tokens(dpi_journal *j, int32_t first, int32_t n) {
    for (int32_t i = first; i < first + n; i++)
        assert_ok(put(j, i, 0));
    assert_ok(dpi_journal_wait(j, 0, ERR));
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

/* The job goes on, with n tokens. */
static dpi_journal *go_on(int32_t n) {
    dpi_journal *j;
    assert_ok(open_job(GO_ON, &j));
    check_tokens(j, n);
    return j;
}

static void make_job(int32_t n) {
    dpi_journal *j = begin_job(1);
    put_tokens(j, 0, n);
    dpi_journal_close(j);
}

/* The same with other bytes in a file. */
static void assert_damaged(const char *path, const void *data, size_t n, dpi_status status,
                           const char *part) {
    dpi_journal *j;
    write_file(path, data, n);
    assert_status(open_job(GO_ON, &j), status, part);
}

/* A token that was there is zeros, as a power cut leaves a hole. */
static void clear_token(int32_t i) {
    size_t n;
    char *all = read_file(tokens_path, &n);
    memset(all + HEADER + i * RECORD, 0, RECORD);
    write_file(tokens_path, all, n);
    free(all);
}

/* ---- What is written comes back -------------------------------------------------------------- */

TEST(test_round_trip) {
    const uint8_t secret[] = {1, 2, 3, 0, 5};
    uint8_t key[DPI_JOURNAL_KEY_BYTES];
    void *kept;
    size_t n_kept;
    struct stat st;
    dpi_journal *j = begin_job(1);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    memcpy(key, dpi_journal_key(j), sizeof key);
    assert_ok(dpi_journal_kept(j, "batches", &kept, &n_kept, ERR));
    assert_null(kept);
    assert_ok(dpi_journal_keep(j, "batches", secret, sizeof secret, ERR));
    assert_error(dpi_journal_keep(j, "batches", secret, sizeof secret, ERR), STATE,
                 "is there already");
    assert_error(dpi_journal_keep(j, "../x", secret, 1, ERR), ARG, "letters");
    check_tokens(j, 0);
    for (int32_t n = 0; n < 3000; n += 250) { /* the file grows */
        put_tokens(j, n, 250);
        dpi_journal_close(j);
        j = go_on(n + 250);
    }
    assert_string_equal(dpi_journal_facts(j), "{\"top_k\":50,\"tau\":1.1000000000000001}");
    assert_string_equal(dpi_journal_application(j), "{\"words\":[\"a\",\"b\"]}");
    assert_memory_equal(key, dpi_journal_key(j), sizeof key);
    assert_ok(dpi_journal_kept(j, "batches", &kept, &n_kept, ERR));
    assert_int_equal(n_kept, sizeof secret);
    assert_memory_equal(kept, secret, sizeof secret);
    dpi_private_free(kept);
    dpi_journal_close(j);
    assert_ok(open_job(READ_ONLY, &j));
    check_tokens(j, 3000);
    assert_error(put(j, 3000, 0), STATE, "");
    dpi_journal_close(j);
}

TEST(test_order) {
    dpi_journal *j = begin_job(1);
    assert_error(dpi_journal_put(j, 0, 1, 5, 0, NULL, ERR), ARG,
                 "token 0 of text 0 comes next, found token 1");
    assert_ok(dpi_journal_put(j, 0, 0, 5, 0, NULL, ERR));
    assert_error(dpi_journal_put(j, 0, 0, 5, 0, NULL, ERR), ARG, "comes next");
    assert_error(dpi_journal_put(j, -1, 0, 5, 0, NULL, ERR), ARG, "range");
    assert_error(dpi_journal_begin(j, "{}", ERR), STATE, "has begun");
    dpi_journal_close(j);
}

/* The disk has tokens in groups of `every`, but the last one of a text at once. */
TEST(test_every) {
    dpi_journal *j = begin_job(4);
    for (int32_t i = 0; i < 3; i++)
        assert_ok(put(j, i, 0));
    assert_int_equal(dpi_journal_durable(j), 0);
    assert_ok(put(j, 3, 0));
    assert_ok(dpi_journal_wait(j, 4, ERR));
    assert_int_equal(dpi_journal_durable(j), 4);
    assert_ok(put(j, 4, 1));
    assert_ok(dpi_journal_wait(j, 5, ERR));
    dpi_journal_close(j);
}

/* ---- What is refused ------------------------------------------------------------------------- */

TEST(test_begun_and_not) {
    dpi_journal *j, *other;
    assert_error(open_job(GO_ON, &j), IO, "No such file");
    assert_ok(open_job(CREATE, &j));
    assert_error(open_job(CREATE, &other), IO, "another process");
    dpi_journal_close(j); /* nothing is left of what has not begun */
    assert_error(open_job(GO_ON, &j), IO, "No such file");
    mkdir(folder, 0700);
    assert_error(open_job(GO_ON, &j), STATE, "no job has begun");
    j = begin_job(1); /* such a folder serves too */
    assert_error(open_job(GO_ON, &other), IO, "another process");
    dpi_journal_close(j);
    assert_error(open_job(CREATE, &j), ARG, "a job has begun there");
}

/* Files of others are not written to. */
TEST(test_foreign) {
    dpi_journal *j;
    size_t n;
    mkdir(folder, 0700);
    write_file(tokens_path, "mine\n", 5);
    assert_error(open_job(CREATE, &j), ARG, "is there already");
    char *text = read_file(tokens_path, &n);
    assert_int_equal(n, 5);
    assert_memory_equal(text, "mine\n", 5);
    free(text);
    unlink(tokens_path);
    make_job(3);
    unlink(job_path); /* tokens that were shown, and nothing that says what they are */
    assert_error(open_job(CREATE, &j), ARG, "is there already");
}

/* Each bit of the header, of records and of the zeros behind them. */
TEST(test_bit_flips) {
    size_t n;
    make_job(4);
    uint8_t *all = (uint8_t *)read_file(tokens_path, &n);
    assert_int_equal(n, HEADER + GROWN);
    for (size_t bit = 0; bit < 8 * (HEADER + 6 * RECORD);
         bit += bit < 512 || bit > 8 * HEADER ? 1 : 97) {
        dpi_journal *j;
        all[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_file(tokens_path, all, n);
        const dpi_status status = open_job(GO_ON, &j);
        if (status != DPI_STATUS_FORMAT && status != DPI_STATUS_UNSUPPORTED)
            fail_msg("bit %zu: status %d", bit, (int)status);
        all[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    write_file(tokens_path, all, n);
    dpi_journal_close(go_on(4));
    free(all);
}

/* A file that has lost its end is refused wherever a record may be missing. */
TEST(test_cut) {
    size_t n;
    make_job(40);
    char *all = read_file(tokens_path, &n);
    const size_t used = HEADER + 40 * RECORD;
    for (size_t cut = 0; cut < used + RECORD; cut += cut < HEADER ? 512 : 1)
        assert_damaged(tokens_path, all, cut, DPI_STATUS_FORMAT, "");
    for (size_t cut = used + RECORD; cut < used + 4 * RECORD; cut++) {
        write_file(tokens_path, all, cut);
        dpi_journal *j = go_on(40);
        put_tokens(j, 40, 10); /* among zeros again */
        dpi_journal_close(j);
        dpi_journal_close(go_on(50));
    }
    free(all);
}

/* A hole among writes that the disk was not told to have: what is behind it was not shown, and
 * goes. The same hole where the disk had had everything is damage. */
TEST(test_hole) {
    dpi_journal *j = begin_job(100);
    size_t n;
    for (int32_t i = 0; i < 8; i++)
        assert_ok(put(j, i, 0));
    dpi_journal_close(j);
    clear_token(3);
    dpi_journal_close(go_on(3));
    char *all = read_file(tokens_path, &n);
    for (size_t i = HEADER + 3 * RECORD; i < n; i++)
        assert_int_equal(all[i], 0);
    free(all);
    j = go_on(3);
    put_tokens(j, 3, 5); /* and then two that the disk has before the next is written */
    for (int32_t i = 8; i < 10; i++) {
        assert_ok(put(j, i, 1));
        assert_ok(dpi_journal_wait(j, 0, ERR));
    }
    dpi_journal_close(j);
    clear_token(3);
    assert_error(open_job(GO_ON, &j), FORMAT, "is missing");
}

/* Changes the digit behind `key`. */
static void set_digit(char *job, const char *key, char digit) {
    char *at = strstr(job, key);
    assert_non_null(at);
    at[strlen(key)] = digit;
}

TEST(test_other_versions_and_jobs) {
    size_t n, n_job, n_other;
    make_job(4);
    char *tokens = read_file(tokens_path, &n), *text = read_file(job_path, &n_job);
    tokens[8] = 2;
    assert_damaged(tokens_path, tokens, n, DPI_STATUS_UNSUPPORTED, "version 2 of the format");
    tokens[8] = 1;
    set_digit(text, "\"version\": ", '9');
    assert_damaged(job_path, text, n_job, DPI_STATUS_UNSUPPORTED, "version 9 of the format");
    set_digit(text, "\"version\": ", '1');
    set_digit(text, "\"top_k\": ", '7');
    assert_damaged(job_path, text, n_job, DPI_STATUS_FORMAT, "its hash does not hold");
    assert_damaged(job_path, text, n_job / 2, DPI_STATUS_FORMAT, "damaged");
    set_digit(text, "\"top_k\": ", '5');
    write_file(job_path, text, n_job);
    set_folder("other");
    make_job(4);
    char *foreign = read_file(tokens_path, &n_other);
    set_folder("job");
    assert_damaged(tokens_path, foreign, n_other, DPI_STATUS_FORMAT, "that of another job");
    memcpy(foreign, tokens, HEADER); /* records alone */
    assert_damaged(tokens_path, foreign, n_other, DPI_STATUS_FORMAT, "a record has changed");
    write_file(tokens_path, tokens, n);
    dpi_journal_close(go_on(4));
    free(tokens);
    free(text);
    free(foreign);
}

/* ---- A disk that fails ----------------------------------------------------------------------- */

TEST(test_short_writes) {
    most_bytes = 5;
    make_job(2100); /* past the first growth */
    dpi_journal_close(go_on(2100));
}

/* Each write of a job fails once with a full disk, also in the middle of a record: the token is not
 * taken, and after a restart the job goes on from the one before. */
TEST(test_full_disk) {
    failure = ENOSPC;
    most_bytes = 20; /* two writes for a record */
    dpi_journal *j = begin_job(1);
    int32_t n = 0;
    for (int32_t at = 0; at < 6; at++) {
        dpi_status status;
        for (writes_left = at; (status = put(j, n, 0)) == DPI_STATUS_OK; n++) {
        }
        assert_error(status, IO, "No space left");
        writes_left = -1;
        assert_error(put(j, n, 0), IO, "No space left");
        dpi_journal_close(j);
        if (at % 2) { /* half a record is there, and could not be taken back: it is told */
            assert_error(open_job(GO_ON, &j), FORMAT, "a record has changed");
            clear_token(n);
        }
        j = go_on(n);
    }
    dpi_journal_close(j);
}

/* The disk does not have it: no token counts as on the disk from then on. */
TEST(test_sync_fails) {
    dpi_journal *j = begin_job(1);
    put_tokens(j, 0, 3);
    syncs_fail = true;
    assert_ok(put(j, 3, 0));
    assert_error(dpi_journal_wait(j, 0, ERR), IO, "Input/output error");
    syncs_fail = false;
    assert_error(dpi_journal_wait(j, 0, ERR), IO, "Input/output error");
    assert_int_equal(dpi_journal_durable(j), 3);
    assert_error(put(j, 4, 0), IO, "");
    dpi_journal_close(j);
}
