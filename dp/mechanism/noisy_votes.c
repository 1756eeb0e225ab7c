/* noisy_votes.c - units vote for candidates that a model wrote; each count gets discrete Gaussian
 * noise. Source: Xie et al. 2024, Algorithm 1, in integers; dp/PRIVACY.md section 25. */
#include <inttypes.h>
#include <math.h>

#include "base/status.h"
#include "base/text.h"
#include "dp/account/account.h"
#include "dp/exact/noise.h"
#include "dp/exact/votes.h"
#include "dp/mechanism/mechanism.h"
#include "dp/mechanism/noisy_votes.h"
#include "dp/methods/parameters.h"
#include "dpinfer/augpe.h"

static const char *const selections[] = {"rank", "sample", NULL};
static const char *const variations[] = {"another", "blanks", "continue", NULL};

static const dpi_parameter n_texts = {
    .name = "n_texts", .key = "n_texts", .unit = "texts", .type = DPI_PARAMETER_INT, .min = 1,
    .max = DPI_AUGPE_CANDIDATES_MAX, .default_value = 1, .help = "texts that stay after a round"};
static const dpi_parameter n_candidates = {
    .name = "n_candidates", .key = "n_candidates", .unit = "", .type = DPI_PARAMETER_INT, .min = 1,
    .max = 64, .default_value = 4, .help = "candidates of a round for each text"};
static const dpi_parameter n_lookahead = {
    .name = "n_lookahead", .key = "n_lookahead", .unit = "", .type = DPI_PARAMETER_INT, .max = 16,
    .help = "variations whose mean a candidate stands at; 0: itself"};
static const dpi_parameter selection = {
    .name = "selection", .key = "selection", .unit = "", .type = DPI_PARAMETER_CHOICE,
    .choices = selections, .help = "which candidates stay"};
static const dpi_parameter threshold = {
    .name = "threshold", .key = "threshold", .unit = "votes", .type = DPI_PARAMETER_REAL,
    .max = 1e9, .help = "fewer votes count as none"};
static const dpi_parameter variation = {
    .name = "variation", .key = "variation", .unit = "", .type = DPI_PARAMETER_CHOICE,
    .choices = variations, .help = "how a candidate is varied"};
static const dpi_parameter change = {
    .name = "change", .key = "change", .unit = "", .type = DPI_PARAMETER_REAL, .max = 1,
    .min_open = 1, .default_value = .5, .help = "the share of a candidate that is written anew"};
static const dpi_parameter top_k = {
    .name = "top_k", .key = "top_k", .unit = "tokens", .type = DPI_PARAMETER_INT, .max = 1 << 18,
    .default_value = 100, .help = "likeliest tokens that are drawn from; 0: all"};
static const dpi_parameter remote = {
    .name = "remote", .key = "remote", .unit = "", .type = DPI_PARAMETER_FLAG,
    .help = "a model elsewhere writes"};

static const dpi_parameter *const parameters[] = {
    [DPI_VOTES_RHO] = &dpi_common[DPI_COMMON_RHO],
    [DPI_VOTES_EPSILON] = &dpi_common[DPI_COMMON_EPSILON],
    [DPI_VOTES_TEXTS] = &n_texts,
    [DPI_VOTES_CANDIDATES] = &n_candidates,
    [DPI_VOTES_LOOKAHEAD] = &n_lookahead,
    [DPI_VOTES_SELECTION] = &selection,
    [DPI_VOTES_THRESHOLD] = &threshold,
    [DPI_VOTES_VARIATION] = &variation,
    [DPI_VOTES_CHANGE] = &change,
    [DPI_VOTES_TOKENS] = &dpi_common[DPI_COMMON_N_TOKENS],
    [DPI_VOTES_TOP_K] = &top_k,
    [DPI_VOTES_TAU] = &dpi_common[DPI_COMMON_TAU],
    [DPI_VOTES_REMOTE] = &remote,
    NULL};

static dpi_status check(const dpi_claim *c, const dpi_claim_part *p, dpi_error *err) {
    const double *v = p->values;
    const bool rank = v[DPI_VOTES_SELECTION] == DPI_AUGPE_RANK;
    DPI_TRY(dpi_check_range("n_rounds", p->n_runs, 1, DPI_VOTES_ROUNDS_MAX, err));
    DPI_TRY(dpi_check_range("n_candidates", (int64_t)v[DPI_VOTES_CANDIDATES], rank ? 2 : 1, 64,
                            err));
    DPI_TRY(dpi_check_range("n_texts", (int64_t)v[DPI_VOTES_TEXTS], 1,
                            DPI_AUGPE_CANDIDATES_MAX / (int64_t)v[DPI_VOTES_CANDIDATES], err));
    if ((v[DPI_VOTES_RHO] > 0) == (v[DPI_VOTES_EPSILON] > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "epsilon: found %g with rho %g, allowed is one of "
                                             "them", v[DPI_VOTES_EPSILON], v[DPI_VOTES_RHO]);
    if (v[DPI_VOTES_VARIATION] == DPI_AUGPE_CONTINUE && v[DPI_VOTES_REMOTE] > 0)
        return dpi_fail(err, DPI_STATUS_ARG, "variation: found continue, which the local model "
                                             "writes, without a prompt of its own");
    if (v[DPI_VOTES_REMOTE] > 0 && (c->grammar[0] || c->wording[0]))
        return dpi_fail(err, DPI_STATUS_ARG, "%s: found one with write, allowed with the local "
                                             "model, whose tokens it holds to a form",
                        c->grammar[0] ? "grammar" : "wording");
    if (c->n_units < 1)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "units: found none, needed is %s, a public number",
                        c->adjacency == DPI_ADJACENCY_ADD_REMOVE ? "about how many there are"
                                                                 : "one at least");
    return dpi_check_range("max_per_unit", c->max_per_unit, 0, DPI_VOTE_RECORDS_MAX, err);
}

static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    double rho = p->values[DPI_VOTES_RHO];
    const int32_t n = (int32_t)p->n_runs;
    int64_t variance;
    DPI_TRY(check(c, p, err));
    if (p->values[DPI_VOTES_EPSILON] > 0)
        DPI_TRY(dpi_zcdp_rho(p->values[DPI_VOTES_EPSILON], c->delta, &rho, err));
    /* Sums are rounded up: a little less for each round, until all of them fit. A larger budget
     * than the least noise needs is not used up. */
    double each = fmin(rho / n, dpi_rho_votes_bound(DPI_NOISE_VARIANCE_MIN));
    for (variance = dpi_votes_variance_for(each);
         variance > 0 && dpi_rho_total_bound(dpi_rho_votes_bound(variance), n) > rho;
         variance = dpi_votes_variance_for(each))
        each = nextafter(each, 0);
    if (variance == 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "rho: found %g for each of %d rounds, allowed at least %.3g", each, n,
                        dpi_rho_votes_bound(DPI_NOISE_VARIANCE_MAX));
    p->results[DPI_VOTES_VARIANCE] = (double)variance;
    p->results[DPI_VOTES_RHO_ROUND] = dpi_rho_votes_bound(variance);
    p->rho = dpi_rho_total_bound(p->results[DPI_VOTES_RHO_ROUND], n);
    dpi_part_cost(p, DPI_COST_ZCDP, n, p->results[DPI_VOTES_RHO_ROUND], 0);
    return dpi_zcdp_epsilon(p->rho, c->delta, &p->epsilon, err);
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    const double *v = p->values, variance = p->results[DPI_VOTES_VARIANCE];
    const int n = (int)v[DPI_VOTES_TEXTS];
    (void)c;
    dpi_facts_add(f, "variance", NULL, DPI_FACT_INT, DPI_FACT_REALISED)->integer =
        (int64_t)variance;
    dpi_facts_add(f, "rho_round", "rho of a round", DPI_FACT_BOUND,
                  DPI_FACT_STATEMENT | DPI_FACT_REALISED)->real = p->results[DPI_VOTES_RHO_ROUND];
    dpi_facts_text(f, NULL, "sigma, noise",
                   "%.10g votes (variance %.0f / 256 where a vote counts %d)",
                   sqrt(variance / 256) / DPI_VOTE_ONE, variance, DPI_VOTE_ONE);
    dpi_facts_text(f, NULL, "candidates", "%d a round, of which %d stay (%s), threshold %g votes",
                   n * (int)v[DPI_VOTES_CANDIDATES], n, selections[(int)v[DPI_VOTES_SELECTION]],
                   v[DPI_VOTES_THRESHOLD]);
    dpi_facts_text(f, NULL, "variations", "%s, K = %d%s", variations[(int)v[DPI_VOTES_VARIATION]],
                   (int)v[DPI_VOTES_LOOKAHEAD],
                   v[DPI_VOTES_REMOTE] > 0 ? "; a model elsewhere writes" : "");
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    const char *one = c->max_per_unit > 0 ? "person" : "record";
    dpi_text_add(t,
                 "A language model (%s) wrote candidates from public prompts, %.0f times. Each "
                 "time the %ss voted for the candidates that they are nearest to, random noise was "
                 "added to the numbers of votes, and the model wrote others like the best. At the "
                 "end %.0f texts were left. Only they and the candidates are given away, and no "
                 "model has written from a %s.",
                 p->values[DPI_VOTES_REMOTE] > 0 ? "of another server" : c->model_name,
                 (double)p->n_runs, one, p->values[DPI_VOTES_TEXTS], one);
}

static const char *const assumptions[] = {
    "A unit moves the votes by a vector of norm one at most, in integers; discrete Gaussian noise "
    "of variance s on each count is 16^2 / (2 s)-zCDP (Canonne, Kamath and Steinke 2020). Rounds "
    "compose adaptively (Bun and Steinke 2016). Holds for any records.",
    "What a record votes for is a function of that record and of the candidates, which are public, "
    "and of no other record. Fulfilled by the program, bit for bit.",
    NULL};

const dpi_mechanism_ops dpi_mechanism_votes = {
    .info = {.name = "votes",
             .title = "augpe: units vote for candidates, with discrete Gaussian noise",
             .help = "units vote for candidates that a model wrote; counts get noise",
             .source = "Xie et al. 2024, Algorithm 1",
             .proof = "dp/PRIVACY.md section 25",
             .runs = "rounds"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_REPLACE_BY_NULL | 1u << DPI_ADJACENCY_ADD_REMOVE,
    .has_records = true,
    .uses = DPI_USES_UNITS | DPI_USES_DELTA | DPI_USES_MODEL | DPI_USES_FORM,
    .accounting = "zCDP of histograms, one after the other",
    .output = "the texts, and each round's candidates, chosen by noisy votes",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .facts = facts,
};
