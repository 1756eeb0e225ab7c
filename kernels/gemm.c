#include "kernels/gemm.h"

#include <cblas.h>

void dpi_gemm_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, const float *w,
                  int64_t n_in, int32_t n_out) {
    /* Debian's OpenBLAS has 32-bit integers; every stride here is below 2^31 (config.c). */
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, DPI_GEMM_ROWS, n_out, (int)n_in, 1.0f, x,
                (int)x_stride, w, (int)n_in, 0.0f, y, (int)y_stride);
}
