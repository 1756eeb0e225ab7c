/* local.h - local differential privacy: one word of a document replaced by a word that is drawn.
 * Internal; the public contract is in dpinfer/perturb.h, the proofs are in dp/PRIVACY.md
 * section 21.
 *
 * Words are 0..n-1. d(x, y) is a Euclidean distance in units of 2^-20, an integer below 2^32, with
 * d(x, x) = 0 and d(x, y) = d(y, x). What is drawn from, in integers:
 *     score(y) = -min(floor(h d(x, y) / s), most)    candidates and s follow from the mechanism
 *     y with probability weight(score(y)) / sum,     weight = exp2_weights: 2^(score / 2^40)
 *     h = floor(epsilon log2(e) / 2 * 2^40), less the rounding of weights
 *
 *     exponential  all words                     s the diameter of the vocabulary
 *     calibrated   the same                      and h the largest that the certificate allows
 *     rantext      words with d(x, y) < t        s = t, the norm of noise that is drawn for it
 *     santext+     the rare words                s = 2^20, so that the exponent is epsilon d / 2; a
 *                                                frequent word stays with probability 1 - p
 *     custext+     the group of x                s the largest distance to a word of the group
 * The papers' epsilons hold within a list, for a distance, within a group: certify.h has what
 * holds.
 *
 * Sources: Tong et al. 2025 (RANTEXT, Algorithm 2), Yue et al. 2021 (SANTEXT+), Chen et al. 2023
 * (CUSTEXT+). Threads: any number of them draw from one dpi_local. */
#ifndef DPI_LOCAL_H
#define DPI_LOCAL_H

#include <stdbool.h>

#include "dp/exact/weights.h"
#include "dp/local/magnitude.h"
#include "dpinfer/perturb.h"
#include "kernels/kernels.h"

enum { DPI_LOCAL_SHIFT = 20, DPI_LOCAL_BITS = 40 }; /* of distances, of scores */

typedef struct dpi_local {
    dpi_perturb_options options;
    int32_t n, dim;
    const uint32_t *distance; /* [n, n], the caller's */
    int64_t *noise_scale;     /* [dim] rantext: of the discrete Laplace noise, in units of 2^-20 */
    int32_t *group;           /* [n] custext+: the first word of a word's group. Else NULL */
    int32_t *next;            /* [n] custext+: the next word of the group; -1: the last one */
    int64_t h;                /* score of the distance s */
    uint32_t diameter;        /* the largest distance of all */
    const int8_t *fate;       /* [n] a dpi_replaced: DRAWN; KEPT, as it is; NUMBER, by what is no
                                 word of the vocabulary. The caller's; NULL: DRAWN */
    int32_t first_rare;       /* santext+: words from here on are rare, n / 10 by default */
    uint64_t replaced;        /* santext+: p in units of 2^-32 */
    dpi_kernels kernels;
    dpi_weight_tables tables;
    dpi_magnitude_tables magnitudes;
} dpi_local;

/* Rounding is monotone, and the minimum holds the range whatever it does: 0 >= score >= -most. */
static inline int64_t dpi_local_score(uint32_t distance, double h, double s,
                                      int64_t most) {
    const int64_t lost = (int64_t)(h * (double)distance / s);
    return -(lost < most ? lost : most);
}

/* One thread's arrays. */
typedef struct dpi_local_list {
    int32_t *word;  /* [n] candidates, ascending */
    int64_t *score; /* [n] of each */
    dpi_u128 *weight;
    size_t n;
} dpi_local_list;

/* distance [n, n] and range [dim], the extent of each dimension over the words, of vectors that are
 * the caller's; range may be NULL but for rantext. Words stand in the order of their frequency,
 * most frequent first. Errors: ARG, MEMORY. */
dpi_status dpi_local_create(const dpi_perturb_options *options, const uint32_t *distance, int32_t n,
                            const double *range, int32_t dim, dpi_local **local, dpi_error *err);
void dpi_local_free(dpi_local *local);

dpi_status dpi_local_list_create(const dpi_local *local, dpi_local_list *list, dpi_error *err);
void dpi_local_list_free(const dpi_local *local, dpi_local_list *list); /* wipes */

/* rantext: *threshold = the norm of the noise, rounded down, and at least 1. Errors: ENTROPY. */
dpi_status dpi_local_threshold(const dpi_local *local, dpi_random_fn random, void *user,
                               uint64_t *threshold, dpi_error *err);

/* The candidates for word x and their scores. x = -1: a word that is not in the vocabulary, whose
 * candidates are all words alike. `threshold` is read by rantext alone. Santext+: of a word that is
 * replaced. */
void dpi_local_scores(const dpi_local *local, int32_t x, uint64_t threshold, dpi_local_list *list);

/* *y replaces x; list->n: words that it was drawn from, 0: it stays. Errors: ENTROPY. */
dpi_status dpi_local_draw(const dpi_local *local, int32_t x, dpi_local_list *list,
                          dpi_random_fn random, void *user, int32_t *y, dpi_error *err);

/* Sets l->h to the largest that is found for which no word's loss is above epsilon: max over y of
 * (max_x ln P(y | x) - min_x ln P(y | x)), computed from all rows and rounded up. Theorem C of
 * dp/PRIVACY.md section 21. The mechanism is exponential or calibrated. Errors: MEMORY. */
dpi_status dpi_local_calibrate(dpi_local *l, double epsilon, dpi_error *err);

/* Z of RANTEXT for an epsilon: Tong et al. 2025, Appendix B. */
double dpi_local_rantext_z(double epsilon);

/* Distances between vectors [n, dim] in units of 2^-20, rounded to nearest, into distance [n, n].
 * Sums of squares in double and in the order of the dimensions: the same on every machine.
 * n_threads 0: all processors. Errors: NUMERIC (a distance of 4096 or more, or none), MEMORY. */
dpi_status dpi_local_distances(const float *vectors, int32_t n, int32_t dim, int32_t n_threads,
                               uint32_t *distance, dpi_error *err);

#endif
