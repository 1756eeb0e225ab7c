/* gemm.h - dense f32 products through OpenBLAS, in one fixed shape. Internal.
 *
 * OpenBLAS picks micro-kernels by shape, so the bits of a row may depend on how many rows there
 * are and on where it stands. Both are therefore fixed: always DPI_GEMM_ROWS rows (those not in
 * use hold anything), a token at position p in row p % DPI_GEMM_ROWS, and column tiles that depend
 * on the matrix alone. Then a row is again a function of itself and the weights (docs/spec.md
 * section 3). */
#ifndef DPI_GEMM_H
#define DPI_GEMM_H

#include <stdint.h>

enum { DPI_GEMM_ROWS = 64 };

/* y[r * y_stride + o] = sum_k x[r * x_stride + k] * w[o * n_in + k], r < DPI_GEMM_ROWS,
 * o < n_out. Safe from several threads; OpenBLAS should be set to one thread of its own, since
 * the caller is parallel already. */
void dpi_gemm_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, const float *w,
                  int64_t n_in, int32_t n_out);

#endif
