/* noise.h - exact discrete Laplace and Gaussian noise on integers, from uniform bits and integers
 * alone. Internal. Source: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential
 * Privacy", Algorithms 1, 2 and 3.
 *
 * Nothing is rounded: every decision is "a uniform integer below n is less than m" with m/n the
 * rational that the proof names. The only departure from the law on all integers is a cap that
 * is reached with probability e^-32768.
 *
 * Trusted: scale and variance are public. Sensitivity, cost and exact distribution stand at each
 * function.
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

/* Variances in units of 1/256. Those above DPI_NOISE_VARIANCE_FINE are whole: multiples of 256. */
#define DPI_NOISE_VARIANCE_MIN 16
#define DPI_NOISE_VARIANCE_FINE (1 << 21)
#define DPI_NOISE_VARIANCE_MAX (1 << 30)

/* *noise = z with probability proportional to e^(-z^2 / (2 s)), s = variance / 256, for every
 * integer z. An integer function of sensitivity 1, with independent noise on each of its
 * coordinates of which a neighbour changes one, is 1/(2 s)-zCDP; of sensitivity D in the Euclidean
 * norm it is D^2/(2 s)-zCDP. Errors: ARG (the variance), ENTROPY. */
dpi_status dpi_noise_gaussian(int64_t variance, dpi_random_fn random, void *user, int64_t *noise,
                              dpi_error *err);
/* Its rho = 128 / variance, rounded up. */
double dpi_rho_gaussian_bound(int64_t variance);
/* The least variance whose rho is at most `rho`; 0: there is none in range. */
int64_t dpi_noise_variance_for(double rho);

/* rho of a pure eps-DP mechanism: eps tanh(eps / 2), rounded up; eps >= 0. dp/PRIVACY.md has the
 * proof. */
double dpi_rho_pure_bound(double eps);

#endif
