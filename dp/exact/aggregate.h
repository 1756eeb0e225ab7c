/* aggregate.h - the clipped contributions of units to a token's candidates, as integer sums that
 * merge. Internal; PRIVACY.md, sections 2, 10 and 15.
 *
 *     c_j(y) = clamp(rne((l_j(y) - p(y) - m_j) 2^20), -K, K)       what record j wants of y
 *     c_i(y) = rne(sum_j c_j(y) / m)                              unit i: the mean of its m records
 *     x_i(y) = c_i(y) - c_null(y)                                  what it moves y by
 *     S(y)   = sum_i counts_i x_i(y) + n c_null(y)                 over the n slots
 *     U(y)   = D P(y) + S(y)
 *
 * A step, for the slots of one thread, process or machine:
 *     begin (public part, K)  ->  centre  ->  [range, and the caller's filter]  ->  add to its sums
 * then, wherever the token is drawn:
 *     merge the sums of the others, in any order  ->  utility  ->  weights and a draw (weights.h)
 *
 * A slot holds a unit: per_unit pointers, of which those that are NULL are no records. A unit
 * without a record is null. A unit of one record is that record.
 *
 * Trusted: what is public in dpi_aggregate_step, and that the references of slot i are functions of
 * unit i, the released tokens and public data. Not trusted: every value of the references, NaN
 * included.
 * Sensitivity: to empty slot j, or not to count it, changes each sum by -x_j(y) and nothing else:
 * an integer in [-K, K] where null logits are the public ones, in [-2K, 2K] where they are zeros.
 * No sum depends on the order of slots, on how they are split, or on the instruction set.
 * Cost: that of the draw, by K (dpi_eta_bound). Sums are PRIVATE: whatever else is done with them
 * has a cost of its own.
 * Time: no branch and no address depends on the values of references.
 * K is given to each step: a method may change it from token to token.
 * Threads: a dpi_aggregate belongs to one thread at a time. */
#ifndef DPI_AGGREGATE_H
#define DPI_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"

enum { DPI_AGGREGATE_BLOCK = 1024 }; /* candidates at a time, which stay in the nearest cache */

/* The public part of a step; arrays are the caller's and stay while the step lasts. */
typedef struct dpi_aggregate_step {
    const float *public_logits; /* [n_vocab] */
    const float *null_logits;   /* [n_vocab] of an empty slot: public_logits, or zeros (zero-out) */
    const int32_t *support;     /* [n_support] candidates, ascending */
    size_t n_vocab, n_support;
    int64_t K;   /* clip bound of this step, units of 2^-20 logits: [1, 2^31) */
    bool center; /* m_j = dpi_log_mass of the record less that of the public logits; else 0 */
    int32_t per_unit; /* M, pointers of a slot: 0 or 1: one record; at most 64 */
} dpi_aggregate_step;

/* Room for a step; all of it is wiped by dpi_aggregate_wipe. */
typedef struct dpi_aggregate {
    const dpi_kernels *kernels;
    dpi_aggregate_step step;
    double public_mass, centre_null;
    float p[DPI_AGGREGATE_BLOCK];      /* public logits */
    int64_t null[DPI_AGGREGATE_BLOCK]; /* c_null: 0, but for zero-out. Public */
    float logits[DPI_AGGREGATE_BLOCK]; /* of one record; PRIVATE */
    int64_t unit[DPI_AGGREGATE_BLOCK]; /* x of one unit of several records; PRIVATE */
} dpi_aggregate;

/* The kernels are the caller's and stay. */
void dpi_aggregate_begin(dpi_aggregate *aggregate, const dpi_kernels *kernels,
                         const dpi_aggregate_step *step);

/* centre[n M] = m_j. references: n M pointers to [n_vocab], those of a slot side by side. NULL does
 * the work of any other. */
void dpi_aggregate_centre(dpi_aggregate *aggregate, const float *const *references, int32_t n,
                          double *centre);

/* range[n] = the least and the most of x_i over the candidates: what a filter charges unit i for.
 * PRIVATE. */
void dpi_aggregate_range(dpi_aggregate *aggregate, const float *const *references, int32_t n,
                         const double *centre, int64_t (*range)[2]);

/* sum[n_support] += the n slots: counts[i] is all ones, or 0 for a unit that counts as null. At
 * most 2^20 slots over all sums that are merged, so that |S| < 2^52. */
void dpi_aggregate_add(dpi_aggregate *aggregate, const float *const *references, int32_t n,
                       const double *centre, const uint64_t *counts, int64_t *sum);

/* sum[n] += other[n]. */
void dpi_aggregate_merge(int64_t *sum, const int64_t *other, size_t n);

/* utility[n] = D fixed[support[i]] + sum[i]; fixed is dpi_public_fix's. */
void dpi_aggregate_utility(const int64_t *fixed, const int32_t *support, const int64_t *sum,
                           size_t n, int64_t D, int64_t *utility);

void dpi_aggregate_wipe(dpi_aggregate *aggregate);

/* ---- Recentred contributions ----------------------------------------------------------------- */

/* sum[n] += present c, where c = max(-K, rne((l - max l) 2^20) + K): the record's best token adds
 * K, what is 2K or more below it -K; in [-K, K] for any bits of `logits`, of which values that are
 * not finite count as the lowest float. present is 1 or 0, and the work is the same. Sensitivity:
 * K, by leaving the record out; c - c' in [-2K, 2K], by exchanging it. Source: Amin et al. 2024. */
void dpi_aggregate_add_recentred(const float *logits, size_t n, int64_t K, int64_t present,
                                 int64_t *sum);

#endif
