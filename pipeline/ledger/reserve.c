/* reserve.c - charging a run, before it reads a record; see dpinfer/ledger.h. */
#include <inttypes.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dpinfer/json.h"
#include "dpinfer/memory.h"
#include "dpinfer/registry.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/ledger/cost_text.h"
#include "pipeline/ledger/ledger.h"

void dpi_charge_request_init_size(dpi_charge_request *r, size_t size) {
    dpi_charge_request made = {0};
    dpi_privacy_unit_init(&made.unit);
    dpi_struct_init(r, size, &made, sizeof made);
}

/* ---- What is charged ------------------------------------------------------------------------- */

static dpi_status fail_budget(const dpi_ledger *l, const dpi_dataset_info *info, int64_t amount,
                              dpi_error *err) {
    const double left = (double)info->left / DPI_LEDGER_ONE;
    return dpi_fail(err, DPI_STATUS_BUDGET,
                    "the budget of the dataset '%s' in %s does not allow this: it costs %.6g, %s "
                    "%.6g of %.6g (Renyi divergence of order %d, for epsilon %g at delta %g)",
                    info->name, l->path, (double)amount / DPI_LEDGER_ONE,
                    info->scope == DPI_SCOPE_UNIT ? "a new unit has" : "left is", left,
                    (double)info->budget / DPI_LEDGER_ONE, info->order, info->epsilon,
                    info->delta);
}

/* ---- Units ----------------------------------------------------------------------------------- */

/* The hashes of an ID, and what the ledger knows of its unit. */
typedef struct unit_state {
    uint8_t hash[DPI_LEDGER_HASH_BYTES];
    uint8_t older[DPI_LEDGER_HASH_BYTES]; /* of an integer as pandas writes it where some have none,
                                             1.0: programs before form 3 took it as it stands */
    bool has_older;
    int64_t id; /* 0: it is new */
    int64_t spent, spent_older;
    bool paid; /* for this charge */
} unit_state;

/* An integer is its digits, as in records. */
static dpi_status hash_id(struct hmac_sha256_ctx *keyed, const void *id, size_t n_bytes,
                          unit_state *unit, dpi_error *err) {
    char *digits;
    *unit = (unit_state){0};
    DPI_TRY(dpi_json_digits(id, n_bytes, &digits, err));
    const size_t n = digits ? strlen(digits) : n_bytes;
    unit->has_older = digits != NULL;
    hmac_sha256_update(keyed, n, digits ? (void *)digits : id);
    hmac_sha256_digest(keyed, sizeof unit->hash, unit->hash); /* and ready for the next one */
    if (digits) {
        hmac_sha256_update(keyed, n, (void *)digits);
        hmac_sha256_update(keyed, 2, (const uint8_t *)".0");
        hmac_sha256_digest(keyed, sizeof unit->older, unit->older);
    }
    dpi_private_free(digits);
    return DPI_STATUS_OK;
}

/* The row of a hash; *id 0: there is none. */
static dpi_status find_row(dpi_ledger *l, const dpi_dataset *d, int64_t charge,
                           const uint8_t *hash, int64_t *id, int64_t *spent, bool *paid,
                           dpi_error *err) {
    sqlite3_stmt *s;
    bool known;
    DPI_TRY(dpi_sql_prepare(l, &s, err,
                            "SELECT id, spent, EXISTS(SELECT 1 FROM payer WHERE charge = ?3 AND"
                            " unit = u.id) FROM unit u WHERE dataset = ?1 AND hash = ?2",
                            "ibi", d->id, hash, (size_t)DPI_LEDGER_HASH_BYTES, charge));
    const dpi_status status = dpi_sql_step(l, s, &known, err);
    known = known && status == DPI_STATUS_OK;
    *id = known ? sqlite3_column_int64(s, 0) : 0;
    *spent = known ? sqlite3_column_int64(s, 1) : 0;
    *paid |= known && sqlite3_column_int(s, 2) != 0;
    sqlite3_finalize(s);
    return status;
}

static dpi_status find_unit(dpi_ledger *l, const dpi_dataset *d, int64_t charge, unit_state *unit,
                            dpi_error *err) {
    int64_t older;
    DPI_TRY(find_row(l, d, charge, unit->hash, &unit->id, &unit->spent, &unit->paid, err));
    return unit->has_older ? find_row(l, d, charge, unit->older, &older, &unit->spent_older,
                                      &unit->paid, err)
                           : DPI_STATUS_OK;
}

/* One unit: charged if its own sum allows it, and once. */
static dpi_status charge_unit(dpi_ledger *l, const dpi_dataset *d, int64_t charge, int64_t amount,
                              unit_state *unit, uint8_t *pays, dpi_error *err) {
    DPI_TRY(find_unit(l, d, charge, unit, err));
    *pays = unit->paid || amount <= d->info.budget - unit->spent - unit->spent_older;
    if (unit->paid || !*pays)
        return DPI_STATUS_OK;
    if (unit->id > 0) {
        DPI_TRY(dpi_sql_do(l, err, "UPDATE unit SET spent = ?1 WHERE id = ?2", "ii",
                           unit->spent + amount, unit->id));
    } else {
        DPI_TRY(dpi_sql_do(l, err, "INSERT INTO unit(dataset, hash, spent) VALUES(?1, ?2, ?3)",
                           "ibi", d->id, unit->hash, sizeof unit->hash, amount));
        unit->id = sqlite3_last_insert_rowid(l->db);
    }
    return dpi_sql_do(l, err, "INSERT INTO payer(charge, unit) VALUES(?1, ?2)", "ii", charge,
                      unit->id);
}

/* What is done with each unit: amount 0 only finds out whether it has paid. */
static dpi_status visit_units(dpi_ledger *l, const dpi_dataset *d, int64_t charge, int64_t amount,
                              const dpi_ledger_units *units, dpi_error *err) {
    struct hmac_sha256_ctx keyed;
    unit_state unit;
    dpi_status status = DPI_STATUS_OK;
    hmac_sha256_set_key(&keyed, sizeof d->key, d->key);
    for (size_t i = 0; i < units->n && status == DPI_STATUS_OK; i++) {
        status = hash_id(&keyed, units->ids[i], units->n_bytes[i], &unit, err);
        if (status != DPI_STATUS_OK)
            break;
        if (amount > 0) {
            status = charge_unit(l, d, charge, amount, &unit, &units->pays[i], err);
        } else {
            status = find_unit(l, d, charge, &unit, err);
            units->pays[i] = status == DPI_STATUS_OK && unit.paid;
        }
    }
    dpi_wipe(&keyed, sizeof keyed);
    dpi_wipe(&unit, sizeof unit);
    return status;
}

dpi_status dpi_ledger_paid(dpi_ledger *l, const char *dataset, int64_t id,
                           const dpi_ledger_units *units, dpi_error *err) {
    dpi_dataset d;
    dpi_charge c;
    dpi_charge_init(&c);
    if (l->form < 2)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the ledger %s has the form 1, which does not tell who paid: open it once "
                        "for writing",
                        l->path);
    DPI_TRY(dpi_check_range("id", id, 1, INT64_MAX - 1, err));
    DPI_TRY(dpi_ledger_charge_next(l, dataset, id - 1, &c, err));
    if (c.id != id)
        return dpi_fail(err, DPI_STATUS_ARG, "%s: the dataset '%s' has no charge %" PRId64,
                        l->path, dataset, id);
    pthread_mutex_lock(&l->lock);
    dpi_status status = dpi_dataset_load(l, dataset, &d, err);
    if (status == DPI_STATUS_OK)
        status = visit_units(l, &d, id, 0, units, err);
    pthread_mutex_unlock(&l->lock);
    dpi_wipe(&d, sizeof d);
    return status;
}

/* ---- The transaction ------------------------------------------------------------------------- */

static dpi_status check_request(const dpi_charge_request *r, dpi_error *err) {
    if (!r->cost || !r->method)
        return dpi_fail(err, DPI_STATUS_ARG, "the cost or the method of a charge is NULL");
    DPI_TRY(
        dpi_ledger_check_text("the method of a charge", r->method, DPI_CHARGE_METHOD_MAX, err));
    if (r->claim && strlen(r->claim) > DPI_CHARGE_CLAIM_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "the claim of a charge: found %zu bytes, allowed "
                                             "0..%d", strlen(r->claim), DPI_CHARGE_CLAIM_MAX);
    return r->note
               ? dpi_ledger_check_text("the note of a charge", r->note, DPI_CHARGE_NOTE_MAX, err)
               : DPI_STATUS_OK;
}

static dpi_status check_dataset(const dpi_ledger *l, const dpi_dataset_info *info,
                                const dpi_charge_request *r, dpi_error *err) {
    if (info->closed[0])
        return dpi_fail(err, DPI_STATUS_STATE, "%s: the dataset '%s' was closed on %s", l->path,
                        info->name, info->closed);
    if ((info->scope == DPI_SCOPE_UNIT) == (r->units != NULL))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "%s: the dataset '%s' counts %s: a charge %s", l->path,
                    info->name, info->scope == DPI_SCOPE_UNIT ? "each unit" : "all units together",
                    info->scope == DPI_SCOPE_UNIT ? "needs the IDs of its units" : "has no units");
}

static dpi_status insert(dpi_ledger *l, const dpi_dataset *d, const dpi_charge_request *r,
                         dpi_charge *c, dpi_error *err) {
    dpi_ledger_date(c->date);
    snprintf(c->method, sizeof c->method, "%s", r->method);
    snprintf(c->note, sizeof c->note, "%s", r->note ? r->note : "");
    dpi_cost_print(r->cost, c->cost, sizeof c->cost);
    DPI_TRY(dpi_sql_do(l, err,
                       "INSERT INTO charge(dataset, amount, before, date, method, note, cost, "
                       "claim, " DPI_UNIT_COLUMNS("") ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
                       " ?10, ?11, ?12, ?13)",
                       "iiittttt" DPI_UNIT_TYPES, d->id, c->amount, c->before, c->date, c->method,
                       c->note, c->cost, r->claim ? r->claim : "", DPI_UNIT_VALUES(c->unit)));
    c->id = sqlite3_last_insert_rowid(l->db);
    return r->units ? visit_units(l, d, c->id, c->amount, r->units, err) : DPI_STATUS_OK;
}

/* Inside the transaction: what is left, what it costs at this dataset's order, and the charge. */
static dpi_status charge(dpi_ledger *l, const char *dataset, const dpi_charge_request *r,
                         dpi_charge *c, dpi_error *err) {
    dpi_dataset d;
    double divergence;
    dpi_status status = dpi_dataset_load(l, dataset, &d, err);
    if (status == DPI_STATUS_OK)
        status = check_dataset(l, &d.info, r, err);
    if (status == DPI_STATUS_OK)
        status = dpi_privacy_unit_join(&d.info.unit, &r->unit, d.info.name, err);
    if (status == DPI_STATUS_OK)
        status = dpi_cost_renyi(r->cost, d.info.order, &divergence, err);
    if (status == DPI_STATUS_OK) {
        c->amount = dpi_ledger_amount_up(divergence);
        c->before = d.info.charged;
        c->counted = 1;
        c->unit = d.info.unit;
        status = c->amount <= d.info.left ? insert(l, &d, r, c, err)
                                          : fail_budget(l, &d.info, c->amount, err);
    }
    dpi_wipe(&d, sizeof d);
    return status;
}

/* Remembers a charge that may be given back: one of units may not. */
static dpi_status remember(dpi_ledger *l, int64_t id, dpi_error *err) {
    if (!dpi_grow(&l->mine, &l->mine_capacity, l->n_mine + 1, sizeof *l->mine))
        return dpi_no_memory(err, "the ledger");
    l->mine[l->n_mine++] = id;
    return DPI_STATUS_OK;
}

dpi_status dpi_ledger_reserve(dpi_ledger *l, const char *dataset, const dpi_charge_request *request,
                              dpi_charge *result, dpi_error *err) {
    dpi_charge c;
    dpi_charge_init(&c);
    DPI_COPY_STRUCT(dpi_charge_request, r, request, err);
    DPI_TRY(check_request(&r, err));
    if (result)
        DPI_CHECK_FIXED(dpi_charge, result, err);
    pthread_mutex_lock(&l->lock);
    dpi_status status = dpi_sql_begin(l, err);
    if (status == DPI_STATUS_OK) {
        status = charge(l, dataset, &r, &c, err);
        if (status == DPI_STATUS_OK && !r.units)
            status = remember(l, c.id, err);
        status = dpi_sql_end(l, status, err);
    }
    pthread_mutex_unlock(&l->lock);
    if (status == DPI_STATUS_OK && result)
        *result = c;
    return status;
}

dpi_status dpi_ledger_reserve_text(dpi_ledger *l, const char *dataset, const dpi_sampler *sampler,
                                   const char *note, dpi_charge *result, dpi_error *err) {
    const dpi_sampler_options *o = dpi_sampler_options_get(sampler);
    dpi_charge_request request;
    dpi_cost cost;
    dpi_cost_init(&cost);
    DPI_TRY(dpi_method_cost(o, dpi_sampler_plan_get(sampler), &cost, err));
    dpi_charge_request_init(&request);
    request.cost = &cost;
    request.method = dpi_method_get(o->method)->name;
    request.note = note;
    request.unit.is_record = 1;
    request.unit.adjacency = o->adjacency;
    return dpi_ledger_reserve(l, dataset, &request, result, err);
}

dpi_status dpi_ledger_give_back(dpi_ledger *l, int64_t id, dpi_error *err) {
    size_t i = 0;
    pthread_mutex_lock(&l->lock);
    while (i < l->n_mine && l->mine[i] != id)
        i++;
    dpi_status status = DPI_STATUS_OK;
    if (i == l->n_mine)
        status = dpi_fail(err, DPI_STATUS_STATE,
                          "the charge %" PRId64 " cannot be given back: it was not made by this "
                          "object, is given back already, or is one of units",
                          id);
    if (status == DPI_STATUS_OK)
        status = dpi_sql_begin(l, err);
    if (status == DPI_STATUS_OK) {
        status = dpi_sql_do(l, err, "UPDATE charge SET counted = 0 WHERE id = ?1", "i", id);
        status = dpi_sql_end(l, status, err);
        if (status == DPI_STATUS_OK)
            l->mine[i] = l->mine[--l->n_mine];
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}
