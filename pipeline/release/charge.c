/* charge.c - the charge of a release: what it costs is in the ledger, on the disk, before a record
 * is read. See books.h. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/release/books.h"
#include "pipeline/release/payers.h"
#include "pipeline/release/run_claim.h"

/* Only what holds can be counted. */
static dpi_status check(const dpi_books *b, dpi_error *err) {
    const char *warning = dpi_run_warning(&b->plan->claim);
    if (!b->dataset)
        return dpi_fail(err, DPI_STATUS_ARG, "dataset: found none, needed with a ledger");
    if (b->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "the release has begun already");
    if (warning)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a ledger counts guarantees, and this run has none: %s", warning);
    return DPI_STATUS_OK;
}

/* What the ledger is asked for; a plan may have no records. */
static dpi_status request_of(const dpi_books *b, dpi_claim_charge *asked, dpi_error *err) {
    dpi_claim claim;
    dpi_claim_of_run(&b->plan->claim, &claim);
    return dpi_claim_charge_of(&claim, b->plan->options.records, asked, err);
}

static void keep(dpi_books *b, const dpi_dataset_info *info, const dpi_charge *charge) {
    dpi_payers_keep(&b->claim.ledger, info, charge);
    b->charge = charge->id;
}

/* ---- Units that pay each for itself ---------------------------------------------------------- */

/* Which units are in the run. */
typedef struct places {
    const dpi_plan *plan;
    size_t most;      /* by position without labels: that batches have a slot for */
    size_t *n_before; /* [n_labels] units of the label so far; private memory */
} places;

/* Of each unit, in their order: by position whether a batch has a slot for it, with private labels
 * whether its label is one of the run; every unit has a group. */
static bool is_in_run(places *p, size_t unit) {
    const dpi_plan *plan = p->plan;
    if (plan->labels.n == 0 || plan->options.n_clusters > 0)
        return unit < p->most;
    const int32_t label = dpi_labels_find(&plan->labels, plan->options.records, unit);
    if (label < 0 || plan->claim.labels == DPI_LABELS_PRIVATE)
        return label >= 0;
    return p->n_before[label]++ / (size_t)plan->claim.method.denominator <
           (size_t)plan->labels.n_texts[label];
}

/* in [units] of the run. */
static dpi_status find_places(const dpi_plan *plan, uint8_t **in, dpi_error *err) {
    const size_t n_labels = (size_t)plan->labels.n;
    const size_t n = dpi_records_unit_count(plan->options.records);
    places p = {.plan = plan,
                .most = dpi_run_is_assigned(&plan->claim) || n_labels > 0
                            ? SIZE_MAX
                            : (size_t)plan->claim.n_texts * (size_t)plan->claim.method.denominator,
                .n_before = dpi_private_malloc((n_labels + 1) * sizeof *p.n_before)};
    *in = p.n_before ? dpi_private_malloc(n + 1) : NULL;
    for (size_t i = 0; i < n_labels && p.n_before; i++)
        p.n_before[i] = 0;
    for (size_t u = 0; u < n && *in; u++)
        (*in)[u] = is_in_run(&p, u);
    dpi_private_free(p.n_before);
    return *in ? DPI_STATUS_OK : dpi_no_memory(err, "the units of a charge");
}

/* Charges each unit for itself: *pays [units] says which ones have paid. */
static dpi_status charge_units(const dpi_books *b, int64_t paid, dpi_charge_request *request,
                               dpi_charge *charge, uint8_t **pays, dpi_error *err) {
    uint8_t *in;
    dpi_payers p = {.records = b->plan->options.records, .ledger = b->ledger,
                    .dataset = b->dataset, .request = request, .paid = paid};
    DPI_TRY(dpi_payers_check(&p, err));
    DPI_TRY(find_places(b->plan, &in, err));
    p.in = in;
    const dpi_status status = dpi_payers_charge(&p, pays, charge, err);
    dpi_private_free(in);
    return status;
}

/* ---- The charge ------------------------------------------------------------------------------ */

void dpi_books_open(dpi_books *b, const dpi_plan *plan) {
    *b = (dpi_books){.plan = plan, .claim = plan->claim, .ledger = plan->options.ledger,
                     .dataset = plan->options.dataset};
}

/* A job that goes on was charged when it was begun. b->charge stays 0: it is not given back. */
static dpi_status continue_charge(dpi_books *b, uint8_t **pays, dpi_error *err) {
    dpi_dataset_info info;
    dpi_charge charge;
    DPI_TRY(dpi_books_find_charge(b, &charge, err));
    if (!b->ledger)
        return DPI_STATUS_OK;
    dpi_dataset_info_init(&info);
    DPI_TRY(dpi_ledger_info(b->ledger, b->dataset, &info, err));
    keep(b, &info, &charge);
    b->charge = 0;
    return info.scope == DPI_SCOPE_UNIT ? charge_units(b, charge.id, NULL, NULL, pays, err)
                                        : DPI_STATUS_OK;
}

static dpi_status charge_run(dpi_books *b, uint8_t **pays, dpi_error *err) {
    dpi_claim_charge asked;
    dpi_dataset_info info;
    dpi_charge charge;
    DPI_TRY(check(b, err));
    dpi_dataset_info_init(&info);
    dpi_charge_init(&charge);
    /* What is told of the dataset beside the charge never changes. */
    DPI_TRY(dpi_ledger_info(b->ledger, b->dataset, &info, err));
    DPI_TRY(request_of(b, &asked, err));
    const dpi_status status =
        info.scope == DPI_SCOPE_UNIT
            ? charge_units(b, 0, &asked.request, &charge, pays, err)
            : dpi_ledger_reserve(b->ledger, b->dataset, &asked.request, &charge, err);
    dpi_claim_charge_free(&asked);
    if (status == DPI_STATUS_OK)
        keep(b, &info, &charge);
    return status;
}

dpi_status dpi_books_reserve(dpi_books *b, uint8_t **pays, dpi_error *err) {
    const dpi_release_options *o = &b->plan->options;
    *pays = NULL;
    if (o->journal && o->n_shards == 0)
        DPI_TRY(dpi_books_own_ledger(b, dpi_journal_root(o->journal), err));
    if (dpi_books_goes_on(b))
        return continue_charge(b, pays, err);
    if (!b->ledger || b->charge > 0 || o->charged)
        return DPI_STATUS_OK;
    return charge_run(b, pays, err);
}

dpi_status dpi_books_preview(dpi_books *b, dpi_error *err) {
    dpi_claim_charge asked;
    dpi_dataset_info info;
    dpi_charge charge;
    double divergence;
    if (!b->ledger || b->charge > 0)
        return DPI_STATUS_OK;
    DPI_TRY(check(b, err));
    dpi_dataset_info_init(&info);
    dpi_charge_init(&charge);
    DPI_TRY(request_of(b, &asked, err));
    dpi_claim_charge_free(&asked); /* it is not charged */
    DPI_TRY(dpi_ledger_info(b->ledger, b->dataset, &info, err));
    DPI_TRY(dpi_cost_renyi(&asked.cost, info.order, &divergence, err));
    charge.amount = dpi_ledger_amount_up(divergence);
    charge.before = info.charged;
    keep(b, &info, &charge);
    DPI_TRY(dpi_privacy_unit_join(&info.unit, &asked.request.unit, info.name, err));
    const dpi_payers payers = {.records = b->plan->options.records, .dataset = b->dataset};
    if (info.scope == DPI_SCOPE_UNIT && b->plan->options.records)
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

void dpi_books_give_back(dpi_books *b) { (void)dpi_payers_give_back(b->ledger, &b->charge); }
