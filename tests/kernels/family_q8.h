/* family_q8.h - rows in 8 bits, for the check of their kernel and for those of products. */
#ifndef KERNEL_FAMILY_Q8_H
#define KERNEL_FAMILY_Q8_H

#include "tests/kernels/family.h"

/* Room for n_rows rows of n 8-bit activations. */
dpi_q8 q8_alloc(int32_t n_rows, int64_t n);
void q8_free(dpi_q8 *x);
/* Rows of x [n_rows, n] in 8 bits, as a pass writes them. */
void q8_fill(const dpi_kernels *k, dpi_q8 *to, const float *x, int32_t n_rows, int64_t n,
             int32_t form);

#endif
