/* check_sampler.h - tests of the kernels that the sampler uses, for test_kernels.c: every bit is
 * that of ref.c, and that of a plain oracle. */
#ifndef CHECK_SAMPLER_H
#define CHECK_SAMPLER_H

#include "kernels/kernels.h"

/* Each fails the running test on a difference. */
void check_sampler_clip_add(const dpi_kernels *isa, const dpi_kernels *ref);
void check_sampler_clip_range(const dpi_kernels *isa, const dpi_kernels *ref);
void check_sampler_exp2_weights(const dpi_kernels *isa, const dpi_kernels *ref);

#endif
