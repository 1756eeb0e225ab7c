/* votes.h - which of some public candidates private units are nearest to, as a noisy histogram of
 * votes in integers. Internal. Source: Xie et al. 2024, "Differentially Private Synthetic Data via
 * Foundation Model APIs 2: Text", Algorithm 2, with the noise in integers.
 *
 * A candidate and a record are vectors. Trusted: the candidates' vectors depend on public data
 * alone, a record's on itself and public data alone; the bits of both may be any. Of the unit of
 * privacy only the candidates that its records are nearest to count.
 *
 * Sensitivity: a unit adds integers whose Euclidean norm is at most DPI_VOTE_ONE, or nothing. Cost:
 * dpi_rho_votes_bound. Law: exact, dp/PRIVACY.md section 25. Threads: as the random source. */
#ifndef DPI_VOTES_H
#define DPI_VOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpinfer/status.h"

/* What the vote of a unit with one record counts. */
enum { DPI_VOTE_ONE = 16, DPI_VOTE_RECORDS_MAX = 64 };

/* The index of the candidate [n, dim] that x [dim] is nearest to, the first of several; -1: an
 * entry of x is not finite, or no candidate's distance is. Each coordinate counts in units of
 * 1 / weights [dim] >= 0. usable [n]: 0: the candidate is left out. All entries are looked at,
 * whatever x is; sums of doubles in one order. */
int32_t dpi_votes_nearest(const float *candidates, const uint8_t *usable, int32_t n, int32_t dim,
                          const double *weights, const float *x);

/* Adds the votes of one unit to votes [n]: nearest [n_records] has the candidate of each of its
 * records, -1: none; those beyond DPI_VOTE_RECORDS_MAX do not count. With c_i records for
 * candidate i, it gets floor(DPI_VOTE_ONE c_i / sqrt(sum of c^2)). */
void dpi_votes_add(const int32_t *nearest, int32_t n_records, int64_t *votes, int32_t n);

/* votes [n] += discrete Gaussian noise of the variance (noise.h), drawn anew for each candidate,
 * also for those without a vote. Errors: ARG (the variance), ENTROPY; votes are then zeros. */
DPI_MUST_CHECK dpi_status dpi_votes_release(int64_t *votes, int32_t n, int64_t variance,
                                            dpi_random_fn random, void *user, dpi_error *err);

/* rho of one histogram, DPI_VOTE_ONE^2 / (2 s), s = variance / 256, rounded up. */
double dpi_rho_votes_bound(int64_t variance);
/* The least variance whose rho is at most `rho`; 0: there is none in range. */
int64_t dpi_votes_variance_for(double rho);

#endif
