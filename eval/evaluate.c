/* evaluate.c - see evaluate.h. */
#include "eval/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/attribute_values.h"
#include "eval/classify.h"
#include "eval/coherence.h"
#include "eval/fail.h"
#include "eval/grams.h"
#include "eval/measure_copies.h"
#include "eval/measure_members.h"
#include "eval/measure_openings.h"
#include "eval/measure_structure.h"
#include "eval/perturbed.h"
#include "eval/pii.h"
#include "eval/intervals.h"
#include "eval/variation.h"

/* ---- Length ---------------------------------------------------------------------------------- */

static dpi_status add_length(evaluation *e, const eval_texts *s, const char *key,
                             const char *label, dpi_error *err) {
    double *x = dpi_private_malloc(((size_t)s->n + 1) * sizeof *x);
    if (!x)
        return eval_no_memory(err, "lengths");
    for (int32_t i = 0; i < s->n; i++)
        x[i] = s->at[i].n_words;
    const dpi_status status = eval_add_mean(e, "length", key, label, x, s->n, err);
    dpi_private_free(x);
    return status;
}

/* The lengths of two sets, as bins [n] of their texts. */
typedef struct bins {
    int32_t *of[2], n[2];
} bins;

static double length_distance(const void *user, const int32_t *const which[2]) {
    const bins *x = user;
    double share[2][EVAL_BINS] = {{0}};
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < x->n[k]; i++)
            share[k][x->of[k][which[k][i]]] += 1. / x->n[k];
    return eval_variation(share[0], share[1], EVAL_BINS);
}

static dpi_status add_length_distance(evaluation *e, const eval_texts *const sets[2],
                                      dpi_error *err) {
    const size_t n_all = (size_t)sets[0]->n + (size_t)sets[1]->n;
    int32_t *bin = dpi_private_malloc((n_all + 1) * sizeof *bin);
    if (!bin)
        return eval_no_memory(err, "lengths");
    const bins x = {{bin, bin + sets[0]->n}, {sets[0]->n, sets[1]->n}};
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < sets[k]->n; i++) {
            x.of[k][i] = sets[k]->at[i].n_words / e->words_in_bin;
            e->lengths[k][x.of[k][i]]++;
        }
    const dpi_status status = eval_add_number(
        e, "length", "length_tv", "total variation of the lengths, in 20 bins",
        &(eval_number){length_distance, &x, {x.n[0], x.n[1]}, true}, err);
    dpi_private_free(bin);
    return status;
}

static dpi_status measure_length(evaluation *e, const eval_sources *s, dpi_error *err) {
    const eval_texts *const sets[] = {s->synthetic, s->real};
    int32_t most = 1;
    EVAL_TRY(add_length(e, s->synthetic, "words_mean", "words of a text, mean", err));
    EVAL_TRY(add_length(e, s->real, "words_mean_real", "the same of real texts", err));
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < sets[k]->n; i++)
            most = sets[k]->at[i].n_words > most ? sets[k]->at[i].n_words : most;
    e->words_in_bin = most / EVAL_BINS + 1;
    return add_length_distance(e, sets, err);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Of one set of texts. */
typedef struct diversity {
    double *each[3], *bleu; /* [n] of each text: shares for n-grams of 2, 3, 4 words; self-BLEU */
    double all[4]; /* of all texts: n = 1, 2, 3, 4 */
    int32_t n;
    bool is_sum; /* of the shares; else their product */
} diversity;

/* Of shares each a mean over the texts that have such n-grams. */
static double diversity_of(const void *user, const int32_t *const which[2]) {
    const diversity *d = user;
    double found = d->is_sum ? 0 : 1;
    for (int32_t k = 0; k < 3; k++) {
        double sum = 0;
        int32_t n = 0;
        for (int32_t i = 0; i < d->n; i++) {
            const double x = d->each[k][which[0][i]];
            sum += isnan(x) ? 0 : x;
            n += !isnan(x);
        }
        const double mean = n > 0 ? sum / n : 0;
        found = d->is_sum ? found + mean : found * mean;
    }
    return found;
}

static dpi_status find_diversity(const eval_texts *s, diversity *d, dpi_error *err) {
    double unused;
    *d = (diversity){.n = s->n,
                     .bleu = dpi_private_malloc(4 * ((size_t)s->n + 1) * sizeof *d->bleu)};
    if (!d->bleu)
        return eval_no_memory(err, "n-grams");
    EVAL_TRY(eval_distinct(s, 1, &d->all[0], &unused, NULL, err));
    for (int32_t k = 0; k < 3; k++) {
        d->each[k] = d->bleu + (size_t)(k + 1) * (size_t)s->n;
        EVAL_TRY(eval_distinct(s, k + 2, &d->all[k + 1], &unused, d->each[k], err));
    }
    return eval_self_bleu(s, &unused, d->bleu, err);
}

static dpi_status add_diversity(evaluation *e, const char *key, const char *label, diversity *d,
                                bool is_sum, dpi_error *err) {
    const eval_number number = {.of = diversity_of, .user = d, .n = {d->n}};
    d->is_sum = is_sum;
    return eval_add_number(e, "diversity", key, label, &number, err);
}

static dpi_status add_diversities(evaluation *e, diversity *d, diversity *r, dpi_error *err) {
    static const char *const same = "the same of real texts";
    EVAL_TRY(add_diversity(e, "diversity",
                           "product over n = 2, 3, 4 of unique / all n-grams of a text", d, false,
                           err));
    EVAL_TRY(add_diversity(e, "diversity_real", same, r, false, err));
    EVAL_TRY(add_diversity(e, "diversity_sum", "sum of the same", d, true, err));
    EVAL_TRY(add_diversity(e, "diversity_sum_real", same, r, true, err));
    /* A resample has texts twice, and so fewer different n-grams. */
    eval_add(e, "diversity", "distinct_1", "unique / all words of all texts", d->all[0]);
    eval_add(e, "diversity", "distinct_2", "unique / all 2-grams of all texts", d->all[1]);
    eval_add(e, "diversity", "distinct_3", "unique / all 3-grams of all texts", d->all[2]);
    eval_add(e, "diversity", "distinct_4", "unique / all 4-grams of all texts", d->all[3]);
    EVAL_TRY(eval_add_mean(e, "diversity", "self_bleu_4",
                           "self-BLEU-4: 1 where texts repeat each other", d->bleu, d->n, err));
    return eval_add_mean(e, "diversity", "self_bleu_4_real", same, r->bleu, r->n, err);
}

static dpi_status measure_diversity(evaluation *e, const eval_sources *s, dpi_error *err) {
    diversity d = {0}, r = {0};
    dpi_status status = find_diversity(s->synthetic, &d, err);
    if (status == DPI_STATUS_OK)
        status = find_diversity(s->real, &r, err);
    if (status == DPI_STATUS_OK)
        status = add_diversities(e, &d, &r, err);
    dpi_private_free(d.bleu);
    dpi_private_free(r.bleu);
    return status;
}

/* each [EVAL_PII_KINDS, n] */
static dpi_status add_pii(evaluation *e, const eval_sources *s, const eval_pii *pii,
                          const int32_t *each, dpi_error *err) {
    static const char *const keys[EVAL_PII_KINDS][2] = {
        {"email_found", "email_copied"}, {"phone_found", "phone_copied"},
        {"iban_found", "iban_copied"},   {"date_found", "date_copied"},
        {"digits_found", "digits_copied"}, {"name_found", "name_copied"}};
    static const char *const labels[EVAL_PII_KINDS] = {
        "e-mail addresses", "phone numbers",   "account numbers (IBAN)",
        "dates",            "six digits or more", "names of training texts alone"};
    const int32_t n = s->synthetic->n;
    for (int32_t k = 0; k < EVAL_PII_KINDS; k++) {
        if (k == EVAL_PII_NAME && !s->train)
            continue;
        EVAL_TRY(eval_add_sum(e, "person", keys[k][0], labels[k], each + (size_t)k * (size_t)n, n,
                              err));
        if (s->train)
            eval_add(e, "person", keys[k][1], "different ones of these in training texts",
                     (double)pii->n_copied[k]);
    }
    return DPI_STATUS_OK;
}

static dpi_status measure_pii(evaluation *e, const eval_sources *s, dpi_error *err) {
    eval_pii pii;
    int32_t *each = dpi_private_malloc(EVAL_PII_KINDS * ((size_t)s->synthetic->n + 1) *
                                       sizeof *each);
    if (!each)
        return eval_no_memory(err, "what names a person");
    dpi_status status = eval_find_pii(s->synthetic, s->train, s->real, &pii, each, err);
    if (status == DPI_STATUS_OK)
        status = add_pii(e, s, &pii, each, err);
    dpi_private_free(each);
    return status;
}

/* ---- A classifier ---------------------------------------------------------------------------- */

/* Too few labels are no failure: the metric is left out. */
static dpi_status try_classifier(const eval_texts *train, const eval_texts *test,
                                 eval_accuracy *a, int32_t *each, bool *done, dpi_error *err) {
    const dpi_status status = eval_classify(train, test, a, each, err);
    *done = status == DPI_STATUS_OK;
    return status == DPI_STATUS_ARG ? DPI_STATUS_OK : status;
}

/* What one would get at the same epsilon by noise on a classifier, and no texts at all. */
static dpi_status measure_perturbed(evaluation *e, const eval_sources *s, dpi_error *err) {
    static const char *const keys[] = {"accuracy_logistic", "accuracy_perturbed"};
    static const char *const labels[] = {
        "the same of logistic regression, by words of the synthetic texts",
        "the same with noise on its weights, at the claimed epsilon: to compare with, no release"};
    const double epsilons[] = {INFINITY, s->claimed_epsilon};
    double *right = dpi_private_malloc(((size_t)s->real->n + 1) * sizeof *right);
    dpi_status status = right ? DPI_STATUS_OK : eval_no_memory(err, "a classifier");
    for (int32_t k = 0; k < 2 && status == DPI_STATUS_OK; k++) {
        int32_t n;
        status = eval_classify_perturbed(s->synthetic, s->train, s->real, epsilons[k],
                                         s->claimed_delta, right, &n, err);
        if (status == DPI_STATUS_OK)
            status = eval_add_mean(e, "classifier", keys[k], labels[k], right, n, err);
    }
    dpi_private_free(right);
    return status == DPI_STATUS_ARG ? DPI_STATUS_OK : status;
}

/* What was predicted, of texts with a label. */
typedef struct predictions {
    const int32_t *label, *predicted; /* [n] */
    int32_t *counts; /* [3, n_labels + 1], scratch */
    int32_t n, n_labels;
} predictions;

static double macro_f1_of(const void *user, const int32_t *const which[2]) {
    const predictions *p = user;
    return eval_macro_f1(p->label, p->predicted, which[0], p->n, p->n_labels, p->counts);
}

/* each as eval_classify has it, of n_texts. */
static dpi_status add_accuracy(evaluation *e, const eval_accuracy *a, const int32_t *each,
                               int32_t n_texts, dpi_error *err) {
    predictions p = {.label = each,
                     .predicted = each + n_texts,
                     .counts = dpi_private_malloc(3 * ((size_t)a->n_labels + 1) *
                                                  sizeof *p.counts),
                     .n = a->n_test,
                     .n_labels = a->n_labels};
    if (!p.counts)
        return eval_no_memory(err, "a classifier");
    dpi_status status = eval_add_share(
        e, "classifier", "accuracy", "real labels that a classifier of the synthetic texts finds",
        (int32_t)lrint(a->accuracy * a->n_test), a->n_test, err);
    if (status == DPI_STATUS_OK)
        status = eval_add_number(e, "classifier", "macro_f1", "F1, mean over the labels",
                                 &(eval_number){.of = macro_f1_of, .user = &p, .n = {p.n}}, err);
    if (status == DPI_STATUS_OK)
        status = eval_add_share(e, "classifier", "accuracy_majority",
                                "accuracy of the most frequent label",
                                (int32_t)lrint(a->majority * a->n_test), a->n_test, err);
    dpi_private_free(p.counts);
    return status;
}

/* How many of the labels real texts have as well. Of none, accuracy is 0 for that reason. */
static dpi_status add_shared(evaluation *e, const eval_accuracy *a, const int32_t *each,
                             dpi_error *err) {
    bool *seen = dpi_private_malloc((size_t)a->n_labels + 1);
    int32_t n = 0;
    if (!seen)
        return eval_no_memory(err, "a classifier");
    memset(seen, 0, (size_t)a->n_labels + 1);
    for (int32_t i = 0; i < a->n_test; i++) {
        n += each[i] > 0 && !seen[each[i]];
        seen[each[i]] = true;
    }
    dpi_private_free(seen);
    eval_add(e, "classifier", "n_labels_shared",
             n > 0 ? "of them real texts have as well"
                   : "of them real texts have as well: accuracy is 0, whatever the texts are", n);
    return DPI_STATUS_OK;
}

/* each [2, s->real->n] */
static dpi_status add_classifiers(evaluation *e, const eval_sources *s, int32_t *each,
                                  dpi_error *err) {
    eval_accuracy a;
    bool done;
    EVAL_TRY(try_classifier(s->synthetic, s->real, &a, each, &done, err));
    if (done)
        EVAL_TRY(add_accuracy(e, &a, each, s->real->n, err));
    if (a.n_labels > 0) /* one is too few to learn: the reader sees it */
        eval_add(e, "classifier", "n_labels", "labels of the synthetic texts", a.n_labels);
    if (done)
        EVAL_TRY(add_shared(e, &a, each, err));
    if (!s->train)
        return DPI_STATUS_OK;
    EVAL_TRY(try_classifier(s->train, s->real, &a, NULL, &done, err));
    if (done)
        EVAL_TRY(eval_add_share(e, "classifier", "accuracy_train", "the same of the training texts",
                                (int32_t)lrint(a.accuracy * a.n_test), a.n_test, err));
    return done && s->claimed_epsilon > 0 ? measure_perturbed(e, s, err) : DPI_STATUS_OK;
}

static dpi_status measure_classifier(evaluation *e, const eval_sources *s, dpi_error *err) {
    int32_t *each = dpi_private_malloc(2 * ((size_t)s->real->n + 1) * sizeof *each);
    if (!each)
        return eval_no_memory(err, "a classifier");
    const dpi_status status = add_classifiers(e, s, each, err);
    dpi_private_free(each);
    return status;
}

/* ---- A model --------------------------------------------------------------------------------- */

/* A score of 0..1. */
static void add_over_seeds(evaluation *e, const char *key, const char *label, double mean,
                           double deviation) {
    eval_add_interval(e, "mauve", key, label, mean, fmax(mean - 1.96 * deviation, 0),
                      fmin(mean + 1.96 * deviation, 1));
}

/* The clusters of two sets of texts. */
typedef struct clusters {
    const int32_t *of[2]; /* [n] */
    double *share[2];     /* [n_clusters], scratch */
    int32_t n[2], n_clusters;
    double scaling;
} clusters;

static double mauve_of(const void *user, const int32_t *const which[2]) {
    const clusters *x = user;
    double mauve, integral;
    for (int32_t k = 0; k < 2; k++) {
        memset(x->share[k], 0, (size_t)x->n_clusters * sizeof *x->share[k]);
        for (int32_t i = 0; i < x->n[k]; i++)
            x->share[k][x->of[k][which[k][i]]] += 1. / x->n[k];
    }
    mauve_of_histograms(x->share[0], x->share[1], x->n_clusters, x->scaling, &mauve, &integral,
                        NULL);
    return mauve;
}

/* MAUVE of resampled texts, in clusters [n_p + n_q] that stay; of the value that was added last. */
static dpi_status draw_mauve(evaluation *e, const int32_t *group, int32_t n_p, int32_t n_q,
                             dpi_error *err) {
    double unused[3], *draws = dpi_private_malloc(EVAL_RESAMPLES * sizeof *draws);
    double *share = dpi_private_malloc(2 * (size_t)e->mauve.n_clusters * sizeof *share);
    dpi_status status = draws && share ? DPI_STATUS_OK : eval_no_memory(err, "intervals");
    if (status == DPI_STATUS_OK) {
        const clusters x = {.of = {group, group + n_p},
                            .share = {share, share + e->mauve.n_clusters},
                            .n = {n_p, n_q},
                            .n_clusters = e->mauve.n_clusters,
                            .scaling = e->settings.scaling};
        status = eval_find_number(&(eval_number){.of = mauve_of, .user = &x, .n = {n_p, n_q}},
                                  e->stream, draws, &unused[0], &unused[1], &unused[2], err);
    }
    dpi_private_free(share);
    if (status == DPI_STATUS_OK)
        e->at[e->n - 1].draws = draws;
    else
        dpi_private_free(draws);
    return status;
}

static dpi_status add_mauve(evaluation *e, const eval_vectors *synthetic, const eval_vectors *real,
                            const mauve_options *options, dpi_error *err) {
    const size_t n_all = (size_t)synthetic->n + (size_t)real->n;
    int32_t *group = dpi_private_malloc(n_all * sizeof *group);
    e->map = dpi_private_malloc(2 * n_all * sizeof *e->map);
    dpi_status status =
        group && e->map ? eval_mauve(synthetic, real, options, &e->mauve, e->map, group, err)
                        : eval_no_memory(err, "a map");
    if (status == DPI_STATUS_OK) {
        e->has_mauve = true;
        e->settings = *options;
        e->n_synthetic = synthetic->n;
        e->n_real = real->n;
        add_over_seeds(e, "mauve", "MAUVE, mean over seeds of k-means (95 % over the seeds)",
                       e->mauve.mauve, e->mauve.deviation);
        status = draw_mauve(e, group, synthetic->n, real->n, err);
    }
    dpi_private_free(group);
    return status;
}

dpi_status evaluate_features(const eval_vectors *synthetic, const eval_vectors *real,
                             const eval_vectors *prompts, const mauve_options *options,
                             evaluation *e, dpi_error *err) {
    double precision, recall;
    EVAL_TRY(add_mauve(e, synthetic, real, options, err));
    eval_add(e, "mauve", "mauve_deviation", "its standard deviation over the seeds",
             e->mauve.deviation);
    add_over_seeds(e, "frontier_integral", "frontier integral", e->mauve.integral,
                   e->mauve.integral_deviation);
    eval_add(e, "mauve", "n_clusters", "clusters", e->mauve.n_clusters);
    eval_add(e, "mauve", "n_dimensions", "dimensions with 90 % of the variance", e->mauve.n_dims);
    if (synthetic->n > EVAL_NEIGHBOURS && real->n > EVAL_NEIGHBOURS) {
        EVAL_TRY(eval_neighbours(synthetic, real, EVAL_NEIGHBOURS, &precision, &recall, err));
        EVAL_TRY(eval_add_share(e, "mauve", "precision",
                                "synthetic texts among 3 neighbours of real ones",
                                (int32_t)lrint(precision * synthetic->n), synthetic->n, err));
        EVAL_TRY(eval_add_share(e, "mauve", "recall",
                                "real texts among 3 neighbours of synthetic ones",
                                (int32_t)lrint(recall * real->n), real->n, err));
    }
    return prompts ? eval_measure_coherence(e, synthetic, prompts, err) : DPI_STATUS_OK;
}

/* e^(mean over the tokens of texts of -ln p). */
static double perplexity_of(const void *user, const int32_t *const which[2]) {
    const eval_reading *x = user;
    double nll = 0, n = 0;
    for (int32_t i = 0; i < x->n; i++) {
        const int32_t t = which[0][i];
        nll += x->nll[t] * x->n_tokens[t];
        n += x->n_tokens[t];
    }
    return n > 0 ? exp(nll / n) : 0;
}

static dpi_status add_perplexity(evaluation *e, const eval_reading *x, const char *const keys[3],
                                 const char *const labels[3], dpi_error *err) {
    const eval_number of_tokens = {.of = perplexity_of, .user = x, .n = {x->n}};
    double *each = dpi_private_malloc(2 * ((size_t)x->n + 1) * sizeof *each);
    if (!each)
        return eval_no_memory(err, "perplexities");
    double *const tokens = each + x->n;
    for (int32_t i = 0; i < x->n; i++) {
        each[i] = exp(x->nll[i]);
        tokens[i] = x->n_tokens[i];
    }
    dpi_status status = eval_add_mean(e, "model", keys[0], labels[0], each, x->n, err);
    if (status == DPI_STATUS_OK)
        status = eval_add_number(e, "model", keys[1], labels[1], &of_tokens, err);
    if (status == DPI_STATUS_OK)
        status = eval_add_mean(e, "model", keys[2], labels[2], tokens, x->n, err);
    dpi_private_free(each);
    return status;
}

/* Coherence: prompts as the model reads them, beside texts. */
static dpi_status read_prompts(evaluation *e, const eval_sources *s, const eval_reading *synthetic,
                               dpi_error *err) {
    eval_reading prompts = {0};
    dpi_status status = eval_read(s->model, &s->session, s->prompts,
                                  "prompts read by the model", s->watch, &prompts, err);
    if (status == DPI_STATUS_OK)
        status = eval_measure_prompts(e, s->synthetic, &synthetic->pooled, s->prompts,
                                      &prompts.pooled, err);
    eval_reading_free(&prompts);
    return status;
}

static dpi_status measure_model(evaluation *e, const eval_sources *s, dpi_error *err) {
    static const char *const keys[] = {"perplexity", "perplexity_tokens", "tokens_mean"};
    static const char *const real_keys[] = {"perplexity_real", "perplexity_tokens_real",
                                            "tokens_mean_real"};
    static const char *const labels[] = {"perplexity of a text, mean",
                                         "perplexity of all tokens together",
                                         "tokens of a text, mean"};
    static const char *const real_labels[] = {"perplexity of a real text, mean",
                                              "the same of all tokens together",
                                              "tokens of a real text, mean"};
    eval_reading synthetic = {0}, own = {0};
    const eval_reading *real = s->reading ? s->reading : &own;
    dpi_model_info info;
    if (!s->model)
        return DPI_STATUS_OK;
    dpi_model_info_init(&info);
    EVAL_TRY(dpi_model_info_get(s->model, &info, err));
    snprintf(e->model_name, sizeof e->model_name, "%s", info.name[0] ? info.name : "unnamed");
    dpi_status status = eval_read(s->model, &s->session, s->synthetic,
                                  "synthetic texts read by the model", s->watch, &synthetic, err);
    if (status == DPI_STATUS_OK && !s->reading)
        status = eval_read(s->model, &s->session, s->real, "real texts read by the model",
                           s->watch, &own, err);
    if (status == DPI_STATUS_OK)
        status = add_perplexity(e, &synthetic, keys, labels, err);
    if (status == DPI_STATUS_OK)
        status = add_perplexity(e, real, real_keys, real_labels, err);
    if (status == DPI_STATUS_OK)
        eval_add(e, "model", "n_cut", "texts that were cut to the context",
                 synthetic.n_cut + real->n_cut);
    eval_begin(s->watch, "MAUVE and neighbours");
    if (status == DPI_STATUS_OK && synthetic.n >= 2 && real->n >= 2)
        status = evaluate_features(&synthetic.features, &real->features, NULL, &s->mauve, e, err);
    if (status == DPI_STATUS_OK && s->prompts)
        status = read_prompts(e, s, &synthetic, err);
    eval_reading_free(&synthetic);
    eval_reading_free(&own);
    return status;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* What no model is needed for, in the order of a report. */
static const struct {
    const char *what;
    dpi_status (*measure)(evaluation *e, const eval_sources *s, dpi_error *err);
} metrics[] = {
    {"lengths", measure_length},
    {"how texts begin", eval_measure_openings},
    {"diversity", measure_diversity},
    {"copies of training texts", eval_measure_copies},
    {"who was a record", eval_measure_members},
    {"names and numbers", measure_pii},
    {"form", eval_measure_structure},
    {"attributes", eval_measure_attributes},
    {"a classifier", measure_classifier},
};

dpi_status evaluate(const eval_sources *s, evaluation *e, dpi_error *err) {
    *e = (evaluation){.n_synthetic = s->synthetic->n,
                      .n_real = s->real->n,
                      .stream = s->is_control ? 3 : 1};
    if (s->synthetic->n == 0 || s->real->n == 0)
        return eval_fail(err, DPI_STATUS_ARG, "%s: found no text, allowed 1 or more",
                         s->synthetic->n > 0 ? "real texts"
                         : s->is_control     ? "texts of the control"
                                             : "synthetic texts");
    eval_add(e, "texts", "n_synthetic", "synthetic texts", s->synthetic->n);
    eval_add(e, "texts", "n_real", "real texts", s->real->n);
    if (s->train)
        eval_add(e, "texts", "n_train", "training texts", s->train->n);
    eval_add(e, "texts", "n_null", "records without a text, left out",
             s->synthetic->n_null + s->real->n_null + (s->train ? s->train->n_null : 0));
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        eval_begin(s->watch, metrics[i].what);
        EVAL_TRY(metrics[i].measure(e, s, err));
    }
    return measure_model(e, s, err);
}

void evaluation_free(evaluation *e) {
    eval_structure_free(&e->structure);
    for (int32_t i = 0; i < e->n; i++)
        dpi_private_free(e->at[i].draws);
    dpi_private_free(e->map);
    dpi_private_free(e->control);
    *e = (evaluation){0};
}
