/* lapack.c - see lapack.h. */
#include "eval/lapack.h"

#include <dlfcn.h>
#include <lapacke.h>

#include "eval/fail.h"
#include "eval/loaded.h"

typedef lapack_int syevd_fn(int, char, char, lapack_int, double *, lapack_int, double *);

dpi_status eval_eigenvectors(double *a, int32_t n, double *values, dpi_error *err) {
    void *library;
    syevd_fn *syevd;
    const size_t work = (1 + 6 * (size_t)n + 2 * (size_t)n * (size_t)n) * sizeof *a;
    EVAL_TRY(eval_library_open("liblapacke.so.3", "liblapacke", work, &library, err));
    dpi_status status = eval_library_find(library, "LAPACKE_dsyevd", &syevd, err);
    if (status == DPI_STATUS_OK) {
        /* What is an eigenvector column by column is a row of it row by row. */
        const lapack_int info = syevd(LAPACK_COL_MAJOR, 'V', 'U', n, a, n, values);
        status = info == 0 ? DPI_STATUS_OK
                           : eval_fail(err, DPI_STATUS_NUMERIC, "no eigenvectors of %d "
                                       "dimensions: LAPACKE_dsyevd gave %d", (int)n, (int)info);
    }
    dlclose(library);
    return status;
}
