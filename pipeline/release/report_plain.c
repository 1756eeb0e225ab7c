/* report_plain.c - what a report says in plain words, for readers who know no epsilon: functions of
 * the claim, so that they can be made a second time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "dpinfer/ledger.h"
#include "dp/mechanism/mechanism.h"
#include "pipeline/release/report.h"

/* A guess between two lists of records, each as likely as the other, is right with probability
 * (1 + TV) / 2 at most, TV the total variation of the texts. By (epsilon, delta)-DP
 * TV <= (e^epsilon - 1 + 2 delta) / (e^epsilon + 1). By rho-zCDP the Kullback-Leibler divergence is
 * at most rho, so TV <= sqrt(rho / 2) (Pinsker) and TV <= sqrt(1 - e^-rho) (Bretagnolle and Huber
 * 1979). The least of them, rounded up. */
static double most_right(double epsilon, double delta, double rho) {
    double tv =
        epsilon > 0 && epsilon < 700 ? (expm1(epsilon) + 2 * delta) / (exp(epsilon) + 1) : 1;
    if (rho > 0 && sqrt(rho / 2) < tv)
        tv = sqrt(rho / 2);
    if (rho > 0 && sqrt(-expm1(-rho)) < tv)
        tv = sqrt(-expm1(-rho));
    tv = tv * (1 + 1e-12);
    return tv < 1 ? (1 + tv) / 2 : 1;
}

/* "73.6 in 100", rounded up. */
static const char *percent(double share, char text[16]) {
    dpi_format(text, 16, "%.1f", share > 0 ? ceil(share * 1000 - 1e-6) / 10 : 0);
    return text;
}

static void put_done(dpi_text *t, const dpi_claim *c) {
    for (int32_t i = 0; i < c->n_parts; i++) {
        if (i > 0)
            dpi_text_add(t, " ");
        dpi_part_done(c, &c->parts[i], t);
    }
}

static void put_learnt(dpi_text *t, const dpi_claim *c, double after) {
    char text[16];
    const bool units = c->max_per_unit > 0;
    if (!dpi_claim_is_private(c)) {
        dpi_text_add(t, "Everything: there is no guarantee (%s). %s", dpi_claim_warning(c),
                     c->no_records ? "No record was read, so there is nothing to protect."
                                   : "Treat what is released as you treat the records.");
        return;
    }
    dpi_text_add(
        t,
        "%s, whatever a reader knows already. Suppose that a reader knows all "
        "other records, and has to guess from what is released %s. "
        "Without it, a guess is right in 50 of 100 cases. With all that this work released "
        "it is right in at most %s of 100.",
        after <= .6   ? "Very little"
        : after <= .8 ? "Little"
        : after < .95 ? "Something"
                      : "Much",
        c->adjacency == DPI_ADJACENCY_WORD ? "which of two documents it was made of"
        : units ? "whether the records of one person are among them"
                : "whether one record is among them",
        percent(after, text));
}

static void put_budget(dpi_text *t, const dpi_claim *c) {
    const dpi_claim_ledger *l = &c->ledger;
    const double before = (double)l->before / (double)l->budget;
    const double charge = (double)l->charge / (double)l->budget;
    const double left = before + charge < 1 ? 1 - before - charge : 0;
    char a[16], b[16];
    if (!dpi_claim_is_private(c)) {
        dpi_text_add(t, "Work without a guarantee is in no budget.");
        return;
    }
    const bool alone = strcmp(l->dataset, DPI_DATASET_OF_JOB) == 0;
    if (!l->dataset[0] || alone) {
        dpi_text_add(t,
                     "This was charged to %s. What other work on the same records "
                     "tells adds to it, and is not known here.",
                     alone ? "a ledger of its own" : "no ledger");
        return;
    }
    if (l->scope == DPI_SCOPE_UNIT) {
        dpi_text_add(t,
                     "Each person has a budget of its own in the dataset \"%s\" (epsilon %g at "
                     "delta %g, for all runs). This run took at most %s %% of it; a person whose "
                     "budget did not suffice was left out.",
                     l->dataset, l->epsilon, l->delta, percent(charge, b));
        return;
    }
    dpi_text_add(
        t,
        "All runs about the dataset \"%s\" together may cost epsilon %g at delta %g. Before "
        "this run %s %% of that was spent, this run took %s %%, so that %.1f %% are left.",
        l->dataset, l->epsilon, l->delta, percent(before, a), percent(charge, b),
        floor(left * 1000) / 10);
}

static json_t *uncovered(const dpi_claim *c) {
    if (!dpi_claim_is_private(c))
        return json_pack("[s]", "Everything.");
    return json_pack("[s, s, s, s, s]",
                     "What is true of many records may be in the texts. That is their purpose.",
                     c->max_per_unit > 0
                         ? "A person who has several IDs is protected once for each of them."
                         : "A person who is in several records is protected once for each of "
                           "them.",
                     "The choice of prompts and options, and of the records: they must not follow "
                     "from what is in "
                     "a record.",
                     "What the language model learnt before this run.",
                     "Other releases about the same persons, which add up with this one.");
}

static json_t *string_of(dpi_text *t) {
    json_t *s = t->failed || !t->data ? NULL : json_stringn(t->data, t->n_bytes);
    free(t->data);
    return s;
}

json_t *dpi_report_plain(const dpi_claim *c) {
    dpi_text done = {0}, learnt = {0}, budget = {0};
    const bool is_private = dpi_claim_is_private(c);
    const double after = is_private ? most_right(c->epsilon, c->delta, c->rho) : 1;
    put_done(&done, c);
    put_learnt(&learnt, c, after);
    put_budget(&budget, c);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "done", string_of(&done), "learnt",
                     string_of(&learnt), "guess_before", is_private ? json_real(.5) : json_null(),
                     "guess_after", is_private ? json_real(after) : json_null(), "budget",
                     string_of(&budget), "not_covered", uncovered(c));
}
