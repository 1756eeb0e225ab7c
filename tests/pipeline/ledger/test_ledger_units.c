/* test_ledger_units.c - a ledger with a sum for each unit. */
#include <sqlite3.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/pipeline/ledger/form_1.h"
#include "tests/pipeline/ledger/ledger_support.h"

static dpi_status reserve_units(dpi_ledger *ledger, const char *const *ids, size_t n,
                                int64_t amount, uint8_t *pays, dpi_error *err) {
    dpi_charge_request r;
    dpi_cost cost;
    size_t n_bytes[8];
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho_of(amount), 0, err), err);
    for (size_t i = 0; i < n; i++)
        n_bytes[i] = strlen(ids[i]);
    const dpi_ledger_units units = {
        .n = n, .ids = (const void *const *)ids, .n_bytes = n_bytes, .pays = pays};
    dpi_charge_request_init(&r);
    r.cost = &cost;
    r.method = "test";
    r.units = &units;
    return dpi_ledger_reserve(ledger, "letters", &r, NULL, err);
}

static void test_units(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_UNIT);
    dpi_error err;
    uint8_t pays[8];
    const int64_t budget = info_of(ledger, "letters").budget, third = budget / 3;
    static const char *const abc[] = {"ann", "ben", "cid"}, *const ab[] = {"ann", "ben"};
    static const char *const all[] = {"dan", "ann", "cid", "dan", "ben"};
    assert_ok(reserve_units(ledger, abc, 3, third, pays, &err), &err);
    assert_memory_equal(pays, "\1\1\1", 3);
    assert_ok(reserve_units(ledger, ab, 2, third, pays, &err), &err);
    assert_memory_equal(pays, "\1\1", 2);
    assert_ok(reserve_units(ledger, ab, 1, third, pays, &err), &err);
    assert_memory_equal(pays, "\1", 1);
    /* ann has spent three thirds, ben two, cid one, dan nothing; dan stands there twice */
    assert_ok(reserve_units(ledger, all, 5, 2 * third, pays, &err), &err);
    assert_memory_equal(pays, "\1\0\1\1\0", 5);
    assert_ok(reserve_units(ledger, all, 5, third, pays, &err), &err);
    assert_memory_equal(pays, "\1\0\0\1\1", 5);
    assert_ok(reserve_units(ledger, all, 5, 3 * third, pays, &err), &err);
    assert_memory_equal(pays, "\0\0\0\0\0", 5);
    /* What is told follows from the charges, which are public. */
    const dpi_dataset_info info = info_of(ledger, "letters");
    assert_int_equal(info.charged, 9 * third);
    assert_int_equal(info.left, budget);
    assert_true(info.epsilon_charged == 5);
    /* More than a new unit has is refused for all. */
    assert_error(reserve_units(ledger, abc, 3, budget + 1, pays, &err), DPI_STATUS_BUDGET, &err,
                 "a new unit has");
    assert_error(reserve_rho(ledger, "letters", .01, NULL, &err), DPI_STATUS_ARG, &err,
                 "needs the IDs");
    assert_int_equal(dpi_ledger_give_back(ledger, 1, &err), DPI_STATUS_STATE);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* Neither an ID nor a hash without a key is in the file. */
static void test_units_are_hashed(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_UNIT);
    dpi_error err;
    uint8_t pays[2];
    static const char *const ids[] = {"patient-4711-with-a-long-name", "ben"};
    assert_ok(reserve_units(ledger, ids, 2, 1000, pays, &err), &err);
    dpi_ledger_close(ledger);
    char content[1 << 16];
    FILE *f = fopen(b.path, "rb");
    assert_non_null(f);
    const size_t n = fread(content, 1, sizeof content, f);
    fclose(f);
    assert_true(n > 4096);
    assert_null(memmem(content, n, "patient-4711", 12));
    /* SHA-256 of "ben", by sha256sum */
    assert_null(memmem(content, n, "\x67\x00\x86\x9c\x8f\xf7\x48\x0e", 8));
    bench_remove(&b);
}

/* Which units have paid for a charge is known later, too. */
static void test_paid_later(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_UNIT);
    dpi_error err;
    uint8_t pays[8];
    const int64_t most = info_of(ledger, "letters").budget;
    static const char *const ab[] = {"ann", "ben"}, *const asked[] = {"cid", "ben", "ann", "ben"};
    static const size_t n_bytes[] = {3, 3, 3, 3};
    const dpi_ledger_units units = {
        .n = 4, .ids = (const void *const *)asked, .n_bytes = n_bytes, .pays = pays};
    assert_ok(reserve_units(ledger, ab, 1, most - 1, pays, &err), &err);
    assert_ok(reserve_units(ledger, ab, 2, 2, pays, &err), &err);
    assert_memory_equal(pays, "\0\1", 2);
    assert_ok(reserve_units(ledger, ab, 2, 1, pays, &err), &err);
    static const char *const wanted[] = {"\0\0\1\0", "\0\1\0\1", "\0\1\1\1"};
    for (int64_t id = 1; id <= 3; id++) {
        assert_ok(dpi_ledger_paid(ledger, "letters", id, &units, &err), &err);
        assert_memory_equal(pays, wanted[id - 1], 4);
    }
    for (int64_t id = -1; id <= 4; id += id == 0 ? 4 : 1)
        assert_error(dpi_ledger_paid(ledger, "letters", id, &units, &err), DPI_STATUS_ARG, &err,
                     id < 1 ? "id" : "no charge 4");
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* ---- Files of an earlier program ------------------------------------------------------------- */

static const char *const old_ids[] = {"ann", "ben", "cid", "dan"};
static const int64_t old_sums[] = {3221225472, 1073741824, 2147483648, 0};

static int64_t form_of(const char *path) {
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const int64_t form = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return form;
}

/* Each unit pays to the last amount that it has left, and not one more. */
static void assert_old_sums(dpi_ledger *ledger) {
    dpi_error err;
    uint8_t pays;
    for (size_t i = 0; i < 4; i++) {
        const int64_t left = FORM_1_BUDGET - old_sums[i];
        if (old_sums[i] > 0)
            assert_ok(reserve_units(ledger, &old_ids[i], 1, left + 1, &pays, &err), &err);
        assert_true(old_sums[i] == 0 || pays == 0);
        assert_ok(reserve_units(ledger, &old_ids[i], 1, left, &pays, &err), &err);
        assert_int_equal(pays, 1);
        assert_ok(reserve_units(ledger, &old_ids[i], 1, 1, &pays, &err), &err);
        assert_int_equal(pays, 0);
    }
}

static void assert_paid(dpi_ledger *ledger, int64_t id, const char *wanted) {
    uint8_t pays[4];
    static const size_t n_bytes[] = {3, 3, 3, 3};
    dpi_error err;
    const dpi_ledger_units units = {
        .n = 4, .ids = (const void *const *)old_ids, .n_bytes = n_bytes, .pays = pays};
    assert_ok(dpi_ledger_paid(ledger, "letters", id, &units, &err), &err);
    assert_memory_equal(pays, wanted, 4);
}

static void test_form_1(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    make_ledger_of_form_1(b.path);
    dpi_ledger *ledger = open_ledger(b.path, 0);
    assert_int_equal(form_of(b.path), 2);
    const dpi_dataset_info info = info_of(ledger, "letters");
    assert_int_equal(info.n_charges, 2);
    assert_int_equal(info.charged, 3221225472);
    assert_int_equal(info.last, 2147483648);
    assert_paid(ledger, 2, "\1\0\1\0");
    assert_paid(ledger, 1, "\0\1\0\0"); /* that ann paid it was not kept */
    dpi_ledger_close(ledger);
    ledger = open_ledger(b.path, 0);
    assert_old_sums(ledger);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* Programs that had the table of who paid, before it had a form of its own. */
static void test_form_1_with_payers(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    make_ledger_of_form_1(b.path);
    dpi_ledger_close(open_ledger(b.path, 0));
    exec_sql(b.path, "PRAGMA user_version = 1");
    dpi_ledger *ledger = open_ledger(b.path, 0);
    assert_int_equal(form_of(b.path), 2);
    assert_paid(ledger, 2, "\1\0\1\0");
    assert_old_sums(ledger);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* A file that is only read stays as it is, and tells what it can. */
static void test_form_1_read(void **state) {
    (void)state;
    bench b;
    dpi_ledger_options o;
    dpi_ledger *ledger;
    dpi_error err;
    const dpi_ledger_units none = {0};
    bench_make(&b);
    make_ledger_of_form_1(b.path);
    dpi_ledger_options_init(&o);
    o.read_only = 1;
    assert_ok(dpi_ledger_open(b.path, &o, &ledger, &err), &err);
    assert_int_equal(info_of(ledger, "letters").n_charges, 2);
    assert_error(dpi_ledger_paid(ledger, "letters", 1, &none, &err), DPI_STATUS_UNSUPPORTED, &err,
                 "open it once for writing");
    dpi_ledger_close(ledger);
    assert_int_equal(form_of(b.path), 1);
    bench_remove(&b);
}

/* What does not fit is refused, and nothing of it is changed. */
static void test_form_1_damaged(void **state) {
    (void)state;
    bench b;
    dpi_ledger *ledger;
    dpi_error err;
    bench_make(&b);
    make_ledger_of_form_1(b.path);
    exec_sql(b.path, "UPDATE unit SET charge = 7 WHERE spent = 1073741824");
    for (int i = 0; i < 2; i++)
        assert_error(dpi_ledger_open(b.path, NULL, &ledger, &err), DPI_STATUS_FORMAT, &err,
                     "damaged");
    assert_int_equal(form_of(b.path), 1);
    exec_sql(b.path, "UPDATE unit SET charge = 1 WHERE spent = 1073741824");
    ledger = open_ledger(b.path, 0);
    assert_old_sums(ledger);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* Whoever comes second finds the form of the first. */
static void test_form_1_processes(void **state) {
    (void)state;
    bench b;
    enum { N = 4 };
    pid_t processes[N];
    bench_make(&b);
    make_ledger_of_form_1(b.path);
    for (int i = 0; i < N; i++) {
        processes[i] = fork();
        assert_true(processes[i] >= 0);
        if (processes[i] == 0) {
            dpi_ledger *ledger;
            uint8_t pays[2] = {0};
            bool ok = open_in_child(b.path, &ledger) == DPI_STATUS_OK;
            ok = ok && reserve_units(ledger, old_ids, 2, 1000, pays, NULL) == DPI_STATUS_OK;
            _exit(ok && pays[0] && pays[1] ? 0 : 1);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        assert_int_equal(status, 0);
    }
    dpi_ledger *ledger = open_ledger(b.path, 0);
    assert_int_equal(info_of(ledger, "letters").n_charges, 2 + N);
    assert_paid(ledger, 2 + N, "\1\1\0\0");
    uint8_t pays;
    dpi_error err;
    const int64_t left = FORM_1_BUDGET - old_sums[1] - 1000 * N;
    assert_ok(reserve_units(ledger, &old_ids[1], 1, left + 1, &pays, &err), &err);
    assert_int_equal(pays, 0);
    assert_ok(reserve_units(ledger, &old_ids[1], 1, left, &pays, &err), &err);
    assert_int_equal(pays, 1);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_units_are_hashed),
        cmocka_unit_test(test_paid_later),
        cmocka_unit_test(test_form_1),
        cmocka_unit_test(test_form_1_with_payers),
        cmocka_unit_test(test_form_1_read),
        cmocka_unit_test(test_form_1_damaged),
        cmocka_unit_test(test_form_1_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
