/* charge.c - a release and its ledger: what it costs is on the disk before a record is read. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
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
    snprintf(note, size, "%d text%s, %s; unit: %s", c->n_texts, c->n_texts == 1 ? "" : "s",
             guarantee, dpi_record_kind_text(c->record_kind));
}

static void keep(dpi_release *r, const dpi_dataset_info *info, const dpi_charge *charge) {
    dpi_claim_ledger *l = &r->claim.ledger;
    *l = (dpi_claim_ledger){.epsilon = info->epsilon,
                            .delta = info->delta,
                            .scope = info->scope,
                            .order = info->order,
                            .budget = info->budget,
                            .charge = charge->amount,
                            .before = charge->before};
    memcpy(l->dataset, info->name, sizeof l->dataset);
    r->charge = charge->id;
}

dpi_status dpi_release_reserve(dpi_release *r, dpi_error *err) {
    char note[DPI_CHARGE_NOTE_MAX + 1];
    dpi_charge_request request;
    dpi_dataset_info info;
    dpi_charge charge;
    dpi_cost cost;
    if (!r->options.ledger || r->charge > 0)
        return DPI_STATUS_OK;
    DPI_TRY(check(r, err));
    DPI_TRY(dpi_method_cost(&r->claim.method, &r->claim.plan, &cost, err));
    describe(&r->claim, note, sizeof note);
    dpi_charge_request_init(&request);
    dpi_dataset_info_init(&info);
    dpi_charge_init(&charge);
    request.cost = &cost;
    request.method = dpi_method_get(r->claim.method.method)->name;
    request.note = note;
    /* What is told of the dataset beside the charge never changes. */
    DPI_TRY(dpi_ledger_info(r->options.ledger, r->options.dataset, &info, err));
    DPI_TRY(dpi_ledger_reserve(r->options.ledger, r->options.dataset, &request, &charge, err));
    keep(r, &info, &charge);
    return DPI_STATUS_OK;
}

void dpi_release_give_back(dpi_release *r) {
    if (r->charge == 0)
        return;
    /* If it fails the charge stays, which is safe. */
    const dpi_status status = dpi_ledger_give_back(r->options.ledger, r->charge, NULL);
    (void)status;
    r->charge = 0;
}
