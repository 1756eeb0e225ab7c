/* test_journal_power.c - a power cut at each call of a job that changes the disk (power.h): what
 * was told is told again, and the texts are those of a release that was never stopped. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/pipeline/journal/job_support.h"
#include "tests/support/power.h"

/* ---- The layer: calls of the journal alone are routed here
 * ---------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one of its threads waits for the disk */

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
    pthread_mutex_unlock(&lock);
    errno = EIO;
    return -1;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t n_bytes, off_t offset) {
    bool last;
    pthread_mutex_lock(&lock);
    power_file *f = file_of(fd);
    const bool powered = power_call(&last);
    if (powered || last)
        power_write(f, (size_t)offset, data, n_bytes);
    if (!powered)
        return off();
    pthread_mutex_unlock(&lock);
    return __real_pwrite(fd, data, n_bytes, offset);
}

int __wrap_fdatasync(int fd) { return __wrap_fsync(fd); }

int __wrap_fsync(int fd) {
    struct stat st;
    pthread_mutex_lock(&lock);
    assert_int_equal(fstat(fd, &st), 0);
    if (!power_call(NULL))
        return off();
    if (S_ISDIR(st.st_mode))
        power_sync_names();
    else
        power_sync(file_of(fd));
    pthread_mutex_unlock(&lock);
    return 0;
}

int __wrap_ftruncate(int fd, off_t size) {
    pthread_mutex_lock(&lock);
    power_file *f = file_of(fd);
    if (!power_call(NULL))
        return off();
    power_write(f, (size_t)size, NULL, 0);
    pthread_mutex_unlock(&lock);
    return __real_ftruncate(fd, size);
}

int __wrap_unlinkat(int folder, const char *name, int flags) {
    char parent[PATH_MAX], path[2 * PATH_MAX];
    pthread_mutex_lock(&lock);
    path_of(folder, parent);
    snprintf(path, sizeof path, "%s/%s", parent, name);
    power_file *f = power_find(path);
    if (!power_call(NULL))
        return off();
    power_name(f, false);
    pthread_mutex_unlock(&lock);
    return __real_unlinkat(folder, name, flags);
}

int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to) {
    char folder[PATH_MAX], path[2 * PATH_MAX];
    pthread_mutex_lock(&lock);
    path_of(from_folder, folder);
    snprintf(path, sizeof path, "%s/%s", folder, from);
    power_file *f = power_find(path);
    snprintf(path, sizeof path, "%s/%s", folder, to);
    power_file *t = power_find(path);
    if (!power_call(NULL))
        return off();
    power_rename(f, t);
    pthread_mutex_unlock(&lock);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_once),
        cmocka_unit_test(test_cut_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
