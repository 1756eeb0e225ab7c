/* evaluate.c - see evaluate.h. */
#include "eval/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/classify.h"
#include "eval/fail.h"
#include "eval/grams.h"
#include "eval/pii.h"

enum { RESAMPLES = 1000 };

/* ---- Values ---------------------------------------------------------------------------------- */

static void add_interval(evaluation *e, const char *group, const char *key, const char *label,
                         double value, double low, double high) {
    if (e->n < EVAL_VALUES_MAX)
        e->at[e->n++] = (eval_value){group, key, label, value, low, high};
}

static void add(evaluation *e, const char *group, const char *key, const char *label,
                double value) {
    add_interval(e, group, key, label, value, NAN, NAN);
}

static int compare_double(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 95 % of the mean of x [n]: percentiles of the means of resamples. */
static dpi_status add_mean(evaluation *e, const char *group, const char *key, const char *label,
                           const double *x, int32_t n, dpi_error *err) {
    double *mean = dpi_private_malloc(RESAMPLES * sizeof *mean), sum = 0;
    uint64_t state = 1; /* any constant */
    if (!mean)
        return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for intervals");
    for (int32_t i = 0; i < n; i++)
        sum += x[i];
    for (int32_t r = 0; r < RESAMPLES; r++) {
        mean[r] = 0;
        for (int32_t i = 0; i < n; i++) {
            uint64_t bits;
            (void)dpi_random_insecure(&state, &bits, sizeof bits); /* it cannot fail */
            mean[r] += x[(size_t)((bits >> 32) * (uint64_t)n >> 32)] / n;
        }
    }
    qsort(mean, RESAMPLES, sizeof *mean, compare_double);
    if (n > 0)
        add_interval(e, group, key, label, sum / n, mean[RESAMPLES / 40],
                     mean[RESAMPLES - 1 - RESAMPLES / 40]);
    dpi_private_free(mean);
    return DPI_STATUS_OK;
}

/* The same of a share: count of n. */
static dpi_status add_share(evaluation *e, const char *group, const char *key, const char *label,
                            int32_t count, int32_t n, dpi_error *err) {
    double *x = dpi_private_malloc(((size_t)n + 1) * sizeof *x);
    if (!x)
        return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for intervals");
    for (int32_t i = 0; i < n; i++)
        x[i] = i < count;
    const dpi_status status = add_mean(e, group, key, label, x, n, err);
    dpi_private_free(x);
    return status;
}

/* ---- Length ---------------------------------------------------------------------------------- */

static dpi_status add_length(evaluation *e, const eval_texts *s, const char *key,
                             const char *label, dpi_error *err) {
    double *x = dpi_private_malloc(((size_t)s->n + 1) * sizeof *x);
    if (!x)
        return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for lengths");
    for (int32_t i = 0; i < s->n; i++)
        x[i] = s->at[i].n_words;
    const dpi_status status = add_mean(e, "length", key, label, x, s->n, err);
    dpi_private_free(x);
    return status;
}

static dpi_status measure_length(evaluation *e, const eval_sources *s, dpi_error *err) {
    const eval_texts *const sets[] = {s->synthetic, s->real};
    int32_t most = 1;
    double distance = 0;
    EVAL_TRY(add_length(e, s->synthetic, "words_mean", "words of a text, mean", err));
    EVAL_TRY(add_length(e, s->real, "words_mean_real", "the same of real texts", err));
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < sets[k]->n; i++)
            most = sets[k]->at[i].n_words > most ? sets[k]->at[i].n_words : most;
    e->words_in_bin = most / EVAL_BINS + 1;
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < sets[k]->n; i++)
            e->lengths[k][sets[k]->at[i].n_words / e->words_in_bin]++;
    for (int32_t b = 0; b < EVAL_BINS; b++)
        distance += fabs((double)e->lengths[0][b] / s->synthetic->n -
                         (double)e->lengths[1][b] / s->real->n) / 2;
    add(e, "length", "length_tv", "total variation of the lengths, in 20 bins", distance);
    return DPI_STATUS_OK;
}

/* ---- Words ----------------------------------------------------------------------------------- */

typedef struct diversity {
    double product, sum, all[3], bleu;
} diversity;

static dpi_status find_diversity(const eval_texts *s, diversity *d, dpi_error *err) {
    *d = (diversity){.product = 1};
    for (int32_t n = 2; n <= 4; n++) {
        double of_text;
        EVAL_TRY(eval_distinct(s, n, &d->all[n - 2], &of_text, err));
        d->product *= of_text;
        d->sum += of_text;
    }
    return eval_self_bleu(s, &d->bleu, err);
}

static dpi_status measure_diversity(evaluation *e, const eval_sources *s, dpi_error *err) {
    diversity d, r;
    EVAL_TRY(find_diversity(s->synthetic, &d, err));
    EVAL_TRY(find_diversity(s->real, &r, err));
    add(e, "diversity", "diversity", "product over n = 2, 3, 4 of unique / all n-grams of a text",
        d.product);
    add(e, "diversity", "diversity_real", "the same of real texts", r.product);
    add(e, "diversity", "diversity_sum", "sum of the same", d.sum);
    add(e, "diversity", "diversity_sum_real", "the same of real texts", r.sum);
    add(e, "diversity", "distinct_2", "unique / all 2-grams of all texts", d.all[0]);
    add(e, "diversity", "distinct_3", "unique / all 3-grams of all texts", d.all[1]);
    add(e, "diversity", "distinct_4", "unique / all 4-grams of all texts", d.all[2]);
    add(e, "diversity", "self_bleu_4", "self-BLEU-4: 1 where texts repeat each other", d.bleu);
    add(e, "diversity", "self_bleu_4_real", "the same of real texts", r.bleu);
    return DPI_STATUS_OK;
}

static dpi_status measure_copies(evaluation *e, const eval_sources *s, dpi_error *err) {
    eval_copies c, r;
    if (!s->train || s->train->n == 0)
        return DPI_STATUS_OK;
    EVAL_TRY(eval_compare(s->synthetic, s->train, s->real, &c, err));
    EVAL_TRY(eval_compare(s->real, s->train, NULL, &r, err));
    const int32_t n = s->synthetic->n;
    EVAL_TRY(add_share(e, "copies", "near_copies",
                       "texts with half of the trigrams of a training text", c.n_near_copies, n,
                       err));
    EVAL_TRY(add_share(e, "copies", "near_copies_real", "the same of real texts", r.n_near_copies,
                       s->real->n, err));
    add(e, "copies", "exact_copies", "texts that are a training text", c.n_exact);
    add(e, "copies", "longest_run", "longest run of words of a training text", c.longest);
    add(e, "copies", "longest_run_mean", "the same of each text, mean", c.mean_longest);
    add(e, "copies", "longest_run_mean_real", "the same of real texts", r.mean_longest);
    EVAL_TRY(add_share(e, "copies", "rare_copies", "texts with five words in a row of one training "
                       "text alone", c.n_rare, n, err));
    add(e, "copies", "rare_runs", "such runs", (double)c.n_rare_runs);
    return DPI_STATUS_OK;
}

static dpi_status measure_pii(evaluation *e, const eval_sources *s, dpi_error *err) {
    static const char *const keys[EVAL_PII_KINDS][2] = {
        {"email_found", "email_copied"}, {"phone_found", "phone_copied"},
        {"iban_found", "iban_copied"},   {"date_found", "date_copied"},
        {"digits_found", "digits_copied"}, {"name_found", "name_copied"}};
    static const char *const labels[EVAL_PII_KINDS] = {
        "e-mail addresses", "phone numbers",   "account numbers (IBAN)",
        "dates",            "six digits or more", "names of training texts alone"};
    eval_pii pii;
    EVAL_TRY(eval_find_pii(s->synthetic, s->train, s->real, &pii, err));
    for (int32_t k = 0; k < EVAL_PII_KINDS; k++) {
        if (k == EVAL_PII_NAME && !s->train)
            continue;
        add(e, "person", keys[k][0], labels[k], (double)pii.n_found[k]);
        if (s->train)
            add(e, "person", keys[k][1], "different ones of these in training texts",
                (double)pii.n_copied[k]);
    }
    return DPI_STATUS_OK;
}

/* ---- A classifier ---------------------------------------------------------------------------- */

/* Too few labels are no failure: the metric is left out. */
static dpi_status try_classifier(const eval_texts *train, const eval_texts *test,
                                 eval_accuracy *a, bool *done, dpi_error *err) {
    const dpi_status status = eval_classify(train, test, a, err);
    *done = status == DPI_STATUS_OK;
    return status == DPI_STATUS_ARG ? DPI_STATUS_OK : status;
}

static dpi_status measure_classifier(evaluation *e, const eval_sources *s, dpi_error *err) {
    eval_accuracy a;
    bool done;
    EVAL_TRY(try_classifier(s->synthetic, s->real, &a, &done, err));
    if (done) {
        EVAL_TRY(add_share(e, "classifier", "accuracy", "real labels that a classifier of the "
                           "synthetic texts finds", (int32_t)lrint(a.accuracy * a.n_test),
                           a.n_test, err));
        add(e, "classifier", "macro_f1", "F1, mean over the labels", a.macro_f1);
        add(e, "classifier", "accuracy_majority", "accuracy of the most frequent label",
            a.majority);
        add(e, "classifier", "n_labels", "labels", a.n_labels);
    }
    if (!s->train)
        return DPI_STATUS_OK;
    EVAL_TRY(try_classifier(s->train, s->real, &a, &done, err));
    return done ? add_share(e, "classifier", "accuracy_train", "the same of the training texts",
                            (int32_t)lrint(a.accuracy * a.n_test), a.n_test, err)
                : DPI_STATUS_OK;
}

/* ---- A model --------------------------------------------------------------------------------- */

dpi_status evaluate_features(const eval_vectors *synthetic, const eval_vectors *real,
                             const mauve_options *options, evaluation *e, dpi_error *err) {
    double precision, recall;
    e->map = dpi_private_malloc(2 * ((size_t)synthetic->n + (size_t)real->n) * sizeof *e->map);
    if (!e->map)
        return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for a map");
    EVAL_TRY(eval_mauve(synthetic, real, options, &e->mauve, e->map, err));
    e->has_mauve = true;
    e->settings = *options;
    e->n_synthetic = synthetic->n;
    e->n_real = real->n;
    add_interval(e, "mauve", "mauve", "MAUVE, mean over seeds of k-means (95 % over the seeds)",
                 e->mauve.mauve, e->mauve.mauve - 1.96 * e->mauve.deviation,
                 e->mauve.mauve + 1.96 * e->mauve.deviation);
    add(e, "mauve", "frontier_integral", "frontier integral", e->mauve.integral);
    add(e, "mauve", "n_clusters", "clusters", e->mauve.n_clusters);
    add(e, "mauve", "n_dimensions", "dimensions with 90 % of the variance", e->mauve.n_dims);
    if (synthetic->n > EVAL_NEIGHBOURS && real->n > EVAL_NEIGHBOURS) {
        EVAL_TRY(eval_neighbours(synthetic, real, EVAL_NEIGHBOURS, &precision, &recall, err));
        add(e, "mauve", "precision", "synthetic texts among 3 neighbours of real ones", precision);
        add(e, "mauve", "recall", "real texts among 3 neighbours of synthetic ones", recall);
    }
    return DPI_STATUS_OK;
}

static dpi_status add_perplexity(evaluation *e, const eval_reading *x, const char *const keys[3],
                                 const char *const labels[3], dpi_error *err) {
    double *each = dpi_private_malloc(((size_t)x->n + 1) * sizeof *each);
    double of_text, of_token, tokens = 0;
    if (!each)
        return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for perplexities");
    for (int32_t i = 0; i < x->n; i++) {
        each[i] = exp(x->nll[i]);
        tokens += (double)x->n_tokens[i] / x->n;
    }
    const dpi_status status = add_mean(e, "model", keys[0], labels[0], each, x->n, err);
    dpi_private_free(each);
    eval_perplexity(x, &of_text, &of_token);
    add(e, "model", keys[1], labels[1], of_token);
    add(e, "model", keys[2], labels[2], tokens);
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
    eval_reading synthetic = {0}, real = {0};
    if (!s->model)
        return DPI_STATUS_OK;
    dpi_status status = eval_read(s->model, &s->session, s->synthetic, s->watch, &synthetic, err);
    if (status == DPI_STATUS_OK)
        status = eval_read(s->model, &s->session, s->real, s->watch, &real, err);
    if (status == DPI_STATUS_OK)
        status = add_perplexity(e, &synthetic, keys, labels, err);
    if (status == DPI_STATUS_OK)
        status = add_perplexity(e, &real, real_keys, real_labels, err);
    if (status == DPI_STATUS_OK)
        add(e, "model", "n_cut", "texts that were cut to the context",
            synthetic.n_cut + real.n_cut);
    if (status == DPI_STATUS_OK && synthetic.n >= 2 && real.n >= 2)
        status = evaluate_features(&synthetic.features, &real.features, &s->mauve, e, err);
    eval_reading_free(&synthetic);
    eval_reading_free(&real);
    return status;
}

/* ---- All ------------------------------------------------------------------------------------- */

dpi_status evaluate(const eval_sources *s, evaluation *e, dpi_error *err) {
    *e = (evaluation){.n_synthetic = s->synthetic->n, .n_real = s->real->n};
    if (s->synthetic->n == 0 || s->real->n == 0)
        return eval_fail(err, DPI_STATUS_ARG, "%s: found no text, allowed 1 or more",
                         s->synthetic->n == 0 ? "synthetic texts" : "real texts");
    add(e, "texts", "n_synthetic", "synthetic texts", s->synthetic->n);
    add(e, "texts", "n_real", "real texts", s->real->n);
    if (s->train)
        add(e, "texts", "n_train", "training texts", s->train->n);
    add(e, "texts", "n_null", "records without a text, left out",
        s->synthetic->n_null + s->real->n_null + (s->train ? s->train->n_null : 0));
    EVAL_TRY(measure_length(e, s, err));
    EVAL_TRY(measure_diversity(e, s, err));
    EVAL_TRY(measure_copies(e, s, err));
    EVAL_TRY(measure_pii(e, s, err));
    EVAL_TRY(measure_classifier(e, s, err));
    return measure_model(e, s, err);
}

void evaluation_free(evaluation *e) {
    dpi_private_free(e->map);
    e->map = NULL;
}
