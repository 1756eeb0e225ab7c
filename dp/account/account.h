/* account.h - what a token costs, from the integers that the sampler uses. Internal.
 *
 * Every function returns an upper bound of the real-number value: the arithmetic is double, and
 * each operation is followed by a step up (account.c). Pure functions.
 *
 * The chain: a change of one record moves the utilities of the candidates by numbers that lie
 * in an interval of integer length `range` (2K for replace-by-null, docs/spec.md section 1), so
 * the log weights move in an interval of length eta, so the token is eta^2/8-zCDP. Another
 * adjacency is another `range` for the same K; an individual filter passes a record's own. */
#ifndef DPI_ACCOUNT_H
#define DPI_ACCOUNT_H

#include <stdbool.h>

#include "dpinfer/account.h"

/* Largest K of docs/spec.md section 2. */
#define DPI_CLIP_MAX INT64_C(0x7fffffff)

/* Length of the interval of changes per unit of the clip bound: the one place that knows the
 * adjacency. 2: c_j in [-K, K] becomes 0 or goes away (replace-by-null, add/remove).
 * 4: c_j in [-K, K] becomes another number in [-K, K] (zero-out). */
enum { DPI_RANGE_REPLACE_BY_NULL = 2, DPI_RANGE_ZERO_OUT = 4 };

/* range * a * ln2 / 2^48 + 2^-38; range in [0, 2^34], a as dpi_weights_scale gives it. The
 * 2^-38 covers the rounding of integer weights (weights.c). */
double dpi_eta_bound(int64_t range, uint64_t a);
/* Bounded range eta is eta^2 / 8 zCDP (Cesar and Rogers 2021). */
double dpi_rho_token_bound(double eta);
/* One sum with Gaussian noise of multiplier sigma > 0. */
double dpi_rho_sum_bound(double sigma);
/* n tokens of at most rho_token each. */
double dpi_rho_total_bound(double rho_token, int32_t n_tokens);

/* Largest K in [1, DPI_CLIP_MAX] such that n_tokens tokens of range factor * K cost at most
 * rho; 0 if there is none. */
int64_t dpi_clip_calibrate(uint64_t a, int32_t factor, int32_t n_tokens, double rho);
/* Largest K in [1, DPI_CLIP_MAX] such that a token of range factor * K has a bounded range of at
 * most eta; 0 if there is none. */
int64_t dpi_clip_fit(uint64_t a, int32_t factor, double eta);

/* As dpi_br_epsilon, and in half of the time where the result is at most 1e-5 of it below
 * `guess`. */
dpi_status dpi_br_epsilon_below(double eta, int32_t n_tokens, double delta, double guess,
                                double *epsilon, dpi_error *err);

/* As dpi_zcdp_delta, without its checks. */
double dpi_zcdp_delta_bound(double rho, double epsilon);
/* delta[n] as dpi_br_delta has it, at n ascending epsilons > 0: all from one computation, which
 * takes some times that of one. Between its grid points it is an upper bound. Errors: MEMORY. */
dpi_status dpi_br_curve(double eta, int32_t n_tokens, const double *epsilon, size_t n,
                        double *delta, dpi_error *err);

/* OK if value is in (0, max], or (0, max) if `open`; NaN is refused. Errors: ARG. */
dpi_status dpi_account_check(const char *name, double value, double max, bool open, dpi_error *err);

#endif
