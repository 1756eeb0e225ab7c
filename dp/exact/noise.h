/* noise.h - exact discrete Laplace noise on integers, from uniform bits and integers alone.
 * Internal. Source: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential
 * Privacy", Algorithms 1 and 2. Their Algorithm 3, the discrete Gaussian, is drawn from it: its
 * place is in this file.
 *
 * Nothing is rounded: every decision is "a uniform integer below n is less than m" with m/n the
 * rational that the proof names. The only departure from the law on all integers is a cap that
 * is reached with probability e^-32768.
 *
 * Time: the number of random words and of rounds depends on the noise that comes out (larger
 * noise needs more), on the scale and on the random bits, and on nothing else: the functions
 * never see the value that the noise is added to. The time of a single draw tells something about
 * that noise, and so about the noisy comparison; dp/PRIVACY.md puts timing out of scope.
 * Threads: as the random source. Errors: ENTROPY, then *noise is unchanged. */
#ifndef DPI_NOISE_H
#define DPI_NOISE_H

#include <stdbool.h>

#include "dpinfer/status.h"

/* Largest scale: a draw of noise, |noise| < 2^15 * scale, and its sum with another or with a
 * distance fit int64. */
#define DPI_NOISE_SCALE_MAX (INT64_C(1) << 46)

/* *noise = z with probability (e^(1/scale) - 1) / (e^(1/scale) + 1) * e^(-|z| / scale), for
 * every integer z; scale in [1, DPI_NOISE_SCALE_MAX]. Two neighbouring values of an integer
 * function of sensitivity D are e^(D / scale) apart at most: pure (D / scale)-DP. */
dpi_status dpi_noise_laplace(int64_t scale, dpi_random_fn random, void *user, int64_t *noise,
                             dpi_error *err);

/* rho of a pure eps-DP mechanism: eps tanh(eps / 2), rounded up; eps >= 0. dp/PRIVACY.md has the
 * proof. */
double dpi_rho_pure_bound(double eps);

#endif
