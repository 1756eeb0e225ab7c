/* lapack.h - eigenvectors, by LAPACKE. */
#ifndef DPI_EVAL_LAPACK_H
#define DPI_EVAL_LAPACK_H

#include "dpinfer/status.h"

/* The symmetric matrix a [n, n], of which the lower triangle is read, becomes its eigenvectors, one
 * a row, in the order of `values` [n], ascending. Errors: UNSUPPORTED (no LAPACKE), MEMORY,
 * NUMERIC. */
dpi_status eval_eigenvectors(double *a, int32_t n, double *values, dpi_error *err);

#endif
