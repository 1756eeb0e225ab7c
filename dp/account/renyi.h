/* renyi.h - Renyi divergences of one integer order, rounded up. Internal; dpinfer/account.h has
 * what is made of them.
 *
 * Each function returns an upper bound of the largest divergence D_A(P || Q) over all pairs that
 * the condition allows, in both directions. dp/PRIVACY.md section 14 has the proofs. Arithmetic:
 * doubles. Sums have terms of one sign but for a few differences; each result has a margin of
 * 2^-45 of the sum of its terms' magnitudes. Library functions are trusted to 4 units in the last
 * place. Pure functions. */
#ifndef DPI_RENYI_H
#define DPI_RENYI_H

#include <stdint.h>

/* The Gaussian mechanism with noise multiplier sigma on a Poisson sample with rate q in (0, 1]. */
double dpi_renyi_of_gaussian(int32_t order, double sigma, double q);

#endif
