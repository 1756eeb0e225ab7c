/* choose.c - a round's histogram of votes, and the candidates that stay. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/exact/votes.h"
#include "dp/mechanism/noisy_votes.h"
#include "dpinfer/memory.h"
#include "kernels/exact.h"
#include "pipeline/augpe/augpe.h"

/* ---- Votes ----------------------------------------------------------------------------------- */

/* One over the standard deviation of each coordinate over the candidates: public. */
static void find_weights(const dpi_augpe *f, double *weights) {
    const int32_t dim = f->n_embd;
    for (int32_t k = 0; k < dim; k++) {
        double n = 0, sum = 0, square = 0;
        for (int32_t i = 0; i < f->n_all; i++)
            if (f->usable[i])
                sum += (double)f->features[(size_t)i * (size_t)dim + (size_t)k], n++;
        for (int32_t i = 0; i < f->n_all; i++)
            if (f->usable[i])
                square +=
                    pow((double)f->features[(size_t)i * (size_t)dim + (size_t)k] - sum / n, 2);
        const double weight = 1 / sqrt(square / n);
        weights[k] = isfinite(weight) ? weight : 0;
    }
}

/* One vote for the records of each unit: a null one, and one that does not pay, has none. */
static void count_all(dpi_augpe *f, const double *weights) {
    const dpi_records *records = f->options.records;
    const size_t n_units = dpi_records_unit_count(records);
    const int32_t M = f->claim.max_per_unit > 0 ? f->claim.max_per_unit : 1;
    int32_t nearest[DPI_VOTE_RECORDS_MAX];
    for (size_t unit = 0; unit < n_units; unit++) {
        int32_t n = 0;
        for (size_t i; n < M; n++) {
            i = dpi_records_of_unit(records, unit, (size_t)n);
            if (i >= f->n_records)
                break;
            nearest[n] = dpi_votes_nearest(f->features, f->usable, f->n_all, f->n_embd, weights,
                                           f->records + i * (size_t)f->n_embd);
        }
        dpi_votes_add(nearest, n, f->votes, f->n_all);
    }
    dpi_wipe(nearest, sizeof nearest);
}

dpi_status dpi_augpe_count(dpi_augpe *f, dpi_error *err) {
    double *weights = dpi_calloc((size_t)f->n_embd, sizeof *weights);
    if (!weights)
        return dpi_no_memory(err, "the weights of features");
    memset(f->votes, 0, (size_t)f->n_all * sizeof *f->votes);
    find_weights(f, weights);
    count_all(f, weights);
    free(weights);
    return DPI_STATUS_OK;
}

/* ---- What stays ------------------------------------------------------------------------------ */

typedef struct counted {
    int64_t votes; /* above the threshold: public */
    int32_t index;
} counted;

/* Most votes first, then in the order of the candidates. */
static int by_votes(const void *a, const void *b) {
    const counted *x = a, *y = b;
    return x->votes != y->votes ? (x->votes < y->votes) - (x->votes > y->votes)
                                : (x->index > y->index) - (x->index < y->index);
}

/* In proportion to votes; where there are none, any. */
static int32_t draw_one(dpi_augpe *f, const counted *all, int64_t sum) {
    const uint64_t bits = dpi_augpe_public_bits(f);
    if (sum == 0)
        return (int32_t)((dpi_u128)bits * (uint64_t)f->n_all >> 64);
    int64_t left = (int64_t)((dpi_u128)bits * (uint64_t)sum >> 64);
    int32_t i = 0;
    while (left >= all[i].votes)
        left -= all[i++].votes;
    return all[i].index;
}

/* Noisy votes to the candidates that stay: post-processing. */
static void find_best(dpi_augpe *f, counted *all, int32_t *best) {
    const int64_t threshold = (int64_t)llround(f->options.threshold * DPI_VOTE_ONE);
    int64_t sum = 0;
    for (int32_t i = 0; i < f->n_all; i++) {
        const int64_t votes = f->votes[i] - threshold;
        all[i] = (counted){votes > 0 ? votes : 0, i};
        sum += all[i].votes;
    }
    if (f->options.selection == DPI_AUGPE_RANK)
        qsort(all, (size_t)f->n_all, sizeof *all, by_votes);
    for (int32_t i = 0; i < f->options.n_texts; i++)
        best[i] = f->options.selection == DPI_AUGPE_RANK ? all[i].index : draw_one(f, all, sum);
}

static dpi_status copy_text(const dpi_text *from, dpi_text *to, dpi_error *err) {
    dpi_augpe_empty(to);
    dpi_text_put(to, from->data ? from->data : "", from->n_bytes);
    return to->failed ? dpi_no_memory(err, "a text") : DPI_STATUS_OK;
}

/* They stand first among the candidates of the next round. */
static dpi_status keep_best(dpi_augpe *f, const int32_t *best, dpi_error *err) {
    const size_t dim = (size_t)f->n_embd, N = (size_t)f->options.n_texts;
    for (size_t i = 0; i < N; i++) {
        DPI_TRY(copy_text(&f->candidates[best[i]], &f->chosen[i], err));
        memcpy(f->chosen_features + i * dim, f->features + (size_t)best[i] * dim,
               dim * sizeof *f->features);
        f->chosen_usable[i] = f->usable[best[i]];
    }
    for (size_t i = 0; i < N; i++)
        DPI_TRY(copy_text(&f->chosen[i], &f->candidates[i], err));
    memcpy(f->features, f->chosen_features, N * dim * sizeof *f->features);
    memcpy(f->usable, f->chosen_usable, N);
    return DPI_STATUS_OK;
}

dpi_status dpi_augpe_choose(dpi_augpe *f, dpi_error *err) {
    const bool seeded = f->options.seeded != 0;
    counted *all = dpi_calloc((size_t)f->n_all, sizeof *all);
    int32_t *best = dpi_calloc((size_t)f->options.n_texts, sizeof *best);
    dpi_status status = all && best ? dpi_augpe_count(f, err) : dpi_no_memory(err, "votes");
    if (status == DPI_STATUS_OK)
        status = dpi_votes_release(f->votes, f->n_all,
                                   (int64_t)f->claim.parts[0].results[DPI_VOTES_VARIANCE],
                                   seeded ? dpi_random_insecure : NULL, &f->bits, err);
    if (status == DPI_STATUS_OK) {
        find_best(f, all, best);
        status = keep_best(f, best, err);
    } else {
        dpi_wipe(f->votes, (size_t)f->n_all * sizeof *f->votes);
    }
    free(all), free(best);
    return status;
}
