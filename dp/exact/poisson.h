/* poisson.h - who is in a step: each unit joins with one probability, independently of all else.
 * Internal. Source: dp/PRIVACY.md section 17.
 *
 * The probability is a fraction of 2^32, so that a comparison of integers decides and the
 * accountant's q is exactly the program's.
 *
 * Trusted: share and n_units are public. Who has joined, and how many, is PRIVATE.
 * Exact distribution: independent, each 1 with probability share / 2^32.
 * Sensitivity and cost: none of its own. It divides the cost of the step that follows, as the
 * accountant of the subsampled Gaussian has it (section 17).
 * Time: depends on n_units alone. Threads: as the random source. */
#ifndef DPI_POISSON_H
#define DPI_POISSON_H

#include <stddef.h>
#include <stdint.h>

#include "dpinfer/status.h"

#define DPI_POISSON_ONE (INT64_C(1) << 32)

/* joins[i] = 1 with probability share / DPI_POISSON_ONE, else 0, from 32 bits of its own; share in
 * 1..DPI_POISSON_ONE. joins [n_units] is to be wiped by its owner.
 * Errors: ARG, ENTROPY; then joins holds zeros. */
DPI_MUST_CHECK dpi_status dpi_poisson_draw(int64_t share, size_t n_units, dpi_random_fn random,
                                           void *user, uint8_t *joins, dpi_error *err);

#endif
