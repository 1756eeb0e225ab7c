#include "tests/pipeline/ledger/ledger_support.h"

#include <sqlite3.h>
#include <stdio.h>

#include "tests/pipeline/ledger/form_1.h"

void bench_make(bench *b) {
    make_dir(b->folder, sizeof b->folder);
    snprintf(b->path, sizeof b->path, "%s/year.ledger", b->folder);
}

void bench_remove(bench *b) { remove_dir(b->folder); }

/* Waits for as long as many others, and a slow disk, may take. */
static dpi_ledger_options patient(void) {
    dpi_ledger_options o;
    dpi_ledger_options_init(&o);
    o.busy_ms = 300000;
    return o;
}

dpi_status open_in_child(const char *path, dpi_ledger **ledger) {
    const dpi_ledger_options o = patient();
    return dpi_ledger_open(path, &o, ledger, NULL);
}

dpi_ledger *open_ledger(const char *path, int32_t create) {
    dpi_ledger_options o = patient();
    dpi_ledger *ledger = NULL;
    dpi_error err;
    o.create = create;
    assert_ok(dpi_ledger_open(path, &o, &ledger, &err), &err);
    return ledger;
}

void add_letters(dpi_ledger *ledger, int32_t scope) {
    dpi_dataset_options o;
    dpi_error err;
    dpi_dataset_options_init(&o);
    o.name = "letters";
    o.epsilon = 5;
    o.delta = 1e-5;
    o.scope = scope;
    assert_ok(dpi_ledger_add(ledger, &o, &err), &err);
}

dpi_dataset_info info_of(dpi_ledger *ledger, const char *dataset) {
    dpi_dataset_info info;
    dpi_error err;
    dpi_dataset_info_init(&info);
    assert_ok(dpi_ledger_info(ledger, dataset, &info, &err), &err);
    return info;
}

void exec_sql(const char *path, const char *sql) {
    sqlite3 *db;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    assert_int_equal(sqlite3_open_v2(path, &db, flags, "unix"), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

void make_ledger_of_form_1(const char *path) { exec_sql(path, form_1_sql); }

double rho_of(int64_t amount) { return ((double)amount - .5) / DPI_LEDGER_ONE / 5; }

dpi_status reserve_rho(dpi_ledger *ledger, const char *dataset, double rho, dpi_charge *charge,
                       dpi_error *err) {
    dpi_charge_request r;
    dpi_cost cost;
    dpi_cost_init(&cost);
    assert_ok(dpi_cost_add(&cost, DPI_COST_ZCDP, 1, rho, 0, err), err);
    dpi_charge_request_init(&r);
    r.cost = &cost;
    r.method = "test";
    return dpi_ledger_reserve(ledger, dataset, &r, charge, err);
}

/* The newest first. */
static int64_t sum_backwards(dpi_ledger *ledger, const char *dataset, int64_t *n) {
    dpi_charge c = {.id = INT64_MAX};
    dpi_error err;
    int64_t sum = 0;
    *n = 0;
    for (;;) {
        const int64_t before = c.id;
        dpi_charge_init(&c);
        assert_ok(dpi_ledger_charge_before(ledger, dataset, before, &c, &err), &err);
        if (c.id == 0)
            return sum;
        assert_true(c.id < before);
        sum += c.counted ? c.amount : 0;
        ++*n;
    }
}

int64_t sum_charges(dpi_ledger *ledger, const char *dataset, int64_t *n) {
    dpi_charge c;
    dpi_error err;
    int64_t sum = 0, n_again;
    int32_t all_count = 1;
    *n = 0;
    dpi_charge_init(&c);
    for (;;) {
        const int64_t after = c.id;
        assert_ok(dpi_ledger_charge_next(ledger, dataset, after, &c, &err), &err);
        if (c.id == 0)
            break;
        assert_true(c.id > after);
        all_count &= c.counted;
        if (all_count) /* what is given back later was there */
            assert_int_equal(c.before, sum);
        sum += c.counted ? c.amount : 0;
        ++*n;
    }
    assert_int_equal(sum_backwards(ledger, dataset, &n_again), sum);
    assert_int_equal(n_again, *n);
    return sum;
}
