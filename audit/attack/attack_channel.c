/* attack_channel.c - P(y | x) of a mechanism as an attacker has it, and the best guess for each
 * replacement y: argmax_x (number of words x in the documents) P(y | x). A word that left nothing
 * is not attacked and none of x: whether a word does so is not drawn. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/local/certify.h"
#include "dpinfer/memory.h"
#include "audit/attack/inside.h"
#include "pipeline/perturb/text_words.h"

/* Cells of rantext's law for each word: an attacker needs no more. Its numbers: 1..1000. */
enum { N_CELLS = 128, N_NUMBERS = 1000 };

/* One thread's guesses. */
typedef struct part {
    double *score;  /* [n + 1] */
    int32_t *guess; /* [n + 1] */
    dpi_status status;
    dpi_error err;
} part;

typedef struct work {
    const dpi_attack *attack;
    const dpi_local *local;
    dpi_channel *channel;
    const int64_t *count; /* [n + 1] words of the documents that left a word and are not known */
} work;

static bool better(double score, int32_t x, double best, int32_t guess) {
    return score > best || (score == best && score > 0 && x < guess);
}

/* One of 1..1000 as it is drawn for numbers. */
static bool is_drawn_number(const char *word) {
    char *end;
    if (*word < '1' || *word > '9')
        return false;
    const long number = strtol(word, &end, 10);
    return *end == '\0' && number <= N_NUMBERS;
}

static void fill_number(const work *w, double *row) {
    const int32_t n = w->local->n;
    int32_t n_left = N_NUMBERS;
    for (int32_t y = 0; y < n; y++) {
        const bool drawn = is_drawn_number(w->attack->vocabulary->words[y]);
        row[y] = drawn ? -log(N_NUMBERS) : -INFINITY;
        n_left -= drawn;
    }
    row[n] = n_left > 0 ? log((double)n_left / N_NUMBERS) : -INFINITY;
}

/* row [n + 1] of ln P(y | x), x 0..n. */
static void fill_row(const work *w, dpi_local_rows *rows, int32_t x, double *row) {
    double unused;
    const int32_t n = w->local->n, mechanism = w->local->options.mechanism;
    const bool other = x == n, numbers = mechanism == DPI_WORDS_RANTEXT;
    const int32_t fate = !other    ? dpi_word_fate(mechanism, w->attack->vocabulary->words[x])
                         : numbers ? DPI_REPLACED_NUMBER
                                   : DPI_REPLACED_UNKNOWN;
    for (int32_t y = 0; y <= n; y++)
        row[y] = -INFINITY;
    if (fate == DPI_REPLACED_NUMBER)
        fill_number(w, row);
    else if (fate == DPI_REPLACED_KEPT)
        row[x] = 0;
    else
        dpi_local_row(rows, other ? -1 : x, row, &unused);
}

static void add_row(const work *w, part *p, int32_t x, const double *row) {
    const int32_t n = w->local->n;
    const double count = (double)w->count[x];
    for (int32_t y = 0; count > 0 && y <= n; y++) {
        const double score = row[y] > -INFINITY ? count * exp(row[y]) : 0;
        if (!better(score, x, p->score[y], p->guess[y]))
            continue;
        p->score[y] = score;
        p->guess[y] = x;
    }
    for (int32_t y = 0; x < n && w->channel->log_p && y <= n; y++)
        w->channel->log_p[(size_t)x * ((size_t)n + 1) + (size_t)y] = (float)row[y];
}

static dpi_status add_rows(const work *w, part *p, int32_t thread) {
    const int32_t n = w->local->n;
    const size_t n_seen = (size_t)n + 1;
    double *row = dpi_calloc(n_seen, sizeof *row);
    dpi_local_rows rows;
    p->score = dpi_calloc(n_seen, sizeof *p->score);
    p->guess = dpi_calloc(n_seen, sizeof *p->guess);
    if (!row || !p->score || !p->guess) {
        free(row);
        return dpi_no_memory(&p->err, "guesses of %d words", n);
    }
    for (int32_t y = 0; y <= n; y++)
        p->guess[y] = -1;
    const dpi_status status = dpi_local_rows_create(w->local, N_CELLS, &rows, &p->err);
    if (status == DPI_STATUS_OK) {
        for (int32_t x = thread; x <= n; x += w->attack->options.n_threads) {
            if (w->count[x] == 0 && (x == n || !w->channel->log_p))
                continue;
            fill_row(w, &rows, x, row);
            add_row(w, p, x, row);
        }
        dpi_local_rows_free(&rows);
    }
    free(row);
    return status;
}

static void merge(dpi_channel *c, const part *p) {
    for (int32_t y = 0; y <= c->n; y++)
        if (p->guess[y] >= 0 && better(p->score[y], p->guess[y], c->score[y],
                                       c->guess[y] < 0 ? INT32_MAX : c->guess[y])) {
            c->score[y] = p->score[y];
            c->guess[y] = p->guess[y];
        }
}

static dpi_status fill_channel(const work *w, dpi_error *err) {
    const int32_t n_parts = w->attack->options.n_threads;
    dpi_status status = DPI_STATUS_OK;
    part *parts = dpi_calloc((size_t)n_parts, sizeof *parts);
    if (!parts)
        return dpi_no_memory(err, "%d threads", n_parts);
#pragma omp parallel for num_threads(n_parts) schedule(static, 1)
    for (int32_t i = 0; i < n_parts; i++)
        parts[i].status = add_rows(w, &parts[i], i);
    for (int32_t i = 0; i < n_parts; i++) {
        if (parts[i].status == DPI_STATUS_OK)
            merge(w->channel, &parts[i]);
        else if (status == DPI_STATUS_OK) {
            status = parts[i].status;
            if (err)
                *err = parts[i].err;
        }
        free(parts[i].score);
        free(parts[i].guess);
    }
    free(parts);
    return status;
}

/* ---- The words of the documents -------------------------------------------------------------- */

static bool is_other(const attacked_word *w) {
    return w->how == DPI_REPLACED_UNKNOWN || w->how == DPI_REPLACED_NUMBER;
}

/* Words of the vocabulary into count, the keys of those that are drawn for alike into keys, unless
 * it is NULL. Returns how many these are. */
static size_t list_words(const dpi_attack *a, int64_t *count, uint64_t *keys) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < a->documents[i].n; j++) {
            const attacked_word *w = &a->documents[i].words[j];
            if (is_other(w) && keys)
                keys[n] = w->old_key;
            n += is_other(w);
            if (count && !is_other(w) && !w->known && w->how != DPI_REPLACED_DROPPED)
                count[w->from]++;
        }
    return n;
}

static dpi_status count_words(const dpi_attack *a, dpi_channel *c, int64_t *count, dpi_error *err) {
    const size_t n = list_words(a, count, NULL);
    uint64_t *keys = dpi_private_malloc((n + 1) * sizeof *keys);
    int64_t n_same = 0, *most = &count[c->n];
    if (!keys)
        return dpi_no_memory(err, "%zu words without a place", n);
    list_words(a, NULL, keys);
    qsort(keys, n, sizeof *keys, dpi_attack_by_key);
    for (size_t i = 0; i < n; i++) {
        n_same = i > 0 && keys[i] == keys[i - 1] ? n_same + 1 : 1;
        if (n_same > *most) {
            *most = n_same;
            c->other_key = keys[i];
        }
    }
    dpi_private_free(keys);
    return DPI_STATUS_OK;
}

static dpi_status allocate(dpi_channel *c, size_t n, bool matrix, int64_t **count, dpi_error *err) {
    *c = (dpi_channel){
        .n = (int32_t)n,
        .log_p = matrix ? dpi_calloc(n * (n + 1), sizeof *c->log_p) : NULL,
        .score = dpi_calloc(n + 1, sizeof *c->score),
        .guess = dpi_calloc(n + 1, sizeof *c->guess),
    };
    *count = dpi_calloc(n + 1, sizeof **count);
    if (!c->score || !c->guess || !*count || (matrix && !c->log_p)) {
        free(*count);
        return dpi_no_memory(err, "what %zu words become", n);
    }
    for (size_t y = 0; y <= n; y++)
        c->guess[y] = -1;
    return DPI_STATUS_OK;
}

dpi_status dpi_channel_create(const dpi_attack *a, const dpi_perturb_options *perturb, bool matrix,
                              dpi_channel *channel, dpi_error *err) {
    const dpi_vocabulary *v = a->vocabulary;
    dpi_local *local;
    int64_t *count;
    dpi_status status = allocate(channel, (size_t)v->n, matrix, &count, err);
    if (status != DPI_STATUS_OK) {
        dpi_channel_free(channel);
        return status;
    }
    status = count_words(a, channel, count, err);
    if (status == DPI_STATUS_OK)
        status = dpi_local_create(perturb, v->distance, v->n, v->range, v->dim, &local, err);
    if (status == DPI_STATUS_OK) {
        const work w = {a, local, channel, count};
        status = fill_channel(&w, err);
        dpi_local_free(local);
    }
    dpi_wipe_free(count, ((size_t)v->n + 1) * sizeof *count);
    if (status != DPI_STATUS_OK)
        dpi_channel_free(channel);
    return status;
}

void dpi_channel_free(dpi_channel *c) {
    free(c->log_p);
    if (c->score)
        dpi_wipe(c->score, ((size_t)c->n + 1) * sizeof *c->score);
    free(c->score);
    free(c->guess);
    dpi_wipe(c, sizeof *c);
}
