/* test_ledger_processes.c - a ledger under kill -9, several processes, a full disk and another
 * user. In a child nothing of cmocka is called: its result is its exit code. */
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/support/power.h"

enum { AMOUNT = 1 << 20 };

SETUP_EACH {
    make_ledger(DPI_SCOPE_DATASET);
    close_ledger();
}

TEARDOWN_EACH { folder_remove(); }

static pid_t fork_child(void) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    return pid;
}

static int status_of(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int exit_code(pid_t pid) {
    const int status = status_of(pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* How many charges of AMOUNT there are, and that the sum is theirs. */
static int64_t count_charges(void) {
    int64_t n;
    reopen_ledger();
    const int64_t sum = sum_charges(&n);
    assert_int_equal(sum, n * AMOUNT);
    assert_int_equal(sum, info_of("letters").charged);
    close_ledger();
    return n;
}

/* ---- The last budget ------------------------------------------------------------------------- */

/* Waits for the gate to close, then takes more than half. */
static void race(double rho, int gate) {
    char byte;
    if (read(gate, &byte, 1) != 0)
        _exit(99);
    dpi_status status = open_ledger(path, OPEN, &the_ledger);
    if (status == DPI_STATUS_OK)
        status = reserve(rho);
    dpi_ledger_close(the_ledger);
    _exit((int)status);
}

TEST(test_race) {
    enum { N = 5 };
    for (int round = 0; round < 6; round++) {
        pid_t pids[N];
        int gate[2], n_won = 0;
        make_ledger(DPI_SCOPE_DATASET);
        const int64_t amount = info_of("letters").budget / 2 + 1 + round;
        close_ledger();
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < N; i++)
            if ((pids[i] = fork_child()) == 0) {
                close(gate[1]);
                race(rho_of(amount), gate[0]);
            }
        close(gate[0]);
        close(gate[1]); /* all at once */
        for (int i = 0; i < N; i++) {
            const int code = exit_code(pids[i]);
            assert_true(code == DPI_STATUS_OK || code == DPI_STATUS_BUDGET);
            n_won += code == DPI_STATUS_OK;
        }
        assert_int_equal(n_won, 1);
        reopen_ledger();
        assert_int_equal(info_of("letters").charged, amount);
    }
}

/* ---- kill -9 --------------------------------------------------------------------------------- */

/* Charges twice, and is killed at the call `at` that changes the disk. Each charge that has
 * returned OK is told by a byte, as a text that is released. */
static void charge_until_killed(int at, int out) {
    power_sqlite();
    power_kill_at(at);
    if (open_ledger(path, OPEN, &the_ledger) != DPI_STATUS_OK)
        _exit(99);
    for (int i = 0; i < 2; i++)
        if (reserve(rho_of(AMOUNT)) != DPI_STATUS_OK || write(out, "x", 1) != 1)
            _exit(98);
    _exit(0);
}

/* Between two such calls the files are what they are at the next one. */
TEST(test_kill) {
    int64_t n_before = 0;
    int at = 1;
    for (bool killed = true; killed; at++) {
        int told[2];
        char bytes[8];
        assert_int_equal(pipe(told), 0);
        const pid_t pid = fork_child();
        if (pid == 0)
            charge_until_killed(at, told[1]);
        close(told[1]);
        const int status = status_of(pid);
        killed = WIFSIGNALED(status);
        assert_true(killed || WEXITSTATUS(status) == 0);
        const ssize_t n_told = read(told[0], bytes, sizeof bytes);
        close(told[0]);
        assert_in_range(n_told, killed ? 0 : 2, 2);
        /* The charge that was under way is there or not; none that was told is missing. */
        const int64_t n = count_charges();
        assert_in_range(n, n_before + n_told, n_before + n_told + killed);
        n_before = n;
    }
    assert_true(at > 12); /* of each charge: its journal, writes, syncs, the end of the journal */
}

/* Writes pages of the file within a transaction, which go to the disk at once, and dies. */
static void die_in_transaction(void) {
    sqlite3 *db;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA cache_size = 1; BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        _exit(99);
    for (int i = 0; i < 500; i++)
        if (sqlite3_exec(db,
                         "INSERT INTO charge(dataset, amount, before, date, method, note, cost)"
                         " VALUES(1, 1, 0, '', '', '', '')",
                         NULL, NULL, NULL) != SQLITE_OK)
            _exit(98);
    kill(getpid(), SIGKILL);
    _exit(97);
}

/* A journal that must be undone before the first read: whoever only reads has to undo it, too. */
TEST(test_read_after_kill) {
    int64_t n;
    reopen_ledger();
    assert_ok(reserve(rho_of(AMOUNT)));
    close_ledger();
    const pid_t pid = fork_child();
    if (pid == 0)
        die_in_transaction();
    assert_true(WIFSIGNALED(status_of(pid)));
    assert_int_equal(access(path_in(folder, "year.ledger-journal"), F_OK), 0);
    assert_ok(open_ledger(path, READ_ONLY, &the_ledger));
    assert_int_equal(sum_charges(&n), AMOUNT);
    assert_int_equal(n, 1);
    assert_error(reserve(rho_of(AMOUNT)), IO, "read-only");
}

/* ---- A full disk ----------------------------------------------------------------------------- */

/* Files of this process may not grow beyond `most` bytes. Exit code: charges that returned OK. */
static void charge_below(rlim_t most) {
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    dpi_status status = DPI_STATUS_OK;
    int n_paid = 0;
    signal(SIGXFSZ, SIG_IGN);
    if (open_ledger(path, OPEN, &the_ledger) != DPI_STATUS_OK ||
        setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(99);
    while (n_paid < 90 && (status = reserve(rho_of(AMOUNT))) == DPI_STATUS_OK)
        n_paid++;
    dpi_ledger_close(the_ledger);
    _exit(n_paid < 90 && status != DPI_STATUS_IO ? 98 : n_paid);
}

TEST(test_full_disk) {
    static const rlim_t limits[] = {0, 100, 512, 4096, 5000, 8192, 16384, 24576, 32768, 65536};
    int n_charges = 0, n_refused = 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const pid_t pid = fork_child();
        if (pid == 0)
            charge_below(limits[i]);
        const int n_paid = exit_code(pid);
        assert_in_range(n_paid, 0, 90);
        n_charges += n_paid;
        n_refused += n_paid < 90;
        assert_int_equal(count_charges(), n_charges);
    }
    assert_true(n_refused >= 3);
    assert_true(n_charges >= 90);
}

/* ---- Another user ---------------------------------------------------------------------------- */

TEST(test_not_writable) {
    int told[2];
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(folder, 0755) | chmod(path, 0644), 0);
    assert_int_equal(pipe(told), 0);
    const pid_t pid = fork_child();
    if (pid == 0) {
        if (setresuid(65534, 65534, 65534) != 0 || access(path, R_OK) != 0)
            _exit(99);
        const dpi_status status = open_ledger(path, OPEN, &the_ledger);
        if (write(told[1], ERR, sizeof *ERR) != sizeof *ERR)
            _exit(98);
        _exit((int)status);
    }
    close(told[1]);
    const ssize_t n_read = read(told[0], ERR, sizeof *ERR);
    close(told[0]);
    const int code = exit_code(pid);
    if (code == 99) /* root that may not become another, or a folder of root's own */
        skip();
    assert_int_equal(n_read, sizeof *ERR);
    assert_error((dpi_status)code, IO, "read-only");
}
