/* statement.c - see statement.h. */
#include "tools/statement.h"

static const char *const ADJACENCY[][2] = {
    [DPI_ADJACENCY_REPLACE_BY_NULL] = {"replace-by-null",
                                       "the record's slot stays, and adds nothing"},
    [DPI_ADJACENCY_ADD_REMOVE] = {"add-remove", "one record more or less; sums are divided by B"},
    [DPI_ADJACENCY_ZERO_OUT] = {"zero-out", "the record's logits become 0; its slot stays"},
};

static const char *const ACCOUNTING[] = {
    [DPI_ACCOUNTANT_ZCDP] = "zCDP",
    [DPI_ACCOUNTANT_BR] = "exact composition of bounded ranges",
    [DPI_ACCOUNTANT_FILTER] = "individual zCDP filter: each record has a budget of its own",
};

const char *statement_accounting(int32_t accountant) { return ACCOUNTING[accountant]; }

const char *statement_rho_label(const dpi_sampler_options *options) {
    return options->subsample > 0                              ? "rho, before q"
           : options->accountant == DPI_ACCOUNTANT_BR     ? "rho, as zCDP"
           : options->accountant == DPI_ACCOUNTANT_FILTER ? "rho, at most"
                                                               : "rho, spent";
}

const char *statement_method(int32_t method) {
    static const char *const names[] = {
        [DPI_METHOD_PLAIN] = "plain",
        [DPI_METHOD_INVISIBLEINK] = "InvisibleInk",
        [DPI_METHOD_AMIN] = "Amin et al. 2024",
        [DPI_METHOD_ADAPMIXED] = "AdaPMixED",
    };
    return names[method];
}

bool statement_is_zcdp(const dpi_sampler_options *o) {
    return o->subsample == 0 && o->accountant != DPI_ACCOUNTANT_BR;
}

void statement_guarantee(const job *j, char *text, size_t size) {
    char rho[40], epsilon[40], delta[40];
    facts_round_up(j->plan.rho_total, 7, rho, sizeof rho);
    facts_round_up(j->plan.epsilon, 7, epsilon, sizeof epsilon);
    facts_round_up(j->delta, 7, delta, sizeof delta);
    if (statement_is_zcdp(&j->sampler))
        snprintf(text, size, "%s-zCDP, and so (%s, %s)-DP", rho, epsilon, delta);
    else
        snprintf(text, size, "(%s, %s)-DP", epsilon, delta);
}

const char *statement_composition(const job *j) {
    return j->sampler.subsample > 0 ? "each record in one secret random batch with probability q, "
                                      "else in none; runs add up"
           : j->assigned ? "parallel over disjoint batches, by a keyed hash of each record; runs "
                           "add up"
                         : "parallel over disjoint batches, each record in one; runs add up";
}

const char *statement_adjacency(int32_t adjacency) { return ADJACENCY[adjacency][0]; }

const char *statement_adjacency_text(const dpi_sampler_options *o) {
    if (o->method != DPI_METHOD_AMIN ||
        o->adjacency == DPI_ADJACENCY_ADD_REMOVE)
        return ADJACENCY[o->adjacency][1];
    return o->adjacency == DPI_ADJACENCY_REPLACE_BY_NULL && o->subsample == 0
               ? "the record's slot stays, with the public prompt's logits"
               : "the record's slot stays, and adds nothing";
}

static void add_guarantee(facts *f, const job *j) {
    char text[128];
    const dpi_sampler_options *o = &j->sampler;
    statement_guarantee(j, text, sizeof text);
    if (j->is_private)
        facts_line(f, "guarantee", "%s, for all texts together", text);
    else
        facts_line(f, "guarantee", "none (with secret randomness: %s)", text);
    facts_text(f, "adjacency", NULL, ADJACENCY[o->adjacency][0]);
    facts_line(f, "adjacency", "%s: %s", ADJACENCY[o->adjacency][0],
               statement_adjacency_text(o));
    facts_text(f, "unit", NULL, j->unit);
    facts_line(f, "unit", "one record = %s", j->unit);
    facts_text(f, "accounting", "accounting", statement_accounting(o->accountant));
    if (o->subsample > 0)
        facts_real(f, "subsample", "q, of joining", o->subsample);
    facts_text(f, "composition", "composition", statement_composition(j));
}

static void add_parameters(facts *f, const job *j) {
    if (j->plan.rho_budget > 0)
        facts_real(f, "rho_budget", "rho, budget", j->plan.rho_budget);
    facts_bound(f, "rho", statement_rho_label(&j->sampler), j->plan.rho_total);
    facts_bound(f, "epsilon", "epsilon", j->plan.epsilon);
    facts_real(f, "delta", "at delta", j->delta);
    facts_int(f, "T", "T, tokens a text", j->sampler.n_tokens);
    facts_int(f, "B", j->assigned ? "B, denominator" : "B, slots a text", j->sampler.denominator);
    facts_real(f, "C", "C, clip bound", j->plan.clip);
    facts_bool(f, "centered", "centred", j->sampler.center);
    facts_int(f, "K", "K, C as integer", j->plan.K);
    facts_int(f, "a", "a, 1/tau as integer", (int64_t)j->plan.a);
    facts_bound(f, "eta", "eta, range a token", j->plan.eta);
    facts_bound(f, "rho_token", "rho, of one token", j->plan.rho_token);
    facts_real(f, "tau", "tau, temperature", j->sampler.tau);
    facts_int(f, "top_k",
              j->sampler.method == DPI_METHOD_INVISIBLEINK ? "k of Top-k+" : "k of public tokens",
              j->sampler.top_k);
    if (j->sampler.adjacency != DPI_ADJACENCY_ADD_REMOVE) /* else their number is not public */
        facts_int(f, "n_records", "records", j->n_records);
}

/* Where --method amin has more than the others. */
static void add_amin(facts *f, const job *j) {
    const dpi_sampler_options *o = &j->sampler;
    facts_int(f, "n_private", "private tokens, most", j->plan.n_private);
    if (o->svt_sigma > 0) {
        facts_real(f, "threshold", "threshold, L1", o->svt_threshold);
        facts_real(f, "sigma", "sigma of threshold", o->svt_sigma);
        facts_bound(f, "rho_svt", "rho, of a threshold", j->plan.rho_svt);
    }
    facts_line(f, "private are", "%s", o->svt_sigma > 0
               ? "tokens whose distribution is far from the public one (sparse vector)"
               : "all tokens while the budget lasts");
    facts_line(f, "other tokens", "from the public prompt alone, at no cost");
    facts_real(f, "tau_public", "tau of public tokens", o->tau_public > 0 ? o->tau_public : o->tau);
}

/* A method that guarantees nothing: no rho, no epsilon, in no form. */
static void add_adapmixed(facts *f, const job *j) {
    const dpi_sampler_options *o = &j->sampler;
    facts_line(f, "guarantee",
               "none: what the method counts is data-dependent, for comparison only");
    facts_text(f, "guarantee", NULL, "none");
    facts_bool(f, "data_dependent_cost", NULL, true);
    facts_line(f, "its count stops at", "%s %g at delta %g", o->epsilon > 0 ? "epsilon" : "rho",
               o->epsilon > 0 ? o->epsilon : o->rho, j->delta);
    facts_int(f, "T", "T, tokens a text", o->n_tokens);
    facts_int(f, "B", "B, slots a text", o->n_ref);
    facts_real(f, "tau", "tau, temperature", o->tau);
    facts_int(f, "top_k", "k of screening", o->top_k);
    facts_real(f, "threshold", "threshold", o->screen_threshold == 0 ? 4.5 : o->screen_threshold);
    facts_real(f, "sigma", "sigma of screening", o->screen_sigma == 0 ? .01 : o->screen_sigma);
    facts_int(f, "n_records", "records", j->n_records);
}

void statement_add(facts *f, const job *j) {
    const int32_t method = j->sampler.method;
    if (j->warning)
        facts_line(f, "NOT PRIVATE", "%s", j->warning + sizeof "NOT PRIVATE: " - 1);
    facts_text(f, "program", NULL, "dpinfer");
    facts_text(f, "version", NULL, dpi_version());
    facts_bool(f, "private", NULL, j->is_private);
    facts_text(f, "label", NULL, j->is_private ? "PRIVATE" : j->warning);
    facts_text(f, "model", "model", j->info.name);
    facts_text(f, "method", "method", statement_method(method));
    if (j->plain) {
        facts_text(f, "prompt", "prompt",
                   j->reference >= 0 ? "private, of one record" : "public");
        facts_int(f, "T", "T, tokens a text", j->sampler.n_tokens);
        facts_real(f, "tau", "tau, temperature", j->sampler.tau);
        facts_int(f, "top_k", "k of Top-k", j->sampler.top_k);
    } else if (method == DPI_METHOD_ADAPMIXED) {
        add_adapmixed(f, j);
    } else {
        add_guarantee(f, j);
        add_parameters(f, j);
        if (method == DPI_METHOD_AMIN)
            add_amin(f, j);
    }
    facts_int(f, "n_texts", "texts", j->n_texts);
    facts_text(f, "randomness", "randomness",
               j->sampler.random ? "--seed (insecure)" : "getrandom(2), fresh for every token");
}
