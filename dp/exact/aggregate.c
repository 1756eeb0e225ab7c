/* aggregate.c - see aggregate.h. */
#include "dp/exact/aggregate.h"

#include <string.h>

#include "base/mem.h"
#include "dp/exact/center.h"
#include "dp/exact/mean.h"
#include "dp/exact/order.h"

enum { BLOCK = DPI_AGGREGATE_BLOCK };

static const int64_t zeros[BLOCK];

/* ---- No branch or address depends on reference logits ---------------------------------------- */

/* A null slot is given logits that move nothing, and its work is that of any other. */
static const float *slot_logits(const dpi_aggregate *a, const float *const *references, int32_t j) {
    return references[j] ? references[j] : a->step.null_logits;
}

/* The logits of the candidates from `first` on, where they stand or gathered in `room`. */
static const float *candidates(const dpi_aggregate *a, const float *logits, size_t first, size_t n,
                               float *room) {
    if (a->step.n_support == a->step.n_vocab)
        return logits + first;
    for (size_t i = 0; i < n; i++)
        room[i] = logits[a->step.support[first + i]];
    return room;
}

static size_t block_size(const dpi_aggregate *a, size_t first) {
    return a->step.n_support - first < BLOCK ? a->step.n_support - first : BLOCK;
}

/* Whether a null slot adds something: with public logits in it c is 0 everywhere. */
static bool null_adds(const dpi_aggregate *a) {
    return a->step.null_logits != a->step.public_logits;
}

/* A block's public logits, and what a null slot adds to it. */
static const float *begin_block(dpi_aggregate *a, size_t first, size_t n) {
    const float *p = candidates(a, a->step.public_logits, first, n, a->p);
    memset(a->null, 0, n * sizeof *a->null);
    if (null_adds(a))
        a->kernels->clip_add(a->null, candidates(a, a->step.null_logits, first, n, a->logits), p,
                             zeros, a->centre_null, a->step.K, ~UINT64_C(0), (int64_t)n);
    return p;
}

void dpi_aggregate_begin(dpi_aggregate *a, const dpi_kernels *kernels,
                         const dpi_aggregate_step *step) {
    a->kernels = kernels;
    a->step = *step;
    a->public_mass = a->centre_null = 0;
    if (step->center) {
        a->public_mass = dpi_log_mass(step->public_logits, step->support, step->n_support);
        a->centre_null = dpi_log_mass(step->null_logits, step->support, step->n_support) -
                         a->public_mass;
    }
}

static int32_t per_unit(const dpi_aggregate *a) {
    return a->step.per_unit > 1 ? a->step.per_unit : 1;
}

/* m_j: a function of one reference and public data only. Centring comes before clipping. */
void dpi_aggregate_centre(dpi_aggregate *a, const float *const *references, int32_t n,
                          double *centre) {
    const dpi_aggregate_step *step = &a->step;
    for (int32_t j = 0; j < n * per_unit(a); j++) {
        const float *logits = slot_logits(a, references, j);
        centre[j] = 0;
        if (step->center)
            centre[j] = dpi_log_mass(logits, step->support, step->n_support) - a->public_mass;
    }
}

/* ---- Units of several records ---------------------------------------------------------------- */

static uint64_t is_there(const float *reference) { return 0 - (uint64_t)(reference != NULL); }

/* unit[n] = x of the unit whose records are references[per_unit]: clip, add, and then the mean. */
static void mean_of_unit(dpi_aggregate *a, const float *const *references, const double *centre,
                         const float *p, size_t first, size_t n) {
    const int32_t M = a->step.per_unit;
    int32_t m = 0;
    memset(a->unit, 0, n * sizeof *a->unit);
    for (int32_t j = 0; j < M; j++) {
        a->kernels->clip_add(a->unit,
                             candidates(a, slot_logits(a, references, j), first, n, a->logits), p,
                             zeros, centre[j], a->step.K, is_there(references[j]), (int64_t)n);
        m += references[j] != NULL;
    }
    const dpi_mean mean = dpi_mean_of(m, M);
    const uint64_t some = 0 - (uint64_t)(m > 0);
    for (size_t i = 0; i < n; i++)
        a->unit[i] = (int64_t)((uint64_t)(dpi_mean_round(mean, a->unit[i]) - a->null[i]) & some);
}

static void range_of_unit(const dpi_aggregate *a, size_t n, int64_t range[2]) {
    for (size_t i = 0; i < n; i++) {
        range[0] = dpi_i64_min(range[0], a->unit[i]);
        range[1] = dpi_i64_max(range[1], a->unit[i]);
    }
}

/* ---- Slots ----------------------------------------------------------------------------------- */

void dpi_aggregate_range(dpi_aggregate *a, const float *const *references, int32_t n_ref,
                         const double *centre, int64_t (*range)[2]) {
    const int32_t M = per_unit(a);
    for (int32_t j = 0; j < n_ref; j++)
        range[j][0] = INT64_C(1) << 40, range[j][1] = -(INT64_C(1) << 40);
    for (size_t first = 0; first < a->step.n_support; first += BLOCK) {
        const size_t n = block_size(a, first);
        const float *p = begin_block(a, first, n);
        for (int32_t j = 0; j < n_ref && M > 1; j++) {
            mean_of_unit(a, references + j * M, centre + j * M, p, first, n);
            range_of_unit(a, n, range[j]);
        }
        for (int32_t j = 0; j < n_ref && M == 1; j++)
            a->kernels->clip_range(
                range[j], candidates(a, slot_logits(a, references, j), first, n, a->logits), p,
                a->null, centre[j], a->step.K, (int64_t)n);
    }
}

static void add_units(dpi_aggregate *a, const float *const *references, int32_t n_ref,
                      const double *centre, const uint64_t *counts, const float *p, size_t first,
                      size_t n, int64_t *sum) {
    const int32_t M = a->step.per_unit;
    for (int32_t j = 0; j < n_ref; j++) {
        mean_of_unit(a, references + j * M, centre + j * M, p, first, n);
        for (size_t i = 0; i < n; i++)
            sum[i] += (int64_t)((uint64_t)a->unit[i] & counts[j]);
    }
}

/* A block of candidates: the logits of each slot are read once, and clipped and added while the
 * sums are at hand. */
static void add_block(dpi_aggregate *a, const float *const *references, int32_t n_ref,
                      const double *centre, const uint64_t *counts, size_t first, int64_t *sum) {
    const size_t n = block_size(a, first);
    const float *p = begin_block(a, first, n);
    for (size_t i = 0; null_adds(a) && i < n; i++)
        sum[i] += n_ref * a->null[i];
    if (per_unit(a) > 1) {
        add_units(a, references, n_ref, centre, counts, p, first, n, sum);
        return;
    }
    for (int32_t j = 0; j < n_ref; j++)
        a->kernels->clip_add(
            sum, candidates(a, slot_logits(a, references, j), first, n, a->logits), p, a->null,
            centre[j], a->step.K, counts[j], (int64_t)n);
}

void dpi_aggregate_add(dpi_aggregate *a, const float *const *references, int32_t n,
                       const double *centre, const uint64_t *counts, int64_t *sum) {
    for (size_t first = 0; first < a->step.n_support; first += BLOCK)
        add_block(a, references, n, centre, counts, first, sum + first);
}

void dpi_aggregate_merge(int64_t *sum, const int64_t *other, size_t n) {
    for (size_t i = 0; i < n; i++)
        sum[i] += other[i];
}

void dpi_aggregate_utility(const int64_t *fixed, const int32_t *support, const int64_t *sum,
                           size_t n, int64_t D, int64_t *utility) {
    for (size_t i = 0; i < n; i++)
        utility[i] = D * fixed[support[i]] + sum[i];
}

void dpi_aggregate_wipe(dpi_aggregate *a) {
    dpi_wipe(a->logits, sizeof a->logits);
    if (per_unit(a) > 1)
        dpi_wipe(a->unit, sizeof a->unit);
}

/* ---- Recentred contributions ----------------------------------------------------------------- */

/* The maximum is a function of this record alone; the clamp comes last. */
void dpi_aggregate_add_recentred(const float *logits, size_t n, int64_t K, int64_t present,
                                 int64_t *sum) {
    const double top = dpi_order_peak(logits, n), most = 2 * (double)K;
    for (size_t y = 0; y < n; y++) {
        int64_t c = K - dpi_round_even(dpi_order_gap(logits[y], top, DPI_UNIT, most));
        sum[y] += present * dpi_i64_max(dpi_i64_min(c, K), -K);
    }
}
