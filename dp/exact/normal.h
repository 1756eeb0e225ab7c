/* normal.h - exact draws of the normal law, rounded to integers, from uniform bits and integers
 * alone. Internal. Source: Karney 2016, "Sampling Exactly from the Normal Distribution",
 * Algorithms N, B and C.
 *
 * A sum of integers plus round(Z) is round(sum + Z), so that noise that is drawn here is the
 * Gaussian mechanism of real numbers and its rounding: dp/PRIVACY.md section 17.
 *
 * Trusted: sigma is public. Sensitivity and cost: on a sum that a neighbour moves by a vector of
 * Euclidean norm at most D, D^2 / (2 s^2)-zCDP, s = sigma 2^-20.
 * Exact distribution: at dpi_normal_rounded.
 *
 * Time: how many bits a draw takes depends on them alone, not on what the noise is added to.
 * Threads: as the random source. */
#ifndef DPI_NORMAL_H
#define DPI_NORMAL_H

#include <stddef.h>
#include <stdint.h>

#include "dpinfer/status.h"

/* Standard deviations are integers in units of 2^-DPI_NORMAL_SHIFT; a product with a draw fits 128
 * bits, and every draw fits int64. */
enum { DPI_NORMAL_SHIFT = 20 };
#define DPI_NORMAL_SIGMA_MAX (INT64_C(1) << 54)

/* noise[0..n): independent, each round(sigma 2^-20 Z) with Z of the standard normal law: the value
 * k with probability Phi((k + 1/2) / s) - Phi((k - 1/2) / s), s = sigma 2^-20; sigma in
 * [1, DPI_NORMAL_SIGMA_MAX]. The law is missed with probability 2^-240 a draw.
 * Errors: ARG, ENTROPY; then noise holds zeros. */
dpi_status dpi_normal_rounded(int64_t sigma, dpi_random_fn random, void *user, int64_t *noise,
                              size_t n, dpi_error *err);

#endif
