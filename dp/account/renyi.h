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

/* rho-zCDP: A rho. */
double dpi_renyi_of_zcdp(int32_t order, double rho);
/* Bounded range eta in (0, 1e6]: exact, and no more than A eta^2 / 8 and eta. */
double dpi_renyi_of_range(int32_t order, double eta);
/* Pure epsilon: that of randomised response. */
double dpi_renyi_of_pure(int32_t order, double epsilon);
/* The Gaussian mechanism with noise multiplier sigma on a Poisson sample with rate q in (0, 1]. */
double dpi_renyi_of_gaussian(int32_t order, double sigma, double q);
/* A mechanism of divergence d against the absence of a record that joins with probability q. */
double dpi_renyi_of_subsample(int32_t order, double d, double q);

#endif
