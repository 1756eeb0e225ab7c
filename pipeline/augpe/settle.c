/* settle.c - the numbers of an evolution, before a record is read, and its charge. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "dp/account/account.h"
#include "dp/exact/noise.h"
#include "dp/exact/votes.h"
#include "pipeline/augpe/augpe.h"
#include "pipeline/claim.h"
#include "pipeline/prompts.h"
#include "pipeline/release/payers.h"

enum { ROUNDS_MAX = 1000, PER_TEXT_MAX = 64, LOOKAHEAD_MAX = 16 };

void dpi_augpe_options_init(dpi_augpe_options *options) {
    *options = (dpi_augpe_options){.struct_size = sizeof *options,
                                   .n_texts = 1,
                                   .n_rounds = 5,
                                   .n_candidates = 4,
                                   .change = .5,
                                   .top_k = 100,
                                   .tau = 1,
                                   .n_parallel = 32,
                                   .delta = 1e-6,
                                   .max_per_unit = 4};
    dpi_prompt_options_init(&options->prompts);
    dpi_session_options_init(&options->session);
}

void dpi_augpe_claim_init(dpi_augpe_claim *claim) {
    *claim = (dpi_augpe_claim){.struct_size = sizeof *claim};
}

int32_t dpi_augpe_is_private(const dpi_augpe_claim *c) {
    return c->randomness == DPI_RANDOMNESS_SYSTEM;
}

const char *dpi_augpe_selection_name(int32_t selection) {
    static const char *const names[] = {"rank", "sample"};
    return selection >= 0 && selection <= DPI_AUGPE_SAMPLE ? names[selection] : NULL;
}

const char *dpi_augpe_variation_name(int32_t variation) {
    static const char *const names[] = {"another", "blanks", "continue"};
    return variation >= 0 && variation <= DPI_AUGPE_CONTINUE ? names[variation] : NULL;
}

/* ---- The claim ------------------------------------------------------------------------------- */

static dpi_status check_texts(const dpi_augpe_claim *c, dpi_error *err) {
    DPI_TRY(dpi_check_range("n_rounds", c->n_rounds, 1, ROUNDS_MAX, err));
    DPI_TRY(dpi_check_range("selection", c->selection, 0, DPI_AUGPE_SAMPLE, err));
    DPI_TRY(dpi_check_range("variation", c->variation, 0, DPI_AUGPE_CONTINUE, err));
    DPI_TRY(dpi_check_range("n_candidates", c->n_candidates,
                            c->selection == DPI_AUGPE_RANK ? 2 : 1, PER_TEXT_MAX, err));
    DPI_TRY(dpi_check_range("n_texts", c->n_texts, 1, DPI_AUGPE_CANDIDATES_MAX / c->n_candidates,
                            err));
    DPI_TRY(dpi_check_range("n_lookahead", c->n_lookahead, 0, LOOKAHEAD_MAX, err));
    DPI_TRY(dpi_check_range("n_tokens", c->n_tokens, 1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("top_k", c->top_k, 0, 1 << 18, err));
    DPI_TRY(dpi_check_range("record_kind", c->record_kind, 0, DPI_RECORD_ROW, err));
    if (!(c->threshold >= 0 && c->threshold <= 1e9))
        return dpi_fail(err, DPI_STATUS_ARG, "threshold: found %g, allowed 0..1e9", c->threshold);
    if (!(c->change > 0 && c->change <= 1))
        return dpi_fail(err, DPI_STATUS_ARG, "change: found %g, allowed above 0 and at most 1",
                        c->change);
    if (!(c->tau >= .01 && c->tau <= 100))
        return dpi_fail(err, DPI_STATUS_ARG, "tau: found %g, allowed 0.01..100", c->tau);
    return DPI_STATUS_OK;
}

static dpi_status check_budget(const dpi_augpe_claim *c, dpi_error *err) {
    if (!(c->rho >= 0 && c->epsilon >= 0) || (c->rho > 0) == (c->epsilon > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "epsilon: found %g with rho %g, allowed is one of "
                                             "them", c->epsilon, c->rho);
    if (c->adjacency != DPI_ADJACENCY_REPLACE_BY_NULL && c->adjacency != DPI_ADJACENCY_ADD_REMOVE)
        return dpi_fail(err, DPI_STATUS_ARG, "adjacency: allowed replace-by-null and add-remove");
    DPI_TRY(dpi_check_range("max_per_unit", c->max_per_unit, 0, DPI_VOTE_RECORDS_MAX, err));
    if (c->adjacency == DPI_ADJACENCY_ADD_REMOVE && c->n_units < 1)
        return dpi_fail(err, DPI_STATUS_ARG, "units: found none, needed with add-remove is about "
                                             "how many units there are, a public number");
    if (!(c->delta > 0 && c->delta < 1 && c->delta * (double)c->n_units < 1))
        return dpi_fail(err, DPI_STATUS_ARG, "delta: found %g, allowed below 1 / units = %g",
                        c->delta, 1 / (double)(c->n_units > 0 ? c->n_units : 1));
    return DPI_STATUS_OK;
}

dpi_status dpi_augpe_settle(dpi_augpe_claim *c, dpi_error *err) {
    double rho = c->rho;
    if (c->struct_size != sizeof *c)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_augpe_claim.struct_size is %zu, must be %zu",
                        c->struct_size, sizeof *c);
    DPI_TRY(check_texts(c, err));
    DPI_TRY(check_budget(c, err));
    if (c->epsilon > 0)
        DPI_TRY(dpi_zcdp_rho(c->epsilon, c->delta, &rho, err));
    /* Sums are rounded up: a little less for each round, until all of them fit. A larger budget
     * than the least noise needs is not used up. */
    double each = fmin(rho / c->n_rounds, dpi_rho_votes_bound(DPI_NOISE_VARIANCE_MIN));
    for (c->variance = dpi_votes_variance_for(each);
         c->variance > 0 &&
         dpi_rho_total_bound(dpi_rho_votes_bound(c->variance), c->n_rounds) > rho;
         c->variance = dpi_votes_variance_for(each))
        each = nextafter(each, 0);
    if (c->variance == 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "rho: found %g for each of %d rounds, allowed at least %.3g", each,
                        c->n_rounds, dpi_rho_votes_bound(DPI_NOISE_VARIANCE_MAX));
    c->rho_round = dpi_rho_votes_bound(c->variance);
    c->rho_total = dpi_rho_total_bound(c->rho_round, c->n_rounds);
    return dpi_zcdp_epsilon(c->rho_total, c->delta, &c->epsilon_total, err);
}

/* ---- From the options ------------------------------------------------------------------------ */

static dpi_status check_options(const dpi_augpe_options *o, dpi_error *err) {
    if (o->struct_size != sizeof *o)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_augpe_options.struct_size is %zu, must be %zu",
                        o->struct_size, sizeof *o);
    if (!o->model || !o->records)
        return dpi_fail(err, DPI_STATUS_ARG, "model and records must not be NULL");
    if (o->prompts.query.data)
        return dpi_fail(err, DPI_STATUS_ARG, "query: allowed with texts that are drawn from "
                                             "records alone");
    if (o->variation == DPI_AUGPE_CONTINUE && (o->write || o->variation_prompt.data))
        return dpi_fail(err, DPI_STATUS_ARG, "variation: found continue, which the local model "
                                             "writes, without a prompt of its own");
    if (o->write && o->grammar)
        return dpi_fail(err, DPI_STATUS_ARG, "grammar: found one with write, allowed with the "
                                             "local model, whose tokens it holds to a form");
    const int n = dpi_count_references(o->variation_prompt);
    if (o->variation_prompt.data && n != 1)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "variation_prompt: found %d times {reference}, allowed once", n);
    if (dpi_prompt_options_have_label(&o->prompts))
        return dpi_fail(err, DPI_STATUS_ARG, "label: found {label} in a prompt, and an evolution "
                                             "has no labels");
    DPI_TRY(dpi_check_range("n_parallel", o->n_parallel, 1, DPI_WRITER_SLOTS_MAX, err));
    DPI_TRY(dpi_check_range("max_per_unit", o->max_per_unit, 1, DPI_VOTE_RECORDS_MAX, err));
    if (o->ledger && !o->dataset)
        return dpi_fail(err, DPI_STATUS_ARG, "dataset: found none, needed with a ledger");
    if (o->ledger && o->seeded)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a ledger counts guarantees, and with a seed there is none");
    return DPI_STATUS_OK;
}

/* The context, and how many tokens of it a text has. */
static dpi_status settle_context(dpi_augpe_options *o, const dpi_model_info *info, dpi_error *err) {
    enum { CONTEXT_DEFAULT = 4096 };
    int32_t *n_ctx = &o->session.n_ctx;
    if (*n_ctx == 0)
        *n_ctx = info->n_ctx_train < CONTEXT_DEFAULT ? info->n_ctx_train : CONTEXT_DEFAULT;
    if (o->n_tokens == 0)
        o->n_tokens = dpi_tokens_default(*n_ctx);
    return dpi_check_range("n_tokens", o->n_tokens, 1, *n_ctx - 1, err);
}

dpi_status dpi_augpe_make_claim(dpi_augpe *f, dpi_error *err) {
    dpi_augpe_options *o = &f->options;
    dpi_augpe_claim *c = &f->claim;
    dpi_model_info info;
    dpi_claim named;
    DPI_TRY(check_options(o, err));
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(o->model, &info, err));
    DPI_TRY(settle_context(o, &info, err));
    f->n_embd = info.n_embd;
    dpi_augpe_claim_init(c);
    c->rho = o->rho, c->epsilon = o->epsilon, c->delta = o->delta;
    c->n_texts = o->n_texts, c->n_rounds = o->n_rounds, c->n_candidates = o->n_candidates;
    c->n_lookahead = o->n_lookahead, c->selection = o->selection, c->variation = o->variation;
    c->threshold = o->threshold, c->change = o->change;
    c->n_tokens = o->n_tokens, c->top_k = o->top_k, c->tau = o->tau;
    c->adjacency = o->adjacency;
    c->max_per_unit = dpi_records_has_units(o->records) ? o->max_per_unit : 0;
    c->n_units = o->adjacency == DPI_ADJACENCY_ADD_REMOVE
                     ? o->n_units
                     : (int64_t)dpi_records_unit_count(o->records);
    c->record_kind = dpi_records_kind(o->records);
    c->randomness = o->seeded ? DPI_RANDOMNESS_SEED : DPI_RANDOMNESS_SYSTEM;
    c->remote = o->write != NULL;
    if (o->grammar)
        snprintf(c->grammar, sizeof c->grammar, "%016" PRIx64, dpi_grammar_digest(o->grammar));
    dpi_claim_init(&named);
    dpi_claim_name_model(&named, info.name);
    memcpy(c->model_name, named.model_name, sizeof c->model_name);
    return dpi_augpe_settle(c, err);
}

/* ---- The charge ------------------------------------------------------------------------------ */

dpi_status dpi_augpe_charge(dpi_augpe *f, dpi_error *err) {
    const dpi_augpe_options *o = &f->options;
    const dpi_augpe_claim *c = &f->claim;
    char note[DPI_CHARGE_NOTE_MAX + 1];
    dpi_charge_request request;
    dpi_dataset_info info;
    dpi_charge charge;
    dpi_cost cost;
    if (!o->ledger)
        return DPI_STATUS_OK;
    dpi_charge_request_init(&request);
    dpi_dataset_info_init(&info);
    dpi_charge_init(&charge);
    dpi_cost_init(&cost);
    DPI_TRY(dpi_ledger_info(o->ledger, o->dataset, &info, err));
    DPI_TRY(dpi_cost_add(&cost, DPI_COST_ZCDP, c->n_rounds, c->rho_round, 0, err));
    DPI_TRY(dpi_records_privacy_unit(o->records, c->adjacency, c->max_per_unit, &request.unit,
                                     err));
    dpi_format(note, sizeof note, "%" PRId32 " texts, %" PRId32 " rounds, (%.6g, %g)-DP",
               c->n_texts, c->n_rounds, c->epsilon_total, c->delta);
    request.cost = &cost, request.method = "augpe", request.note = note;
    const dpi_payers payers = {.records = o->records, .ledger = o->ledger, .dataset = o->dataset,
                               .request = &request};
    DPI_TRY(info.scope == DPI_SCOPE_UNIT
                ? dpi_payers_charge(&payers, &f->pays, &charge, err)
                : dpi_ledger_reserve(o->ledger, o->dataset, &request, &charge, err));
    f->charge = charge.id;
    dpi_payers_keep(&f->claim.ledger, &info, &charge);
    return DPI_STATUS_OK;
}

void dpi_augpe_give_back(dpi_augpe *f) {
    if (f->records || f->phase >= DPI_PHASE_READ)
        return;
    if (dpi_payers_give_back(f->options.ledger, &f->charge))
        f->claim.ledger = (dpi_claim_ledger){0};
}
