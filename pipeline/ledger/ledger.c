/* ledger.c - datasets and their charges; see dpinfer/ledger.h. */
#include "pipeline/ledger/ledger.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/struct.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/ledger/cost_text.h"

DPI_STRUCT_DEFAULTS(dpi_ledger_options, .busy_ms = 10000)
void dpi_dataset_options_init_size(dpi_dataset_options *o, size_t size) {
    dpi_dataset_options made = {0};
    dpi_privacy_unit_init(&made.unit);
    dpi_struct_init(o, size, &made, sizeof made);
}
void dpi_dataset_info_init_size(dpi_dataset_info *info, size_t size) {
    dpi_dataset_info made = {0};
    dpi_privacy_unit_init(&made.unit);
    dpi_struct_init(info, size, &made, sizeof made);
}
void dpi_charge_init_size(dpi_charge *charge, size_t size) {
    dpi_charge made = {0};
    dpi_privacy_unit_init(&made.unit);
    dpi_struct_init(charge, size, &made, sizeof made);
}

const char *dpi_scope_name(int32_t scope) {
    return scope == DPI_SCOPE_DATASET ? "dataset" : scope == DPI_SCOPE_UNIT ? "unit" : NULL;
}

/* ---- The file -------------------------------------------------------------------------------- */

dpi_status dpi_ledger_open(const char *path, const dpi_ledger_options *options,
                           dpi_ledger **ledger, dpi_error *err) {
    if (!path || !ledger)
        return dpi_fail(err, DPI_STATUS_ARG, "the path or the ledger is NULL");
    DPI_COPY_STRUCT_IF(dpi_ledger_options, o, options, err);
    DPI_TRY(dpi_check_range("busy_ms", o.busy_ms, 0, 600000, err));
    if (o.create && o.read_only)
        return dpi_fail(err, DPI_STATUS_ARG, "create and read_only: allowed is one of them");
    dpi_ledger *l = calloc(1, sizeof *l);
    if (!l || !(l->path = strdup(path)) || pthread_mutex_init(&l->lock, NULL) != 0) {
        if (l)
            free(l->path);
        free(l);
        return dpi_no_memory(err, "the ledger");
    }
    l->busy_ms = o.busy_ms;
    const dpi_status status = dpi_sql_open(l, &o, err);
    if (status == DPI_STATUS_OK)
        *ledger = l;
    else
        dpi_ledger_close(l);
    return status;
}

void dpi_ledger_close(dpi_ledger *l) {
    if (!l)
        return;
    sqlite3_close(l->db);
    pthread_mutex_destroy(&l->lock);
    free(l->mine);
    free(l->sums);
    free(l->path);
    free(l);
}

void dpi_ledger_date(char date[24]) {
    const time_t now = time(NULL);
    struct tm t;
    date[0] = '\0';
    if (gmtime_r(&now, &t) && strftime(date, 24, "%Y-%m-%dT%H:%M:%SZ", &t) == 0)
        date[0] = '\0';
}

/* ---- Reading a dataset ----------------------------------------------------------------------- */

enum { SELECT_BYTES = 1024, UNIT_COLUMN = 13 };

/* With the last charge, which has the privacy unit of all. An earlier form has none. */
static void select_dataset(const dpi_ledger *l, const char *which, char sql[SELECT_BYTES]) {
    static const char *const units[] = {
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        DPI_UNIT_COLUMNS("d.") ", " DPI_UNIT_COLUMNS("c.")};
    snprintf(sql, SELECT_BYTES,
             "SELECT d.id, name, opened, closed, epsilon, delta, scope, renyi_order, budget,"
             " unit_key,"
             " (SELECT COALESCE(SUM(amount), 0) FROM charge WHERE dataset = d.id AND counted = 1),"
             " (SELECT COUNT(*) FROM charge WHERE dataset = d.id), COALESCE(c.amount, 0), %s"
             " FROM dataset d LEFT JOIN charge c ON c.id = (SELECT id FROM charge"
             " WHERE dataset = d.id AND +counted = 1 ORDER BY id DESC LIMIT 1) %s",
             units[l->form >= 3], which);
}

/* The budget of a file that was changed by hand, or is damaged, is not believed. */
static dpi_status check_numbers(const dpi_ledger *l, const dpi_dataset *d, dpi_error *err) {
    const dpi_dataset_info *info = &d->info;
    double budget;
    const dpi_status status =
        dpi_renyi_budget(info->epsilon, info->delta, info->order, &budget, NULL);
    /* Mathematical libraries may differ in the last places. */
    if (status == DPI_STATUS_OK && info->budget >= 0 && info->charged >= 0 &&
        (double)info->budget <= floor(budget * DPI_LEDGER_ONE * (1 + 0x1p-40)) + 1)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_FORMAT,
                    "%s: the ledger is damaged: the numbers of the dataset '%s' do not fit each "
                    "other",
                    l->path, info->name);
}

/* Of a unit no more is told than what follows from charges, which are public. */
static dpi_status derive(dpi_dataset_info *info, dpi_error *err) {
    const bool unit = info->scope == DPI_SCOPE_UNIT;
    info->left = unit || info->charged < 0 ? info->budget : info->budget - info->charged;
    if (info->left < 0)
        info->left = 0;
    if (info->charged <= 0)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_renyi_epsilon((double)info->charged / DPI_LEDGER_ONE, info->delta, info->order,
                              &info->epsilon_charged, err));
    if (unit && info->epsilon_charged > info->epsilon)
        info->epsilon_charged = info->epsilon;
    return DPI_STATUS_OK;
}

static dpi_status fill(const dpi_ledger *l, sqlite3_stmt *s, dpi_dataset *d, dpi_error *err) {
    dpi_dataset_info *info = &d->info;
    dpi_dataset_info_init(info);
    d->id = sqlite3_column_int64(s, 0);
    dpi_sql_text(s, 1, info->name, sizeof info->name);
    dpi_sql_text(s, 2, info->opened, sizeof info->opened);
    dpi_sql_text(s, 3, info->closed, sizeof info->closed);
    info->epsilon = sqlite3_column_double(s, 4);
    info->delta = sqlite3_column_double(s, 5);
    info->scope = sqlite3_column_int(s, 6);
    info->order = sqlite3_column_int(s, 7);
    info->budget = sqlite3_column_int64(s, 8);
    if (sqlite3_column_bytes(s, 9) == DPI_LEDGER_KEY_BYTES)
        memcpy(d->key, sqlite3_column_blob(s, 9), DPI_LEDGER_KEY_BYTES);
    else
        info->budget = -1; /* refused below */
    info->charged = sqlite3_column_int64(s, 10);
    info->n_charges = sqlite3_column_int64(s, 11);
    info->last = sqlite3_column_int64(s, 12);
    DPI_TRY(dpi_privacy_unit_read(l, s, UNIT_COLUMN + (info->last > 0) * DPI_N_UNIT_COLUMNS,
                                  &info->unit, err));
    DPI_TRY(check_numbers(l, d, err));
    return derive(info, err);
}

/* The row of a dataset; *found false: there is none. */
static dpi_status read_dataset(dpi_ledger *l, sqlite3_stmt *s, dpi_dataset *d, bool *found,
                               dpi_error *err) {
    dpi_status status = dpi_sql_step(l, s, found, err);
    if (status == DPI_STATUS_OK && *found)
        status = fill(l, s, d, err);
    sqlite3_finalize(s);
    return status;
}

static dpi_status read_at(dpi_ledger *l, int32_t index, dpi_dataset *d, bool *found,
                          dpi_error *err) {
    sqlite3_stmt *s;
    char sql[SELECT_BYTES];
    select_dataset(l, "ORDER BY d.id LIMIT 1 OFFSET ?1", sql);
    DPI_TRY(dpi_sql_prepare(l, &s, err, sql, "i", (int64_t)index));
    return read_dataset(l, s, d, found, err);
}

/* With the names that there are. */
static dpi_status fail_unknown(dpi_ledger *l, const char *name, dpi_error *err) {
    char names[200] = "";
    size_t n = 0;
    dpi_dataset d;
    bool found = true;
    for (int32_t i = 0; n < sizeof names - DPI_DATASET_NAME_MAX - 8; i++) {
        DPI_TRY(read_at(l, i, &d, &found, err));
        if (!found)
            break;
        n += (size_t)snprintf(names + n, sizeof names - n, "%s'%s'", n > 0 ? ", " : "",
                              d.info.name);
    }
    dpi_wipe(d.key, sizeof d.key);
    if (n == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: the ledger has no dataset", l->path);
    return dpi_fail(err, DPI_STATUS_ARG, "%s: the ledger has no dataset '%.*s'; it has %s%s",
                    l->path, DPI_DATASET_NAME_MAX, name, names, found ? ", ..." : "");
}

dpi_status dpi_dataset_load(dpi_ledger *l, const char *name, dpi_dataset *d, dpi_error *err) {
    sqlite3_stmt *s;
    bool found;
    char sql[SELECT_BYTES];
    DPI_TRY(dpi_ledger_check_text("the name of a dataset", name, DPI_DATASET_NAME_MAX, err));
    select_dataset(l, "WHERE name = ?1", sql);
    DPI_TRY(dpi_sql_prepare(l, &s, err, sql, "t", name));
    DPI_TRY(read_dataset(l, s, d, &found, err));
    return found ? DPI_STATUS_OK : fail_unknown(l, name, err);
}

/* Adds the charges after those of the sum, each rounded up; rho INFINITY: one of them has no cost
 * that fits what was charged. */
static dpi_status add_rho(dpi_ledger *l, int32_t order, dpi_ledger_rho *sum, dpi_error *err) {
    sqlite3_stmt *s;
    dpi_cost cost;
    double divergence;
    bool row = true;
    DPI_TRY(dpi_sql_prepare(l, &s, err, "SELECT id, amount, cost FROM charge WHERE dataset = ?1 AND"
                            " counted = 1 AND id > ?2 ORDER BY id", "ii", sum->dataset,
                            sum->last_id));
    dpi_status status = dpi_sql_step(l, s, &row, err);
    while (status == DPI_STATUS_OK && row) {
        const int64_t amount = sqlite3_column_int64(s, 1);
        const char *text = (const char *)sqlite3_column_text(s, 2);
        const bool fits = sum->rho < INFINITY && text && dpi_cost_parse(text, &cost) &&
                          dpi_cost_renyi(&cost, order, &divergence, NULL) == DPI_STATUS_OK &&
                          dpi_ledger_amount_is((double)amount, divergence * DPI_LEDGER_ONE);
        sum->rho = fits ? nextafter(sum->rho + dpi_cost_rho(&cost), INFINITY) : INFINITY;
        sum->last_id = sqlite3_column_int64(s, 0);
        sum->amount += amount;
        status = dpi_sql_step(l, s, &row, err);
    }
    sqlite3_finalize(s);
    return status;
}

/* The rho of all charges as zCDP. A charge that was given back, or changed by hand, shows in their
 * sum: then all are read again. */
static dpi_status sum_rho(dpi_ledger *l, const dpi_dataset *d, double *rho, dpi_error *err) {
    size_t i = 0;
    while (i < l->n_sums && l->sums[i].dataset != d->id)
        i++;
    if (i == l->n_sums) {
        if (!dpi_grow(&l->sums, &l->sums_capacity, i + 1, sizeof *l->sums))
            return dpi_no_memory(err, "the ledger");
        l->sums[l->n_sums++] = (dpi_ledger_rho){.dataset = d->id};
    }
    dpi_ledger_rho sum = l->sums[i];
    DPI_TRY(add_rho(l, d->info.order, &sum, err));
    if (sum.amount != d->info.charged) {
        sum = (dpi_ledger_rho){.dataset = d->id};
        DPI_TRY(add_rho(l, d->info.order, &sum, err));
    }
    l->sums[i] = sum;
    *rho = sum.rho;
    return DPI_STATUS_OK;
}

/* The order is chosen for the whole budget. For a small sum its epsilon is far too large: after
 * a charge of rho .0001 in a budget of epsilon 5 it is 2.25, and as zCDP, which has all orders,
 * .05. */
static dpi_status refine(dpi_ledger *l, dpi_dataset *d, dpi_error *err) {
    double rho = INFINITY, epsilon;
    dpi_dataset_info *info = &d->info;
    if (info->charged <= 0)
        return DPI_STATUS_OK;
    DPI_TRY(sum_rho(l, d, &rho, err));
    if (rho <= 1e6) {
        DPI_TRY(dpi_zcdp_epsilon(rho, info->delta, &epsilon, err));
        info->epsilon_charged = fmin(info->epsilon_charged, epsilon);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_ledger_info(dpi_ledger *l, const char *dataset, dpi_dataset_info *info,
                           dpi_error *err) {
    dpi_dataset d;
    DPI_CHECK_STRUCT(dpi_dataset_info, info, err);
    pthread_mutex_lock(&l->lock);
    dpi_status status = dpi_dataset_load(l, dataset, &d, err);
    if (status == DPI_STATUS_OK)
        status = refine(l, &d, err);
    pthread_mutex_unlock(&l->lock);
    if (status == DPI_STATUS_OK)
        dpi_struct_give(info, &d.info, sizeof *info);
    dpi_wipe(&d, sizeof d);
    return status;
}

dpi_status dpi_ledger_info_at(dpi_ledger *l, int32_t index, dpi_dataset_info *info,
                              dpi_error *err) {
    dpi_dataset d;
    bool found = false;
    DPI_CHECK_STRUCT(dpi_dataset_info, info, err);
    DPI_TRY(dpi_check_range("index", index, 0, INT32_MAX, err));
    dpi_dataset_info_init_size(info, info->struct_size);
    pthread_mutex_lock(&l->lock);
    dpi_status status = read_at(l, index, &d, &found, err);
    if (status == DPI_STATUS_OK && found)
        status = refine(l, &d, err);
    pthread_mutex_unlock(&l->lock);
    if (status == DPI_STATUS_OK && found)
        dpi_struct_give(info, &d.info, sizeof *info);
    dpi_wipe(&d, sizeof d);
    return status;
}

/* ---- Adding and closing ---------------------------------------------------------------------- */

static dpi_status insert(dpi_ledger *l, const dpi_dataset_options *o, int32_t order,
                         int64_t budget, const uint8_t *key, dpi_error *err) {
    char date[24];
    sqlite3_stmt *s;
    bool found;
    DPI_TRY(dpi_sql_prepare(l, &s, err, "SELECT 1 FROM dataset WHERE name = ?1", "t", o->name));
    const dpi_status status = dpi_sql_step(l, s, &found, err);
    sqlite3_finalize(s);
    if (status == DPI_STATUS_OK && found)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: the ledger has a dataset '%s' already", l->path,
                        o->name);
    DPI_TRY(status);
    dpi_ledger_date(date);
    return dpi_sql_do(l, err,
                      "INSERT INTO dataset(name, epsilon, delta, renyi_order, budget, scope,"
                      " unit_key, opened, " DPI_UNIT_COLUMNS("") ") VALUES(?1, ?2, ?3, ?4, ?5,"
                      " ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                      "trriiibt" DPI_UNIT_TYPES, o->name, o->epsilon, o->delta, (int64_t)order,
                      budget, (int64_t)o->scope, key, (size_t)DPI_LEDGER_KEY_BYTES, date,
                      DPI_UNIT_VALUES(o->unit));
}

dpi_status dpi_ledger_add(dpi_ledger *l, const dpi_dataset_options *options, dpi_error *err) {
    uint8_t key[DPI_LEDGER_KEY_BYTES];
    int32_t order;
    double budget;
    DPI_COPY_STRUCT(dpi_dataset_options, o, options, err);
    if (!o.name || !o.name[0])
        return dpi_fail(err, DPI_STATUS_ARG, "the dataset has no name");
    DPI_TRY(dpi_ledger_check_text("the name of a dataset", o.name, DPI_DATASET_NAME_MAX, err));
    DPI_TRY(dpi_check_range("scope", o.scope, DPI_SCOPE_DATASET, DPI_SCOPE_UNIT, err));
    dpi_privacy_unit open;
    dpi_privacy_unit_init(&open);
    DPI_TRY(dpi_privacy_unit_join(&open, &o.unit, o.name, err)); /* checks it */
    DPI_TRY(dpi_renyi_order(o.epsilon, o.delta, &order, err));
    DPI_TRY(dpi_renyi_budget(o.epsilon, o.delta, order, &budget, err));
    DPI_TRY(dpi_random_fill(NULL, NULL, key, sizeof key, err));
    pthread_mutex_lock(&l->lock);
    dpi_status status = dpi_sql_begin(l, err);
    if (status == DPI_STATUS_OK)
        status = dpi_sql_end(
            l, insert(l, &o, order, dpi_ledger_amount_down(budget), key, err), err);
    pthread_mutex_unlock(&l->lock);
    dpi_wipe(key, sizeof key);
    return status;
}

static dpi_status seal(dpi_ledger *l, const char *dataset, dpi_error *err) {
    dpi_dataset d;
    char date[24];
    DPI_TRY(dpi_dataset_load(l, dataset, &d, err));
    dpi_wipe(d.key, sizeof d.key);
    if (d.info.closed[0])
        return dpi_fail(err, DPI_STATUS_STATE, "%s: the dataset '%s' was closed on %s", l->path,
                        dataset, d.info.closed);
    dpi_ledger_date(date);
    return dpi_sql_do(l, err, "UPDATE dataset SET closed = ?1 WHERE id = ?2", "ti",
                      date[0] ? date : "?", d.id);
}

dpi_status dpi_ledger_seal(dpi_ledger *l, const char *dataset, dpi_error *err) {
    pthread_mutex_lock(&l->lock);
    dpi_status status = dpi_sql_begin(l, err);
    if (status == DPI_STATUS_OK)
        status = dpi_sql_end(l, seal(l, dataset, err), err);
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* ---- Reading charges ------------------------------------------------------------------------- */

/* `which`: of the charges of the dataset ?1, the one that ?2 says. */
static dpi_status read_charge(dpi_ledger *l, const char *dataset, const char *which, int64_t id,
                              dpi_charge *c, dpi_error *err) {
    sqlite3_stmt *s;
    bool row;
    dpi_dataset d;
    char sql[SELECT_BYTES];
    snprintf(sql, sizeof sql,
             "SELECT id, amount, counted, date, method, note, cost, before%s FROM charge"
             " WHERE dataset = (SELECT id FROM dataset WHERE name = ?1) AND %s LIMIT 1",
             l->form >= 3 ? ", " DPI_UNIT_COLUMNS("") : "", which);
    DPI_TRY(dpi_ledger_check_text("the name of a dataset", dataset, DPI_DATASET_NAME_MAX, err));
    DPI_TRY(dpi_sql_prepare(l, &s, err, sql, "ti", dataset, id));
    dpi_status status = dpi_sql_step(l, s, &row, err);
    if (status == DPI_STATUS_OK && row) {
        c->id = sqlite3_column_int64(s, 0);
        c->amount = sqlite3_column_int64(s, 1);
        c->counted = sqlite3_column_int(s, 2);
        dpi_sql_text(s, 3, c->date, sizeof c->date);
        dpi_sql_text(s, 4, c->method, sizeof c->method);
        dpi_sql_text(s, 5, c->note, sizeof c->note);
        dpi_sql_text(s, 6, c->cost, sizeof c->cost);
        c->before = sqlite3_column_int64(s, 7);
        if (l->form >= 3)
            status = dpi_privacy_unit_read(l, s, 8, &c->unit, err);
    }
    sqlite3_finalize(s);
    if (status == DPI_STATUS_OK && !row) { /* whether there is such a dataset */
        status = dpi_dataset_load(l, dataset, &d, err);
        dpi_wipe(&d, sizeof d);
    }
    return status;
}

static dpi_status find_charge(dpi_ledger *l, const char *dataset, const char *which, int64_t id,
                              dpi_charge *charge, dpi_error *err) {
    DPI_CHECK_FIXED(dpi_charge, charge, err);
    dpi_charge_init(charge);
    pthread_mutex_lock(&l->lock);
    const dpi_status status = read_charge(l, dataset, which, id, charge, err);
    pthread_mutex_unlock(&l->lock);
    return status;
}

dpi_status dpi_ledger_charge_next(dpi_ledger *l, const char *dataset, int64_t after,
                                  dpi_charge *charge, dpi_error *err) {
    return find_charge(l, dataset, "id > ?2 ORDER BY id", after, charge, err);
}

dpi_status dpi_ledger_charge_before(dpi_ledger *l, const char *dataset, int64_t before,
                                    dpi_charge *charge, dpi_error *err) {
    return find_charge(l, dataset, "id < ?2 ORDER BY id DESC", before, charge, err);
}

static dpi_status read_claim(dpi_ledger *l, int64_t id, char **claim, dpi_error *err) {
    sqlite3_stmt *s;
    bool row;
    DPI_TRY(dpi_sql_prepare(l, &s, err,
                            l->form >= 4 ? "SELECT claim FROM charge WHERE id = ?1"
                                         : "SELECT '' FROM charge WHERE id = ?1",
                            "i", id));
    dpi_status status = dpi_sql_step(l, s, &row, err);
    if (status == DPI_STATUS_OK && !row)
        status = dpi_fail(err, DPI_STATUS_ARG, "%s: found no charge %lld", l->path, (long long)id);
    const char *text = row ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (status == DPI_STATUS_OK && text && text[0] && !(*claim = strdup(text)))
        status = dpi_no_memory(err, "the claim of a charge");
    sqlite3_finalize(s);
    return status;
}

dpi_status dpi_ledger_charge_claim(dpi_ledger *l, int64_t id, char **claim, dpi_error *err) {
    *claim = NULL;
    pthread_mutex_lock(&l->lock);
    const dpi_status status = read_claim(l, id, claim, err);
    pthread_mutex_unlock(&l->lock);
    return status;
}
