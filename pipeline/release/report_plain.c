/* report_plain.c - what a report says in plain words, for readers who know no epsilon: functions of
 * the claim, so that they can be made a second time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/text.h"
#include "dpinfer/ledger.h"
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
    const bool units = dpi_claim_has_units(c);
    dpi_text_add(t,
                 "A language model (%s) wrote %d text%s of at most %d tokens (words, or parts of "
                 "words) each",
                 c->model_name, c->n_texts, c->n_texts == 1 ? "" : "s", c->method.n_tokens);
    if (!c->record_in_prompt) {
        dpi_text_add(t, ". No record was read.");
        return;
    }
    if (c->method.method == DPI_METHOD_PLAIN) {
        dpi_text_add(t, ", from one record, without any protection of it.");
        return;
    }
    if (c->n_records > 0)
        dpi_text_add(t, ", about %lld %s", (long long)c->n_records,
                     units ? "persons' records (one person is all records with one ID)"
                           : "records");
    else
        dpi_text_add(t, ", about records whose number is secret");
    dpi_text_add(t,
                 ". Each text is written from a group of its own of %s%d %s. The word that comes "
                 "next is drawn at random; how far %s may move the odds of a word is limited "
                 "before they are added up. Only the texts are given away.",
                 dpi_claim_is_assigned(c) ? "about " : "at most ", c->method.denominator,
                 units ? "persons" : "records", units ? "one person's records" : "one record");
}

static void put_learnt(dpi_text *t, const dpi_claim *c, double after) {
    char text[16];
    const bool units = dpi_claim_has_units(c);
    if (!dpi_claim_is_private(c)) {
        dpi_text_add(t, "Everything: this run has no guarantee (%s). %s", dpi_claim_warning(c),
                     c->record_in_prompt ? "Treat its texts as you treat the records."
                                         : "It read no record, so there is nothing to protect.");
        return;
    }
    dpi_text_add(
        t,
        "%s, whatever a reader knows already. Suppose that a reader knows all "
        "other records, and has to guess from the texts whether %s among them. "
        "Without the texts, a guess is right in 50 of 100 cases. With all the texts of this "
        "run it is right in at most %s of 100.",
        after <= .6   ? "Very little"
        : after <= .8 ? "Little"
        : after < .95 ? "Something"
                      : "Much",
        units ? "the records of one person are" : "one record is", percent(after, text));
}

static void put_budget(dpi_text *t, const dpi_claim *c) {
    const dpi_claim_ledger *l = &c->ledger;
    const double before = (double)l->before / (double)l->budget;
    const double charge = (double)l->charge / (double)l->budget;
    const double left = before + charge < 1 ? 1 - before - charge : 0;
    char a[16], b[16];
    if (!dpi_claim_is_private(c)) {
        dpi_text_add(t, "A run without a guarantee is in no budget.");
        return;
    }
    const bool alone = strcmp(l->dataset, DPI_DATASET_OF_JOB) == 0;
    if (!l->dataset[0] || alone) {
        dpi_text_add(t,
                     "This run was charged to %s. What other runs about the same records "
                     "tell adds to it, and is not known here.",
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
                     dpi_claim_has_units(c)
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
    const double rho = dpi_claim_is_zcdp(c) ? dpi_claim_rho(c) : 0;
    const double after = is_private ? most_right(dpi_claim_epsilon(c), c->method.delta, rho) : 1;
    put_done(&done, c);
    put_learnt(&learnt, c, after);
    put_budget(&budget, c);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "done", string_of(&done), "learnt",
                     string_of(&learnt), "guess_before", is_private ? json_real(.5) : json_null(),
                     "guess_after", is_private ? json_real(after) : json_null(), "budget",
                     string_of(&budget), "not_covered", uncovered(c));
}
