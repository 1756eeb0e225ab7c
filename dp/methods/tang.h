/* tang.h - the parts of Tang et al. 2024 (Algorithm 1), for audits. Internal.
 *
 * A step:
 *     dpi_sampler_support   public logits -> the top_k likeliest tokens
 *     dpi_tang_sums         references -> S(y) = sum_i P_i(y), probabilities on these, as integers
 *     dpi_normal_rounded, dpi_noisy_max   noise on S -> the token
 * dp/PRIVACY.md has the theorem. Threads: a sampler belongs to one thread at a time. */
#ifndef DPI_TANG_H
#define DPI_TANG_H

#include "dp/methods/method.h"

/* A probability p is floor(2^16 p) at most: what a record adds to all sums has norm 2^16. */
enum { DPI_TANG_ONE = 1 << 16 };

/* sampler->sum [n_support] = S on its support. The arguments are those of dpi_sampler_step; the
 * sums are PRIVATE. Sensitivity: a slot that becomes null changes them by a vector of integers that
 * are >= 0 and add up to DPI_TANG_ONE at most. */
void dpi_tang_sums(dpi_sampler *sampler, const float *const *reference_logits);

#endif
