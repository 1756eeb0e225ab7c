/* certify.c - see certify.h. The largest ln P(y | x) / P(y | x') of all pairs is the largest, over
 * y, of max_x ln P(y | x) - min_x' ln P(y | x'): n^2 and not n^3 operations. */
#include "dp/local/certify.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"

enum { N_PAIRS = 1000 };

/* Of P(y | x) over the words x so far, for each y. */
typedef struct columns {
    double *highest, *lowest; /* [n] ln P, where it is not 0 */
    int32_t *count;           /* [n] words x with P(y | x) > 0 */
    double kept, list;        /* sums over x in the vocabulary */
    int32_t n_drawn, n_numbers;
} columns;

static bool columns_create(columns *c, size_t n) {
    *c = (columns){
        .highest = dpi_calloc(n, sizeof *c->highest),
        .lowest = dpi_calloc(n, sizeof *c->lowest),
        .count = dpi_calloc(n, sizeof *c->count),
    };
    if (!c->highest || !c->lowest || !c->count)
        return false;
    for (size_t y = 0; y < n; y++) {
        c->highest[y] = -INFINITY;
        c->lowest[y] = INFINITY;
    }
    return true;
}

static void columns_free(columns *c) {
    free(c->highest);
    free(c->lowest);
    free(c->count);
}

static void add_row(columns *c, const double *row, size_t n) {
    for (size_t y = 0; y < n; y++) {
        if (row[y] == -INFINITY)
            continue;
        c->highest[y] = fmax(c->highest[y], row[y]);
        c->lowest[y] = fmin(c->lowest[y], row[y]);
        c->count[y]++;
    }
}

static void merge_columns(columns *to, const columns *from, size_t n) {
    for (size_t y = 0; y < n; y++) {
        to->highest[y] = fmax(to->highest[y], from->highest[y]);
        to->lowest[y] = fmin(to->lowest[y], from->lowest[y]);
        to->count[y] += from->count[y];
    }
    to->kept += from->kept;
    to->list += from->list;
    to->n_drawn += from->n_drawn;
    to->n_numbers += from->n_numbers;
}

/* One thread's part of the words. */
static dpi_status add_words(const dpi_local *l, int32_t thread, int32_t first, columns *c,
                            dpi_error *err) {
    const size_t n = (size_t)l->n;
    dpi_local_rows rows;
    double *row = dpi_calloc(n, sizeof *row), n_candidates;
    dpi_status status =
        row ? dpi_local_rows_create(l, 0, &rows, err) : dpi_no_memory(err, "%zu words", n);
    if (status != DPI_STATUS_OK) {
        free(row);
        return status;
    }
    for (int32_t x = first + thread; x < l->n; x += l->options.n_threads) {
        dpi_local_row(&rows, x, row, &n_candidates);
        add_row(c, row, n);
        if (x < 0)
            continue;
        c->kept += exp(row[x]);
        c->list += n_candidates;
        c->n_drawn += n_candidates > 0;
        c->n_numbers += l->fate && l->fate[x] == DPI_REPLACED_NUMBER;
    }
    dpi_local_rows_free(&rows);
    free(row);
    return DPI_STATUS_OK;
}

/* Every word, and where a word that is not in the vocabulary is drawn for: that one too (x = -1).
 */
static bool replaces_unknown(const dpi_local *l) {
    return l->options.mechanism == DPI_WORDS_EXPONENTIAL ||
           l->options.mechanism == DPI_WORDS_CALIBRATED ||
           l->options.mechanism == DPI_WORDS_SANTEXT;
}

typedef struct part {
    columns columns;
    dpi_status status;
    dpi_error err;
} part;

static dpi_status add_all_words(const dpi_local *l, columns *all, dpi_error *err) {
    const int32_t first = replaces_unknown(l) ? -1 : 0, n_parts = l->options.n_threads;
    dpi_status status = DPI_STATUS_OK;
    part *parts = dpi_calloc((size_t)n_parts, sizeof *parts);
    if (!parts)
        return dpi_no_memory(err, "%d threads", n_parts);
#pragma omp parallel for num_threads(n_parts) schedule(static, 1)
    for (int32_t i = 0; i < n_parts; i++) {
        part *p = &parts[i];
        p->status = columns_create(&p->columns, (size_t)l->n)
                        ? add_words(l, i, first, &p->columns, &p->err)
                        : dpi_no_memory(&p->err, "%d words", l->n);
    }
    for (int32_t i = 0; i < n_parts; i++) {
        if (parts[i].status == DPI_STATUS_OK)
            merge_columns(all, &parts[i].columns, (size_t)l->n);
        else if (status == DPI_STATUS_OK) {
            status = parts[i].status;
            if (err)
                *err = parts[i].err;
        }
        columns_free(&parts[i].columns);
    }
    free(parts);
    return status;
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

/* A fixed sequence: the vocabulary is public, and the same pairs give the same certificate. */
static uint64_t next_number(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double pair_epsilon(const double *a, const double *b, size_t n) {
    double most = 0;
    for (size_t y = 0; y < n; y++)
        if (a[y] != -INFINITY || b[y] != -INFINITY)
            most = fmax(most, fabs(a[y] - b[y]));
    return most;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The i-th of n_pairs pairs: all of them, if there are few words. */
static void pick_pair(int32_t n, bool all, uint64_t *state, int32_t *x, int32_t *other) {
    if (all) {
        *x += ++*other >= n;
        *other = *other >= n ? *x + 1 : *other;
        return;
    }
    *x = (int32_t)(next_number(state) % (uint64_t)n);
    *other = (int32_t)(next_number(state) % (uint64_t)(n - 1));
    *other += *other >= *x;
}

static void order_pairs(double *epsilon, int64_t n, dpi_certificate *c) {
    static const double at[3] = {.5, .9, .99};
    int64_t n_infinite = 0;
    qsort(epsilon, (size_t)n, sizeof *epsilon, ascending);
    for (int i = 0; i < 3; i++)
        c->quantile[i] = epsilon[(int64_t)ceil(at[i] * (double)n) - 1];
    for (int64_t i = 0; i < n; i++)
        n_infinite += isinf(epsilon[i]);
    c->infinite = (double)n_infinite / (double)n;
    c->n_pairs = n;
}

static dpi_status compare_pairs(const dpi_local *l, dpi_certificate *c, dpi_error *err) {
    const size_t n = (size_t)l->n;
    const bool all = l->n <= 45; /* 990 pairs */
    const int64_t n_pairs = all ? (int64_t)l->n * (l->n - 1) / 2 : N_PAIRS;
    double *a = dpi_calloc(n, sizeof *a), *b = dpi_calloc(n, sizeof *b), unused;
    double *epsilon = dpi_calloc((size_t)n_pairs, sizeof *epsilon);
    dpi_local_rows rows;
    dpi_status status = a && b && epsilon ? dpi_local_rows_create(l, 0, &rows, err)
                                          : dpi_no_memory(err, "pairs of words");
    if (status == DPI_STATUS_OK) {
        uint64_t state = 1;
        int32_t x = 0, other = 0;
        for (int64_t i = 0; i < n_pairs; i++) {
            pick_pair(l->n, all, &state, &x, &other);
            dpi_local_row(&rows, x, a, &unused);
            dpi_local_row(&rows, other, b, &unused);
            epsilon[i] = pair_epsilon(a, b, n);
        }
        order_pairs(epsilon, n_pairs, c);
        dpi_local_rows_free(&rows);
    }
    free(a);
    free(b);
    free(epsilon);
    return status;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Numbers become numbers, all of them alike: no word does. */
static void conclude(const dpi_local *l, const columns *all, dpi_certificate *c) {
    const int32_t n_inputs = l->n + replaces_unknown(l);
    double guess = all->n_numbers > 0;
    c->nominal = l->options.epsilon;
    for (int32_t y = 0; y < l->n; y++) {
        if (all->count[y] == 0)
            continue;
        c->finite = fmax(c->finite, all->highest[y] - all->lowest[y]);
        if (all->count[y] < n_inputs)
            c->epsilon = INFINITY;
        guess += exp(all->highest[y]);
    }
    c->epsilon = fmax(c->epsilon, c->finite);
    c->kept = all->kept / l->n;
    c->list = all->n_drawn > 0 ? all->list / all->n_drawn : 0;
    c->best_guess = guess / l->n;
}

DPI_STRUCT_DEFAULTS(dpi_certificate, 0)

dpi_status dpi_local_certify(const dpi_local *l, dpi_certificate *certificate, dpi_error *err) {
    columns all;
    dpi_certificate c;
    DPI_CHECK_FIXED(dpi_certificate, certificate, err);
    dpi_certificate_init(&c);
    dpi_status status = columns_create(&all, (size_t)l->n) ? add_all_words(l, &all, err)
                                                           : dpi_no_memory(err, "%d words", l->n);
    if (status == DPI_STATUS_OK) {
        conclude(l, &all, &c);
        status = compare_pairs(l, &c, err);
    }
    columns_free(&all);
    if (status == DPI_STATUS_OK)
        *certificate = c;
    return status;
}
