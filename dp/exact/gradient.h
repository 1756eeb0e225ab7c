/* gradient.h - sums of clipped gradients in integers, and the noise that hides who is in them.
 * Internal. Source: Abadi et al. 2016, in integers; dp/PRIVACY.md section 17.
 *
 * A unit's gradient g (f32, [n]) becomes z = rne(g s 2^20 / C) with s = min(1, C / |g|). That its
 * norm is at most D is checked in integers, so that no rounding of floats enters the proof. Sums
 * are int64: any order, any threads, any machine.
 *
 * Trusted: that a gradient is a function of one unit and public data. Not trusted: its values.
 * Sensitivity: to leave a unit out moves the sum by a vector of Euclidean norm at most D.
 * Cost: with the noise the sum is the Gaussian mechanism with noise multiplier sigma, and its
 * rounding. Before the noise it is PRIVATE.
 * Exact distribution: of each coordinate's noise round(Normal(0, (sigma D)^2)), see normal.h.
 * Threads: a sum belongs to one thread; sums of several are added afterwards. */
#ifndef DPI_GRADIENT_H
#define DPI_GRADIENT_H

#include <stddef.h>
#include <stdint.h>

#include "dpinfer/status.h"

/* C is 2^DPI_GRADIENT_SHIFT in integers. */
enum { DPI_GRADIENT_SHIFT = 20 };
/* Coordinates of a gradient: the sum of their squares fits 128 bits with room. */
#define DPI_GRADIENT_N_MAX (INT64_C(1) << 40)
#define DPI_GRADIENT_NOISE_MAX 4096.0

/* D = 2^20 + ceil(sqrt(n) / 2) + 1: the largest l2 norm of a unit's z; n in
 * 1..DPI_GRADIENT_N_MAX. */
int64_t dpi_gradient_bound(int64_t n);

/* sum[0..n) += z of this gradient. Coordinates that are not finite count as 0. clip: C > 0,
 * finite. scratch: [n], holds z afterwards, to be wiped by its owner. At most 2^40 units may be
 * added to a sum. */
void dpi_gradient_add(const float *gradient, int64_t n, float clip, int32_t *scratch, int64_t *sum);

/* sum[0..n) += independent draws of round(Normal(0, (sigma D)^2)), D of n; sigma in
 * (0, DPI_GRADIENT_NOISE_MAX]. Errors: ARG, ENTROPY (then sum is zeros). */
dpi_status dpi_gradient_noise(double sigma, int64_t n, dpi_random_fn random, void *user,
                              int64_t *sum, dpi_error *err);

#endif
