/* rows.c - the probabilities of a mechanism, from the integers that it draws by. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/local/certify.h"

static const double LN2 = 0x1.62e42fefa39efp-1;

dpi_status dpi_local_rows_create(const dpi_local *local, int32_t n_cells, dpi_local_rows *rows,
                                 dpi_error *err) {
    const size_t n = (size_t)local->n;
    *rows = (dpi_local_rows){.local = local};
    DPI_TRY(dpi_local_list_create(local, &rows->list, err));
    rows->order = dpi_calloc(n, sizeof *rows->order);
    rows->distance = dpi_calloc(n, sizeof *rows->distance);
    rows->worth = dpi_calloc(n, sizeof *rows->worth);
    dpi_status status = rows->order && rows->distance && rows->worth
                            ? DPI_STATUS_OK
                            : dpi_no_memory(err, "%zu words", n);
    /* Cells: 64 n^2 exponentials are some seconds for 11,000 words, and few words can have more. */
    if (n_cells == 0)
        n_cells = (int32_t)fmin(4096, fmax(64, 0x1p21 / (double)n));
    if (status == DPI_STATUS_OK && local->options.mechanism == DPI_WORDS_RANTEXT)
        status = dpi_threshold_law_make(local->noise_scale, local->dim, n_cells, &rows->law, err);
    if (status != DPI_STATUS_OK)
        dpi_local_rows_free(rows);
    return status;
}

void dpi_local_rows_free(dpi_local_rows *rows) {
    dpi_local_list_free(rows->local, &rows->list);
    dpi_threshold_law_free(&rows->law);
    free(rows->order);
    free(rows->distance);
    free(rows->worth);
}

/* ---- One list for each word ------------------------------------------------------------------ */

/* row[y] of the candidates, of probability `share` in all. */
static void list_row(dpi_local_rows *r, int32_t x, double share, double *row) {
    double sum = 0;
    int64_t best = INT64_MIN;
    dpi_local_scores(r->local, x, 0, &r->list);
    for (size_t i = 0; i < r->list.n; i++)
        best = r->list.score[i] > best ? r->list.score[i] : best;
    for (size_t i = 0; i < r->list.n; i++)
        sum += exp2(ldexp((double)(r->list.score[i] - best), -DPI_LOCAL_BITS));
    const double base = log(share) - log(sum);
    for (size_t i = 0; i < r->list.n; i++) /* weights do not fall below 2^-69 */
        row[r->list.word[i]] =
            base + LN2 * fmax(ldexp((double)(r->list.score[i] - best), -DPI_LOCAL_BITS), -69);
}

static void santext_row(dpi_local_rows *r, int32_t x, double *row) {
    const double replaced = ldexp((double)r->local->replaced, -32);
    list_row(r, x, replaced, row);
    if (replaced < 1) /* x is frequent: it is not among the candidates */
        row[x] = log1p(-replaced);
}

/* ---- A list of random size: the mean over its threshold -------------------------------------- */

typedef struct placed_word {
    uint32_t distance;
    int32_t word;
} placed_word;

static int by_distance(const void *a, const void *b) {
    const placed_word *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return x->word < y->word ? -1 : x->word > y->word;
}

static void sort_words(dpi_local_rows *r, int32_t x) {
    const size_t n = (size_t)r->local->n;
    const uint32_t *distance = r->local->distance + (size_t)x * n;
    placed_word *words =
        (placed_word *)r->list.score; /* [n] of 8 bytes, not in use for this mechanism */
    for (size_t y = 0; y < n; y++)
        words[y] = (placed_word){distance[y], (int32_t)y};
    qsort(words, n, sizeof *words, by_distance);
    for (size_t i = 0; i < n; i++) {
        r->order[i] = words[i].word;
        r->distance[i] = words[i].distance;
    }
}

/* worth[i] = e^(epsilon / 2 (1 - d / t)) of the n nearest words below `below`; their sum up to t.
 */
static double fill_worth(dpi_local_rows *r, double t, double below, size_t *n) {
    const double half = ldexp((double)r->local->h, -DPI_LOCAL_BITS) * LN2;
    double sum = 0;
    size_t i = 0;
    for (; i < (size_t)r->local->n && r->distance[i] < below; i++) {
        r->worth[i] = exp(half * (1 - r->distance[i] / t));
        sum += r->distance[i] < t ? r->worth[i] : 0;
    }
    *n = i;
    return sum;
}

/* Words beyond the last cell: the threshold must exceed their distance, and is then little more. */
static void fill_tail(dpi_local_rows *r, double last, double *row) {
    enum { N_NODES = 8 };
    const size_t n = (size_t)r->local->n;
    const double farthest = r->distance[n - 1];
    double node[N_NODES];
    size_t at;
    if (farthest < last)
        return;
    for (int i = 0; i < N_NODES; i++) {
        const double t = last + (farthest - last) * i / (N_NODES - 1);
        node[i] = log(fmax(fill_worth(r, t, t, &at), 1));
    }
    for (size_t i = n; i-- > 0 && r->distance[i] >= last;) {
        const double place = farthest > last ? (r->distance[i] - last) / (farthest - last) : 0;
        const double t = place * (N_NODES - 1);
        const int j = t < N_NODES - 2 ? (int)t : N_NODES - 2;
        const double z = node[j] + (t - j) * (node[j + 1] - node[j]);
        row[r->order[i]] = dpi_threshold_tail(&r->law, r->distance[i]) - z;
    }
}

/* Where the mean of a density e^-v on [0, u] is, as a part of u. */
static double mean_place(double u) { return u < 1e-4 ? .5 - u / 12 : 1 / u - 1 / expm1(u); }

/* A cell adds E[1{d < t} worth(d, t) / Z(t)] to the probability of each word. A word that the cell
 * cuts has its own mean of t. *n_candidates: how many words are in the list. */
static void add_cell(dpi_local_rows *r, int32_t m, double *row, double *n_candidates) {
    const dpi_threshold_law *law = &r->law;
    const double half = ldexp((double)r->local->h, -DPI_LOCAL_BITS) * LN2;
    const double begin = law->edge[m], end = law->edge[m + 1], least = law->above[m + 1];
    const double fall = log(law->above[m] / least) / (end - begin);
    const double t = begin + (end - begin) * mean_place(fall * (end - begin));
    size_t n_inside;
    const double all = law->above[m] - least, sum = fill_worth(r, t, end, &n_inside);
    for (size_t i = 0; i < n_inside; i++) {
        const double d = r->distance[i];
        double mass = all, worth = r->worth[i], z = sum;
        if (d >= begin) {
            const double own = d + (end - d) * mean_place(fall * (end - d));
            mass = law->above[m] * exp(-fall * (d - begin)) - least;
            worth = exp(half * (1 - d / own));
            z += d >= t ? worth : 0;
        }
        row[r->order[i]] += mass * worth / z;
        *n_candidates += mass;
    }
}

static void rantext_row(dpi_local_rows *r, int32_t x, double *row, double *n_candidates) {
    const size_t n = (size_t)r->local->n;
    sort_words(r, x);
    for (size_t y = 0; y < n; y++)
        row[y] = 0;
    *n_candidates = 0;
    for (int32_t m = 0; m < r->law.n_cells; m++)
        add_cell(r, m, row, n_candidates);
    for (size_t y = 0; y < n; y++)
        row[y] = log(row[y]);
    fill_tail(r, r->law.edge[r->law.n_cells], row);
}

void dpi_local_row(dpi_local_rows *r, int32_t x, double *row, double *n_candidates) {
    const dpi_local *l = r->local;
    const int32_t fate = x >= 0 && l->fate ? l->fate[x] : DPI_REPLACED_DRAWN;
    for (int32_t y = 0; y < l->n; y++)
        row[y] = -INFINITY;
    if (fate != DPI_REPLACED_DRAWN) {
        *n_candidates = 0;
        if (fate == DPI_REPLACED_KEPT)
            row[x] = 0;
        return;
    }
    if (x >= 0 && l->options.mechanism == DPI_WORDS_RANTEXT) {
        rantext_row(r, x, row, n_candidates);
        return;
    }
    if (x >= 0 && l->options.mechanism == DPI_WORDS_SANTEXT && x < l->first_rare)
        santext_row(r, x, row);
    else
        list_row(r, x, 1, row);
    *n_candidates = (double)r->list.n;
}
