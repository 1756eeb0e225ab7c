/* classify.c - see classify.h. */
#include "eval/classify.h"

#include <dlfcn.h>
#include <linear.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/loaded.h"

/* What a training set says: its words with their weights, its labels. */
typedef struct vocabulary {
    uint64_t *word; /* [n], ascending; private */
    double *idf;    /* [n] */
    int32_t n;
    const char **label; /* [n_labels], ascending; the texts' */
    int32_t n_labels;
} vocabulary;

/* Texts with labels as rows. */
typedef struct rows {
    struct feature_node **at; /* [n]; private, parts of `nodes` */
    struct feature_node *nodes;
    double *label; /* [n] from 1; 0: one that was not trained */
    int32_t n;
} rows;

static dpi_status no_memory(dpi_error *err) {
    return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for a classifier");
}

static int compare_word(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_label(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- Words and labels ------------------------------------------------------------------------ */

static int32_t find_word(const vocabulary *v, uint64_t word) {
    const uint64_t *at = v->n > 0 ? bsearch(&word, v->word, (size_t)v->n, sizeof word, compare_word)
                                  : NULL;
    return at ? (int32_t)(at - v->word) : -1;
}

/* Each word of a text once, ascending, into own [n_words]; how many. */
static int32_t words_of(const eval_text *t, uint64_t *own) {
    int32_t n = 0;
    memcpy(own, t->word, (size_t)t->n_words * sizeof *own);
    qsort(own, (size_t)t->n_words, sizeof *own, compare_word);
    for (int32_t i = 0; i < t->n_words; i++)
        if (i == 0 || own[i] != own[i - 1])
            own[n++] = own[i];
    return n;
}

/* The number of texts with each word first, then its weight. */
static dpi_status find_words(vocabulary *v, const eval_texts *train, dpi_error *err) {
    size_t n = 0;
    int32_t n_texts = 0;
    v->word = dpi_private_malloc(((size_t)train->n_words + 1) * sizeof *v->word);
    v->idf = dpi_private_malloc(((size_t)train->n_words + 1) * sizeof *v->idf);
    if (!v->word || !v->idf)
        return no_memory(err);
    for (int32_t t = 0; t < train->n; t++)
        if (train->at[t].label) {
            n += (size_t)words_of(&train->at[t], v->word + n);
            n_texts++;
        }
    qsort(v->word, n, sizeof *v->word, compare_word);
    for (size_t i = 0; i < n; i++) {
        if (v->n > 0 && v->word[v->n - 1] == v->word[i]) {
            v->idf[v->n - 1]++;
        } else {
            v->word[v->n] = v->word[i];
            v->idf[v->n++] = 1;
        }
    }
    for (int32_t i = 0; i < v->n; i++)
        v->idf[i] = log((1.0 + n_texts) / (1 + v->idf[i])) + 1;
    return DPI_STATUS_OK;
}

static dpi_status find_labels(vocabulary *v, const eval_texts *train, dpi_error *err) {
    int32_t n = 0;
    v->label = dpi_private_malloc(((size_t)train->n + 1) * sizeof *v->label);
    if (!v->label)
        return no_memory(err);
    for (int32_t t = 0; t < train->n; t++)
        if (train->at[t].label)
            v->label[n++] = train->at[t].label;
    qsort(v->label, (size_t)n, sizeof *v->label, compare_label);
    for (int32_t i = 0; i < n; i++)
        if (v->n_labels == 0 || strcmp(v->label[i], v->label[v->n_labels - 1]) != 0)
            v->label[v->n_labels++] = v->label[i];
    return v->n_labels >= 2 ? DPI_STATUS_OK
                            : eval_fail(err, DPI_STATUS_ARG, "labels of training texts: found %d, "
                                        "allowed 2 or more", (int)v->n_labels);
}

static dpi_status make_vocabulary(vocabulary *v, const eval_texts *train, dpi_error *err) {
    *v = (vocabulary){0};
    EVAL_TRY(find_labels(v, train, err));
    return find_words(v, train, err);
}

static void free_vocabulary(vocabulary *v) {
    dpi_private_free(v->word);
    dpi_private_free(v->idf);
    dpi_private_free(v->label);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* A row of length 1 and its end, at `node`; how many nodes. */
static size_t make_row(const vocabulary *v, const eval_text *t, uint64_t *sorted,
                       struct feature_node *node) {
    size_t n = 0;
    double squares = 0;
    memcpy(sorted, t->word, (size_t)t->n_words * sizeof *sorted);
    qsort(sorted, (size_t)t->n_words, sizeof *sorted, compare_word);
    for (int32_t i = 0, end; i < t->n_words; i = end) {
        for (end = i; end < t->n_words && sorted[end] == sorted[i];)
            end++;
        const int32_t index = find_word(v, sorted[i]);
        if (index < 0)
            continue;
        node[n] = (struct feature_node){index + 1, (end - i) * v->idf[index]};
        squares += node[n].value * node[n].value;
        n++;
    }
    for (size_t i = 0; i < n; i++)
        node[i].value /= sqrt(squares);
    node[n++].index = -1;
    return n;
}

static dpi_status make_rows(const vocabulary *v, const eval_texts *texts, rows *r,
                            dpi_error *err) {
    const size_t n = (size_t)texts->n + 1, n_words = (size_t)texts->n_words + 1;
    size_t used = 0;
    *r = (rows){.at = dpi_private_malloc(n * sizeof *r->at),
                .nodes = dpi_private_malloc((n_words + n) * sizeof *r->nodes),
                .label = dpi_private_malloc(n * sizeof *r->label)};
    uint64_t *sorted = dpi_private_malloc(n_words * sizeof *sorted);
    const bool ok = r->at && r->nodes && r->label && sorted;
    for (int32_t t = 0; t < texts->n && ok; t++) {
        const char *name = texts->at[t].label;
        if (!name)
            continue;
        const char **found = bsearch(&name, v->label, (size_t)v->n_labels, sizeof *v->label,
                                     compare_label);
        r->label[r->n] = found ? (double)(found - v->label + 1) : 0;
        r->at[r->n++] = r->nodes + used;
        used += make_row(v, &texts->at[t], sorted, r->nodes + used);
    }
    dpi_private_free(sorted);
    return ok ? DPI_STATUS_OK : no_memory(err);
}

static void free_rows(rows *r) {
    dpi_private_free(r->at);
    dpi_private_free(r->nodes);
    dpi_private_free(r->label);
}

dpi_status eval_write_rows(const eval_texts *train, const eval_texts *texts, const char *path,
                           dpi_error *err) {
    vocabulary v;
    rows r = {0};
    dpi_status status = make_vocabulary(&v, train, err);
    if (status == DPI_STATUS_OK)
        status = make_rows(&v, texts, &r, err);
    FILE *f = status == DPI_STATUS_OK ? fopen(path, "w") : NULL;
    for (int32_t i = 0; i < r.n && f; i++) {
        fprintf(f, "%g", r.label[i]);
        for (const struct feature_node *node = r.at[i]; node->index > 0; node++)
            fprintf(f, " %d:%.17g", node->index, node->value);
        fputc('\n', f);
    }
    if (status == DPI_STATUS_OK && (!f || ferror(f)))
        status = eval_fail(err, DPI_STATUS_IO, "cannot write %s", path);
    if (f && fclose(f) != 0 && status == DPI_STATUS_OK)
        status = eval_fail(err, DPI_STATUS_IO, "cannot write %s", path);
    free_rows(&r);
    free_vocabulary(&v);
    return status;
}

/* ---- liblinear ------------------------------------------------------------------------------- */

typedef struct liblinear {
    void *library;
    struct model *(*train)(const struct problem *, const struct parameter *);
    double (*predict)(const struct model *, const struct feature_node *);
    void (*free_model)(struct model **);
    void (*set_print)(void (*)(const char *));
} liblinear;

static dpi_status open_liblinear(liblinear *l, size_t n_bytes, dpi_error *err) {
    EVAL_TRY(eval_library_open("liblinear.so.4", "liblinear4", n_bytes, &l->library, err));
    dpi_status status = eval_library_find(l->library, "train", &l->train, err);
    if (status == DPI_STATUS_OK)
        status = eval_library_find(l->library, "predict", &l->predict, err);
    if (status == DPI_STATUS_OK)
        status = eval_library_find(l->library, "free_and_destroy_model", &l->free_model, err);
    if (status == DPI_STATUS_OK)
        status = eval_library_find(l->library, "set_print_string_function", &l->set_print, err);
    if (status != DPI_STATUS_OK)
        dlclose(l->library);
    return status;
}

static void be_silent(const char *text) { (void)text; }

/* right [n_labels + 1], predicted and there: counts for each label. */
static void test_rows(const liblinear *l, const struct model *m, const rows *test,
                      int32_t n_labels, int32_t *counts, eval_accuracy *a) {
    int32_t *right = counts, *predicted = right + n_labels + 1, *there = predicted + n_labels + 1;
    int32_t n_right = 0;
    for (int32_t i = 0; i < test->n; i++) {
        const int32_t label = (int32_t)test->label[i], found = (int32_t)l->predict(m, test->at[i]);
        there[label]++;
        predicted[found]++;
        right[label] += label == found;
        n_right += label == found;
    }
    a->accuracy = (double)n_right / test->n;
    for (int32_t k = 1; k <= n_labels; k++) {
        const int32_t sum = predicted[k] + there[k];
        a->macro_f1 += sum > 0 ? 2.0 * right[k] / sum / n_labels : 0;
    }
}

static double share_of_majority(const rows *train, const rows *test, int32_t n_labels,
                                int32_t *counts) {
    int32_t most = 1, n = 0;
    for (int32_t i = 0; i < train->n; i++)
        counts[(int32_t)train->label[i]]++;
    for (int32_t k = 2; k <= n_labels; k++)
        most = counts[k] > counts[most] ? k : most;
    for (int32_t i = 0; i < test->n; i++)
        n += (int32_t)test->label[i] == most;
    return (double)n / test->n;
}

static dpi_status learn(const vocabulary *v, const rows *train, const rows *test,
                        eval_accuracy *a, dpi_error *err) {
    liblinear l;
    if (test->n == 0)
        return eval_fail(err, DPI_STATUS_ARG, "test texts with a label: found 0, allowed 1 or "
                         "more");
    int32_t *counts = calloc(4 * ((size_t)v->n_labels + 1), sizeof *counts);
    if (!counts)
        return no_memory(err);
    /* Weights of each label, vectors of its Newton steps, and the rows by label. */
    const size_t n_bytes = (size_t)v->n * ((size_t)v->n_labels + 16) * sizeof(double) +
                           (size_t)train->n * 128 + (1 << 20);
    const dpi_status status = open_liblinear(&l, n_bytes, err);
    if (status == DPI_STATUS_OK) {
        const struct problem problem = {
            .l = train->n, .n = v->n, .y = train->label, .x = train->at, .bias = -1};
        const struct parameter parameter = {
            .solver_type = L2R_L2LOSS_SVC, .eps = .01, .C = 1, .p = .1};
        l.set_print(be_silent);
        struct model *m = l.train(&problem, &parameter);
        test_rows(&l, m, test, v->n_labels, counts, a);
        l.free_model(&m);
        dlclose(l.library);
        a->majority = share_of_majority(train, test, v->n_labels, counts + 3 * (v->n_labels + 1));
    }
    free(counts);
    return status;
}

dpi_status eval_classify(const eval_texts *train, const eval_texts *test, eval_accuracy *a,
                         dpi_error *err) {
    vocabulary v;
    rows of_train = {0}, of_test = {0};
    *a = (eval_accuracy){0};
    dpi_status status = make_vocabulary(&v, train, err);
    if (status == DPI_STATUS_OK)
        status = make_rows(&v, train, &of_train, err);
    if (status == DPI_STATUS_OK)
        status = make_rows(&v, test, &of_test, err);
    if (status == DPI_STATUS_OK)
        status = learn(&v, &of_train, &of_test, a, err);
    a->n_train = of_train.n;
    a->n_test = of_test.n;
    a->n_labels = v.n_labels;
    free_rows(&of_train);
    free_rows(&of_test);
    free_vocabulary(&v);
    return status;
}
