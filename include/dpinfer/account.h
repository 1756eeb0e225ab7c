/* account.h - what a budget means: conversions between rho, epsilon and delta, and composition.
 * No model is needed. */
#ifndef DPINFER_ACCOUNT_H
#define DPINFER_ACCOUNT_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* zCDP to approximate DP, by the optimal order (docs/spec.md 4.1). Each returns the safe end:
 * delta and epsilon are upper bounds, rho is a lower bound.
 * Ranges: rho in (0, 1e6], epsilon in (0, 1e6], delta in (0, 1). Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_delta(double rho, double epsilon, double *delta,
                                                 dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_epsilon(double rho, double delta, double *epsilon,
                                                   dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_rho(double epsilon, double delta, double *rho,
                                               dpi_error *err);

#define DPI_BR_TOKENS_MAX 16384

/* n_tokens tokens, each of bounded range eta and each chosen knowing the ones before: the exact
 * worst case over adaptive adversaries (docs/spec.md 4.2), discretised upwards. Tighter than zCDP.
 * delta and epsilon are upper bounds (epsilon within 1e-9 of what dpi_br_delta gives), eta is
 * the largest that fits, less 1e-9 of it at most.
 * Ranges: eta in (0, 1e3], n_tokens 1..DPI_BR_TOKENS_MAX, epsilon in (0, 1e6], delta in (0, 1).
 * Time: some 30 ms for delta at 500 tokens, ten times that for the other two.
 * Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_br_delta(double eta, int32_t n_tokens, double epsilon,
                                               double *delta, dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_br_epsilon(double eta, int32_t n_tokens, double delta,
                                                 double *epsilon, dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_br_eta(double epsilon, double delta, int32_t n_tokens,
                                             double *eta, dpi_error *err);

/* Secret assignment: each record independently joins one of the batches with total probability
 * q in (0, 1], else none (docs/spec.md 4.4). If the mechanism without it is (epsilon, delta)-DP
 * against the absence of a record, in both directions, then with it the run is
 * (ln(1 + q (e^epsilon - 1)), q delta)-DP. The assignment and the sizes of batches must stay
 * secret and be drawn anew for each run.
 * dpi_subsample_outside: what the run has, upper bounds. dpi_subsample_inside: what the mechanism
 * without it may have so that the run has (epsilon, delta), lower bounds. Ranges as above.
 * Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_subsample_outside(double epsilon, double delta, double q,
                                                        double *epsilon_run, double *delta_run,
                                                        dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_subsample_inside(double epsilon_run, double delta_run,
                                                       double q, double *epsilon, double *delta,
                                                       dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
