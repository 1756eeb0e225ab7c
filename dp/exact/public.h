/* public.h - the part of a step that is a function of public data: P and V_k+. Internal.
 *
 * Trusted: that the logits and the tokens that are allowed are functions of public data and of
 * released tokens.
 * Sensitivity and cost: none, as no record is read. That the support is the same for neighbours is
 * Lemma 2 of dp/PRIVACY.md: it follows from P, K and the slack alone.
 * Exact: P is an integer; the support is found by comparison of integers, ties included.
 * Time: branches and addresses may depend on all of it. */
#ifndef DPI_PUBLIC_H
#define DPI_PUBLIC_H

#include "dpinfer/status.h"

#define DPI_LOGIT_MAX 1e4 /* magnitude of a public logit */

/* fixed[n] = P = rne((p - max p) * 2^20), saturated at -1e4 logits; *top (may be NULL) = the most
 * likely token, lowest id on ties. Errors: NUMERIC (not finite or beyond 1e4). */
dpi_status dpi_public_fix(const float *logits, int32_t n, int64_t *fixed, int32_t *top,
                          dpi_error *err);
/* The same for a step that may draw the n_allowed (>= 1) tokens `allowed` alone: P below their
 * maximum. Other entries of fixed are as above, and the same logits are refused. */
dpi_status dpi_public_fix_among(const float *logits, int32_t n, const int32_t *allowed,
                                int32_t n_allowed, int64_t *fixed, dpi_error *err);
/* support = V_k+ = { y : D P(y) >= D P_(top_k) - slack }, ties included, ascending; top_k = 0:
 * everything. Returns n_support. (dp/PRIVACY.md, Lemma 2.) */
size_t dpi_support_find(const int64_t *fixed, int32_t n, int32_t top_k, int64_t D, int64_t slack,
                        int32_t *support);
/* The same on the vocabulary `which` [n], ascending, n >= 1: a step that may draw these tokens
 * alone. support is not `which`. */
size_t dpi_support_find_among(const int64_t *fixed, const int32_t *which, int32_t n, int32_t top_k,
                              int64_t D, int64_t slack, int32_t *support);

#endif
