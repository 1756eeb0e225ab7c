/* gradient_support.h - what the tests of gradients share: OpenBLAS with one thread, random arrays,
 * and derivatives by finite differences. */
#ifndef DPI_GRADIENT_SUPPORT_H
#define DPI_GRADIENT_SUPPORT_H

#include "base/mem.h"
#include "kernels/gemm.h"
#include "tests/support/support.h"

static dpi_blas one_thread; /* open from set_up to tear_down */

static inline int set_up(void **state) {
    (void)state;
    dpi_error err;
    if (dpi_blas_open(&one_thread, 1, &err) != DPI_STATUS_OK)
        fail_msg("%s", err.message);
    one_thread.set_n_threads(1);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    dpi_blas_close(&one_thread);
    return 0;
}

/* n normal numbers; the caller's. */
static inline double *random_array(int64_t n, uint64_t *state) {
    double *x = dpi_calloc((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = random_normal(state);
    return x;
}

typedef double scalar_fn(void *context);

/* The derivative of f by *x, of which f is a function: a central difference of fourth order. */
static inline double derivative(scalar_fn *f, void *context, double *x) {
    const double step = 1e-4, kept = *x;
    double at[5];
    for (int i = -2; i <= 2; i++) {
        *x = kept + i * step;
        at[i + 2] = f(context);
    }
    *x = kept;
    return (at[0] - 8 * at[1] + 8 * at[3] - at[4]) / (12 * step);
}

#endif
