/* test_journal_power.c - a power cut at each call of a job, and of its ledger, that changes the
 * disk (power.h): what was told is told again, the texts are those of a release that was never
 * stopped, and the ledger has its charge. */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/pipeline/journal/job_support.h"
#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/support/power.h"
#include "tests/support/power_sqlite.h"

/* ---- The layer: calls of the journal alone are routed here
 * ---------------------------------------- */

ssize_t __real_pwrite(int fd, const void *data, size_t n_bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t n_bytes, off_t offset);
int __wrap_fdatasync(int fd);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __real_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);
int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to);

static void path_of(int fd, char path[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, PATH_MAX - 1);
    assert_true(n > 0);
    path[n] = '\0';
}

static power_file *file_of(int fd) {
    char path[PATH_MAX];
    path_of(fd, path);
    power_file *f = power_find(path);
    power_name(f, true);
    return f;
}

static int off(void) {
    power_unlock();
    errno = EIO;
    return -1;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t n_bytes, off_t offset) {
    bool last;
    power_lock();
    power_file *f = file_of(fd);
    const bool powered = power_call(&last);
    if (powered || last)
        power_write(f, (size_t)offset, data, n_bytes);
    if (!powered)
        return off();
    power_unlock();
    return __real_pwrite(fd, data, n_bytes, offset);
}

int __wrap_fdatasync(int fd) { return __wrap_fsync(fd); }

int __wrap_fsync(int fd) {
    struct stat st;
    char path[PATH_MAX];
    power_lock();
    assert_int_equal(fstat(fd, &st), 0);
    path_of(fd, path);
    if (!power_call(NULL))
        return off();
    if (S_ISDIR(st.st_mode))
        power_sync_names(path);
    else
        power_sync(file_of(fd));
    power_unlock();
    return 0;
}

int __wrap_ftruncate(int fd, off_t size) {
    power_lock();
    power_file *f = file_of(fd);
    if (!power_call(NULL))
        return off();
    power_write(f, (size_t)size, NULL, 0);
    power_unlock();
    return __real_ftruncate(fd, size);
}

int __wrap_unlinkat(int folder, const char *name, int flags) {
    char parent[PATH_MAX], path[2 * PATH_MAX];
    power_lock();
    path_of(folder, parent);
    snprintf(path, sizeof path, "%s/%s", parent, name);
    power_file *f = power_find(path);
    if (!power_call(NULL))
        return off();
    power_name(f, false);
    power_unlock();
    return __real_unlinkat(folder, name, flags);
}

int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to) {
    char folder[PATH_MAX], path[2 * PATH_MAX];
    power_lock();
    path_of(from_folder, folder);
    snprintf(path, sizeof path, "%s/%s", folder, from);
    power_file *f = power_find(path);
    snprintf(path, sizeof path, "%s/%s", folder, to);
    power_file *t = power_find(path);
    if (!power_call(NULL))
        return off();
    power_rename(f, t);
    power_unlock();
    return __real_renameat(from_folder, from, to_folder, to);
}

/* ---- The test -------------------------------------------------------------------------------- */

/* Runs the job with the power cut at the call `at`, and what was told in *seen, which never gets
 * shorter. False: it came to its end before. */
static bool run_once(const job_bench *b, int32_t at, told *seen, const told *all) {
    told now;
    dpi_error err;
    power_cut_at(at);
    const dpi_status status = job_run(b, -1, &now, &err);
    const bool was_cut = power_cut();
    power_restore();
    power_cut_at(0);
    if (status != DPI_STATUS_OK && !was_cut)
        fail_msg("cut at %d: %s", at, err.message);
    assert_begins(&now, all);
    if (now.n_all >= seen->n_all)
        *seen = now;
    else if (status == DPI_STATUS_OK)
        fail_msg("a token that was told is lost");
    return was_cut;
}

static void test_cut_once(void **state) {
    (void)state;
    for (int32_t n_parallel = 1; n_parallel <= 3; n_parallel += 2) {
        job_bench b;
        told all, seen;
        job_bench_make(&b);
        b.o.n_parallel = n_parallel;
        job_unbroken(&b, &all);
        bool was_cut = true;
        int32_t at = 1;
        for (; was_cut; at++) {
            seen = (told){.n_all = 0};
            was_cut = run_once(&b, at, &seen, &all);
            assert_false(run_once(&b, 0, &seen, &all));
            assert_int_equal(seen.n_all, all.n_all);
            remove_dir(b.folder);
        }
        assert_true(at > all.n_all / n_parallel); /* a write for each token, and syncs */
        job_bench_remove(&b);
    }
}

/* Again and again, each time some calls after the start. */
static void test_cut_often(void **state) {
    (void)state;
    uint64_t chance = 5;
    for (int round = 0; round < 40; round++) {
        job_bench b;
        told all, seen = {.n_all = 0};
        job_bench_make(&b);
        b.o.n_parallel = 1 + round % 3;
        if (round % 4 == 3) {
            b.o.method.subsample = .5;
            b.o.method.rho = 0;
            b.o.method.epsilon = 5;
        }
        job_unbroken(&b, &all);
        while (run_once(&b, 1 + random_below(&chance, 25), &seen, &all)) {
        }
        assert_int_equal(seen.n_all, all.n_all);
        job_bench_remove(&b);
    }
}

/* ---- The ledger as well ------------------------------------------------------------------------
 */

/* A job that is charged to a ledger; what was told of it, and what the ledger has. */
typedef struct charged_job {
    job_bench b;
    char ledger[320];
    int32_t scope;
    told seen;
    int64_t n_charges;
} charged_job;

static void charged_job_make(charged_job *j, int32_t scope) {
    *j = (charged_job){.scope = scope};
    job_bench_make(&j->b);
    job_records_open(&j->b, scope == DPI_SCOPE_UNIT);
    j->b.o.n_texts = 3; /* of 10 units or more */
    j->b.o.method.rho = 1e-3;
    j->b.o.method.delta = 1e-5;
    j->b.o.seeded = 0; /* a ledger counts guarantees */
    j->b.o.dataset = "letters";
    snprintf(j->ledger, sizeof j->ledger, "%s/year", j->b.root);
    dpi_ledger *ledger = open_ledger(j->ledger, 1);
    add_letters(ledger, scope);
    dpi_ledger_close(ledger);
    power_sync_names(NULL);
    power_restore();
}

/* A charge is there or not: with the units that have paid, who are nine each time. */
static int64_t count_charges(const charged_job *j) {
    char sql[400];
    int64_t n, sum;
    dpi_ledger *ledger = open_ledger(j->ledger, 0);
    sum = sum_charges(ledger, "letters", &n);
    dpi_ledger_close(ledger);
    power_restore();
    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE t(right INTEGER CHECK(right = 1));"
             "INSERT INTO t SELECT COUNT(*) = %lld FROM payer;"
             "INSERT INTO t SELECT TOTAL(spent) = %lld FROM unit",
             (long long)(j->scope == DPI_SCOPE_UNIT ? 9 * n : 0),
             (long long)(j->scope == DPI_SCOPE_UNIT ? 9 * sum : 0));
    exec_sql(j->ledger, sql);
    power_restore();
    return n;
}

/* Runs the job with the power cut at the call `at`. False: it came to its end before. */
static bool run_charged(charged_job *j, int32_t at) {
    char path[320];
    struct stat st;
    told now = {.n_all = 0};
    dpi_error err;
    snprintf(path, sizeof path, "%s/job.json", j->b.folder);
    const bool goes_on = stat(path, &st) == 0;
    j->b.o.ledger = NULL;
    power_cut_at(at);
    dpi_status status = dpi_ledger_open(j->ledger, NULL, &j->b.o.ledger, &err);
    if (status == DPI_STATUS_OK)
        status = job_run(&j->b, -1, &now, &err);
    const bool was_cut = power_cut();
    dpi_ledger_close(j->b.o.ledger);
    power_restore();
    power_cut_at(0);
    if (status != DPI_STATUS_OK && !was_cut)
        fail_msg("cut at %d: %s", at, err.message);
    if (now.n_all >= j->seen.n_all) {
        assert_begins(&j->seen, &now);
        j->seen = now;
    } else {
        assert_begins(&now, &j->seen);
        assert_true(was_cut);
    }
    const int64_t n = count_charges(j);
    assert_in_range(n, j->n_charges, j->n_charges + !goes_on);
    assert_true(n > 0 || j->seen.n_all == 0);
    j->n_charges = n;
    return was_cut;
}

static void test_cut_with_ledger(void **state) {
    (void)state;
    for (int32_t scope = DPI_SCOPE_DATASET; scope <= DPI_SCOPE_UNIT; scope++) {
        int32_t at = 1, n_cuts = 0;
        for (bool was_cut = true; was_cut; at++) {
            charged_job j;
            charged_job_make(&j, scope);
            was_cut = run_charged(&j, at);
            n_cuts += was_cut;
            assert_false(run_charged(&j, 0));
            assert_int_equal(j.n_charges, was_cut && j.n_charges > 1 ? 2 : 1);
            job_bench_remove(&j.b);
        }
        assert_true(n_cuts > 30); /* the charge, the files of the job, and its tokens */
    }
}

static void test_cut_often_with_ledger(void **state) {
    (void)state;
    uint64_t chance = 9;
    for (int round = 0; round < 20; round++) {
        charged_job j;
        charged_job_make(&j, round % 2 ? DPI_SCOPE_UNIT : DPI_SCOPE_DATASET);
        j.b.o.n_parallel = 1 + round % 3;
        while (run_charged(&j, 1 + random_below(&chance, 60))) {
        }
        assert_true(j.seen.n_all > 0);
        job_bench_remove(&j.b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_once),
        cmocka_unit_test(test_cut_often),
        cmocka_unit_test(test_cut_with_ledger),
        cmocka_unit_test(test_cut_often_with_ledger),
    };
    power_sqlite();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
