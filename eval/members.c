/* members.c - see members.h. */
#include "eval/members.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/bounds.h"
#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/intervals.h"

enum { RESAMPLES = 1000 };

double eval_exposure(double score, const double *controls, int32_t n, int32_t *rank) {
    *rank = 1;
    for (int32_t i = 0; i < n; i++)
        *rank += controls[i] >= score;
    return log2(n + 1.0) - log2(*rank);
}

/* ---- Scores in one list ---------------------------------------------------------------------- */

/* Sorted, the largest first. */
typedef struct scored {
    double score;
    int32_t index; /* of its list */
    bool is_member;
} scored;

static int compare_scored(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return (x->score < y->score) - (x->score > y->score);
    return x->is_member != y->is_member ? (int)x->is_member - (int)y->is_member
                                        : (x->index > y->index) - (x->index < y->index);
}

/* auc and tpr of records that count weight[is_member][index] times; n[is_member] in all. */
static void rank_weighted(const scored *s, int32_t n_all, const int32_t *const weight[2],
                          const int32_t n[2], double *auc, double *tpr) {
    const double allowed = floor(.01 * n[0]);
    double controls = 0, members = 0, area = 0;
    *tpr = 0;
    for (int32_t i = 0, end; i < n_all; i = end) {
        double own[2] = {0};
        for (end = i; end < n_all && s[end].score == s[i].score; end++)
            own[s[end].is_member] += weight[s[end].is_member][s[end].index];
        area += own[0] * (members + own[1] / 2);
        controls += own[0];
        members += own[1];
        if (controls <= allowed)
            *tpr = members / n[1];
    }
    *auc = area / ((double)n[0] * n[1]);
}

static void fill_roc(const scored *s, int32_t n_all, eval_ranking *r) {
    for (int32_t k = 0; k < EVAL_ROC_POINTS; k++) {
        const double fpr = pow(10, 3.0 * k / (EVAL_ROC_POINTS - 1) - 3);
        const double allowed = floor(fpr * r->n_controls + 1e-9);
        int32_t controls = 0, members = 0;
        r->roc_fpr[k] = fpr;
        r->roc_tpr[k] = 0;
        for (int32_t i = 0; i < n_all; i++) {
            controls += !s[i].is_member;
            members += s[i].is_member;
            const bool whole = i + 1 == n_all || s[i + 1].score != s[i].score;
            if (whole && controls <= allowed)
                r->roc_tpr[k] = (double)members / r->n_members;
        }
    }
}

/* ---- Epsilon --------------------------------------------------------------------------------- */

/* The bound of one threshold: `above` of n[is_member] are above it. Guesses "member" above it, or
 * "control" below it. */
static double bound_of(const int32_t above[2], const int32_t n[2], double delta, bool below) {
    const double alpha = .025; /* two bounds, each */
    const double right = below ? dpi_binomial_lower(n[0], n[0] - above[0], alpha)
                               : dpi_binomial_lower(n[1], above[1], alpha);
    const double wrong = below ? dpi_binomial_upper(n[1], n[1] - above[1], alpha)
                               : dpi_binomial_upper(n[0], above[0], alpha);
    return right > delta ? log((right - delta) / wrong) : 0;
}

/* The records of `half`, with even or odd index, that are above a score. */
static void count_above(const scored *s, int32_t n_all, int32_t half, double score,
                        int32_t above[2], int32_t n[2]) {
    above[0] = above[1] = n[0] = n[1] = 0;
    for (int32_t i = 0; i < n_all; i++)
        if (s[i].index % 2 == half) {
            n[s[i].is_member]++;
            above[s[i].is_member] += s[i].score >= score;
        }
}

/* At most 200 thresholds, spread over the records. */
static double find_epsilon(const scored *s, int32_t n_all, double delta) {
    const int32_t step = n_all / 200 + 1;
    double best = -1, score = s[0].score;
    bool below = false;
    int32_t above[2], n[2];
    for (int32_t i = 0; i < n_all; i += step)
        for (int32_t k = 0; k < 2; k++) {
            count_above(s, n_all, 0, s[i].score, above, n);
            const double bound = bound_of(above, n, delta, k == 1);
            if (bound > best) {
                best = bound;
                score = s[i].score;
                below = k == 1;
            }
        }
    count_above(s, n_all, 1, score, above, n);
    return n[0] > 0 && n[1] > 0 ? fmax(bound_of(above, n, delta, below), 0) : 0;
}

/* Guesses: a tenth with the largest scores are members, a tenth with the least are not. */
static double find_one_run(const scored *s, int32_t n_all, double delta) {
    const int32_t each = n_all / 10 > 0 ? n_all / 10 : 1;
    int32_t right = 0;
    for (int32_t i = 0; i < each; i++)
        right += s[i].is_member + !s[n_all - 1 - i].is_member;
    return dpi_canary_epsilon(n_all, 2 * each, right, delta, .05);
}

/* ---- All ------------------------------------------------------------------------------------- */

static void find_intervals(const scored *s, eval_ranking *r, int32_t *weights, double *auc,
                           double *tpr) {
    const int32_t n[2] = {r->n_controls, r->n_members}, n_all = n[0] + n[1];
    int32_t *const weight[2] = {weights, weights + n[0]};
    uint64_t state = 1; /* any constant */
    for (int32_t k = 0; k < RESAMPLES; k++) {
        memset(weights, 0, (size_t)n_all * sizeof *weights);
        for (int32_t c = 0; c < 2; c++)
            for (int32_t i = 0; i < n[c]; i++)
                weight[c][eval_resample(&state, n[c])]++;
        rank_weighted(s, n_all, (const int32_t *const[]){weight[0], weight[1]}, n, &auc[k],
                      &tpr[k]);
    }
    qsort(auc, RESAMPLES, sizeof *auc, eval_compare_double);
    qsort(tpr, RESAMPLES, sizeof *tpr, eval_compare_double);
    r->auc_low = auc[RESAMPLES / 40], r->auc_high = auc[RESAMPLES - 1 - RESAMPLES / 40];
    r->tpr_low = tpr[RESAMPLES / 40], r->tpr_high = tpr[RESAMPLES - 1 - RESAMPLES / 40];
}

static void rank_all(scored *s, double delta, int32_t *weights, double *resampled,
                     eval_ranking *r) {
    const int32_t n[2] = {r->n_controls, r->n_members}, n_all = n[0] + n[1];
    qsort(s, (size_t)n_all, sizeof *s, compare_scored);
    for (int32_t i = 0; i < n_all; i++)
        weights[i] = 1;
    rank_weighted(s, n_all, (const int32_t *const[]){weights, weights + n[0]}, n, &r->auc, &r->tpr);
    fill_roc(s, n_all, r);
    find_intervals(s, r, weights, resampled, resampled + RESAMPLES);
    r->epsilon = find_epsilon(s, n_all, delta);
    r->epsilon_one_run = find_one_run(s, n_all, delta);
}

dpi_status eval_rank(const double *members, int32_t n_members, const double *controls,
                     int32_t n_controls, double delta, eval_ranking *r, dpi_error *err) {
    *r = (eval_ranking){.n_members = n_members, .n_controls = n_controls};
    if (n_members < 2 || n_controls < 2)
        return eval_fail(err, DPI_STATUS_ARG, "records for membership inference: found %d and %d, "
                         "allowed 2 or more", (int)n_members, (int)n_controls);
    const size_t n_all = (size_t)n_members + (size_t)n_controls;
    scored *s = dpi_private_malloc(n_all * sizeof *s);
    int32_t *weights = dpi_private_malloc(n_all * sizeof *weights);
    double *resampled = dpi_private_malloc(2 * RESAMPLES * sizeof *resampled);
    const bool ok = s && weights && resampled;
    for (int32_t i = 0; i < n_controls && ok; i++)
        s[i] = (scored){controls[i], i, false};
    for (int32_t i = 0; i < n_members && ok; i++)
        s[n_controls + i] = (scored){members[i], i, true};
    if (ok)
        rank_all(s, delta, weights, resampled, r);
    dpi_private_free(s);
    dpi_private_free(weights);
    dpi_private_free(resampled);
    return ok ? DPI_STATUS_OK : eval_no_memory(err, "membership inference");
}
