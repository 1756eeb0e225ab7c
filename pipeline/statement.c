/* statement.c - what a claim says, value by value and in words; see dpinfer/claim.h. */
#include "pipeline/claim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "dpinfer/ledger.h"

/* ---- Words ----------------------------------------------------------------------------------- */

static const char *const ADJACENCY[] = {
    [DPI_ADJACENCY_REPLACE_BY_NULL] = "replace-by-null",
    [DPI_ADJACENCY_ADD_REMOVE] = "add-remove",
    [DPI_ADJACENCY_ZERO_OUT] = "zero-out",
    [DPI_ADJACENCY_WORD] = "another-word",
};

const char *dpi_adjacency_name(int32_t adjacency) { return ADJACENCY[adjacency]; }

const char *dpi_claim_composition(const dpi_claim *c) {
    enum { BY_PLACE, BY_HASH, BY_DRAW, N_WAYS };
    static const char *const RECORDS[N_WAYS] = {
        "parallel over disjoint batches, each record in one; runs add up",
        "parallel over disjoint batches, by a keyed hash of each record; runs add up",
        "each record in one secret random batch with probability q, else in none; runs add up",
    };
    static const char *const UNITS[N_WAYS] = {
        "parallel over disjoint batches, each unit in one, as a whole; runs add up",
        "parallel over disjoint batches, by a keyed hash of each unit's ID; runs add up",
        "each unit in one secret random batch with probability q, else in none; runs add up",
    };
    const int way = c->method.subsample > 0    ? BY_DRAW
                    : dpi_claim_is_assigned(c) ? BY_HASH
                                               : BY_PLACE;
    return dpi_claim_has_units(c) ? UNITS[way] : RECORDS[way];
}

int32_t dpi_claim_is_zcdp(const dpi_claim *c) {
    return c->method.subsample == 0 && c->method.accountant != DPI_ACCOUNTANT_BR;
}

void dpi_bound_text(double value, int32_t digits, char *text, size_t size) {
    dpi_format(text, size, "%.*g", digits, value);
    /* Half a unit in the last digit is at most this share of the value. */
    double step = 1;
    for (int32_t i = 0; i < digits; i++)
        step /= 10;
    for (double x = value; dpi_strtod(text, NULL) < value;) {
        x += value * step;
        dpi_format(text, size, "%.*g", digits, x);
    }
}

size_t dpi_claim_guarantee(const dpi_claim *c, char *text, size_t size) {
    char rho[40], epsilon[40], delta[40];
    dpi_bound_text(dpi_claim_rho(c), 7, rho, sizeof rho);
    dpi_bound_text(dpi_claim_epsilon(c), 7, epsilon, sizeof epsilon);
    dpi_bound_text(c->method.delta, 7, delta, sizeof delta);
    if (dpi_claim_is_zcdp(c))
        return (size_t)snprintf(text, size, "%s-zCDP, and so (%s, %s)-DP", rho, epsilon, delta);
    return (size_t)snprintf(text, size, "(%s, %s)-DP", epsilon, delta);
}

/* ---- Facts ----------------------------------------------------------------------------------- */

typedef struct list {
    dpi_fact *facts;
    size_t n;
} list;

static dpi_fact *add(list *l, const char *key, const char *label, int32_t type) {
    dpi_fact *f = &l->facts[l->n++];
    *f = (dpi_fact){.key = key, .label = label, .type = type, .where = DPI_FACT_STATEMENT};
    return f;
}

static void add_int(list *l, const char *key, const char *label, int64_t value) {
    add(l, key, label, DPI_FACT_INT)->integer = value;
}
static void add_real(list *l, const char *key, const char *label, double value) {
    add(l, key, label, DPI_FACT_REAL)->real = value;
}
static void add_bound(list *l, const char *key, const char *label, double value) {
    add(l, key, label, DPI_FACT_BOUND)->real = value;
}
static void add_flag(list *l, const char *key, const char *label, int32_t value) {
    add(l, key, label, DPI_FACT_FLAG)->integer = value != 0;
}

__attribute__((format(printf, 4, 5))) static void
add_text(list *l, const char *key, const char *label, const char *format, ...) {
    dpi_fact *f = add(l, key, label, DPI_FACT_TEXT);
    va_list values;
    va_start(values, format);
    dpi_vformat(f->text, sizeof f->text, format, values);
    va_end(values);
}

static void add_guarantee(list *l, const dpi_claim *c) {
    char text[128];
    const dpi_sampler_options *o = &c->method;
    const char *name = dpi_adjacency_name(o->adjacency),
               *kind = dpi_record_kind_text(c->record_kind);
    dpi_claim_guarantee(c, text, sizeof text);
    if (dpi_claim_is_private(c))
        add_text(l, NULL, "guarantee", "%s, for all texts together", text);
    else
        add_text(l, NULL, "guarantee", "none (with secret randomness: %s)", text);
    add_text(l, "adjacency", NULL, "%s", name);
    add_text(l, NULL, "adjacency", "%s: %s", name, dpi_method_neighbours(o));
    add_text(l, "unit", NULL, "%s", kind);
    if (dpi_claim_has_units(c)) {
        add_text(l, NULL, "unit", "all records with one unit ID; one record = %s", kind);
        add_int(l, "M", "M, records a unit", o->max_per_unit);
    } else {
        add_text(l, NULL, "unit", "one record = %s", kind);
    }
    add_text(l, "accounting", "accounting", "%s", dpi_accountant_text(o->accountant));
    if (o->subsample > 0)
        add_real(l, "subsample", "q, of joining", o->subsample);
    if (c->labels) {
        add_int(l, "n_labels", "labels", c->n_labels);
        add_text(l, "labels", "labels", "%s",
                 c->cluster_texts > 0
                     ? "groups of similar records: a unit is in that of the nearest public centroid"
                 : c->labels == DPI_LABELS_PUBLIC
                     ? "public: which unit has which label is no secret; a text is for one label"
                     : "private: a unit's label is a secret of the unit; a text is for one label");
    }
    if (c->cluster_texts > 0) {
        add_int(l, "cluster_texts", NULL, c->cluster_texts);
        add_text(l, NULL, "centroids from", "%d texts of the public prompt, which cost nothing",
                 (int)c->cluster_texts);
    }
    add_text(l, "composition", "composition", "%s", dpi_claim_composition(c));
}

/* What k is of is the method's. */
static void add_top_k(list *l, const dpi_sampler_options *o) {
    const dpi_parameter *p = dpi_method_parameter_of(o->method, "top_k");
    if (p)
        add_int(l, p->key, p->label, o->top_k);
}

static void add_records(list *l, const dpi_claim *c) {
    if (c->n_records > 0)
        add_int(l, "n_records", dpi_claim_has_units(c) ? "units" : "records", c->n_records);
}

static void add_parameters(list *l, const dpi_claim *c) {
    const dpi_sampler_options *o = &c->method;
    const dpi_sampler_plan *p = &c->plan;
    if (p->rho_budget > 0)
        add_real(l, "rho_budget", c->histogram > 0 ? "rho, for texts" : "rho, budget",
                 p->rho_budget);
    if (c->histogram > 0)
        add_bound(l, "histogram_rho", "rho, of histogram", dpi_claim_histogram_rho(c));
    add_bound(l, "rho", dpi_rho_label(o), dpi_claim_rho(c));
    add_bound(l, "epsilon", "epsilon", dpi_claim_epsilon(c));
    add_real(l, "delta", "at delta", o->delta);
    add_int(l, "T", "T, tokens a text", o->n_tokens);
    add_int(l, "B", dpi_claim_is_assigned(c) ? "B, denominator" : "B, slots a text",
            o->denominator);
    add_real(l, "C", "C, clip bound", p->clip);
    add_flag(l, "centered", "centred", o->center);
    add_int(l, "K", "K, C as integer", p->K);
    add_int(l, "a", "a, 1/tau as integer", (int64_t)p->a);
    if (p->eta > 0) /* Gaussian noise has none */
        add_bound(l, "eta", "eta, range a token", p->eta);
    add_bound(l, "rho_token", "rho, of one token", p->rho_token);
    add_real(l, "tau", "tau, temperature", o->tau);
    add_top_k(l, o);
    add_records(l, c);
}

/* What the method has more than the others. */
static void add_method(list *l, const dpi_claim *c) {
    dpi_fact facts[DPI_FACTS_MAX];
    const int32_t n = dpi_method_facts(&c->method, &c->plan, facts);
    for (int32_t i = 0; i < n; i++)
        if (facts[i].where & DPI_FACT_STATEMENT)
            l->facts[l->n++] = facts[i];
    if (c->pace_texts > 0) {
        add_int(l, "pace_texts", NULL, c->pace_texts);
        const char *given = dpi_pace_given_name(c->pace_given);
        if (given)
            add_text(l, "pace_given", NULL, "%s", given);
        add_text(l, NULL, "pace found from",
                 "%d texts of the public prompt, which cost nothing%s%s%s", (int)c->pace_texts,
                 given ? "; " : "", given ? given : "", given ? " was given" : "");
    }
}

/* A method that guarantees nothing: no rho, no epsilon, in no form. */
static void add_unproven(list *l, const dpi_claim *c) {
    const dpi_sampler_options *o = &c->method;
    add_text(l, NULL, "guarantee",
             "none: what the method counts is data-dependent, for comparison only");
    add_text(l, "guarantee", NULL, "none");
    add_flag(l, "data_dependent_cost", NULL, 1);
    add_int(l, "T", "T, tokens a text", o->n_tokens);
    add_int(l, "B", "B, slots a text", o->denominator);
    add_real(l, "tau", "tau, temperature", o->tau);
    add_top_k(l, o);
    add_method(l, c);
    add_records(l, c);
}

static void add_plain(list *l, const dpi_claim *c) {
    const dpi_sampler_options *o = &c->method;
    add_text(l, "prompt", "prompt", "%s",
             c->record_in_prompt ? "private, of one record" : "public");
    add_int(l, "T", "T, tokens a text", o->n_tokens);
    add_real(l, "tau", "tau, temperature", o->tau);
    add_top_k(l, o);
}

/* What all runs about the dataset come to. */
static void add_ledger(list *l, const dpi_claim *c) {
    const dpi_claim_ledger *b = &c->ledger;
    const double one = DPI_LEDGER_ONE;
    const int unit = b->scope == DPI_SCOPE_UNIT;
    if (!b->dataset[0])
        return;
    add_text(l, "dataset", "dataset", "%.63s", b->dataset);
    add_text(l, "scope", "scope", "%s",
             unit ? "unit: each unit pays for the runs that it is in"
                  : "dataset: all units pay for every run");
    add_text(l, NULL, "dataset's budget",
             "%.6g (Renyi, order %d): (%g, %g)-DP for all runs together",
             (double)b->budget / one, b->order, b->epsilon, b->delta);
    add_int(l, "order", NULL, b->order);
    add_real(l, "ledger_budget", NULL, (double)b->budget / one);
    add_bound(l, "ledger_before", unit ? "a unit before, most" : "spent before",
              (double)b->before / one);
    add_bound(l, "ledger_charge", "charged for this", (double)b->charge / one);
    const int64_t after = b->before + b->charge;
    add_bound(l, "ledger_after", unit ? "a unit after, most" : "spent after",
              (double)(unit && after > b->budget ? b->budget : after) / one);
}

static void add_all(list *l, const dpi_claim *c) {
    const dpi_method_info *m = dpi_method_get(c->method.method);
    const char *warning = dpi_claim_warning(c);
    char label[160];
    dpi_claim_label(c, label, sizeof label);
    if (warning)
        add_text(l, NULL, "NOT PRIVATE", "%s", warning);
    add_text(l, "program", NULL, "dpinfer");
    add_text(l, "version", NULL, "%s", dpi_version());
    add_flag(l, "private", NULL, !warning);
    add_text(l, "label", NULL, "%s", label);
    add_text(l, "model", "model", "%.*s", (int)sizeof c->model_name - 1, c->model_name);
    add_text(l, "method", "method", "%s", m->title);
    if (m->max_ref == 0) {
        add_plain(l, c);
    } else if (!m->has_guarantee) {
        add_unproven(l, c);
    } else {
        add_guarantee(l, c);
        add_parameters(l, c);
        add_method(l, c);
        add_ledger(l, c);
    }
    add_int(l, "n_texts", "texts", c->n_texts);
    if (c->grammar[0])
        add_text(l, "grammar", "form of texts",
                 "a public grammar (%s) says which tokens may come; it costs nothing", c->grammar);
    add_text(l, "randomness", "randomness", "%s",
             c->randomness == DPI_RANDOMNESS_SYSTEM ? "getrandom(2), fresh for every token"
                                                    : "--seed (insecure)");
}

dpi_status dpi_claim_facts(const dpi_claim *claim, dpi_fact *facts, size_t *n_facts,
                           dpi_error *err) {
    list l = {.facts = facts};
    DPI_TRY(dpi_claim_check(claim, err));
    add_all(&l, claim);
    *n_facts = l.n;
    return DPI_STATUS_OK;
}

size_t dpi_fact_text(const dpi_fact *fact, char *text, size_t size) {
    char bound[40];
    int n = 0;
    switch (fact->type) {
    case DPI_FACT_TEXT:
        n = snprintf(text, size, "%s", fact->text);
        break;
    case DPI_FACT_INT:
        n = snprintf(text, size, "%" PRId64, fact->integer);
        break;
    case DPI_FACT_REAL:
        n = dpi_format(text, size, "%.10g", fact->real);
        break;
    case DPI_FACT_BOUND:
        dpi_bound_text(fact->real, 10, bound, sizeof bound);
        n = snprintf(text, size, "%s", bound);
        break;
    default:
        n = snprintf(text, size, "%s", fact->integer ? "yes" : "no");
    }
    return n > 0 ? (size_t)n : 0;
}

/* ---- As text --------------------------------------------------------------------------------- */

dpi_status dpi_claim_statement(const dpi_claim *claim, int32_t complete, char **text,
                               dpi_error *err) {
    dpi_fact facts[DPI_CLAIM_FACTS_MAX];
    char value[sizeof facts->text];
    size_t n_facts;
    dpi_text made = {0};
    DPI_TRY(dpi_claim_facts(claim, facts, &n_facts, err));
    dpi_text_add(&made, "Privacy statement%s\n",
                 dpi_claim_is_private(claim) ? "" : ": NOT PRIVATE");
    for (size_t i = 0; i < n_facts; i++) {
        dpi_fact_text(&facts[i], value, sizeof value);
        if (facts[i].label)
            dpi_text_add(&made, "  %-18s %s\n", facts[i].label, value);
    }
    if (!complete)
        dpi_text_add(&made, "  %-18s %s\n", "stopped early",
                     "the guarantee and its cost are those of the whole run");
    if (made.failed) {
        free(made.data);
        return dpi_no_memory(err, "the statement");
    }
    *text = made.data;
    return DPI_STATUS_OK;
}

void dpi_claim_ledger_lines(dpi_text *t, const dpi_claim_ledger *l) {
    const double one = DPI_LEDGER_ONE;
    char before[40], charge[40];
    if (!l->dataset[0])
        return;
    dpi_bound_text((double)l->before / one, 10, before, sizeof before);
    dpi_bound_text((double)l->charge / one, 10, charge, sizeof charge);
    dpi_text_add(t, "  dataset            %s\n", l->dataset);
    if (l->scope == DPI_SCOPE_UNIT)
        dpi_text_add(t, "  scope              unit: each unit pays for itself, and is null where "
                        "it cannot\n");
    dpi_text_add(t,
                 "  dataset's budget   %.6g (Renyi, order %d): (%g, %g)-DP for all runs together\n",
                 (double)l->budget / one, l->order, l->epsilon, l->delta);
    dpi_text_add(t, "  %s %s\n  charged for this   %s\n",
                 l->scope == DPI_SCOPE_UNIT ? "a unit before, most" : "spent before      ", before,
                 charge);
}
