/* payers.c - see payers.h. */
#include "pipeline/release/payers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dpinfer/memory.h"

/* The IDs of the units that take part, and where these are: private memory. */
typedef struct list {
    dpi_ledger_units units;
    const void **ids; /* [n] */
    size_t *n_bytes, *place;
} list;

static void free_list(list *l) {
    dpi_private_free(l->ids);
    dpi_private_free(l->n_bytes);
    dpi_private_free(l->place);
    dpi_private_free(l->units.pays);
}

static dpi_status make_list(const dpi_payers *p, list *l, dpi_error *err) {
    const size_t n = dpi_records_unit_count(p->records);
    l->ids = dpi_private_malloc((n + 1) * sizeof *l->ids);
    l->n_bytes = dpi_private_malloc((n + 1) * sizeof *l->n_bytes);
    l->place = dpi_private_malloc((n + 1) * sizeof *l->place);
    l->units = (dpi_ledger_units){
        .ids = l->ids, .n_bytes = l->n_bytes, .pays = dpi_private_malloc(n + 1)};
    if (!l->ids || !l->n_bytes || !l->place || !l->units.pays)
        return dpi_no_memory(err, "the units of a charge");
    for (size_t u = 0; u < n; u++) {
        const char *id;
        size_t *k = &l->units.n;
        dpi_records_unit_id(p->records, u, &id, &l->n_bytes[*k]);
        l->ids[*k] = id;
        l->place[*k] = u;
        *k += (!p->in || p->in[u]) && id != NULL; /* without one it is null */
    }
    return DPI_STATUS_OK;
}

static dpi_status charge_list(const dpi_payers *p, const list *l, dpi_charge *charge,
                              dpi_error *err) {
    if (p->paid > 0)
        return dpi_ledger_paid(p->ledger, p->dataset, p->paid, &l->units, err);
    dpi_charge_request request = *p->request;
    request.units = &l->units;
    return dpi_ledger_reserve(p->ledger, p->dataset, &request, charge, err);
}

dpi_status dpi_payers_check(const dpi_payers *p, dpi_error *err) {
    if (p->records && dpi_records_has_units(p->records))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG,
                    "unit_field: found none, needed with the dataset '%s', whose scope is unit: "
                    "its units are recognised by their IDs", p->dataset);
}

dpi_status dpi_payers_charge(const dpi_payers *p, uint8_t **pays, dpi_charge *charge,
                             dpi_error *err) {
    list l = {.ids = NULL};
    DPI_TRY(dpi_payers_check(p, err));
    const size_t n = dpi_records_unit_count(p->records);
    uint8_t *told = dpi_private_malloc(n + 1);
    dpi_status status = told ? make_list(p, &l, err) : dpi_no_memory(err, "the units of a charge");
    if (status == DPI_STATUS_OK)
        status = charge_list(p, &l, charge, err);
    if (status == DPI_STATUS_OK) {
        memset(told, 0, n + 1);
        for (size_t i = 0; i < l.units.n; i++)
            told[l.place[i]] = l.units.pays[i];
        *pays = told;
    } else {
        dpi_private_free(told);
    }
    free_list(&l);
    return status;
}

dpi_status dpi_records_privacy_unit(const dpi_records *records, int32_t adjacency,
                                    int32_t max_per_unit, dpi_privacy_unit *unit,
                                    dpi_error *err) {
    const char *field = dpi_records_unit_field(records);
    const size_t n = field ? strlen(field) : 0;
    dpi_privacy_unit_init(unit);
    unit->adjacency = adjacency;
    unit->is_record = field == NULL;
    if (field)
        unit->max_per_unit = max_per_unit;
    else
        unit->record_kind = dpi_records_kind(records);
    if (n > DPI_UNIT_FIELD_MAX)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "unit_field: found %zu bytes, allowed with a ledger are 1..%d", n,
                        DPI_UNIT_FIELD_MAX);
    memcpy(unit->unit_field, field ? field : "", n + 1);
    return DPI_STATUS_OK;
}

void dpi_claim_charge_free(dpi_claim_charge *charge) {
    free(charge->claim);
    charge->claim = NULL;
}

dpi_status dpi_claim_charge_of(const dpi_claim *c, const dpi_records *records,
                               dpi_claim_charge *charge, dpi_error *err) {
    char guarantee[128];
    dpi_mechanism_info info;
    const int64_t n = c->parts[0].n_runs;
    dpi_charge_request_init(&charge->request);
    dpi_mechanism_info_get(c->parts[0].mechanism, &info);
    DPI_TRY(dpi_claim_cost(c, &charge->cost, err));
    charge->request.unit.adjacency = c->adjacency;
    if (records)
        DPI_TRY(dpi_records_privacy_unit(records, c->adjacency, c->max_per_unit,
                                         &charge->request.unit, err));
    dpi_claim_guarantee(c, guarantee, sizeof guarantee);
    snprintf(charge->note, sizeof charge->note, "%" PRId64 " %.*s, %s", n,
             (int)strlen(info.runs) - (n == 1), info.runs, guarantee);
    charge->request.cost = &charge->cost;
    charge->request.method = info.name;
    charge->request.note = charge->note;
    DPI_TRY(dpi_claim_charged(c, &charge->claim, err));
    charge->request.claim = charge->claim;
    return DPI_STATUS_OK;
}

dpi_status dpi_payers_charge_claim(const dpi_payers *payers, dpi_claim *c, uint8_t **pays,
                                   int64_t *id, dpi_error *err) {
    dpi_payers p = *payers;
    dpi_claim_charge asked;
    dpi_dataset_info dataset;
    dpi_charge charge;
    if (!p.ledger)
        return DPI_STATUS_OK;
    dpi_dataset_info_init(&dataset);
    dpi_charge_init(&charge);
    DPI_TRY(dpi_ledger_info(p.ledger, p.dataset, &dataset, err));
    DPI_TRY(dpi_claim_charge_of(c, p.records, &asked, err));
    p.request = &asked.request;
    const dpi_status status =
        dataset.scope == DPI_SCOPE_UNIT
            ? dpi_payers_charge(&p, pays, &charge, err)
            : dpi_ledger_reserve(p.ledger, p.dataset, &asked.request, &charge, err);
    dpi_claim_charge_free(&asked);
    if (status != DPI_STATUS_OK)
        return status;
    *id = charge.id;
    dpi_payers_keep(&c->ledger, &dataset, &charge);
    return DPI_STATUS_OK;
}

void dpi_payers_keep(dpi_claim_ledger *l, const dpi_dataset_info *info, const dpi_charge *charge) {
    *l = (dpi_claim_ledger){.epsilon = info->epsilon,
                            .delta = info->delta,
                            .scope = info->scope,
                            .order = info->order,
                            .budget = info->budget,
                            .charge = charge->amount,
                            .before = charge->before};
    memcpy(l->dataset, info->name, sizeof l->dataset);
}

bool dpi_payers_give_back(dpi_ledger *ledger, int64_t *charge) {
    const bool done = *charge > 0 && dpi_ledger_give_back(ledger, *charge, NULL) == DPI_STATUS_OK;
    *charge = 0;
    return done;
}
