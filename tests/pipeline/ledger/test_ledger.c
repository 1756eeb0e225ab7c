/* test_ledger.c - budgets, charges and the file of a ledger. The clock of this program is the
 * test's. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/pipeline/ledger/ledger_support.h"
#include "tests/support/own.h"

static time_t the_time;

/* The library's clock, as the linker finds this one first. */
time_t time(time_t *t) {
    if (t)
        *t = the_time;
    return the_time;
}

SETUP_EACH {
    the_time = 1767225600; /* 2026-01-01 */
    make_ledger(DPI_SCOPE_DATASET);
}

TEARDOWN_EACH { folder_remove(); }

TEST(test_dataset) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    const dpi_dataset_info info = info_of("letters");
    assert_string_equal(info.name, "letters");
    assert_string_equal(info.opened, "2026-01-01T00:00:00Z");
    assert_string_equal(info.closed, "");
    assert_true(info.epsilon == 5 && info.delta == 1e-5);
    assert_int_equal(info.scope, DPI_SCOPE_DATASET);
    assert_int_equal(info.order, 5);
    /* rounded down, with a margin below 2^-30 of it */
    const int64_t most = (int64_t)floor(BUDGET_5 * DPI_LEDGER_ONE);
    assert_in_range(info.budget, most - 4096, most);
    assert_int_equal(info.left, info.budget);
    assert_int_equal(info.charged, 0);
    assert_int_equal(info.n_charges, 0);
}

/* A cost of so many units of divergence, and the one that rounding up may add. */
static void assert_amount(int64_t amount, double units) {
    const int64_t least = (int64_t)ceil(units * DPI_LEDGER_ONE);
    assert_in_range(amount, least, least + 1);
}

TEST(test_charges_add_up) {
    const int64_t budget = info_of("letters").budget;
    int64_t n;
    for (int i = 1; i <= 5; i++) {
        const dpi_charge c = charge("letters", .0625);
        assert_int_equal(c.id, i);
        assert_amount(c.amount, .3125); /* 5 rho */
        assert_int_equal(c.before, (i - 1) * c.amount);
        assert_string_equal(c.cost, "zcdp 1 0.0625");
    }
    reopen_ledger();
    const dpi_dataset_info info = info_of("letters");
    assert_int_equal(info.n_charges, 5);
    assert_int_equal(info.charged, sum_charges(&n));
    assert_int_equal(n, 5);
    assert_int_equal(info.left, budget - info.charged);
    assert_int_equal(info.charged, 5 * info.last);
    /* rho .3125 at the best order, by 50-digit arithmetic; at the order 5 it is 3.815 */
    assert_true(fabs(info.epsilon_charged - 3.61696624728) < 1e-9);
}

static void reserve_cost(const dpi_cost *cost) {
    dpi_charge_request r;
    dpi_charge_request_init(&r);
    r.cost = cost;
    r.method = "invisibleink";
    assert_ok(dpi_ledger_reserve(the_ledger, "letters", &r, NULL, ERR));
}

/* What the charges come to is the less of two bounds: at the order of the budget, and as zCDP. */
TEST(test_charged_epsilon) {
    dpi_cost cost;
    dpi_cost_init(&cost);
    (void)charge("letters", .0001);
    const int64_t other = charge("letters", .5).id;
    assert_true(info_of("letters").epsilon_charged > 1);
    assert_ok(dpi_ledger_give_back(the_ledger, other, ERR));
    assert_true(fabs(info_of("letters").epsilon_charged - .0450474620878) < 1e-9);
    /* all kinds: .0001 + 8 .1^2/8 + 2 .1^2/2 + 1/(2 8^2), below a secret sample and allocation */
    assert_ok(dpi_cost_add(&cost, DPI_COST_RANGE, 8, .1, 0, ERR));
    assert_ok(dpi_cost_add(&cost, DPI_COST_PURE, 2, .1, 0, ERR));
    assert_ok(dpi_cost_add(&cost, DPI_COST_GAUSSIAN, 1, 8, 1, ERR));
    cost.allocation = 2;
    cost.subsample = .9;
    reserve_cost(&cost);
    double epsilon;
    assert_ok(dpi_zcdp_epsilon(.0279125, 1e-5, &epsilon, ERR));
    assert_true(fabs(info_of("letters").epsilon_charged - epsilon) < 1e-9);
    /* many steps on small samples: their order's bound is the less */
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_GAUSSIAN, 1000, 2, .001, ERR));
    reserve_cost(&cost);
    const double at_order = info_of("letters").epsilon_charged;
    assert_true(at_order < 4);
    assert_ok(dpi_renyi_epsilon((double)info_of("letters").charged / DPI_LEDGER_ONE, 1e-5, 5,
                                &epsilon, ERR));
    assert_true(at_order == epsilon);
}

/* A cost that does not fit its amount, or that no cost is written as, is not believed. */
TEST(test_costs_that_were_changed) {
    static const char *const costs[] = {"zcdp 1 0.01", "zcdp 1 0.02 ", "zcdp 1 .02", "range 1 0.4",
                                        "gaussian 1 5", "zcdp 0 0.02", "", "zcdp 1 0.02; x 1"};
    double epsilon;
    (void)charge("letters", .02);
    assert_true(fabs(info_of("letters").epsilon_charged - .794314774274) < 1e-9);
    assert_ok(dpi_renyi_epsilon((double)info_of("letters").charged / DPI_LEDGER_ONE, 1e-5, 5,
                                &epsilon, ERR));
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "UPDATE charge SET cost = '%s'", costs[i]);
        exec_sql(path, sql);
        reopen_ledger();
        assert_true(info_of("letters").epsilon_charged == epsilon);
    }
}

/* To the last unit, and not one more. */
TEST(test_budget_is_kept) {
    const int64_t budget = info_of("letters").budget;
    assert_error(reserve(rho_of(budget + 1)), BUDGET, "left is 2.74727 of 2.74727");
    assert_ok(reserve(rho_of(budget - 10)));
    assert_error(reserve(rho_of(11)), BUDGET, "letters");
    assert_ok(reserve(rho_of(10)));
    const dpi_dataset_info info = info_of("letters");
    assert_int_equal(info.left, 0);
    assert_int_equal(info.charged, budget);
    assert_int_equal(info.n_charges, 2);
    assert_true(info.epsilon_charged <= 5);
    assert_error(reserve(1e-300), BUDGET, "");
    assert_error(reserve(1e6), BUDGET, "");
}

/* Each dataset counts at its own order. */
TEST(test_orders) {
    dpi_dataset_info info;
    add_dataset("tickets", 1, 1e-6, DPI_SCOPE_DATASET);
    assert_int_equal(info_of("tickets").order, 22);
    const dpi_charge second = charge("tickets", .02), first = charge("letters", .02);
    assert_amount(second.amount, .44);
    assert_amount(first.amount, .1);
    assert_error(reserve_of(the_ledger, "tickets", .02, NULL), BUDGET, "");
    assert_ok(reserve(.02));
    assert_int_equal(info_of("tickets").charged, second.amount);
    assert_int_equal(info_of("letters").charged, 2 * first.amount);
    dpi_dataset_info_init(&info);
    assert_ok(dpi_ledger_info_at(the_ledger, 1, &info, ERR));
    assert_string_equal(info.name, "tickets");
    assert_ok(dpi_ledger_info_at(the_ledger, 2, &info, ERR));
    assert_string_equal(info.name, "");
}

TEST(test_give_back) {
    dpi_ledger *other;
    int64_t n;
    const dpi_charge first = charge("letters", .1), c = charge("letters", .2);
    assert_ok(dpi_ledger_give_back(the_ledger, first.id, ERR));
    assert_int_equal(info_of("letters").charged, c.amount);
    assert_int_equal(sum_charges(&n), c.amount);
    assert_int_equal(n, 2); /* it stays in the list */
    assert_error(dpi_ledger_give_back(the_ledger, first.id, ERR), STATE, "");
    assert_ok(open_ledger(path, OPEN, &other));
    assert_error(dpi_ledger_give_back(other, c.id, ERR), STATE, "this object");
    dpi_ledger_close(other);
    assert_int_equal(info_of("letters").charged, c.amount);
}

static dpi_status reserve_for(const dpi_privacy_unit *u, dpi_charge *c) {
    DEFAULTS(dpi_charge_request, r);
    DEFAULTS(dpi_cost, cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, .001, 0, ERR));
    r.cost = &cost, r.method = "test", r.unit = *u;
    return dpi_ledger_reserve(the_ledger, "letters", &r, c, ERR);
}

static void assert_protects(const char *wanted) {
    const dpi_privacy_unit u = info_of("letters").unit;
    char text[256];
    dpi_privacy_unit_text(&u, text, sizeof text);
    assert_string_equal(text, wanted);
}

/* The first charge that says it fixes whom all protect; what is given back fixes nothing. */
TEST(test_privacy_unit) {
    static const dpi_privacy_unit open = {-1, -1, 0, 0, ""}, people = {1, 0, 0, 4, "who"},
                                  rows = {0, 1, DPI_RECORD_ROW, 0, ""};
    static const struct {
        dpi_privacy_unit unit;
        const char *message; /* NULL: it fits */
    } later[] = {
        {{1, 0, 0, 4, "who"}, NULL},
        {{1, -1, 0, 0, ""}, NULL},
        {{-1, 0, 0, 0, "who"}, NULL},
        {{0, 0, 0, 4, "who"}, "at most 4 of them used; add-remove, and this one protects all "
                              "records with one ID in 'who', at most 4 of them used; replace-by"},
        {{1, 0, 0, 3, "who"}, "at most 3 of them"},
        {{1, 0, 0, 4, "whom"}, "in 'whom'"},
        {{1, 1, 0, 0, ""}, "protects one record; add-remove"},
        {{1, 1, DPI_RECORD_LINE, 0, ""}, "protects one line of a .jsonl file; add-remove"},
        {{3, -1, 0, 0, ""}, "unit.adjacency"},
        {{-1, 2, 0, 0, ""}, "unit.is_record"},
        {{-1, 1, 4, 0, ""}, "unit.record_kind"},
        {{-1, 1, 0, 4, ""}, "a field of IDs where each record is a unit"},
        {{-1, 0, 1, 0, ""}, "a kind of records where units have IDs"},
        {{-1, 0, 0, 0, "a\nb"}, "unit_field has 3 bytes"},
    };
    dpi_charge first, c;
    dpi_charge_init(&first), dpi_charge_init(&c);
    assert_ok(reserve_for(&open, NULL));
    assert_protects("");
    assert_ok(reserve_for(&rows, &first));
    assert_protects("one row of a .csv file; replace-by-null");
    assert_ok(dpi_ledger_give_back(the_ledger, first.id, ERR));
    assert_protects("");
    assert_ok(reserve_for(&people, NULL));
    const int64_t charged = info_of("letters").charged;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        if (!later[i].message)
            assert_ok(reserve_for(&later[i].unit, &c));
        else
            assert_error(reserve_for(&later[i].unit, NULL), ARG, later[i].message);
    }
    assert_int_equal(info_of("letters").charged, charged + 3 * c.amount);
    reopen_ledger();
    assert_protects("all records with one ID in 'who', at most 4 of them used; add-remove");
    assert_int_equal(c.unit.max_per_unit, 4); /* that of the dataset, where it said nothing */
    /* A dataset may be born with it. */
    DEFAULTS(dpi_dataset_options, o);
    o.name = "born", o.epsilon = 5, o.delta = 1e-5, o.unit.adjacency = DPI_ADJACENCY_ZERO_OUT;
    assert_ok(dpi_ledger_add(the_ledger, &o, ERR));
    assert_int_equal(info_of("born").unit.adjacency, DPI_ADJACENCY_ZERO_OUT);
    o.name = "not born", o.unit.record_kind = 9;
    assert_error(dpi_ledger_add(the_ledger, &o, ERR), ARG, "unit.record_kind");
}

TEST(test_closed) {
    assert_ok(reserve(.1));
    assert_ok(dpi_ledger_seal(the_ledger, "letters", ERR));
    assert_error(reserve(.1), STATE, "closed");
    assert_error(dpi_ledger_seal(the_ledger, "letters", ERR), STATE, "closed");
    assert_int_equal(info_of("letters").n_charges, 1);
}

/* A date is a note. Charges keep their order, and the budget its end, wherever the clock jumps. */
TEST(test_clock_jumps) {
    static const time_t times[] = {1767225600, 86400, -86400, 0, INT64_MAX, INT64_MIN, 4102444800};
    int64_t n;
    const int64_t each = info_of("letters").budget / 7;
    for (size_t i = 0; i < 7; i++) {
        the_time = times[i];
        assert_ok(reserve(rho_of(each)));
    }
    assert_int_equal(sum_charges(&n), 7 * each);
    assert_int_equal(n, 7);
    the_time = 0;
    assert_error(reserve(rho_of(each)), BUDGET, "");
    the_time = INT64_MIN;
    assert_ok(dpi_ledger_seal(the_ledger, "letters", ERR));
    assert_error(reserve(1e-9), STATE, "");
}

TEST(test_arguments) {
    static const struct {
        dpi_dataset_options o;
        const char *part;
    } datasets[] = {{{.name = "letters", .delta = 1e-5}, "already"},
                    {{.name = "a\nb", .delta = 1e-5}, "control characters"},
                    {{.name = "", .delta = 1e-5}, "no name"},
                    {{.name = "other", .delta = 1e-5, .scope = 2}, "scope"},
                    {{.name = "other"}, "delta"}};
    dpi_dataset_options o;
    dpi_dataset_info info;
    dpi_charge_request r;
    dpi_cost cost;
    dpi_dataset_info_init(&info);
    assert_error(dpi_ledger_info(the_ledger, "leters", &info, ERR), ARG, "it has 'letters'");
    for (size_t i = 0; i < sizeof datasets / sizeof *datasets; i++) {
        o = datasets[i].o;
        o.struct_size = sizeof o, o.epsilon = 5;
        assert_error(dpi_ledger_add(the_ledger, &o, ERR), ARG, datasets[i].part);
    }
    dpi_charge_request_init(&r);
    dpi_cost_init(&cost);
    assert_error(dpi_ledger_reserve(the_ledger, "letters", &r, NULL, ERR), ARG, "NULL");
    r.cost = &cost, r.method = "x";
    assert_error(dpi_ledger_reserve(the_ledger, "letters", &r, NULL, ERR), ARG, "0 parts");
    cost.n_parts = 1;
    cost.parts[0] = (dpi_cost_part){.kind = DPI_COST_APPROXIMATE, .n = 1, .x = 1};
    assert_error(dpi_ledger_reserve(the_ledger, "letters", &r, NULL, ERR), UNSUPPORTED,
                 "epsilon and delta");
    r.method = "\x1b[2J";
    assert_error(dpi_ledger_reserve(the_ledger, "letters", &r, NULL, ERR), ARG,
                 "control characters");
    assert_int_equal(info_of("letters").n_charges, 0);
    new_ledger();
    assert_error(dpi_ledger_info(the_ledger, "letters", &info, ERR), ARG, "has no dataset");
}

/* A text of a sampler costs T steps of its eta, which is less than zCDP says of them. */
TEST(test_text) {
    dpi_sampler_options o;
    dpi_charge_request r;
    dpi_charge c, wanted;
    dpi_cost cost;
    dpi_charge_init(&c), dpi_charge_init(&wanted);
    dpi_charge_request_init(&r), dpi_cost_init(&cost);
    dpi_sampler_options_init(&o);
    o.n_vocab = 100, o.top_k = 50, o.n_ref = 8, o.n_tokens = 20, o.epsilon = .5, o.delta = 1e-6;
    dpi_sampler *sampler = open_sampler(&o);
    assert_ok(dpi_ledger_reserve_text(the_ledger, "letters", sampler, "why", &c, ERR));
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(sampler);
    assert_ok(dpi_cost_add(&cost, DPI_COST_RANGE, 20, plan->eta, 0, ERR));
    r.cost = &cost, r.method = "invisibleink";
    assert_ok(dpi_ledger_reserve(the_ledger, "letters", &r, &wanted, ERR));
    assert_int_equal(c.amount, wanted.amount);
    assert_true(c.amount > 0 && c.amount <= charge("letters", plan->rho_total).amount);
    assert_string_equal(c.method, "invisibleink");
    assert_string_equal(c.note, "why");
    assert_int_equal(info_of("letters").n_charges, 3);
    assert_error(dpi_ledger_reserve_text(the_ledger, "other", sampler, NULL, &c, ERR), ARG,
                 "other");
    dpi_sampler_free(sampler);
    o.method = DPI_METHOD_PLAIN, o.n_ref = 0;
    sampler = open_sampler(&o);
    assert_error(dpi_ledger_reserve_text(the_ledger, "letters", sampler, NULL, &c, ERR),
                 UNSUPPORTED, "");
    dpi_sampler_free(sampler);
}

/* ---- The file -------------------------------------------------------------------------------- */

static dpi_status try_open(const char *at) {
    dpi_ledger *l = NULL;
    const dpi_status status = dpi_ledger_open(at, NULL, &l, ERR);
    dpi_ledger_close(l);
    return status;
}

TEST(test_other_files) {
    const char *x = path_in(folder, "x");
    assert_error(try_open(x), IO, "No such file");
    assert_error(try_open(folder), FORMAT, "regular file");
    write_file(x, "", 0);
    assert_error(try_open(x), FORMAT, "empty");
    write_file(x, "This is a text file, and not at all a data base.", 48);
    assert_error(try_open(x), FORMAT, "no SQLite file");
    unlink(x);
    exec_sql(x, "CREATE TABLE t(x)");
    assert_error(try_open(x), FORMAT, "another program");
    unlink(x);
    assert_int_equal(mkfifo(x, 0600), 0);
    assert_error(try_open(x), FORMAT, "regular file");
}

/* A symbolic link is followed; a file with two names is refused. */
TEST(test_names) {
    const char *symbolic = path_in(folder, "symbolic"), *hard = path_in(folder, "hard");
    dpi_ledger *other;
    assert_int_equal(symlink("year.ledger", symbolic), 0);
    assert_ok(open_ledger(symbolic, OPEN, &other));
    assert_ok(reserve_of(other, "letters", .1, NULL));
    dpi_ledger_close(other);
    close_ledger();
    assert_int_equal(link(path, hard), 0);
    assert_error(try_open(path), UNSUPPORTED, "hard links");
    assert_error(try_open(hard), UNSUPPORTED, "2 names");
    unlink(hard);
    assert_ok(try_open(path));
}

/* Names that mean something to SQLite are names of files here. */
TEST(test_names_of_sqlite) {
    static const char *const names[] = {":memory:", "file:x?mode=memory"};
    char old[4096];
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < 2; i++) {
        close_ledger();
        assert_ok(open_ledger(names[i], CREATE, &the_ledger));
        add_dataset("letters", 5, 1e-5, DPI_SCOPE_DATASET);
        close_ledger();
        assert_ok(open_ledger(names[i], OPEN, &the_ledger));
        assert_int_equal(info_of("letters").order, 5);
    }
    assert_int_equal(chdir(old), 0);
}

TEST(test_damaged) {
    static const struct {
        const char *sql;
        dpi_status status;
        const char *part;
    } cases[] = {
        {"PRAGMA user_version = 5", DPI_STATUS_UNSUPPORTED, "the form 5"},
        {"DROP TABLE charge", DPI_STATUS_FORMAT, "damaged"},
        {"UPDATE dataset SET budget = budget * 2", DPI_STATUS_FORMAT, "do not fit"},
        {"UPDATE dataset SET renyi_order = 1", DPI_STATUS_FORMAT, "do not fit"},
        {"UPDATE charge SET adjacency = 9", DPI_STATUS_FORMAT, "damaged: unit.adjacency"},
        {"UPDATE charge SET record_kind = 99", DPI_STATUS_FORMAT, "damaged: unit.record_kind"},
        {"CREATE TRIGGER t AFTER INSERT ON charge BEGIN DELETE FROM charge; END", DPI_STATUS_FORMAT,
         "triggers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_ledger(DPI_SCOPE_DATASET);
        assert_ok(reserve(.1));
        close_ledger();
        exec_sql(path, cases[i].sql);
        dpi_status status = open_ledger(path, OPEN, &the_ledger);
        if (status == DPI_STATUS_OK)
            status = reserve(.01);
        assert_status(status, cases[i].status, cases[i].part);
    }
}

/* Bytes overwritten: never a crash, and the file is as before when they are back. */
TEST(test_overwritten) {
    uint64_t seed = 1;
    struct stat st;
    assert_ok(reserve(.1));
    close_ledger();
    const int fd = open(path, O_RDWR);
    assert_int_equal(fstat(fd, &st), 0);
    for (int i = 0; i < 60; i++) {
        unsigned char old[64], bad[64];
        const off_t at = random_below(&seed, (int32_t)st.st_size - 64);
        assert_int_equal(pread(fd, old, sizeof old, at), sizeof old);
        for (size_t k = 0; k < sizeof bad; k++)
            bad[k] = (unsigned char)random_u64(&seed);
        assert_int_equal(pwrite(fd, bad, sizeof bad, at), sizeof bad);
        if (open_ledger(path, OPEN, &the_ledger) == DPI_STATUS_OK) {
            dpi_dataset_info info;
            dpi_dataset_info_init(&info);
            (void)!dpi_ledger_info(the_ledger, "letters", &info, ERR);
        }
        close_ledger();
        assert_int_equal(pwrite(fd, old, sizeof old, at), sizeof old);
    }
    close(fd);
    assert_ok(try_open(path));
}

TEST(test_locked) {
    dpi_ledger_options o;
    sqlite3 *db;
    dpi_ledger_options_init(&o);
    o.busy_ms = 30;
    close_ledger();
    assert_ok(dpi_ledger_open(path, &o, &the_ledger, ERR));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_error(reserve(.1), IO, "locked by another process");
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_ok(reserve(.1));
    assert_int_equal(info_of("letters").n_charges, 1);
    sqlite3_close(db);
}

TEST(test_read_only) {
    assert_ok(reserve(.1));
    close_ledger();
    assert_ok(open_ledger(path, READ_ONLY, &the_ledger));
    assert_int_equal(info_of("letters").n_charges, 1);
    assert_error(reserve(.1), IO, "read-only");
    assert_error(dpi_ledger_seal(the_ledger, "letters", ERR), IO, "");
    assert_int_equal(info_of("letters").n_charges, 1);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static double rho_of_thread;
static atomic_int n_paid, n_refused;

static void *work(void *user) {
    for (int i = 0; i < 8; i++) {
        const dpi_status status = reserve(rho_of_thread);
        n_paid += status == DPI_STATUS_OK;
        n_refused += status == DPI_STATUS_BUDGET;
    }
    return user;
}

TEST(test_threads) {
    enum { N = 4 };
    pthread_t threads[N];
    rho_of_thread = rho_of(info_of("letters").budget / 20);
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(n_paid, 20);
    assert_int_equal(n_refused, 8 * N - 20);
    assert_int_equal(info_of("letters").n_charges, 20);
}
