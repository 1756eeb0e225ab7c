/* test_ledger_processes.c - a ledger under kill -9, several processes, a full disk and another
 * user. DPI_LEDGER_KILLS: how many kills (default 12). */
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/pipeline/ledger/ledger_support.h"

/* In a child nothing of cmocka is called: its result is its exit code. */
static dpi_status reserve(const char *path, double rho, dpi_ledger **ledger) {
    dpi_charge_request r;
    dpi_cost cost;
    if (!*ledger && open_in_child(path, ledger) != DPI_STATUS_OK)
        return DPI_STATUS_IO;
    dpi_cost_init(&cost);
    if (dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho, 0, NULL) != DPI_STATUS_OK)
        return DPI_STATUS_ARG;
    dpi_charge_request_init(&r);
    r.cost = &cost;
    r.method = "test";
    return dpi_ledger_reserve(*ledger, "letters", &r, NULL, NULL);
}

/* ---- The last budget ------------------------------------------------------------------------- */

/* Waits for the gate to close, then takes all that is left. */
static void race(const char *path, double rho, int gate) {
    char byte;
    dpi_ledger *ledger = NULL;
    if (read(gate, &byte, 1) != 0)
        _exit(99);
    const dpi_status status = reserve(path, rho, &ledger);
    dpi_ledger_close(ledger);
    _exit((int)status);
}

static void test_race(void **state) {
    (void)state;
    enum { N = 5 };
    for (int round = 0; round < 6; round++) {
        bench b;
        bench_make(&b);
        dpi_ledger *ledger = open_ledger(b.path, 1);
        add_letters(ledger, DPI_SCOPE_DATASET);
        const int64_t budget = info_of(ledger, "letters").budget;
        dpi_ledger_close(ledger);
        int gate[2], n_won = 0;
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < N; i++) {
            const pid_t pid = fork();
            if (pid == 0) {
                close(gate[1]);
                race(b.path, rho_of(budget / 2 + 1 + round), gate[0]);
            }
            assert_true(pid > 0);
        }
        close(gate[0]);
        close(gate[1]); /* all at once */
        for (int i = 0; i < N; i++) {
            int code;
            assert_true(wait(&code) > 0);
            assert_true(WIFEXITED(code));
            n_won += WEXITSTATUS(code) == DPI_STATUS_OK;
            if (WEXITSTATUS(code) != DPI_STATUS_OK)
                assert_int_equal(WEXITSTATUS(code), DPI_STATUS_BUDGET);
        }
        assert_int_equal(n_won, 1);
        ledger = open_ledger(b.path, 0);
        assert_int_equal(info_of(ledger, "letters").charged, budget / 2 + 1 + round);
        dpi_ledger_close(ledger);
        bench_remove(&b);
    }
}

/* ---- kill -9 --------------------------------------------------------------------------------- */

/* Charges until it is killed; each charge that has returned OK is told by a byte, as a text that
 * is released. */
static void charge_on(const char *path, double rho, int out) {
    dpi_ledger *ledger = NULL;
    while (reserve(path, rho, &ledger) == DPI_STATUS_OK)
        if (write(out, "x", 1) != 1)
            _exit(1);
    _exit(0);
}

static int64_t count_told(int in) {
    char bytes[256];
    int64_t n_told = 0;
    ssize_t n;
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        n_told += n;
    return n_told;
}

static void test_kill(void **state) {
    (void)state;
    const char *wanted = getenv("DPI_LEDGER_KILLS");
    const int n_kills = wanted ? atoi(wanted) : 12;
    const int64_t amount = 1 << 20;
    bench b;
    uint64_t seed = (uint64_t)getpid();
    int64_t n_before = 0, n;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_ledger_close(ledger);
    for (int i = 0; i < n_kills; i++) {
        int told[2];
        assert_int_equal(pipe(told), 0);
        const pid_t pid = fork();
        if (pid == 0)
            charge_on(b.path, rho_of(amount), told[1]);
        assert_true(pid > 0);
        close(told[1]);
        /* Half of them die after their first charge, however slow the disk is; of the others some
         * die before it. */
        int64_t n_told = 0;
        if (i % 2 == 0) {
            char byte;
            assert_int_equal(read(told[0], &byte, 1), 1);
            n_told = 1;
        }
        const struct timespec moment = {.tv_nsec = random_below(&seed, 40000000)};
        nanosleep(&moment, NULL);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        n_told += count_told(told[0]);
        close(told[0]);
        ledger = open_ledger(b.path, 0);
        const int64_t charged = sum_charges(ledger, "letters", &n);
        /* The charge that was under way is there or not; none that was told is missing. */
        assert_in_range(n, n_before + n_told, n_before + n_told + 1);
        assert_int_equal(charged, n * amount);
        assert_int_equal(charged, info_of(ledger, "letters").charged);
        dpi_ledger_close(ledger);
        n_before = n;
    }
    assert_true(n_before >= n_kills / 2);
    bench_remove(&b);
}

/* Writes pages of the file within a transaction, which go to the disk at once, and dies. */
static void die_in_transaction(const char *path) {
    sqlite3 *db;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA cache_size = 1; BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        _exit(99);
    for (int i = 0; i < 500; i++)
        if (sqlite3_exec(db, "INSERT INTO charge(dataset, amount, before, date, method, note, cost)"
                             " VALUES(1, 1, 0, '', '', '', '')", NULL, NULL, NULL) != SQLITE_OK)
            _exit(98);
    kill(getpid(), SIGKILL);
    _exit(97);
}

/* A journal that must be undone before the first read: whoever only reads has to undo it, too. */
static void test_read_after_kill(void **state) {
    (void)state;
    bench b;
    char journal[320];
    int code;
    int64_t n;
    dpi_error err;
    const dpi_ledger_options options = {
        .struct_size = sizeof options, .read_only = 1, .busy_ms = 300000};
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    assert_ok(reserve_rho(ledger, "letters", rho_of(1 << 20), NULL, &err), &err);
    dpi_ledger_close(ledger);
    const pid_t pid = fork();
    if (pid == 0)
        die_in_transaction(b.path);
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_true(WIFSIGNALED(code));
    snprintf(journal, sizeof journal, "%s-journal", b.path);
    assert_int_equal(access(journal, F_OK), 0);
    assert_ok(dpi_ledger_open(b.path, &options, &ledger, &err), &err);
    assert_int_equal(sum_charges(ledger, "letters", &n), 1 << 20);
    assert_int_equal(n, 1);
    assert_error(reserve_rho(ledger, "letters", rho_of(1 << 20), NULL, &err), DPI_STATUS_IO, &err,
                 "read-only");
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* ---- A full disk ----------------------------------------------------------------------------- */

/* Files of this process may not grow beyond `most` bytes. Exit code: charges that returned OK. */
static void charge_below(const char *path, rlim_t most) {
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    dpi_ledger *ledger = NULL;
    int n_paid = 0;
    signal(SIGXFSZ, SIG_IGN);
    if (dpi_ledger_open(path, NULL, &ledger, NULL) != DPI_STATUS_OK ||
        setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(99);
    dpi_status status;
    while (n_paid < 90 && (status = reserve(path, rho_of(1 << 20), &ledger)) == DPI_STATUS_OK)
        n_paid++;
    dpi_ledger_close(ledger);
    _exit(n_paid < 90 && status != DPI_STATUS_IO ? 98 : n_paid);
}

static void test_full_disk(void **state) {
    (void)state;
    bench b;
    int64_t n_charges = 0, n;
    int n_refused = 0;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_ledger_close(ledger);
    static const rlim_t limits[] = {0, 100, 512, 4096, 5000, 8192, 16384, 24576, 32768, 65536};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        int code;
        const pid_t pid = fork();
        if (pid == 0)
            charge_below(b.path, limits[i]);
        assert_int_equal(waitpid(pid, &code, 0), pid);
        assert_true(WIFEXITED(code) && WEXITSTATUS(code) <= 90);
        n_charges += WEXITSTATUS(code);
        n_refused += WEXITSTATUS(code) < 90;
        ledger = open_ledger(b.path, 0);
        assert_true(sum_charges(ledger, "letters", &n) == n * (1 << 20));
        assert_int_equal(n, n_charges);
        dpi_ledger_close(ledger);
    }
    assert_true(n_refused >= 3);
    assert_true(n_charges >= 90);
    bench_remove(&b);
}

/* ---- Another user ---------------------------------------------------------------------------- */

static void test_not_writable(void **state) {
    (void)state;
    bench b;
    if (geteuid() != 0)
        skip();
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_ledger_close(ledger);
    assert_int_equal(chmod(b.folder, 0755) | chmod(b.path, 0644), 0);
    int told[2], code;
    dpi_error err = {0};
    assert_int_equal(pipe(told), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dpi_ledger *other = NULL;
        if (setresuid(65534, 65534, 65534) != 0 || access(b.path, R_OK) != 0)
            _exit(99);
        const dpi_status status = dpi_ledger_open(b.path, NULL, &other, &err);
        if (write(told[1], &err, sizeof err) != sizeof err)
            _exit(98);
        _exit((int)status);
    }
    close(told[1]);
    const ssize_t n_read = read(told[0], &err, sizeof err);
    close(told[0]);
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_true(WIFEXITED(code));
    if (WEXITSTATUS(code) == 99) { /* root that may not become another, or a folder of root's own */
        bench_remove(&b);
        skip();
    }
    assert_int_equal(n_read, sizeof err);
    assert_error((dpi_status)WEXITSTATUS(code), DPI_STATUS_IO, &err, "read-only");
    bench_remove(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_race),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_read_after_kill),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_not_writable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
