/* noisy_max.h - the largest of integers with Gaussian noise: "report noisy max". Internal.
 *
 * Trusted: n and sigma are public. Not trusted: the values, |value| < 2^52.
 * Sensitivity and cost: if two neighbouring vectors of values differ by a vector of Euclidean norm
 * at most D, the index is D^2 / (2 s^2)-zCDP, s = sigma 2^-20. Each value plus round(s Z) is the
 * value plus s Z, rounded: a post-processing of the Gaussian mechanism (Bun and Steinke 2016,
 * Lemma 2.4, in n dimensions), and so is which of them is the largest.
 * Exact distribution: P[index = i] is that of the noises of normal.h; of equal sums the first one
 * counts.
 * Time: no branch and no address depends on values or noise. */
#ifndef DPI_NOISY_MAX_H
#define DPI_NOISY_MAX_H

#include <stddef.h>
#include <stdint.h>

/* The index of the largest of values[i] + noise[i], i < n, n >= 1; noise is that of
 * dpi_normal_rounded(sigma). */
size_t dpi_noisy_max(const int64_t *values, const int64_t *noise, size_t n);

/* D^2 / (2 s^2), rounded up; D in [1, 2^31], sigma in [1, DPI_NORMAL_SIGMA_MAX]. */
double dpi_rho_noisy_max_bound(int64_t D, int64_t sigma);
#endif
