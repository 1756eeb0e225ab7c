/* released_counts.c - see released_counts.h. */
#include "eval/released_counts.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/classify.h"
#include "eval/fail.h"
#include "eval/grams.h"
#include "eval/count_noise.h"
#include "eval/intervals.h"
#include "eval/variation.h"

enum { CELLS_MAX = EVAL_FIELD_BINS };

int32_t eval_released_groups(const eval_sources *s, bool has_labels) {
    return 2 + (has_labels ? 2 : 0) + (s->grammar ? 1 : 0); /* lengths, JSON */
}

/* ---- Histograms as fields -------------------------------------------------------------------- */

static char *copy(const char *text) {
    const size_t n = strlen(text) + 1;
    char *own = dpi_private_malloc(n);
    return own ? memcpy(own, text, n) : NULL;
}

/* Shares that are c away from noisy ones in all cells together are c / (sum of these) away in total
 * variation at most: as shares of the true counts they differ by that for the cells, and once more
 * for their sum, and total variation is half of it. */
static dpi_status add_distance(evaluation *e, eval_field *f, double sum, dpi_error *err) {
    double away;
    f->tv = eval_variation(f->share[0], f->share[1], f->n_bins);
    EVAL_TRY(eval_noise_of_sizes(e->released.variance, f->n_bins, &away, err));
    f->tv_low = sum > 0 ? fmax(f->tv - away / sum, 0) : 0;
    f->tv_high = sum > 0 ? fmin(f->tv + away / sum, 1) : 1;
    return DPI_STATUS_OK;
}

/* A histogram of n bins, whose real side is noisy: of shares counts below 0 are 0. synthetic: NULL:
 * there is no such side. */
static dpi_status add_field(evaluation *e, const char *name, const char *const *bins, int32_t n,
                            const int64_t *synthetic, const int64_t *noisy, dpi_error *err) {
    eval_field *f = &e->structure.field[e->structure.n_fields++];
    double sum[2] = {0};
    *f = (eval_field){.name = copy(name),
                      .present = {1, 1},
                      .is_released = true,
                      .has_synthetic = synthetic != NULL,
                      .noise = eval_noise_of_cells(e->released.variance, 1)};
    for (int32_t b = 0; b < n; b++) {
        f->count[0][b] = synthetic ? synthetic[b] : 0;
        f->count[1][b] = noisy[b];
        for (int32_t k = 0; k < 2; k++)
            sum[k] += fmax((double)f->count[k][b], 0);
    }
    for (int32_t b = 0; b < n; b++) {
        f->bin[f->n_bins++] = copy(bins[b]);
        for (int32_t k = 0; k < 2; k++)
            f->share[k][b] = sum[k] > 0 ? fmax((double)f->count[k][b], 0) / sum[k] : 0;
        if (!f->bin[b])
            return eval_no_memory(err, "counts");
    }
    if (!f->name)
        return eval_no_memory(err, "counts");
    return synthetic ? add_distance(e, f, sum[1], err) : DPI_STATUS_OK;
}

static const eval_field *last_field(const evaluation *e) {
    return &e->structure.field[e->structure.n_fields - 1];
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
    const double away = (double)eval_noise_of_sum(e->released.variance, EVAL_BINS);
    eval_add_interval(e, "length", "n_real_noisy", "real texts, with noise", n_real,
                      fmax(n_real - away, 0), fmax(n_real + away, 0));
    eval_add_interval(e, "length", "length_tv", "total variation of the lengths, in 20 bins",
                      last_field(e)->tv, last_field(e)->tv_low, last_field(e)->tv_high);
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
        return eval_no_memory(err, "counts");
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
        eval_add_interval(e, "classifier", "label_tv", "total variation of the labels",
                          last_field(e)->tv, last_field(e)->tv_low, last_field(e)->tv_high);
    dpi_private_free(list);
    return status;
}

/* ---- Shares ---------------------------------------------------------------------------------- */

/* A share of yes in 0..1, of two cells. */
static double share_of(double no, double yes, double of_none) {
    const double all = fmax(no, 0) + fmax(yes, 0);
    return all > 0 ? fmax(yes, 0) / all : of_none;
}

/* Two cells, no and yes, as a field and as a share of yes, whose interval is that of both cells
 * together. synthetic: of the other side, or NULL. */
static dpi_status release_share(dpi_counts *counts, const int64_t *synthetic, int64_t cells[2],
                                evaluation *e, const char *field, const eval_value *what,
                                dpi_error *err) {
    static const char *const bins[] = {"no", "yes"};
    EVAL_TRY(dpi_counts_release(counts, cells, 2, err));
    const double no = (double)cells[0], yes = (double)cells[1];
    const double away = (double)eval_noise_of_cells(e->released.variance, 2);
    eval_add_interval(e, what->group, what->key, what->label, share_of(no, yes, 0),
                      share_of(no + away, yes - away, 0), share_of(no - away, yes + away, 1));
    return add_field(e, field, bins, 2, synthetic, cells, err);
}

/* Labels that the classifier finds; a text without a label is in no cell. What the classifier is
 * follows from the synthetic texts. */
static dpi_status release_accuracy(const eval_sources *s, dpi_counts *counts, evaluation *e,
                                   dpi_error *err) {
    eval_accuracy a;
    int64_t cells[2] = {0};
    const dpi_status status = eval_classify(s->synthetic, s->real, &a, NULL, err);
    if (status != DPI_STATUS_OK && status != DPI_STATUS_ARG)
        return status;
    if (status == DPI_STATUS_OK) {
        cells[1] = (int64_t)llrint(a.accuracy * a.n_test);
        cells[0] = a.n_test - cells[1];
    }
    static const eval_value accuracy = {
        .group = "classifier",
        .key = "accuracy",
        .label = "real labels that a classifier of the synthetic texts finds"};
    return release_share(counts, NULL, cells, e, "label_found", &accuracy, err);
}

/* Texts that are JSON, and that the grammar accepts: cells no, yes of each. */
static dpi_status count_form(const eval_texts *texts, const dpi_grammar *grammar, int64_t json[2],
                             int64_t accepted[2], dpi_error *err) {
    for (int32_t i = 0; i < texts->n; i++) {
        const eval_text *t = &texts->at[i];
        int32_t accepts = 0;
        json_error_t error;
        json_t *value = json_loadb(t->text, t->n_bytes,
                                   JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
        json[value != NULL]++;
        json_decref(value);
        if (grammar)
            EVAL_TRY(dpi_grammar_accepts(grammar, t->text, t->n_bytes, &accepts, err));
        accepted[accepts]++;
    }
    return DPI_STATUS_OK;
}

static dpi_status release_form(const eval_sources *s, dpi_counts *counts, evaluation *e,
                               dpi_error *err) {
    static const eval_value valid = {
        .group = "structure", .key = "json_valid_real", .label = "real texts that are JSON"};
    static const eval_value accepts = {.group = "structure",
                                       .key = "accepted_real",
                                       .label = "real texts that the grammar accepts"};
    int64_t json[2][2] = {{0}}, accepted[2][2] = {{0}}; /* synthetic, real */
    EVAL_TRY(count_form(s->synthetic, s->grammar, json[0], accepted[0], err));
    EVAL_TRY(count_form(s->real, s->grammar, json[1], accepted[1], err));
    EVAL_TRY(release_share(counts, json[0], json[1], e, "json_valid", &valid, err));
    return s->grammar
               ? release_share(counts, accepted[0], accepted[1], e, "accepted", &accepts, err)
               : DPI_STATUS_OK;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* What the synthetic texts alone say. */
static dpi_status add_synthetic(const eval_sources *s, evaluation *e, dpi_error *err) {
    double of_all, of_text, bleu;
    eval_add(e, "texts", "n_synthetic", "synthetic texts", s->synthetic->n);
    eval_add(e, "texts", "n_real", "real records, null ones too: public", e->n_real);
    EVAL_TRY(eval_distinct(s->synthetic, 3, &of_all, &of_text, NULL, err));
    EVAL_TRY(eval_self_bleu(s->synthetic, &bleu, NULL, err));
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
        return eval_no_memory(err, "counts");
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
