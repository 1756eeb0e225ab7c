/* measure_members.c - see measure_members.h. */
#include "eval/measure_members.h"

#include <math.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/ngram.h"
#include "eval/intervals.h"

/* Models of n-grams: of the synthetic texts, of all real ones, of real ones with odd and with even
 * places. */
typedef struct models {
    eval_ngram *synthetic, *real, *half[2];
} models;

static dpi_status train(const eval_sources *s, models *m, dpi_error *err) {
    EVAL_TRY(eval_ngram_train(s->synthetic, s->ngram, -1, &m->synthetic, err));
    EVAL_TRY(eval_ngram_train(s->real, s->ngram, -1, &m->real, err));
    EVAL_TRY(eval_ngram_train(s->real, s->ngram, 0, &m->half[0], err));
    return eval_ngram_train(s->real, s->ngram, 1, &m->half[1], err);
}

static void free_models(models *m) {
    eval_ngram_free(m->synthetic);
    eval_ngram_free(m->real);
    eval_ngram_free(m->half[0]);
    eval_ngram_free(m->half[1]);
}

/* scores [n] of texts. are_real: the real ones themselves, or those that are compared with them:
 * each is judged by the half that it is not in. plain [n]: without the real texts; may be NULL. */
static void score(const models *m, const eval_texts *texts, bool are_real, double *scores,
                  double *plain) {
    for (int32_t i = 0; i < texts->n; i++) {
        const eval_ngram *real = are_real ? m->half[i % 2] : m->real;
        const double own = eval_ngram_score(m->synthetic, &texts->at[i]);
        scores[i] = own - eval_ngram_score(real, &texts->at[i]);
        if (plain)
            plain[i] = own;
    }
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Keys and labels of one of the two attacks. */
typedef struct words {
    const char *group, *auc, *auc_label, *tpr, *tpr_label, *epsilon, *one_run;
} words;

static void add_ranking(evaluation *e, const eval_ranking *r, const words *w) {
    eval_add_interval(e, w->group, w->auc, w->auc_label, r->auc, r->auc_low, r->auc_high);
    eval_add_interval(e, w->group, w->tpr, w->tpr_label, r->tpr, r->tpr_low, r->tpr_high);
    eval_add(e, w->group, w->epsilon, "epsilon is larger than this, if records are independent "
             "trials (95 %)", r->epsilon);
    eval_add(e, w->group, w->one_run, "the same, if a coin made each record a member or a control",
             r->epsilon_one_run);
}

/* Scores of both sides: members first, then controls. */
static dpi_status alloc_scores(int32_t n, double **scores, double **plain, dpi_error *err) {
    *scores = dpi_private_malloc(((size_t)n + 1) * sizeof **scores);
    *plain = dpi_private_malloc(((size_t)n + 1) * sizeof **plain);
    return *scores && *plain ? DPI_STATUS_OK : eval_no_memory(err, "scores");
}

static dpi_status measure_training(evaluation *e, const eval_sources *s, const models *m,
                                   dpi_error *err) {
    static const words w = {"membership", "membership_auc",
                            "chance that a training text is told from a real one (.5: not at all)",
                            "membership_tpr_1", "training texts above all but 1 % of the real ones",
                            "membership_epsilon", "membership_epsilon_one_run"};
    const int32_t n = s->train->n, n_real = s->real->n;
    double *scores, *plain;
    eval_ranking of_plain;
    dpi_status status = alloc_scores(n + n_real, &scores, &plain, err);
    if (status == DPI_STATUS_OK) {
        score(m, s->train, true, scores, plain);
        score(m, s->real, true, scores + n, plain + n);
        status = eval_rank(scores, n, scores + n, n_real, s->claimed_delta, &e->members, err);
    }
    if (status == DPI_STATUS_OK)
        status = eval_rank(plain, n, plain + n, n_real, s->claimed_delta, &of_plain, err);
    if (status == DPI_STATUS_OK) {
        e->has_members = true;
        add_ranking(e, &e->members, &w);
        eval_add_interval(e, w.group, "membership_auc_plain",
                          "the same chance, by synthetic texts alone", of_plain.auc,
                          of_plain.auc_low, of_plain.auc_high);
    }
    dpi_private_free(scores);
    dpi_private_free(plain);
    return status;
}

/* ---- Canaries -------------------------------------------------------------------------------- */

/* What exposure is, on average, of records that nothing is known of. */
static double exposure_of_chance(int32_t n) {
    double sum = 0;
    for (int32_t rank = 1; rank <= n + 1; rank++)
        sum += log2(n + 1.0) - log2(rank);
    return sum / (n + 1);
}

/* exposures [2 n] is scratch. */
static dpi_status add_exposures(evaluation *e, const double *canaries, int32_t n,
                                const double *controls, int32_t n_controls, double *exposures,
                                dpi_error *err) {
    double *const ranks = exposures + n, most = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t rank;
        exposures[i] = eval_exposure(canaries[i], controls, n_controls, &rank);
        ranks[i] = rank;
        most = fmax(most, exposures[i]);
    }
    EVAL_TRY(eval_add_mean(e, "canaries", "exposure_mean", "exposure of a canary in bits, mean",
                           exposures, n, err));
    eval_add(e, "canaries", "exposure_chance", "the same by chance",
             exposure_of_chance(n_controls));
    eval_add(e, "canaries", "exposure_max", "the largest one", most);
    eval_add(e, "canaries", "exposure_possible", "the largest that there can be",
             log2(n_controls + 1.0));
    return eval_add_mean(e, "canaries", "canary_rank_mean",
                         "rank of a canary among the controls, mean", ranks, n, err);
}

static dpi_status measure_canaries(evaluation *e, const eval_sources *s, const models *m,
                                   dpi_error *err) {
    static const words w = {"canaries", "canary_auc",
                            "chance that a canary is told from a control (.5: not at all)",
                            "canary_tpr_1", "canaries above all but 1 % of the controls",
                            "canary_epsilon", "canary_epsilon_one_run"};
    const int32_t n = s->canaries->n, n_controls = s->controls->n;
    double *scores, *exposures;
    const int32_t n_most = n + (n > n_controls ? n : n_controls);
    dpi_status status = alloc_scores(n_most, &scores, &exposures, err);
    if (status == DPI_STATUS_OK) {
        score(m, s->canaries, false, scores, NULL);
        score(m, s->controls, false, scores + n, NULL);
        eval_add(e, "canaries", "n_canaries", "canaries", n);
        eval_add(e, "canaries", "n_controls", "controls", n_controls);
        status = add_exposures(e, scores, n, scores + n, n_controls, exposures, err);
    }
    if (status == DPI_STATUS_OK)
        status = eval_rank(scores, n, scores + n, n_controls, s->claimed_delta, &e->canaries, err);
    if (status == DPI_STATUS_OK) {
        e->has_canaries = true;
        add_ranking(e, &e->canaries, &w);
    }
    dpi_private_free(scores);
    dpi_private_free(exposures);
    return status;
}

dpi_status eval_measure_members(evaluation *e, const eval_sources *s, dpi_error *err) {
    const bool training = s->train && s->train->n >= 4 && s->real->n >= 4;
    const bool canaries = s->canaries && s->controls && s->canaries->n >= 2 && s->controls->n >= 2;
    models m = {0};
    if (!training && !canaries)
        return DPI_STATUS_OK;
    dpi_status status = train(s, &m, err);
    if (status == DPI_STATUS_OK && training)
        status = measure_training(e, s, &m, err);
    if (status == DPI_STATUS_OK && canaries)
        status = measure_canaries(e, s, &m, err);
    if (status == DPI_STATUS_OK && s->claimed_epsilon > 0)
        eval_add(e, training && !canaries ? "membership" : "canaries", "epsilon_claimed",
                 "epsilon that is claimed", s->claimed_epsilon);
    free_models(&m);
    return status;
}
