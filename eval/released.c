/* released.c - see released.h. */
#include "eval/released.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/classify.h"
#include "eval/fail.h"
#include "eval/grams.h"
#include "eval/values.h"

enum { CELLS_MAX = EVAL_FIELD_BINS };

int32_t eval_released_groups(const eval_sources *s, bool has_labels) {
    return 2 + (has_labels ? 2 : 0) + (s->grammar ? 1 : 0); /* lengths, JSON */
}

static dpi_status no_memory(dpi_error *err) {
    return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for counts");
}

/* ---- Histograms as fields -------------------------------------------------------------------- */

static char *copy(const char *text) {
    const size_t n = strlen(text) + 1;
    char *own = dpi_private_malloc(n);
    return own ? memcpy(own, text, n) : NULL;
}

/* A histogram of n bins, whose real side is noisy: counts below 0 are 0. total: of all cells. */
static dpi_status add_field(evaluation *e, const char *name, const char *const *bins, int32_t n,
                            const int64_t *synthetic, const int64_t *noisy, dpi_error *err) {
    eval_field *f = &e->structure.field[e->structure.n_fields++];
    double sum[2] = {0};
    *f = (eval_field){.name = copy(name), .present = {1, 1}};
    for (int32_t b = 0; b < n; b++) {
        sum[0] += (double)synthetic[b];
        sum[1] += noisy[b] > 0 ? (double)noisy[b] : 0;
    }
    for (int32_t b = 0; b < n; b++) {
        f->bin[f->n_bins++] = copy(bins[b]);
        f->share[0][b] = sum[0] > 0 ? (double)synthetic[b] / sum[0] : 0;
        f->share[1][b] = sum[1] > 0 && noisy[b] > 0 ? (double)noisy[b] / sum[1] : 0;
        f->tv += fabs(f->share[0][b] - f->share[1][b]) / 2;
        if (!f->bin[b])
            return no_memory(err);
    }
    return f->name ? DPI_STATUS_OK : no_memory(err);
}

/* ---- Lengths --------------------------------------------------------------------------------- */

static void count_lengths(const eval_texts *s, int32_t width, int64_t cells[EVAL_BINS]) {
    for (int32_t i = 0; i < s->n; i++) {
        const int32_t bin = s->at[i].n_words / width;
        cells[bin < EVAL_BINS ? bin : EVAL_BINS - 1]++;
    }
}

/* Bins by the synthetic texts; the last one has what is longer too. */
static dpi_status release_lengths(const eval_sources *s, dpi_counts *counts, evaluation *e,
                                  dpi_error *err) {
    int64_t cells[2][EVAL_BINS] = {{0}};
    char name[EVAL_BINS][32];
    const char *names[EVAL_BINS];
    int32_t most = 1;
    double n_real = 0;
    for (int32_t i = 0; i < s->synthetic->n; i++)
        most = s->synthetic->at[i].n_words > most ? s->synthetic->at[i].n_words : most;
    e->words_in_bin = most / EVAL_BINS + 1;
    count_lengths(s->synthetic, e->words_in_bin, cells[0]);
    count_lengths(s->real, e->words_in_bin, cells[1]);
    EVAL_TRY(dpi_counts_release(counts, cells[1], EVAL_BINS, err));
    for (int32_t b = 0; b < EVAL_BINS; b++) {
        snprintf(name[b], sizeof name[b], b + 1 < EVAL_BINS ? "%d .. %d" : "%d or more",
                 (int)(b * e->words_in_bin), (int)((b + 1) * e->words_in_bin - 1));
        names[b] = name[b];
        n_real += (double)cells[1][b];
    }
    EVAL_TRY(add_field(e, "words", names, EVAL_BINS, cells[0], cells[1], err));
    eval_add(e, "length", "n_real_noisy", "real texts, with noise", n_real);
    eval_add(e, "length", "length_tv", "total variation of the lengths, in 20 bins",
             e->structure.field[e->structure.n_fields - 1].tv);
    return DPI_STATUS_OK;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

/* A label of synthetic texts, and how many have it. */
typedef struct named {
    const char *name;
    int64_t n;
} named;

static int compare_names(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static int compare_counts(const void *a, const void *b) {
    const named *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->name, y->name);
}

/* The most frequent labels of synthetic texts, at most CELLS_MAX - 1; how many. list has room for
 * all texts. */
static int32_t find_labels(const eval_texts *s, named *list) {
    int32_t n = 0, n_labels = 0;
    for (int32_t i = 0; i < s->n; i++)
        if (s->at[i].label)
            list[n++] = (named){s->at[i].label, 1};
    qsort(list, (size_t)n, sizeof *list, compare_names);
    for (int32_t i = 0; i < n; i++) {
        if (n_labels > 0 && strcmp(list[n_labels - 1].name, list[i].name) == 0)
            list[n_labels - 1].n++;
        else
            list[n_labels++] = list[i];
    }
    qsort(list, (size_t)n_labels, sizeof *list, compare_counts);
    return n_labels < CELLS_MAX ? n_labels : CELLS_MAX - 1;
}

/* One cell for each label, the last one for others and for none. */
static void count_labels(const eval_texts *s, const named *list, int32_t n, int64_t *cells) {
    for (int32_t i = 0; i < s->n; i++) {
        int32_t k = 0;
        while (k < n && !(s->at[i].label && strcmp(s->at[i].label, list[k].name) == 0))
            k++;
        cells[k]++;
    }
}

static dpi_status release_labels(const eval_sources *s, dpi_counts *counts, evaluation *e,
                                 dpi_error *err) {
    int64_t cells[2][CELLS_MAX] = {{0}};
    const char *names[CELLS_MAX];
    named *list = dpi_private_malloc(((size_t)s->synthetic->n + 1) * sizeof *list);
    if (!list)
        return no_memory(err);
    const int32_t n = find_labels(s->synthetic, list);
    for (int32_t k = 0; k < n; k++)
        names[k] = list[k].name;
    names[n] = "other, or none";
    count_labels(s->synthetic, list, n, cells[0]);
    count_labels(s->real, list, n, cells[1]);
    dpi_status status = dpi_counts_release(counts, cells[1], n + 1, err);
    if (status == DPI_STATUS_OK)
        status = add_field(e, "label", names, n + 1, cells[0], cells[1], err);
    if (status == DPI_STATUS_OK)
        eval_add(e, "classifier", "label_tv", "total variation of the labels",
                 e->structure.field[e->structure.n_fields - 1].tv);
    dpi_private_free(list);
    return status;
}

/* ---- Shares ---------------------------------------------------------------------------------- */

/* Two cells, no and yes, as a share of yes in 0..1. */
static dpi_status release_share(dpi_counts *counts, int64_t cells[2], evaluation *e,
                                const char *group, const char *key, const char *label,
                                dpi_error *err) {
    EVAL_TRY(dpi_counts_release(counts, cells, 2, err));
    const double no = fmax((double)cells[0], 0), yes = fmax((double)cells[1], 0);
    eval_add(e, group, key, label, no + yes > 0 ? yes / (no + yes) : 0);
    return DPI_STATUS_OK;
}

/* Labels that the classifier finds; a text without a label is in no cell. What the classifier is
 * follows from the synthetic texts. */
static dpi_status release_accuracy(const eval_sources *s, dpi_counts *counts, evaluation *e,
                                   dpi_error *err) {
    eval_accuracy a;
    int64_t cells[2] = {0};
    const dpi_status status = eval_classify(s->synthetic, s->real, &a, err);
    if (status != DPI_STATUS_OK && status != DPI_STATUS_ARG)
        return status;
    if (status == DPI_STATUS_OK) {
        cells[1] = (int64_t)llrint(a.accuracy * a.n_test);
        cells[0] = a.n_test - cells[1];
    }
    return release_share(counts, cells, e, "classifier", "accuracy",
                         "real labels that a classifier of the synthetic texts finds", err);
}

static dpi_status release_form(const eval_sources *s, dpi_counts *counts, evaluation *e,
                               dpi_error *err) {
    int64_t json[2] = {0}, accepted[2] = {0};
    for (int32_t i = 0; i < s->real->n; i++) {
        const eval_text *t = &s->real->at[i];
        int32_t accepts = 0;
        json_error_t error;
        json_t *value = json_loadb(t->text, t->n_bytes,
                                   JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
        json[value != NULL]++;
        json_decref(value);
        if (s->grammar)
            EVAL_TRY(dpi_grammar_accepts(s->grammar, t->text, t->n_bytes, &accepts, err));
        accepted[accepts]++;
    }
    EVAL_TRY(release_share(counts, json, e, "structure", "json_valid_real", "real texts that are "
                           "JSON", err));
    return s->grammar ? release_share(counts, accepted, e, "structure", "accepted_real",
                                      "real texts that the grammar accepts", err)
                      : DPI_STATUS_OK;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* What the synthetic texts alone say. */
static dpi_status add_synthetic(const eval_sources *s, evaluation *e, dpi_error *err) {
    double of_all, of_text, bleu;
    eval_add(e, "texts", "n_synthetic", "synthetic texts", s->synthetic->n);
    eval_add(e, "texts", "n_real", "real records, null ones too: public", e->n_real);
    EVAL_TRY(eval_distinct(s->synthetic, 3, &of_all, &of_text, err));
    EVAL_TRY(eval_self_bleu(s->synthetic, &bleu, err));
    eval_add(e, "diversity", "distinct_3", "unique / all 3-grams of all texts", of_all);
    eval_add(e, "diversity", "self_bleu_4", "self-BLEU-4: 1 where texts repeat each other", bleu);
    return DPI_STATUS_OK;
}

dpi_status evaluate_released(const eval_sources *s, bool has_labels, dpi_counts *counts,
                             evaluation *e, dpi_error *err) {
    *e = (evaluation){.n_synthetic = s->synthetic->n,
                      .n_real = s->real->n + s->real->n_null,
                      .is_released = true};
    if (s->synthetic->n == 0)
        return eval_fail(err, DPI_STATUS_ARG, "synthetic texts: found no text, allowed 1 or more");
    e->structure.field = dpi_private_malloc(EVAL_FIELDS_MAX * sizeof *e->structure.field);
    if (!e->structure.field)
        return no_memory(err);
    dpi_counts_info_init(&e->released);
    dpi_counts_info_get(counts, &e->released);
    EVAL_TRY(add_synthetic(s, e, err));
    EVAL_TRY(release_lengths(s, counts, e, err));
    EVAL_TRY(release_form(s, counts, e, err));
    if (!has_labels)
        return DPI_STATUS_OK;
    EVAL_TRY(release_labels(s, counts, e, err));
    return release_accuracy(s, counts, e, err);
}
