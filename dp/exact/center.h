/* center.h - where the logits of a reference are centred (docs/spec.md section 1, m_i). Internal.
 *
 *     m_i = log(sum over V of e^(l_i(y))) - the same of the public logits
 * so that a common offset of l_i does not eat the clip range. The arithmetic is IEEE additions
 * and products in a fixed order, without a library function, so that the bits are the same with
 * every compiler and instruction set.
 *
 * Trusted: that the logits are those of one reference. Not trusted: their values.
 * Sensitivity: that of the clip that follows (aggregate.h). Privacy needs only that the centre is a
 * function of one reference and public data: the result may be anything.
 * Cost and distribution: none, nothing is drawn here. The result is PRIVATE.
 * Time: no branch and no address depends on the logits. */
#ifndef DPI_CENTER_H
#define DPI_CENTER_H

#include <stddef.h>
#include <stdint.h>

/* log of the sum of e^logits[y] over the n >= 1 members y of `support`; entries that are not finite
 * weigh nothing. Finite for any bits of `logits`. Relative error of the sum below 2^-45. No branch
 * or address depends on `logits`. */
double dpi_log_mass(const float *logits, const int32_t *support, size_t n);

#endif
