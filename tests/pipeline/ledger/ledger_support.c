#include "tests/pipeline/ledger/ledger_support.h"

#include <sqlite3.h>
#include <unistd.h>

#include "tests/pipeline/ledger/form_1.h"

char folder[256], path[300];
dpi_ledger *the_ledger;

void folder_make(void) {
    if (*folder)
        return;
    make_dir(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/year.ledger", folder);
}

void folder_remove(void) {
    close_ledger();
    remove_dir(folder);
    *folder = '\0';
}

/* ---- The file and its datasets --------------------------------------------------------------- */

dpi_status open_ledger(const char *at, open_mode mode, dpi_ledger **l) {
    dpi_ledger_options o;
    dpi_ledger_options_init(&o);
    o.busy_ms = 300000;
    o.create = mode == CREATE, o.read_only = mode == READ_ONLY;
    *l = NULL;
    return dpi_ledger_open(at, &o, l, ERR);
}

void close_ledger(void) {
    dpi_ledger_close(the_ledger);
    the_ledger = NULL;
}

void reopen_ledger(void) {
    close_ledger();
    assert_ok(open_ledger(path, OPEN, &the_ledger));
}

void new_ledger(void) {
    folder_make();
    close_ledger();
    unlink(path);
    assert_ok(open_ledger(path, CREATE, &the_ledger));
}

void make_ledger(int32_t scope) {
    new_ledger();
    add_dataset("letters", 5, 1e-5, scope);
}

void add_dataset(const char *dataset, double epsilon, double delta, int32_t scope) {
    dpi_dataset_options o;
    dpi_dataset_options_init(&o);
    o.name = dataset, o.epsilon = epsilon, o.delta = delta, o.scope = scope;
    assert_ok(dpi_ledger_add(the_ledger, &o, ERR));
}

dpi_dataset_info info_of(const char *dataset) {
    dpi_dataset_info info;
    dpi_dataset_info_init(&info);
    assert_ok(dpi_ledger_info(the_ledger, dataset, &info, ERR));
    return info;
}

static int first_number(void *number, int n, char **values, char **names) {
    (void)n, (void)names;
    *(int64_t *)number = strtoll(values[0], NULL, 10);
    return 0;
}

static int64_t run_sql(const char *at, const char *sql) {
    sqlite3 *db;
    int64_t number = -1;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    assert_int_equal(sqlite3_open_v2(at, &db, flags, "unix"), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, first_number, &number, NULL), SQLITE_OK);
    sqlite3_close(db);
    return number;
}

void exec_sql(const char *at, const char *sql) { run_sql(at, sql); }

int64_t read_sql(const char *sql) { return run_sql(path, sql); }

void make_ledger_of_form_1(void) {
    folder_make();
    unlink(path);
    exec_sql(path, form_1_sql);
}

/* ---- Charges --------------------------------------------------------------------------------- */

static dpi_status reserve_cost(dpi_ledger *l, const char *dataset, double rho,
                               const dpi_ledger_units *units, dpi_charge *c) {
    dpi_charge_request r;
    dpi_cost cost;
    dpi_cost_init(&cost);
    const dpi_status status = dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho, 0, ERR);
    dpi_charge_request_init(&r);
    r.cost = &cost, r.method = "test", r.units = units;
    return status == DPI_STATUS_OK ? dpi_ledger_reserve(l, dataset, &r, c, ERR) : status;
}

dpi_status reserve_of(dpi_ledger *l, const char *dataset, double rho,
                      const dpi_ledger_units *units) {
    return reserve_cost(l, dataset, rho, units, NULL);
}

dpi_status reserve(double rho) { return reserve_of(the_ledger, "letters", rho, NULL); }

dpi_charge charge(const char *dataset, double rho) {
    dpi_charge c;
    dpi_charge_init(&c);
    assert_ok(reserve_cost(the_ledger, dataset, rho, NULL, &c));
    return c;
}

double rho_of(int64_t amount) { return ((double)amount - .5) / DPI_LEDGER_ONE / 5; }

const dpi_ledger_units *units_of(const char *ids) {
    enum { MOST = 8 };
    static const void *starts[MOST];
    static size_t n_bytes[MOST];
    static uint8_t pays[MOST];
    static dpi_ledger_units units = {.ids = starts, .n_bytes = n_bytes, .pays = pays};
    memset(pays, 9, sizeof pays); /* neither */
    for (units.n = 0; *ids; ids += *ids == ' ') {
        assert_true(units.n < MOST);
        starts[units.n] = ids;
        n_bytes[units.n] = strcspn(ids, " ");
        ids += n_bytes[units.n++];
    }
    return &units;
}

static const char *who_pays(const dpi_ledger_units *units) {
    static char text[16];
    for (size_t i = 0; i < units->n; i++)
        text[i] = (char)('0' + units->pays[i]);
    text[units->n] = '\0';
    return text;
}

const char *pay(const char *dataset, const char *ids, double rho) {
    const dpi_ledger_units *units = units_of(ids);
    assert_ok(reserve_of(the_ledger, dataset, rho, units));
    return who_pays(units);
}

const char *paid(const char *dataset, const char *ids, int64_t id) {
    const dpi_ledger_units *units = units_of(ids);
    assert_ok(dpi_ledger_paid(the_ledger, dataset, id, units, ERR));
    return who_pays(units);
}

int64_t sum_charges(int64_t *n) {
    int64_t sums[2] = {0}, counts[2] = {0};
    bool all_count = true;
    for (int back = 0; back < 2; back++) { /* the oldest first, then the newest */
        dpi_charge c = {.id = back ? INT64_MAX : 0};
        for (;;) {
            const int64_t last = c.id;
            dpi_charge_init(&c);
            assert_ok((back ? dpi_ledger_charge_before
                            : dpi_ledger_charge_next)(the_ledger, "letters", last, &c, ERR));
            if (c.id == 0)
                break;
            assert_true(back ? c.id < last : c.id > last);
            all_count &= c.counted;
            if (!back && all_count) /* what is given back later was there */
                assert_int_equal(c.before, sums[0]);
            sums[back] += c.counted ? c.amount : 0;
            counts[back]++;
        }
    }
    assert_int_equal(sums[1], sums[0]);
    assert_int_equal(counts[1], counts[0]);
    *n = counts[0];
    return sums[0];
}
