/* report_sections.c - the sections of a report as functions of its claim, in the order of the
 * checklist. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dpinfer/ledger.h"
#include "dpinfer/registry.h"
#include "pipeline/release/report.h"

/* An array of the strings up to NULL. */
static json_t *make_list(const char *const *items) {
    json_t *list = json_array();
    for (; *items; items++)
        if (json_array_append_new(list, json_string(*items)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* ---- 1. DP setting -------------------------------------------------------------------------- */

static json_t *dp_setting(const dpi_claim *c) {
    if (!dpi_claim_is_proven(c))
        return json_pack("{s:n, s:s}", "model", "trust",
                         !c->record_in_prompt
                             ? "none: the texts are those of the public prompt, and no record was "
                               "used"
                             : "none: whoever sees the texts may learn what is in the records");
    return json_pack("{s:s, s:s}", "model", "central", "trust",
        "The operator, who runs the program and may read the records, is trusted to give the "
        "records to this program, to keep its memory, its time and its random bits from others, "
        "and to release nothing but its output. Whoever sees the output is not trusted: they may "
        "know the model, every option, all other records and all texts, and are not bounded in "
        "computation.");
}

/* ---- 2. The definition ---------------------------------------------------------------------- */

static json_t *covered(const dpi_claim *c) {
    const char *const all[] = {
        "every use of the records by the model and by the sampler in this run, for all of its "
        "texts together; a text that ends early is paid for as a whole one",
        NULL};
    return dpi_claim_is_proven(c) ? make_list(all) : json_array();
}

static json_t *not_covered(const dpi_claim *c) {
    const char *const assigned =
        "the number of texts and B: public, and chosen without the records";
    const char *const by_position =
        dpi_claim_has_units(c)
            ? "the number of units and the order of their first records: they are public"
            : "the number of records, and in a folder the order of the names: they are public";
    const char *const all[] = {
        "the choice of options, prompts, the query and hyper-parameters: inputs, which must not "
        "follow from what is in the records",
        "the choice of the records, for example by a search for the query: the guarantee begins "
        "with the records that the program was given",
        "other runs on the same records, also those made to choose options: their costs add up",
        "the data that the model was trained on",
        "the time and memory that the run took, and what it told its operator on stderr",
        dpi_claim_has_units(c) ? "one person under several unit IDs: the unit is the ID"
                               : "one person in several records: the unit is the record",
        c->method.adjacency == DPI_ADJACENCY_ADD_REMOVE ? assigned : by_position,
        NULL};
    const char *const none[] = {"everything", NULL};
    return make_list(dpi_claim_is_proven(c) ? all : none);
}

/* "one record = one .txt file; 16 records", without the number where it is secret or there are
 * none. */
static void unit_text(const dpi_claim *c, char *text, size_t size) {
    const bool is_known = c->record_kind != DPI_RECORD_OTHER;
    int n = 0;
    if (dpi_claim_has_units(c))
        n = snprintf(text, size, "all records with one unit ID, of which %d are used at most; ",
                     c->method.max_per_unit);
    n += snprintf(text + n, size - (size_t)n, "one record%s%s", is_known ? " = " : "",
                  is_known ? dpi_record_kind_text(c->record_kind) : "");
    if (c->n_records > 0)
        snprintf(text + n, size - (size_t)n, "; %" PRId64 " %s", c->n_records,
                 dpi_claim_has_units(c) ? "units" : "records");
}

static json_t *dp_definition(const dpi_claim *c) {
    const bool proven = dpi_claim_is_proven(c);
    char unit[192];
    unit_text(c, unit, sizeof unit);
    return json_pack("{s:o, s:o, s:s+, s:s, s:s?, s:s?, s:s?}",
        "accesses_covered", covered(c), "accesses_not_covered", not_covered(c),
        "mechanism_output", "all tokens of all texts, in their order, and where each text ends",
        dpi_method_get(c->method.method)->output,
        "unit", unit,
        "neighbours", proven ? dpi_adjacency_name(c->method.adjacency) : NULL,
        "neighbours_meaning", proven ? dpi_method_neighbours(&c->method) : NULL,
        "composition", proven ? dpi_claim_composition(c) : NULL);
}

/* ---- 3. Accounting -------------------------------------------------------------------------- */

static const char *const SOURCES[] = {
    [DPI_ACCOUNTANT_ZCDP] =
        "A draw of bounded range eta is eta^2/8-zCDP (Cesar and Rogers 2021); draws compose "
        "adaptively (Bun and Steinke 2016); rho-zCDP gives (epsilon, delta) by Canonne, Kamath and "
        "Steinke 2020, Proposition 12. Holds for any records.",
    [DPI_ACCOUNTANT_BR] =
        "T tokens of bounded range eta, each chosen knowing the ones before, compose to the exact "
        "worst case over adaptive adversaries, discretised upwards (dp/PRIVACY.md, Theorem 8). "
        "Holds for any records.",
    [DPI_ACCOUNTANT_FILTER] =
        "Each record has a budget of its own in zCDP, pays for what it moves each token by, and "
        "counts as null from the token on that it cannot pay for (Feldman and Zrnic 2021). What a "
        "record has spent is in no output. Holds for any records.",
};

static const char *sampling_assumption(const dpi_claim *c) {
    return c->method.subsample > 0
               ? "Amplification needs that each record joins one of the batches with probability q "
                 "in all, independently of the others, and that assignment and sizes of batches "
                 "stay secret. Fulfilled by the program: a fresh draw for each record and run, "
                 "batches of any size; no shuffling."
           : dpi_claim_is_assigned(c)
               ? "No amplification by sampling is used. Batches are disjoint, and the batch of a "
                 "record depends on its own content and a fresh key only. Fulfilled by the program."
               : "No amplification by sampling is used. Batches are disjoint, and the batch of a "
                 "record depends on its position only. Fulfilled by the program.";
}

static json_t *accounting(const dpi_claim *c) {
    if (!dpi_claim_is_proven(c))
        return json_pack("{s:s, s:[]}", "type",
                         dpi_method_get(c->method.method)->max_ref == 0
                             ? "none"
                             : "none: what the method counts depends on the records",
                         "assumptions");
    const char *const assumptions[] = {
        SOURCES[c->method.accountant],
        sampling_assumption(c),
        "The logits of a record are a function of that record, the tokens drawn so far and public "
        "data, and of no other record. Fulfilled by the program, bit for bit.",
        c->randomness != DPI_RANDOMNESS_SYSTEM
            ? "256 independent uniform random bits for each draw. NOT fulfilled: they follow from "
              "--seed."
            : "256 independent uniform random bits for each draw. Provided by the operating "
              "system, getrandom(2).",
        "Costs are those of the integers K and a that the sampler uses; its rounding is part of "
        "eta, and every bound is rounded up.",
        dpi_method_get(c->method.method)->assumption,
        NULL};
    return json_pack("{s:s, s:o}", "type", dpi_accountant_text(c->method.accountant),
                     "assumptions", make_list(assumptions));
}

/* The formal statement. Without a guarantee it has no numbers, which could be taken for one. */
static json_t *formal_statement(const dpi_claim *c) {
    char guarantee[128], texts[64], text[512];
    snprintf(texts, sizeof texts, "%d, of at most %d tokens each", c->n_texts, c->method.n_tokens);
    if (dpi_claim_is_proven(c))
        dpi_claim_guarantee(c, guarantee, sizeof guarantee);
    if (!dpi_claim_is_proven(c))
        snprintf(text, sizeof text, "No guarantee for the texts (%s).", texts);
    else if (!dpi_claim_is_private(c))
        snprintf(text, sizeof text,
                 "No guarantee for the texts (%s). With secret randomness it would be %s.", texts,
                 guarantee);
    else
        snprintf(text, sizeof text,
                 "The texts of the run together (%s) are %s: for any two lists of records D and "
                 "D' that are neighbours, and any event E over all texts, Pr[E | D] <= e^epsilon "
                 "Pr[E | D'] + delta, and the same with D and D' exchanged.", texts, guarantee);
    const bool zcdp = dpi_claim_is_private(c) && dpi_claim_is_zcdp(c);
    return json_pack("{s:s, s:o, s:o, s:o}", "text", text,
        "epsilon", dpi_claim_is_private(c) ? json_real(dpi_claim_epsilon(c)) : json_null(),
        "delta", dpi_claim_is_private(c) ? json_real(c->method.delta) : json_null(),
        "rho", zcdp ? json_real(dpi_claim_rho(c)) : json_null());
}

static json_t *fact_value(const dpi_fact *f) {
    return f->type == DPI_FACT_TEXT   ? json_string(f->text)
           : f->type == DPI_FACT_INT  ? json_integer(f->integer)
           : f->type == DPI_FACT_FLAG ? json_boolean(f->integer)
                                      : json_real(f->real);
}

/* Of the dataset, where the run is in a ledger: Renyi divergences of its order. A unit was charged
 * at most so much, and no more than the budget. */
static json_t *realised_ledger(const dpi_claim_ledger *l) {
    int64_t after = l->before + l->charge;
    if (!l->dataset[0])
        return json_object();
    if (l->scope == DPI_SCOPE_UNIT && after > l->budget)
        after = l->budget;
    return json_pack("{s:f, s:f, s:f}", "ledger_budget", (double)l->budget / DPI_LEDGER_ONE,
                     "ledger_charge", (double)l->charge / DPI_LEDGER_ONE, "ledger_after",
                     (double)after / DPI_LEDGER_ONE);
}

/* What the parameters come to in the sampler, and what the method has more than the others. */
static json_t *realised(const dpi_claim *c) {
    const dpi_sampler_plan *p = &c->plan;
    dpi_fact facts[DPI_FACTS_MAX];
    if (!dpi_claim_is_proven(c))
        return json_object();
    json_t *object = json_pack("{s:I, s:I, s:f, s:o, s:f, s:f, s:o}",
        "K", (json_int_t)p->K, "a", (json_int_t)p->a, "C", p->clip,
        "eta", p->eta > 0 ? json_real(p->eta) : json_null(),
        "rho_token", p->rho_token, "rho_total", p->rho_total,
        "rho_allowed", p->rho_budget > 0 ? json_real(p->rho_budget) : json_null());
    const int32_t n = dpi_method_facts(&c->method, p, facts);
    bool ok = object;
    for (int32_t i = 0; i < n && ok; i++)
        if (facts[i].where & DPI_FACT_REALISED)
            ok = json_object_set_new(object, facts[i].key, fact_value(&facts[i])) == 0;
    if (ok && c->histogram > 0)
        ok = !json_object_set_new(object, "rho_histogram", json_real(dpi_claim_histogram_rho(c)));
    json_t *ledger = realised_ledger(&c->ledger);
    ok = ok && ledger && json_object_update(object, ledger) == 0;
    json_decref(ledger);
    if (ok)
        return object;
    json_decref(object);
    return NULL;
}

/* ---- 4. Transparency ------------------------------------------------------------------------ */

/* Where the numbers of the pace come from; "" without a pace. */
static void pace_source(const dpi_claim *c, char *text, size_t size) {
    const char *given = dpi_pace_given_name(c->pace_given);
    text[0] = '\0';
    if (c->pace_texts > 0)
        snprintf(text, size,
                 "found from %d texts that the model drew from the public prompt before a record "
                 "was read; they cost nothing%s%s%s", (int)c->pace_texts, given ? "; " : "",
                 given ? given : "", given ? " was given by the operator" : "");
    else if (c->method.pace != DPI_PACE_NONE)
        snprintf(text, size, "given by the operator: an input, like the other options");
}

/* The same of groups of similar records. */
static void group_source(const dpi_claim *c, char *text, size_t size) {
    text[0] = '\0';
    if (c->cluster_texts > 0)
        snprintf(text, size,
                 "a unit is in the group of the nearest of %d public centroids, found from %d "
                 "texts that the model drew from the public prompt before a record was read; they "
                 "cost nothing",
                 (int)c->n_labels, (int)c->cluster_texts);
}

/* "" where texts have any form. */
static void form_source(const dpi_claim *c, char *text, size_t size) {
    text[0] = '\0';
    if (c->grammar[0])
        snprintf(text, size,
                 "a public grammar (%s) says which tokens may come, by those that were released: "
                 "it costs nothing", c->grammar);
}

static json_t *transparency(const dpi_claim *c) {
    char method[512], pace[200], groups[240], form[160];
    dpi_method_settings(&c->method, method, sizeof method);
    pace_source(c, pace, sizeof pace);
    group_source(c, groups, sizeof groups);
    form_source(c, form, sizeof form);
    return json_pack("{s:s, s:s?, s:s?, s:s?, s:s, s:s, s:s}",
        "method", method,
        "pace", pace[0] ? pace : NULL,
        "groups", groups[0] ? groups : NULL,
        "form", form[0] ? form : NULL,
        "randomness", c->randomness != DPI_RANDOMNESS_SYSTEM
                          ? "--seed: reproducible, and so insecure"
                          : "getrandom(2), fresh for every draw",
        "proofs", "dp/PRIVACY.md of the source code, from each claim to its proof, its function "
                  "and its test",
        "verification", "'dpinfer verify' computes all sections but parameters, software, model, "
                        "meta, output and charges a second time from the parameters; with --model "
                        "and --output the hashes, with --key the signature. That the run took "
                        "place as the parameters say is the operator's word.");
}

/* ---- All of it ------------------------------------------------------------------------------ */

json_t *dpi_report_json(const dpi_claim *c, bool complete, json_t *software, json_t *model,
                        json_t *output, const dpi_report_added *added) {
    char label[160];
    dpi_claim_label(c, label, sizeof label);
    return json_pack("{s:i, s:b, s:s, s:b, s:O, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
                     "s:o, s:O}",
        "dpinfer_report", DPI_REPORT_SCHEMA,
        "private", dpi_claim_is_private(c),
        "label", label,
        "complete", complete,
        "meta", added->meta,
        "plain", dpi_report_plain(c),
        "dp_setting", dp_setting(c),
        "dp_definition", dp_definition(c),
        "accounting", accounting(c),
        "statement", formal_statement(c),
        "parameters", dpi_report_parameters(c),
        "realised", realised(c),
        "transparency", transparency(c),
        "software", software,
        "model", model,
        "output", output,
        "charges", added->charges);
}
