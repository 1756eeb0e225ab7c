/* charge.c - a release and its ledger: what it costs is on the disk before a record is read. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/journal/journal.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/release/payers.h"
#include "pipeline/release/release.h"

/* Only what holds can be counted. */
static dpi_status check(const dpi_release *r, dpi_error *err) {
    const char *warning = dpi_claim_warning(&r->claim);
    if (!r->options.dataset)
        return dpi_fail(err, DPI_STATUS_ARG, "dataset: found none, needed with a ledger");
    if (r->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "the release has begun already");
    if (warning)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a ledger counts guarantees, and this run has none: %s", warning);
    return DPI_STATUS_OK;
}

static void describe(const dpi_claim *c, char *note, size_t size) {
    char guarantee[128];
    dpi_claim_guarantee(c, guarantee, sizeof guarantee);
    snprintf(note, size, "%d text%s, %s", c->n_texts, c->n_texts == 1 ? "" : "s", guarantee);
}

/* A plan may have no records: then only the adjacency is known. */
static dpi_status find_unit(const dpi_release *r, dpi_privacy_unit *unit, dpi_error *err) {
    const dpi_sampler_options *o = &r->claim.method;
    dpi_privacy_unit_init(unit);
    unit->adjacency = o->adjacency;
    return r->options.records ? dpi_records_privacy_unit(r->options.records, o->adjacency,
                                                         o->max_per_unit, unit, err)
                              : DPI_STATUS_OK;
}

static void keep(dpi_release *r, const dpi_dataset_info *info, const dpi_charge *charge) {
    dpi_payers_keep(&r->claim.ledger, info, charge);
    r->charge = charge->id;
}

/* ---- Units that pay each for itself ---------------------------------------------------------- */

/* Which units are in the run. */
typedef struct places {
    const dpi_release *r;
    size_t most;      /* by position without labels: that batches have a slot for */
    size_t *n_before; /* [n_labels] units of the label so far; private memory */
} places;

/* Of each unit, in their order: by position whether a batch has a slot for it, with private labels
 * whether its label is one of the run; every unit has a group. */
static bool is_in_run(places *p, size_t unit) {
    const dpi_release *r = p->r;
    if (r->labels.n == 0 || r->options.n_clusters > 0)
        return unit < p->most;
    const int32_t label = dpi_labels_find(&r->labels, r->options.records, unit);
    if (label < 0 || r->claim.labels == DPI_LABELS_PRIVATE)
        return label >= 0;
    return p->n_before[label]++ / (size_t)r->claim.method.denominator <
           (size_t)r->labels.n_texts[label];
}

/* in [units] of the run. */
static dpi_status find_places(const dpi_release *r, uint8_t **in, dpi_error *err) {
    const size_t n_labels = (size_t)r->labels.n, n = dpi_records_unit_count(r->options.records);
    places p = {.r = r,
                .most = dpi_claim_is_assigned(&r->claim) || n_labels > 0
                            ? SIZE_MAX
                            : (size_t)r->claim.n_texts * (size_t)r->claim.method.denominator,
                .n_before = dpi_private_malloc((n_labels + 1) * sizeof *p.n_before)};
    *in = p.n_before ? dpi_private_malloc(n + 1) : NULL;
    for (size_t i = 0; i < n_labels && p.n_before; i++)
        p.n_before[i] = 0;
    for (size_t u = 0; u < n && *in; u++)
        (*in)[u] = is_in_run(&p, u);
    dpi_private_free(p.n_before);
    return *in ? DPI_STATUS_OK : dpi_no_memory(err, "the units of a charge");
}

/* Charges each unit for itself: which ones have paid, in r->pays. */
static dpi_status charge_units(dpi_release *r, int64_t paid, dpi_charge_request *request,
                               dpi_charge *charge, dpi_error *err) {
    uint8_t *in, *pays;
    dpi_payers p = {.records = r->options.records, .ledger = r->options.ledger,
                    .dataset = r->options.dataset, .request = request, .paid = paid};
    DPI_TRY(dpi_payers_check(&p, err));
    DPI_TRY(find_places(r, &in, err));
    p.in = in;
    const dpi_status status = dpi_payers_charge(&p, &pays, charge, err);
    dpi_private_free(in);
    if (status != DPI_STATUS_OK)
        return status;
    dpi_private_free(r->pays);
    r->pays = pays;
    return DPI_STATUS_OK;
}

static dpi_status charge_run(dpi_release *r, int32_t scope, dpi_charge_request *request,
                             dpi_charge *charge, dpi_error *err) {
    return scope == DPI_SCOPE_UNIT
               ? charge_units(r, 0, request, charge, err)
               : dpi_ledger_reserve(r->options.ledger, r->options.dataset, request, charge, err);
}

bool dpi_release_unit_pays(const dpi_release *r, size_t unit) { return !r->pays || r->pays[unit]; }

/* ---- The charge ------------------------------------------------------------------------------ */

/* A job that goes on was charged when it was begun. r->charge stays 0: it is not given back. */
static dpi_status continue_charge(dpi_release *r, dpi_error *err) {
    dpi_dataset_info info;
    dpi_charge charge;
    DPI_TRY(dpi_release_find_charge(r, &charge, err));
    if (!r->options.ledger)
        return DPI_STATUS_OK;
    dpi_dataset_info_init(&info);
    DPI_TRY(dpi_ledger_info(r->options.ledger, r->options.dataset, &info, err));
    keep(r, &info, &charge);
    r->charge = 0;
    if (info.scope != DPI_SCOPE_UNIT)
        return DPI_STATUS_OK;
    return charge_units(r, charge.id, NULL, NULL, err);
}

dpi_status dpi_release_reserve(dpi_release *r, dpi_error *err) {
    char note[DPI_CHARGE_NOTE_MAX + 1];
    dpi_charge_request request;
    dpi_dataset_info info;
    dpi_charge charge;
    dpi_cost cost;
    if (r->options.journal && r->options.n_shards == 0)
        DPI_TRY(dpi_release_own_ledger(r, dpi_journal_root(r->options.journal), err));
    if (dpi_release_goes_on(r))
        return continue_charge(r, err);
    if (!r->options.ledger || r->charge > 0)
        return DPI_STATUS_OK;
    if (r->options.charged)
        return DPI_STATUS_OK;
    DPI_TRY(check(r, err));
    DPI_TRY(dpi_claim_cost(&r->claim, &cost, err));
    describe(&r->claim, note, sizeof note);
    dpi_charge_request_init(&request);
    dpi_dataset_info_init(&info);
    dpi_charge_init(&charge);
    request.cost = &cost;
    request.method = dpi_method_get(r->claim.method.method)->name;
    request.note = note;
    DPI_TRY(find_unit(r, &request.unit, err));
    /* What is told of the dataset beside the charge never changes. */
    DPI_TRY(dpi_ledger_info(r->options.ledger, r->options.dataset, &info, err));
    DPI_TRY(charge_run(r, info.scope, &request, &charge, err));
    keep(r, &info, &charge);
    return DPI_STATUS_OK;
}

dpi_status dpi_release_preview(dpi_release *r, dpi_error *err) {
    dpi_privacy_unit unit;
    dpi_dataset_info info;
    dpi_charge charge;
    dpi_cost cost;
    double divergence;
    if (!r->options.ledger || r->charge > 0)
        return DPI_STATUS_OK;
    DPI_TRY(check(r, err));
    dpi_dataset_info_init(&info);
    dpi_charge_init(&charge);
    DPI_TRY(dpi_claim_cost(&r->claim, &cost, err));
    DPI_TRY(dpi_ledger_info(r->options.ledger, r->options.dataset, &info, err));
    DPI_TRY(dpi_cost_renyi(&cost, info.order, &divergence, err));
    charge.amount = dpi_ledger_amount_up(divergence);
    charge.before = info.charged;
    keep(r, &info, &charge);
    DPI_TRY(find_unit(r, &unit, err));
    DPI_TRY(dpi_privacy_unit_join(&info.unit, &unit, info.name, err));
    const dpi_payers payers = {.records = r->options.records, .dataset = r->options.dataset};
    if (info.scope == DPI_SCOPE_UNIT && r->options.records)
        DPI_TRY(dpi_payers_check(&payers, err));
    if (info.closed[0])
        return dpi_fail(err, DPI_STATUS_STATE, "the dataset '%s' is closed", info.name);
    if (charge.amount <= info.left)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_BUDGET,
                    "dataset '%s': the run costs %.6g (Renyi, order %d), and %.6g of %.6g is left",
                    info.name, divergence, info.order, (double)info.left / DPI_LEDGER_ONE,
                    (double)info.budget / DPI_LEDGER_ONE);
}

void dpi_release_give_back(dpi_release *r) {
    (void)dpi_payers_give_back(r->options.ledger, &r->charge);
}
