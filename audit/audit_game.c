/* audit_game.c - game and canaries: an attacker who knows everything but one record reads texts and
 * says whether the record was there. V = 16, B = 4, T = 8, eta = .5.
 *
 * Tokens come in pairs on which the public logits and the other records agree, so that without the
 * record each is as likely as its twin. A coin that follows from the history says which of
 * a pair the record favours; the other is below it by much more than the clip bound. Its tokens
 * then have probability 1 / (1 + e^-eta) against 1/2: the log-likelihood ratio of a text counts
 * them. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"

enum { V = 16, B = 4, T = 8, N_RUNS = 20000, N_CANARIES = 2000 };

static const double ETA = .5;

typedef struct game {
    dpi_audit *audit;
    dpi_sampler *sampler;
    double claimed; /* eta */
    float public_logits[V], reference[B][V];
} game;

/* The tiny model: logits are functions of a hash of the history. Returns the wanted twin, 0 or 1.
 */
static int set_logits(game *g, uint64_t history) {
    dpi_audit scratch = {.seed = history};
    const int wanted = dpi_audit_below(&scratch, 2);
    for (int y = 0; y < V; y += 2) {
        g->public_logits[y] = g->public_logits[y + 1] = (float)dpi_audit_normal(&scratch);
        for (int j = 1; j < B; j++)
            g->reference[j][y] = g->reference[j][y + 1] =
                g->public_logits[y] + (float)dpi_audit_normal(&scratch);
        g->reference[0][y + wanted] = g->public_logits[y] + 50;
        g->reference[0][y + 1 - wanted] = g->public_logits[y] - 50;
    }
    return wanted;
}

/* One text, with the record or without. *says: the likelihood ratio speaks for it. */
static dpi_status run(game *g, bool present, bool *says) {
    dpi_audit *a = g->audit;
    const double p = 1 / (1 + exp(-g->claimed));
    const float *pointers[B] = {present ? g->reference[0] : NULL, g->reference[1], g->reference[2],
                                g->reference[3]};
    uint64_t history = 1;
    double ratio = 0;
    DPI_TRY(dpi_sampler_begin(g->sampler, a->err));
    for (int t = 0; t < T; t++) {
        const int wanted = set_logits(g, history);
        int32_t token;
        DPI_TRY(dpi_sampler_step(g->sampler, g->public_logits, pointers, &token, a->err));
        ratio += token % 2 == wanted ? log(2 * p) : log(2 * (1 - p));
        history = (history + (uint64_t)token + 1) * UINT64_C(0x9e3779b97f4a7c15);
    }
    *says = ratio > 0;
    return DPI_STATUS_OK;
}

static dpi_status start(dpi_audit *a, double eta, double claimed, game *g) {
    dpi_sampler_options o;
    dpi_audit_defaults(a, &o);
    memset(g, 0, sizeof *g);
    g->audit = a;
    g->claimed = claimed;
    o.n_vocab = V;
    o.n_ref = B;
    o.n_tokens = T;
    o.top_k = 4;
    o.tau = 1.2;
    o.rho = T * eta * eta / 8;
    return dpi_sampler_create(&o, &g->sampler, a->err);
}

/* delta_T(0), the largest advantage that T tokens of bounded range eta allow: at e^-20, and what
 * epsilon = e^-20 itself allows. */
static dpi_status advantage(dpi_audit *a, double eta, double *delta) {
    const double epsilon = exp(-20);
    DPI_TRY(dpi_br_delta(eta, T, epsilon, delta, a->err));
    *delta += expm1(epsilon);
    return DPI_STATUS_OK;
}

/* ---- C: many runs in two worlds -------------------------------------------------------------- */

static dpi_status count_yes(game *g, bool present, int32_t n, int32_t *n_yes) {
    *n_yes = 0;
    for (int32_t i = 0; i < n; i++) {
        bool says;
        DPI_TRY(run(g, present, &says));
        *n_yes += says;
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_play(dpi_audit *a, double eta, double claimed) {
    const int32_t n = dpi_audit_count(a, N_RUNS);
    double bound[2];
    int32_t n_true = 0, n_false = 0;
    double delta = 0;
    game g;
    DPI_TRY(dpi_audit_begin(a, "game", "game of 8 tokens, record or none"));
    DPI_TRY(start(a, eta, claimed, &g));
    dpi_status status = count_yes(&g, true, n, &n_true);
    if (status == DPI_STATUS_OK)
        status = count_yes(&g, false, n, &n_false);
    dpi_sampler_free(g.sampler);
    DPI_TRY(status);
    DPI_TRY(advantage(a, claimed, &delta));
    a->result.n_cases = 2 * (int64_t)n;
    for (int i = 0; i < 2; i++) { /* each rate has half of the chance */
        const double alpha = (i == 0 ? dpi_audit_suspicious(a) : dpi_audit_certain(a)) / 2;
        bound[i] = dpi_binomial_lower(n, n_true, alpha) - dpi_binomial_upper(n, n_false, alpha);
    }
    dpi_audit_end_bound(a, "TPR - FPR, lower bound", bound[0], bound[1], delta);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_game(dpi_audit *a) { return dpi_audit_play(a, ETA, ETA); }

/* ---- D: one run, a coin for each batch ------------------------------------------------------- */

/* Steinke, Nasr and Jagielski 2023. Batches are independent, and each guess is right with a chance
 * of at most (1 + delta_T(0)) / 2, so that right guesses are below a binomial count. */
dpi_status dpi_audit_one_run(dpi_audit *a) {
    int32_t n_right = 0;
    double delta = 0;
    game g;
    DPI_TRY(dpi_audit_begin(a, "canaries", "one run, a canary in each batch"));
    DPI_TRY(start(a, ETA, ETA, &g));
    dpi_status status = DPI_STATUS_OK;
    for (int32_t i = 0; i < N_CANARIES && status == DPI_STATUS_OK; i++) {
        const bool present = dpi_audit_below(a, 2);
        bool says = false;
        status = run(&g, present, &says);
        n_right += says == present;
    }
    dpi_sampler_free(g.sampler);
    DPI_TRY(status);
    DPI_TRY(advantage(a, ETA, &delta));
    a->result.n_cases = N_CANARIES;
    dpi_audit_end_bound(a, "right guesses, lower bound",
                        dpi_binomial_lower(N_CANARIES, n_right, dpi_audit_suspicious(a)),
                        dpi_binomial_lower(N_CANARIES, n_right, dpi_audit_certain(a)),
                        (1 + delta) / 2);
    return DPI_STATUS_OK;
}
