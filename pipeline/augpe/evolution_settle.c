/* evolution_settle.c - the numbers of an evolution, before a record is read, and its charge. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/struct.h"
#include "dp/exact/votes.h"
#include "dp/mechanism/noisy_votes.h"
#include "pipeline/augpe/augpe.h"
#include "pipeline/run.h"
#include "pipeline/prompts.h"
#include "pipeline/release/payers.h"

void dpi_augpe_options_init_size(dpi_augpe_options *options, size_t size) {
    dpi_augpe_options made = {.n_texts = 1, .n_rounds = 5, .n_candidates = 4, .change = .5,
                              .top_k = 100, .tau = 1, .n_parallel = 32, .delta = 1e-6,
                              .max_per_unit = 4};
    dpi_prompt_options_init(&made.prompts);
    dpi_session_options_init(&made.session);
    dpi_struct_init(options, size, &made, sizeof made);
}

const char *dpi_augpe_selection_name(int32_t selection) {
    static const char *const names[] = {"rank", "sample"};
    return selection >= 0 && selection <= DPI_AUGPE_SAMPLE ? names[selection] : NULL;
}

const char *dpi_augpe_variation_name(int32_t variation) {
    static const char *const names[] = {"another", "blanks", "continue"};
    return variation >= 0 && variation <= DPI_AUGPE_CONTINUE ? names[variation] : NULL;
}

/* ---- From the options ------------------------------------------------------------------------ */

static dpi_status check_options(const dpi_augpe_options *o, dpi_error *err) {
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
    DPI_TRY(dpi_check_range("n_parallel", o->n_parallel, 1, DPI_WRITER_SLOTS_MAX, err));
    DPI_TRY(dpi_check_range("max_per_unit", o->max_per_unit, 1, DPI_VOTE_RECORDS_MAX, err));
    if (o->ledger && !o->dataset)
        return dpi_fail(err, DPI_STATUS_ARG, "dataset: found none, needed with a ledger");
    if (o->ledger && o->seeded)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a ledger counts guarantees, and with a seed there is none");
    return DPI_STATUS_OK;
}

/* Elsewhere nothing is set: the library's rules are over the tokens of a model. */
static dpi_status settle_wording(dpi_augpe *f, dpi_error *err) {
    dpi_augpe_options *o = &f->options;
    dpi_bytes stops[DPI_STOPS_MAX];
    dpi_wording chosen;
    dpi_wording_init(&chosen);
    if (o->wording)
        chosen = *o->wording;
    DPI_TRY(dpi_wording_check(&chosen, err));
    if (o->write && !dpi_wording_is_default(&chosen))
        return dpi_fail(err, DPI_STATUS_ARG, "wording: found one with write, allowed with the "
                                             "local model, whose tokens it is over");
    if (chosen.keep_answer)
        return dpi_fail(err, DPI_STATUS_ARG, "keep_answer: found 1, allowed 0: candidates are "
                                             "compared with records, which have no answer");
    o->prompts.n_text = o->n_tokens;
    if (!o->write) {
        if (!o->grammar)
            DPI_TRY(dpi_wording_choose(&o->prompts, o->model, &chosen, stops, err));
        DPI_TRY(dpi_word_rules_create(&chosen, o->model, &f->writer.rules, err));
    }
    o->wording = o->write ? NULL : dpi_word_rules_wording(f->writer.rules);
    dpi_wording_end_prompts(o->wording, &o->prompts);
    if (dpi_prompt_options_have_label(&o->prompts))
        return dpi_fail(err, DPI_STATUS_ARG, "label: found {label} in a prompt, and an evolution "
                                             "has no labels");
    return o->wording ? dpi_claim_bind_wording(&f->claim, o->wording, err) : DPI_STATUS_OK;
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

/* The mechanism; ranges are checked where the claim is settled. */
static dpi_status add_votes(const dpi_augpe_options *o, dpi_claim *c, dpi_error *err) {
    dpi_claim_part *p = dpi_claim_add(c, "votes");
    const double values[] = {
        [DPI_VOTES_RHO] = o->rho, [DPI_VOTES_EPSILON] = o->epsilon,
        [DPI_VOTES_TEXTS] = o->n_texts, [DPI_VOTES_CANDIDATES] = o->n_candidates,
        [DPI_VOTES_LOOKAHEAD] = o->n_lookahead, [DPI_VOTES_SELECTION] = o->selection,
        [DPI_VOTES_THRESHOLD] = o->threshold, [DPI_VOTES_VARIATION] = o->variation,
        [DPI_VOTES_CHANGE] = o->change, [DPI_VOTES_TOKENS] = o->n_tokens,
        [DPI_VOTES_TOP_K] = o->top_k, [DPI_VOTES_TAU] = o->tau,
        [DPI_VOTES_REMOTE] = o->write != NULL};
    p->n_runs = o->n_rounds;
    memcpy(p->values, values, sizeof values);
    return dpi_claim_settle(c, err);
}

dpi_status dpi_augpe_make_claim(dpi_augpe *f, dpi_error *err) {
    dpi_augpe_options *o = &f->options;
    dpi_claim *c = &f->claim;
    dpi_model_info info;
    DPI_TRY(check_options(o, err));
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(o->model, &info, err));
    DPI_TRY(settle_context(o, &info, err));
    f->n_embd = info.n_embd;
    dpi_claim_init(c);
    DPI_TRY(settle_wording(f, err));
    c->adjacency = o->adjacency;
    c->record_kind = dpi_records_kind(o->records);
    c->max_per_unit = dpi_records_has_units(o->records) ? o->max_per_unit : 0;
    c->n_units = o->adjacency == DPI_ADJACENCY_ADD_REMOVE
                     ? o->n_units
                     : (int64_t)dpi_records_unit_count(o->records);
    c->delta = o->delta;
    c->randomness = o->seeded ? DPI_RANDOMNESS_SEED : DPI_RANDOMNESS_SYSTEM;
    if (o->grammar)
        snprintf(c->grammar, sizeof c->grammar, "%016" PRIx64, dpi_grammar_digest(o->grammar));
    dpi_claim_name_text(c->model_name, sizeof c->model_name, info.name);
    return add_votes(o, c, err);
}

/* ---- The charge ------------------------------------------------------------------------------ */

dpi_status dpi_augpe_charge(dpi_augpe *f, dpi_error *err) {
    const dpi_augpe_options *o = &f->options;
    const dpi_payers payers = {.records = o->records, .ledger = o->ledger, .dataset = o->dataset};
    return dpi_payers_charge_claim(&payers, &f->claim, &f->pays, &f->charge, err);
}

void dpi_augpe_give_back(dpi_augpe *f) {
    if (f->records || f->phase >= DPI_PHASE_READ)
        return;
    if (dpi_payers_give_back(f->options.ledger, &f->charge))
        f->claim.ledger = (dpi_claim_ledger){0};
}
