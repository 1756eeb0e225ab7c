/* test_ledger.c - budgets, charges and the file of a ledger. The clock of this program is the
 * test's. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/pipeline/ledger/ledger_support.h"

static time_t the_time = 1767225600; /* 2026-01-01 */

/* The library's clock, as the linker finds this one first. */
time_t time(time_t *t) {
    if (t)
        *t = the_time;
    return the_time;
}

static int64_t budget_5(void) { return (int64_t)floor(BUDGET_5 * DPI_LEDGER_ONE); }

static void test_dataset(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    struct stat st;
    assert_int_equal(stat(b.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    add_letters(ledger, DPI_SCOPE_DATASET);
    const dpi_dataset_info info = info_of(ledger, "letters");
    assert_string_equal(info.name, "letters");
    assert_string_equal(info.opened, "2026-01-01T00:00:00Z");
    assert_string_equal(info.closed, "");
    assert_true(info.epsilon == 5 && info.delta == 1e-5);
    assert_int_equal(info.scope, DPI_SCOPE_DATASET);
    assert_int_equal(info.order, 5);
    /* rounded down, with a margin below 2^-30 of it */
    assert_in_range(info.budget, budget_5() - 4096, budget_5());
    assert_int_equal(info.left, info.budget);
    assert_int_equal(info.charged, 0);
    assert_int_equal(info.n_charges, 0);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

static void test_charges_add_up(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    const int64_t budget = info_of(ledger, "letters").budget;
    dpi_error err;
    int64_t n;
    for (int i = 1; i <= 5; i++) {
        dpi_charge c;
        dpi_charge_init(&c);
        assert_ok(reserve_rho(ledger, "letters", .0625, &c, &err), &err);
        assert_int_equal(c.id, i);
        /* A rho = .3125, and the unit that rounding up may add */
        assert_in_range(c.amount, (int64_t)(.3125 * DPI_LEDGER_ONE),
                        (int64_t)(.3125 * DPI_LEDGER_ONE) + 1);
        assert_int_equal(c.before, (i - 1) * c.amount);
        assert_string_equal(c.cost, "zcdp 1 0.0625");
    }
    dpi_ledger_close(ledger);
    ledger = open_ledger(b.path, 0);
    const dpi_dataset_info info = info_of(ledger, "letters");
    assert_int_equal(info.n_charges, 5);
    assert_int_equal(info.charged, sum_charges(ledger, "letters", &n));
    assert_int_equal(n, 5);
    assert_int_equal(info.left, budget - info.charged);
    assert_int_equal(info.charged, 5 * info.last);
    /* 1.5625 + ln(4/5) - (ln 1e-5 + ln 5) / 4 by hand: 3.81523 */
    assert_true(fabs(info.epsilon_charged - 3.815228) < 1e-6);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* To the last unit, and not one more. */
static void test_budget_is_kept(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_error err;
    const int64_t budget = info_of(ledger, "letters").budget;
    assert_error(reserve_rho(ledger, "letters", rho_of(budget + 1), NULL, &err), DPI_STATUS_BUDGET,
                 &err, "left is 2.74727 of 2.74727");
    assert_ok(reserve_rho(ledger, "letters", rho_of(budget - 10), NULL, &err), &err);
    assert_error(reserve_rho(ledger, "letters", rho_of(11), NULL, &err), DPI_STATUS_BUDGET, &err,
                 "letters");
    assert_ok(reserve_rho(ledger, "letters", rho_of(10), NULL, &err), &err);
    const dpi_dataset_info info = info_of(ledger, "letters");
    assert_int_equal(info.left, 0);
    assert_int_equal(info.charged, budget);
    assert_int_equal(info.n_charges, 2);
    assert_true(info.epsilon_charged <= 5);
    assert_int_equal(reserve_rho(ledger, "letters", 1e-300, NULL, &err), DPI_STATUS_BUDGET);
    assert_int_equal(reserve_rho(ledger, "letters", 1e6, NULL, &err), DPI_STATUS_BUDGET);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* Each dataset counts at its own order. */
static void test_orders(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    dpi_dataset_options o;
    dpi_error err;
    dpi_charge first, second;
    dpi_charge_init(&first);
    dpi_charge_init(&second);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_dataset_options_init(&o);
    o.name = "tickets";
    o.epsilon = 1;
    o.delta = 1e-6;
    assert_ok(dpi_ledger_add(ledger, &o, &err), &err);
    assert_int_equal(info_of(ledger, "tickets").order, 22);
    assert_ok(reserve_rho(ledger, "tickets", .02, &second, &err), &err);
    assert_ok(reserve_rho(ledger, "letters", .02, &first, &err), &err);
    assert_in_range(second.amount, (int64_t)ceil(.44 * DPI_LEDGER_ONE),
                    (int64_t)ceil(.44 * DPI_LEDGER_ONE) + 1);
    assert_in_range(first.amount, (int64_t)ceil(.1 * DPI_LEDGER_ONE),
                    (int64_t)ceil(.1 * DPI_LEDGER_ONE) + 1);
    assert_int_equal(reserve_rho(ledger, "tickets", .02, NULL, &err), DPI_STATUS_BUDGET);
    assert_ok(reserve_rho(ledger, "letters", .02, NULL, &err), &err);
    assert_int_equal(info_of(ledger, "tickets").charged, second.amount);
    assert_int_equal(info_of(ledger, "letters").charged, 2 * first.amount);
    dpi_dataset_info info;
    dpi_dataset_info_init(&info);
    assert_ok(dpi_ledger_info_at(ledger, 1, &info, &err), &err);
    assert_string_equal(info.name, "tickets");
    assert_ok(dpi_ledger_info_at(ledger, 2, &info, &err), &err);
    assert_string_equal(info.name, "");
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

static void test_give_back(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_error err;
    dpi_charge c;
    int64_t n;
    dpi_charge_init(&c);
    assert_ok(reserve_rho(ledger, "letters", .1, &c, &err), &err);
    const int64_t id = c.id;
    assert_ok(reserve_rho(ledger, "letters", .2, &c, &err), &err);
    assert_ok(dpi_ledger_give_back(ledger, id, &err), &err);
    assert_int_equal(info_of(ledger, "letters").charged, c.amount);
    assert_int_equal(sum_charges(ledger, "letters", &n), c.amount);
    assert_int_equal(n, 2); /* it stays in the list */
    assert_int_equal(dpi_ledger_give_back(ledger, id, &err), DPI_STATUS_STATE);
    dpi_ledger *other = open_ledger(b.path, 0);
    assert_error(dpi_ledger_give_back(other, c.id, &err), DPI_STATUS_STATE, &err, "this object");
    dpi_ledger_close(other);
    assert_int_equal(info_of(ledger, "letters").charged, c.amount);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

static void test_closed(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_error err;
    assert_ok(reserve_rho(ledger, "letters", .1, NULL, &err), &err);
    assert_ok(dpi_ledger_seal(ledger, "letters", &err), &err);
    assert_error(reserve_rho(ledger, "letters", .1, NULL, &err), DPI_STATUS_STATE, &err, "closed");
    assert_error(dpi_ledger_seal(ledger, "letters", &err), DPI_STATUS_STATE, &err, "closed");
    assert_int_equal(info_of(ledger, "letters").n_charges, 1);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* A date is a note. Charges keep their order, and the budget its end, wherever the clock jumps. */
static void test_clock_jumps(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    static const time_t times[] = {1767225600, 86400, -86400, 0, INT64_MAX, INT64_MIN, 4102444800};
    dpi_error err;
    int64_t n;
    const int64_t each = info_of(ledger, "letters").budget / 7;
    for (size_t i = 0; i < 7; i++) {
        the_time = times[i];
        assert_ok(reserve_rho(ledger, "letters", rho_of(each), NULL, &err), &err);
    }
    assert_int_equal(sum_charges(ledger, "letters", &n), 7 * each);
    assert_int_equal(n, 7);
    the_time = 0;
    assert_int_equal(reserve_rho(ledger, "letters", rho_of(each), NULL, &err), DPI_STATUS_BUDGET);
    the_time = INT64_MIN;
    assert_ok(dpi_ledger_seal(ledger, "letters", &err), &err);
    assert_int_equal(reserve_rho(ledger, "letters", 1e-9, NULL, &err), DPI_STATUS_STATE);
    the_time = 1767225600;
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

static void test_arguments(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    dpi_dataset_options o;
    dpi_error err;
    dpi_dataset_info info;
    dpi_dataset_info_init(&info);
    assert_error(dpi_ledger_info(ledger, "letters", &info, &err), DPI_STATUS_ARG, &err,
                 "has no dataset");
    add_letters(ledger, DPI_SCOPE_DATASET);
    assert_error(dpi_ledger_info(ledger, "leters", &info, &err), DPI_STATUS_ARG, &err,
                 "it has 'letters'");
    dpi_dataset_options_init(&o);
    o.name = "letters";
    o.epsilon = 5;
    o.delta = 1e-5;
    assert_error(dpi_ledger_add(ledger, &o, &err), DPI_STATUS_ARG, &err, "already");
    o.name = "a\nb";
    assert_error(dpi_ledger_add(ledger, &o, &err), DPI_STATUS_ARG, &err, "control characters");
    o.name = "";
    assert_error(dpi_ledger_add(ledger, &o, &err), DPI_STATUS_ARG, &err, "no name");
    o.name = "other";
    o.scope = 2;
    assert_error(dpi_ledger_add(ledger, &o, &err), DPI_STATUS_ARG, &err, "scope");
    o.scope = 0;
    o.delta = 0;
    assert_error(dpi_ledger_add(ledger, &o, &err), DPI_STATUS_ARG, &err, "delta");
    dpi_charge_request r;
    dpi_cost cost;
    dpi_charge_request_init(&r);
    dpi_cost_init(&cost);
    assert_error(dpi_ledger_reserve(ledger, "letters", &r, NULL, &err), DPI_STATUS_ARG, &err,
                 "NULL");
    r.cost = &cost;
    r.method = "x";
    assert_error(dpi_ledger_reserve(ledger, "letters", &r, NULL, &err), DPI_STATUS_ARG, &err,
                 "0 parts");
    cost.n_parts = 1;
    cost.parts[0] = (dpi_cost_part){.kind = DPI_COST_APPROXIMATE, .n = 1, .x = 1};
    assert_error(dpi_ledger_reserve(ledger, "letters", &r, NULL, &err), DPI_STATUS_UNSUPPORTED,
                 &err, "epsilon and delta");
    r.method = "\x1b[2J";
    assert_error(dpi_ledger_reserve(ledger, "letters", &r, NULL, &err), DPI_STATUS_ARG, &err,
                 "control characters");
    assert_int_equal(info_of(ledger, "letters").n_charges, 0);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* A text of a sampler costs T steps of its eta, which is less than zCDP says of them. */
static void test_text(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    dpi_sampler_options o;
    dpi_sampler *sampler;
    dpi_charge_request r;
    dpi_charge c, wanted;
    dpi_cost cost;
    dpi_error err;
    dpi_charge_init(&c), dpi_charge_init(&wanted);
    dpi_charge_request_init(&r), dpi_cost_init(&cost);
    dpi_sampler_options_init(&o);
    o.n_vocab = 100, o.top_k = 50, o.n_ref = 8, o.n_tokens = 20, o.epsilon = .5, o.delta = 1e-6;
    assert_ok(dpi_sampler_create(&o, &sampler, &err), &err);
    assert_ok(dpi_ledger_reserve_text(ledger, "letters", sampler, "why", &c, &err), &err);
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(sampler);
    assert_ok(dpi_cost_add(&cost, DPI_COST_RANGE, 20, plan->eta, 0, &err), &err);
    r.cost = &cost, r.method = "invisibleink";
    assert_ok(dpi_ledger_reserve(ledger, "letters", &r, &wanted, &err), &err);
    assert_int_equal(c.amount, wanted.amount);
    assert_ok(reserve_rho(ledger, "letters", plan->rho_total, &wanted, &err), &err);
    assert_true(c.amount > 0 && c.amount <= wanted.amount);
    assert_string_equal(c.method, "invisibleink");
    assert_string_equal(c.note, "why");
    assert_int_equal(info_of(ledger, "letters").n_charges, 3);
    assert_error(dpi_ledger_reserve_text(ledger, "other", sampler, NULL, &c, &err), DPI_STATUS_ARG,
                 &err, "other");
    dpi_sampler_free(sampler);
    o.method = DPI_METHOD_PLAIN, o.n_ref = 0;
    assert_ok(dpi_sampler_create(&o, &sampler, &err), &err);
    assert_error(dpi_ledger_reserve_text(ledger, "letters", sampler, NULL, &c, &err),
                 DPI_STATUS_UNSUPPORTED, &err, "");
    dpi_sampler_free(sampler);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* ---- The file -------------------------------------------------------------------------------- */

static dpi_status try_open(const char *path, dpi_error *err) {
    dpi_ledger *ledger = NULL;
    const dpi_status status = dpi_ledger_open(path, NULL, &ledger, err);
    dpi_ledger_close(ledger);
    return status;
}

static void test_other_files(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_error err;
    char path[320];
    snprintf(path, sizeof path, "%s/x", b.folder);
    assert_error(try_open(path, &err), DPI_STATUS_IO, &err, "No such file");
    assert_error(try_open(b.folder, &err), DPI_STATUS_FORMAT, &err, "regular file");
    write_file(path, "", 0);
    assert_error(try_open(path, &err), DPI_STATUS_FORMAT, &err, "empty");
    write_file(path, "This is a text file, and not at all a data base.", 48);
    assert_error(try_open(path, &err), DPI_STATUS_FORMAT, &err, "no SQLite file");
    unlink(path);
    exec_sql(path, "CREATE TABLE t(x)");
    assert_error(try_open(path, &err), DPI_STATUS_FORMAT, &err, "another program");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_error(try_open(path, &err), DPI_STATUS_FORMAT, &err, "regular file");
    unlink(path);
    bench_remove(&b);
}

static void make_ledger(const bench *b) {
    dpi_ledger *ledger = open_ledger(b->path, 1);
    dpi_error err;
    add_letters(ledger, DPI_SCOPE_DATASET);
    assert_ok(reserve_rho(ledger, "letters", .1, NULL, &err), &err);
    dpi_ledger_close(ledger);
}

static void test_names(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_error err;
    char other[320];
    make_ledger(&b);
    snprintf(other, sizeof other, "%s/symbolic", b.folder);
    assert_int_equal(symlink("year.ledger", other), 0);
    dpi_ledger *ledger = open_ledger(other, 0);
    assert_ok(reserve_rho(ledger, "letters", .1, NULL, &err), &err);
    dpi_ledger_close(ledger);
    snprintf(other, sizeof other, "%s/hard", b.folder);
    assert_int_equal(link(b.path, other), 0);
    assert_error(try_open(b.path, &err), DPI_STATUS_UNSUPPORTED, &err, "hard links");
    assert_error(try_open(other, &err), DPI_STATUS_UNSUPPORTED, &err, "2 names");
    unlink(other);
    assert_ok(try_open(b.path, &err), &err);
    bench_remove(&b);
}

/* Names that mean something to SQLite are names of files here. */
static void test_names_of_sqlite(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    char old[4096];
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(b.folder), 0);
    static const char *const names[] = {":memory:", "file:x?mode=memory"};
    for (size_t i = 0; i < 2; i++) {
        dpi_ledger *ledger = open_ledger(names[i], 1);
        add_letters(ledger, DPI_SCOPE_DATASET);
        dpi_ledger_close(ledger);
        ledger = open_ledger(names[i], 0);
        assert_int_equal(info_of(ledger, "letters").order, 5);
        dpi_ledger_close(ledger);
    }
    assert_int_equal(chdir(old), 0);
    bench_remove(&b);
}

static void test_damaged(void **state) {
    (void)state;
    bench b;
    dpi_error err;
    static const struct {
        const char *sql;
        dpi_status status;
        const char *part;
    } cases[] = {
        {"PRAGMA user_version = 3", DPI_STATUS_UNSUPPORTED, "the form 3"},
        {"DROP TABLE charge", DPI_STATUS_FORMAT, "damaged"},
        {"UPDATE dataset SET budget = budget * 2", DPI_STATUS_FORMAT, "do not fit"},
        {"UPDATE dataset SET renyi_order = 1", DPI_STATUS_FORMAT, "do not fit"},
        {"CREATE TRIGGER t AFTER INSERT ON charge BEGIN DELETE FROM charge; END",
         DPI_STATUS_FORMAT, "triggers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_make(&b);
        make_ledger(&b);
        exec_sql(b.path, cases[i].sql);
        dpi_ledger *ledger = NULL;
        dpi_status status = dpi_ledger_open(b.path, NULL, &ledger, &err);
        if (status == DPI_STATUS_OK)
            status = reserve_rho(ledger, "letters", .01, NULL, &err);
        dpi_ledger_close(ledger);
        assert_error(status, cases[i].status, &err, cases[i].part);
        bench_remove(&b);
    }
}

/* Bytes overwritten: never a crash, and never a ledger that shows less than was charged. */
static void test_overwritten(void **state) {
    (void)state;
    bench b;
    uint64_t seed = 1;
    bench_make(&b);
    make_ledger(&b);
    for (int i = 0; i < 60; i++) {
        struct stat st;
        dpi_error err;
        dpi_ledger *ledger = NULL;
        unsigned char old[64], bad[64];
        const int fd = open(b.path, O_RDWR);
        assert_int_equal(fstat(fd, &st), 0);
        const off_t at = random_below(&seed, (int32_t)st.st_size - 64);
        assert_int_equal(pread(fd, old, sizeof old, at), sizeof old);
        for (size_t k = 0; k < sizeof bad; k++)
            bad[k] = (unsigned char)random_u64(&seed);
        assert_int_equal(pwrite(fd, bad, sizeof bad, at), sizeof bad);
        if (dpi_ledger_open(b.path, NULL, &ledger, &err) == DPI_STATUS_OK) {
            dpi_dataset_info info;
            dpi_dataset_info_init(&info);
            (void)!dpi_ledger_info(ledger, "letters", &info, &err);
            dpi_ledger_close(ledger);
        }
        assert_int_equal(pwrite(fd, old, sizeof old, at), sizeof old);
        close(fd);
    }
    assert_ok(try_open(b.path, NULL), NULL);
    bench_remove(&b);
}

static void test_locked(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    make_ledger(&b);
    dpi_ledger_options o;
    dpi_ledger *ledger;
    dpi_error err;
    sqlite3 *db;
    dpi_ledger_options_init(&o);
    o.busy_ms = 30;
    assert_ok(dpi_ledger_open(b.path, &o, &ledger, &err), &err);
    assert_int_equal(sqlite3_open(b.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_error(reserve_rho(ledger, "letters", .1, NULL, &err), DPI_STATUS_IO, &err,
                 "locked by another process");
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_ok(reserve_rho(ledger, "letters", .1, NULL, &err), &err);
    assert_int_equal(info_of(ledger, "letters").n_charges, 2);
    sqlite3_close(db);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

static void test_read_only(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    make_ledger(&b);
    dpi_ledger_options o;
    dpi_ledger *ledger;
    dpi_error err;
    dpi_ledger_options_init(&o);
    o.read_only = 1;
    assert_ok(dpi_ledger_open(b.path, &o, &ledger, &err), &err);
    assert_int_equal(info_of(ledger, "letters").n_charges, 1);
    assert_error(reserve_rho(ledger, "letters", .1, NULL, &err), DPI_STATUS_IO, &err, "read-only");
    assert_int_equal(dpi_ledger_seal(ledger, "letters", &err), DPI_STATUS_IO);
    assert_int_equal(info_of(ledger, "letters").n_charges, 1);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

/* ---- Threads --------------------------------------------------------------------------------- */

typedef struct worker {
    dpi_ledger *ledger;
    int64_t amount;
    int n_paid, n_refused;
} worker;

static void *work(void *user) {
    worker *w = user;
    for (int i = 0; i < 8; i++) {
        dpi_error err;
        const dpi_status status = reserve_rho(w->ledger, "letters", rho_of(w->amount), NULL, &err);
        w->n_paid += status == DPI_STATUS_OK;
        w->n_refused += status == DPI_STATUS_BUDGET;
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    bench b;
    bench_make(&b);
    dpi_ledger *ledger = open_ledger(b.path, 1);
    add_letters(ledger, DPI_SCOPE_DATASET);
    enum { N = 4 };
    pthread_t threads[N];
    worker workers[N];
    int n_paid = 0, n_refused = 0;
    for (int i = 0; i < N; i++) {
        workers[i] = (worker){.ledger = ledger, .amount = info_of(ledger, "letters").budget / 20};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        n_paid += workers[i].n_paid;
        n_refused += workers[i].n_refused;
    }
    assert_int_equal(n_paid, 20);
    assert_int_equal(n_refused, 8 * N - 20);
    assert_int_equal(info_of(ledger, "letters").n_charges, 20);
    dpi_ledger_close(ledger);
    bench_remove(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dataset),         cmocka_unit_test(test_charges_add_up),
        cmocka_unit_test(test_budget_is_kept),  cmocka_unit_test(test_orders),
        cmocka_unit_test(test_give_back),       cmocka_unit_test(test_closed),
        cmocka_unit_test(test_clock_jumps),     cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_other_files),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_of_sqlite), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_overwritten),     cmocka_unit_test(test_locked),
        cmocka_unit_test(test_read_only),       cmocka_unit_test(test_threads),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
