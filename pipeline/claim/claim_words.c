/* claim_words.c - what a claim says: the statement, from the lines of its mechanisms. */
#include <math.h>
#include <string.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/status.h"
#include "dp/mechanism/mechanism.h"
#include "dpinfer/ledger.h"
#include "pipeline/run.h"
#include "pipeline/claim/claim_json.h"

dpi_fact *dpi_facts_add(dpi_facts *l, const char *key, const char *label, int32_t type,
                        int32_t where) {
    dpi_fact *f = &l->facts[l->n < DPI_CLAIM_FACTS_MAX ? l->n++ : l->n - 1];
    *f = (dpi_fact){.key = key, .label = label, .type = type, .where = where};
    return f;
}
void dpi_facts_int(dpi_facts *l, const char *key, const char *label, int64_t value) {
    dpi_facts_add(l, key, label, DPI_FACT_INT, DPI_FACT_STATEMENT)->integer = value;
}
void dpi_facts_real(dpi_facts *l, const char *key, const char *label, double value) {
    dpi_facts_add(l, key, label, DPI_FACT_REAL, DPI_FACT_STATEMENT)->real = value;
}
void dpi_facts_bound(dpi_facts *l, const char *key, const char *label, double value) {
    dpi_facts_add(l, key, label, DPI_FACT_BOUND, DPI_FACT_STATEMENT)->real = value;
}
void dpi_facts_flag(dpi_facts *l, const char *key, const char *label, int32_t value) {
    dpi_facts_add(l, key, label, DPI_FACT_FLAG, DPI_FACT_STATEMENT)->integer = value != 0;
}

void dpi_facts_text(dpi_facts *l, const char *key, const char *label, const char *format, ...) {
    dpi_fact *f = dpi_facts_add(l, key, label, DPI_FACT_TEXT, DPI_FACT_STATEMENT);
    va_list values;
    va_start(values, format);
    dpi_vformat(f->text, sizeof f->text, format, values);
    va_end(values);
}

void dpi_facts_labels(dpi_facts *l, const dpi_claim *c, const char *what) {
    dpi_facts_int(l, "n_labels", "labels", c->n_labels);
    dpi_facts_text(l, "labels", "labels", "%s; %s",
                   c->labels == DPI_LABELS_PUBLIC
                       ? "public: which unit has which label is no secret"
                       : "private: a unit's label is a secret of the unit", what);
}

const char *dpi_claim_meaning(const dpi_claim *c) {
    dpi_sampler_options o;
    if (dpi_claim_sampler(c, &o)) /* a sampler says what becomes of logits */
        return dpi_method_neighbours(&o);
    switch (c->adjacency) {
    case DPI_ADJACENCY_REPLACE_BY_NULL:
        return "one unit replaced by nothing";
    case DPI_ADJACENCY_ADD_REMOVE:
        return "one unit more or less";
    case DPI_ADJACENCY_ZERO_OUT:
        return "what one unit adds becomes 0";
    default:
        return "a document, and one with other words in its places";
    }
}

static void add_units(dpi_facts *l, const dpi_claim *c) {
    dpi_sampler_options o;
    if (isinf(c->epsilon) && dpi_claim_sampler(c, &o))
        return; /* nothing is proven of any */
    const char *name = dpi_adjacency_name(c->adjacency),
               *kind = dpi_record_kind_text(c->record_kind);
    dpi_facts_text(l, "adjacency", NULL, "%s", name);
    dpi_facts_text(l, NULL, "adjacency", "%s: %s", name, dpi_claim_meaning(c));
    if (c->adjacency == DPI_ADJACENCY_WORD)
        return;
    dpi_facts_text(l, "unit", NULL, "%s", kind);
    if (c->max_per_unit > 0) {
        dpi_facts_text(l, NULL, "unit",
                       "all records with one unit ID, or one without an ID, which adds nothing; "
                       "one record = %s", kind);
        dpi_facts_int(l, "M", "M, records a unit", c->max_per_unit);
    } else if (c->record_kind == DPI_RECORD_OTHER) {
        dpi_facts_text(l, NULL, "unit", "one record");
    } else {
        dpi_facts_text(l, NULL, "unit", "one record = %s", kind);
    }
    if (c->n_units > 0)
        dpi_facts_int(l, "n_units",
                      c->adjacency == DPI_ADJACENCY_ADD_REMOVE ? "units, about" : "units",
                      c->n_units);
}

static void add_guarantee(dpi_facts *l, const dpi_claim *c) {
    char text[128];
    dpi_claim_guarantee(c, text, sizeof text);
    if (isinf(c->epsilon)) {
        dpi_facts_text(l, "guarantee", "guarantee", "none");
        return;
    }
    if (dpi_claim_is_private(c))
        dpi_facts_text(l, NULL, "guarantee", "%s, for all that is released together", text);
    else
        dpi_facts_text(l, NULL, "guarantee", "none (with secret randomness: %s)", text);
    if (c->rho > 0)
        dpi_facts_bound(l, "rho", NULL, c->rho);
    dpi_facts_bound(l, "epsilon", NULL, c->epsilon);
    dpi_facts_real(l, "delta", NULL, c->delta);
}

static void add_parameter(dpi_facts *l, const dpi_parameter *q, const dpi_claim_part *p,
                          double value) {
    if (!q->label || (q->is_optional && value == 0))
        return;
    if (q->type == DPI_PARAMETER_TEXT)
        dpi_facts_text(l, q->key, q->label, "%s", p->text);
    else if (q->type == DPI_PARAMETER_REAL)
        dpi_facts_real(l, q->key, q->label, value);
    else
        dpi_facts_int(l, q->key, q->label, (int64_t)value);
}

/* Its parameters with a label, and what it says itself. */
static void add_part(dpi_facts *l, const dpi_claim *c, const dpi_claim_part *p) {
    const dpi_mechanism_ops *m = dpi_mechanism_ops_get(p->mechanism);
    const dpi_parameter *q;
    if (m->accounting)
        dpi_facts_text(l, "accounting", "accounting", "%s (%.0f %.*s)", m->accounting,
                       (double)p->n_runs, (int)strlen(m->info.runs) - (p->n_runs == 1),
                       m->info.runs);
    for (int32_t i = 0; (q = dpi_mechanism_parameter_get(p->mechanism, i)) && !m->sampler; i++)
        add_parameter(l, q, p, p->values[i]);
    dpi_part_facts(c, p, l);
}

/* What all work on the dataset comes to. */
static void add_ledger(dpi_facts *l, const dpi_claim *c) {
    const dpi_claim_ledger *b = &c->ledger;
    const double one = DPI_LEDGER_ONE;
    const int unit = b->scope == DPI_SCOPE_UNIT;
    if (!b->dataset[0])
        return;
    dpi_facts_text(l, "dataset", "dataset", "%.63s", b->dataset);
    dpi_facts_text(l, "scope", "scope", "%s",
                   unit ? "unit: each unit pays for the runs that it is in"
                        : "dataset: all units pay for every run");
    dpi_facts_text(l, NULL, "dataset's budget",
                   "%.6g (Renyi, order %d): (%g, %g)-DP for all runs together",
                   (double)b->budget / one, b->order, b->epsilon, b->delta);
    dpi_facts_int(l, "order", NULL, b->order);
    dpi_facts_real(l, "ledger_budget", NULL, (double)b->budget / one);
    dpi_facts_bound(l, "ledger_before", unit ? "a unit before, most" : "spent before",
                    (double)b->before / one);
    dpi_facts_bound(l, "ledger_charge", "charged for this", (double)b->charge / one);
    const int64_t after = b->before + b->charge;
    dpi_facts_bound(l, "ledger_after", unit ? "a unit after, most" : "spent after",
                    (double)(unit && after > b->budget ? b->budget : after) / one);
}

void dpi_claim_facts(const dpi_claim *c, dpi_fact *facts, size_t *n_facts) {
    dpi_facts l = {.facts = facts};
    const char *warning = dpi_claim_warning(c);
    char label[160];
    dpi_mechanism_info info;
    dpi_claim_label(c, label, sizeof label);
    if (warning)
        dpi_facts_text(&l, NULL, "NOT PRIVATE", "%s", warning);
    dpi_facts_text(&l, "program", NULL, "dpinfer");
    dpi_facts_text(&l, "version", NULL, "%s", dpi_version());
    dpi_facts_flag(&l, "private", NULL, !warning);
    dpi_facts_text(&l, "label", NULL, "%s", label);
    if (c->model_name[0])
        dpi_facts_text(&l, "model", "model", "%s", c->model_name);
    for (int32_t i = 0; i < c->n_parts; i++) {
        dpi_mechanism_info_get(c->parts[i].mechanism, &info);
        dpi_facts_text(&l, "method", i > 0 ? "and" : "method", "%s", info.title);
    }
    add_guarantee(&l, c);
    add_units(&l, c);
    for (int32_t i = 0; i < c->n_parts; i++)
        add_part(&l, c, &c->parts[i]);
    if (c->grammar[0])
        dpi_facts_text(&l, "grammar", "form of texts",
                       "a public grammar (%s) says which tokens may come; it costs nothing",
                       c->grammar);
    if (c->wording[0])
        dpi_facts_text(&l, "wording", "wording",
                       "public rules of how texts begin, end and go on (%.16s); they cost nothing",
                       c->wording);
    if (c->prompts[0])
        dpi_facts_text(&l, "prompts", NULL, "%s", c->prompts);
    add_ledger(&l, c);
    dpi_facts_text(&l, "randomness", "randomness", "%s",
                   c->randomness == DPI_RANDOMNESS_SYSTEM ? "getrandom(2), fresh for every draw"
                                                          : "--seed (insecure)");
    *n_facts = l.n;
}

dpi_status dpi_claim_statement(const dpi_claim *c, int32_t complete, char **text,
                                 dpi_error *err) {
    dpi_fact facts[DPI_CLAIM_FACTS_MAX];
    size_t n;
    char value[160];
    dpi_text made = {0};
    dpi_claim_facts(c, facts, &n);
    dpi_text_add(&made, "Privacy statement%s\n", dpi_claim_is_private(c) ? "" : ": NOT PRIVATE");
    for (size_t i = 0; i < n; i++) {
        dpi_fact_text(&facts[i], value, sizeof value);
        if (facts[i].label)
            dpi_text_add(&made, "  %-18s %s\n", facts[i].label, value);
    }
    if (!complete)
        dpi_text_add(&made, "  %-18s %s\n", "stopped early",
                     "the guarantee and its cost are those of the whole work");
    if (made.failed) {
        free(made.data);
        return dpi_no_memory(err, "the statement");
    }
    *text = made.data;
    return DPI_STATUS_OK;
}
