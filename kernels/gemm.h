/* gemm.h - dense f32 and f64 products through OpenBLAS. Internal.
 *
 * OpenBLAS is opened where a product needs it and nowhere else: it starts threads of its own and
 * takes tens of megabytes as soon as it is in a process. The CMake option DPI_BLAS says how:
 *   load  libopenblas.so.0 is found at run time, by dpi_blas_open
 *   link  the program is linked with it (for static programs), and opening costs nothing
 *
 * dpi_gemm_f32 has one fixed shape. OpenBLAS picks micro-kernels by shape, so the bits of a row may
 * depend on how many rows there are and on where it stands. Both are therefore fixed: always
 * DPI_GEMM_ROWS rows (those not in use hold anything), a token at position p in row
 * p % DPI_GEMM_ROWS, and column tiles that depend on the matrix alone. Then a row is again a
 * function of itself and the weights (dp/PRIVACY.md, section 1). */
#ifndef DPI_GEMM_H
#define DPI_GEMM_H

#include <stdint.h>

#include "dpinfer/status.h"

enum { DPI_GEMM_ROWS = 64 };

/* Arguments of cblas_sgemm and cblas_dgemm, with their numbers. Debian's OpenBLAS has 32-bit
 * integers. */
enum { DPI_BLAS_ROW_MAJOR = 101, DPI_BLAS_PLAIN = 111, DPI_BLAS_TRANSPOSED = 112 };
typedef void dpi_sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k,
                          float alpha, const float *a, int a_stride, const float *b, int b_stride,
                          float beta, float *c, int c_stride);
typedef void dpi_dgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k,
                          double alpha, const double *a, int a_stride, const double *b,
                          int b_stride, double beta, double *c, int c_stride);

/* OpenBLAS, open. All zero: not open. Safe from several threads. */
typedef struct dpi_blas {
    void *library; /* of dlopen(3); NULL where it is linked */
    dpi_sgemm_fn *sgemm;
    dpi_dgemm_fn *dgemm;
    void (*set_n_threads)(int n); /* of its own threads, in the whole process */
} dpi_blas;

/* The owner gives it back with dpi_blas_close. *blas is all zero after a failure.
 * Errors: UNSUPPORTED (it is not installed), MEMORY (n_threads threads have no room for it). */
DPI_MUST_CHECK dpi_status dpi_blas_open(dpi_blas *blas, int32_t n_threads, dpi_error *err);
/* *blas may be all zero, and is afterwards. */
void dpi_blas_close(dpi_blas *blas);

/* y[r * y_stride + o] = sum_k x[r * x_stride + k] * w[o * n_in + k], r < DPI_GEMM_ROWS,
 * o < n_out. Safe from several threads. */
void dpi_gemm_f32(const dpi_blas *blas, float *y, int64_t y_stride, const float *x,
                  int64_t x_stride, const float *w, int64_t n_in, int32_t n_out);

#endif
