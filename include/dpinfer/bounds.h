/* bounds.h - bounds of chances from counts, and of epsilon from guesses. Pure functions. */
#ifndef DPINFER_BOUNDS_H
#define DPINFER_BOUNDS_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Chance that n tosses of a coin of chance p show k heads or more. */
DPI_API double dpi_binomial_tail(int32_t n, int32_t k, double p);
/* Clopper and Pearson 1934: p is above (below) it, with confidence 1 - alpha, after k of n. */
DPI_API double dpi_binomial_lower(int32_t n, int32_t k, double alpha);
DPI_API double dpi_binomial_upper(int32_t n, int32_t k, double alpha);
/* Of n_canaries, each there by a fair coin, n_guesses were guessed, n_right of them rightly: what
 * was run is (epsilon, delta)-DP for no epsilon below this, with confidence 1 - alpha; at least 0.
 * Source: Steinke, Nasr and Jagielski 2023, Theorem 5.2. */
DPI_API double dpi_canary_epsilon(int32_t n_canaries, int32_t n_guesses, int32_t n_right,
                                  double delta, double alpha);

#ifdef __cplusplus
}
#endif
#endif
