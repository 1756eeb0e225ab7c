/* test_journal_power.c - a power cut at each call of a job, and of its ledger, that changes the
 * disk (power.h): what was told is told again, the texts are those of a release that was never
 * stopped, and the ledger has its charge. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "tests/pipeline/journal/job_support.h"
#include "tests/pipeline/journal/wrap.h"
#include "tests/support/power.h"

/* ---- The layer: calls of the journal alone are routed here ----------------------------------- */

/* The journal has two threads. */
static const char *path_of(int fd) {
    static _Thread_local char at[PATH_MAX];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, at, sizeof at - 1);
    assert_true(n > 0);
    at[n] = '\0';
    return at;
}

static const char *path_at(int folder_fd, const char *name, char at[2 * PATH_MAX]) {
    snprintf(at, 2 * PATH_MAX, "%s/%s", path_of(folder_fd), name);
    return at;
}

static int off(void) {
    errno = EIO;
    return -1;
}

WRAP(ssize_t, pwrite, int fd, const void *data, size_t n, off_t at) {
    return power_write(path_of(fd), (size_t)at, data, n) ? __real_pwrite(fd, data, n, at) : off();
}

WRAP(int, fsync, int fd) { return power_sync(path_of(fd)) ? 0 : off(); }

WRAP(int, fdatasync, int fd) { return __wrap_fsync(fd); }

WRAP(int, ftruncate, int fd, off_t size) {
    return power_write(path_of(fd), (size_t)size, NULL, 0) ? __real_ftruncate(fd, size) : off();
}

WRAP(int, unlinkat, int folder_fd, const char *name, int flags) {
    char at[2 * PATH_MAX];
    return power_unlink(path_at(folder_fd, name, at)) ? __real_unlinkat(folder_fd, name, flags)
                                                      : off();
}

WRAP(int, renameat, int from_fd, const char *from, int to_fd, const char *to) {
    char at[2][2 * PATH_MAX];
    return power_rename(path_at(from_fd, from, at[0]), path_at(to_fd, to, at[1]))
               ? __real_renameat(from_fd, from, to_fd, to)
               : off();
}

SETUP { power_sqlite(); }
TEARDOWN_EACH { job_remove(); }

/* ---- A job and its ledger -------------------------------------------------------------------- */

enum { NO_LEDGER = -1 }; /* or a dpi_scope */
static int32_t scope;
static told seen; /* what was told of the job, at its longest; `all` if there is no ledger */
static told all;
static int64_t n_charges;

/* Another job, of nine tokens: what happens at one of them happens at all. */
static void make_case(int32_t scope_of_case, int32_t n_parallel) {
    scope = scope_of_case;
    job_make();
    job.o.n_texts = 3, job.o.n_tokens = 3, job.o.n_parallel = n_parallel;
    seen = (told){.n_all = 0};
    n_charges = 0;
    if (scope == NO_LEDGER)
        return;
    job_records(NULL, scope == DPI_SCOPE_UNIT ? "who" : NULL);
    job.o.method.rho = 1e-3, job.o.method.delta = 1e-5;
    job.o.seeded = 0; /* a ledger counts guarantees */
    job.o.dataset = "letters";
    make_ledger(scope);
    close_ledger();
    power_settle();
}

/* A charge is there or not: with the units that have paid, who are nine each time. */
static int64_t count_charges(void) {
    int64_t n;
    const int64_t n_payers = scope == DPI_SCOPE_UNIT ? 9 : 0;
    reopen_ledger();
    const int64_t sum = sum_charges(&n);
    close_ledger();
    power_restore();
    assert_int_equal(read_sql("SELECT COUNT(*) FROM payer"), n_payers * n);
    assert_int_equal(read_sql("SELECT IFNULL(SUM(spent), 0) FROM unit"), n_payers * sum);
    power_restore();
    return n;
}

/* What is told now and what was told before are one text, and all of it is told at the end. */
static void check_told(const told *now, bool over) {
    if (now->n_all >= seen.n_all) {
        assert_begins(&seen, now);
        seen = *now;
    } else {
        assert_begins(now, &seen);
        if (over)
            fail_msg("a token that was told is lost");
    }
    if (scope == NO_LEDGER)
        assert_begins(&seen, &all);
}

/* Runs the job with the power cut at the call `at`. False: it came to its end before. */
static bool run_once(int32_t at) {
    told now = {.n_all = 0};
    dpi_status status = DPI_STATUS_OK;
    const bool goes_on = access(path_in(job.folder, "job.json"), F_OK) == 0;
    power_cut_at(at);
    if (scope != NO_LEDGER)
        status = open_ledger(path, OPEN, &the_ledger);
    job.o.ledger = the_ledger;
    if (status == DPI_STATUS_OK)
        status = job_run(-1, &now);
    const bool was_cut = power_cut();
    close_ledger();
    power_restore();
    if (status != DPI_STATUS_OK && !was_cut)
        fail_msg("cut at %d: %s", at, ERR->message);
    check_told(&now, status == DPI_STATUS_OK);
    if (scope != NO_LEDGER) {
        const int64_t n = count_charges();
        assert_in_range(n, n_charges, n_charges + !goes_on);
        assert_true(n > 0 || seen.n_all == 0);
        n_charges = n;
    }
    return was_cut;
}

/* ---- Cuts ------------------------------------------------------------------------------------ */

/* At each call once, and then the job comes to its end. */
static void cut_once(int32_t of, int32_t n_parallel, int32_t least) {
    int32_t at = 1;
    for (bool was_cut = true; was_cut; at++) {
        make_case(of, n_parallel);
        if (of == NO_LEDGER && at == 1)
            job_unbroken(&all);
        was_cut = run_once(at);
        assert_false(run_once(0));
        if (of == NO_LEDGER)
            assert_int_equal(seen.n_all, all.n_all);
        else
            assert_in_range(n_charges, 1, was_cut ? 2 : 1);
    }
    assert_true(at > least);
}

/* Again and again, each time some calls after the start, which are below n. */
static void cut_often(int32_t n) {
    static uint64_t chance = 5;
    while (run_once(1 + random_below(&chance, n))) {
    }
    assert_true(seen.n_all > 0);
}

TEST(test_cut_once) { /* a write for each token, and syncs */
    cut_once(NO_LEDGER, 1, 9);
    cut_once(NO_LEDGER, 3, 9);
}

TEST(test_cut_with_ledger) { /* the charge, the files, three tokens and more */
    cut_once(DPI_SCOPE_DATASET, 1, 32);
    cut_once(DPI_SCOPE_UNIT, 1, 32);
}

TEST(test_cut_often) {
    for (int round = 0; round < 40; round++) {
        make_case(NO_LEDGER, 1 + round % 3);
        if (round % 4 == 3)
            job.o.method.subsample = .5, job.o.method.rho = 0, job.o.method.epsilon = 5;
        job_unbroken(&all);
        cut_often(15);
        assert_int_equal(seen.n_all, all.n_all);
    }
}

TEST(test_cut_often_with_ledger) {
    for (int round = 0; round < 20; round++) {
        make_case(round % 2 ? DPI_SCOPE_UNIT : DPI_SCOPE_DATASET, 1 + round % 3);
        cut_often(60);
    }
}
