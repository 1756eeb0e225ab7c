/* svt.h - the sparse vector technique on integers: which of many queries is the first above a noisy
 * threshold, for the price of one. Internal; dp/PRIVACY.md, Lemma A4. Source: Dwork et al. 2009;
 * Dwork and Roth 2014, Theorem 3.23.
 *
 * Trusted: that each query has the sensitivity D that is paid for, given the answers before it. Not
 * trusted: how queries are chosen; they may follow from all earlier answers.
 * Cost: of an armed instance, with its queries up to and including the first "above", pure
 * (2 D / scale)-DP, paid when it is armed.
 * Exact distribution: discrete Laplace noise of `scale` on the threshold and 2 scale on each query
 * (noise.h), compared as integers. A query's value is PRIVATE, its answer is public.
 * Time: that of noise.h. Threads: as the random source. Errors: ENTROPY. */
#ifndef DPI_SVT_H
#define DPI_SVT_H

#include "dp/exact/noise.h"

typedef struct dpi_svt {
    int64_t scale;     /* [1, DPI_NOISE_SCALE_MAX / 2] */
    int64_t threshold; /* magnitude below 2^60 */
    int64_t noisy;     /* threshold + noise: PRIVATE */
} dpi_svt;

/* Draws the noise of the threshold, afresh for each instance. Errors: ENTROPY (nothing is
 * changed). */
dpi_status dpi_svt_arm(dpi_svt *svt, dpi_random_fn random, void *user, dpi_error *err);
/* *above = value + noise >= noisy. After "above" the instance must be armed again before the next
 * query. Errors: ENTROPY (no answer was given). */
dpi_status dpi_svt_query(const dpi_svt *svt, int64_t value, dpi_random_fn random, void *user,
                         bool *above, dpi_error *err);

#endif
