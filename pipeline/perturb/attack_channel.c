/* attack_channel.c - P(y | x) of a mechanism as an attacker has it, and the best guess for each
 * replacement y: argmax_x (number of words x in the documents) P(y | x). */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/local/certify.h"
#include "pipeline/perturb/attack.h"
#include "pipeline/perturb/words.h"

/* Cells of rantext's law for each word: an attacker needs no more. */
enum { N_CELLS = 128 };

/* One thread's guesses. */
typedef struct part {
    double *score;  /* [n] */
    int32_t *guess; /* [n] */
    dpi_status status;
    dpi_error err;
} part;

typedef struct work {
    const dpi_attack *attack;
    const dpi_local *local;
    dpi_channel *channel;
    const int64_t *count; /* [n] words of the documents that were drawn for or kept */
} work;

static bool better(double score, int32_t x, double best, int32_t guess) {
    return score > best || (score == best && score > 0 && x < guess);
}

/* ln P(y | x) of a word that is drawn for; of one that stays: itself. Numbers of rantext never
 * become words. false: x becomes no word. */
static bool fill_row(const work *w, dpi_local_rows *rows, int32_t x, double *row) {
    double unused;
    const int32_t n = w->local->n;
    switch (dpi_word_fate(w->local->options.mechanism, w->attack->vocabulary->words[x])) {
    case DPI_REPLACED_NUMBER:
        return false;
    case DPI_REPLACED_KEPT:
        for (int32_t y = 0; y < n; y++)
            row[y] = y == x ? 0 : -INFINITY;
        return true;
    default:
        dpi_local_row(rows, x, row, &unused);
        return true;
    }
}

static void add_row(const work *w, part *p, int32_t x, const double *row) {
    const int32_t n = w->local->n;
    const double count = (double)w->count[x];
    for (int32_t y = 0; count > 0 && y < n; y++) {
        const double score = row[y] > -INFINITY ? count * exp(row[y]) : 0;
        if (!better(score, x, p->score[y], p->guess[y]))
            continue;
        p->score[y] = score;
        p->guess[y] = x;
    }
    for (int32_t y = 0; w->channel->log_p && y < n; y++)
        w->channel->log_p[(size_t)x * (size_t)n + (size_t)y] = (float)row[y];
}

static dpi_status add_rows(const work *w, part *p, int32_t thread) {
    const int32_t n = w->local->n;
    double *row = dpi_calloc((size_t)n, sizeof *row);
    dpi_local_rows rows;
    p->score = dpi_calloc((size_t)n, sizeof *p->score);
    p->guess = dpi_calloc((size_t)n, sizeof *p->guess);
    if (!row || !p->score || !p->guess) {
        free(row);
        return dpi_fail(&p->err, DPI_STATUS_MEMORY, "no memory for guesses of %d words", n);
    }
    for (int32_t y = 0; y < n; y++)
        p->guess[y] = -1;
    const dpi_status status = dpi_local_rows_create(w->local, N_CELLS, &rows, &p->err);
    if (status == DPI_STATUS_OK) {
        for (int32_t x = thread; x < n; x += w->attack->options.n_threads) {
            if (w->count[x] == 0 && !w->channel->log_p)
                continue;
            for (int32_t y = 0; y < n; y++)
                row[y] = -INFINITY;
            fill_row(w, &rows, x, row);
            add_row(w, p, x, row);
        }
        dpi_local_rows_free(&rows);
    }
    free(row);
    return status;
}

static void merge(dpi_channel *c, const part *p) {
    for (int32_t y = 0; y < c->n; y++)
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
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for %d threads", n_parts);
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

static void count_words(const dpi_attack *a, int64_t *count) {
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < a->documents[i].n; j++) {
            const attacked_word *w = &a->documents[i].words[j];
            if (w->from >= 0 && w->to >= 0)
                count[w->from]++;
        }
}

static dpi_status allocate(dpi_channel *c, size_t n, bool matrix, int64_t **count,
                           dpi_error *err) {
    *c = (dpi_channel){
        .n = (int32_t)n,
        .log_p = matrix ? dpi_calloc(n * n, sizeof *c->log_p) : NULL,
        .score = dpi_calloc(n, sizeof *c->score),
        .guess = dpi_calloc(n, sizeof *c->guess),
    };
    *count = dpi_calloc(n, sizeof **count);
    if (!c->score || !c->guess || !*count || (matrix && !c->log_p)) {
        free(*count);
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for what %zu words become", n);
    }
    for (size_t y = 0; y < n; y++)
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
    count_words(a, count);
    status = dpi_local_create(perturb, v->distance, v->n, v->range, v->dim, &local, err);
    if (status == DPI_STATUS_OK) {
        const work w = {a, local, channel, count};
        status = fill_channel(&w, err);
        dpi_local_free(local);
    }
    dpi_wipe(count, (size_t)v->n * sizeof *count);
    free(count);
    if (status != DPI_STATUS_OK)
        dpi_channel_free(channel);
    return status;
}

void dpi_channel_free(dpi_channel *c) {
    free(c->log_p);
    if (c->score)
        dpi_wipe(c->score, (size_t)c->n * sizeof *c->score);
    free(c->score);
    free(c->guess);
    *c = (dpi_channel){0};
}
