/* mass.h - probabilities as integers that never add up to more than one. Internal.
 *
 * Trusted: nothing of the logits but that they are a function of one unit and public data.
 * Sensitivity: a unit's vector of masses is non-negative and adds up to 2^30 at most, so that its
 * Euclidean norm is at most 2^30. To empty a slot moves a sum of such vectors by no more.
 * Cost and distribution: none, nothing is drawn here. A mass is PRIVATE.
 * Time: no branch and no address depends on the logits. */
#ifndef DPI_MASS_H
#define DPI_MASS_H

#include <stddef.h>
#include <stdint.h>

enum {
    DPI_MASS_BITS = 30, /* a probability p is the integer floor(2^30 p) */
    DPI_MASS_ONE = 1 << DPI_MASS_BITS,
};

/* mass[n] = floor(2^30 softmax(logits)) at temperature 1, to 2^-30 relative; values that are not
 * finite count as the lowest float. For ANY bits of `logits`, mass >= 0 and sum(mass) <= 2^30
 * exactly. PRIVATE. No branch and no address depends on the logits. n in [1, 2^18]. */
void dpi_mass(const float *logits, size_t n, int64_t *mass);

#endif
