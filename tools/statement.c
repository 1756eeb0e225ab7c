/* statement.c - see statement.h. */
#include "statement.h"

static void add_guarantee(facts *f, const job *j) {
    char rho[40], epsilon[40];
    facts_round_up(j->plan.rho_total, 7, rho, sizeof rho);
    facts_round_up(j->epsilon, 7, epsilon, sizeof epsilon);
    if (j->is_private)
        facts_line(f, "guarantee", "%s-zCDP, and so (%s, %g)-DP, for all texts together", rho,
                   epsilon, j->delta);
    else
        facts_line(f, "guarantee", "none (with secret randomness: %s-zCDP, (%s, %g)-DP)", rho,
                   epsilon, j->delta);
    facts_text(f, "adjacency", NULL, "replace-by-null");
    facts_line(f, "adjacency", "replace-by-null: the record's slot stays, and adds nothing");
    const char *unit = j->docs ? records_unit(j->docs) : "one record";
    facts_text(f, "unit", NULL, unit);
    facts_line(f, "unit", "one record = %s", unit);
    facts_text(f, "accounting", "accounting", "zCDP");
    facts_text(f, "composition", "composition",
               "parallel over disjoint batches, each record in one; runs add up");
}

static void add_parameters(facts *f, const job *j) {
    facts_real(f, "rho_budget", "rho, budget", j->sampler.rho);
    facts_bound(f, "rho", "rho, spent", j->plan.rho_total);
    facts_bound(f, "epsilon", "epsilon", j->epsilon);
    facts_real(f, "delta", "at delta", j->delta);
    facts_int(f, "T", "T, tokens a text", j->sampler.n_tokens);
    facts_int(f, "B", "B, slots a text", j->sampler.n_ref);
    facts_real(f, "C", "C, clip bound", j->plan.clip);
    facts_int(f, "K", "K, C as integer", j->plan.K);
    facts_int(f, "a", "a, 1/tau as integer", (int64_t)j->plan.a);
    facts_bound(f, "eta", "eta, range a token", j->plan.eta);
    facts_bound(f, "rho_token", "rho, of one token", j->plan.rho_token);
    facts_real(f, "tau", "tau, temperature", j->sampler.tau);
    facts_int(f, "top_k", "k of Top-k+", j->sampler.top_k);
    facts_int(f, "n_records", "records", j->n_records);
}

void statement_add(facts *f, const job *j) {
    if (j->warning)
        facts_line(f, "NOT PRIVATE", "%s", j->warning + sizeof "NOT PRIVATE: " - 1);
    facts_text(f, "program", NULL, "dpinfer");
    facts_text(f, "version", NULL, dpi_version());
    facts_bool(f, "private", NULL, j->is_private);
    facts_text(f, "label", NULL, j->is_private ? "PRIVATE" : j->warning);
    facts_text(f, "model", "model", j->info.name);
    if (j->plain) {
        facts_text(f, "method", "method", "plain");
        facts_text(f, "prompt", "prompt",
                   j->reference >= 0 ? "private, of one record" : "public");
        facts_int(f, "T", "T, tokens a text", j->sampler.n_tokens);
        facts_real(f, "tau", "tau, temperature", j->sampler.tau);
        facts_int(f, "top_k", "k of Top-k", j->sampler.top_k);
    } else {
        facts_text(f, "method", "method", "InvisibleInk");
        add_guarantee(f, j);
        add_parameters(f, j);
    }
    facts_int(f, "n_texts", "texts", j->n_texts);
    facts_text(f, "randomness", "randomness",
               j->sampler.random ? "--seed (insecure)" : "getrandom(2), fresh for every token");
}
