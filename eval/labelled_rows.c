/* labelled_rows.c - see labelled_rows.h. */
#include "eval/labelled_rows.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"

static int compare_term(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_label(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- Terms and labels ------------------------------------------------------------------------ */

static int32_t find_term(const eval_vocabulary *v, uint64_t term) {
    const uint64_t *at = v->n > 0 ? bsearch(&term, v->term, (size_t)v->n, sizeof term, compare_term)
                                  : NULL;
    return at ? (int32_t)(at - v->term) : -1;
}

/* Each term of a text once, ascending, into own [n_terms]; how many. */
static int32_t terms_of(const eval_text *t, uint64_t *own) {
    int32_t n = 0;
    memcpy(own, t->term, (size_t)t->n_terms * sizeof *own);
    qsort(own, (size_t)t->n_terms, sizeof *own, compare_term);
    for (int32_t i = 0; i < t->n_terms; i++)
        if (i == 0 || own[i] != own[i - 1])
            own[n++] = own[i];
    return n;
}

/* The number of texts with each term first, then its weight. */
static dpi_status find_terms(eval_vocabulary *v, const eval_texts *train, dpi_error *err) {
    size_t n = 0;
    int32_t n_texts = 0;
    v->term = dpi_private_malloc(((size_t)train->n_terms + 1) * sizeof *v->term);
    v->idf = dpi_private_malloc(((size_t)train->n_terms + 1) * sizeof *v->idf);
    if (!v->term || !v->idf)
        return eval_no_memory(err, "a classifier");
    for (int32_t t = 0; t < train->n; t++)
        if (train->at[t].label) {
            n += (size_t)terms_of(&train->at[t], v->term + n);
            n_texts++;
        }
    qsort(v->term, n, sizeof *v->term, compare_term);
    for (size_t i = 0; i < n; i++) {
        if (v->n > 0 && v->term[v->n - 1] == v->term[i]) {
            v->idf[v->n - 1]++;
        } else {
            v->term[v->n] = v->term[i];
            v->idf[v->n++] = 1;
        }
    }
    for (int32_t i = 0; i < v->n; i++)
        v->idf[i] = log((1.0 + n_texts) / (1 + v->idf[i])) + 1;
    return DPI_STATUS_OK;
}

static dpi_status find_labels(eval_vocabulary *v, const eval_texts *train, dpi_error *err) {
    int32_t n = 0;
    v->label = dpi_private_malloc(((size_t)train->n + 1) * sizeof *v->label);
    if (!v->label)
        return eval_no_memory(err, "a classifier");
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

dpi_status eval_vocabulary_make(eval_vocabulary *v, const eval_texts *train, dpi_error *err) {
    *v = (eval_vocabulary){0};
    EVAL_TRY(find_labels(v, train, err));
    return find_terms(v, train, err);
}

void eval_vocabulary_free(eval_vocabulary *v) {
    dpi_private_free(v->term);
    dpi_private_free(v->idf);
    dpi_private_free(v->label);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* A row of length 1 and two ends, at `node`; how many nodes. */
static size_t make_row(const eval_vocabulary *v, const eval_text *t, uint64_t *sorted,
                       struct feature_node *node) {
    size_t n = 0;
    double squares = 0;
    memcpy(sorted, t->term, (size_t)t->n_terms * sizeof *sorted);
    qsort(sorted, (size_t)t->n_terms, sizeof *sorted, compare_term);
    for (int32_t i = 0, end; i < t->n_terms; i = end) {
        for (end = i; end < t->n_terms && sorted[end] == sorted[i];)
            end++;
        const int32_t index = find_term(v, sorted[i]);
        if (index < 0)
            continue;
        node[n] = (struct feature_node){index + 1, (end - i) * v->idf[index]};
        squares += node[n].value * node[n].value;
        n++;
    }
    for (size_t i = 0; i < n; i++)
        node[i].value /= sqrt(squares);
    node[n++].index = -1;
    node[n++].index = -1;
    return n;
}

dpi_status eval_rows_make(const eval_vocabulary *v, const eval_texts *texts, eval_rows *r,
                            dpi_error *err) {
    const size_t n = (size_t)texts->n + 1, n_terms = (size_t)texts->n_terms + 1;
    size_t used = 0;
    *r = (eval_rows){.at = dpi_private_malloc(n * sizeof *r->at),
                .nodes = dpi_private_malloc((n_terms + 2 * n) * sizeof *r->nodes),
                .label = dpi_private_malloc(n * sizeof *r->label)};
    uint64_t *sorted = dpi_private_malloc(n_terms * sizeof *sorted);
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
    return ok ? DPI_STATUS_OK : eval_no_memory(err, "a classifier");
}

void eval_rows_free(eval_rows *r) {
    dpi_private_free(r->at);
    dpi_private_free(r->nodes);
    dpi_private_free(r->label);
}
