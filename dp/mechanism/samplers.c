/* samplers.c - see samplers.h. What a method is proven for, costs and shows is the method's own. */
#include "dp/mechanism/samplers.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "dp/methods/sampling.h"
#include "dpinfer/release.h"

static const dpi_method_info *info_of(const dpi_claim_part *part) {
    return &dpi_mechanism_ops_get(part->mechanism)->sampler->info;
}

void dpi_sampler_to_part(const dpi_sampler_options *o, dpi_claim_part *part) {
    const dpi_parameter *p;
    for (int32_t i = 0; (p = dpi_mechanism_parameter_get(part->mechanism, i)); i++)
        part->values[i] = dpi_parameter_value(p, o);
}

const dpi_claim_part *dpi_claim_sampler(const dpi_claim *c, dpi_sampler_options *o) {
    const dpi_parameter *p;
    for (int32_t k = 0; k < c->n_parts; k++) {
        const dpi_claim_part *part = &c->parts[k];
        if (!dpi_mechanism_ops_get(part->mechanism)->sampler)
            continue;
        dpi_sampler_options_init(o);
        if (dpi_method_defaults(info_of(part)->id, o, NULL) != DPI_STATUS_OK)
            return NULL;
        for (int32_t i = 0; (p = dpi_mechanism_parameter_get(part->mechanism, i)); i++)
            if (dpi_parameter_set(p, o, part->values[i], NULL) != DPI_STATUS_OK)
                return NULL;
        o->adjacency = c->adjacency;
        o->delta = info_of(part)->max_ref > 0 ? c->delta : o->delta;
        o->max_per_unit = c->max_per_unit;
        o->n_ref = o->denominator; /* the plan needs no more than that it is in range */
        o->acknowledge_not_dp = info_of(part)->needs_acknowledgement;
        return part;
    }
    return NULL;
}

int32_t dpi_claim_is_assigned(const dpi_claim *c) {
    dpi_sampler_options o;
    return dpi_claim_sampler(c, &o) && dpi_method_is_assigned(&o);
}

/* ---- What it costs --------------------------------------------------------------------------- */

void dpi_sampler_part_bound(const dpi_sampler_options *o, dpi_claim_part *part) {
    const bool holds = info_of(part)->has_guarantee;
    const bool in_rho = holds && o->subsample == 0 && o->allocation == 0 &&
                        o->accountant != DPI_ACCOUNTANT_BR;
    part->rho = in_rho ? part->plan.rho_total : 0;
    part->epsilon = holds ? part->plan.epsilon : (double)INFINITY;
}

dpi_status dpi_sampler_part_settle(const dpi_claim *c, dpi_claim_part *part, dpi_error *err) {
    const dpi_method_info *m = info_of(part);
    dpi_sampler_options o;
    part->epsilon = INFINITY;
    DPI_TRY(dpi_check_range("runs", part->n_runs, 1, c->labels ? DPI_LABEL_TEXTS_MAX : INT32_MAX,
                            err));
    if (!dpi_claim_sampler(c, &o))
        return dpi_fail(err, DPI_STATUS_ARG, "mechanisms: %s has values that are out of range",
                        m->name);
    DPI_TRY(dpi_check_range("no_records", c->no_records, 0, m->max_ref == 0, err));
    if (o.pace == DPI_PACE_NONE)
        DPI_TRY(dpi_check_range("pace_texts", c->pace_texts, 0, 0, err));
    DPI_TRY(dpi_check_range("pace_tokens", o.pace_tokens, 0, o.n_tokens, err));
    dpi_sampler_plan_init(&part->plan);
    DPI_TRY(dpi_sampler_plan_make(&o, &part->plan, err));
    if (m->max_ref == 0) /* of the public prompt, or of one of the records */
        return dpi_check_range("n_units", c->n_units, !c->no_records,
                               c->no_records ? 0 : INT64_C(1) << 53, err);
    const dpi_sampling sampling = {.texts_key = "runs", .n_texts = part->n_runs,
                                   .n_units = c->n_units, .labels = c->labels,
                                   .n_labels = c->n_labels, .cluster_texts = c->cluster_texts,
                                   .has_histogram = dpi_claim_find(c, "histogram") != NULL};
    DPI_TRY(dpi_sampling_check(&o, &sampling, err));
    if (dpi_method_is_assigned(&o))
        DPI_TRY(dpi_check_range("n_units", c->n_units, 0, 0, err));
    dpi_sampler_part_bound(&o, part);
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_part_cost(const dpi_claim *c, const dpi_claim_part *part, dpi_cost *cost,
                                 dpi_error *err) {
    dpi_sampler_options o;
    dpi_cost own;
    if (!dpi_claim_sampler(c, &o))
        return dpi_fail(err, DPI_STATUS_ARG, "the claim is not settled");
    DPI_TRY(dpi_method_cost(&o, &part->plan, &own, err));
    cost->subsample = own.subsample;
    cost->allocation = own.allocation;
    for (int32_t i = 0; i < own.n_parts; i++)
        DPI_TRY(dpi_cost_add(cost, own.parts[i].kind, own.parts[i].n, own.parts[i].x,
                             own.parts[i].q, err));
    return DPI_STATUS_OK;
}

const char *dpi_sampler_part_warning(const dpi_claim *c, const dpi_claim_part *part) {
    (void)c;
    return info_of(part)->has_guarantee ? NULL : info_of(part)->warning;
}

/* ---- The statement --------------------------------------------------------------------------- */

const char *dpi_claim_composition(const dpi_claim *c) {
    enum { BY_PLACE, BY_HASH, BY_DRAW, BY_SECRET, N_WAYS };
    static const char *const RECORDS[N_WAYS] = {
        "parallel over disjoint batches, each record in one; runs add up",
        "parallel over disjoint batches, by a keyed hash of each record; runs add up",
        "each record in one secret random batch with probability q, else in none; runs add up",
        "each record in one secret random batch; runs add up",
    };
    static const char *const UNITS[N_WAYS] = {
        "parallel over disjoint batches, each unit in one, as a whole; runs add up",
        "parallel over disjoint batches, by a keyed hash of each unit's ID; runs add up",
        "each unit in one secret random batch with probability q, else in none; runs add up",
        "each unit in one secret random batch; runs add up",
    };
    dpi_sampler_options o;
    if (!dpi_claim_sampler(c, &o))
        return "one after the other, each with all units; runs add up";
    const int way = o.subsample > 0              ? BY_DRAW
                    : o.allocation > 0           ? BY_SECRET
                    : dpi_method_is_assigned(&o) ? BY_HASH
                                                 : BY_PLACE;
    return c->max_per_unit > 0 ? UNITS[way] : RECORDS[way];
}

static void add_labels(dpi_facts *l, const dpi_claim *c) {
    if (c->labels && c->cluster_texts == 0)
        dpi_facts_labels(l, c, "a text is for one label");
    if (c->cluster_texts > 0) {
        dpi_facts_int(l, "n_labels", "labels", c->n_labels);
        dpi_facts_text(l, "labels", "labels", "groups of similar records: a unit is in that of the "
                                              "nearest public centroid");
        dpi_facts_int(l, "cluster_texts", NULL, c->cluster_texts);
        dpi_facts_text(l, NULL, "centroids from",
                       "%d texts of the public prompt, which cost nothing", (int)c->cluster_texts);
    }
}

/* What k is of is the method's. */
static void add_top_k(dpi_facts *l, const dpi_sampler_options *o) {
    const dpi_parameter *p = dpi_method_parameter_of(o->method, "top_k");
    if (p)
        dpi_facts_int(l, p->key, p->label, o->top_k);
}

static void add_numbers(dpi_facts *l, const dpi_claim *c, const dpi_sampler_options *o,
                        const dpi_sampler_plan *p) {
    if (p->rho_budget > 0)
        dpi_facts_real(l, "rho_budget", c->n_parts > 1 ? "rho, for texts" : "rho, budget",
                       p->rho_budget);
    dpi_facts_bound(l, NULL, dpi_rho_label(o), c->rho > 0 ? c->rho : p->rho_total);
    dpi_facts_bound(l, NULL, "epsilon", c->epsilon);
    dpi_facts_real(l, NULL, "at delta", c->delta);
    dpi_facts_int(l, "T", "T, tokens a text", o->n_tokens);
    dpi_facts_int(l, "B", dpi_method_is_assigned(o) ? "B, denominator" : "B, slots a text",
                  o->denominator);
    dpi_facts_real(l, "C", "C, clip bound", p->clip);
    dpi_facts_flag(l, "centered", "centred", o->center);
    dpi_facts_int(l, "K", "K, C as integer", p->K);
    dpi_facts_int(l, "a", "a, 1/tau as integer", (int64_t)p->a);
    if (p->eta > 0) /* Gaussian noise has none */
        dpi_facts_bound(l, "eta", "eta, range a token", p->eta);
    dpi_facts_bound(l, "rho_token", "rho, of one token", p->rho_token);
    dpi_facts_real(l, "tau", "tau, temperature", o->tau);
    add_top_k(l, o);
}

/* What the method has more than the others. */
static void add_method(dpi_facts *l, const dpi_claim *c, const dpi_sampler_options *o,
                       const dpi_sampler_plan *p) {
    dpi_fact facts[DPI_FACTS_MAX];
    const int32_t n = dpi_method_facts(o, p, facts);
    for (int32_t i = 0; i < n; i++)
        *dpi_facts_add(l, NULL, NULL, 0, 0) = facts[i];
    if (c->pace_texts > 0) {
        dpi_facts_int(l, "pace_texts", NULL, c->pace_texts);
        const char *given = dpi_pace_given_name(c->pace_given);
        if (given)
            dpi_facts_text(l, "pace_given", NULL, "%s", given);
        dpi_facts_text(l, NULL, "pace found from",
                       "%d texts of the public prompt, which cost nothing%s%s%s",
                       (int)c->pace_texts, given ? "; " : "", given ? given : "",
                       given ? " was given" : "");
    }
}

/* For programs: the numbers that the sampler computes with. */
static void add_realised(dpi_facts *l, const dpi_sampler_plan *p) {
    const int32_t where = DPI_FACT_REALISED;
    dpi_facts_add(l, "K", NULL, DPI_FACT_INT, where)->integer = p->K;
    dpi_facts_add(l, "a", NULL, DPI_FACT_INT, where)->integer = (int64_t)p->a;
    dpi_facts_add(l, "C", NULL, DPI_FACT_REAL, where)->real = p->clip;
    dpi_facts_add(l, "eta", NULL, DPI_FACT_REAL, where)->real = p->eta;
    dpi_facts_add(l, "rho_token", NULL, DPI_FACT_REAL, where)->real = p->rho_token;
    dpi_facts_add(l, "rho_total", NULL, DPI_FACT_REAL, where)->real = p->rho_total;
    dpi_facts_add(l, "rho_allowed", NULL, DPI_FACT_REAL, where)->real = p->rho_budget;
}

void dpi_sampler_part_facts(const dpi_claim *c, const dpi_claim_part *part, dpi_facts *l) {
    const dpi_method_info *m = info_of(part);
    const dpi_sampler_plan *p = &part->plan;
    dpi_sampler_options o;
    if (!dpi_claim_sampler(c, &o))
        return;
    if (m->has_guarantee) {
        dpi_facts_text(l, "accounting", "accounting", "%s", dpi_accountant_text(o.accountant));
        if (o.subsample > 0)
            dpi_facts_real(l, "subsample", "q, of joining", o.subsample);
        if (o.allocation > 0)
            dpi_facts_int(l, "allocation", "k, secret batches", o.allocation);
        add_labels(l, c);
        dpi_facts_text(l, "composition", "composition", "%s", dpi_claim_composition(c));
        add_numbers(l, c, &o, p);
        add_realised(l, p);
    } else {
        if (m->max_ref == 0)
            dpi_facts_text(l, "prompt", "prompt", "%s",
                           c->no_records ? "public" : "private, of one record");
        else /* what the method counts is for comparison only */
            dpi_facts_flag(l, "data_dependent_cost", NULL, 1);
        dpi_facts_int(l, "T", "T, tokens a text", o.n_tokens);
        if (m->max_ref > 0)
            dpi_facts_int(l, "B", "B, slots a text", o.denominator);
        dpi_facts_real(l, "tau", "tau, temperature", o.tau);
        add_top_k(l, &o);
    }
    if (m->max_ref > 0)
        add_method(l, c, &o, p);
    dpi_facts_int(l, "n_texts", "texts", part->n_runs);
    if (c->released > 0) {
        dpi_facts_int(l, "released", NULL, c->released);
        dpi_facts_text(l, NULL, "prompts have",
                       "the texts of the round before (%d), which are released and cost nothing",
                       (int)c->released);
    }
}

/* ---- The report ------------------------------------------------------------------------------ */

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

static const char *sampling_assumption(const dpi_sampler_options *o) {
    return o->allocation > 0
               ? "Amplification needs that each record joins one of k batches (where q is given: "
                 "with probability q in all, else none), each with the same probability and "
                 "independently of the others, and that assignment and sizes of batches stay "
                 "secret (random allocation, Feldman and Shenfeld 2026; dp/PRIVACY.md, Theorem "
                 "10b). Fulfilled by the program: a fresh draw for each record and run, batches of "
                 "any size."
           : o->subsample > 0
               ? "Amplification needs that each record joins one of the batches with probability q "
                 "in all, independently of the others, and that assignment and sizes of batches "
                 "stay secret. Fulfilled by the program: a fresh draw for each record and run, "
                 "batches of any size; no shuffling."
           : dpi_method_is_assigned(o)
               ? "No amplification by sampling is used. Batches are disjoint, and the batch of a "
                 "record depends on its own content and a fresh key only. Fulfilled by the program."
               : "No amplification by sampling is used. Batches are disjoint, and the batch of a "
                 "record depends on its position only. Fulfilled by the program.";
}

void dpi_sampler_part_assume(const dpi_claim *c, const dpi_claim_part *part,
                             const char *list[DPI_ASSUMPTIONS_MAX + 1]) {
    dpi_sampler_options o;
    int n = 0;
    if (info_of(part)->has_guarantee && dpi_claim_sampler(c, &o)) {
        list[n++] = SOURCES[o.accountant];
        list[n++] = sampling_assumption(&o);
        list[n++] = "The logits of a record are a function of that record, the tokens drawn so far "
                    "and public data, and of no other record. Fulfilled by the program, bit for "
                    "bit.";
        list[n++] = "Costs are those of the integers K and a that the sampler uses; its rounding "
                    "is part of eta, and every bound is rounded up.";
        if (c->released > 0)
            list[n++] = "Of other texts a text depends on those alone that are released and of an "
                        "earlier round; which these are follows from its number. Fulfilled by the "
                        "program.";
        if (info_of(part)->assumption)
            list[n++] = info_of(part)->assumption;
    }
    list[n] = NULL;
}

void dpi_sampler_part_done(const dpi_claim *c, const dpi_claim_part *part, dpi_text *t) {
    const bool units = c->max_per_unit > 0;
    dpi_sampler_options o;
    if (!dpi_claim_sampler(c, &o))
        return;
    dpi_text_add(t,
                 "A language model (%s) wrote %" PRId64 " text%s of at most %d tokens (words, or "
                 "parts of words) each",
                 c->model_name, part->n_runs, part->n_runs == 1 ? "" : "s", o.n_tokens);
    if (c->no_records) {
        dpi_text_add(t, ". No record was read.");
        return;
    }
    if (o.method == DPI_METHOD_PLAIN) {
        dpi_text_add(t, ", from one record, without any protection of it.");
        return;
    }
    if (c->n_units > 0 && units)
        dpi_text_add(t, ", about records of at most %lld person%s (all records with one ID are "
                        "of one person; a record without an ID counts as a person, and adds "
                        "nothing)", (long long)c->n_units, c->n_units == 1 ? "" : "s");
    else if (c->n_units > 0)
        dpi_text_add(t, ", about %lld records", (long long)c->n_units);
    else
        dpi_text_add(t, ", about records whose number is secret");
    dpi_text_add(t,
                 ". Each text is written from a group of its own of %s%d %s. The word that comes "
                 "next is drawn at random; how far %s may move the odds of a word is limited "
                 "before they are added up. Only the texts are given away.",
                 dpi_method_is_assigned(&o) ? "about " : "at most ", o.denominator,
                 units ? "persons" : "records", units ? "one person's records" : "one record");
    if (o.allocation > 0)
        dpi_text_add(t, " In which group %s is was drawn at random, and is told to nobody.",
                     units ? "a person" : "a record");
    if (c->released > 0)
        dpi_text_add(t, " The model was also shown earlier ones of these texts as examples, which "
                        "tells nothing more of a record.");
}
