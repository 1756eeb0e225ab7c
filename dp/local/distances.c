#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/local/local.h"
#include "dpinfer/process.h"

enum { ROWS = 4, COLUMNS = 1024 }; /* of a tile: its sums stay in L1 */

/* sum[r][j] = squared distance of word first + r to word begin + j. `transposed` [dim, n] has the
 * vectors as columns, so that the loop over j has no sum across lanes and is the same everywhere.
 */
static void add_squares(const double *transposed, int32_t n, int32_t dim, const int32_t *rows,
                        int32_t n_rows, int32_t begin, int32_t n_columns,
                        double sum[ROWS][COLUMNS]) {
    for (int32_t r = 0; r < n_rows; r++)
        for (int32_t j = 0; j < n_columns; j++)
            sum[r][j] = 0;
    for (int32_t k = 0; k < dim; k++) {
        const double *x = transposed + (size_t)k * (size_t)n;
        for (int32_t r = 0; r < n_rows; r++) {
            const double centre = x[rows[r]];
            for (int32_t j = 0; j < n_columns; j++) {
                const double gap = x[begin + j] - centre;
                sum[r][j] += gap * gap;
            }
        }
    }
}

/* Rounds a tile. false: a distance is not below 4096. */
static bool store(double sum[ROWS][COLUMNS], int32_t n, const int32_t *rows, int32_t n_rows,
                  int32_t begin, int32_t n_columns, uint32_t *distance) {
    bool fits = true;
    for (int32_t r = 0; r < n_rows; r++) {
        uint32_t *to = distance + (size_t)rows[r] * (size_t)n + (size_t)begin;
        for (int32_t j = 0; j < n_columns; j++) {
            const double d = rint(ldexp(sqrt(sum[r][j]), DPI_LOCAL_SHIFT));
            const bool ok = d < 0x1p32; /* false for NaN as well */
            fits &= ok;
            to[j] = ok ? (uint32_t)d : 0;
        }
    }
    return fits;
}

static bool measure_rows(const double *transposed, int32_t n, int32_t dim, int32_t first,
                         uint32_t *distance) {
    double sum[ROWS][COLUMNS];
    int32_t rows[ROWS];
    const int32_t n_rows = n - first < ROWS ? n - first : ROWS;
    bool fits = true;
    for (int32_t r = 0; r < n_rows; r++)
        rows[r] = first + r;
    for (int32_t begin = 0; begin < n; begin += COLUMNS) {
        const int32_t n_columns = n - begin < COLUMNS ? n - begin : COLUMNS;
        add_squares(transposed, n, dim, rows, n_rows, begin, n_columns, sum);
        fits &= store(sum, n, rows, n_rows, begin, n_columns, distance);
    }
    return fits;
}

dpi_status dpi_local_distances(const float *vectors, int32_t n, int32_t dim, int32_t n_threads,
                               uint32_t *distance, dpi_error *err) {
    n_threads = dpi_process_threads(n_threads ? n_threads : dpi_processors());
    double *transposed = dpi_calloc((size_t)n * (size_t)dim, sizeof *transposed);
    if (!transposed)
        return dpi_no_memory(err, "%d vectors of %d numbers", n, dim);
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < dim; k++)
            transposed[(size_t)k * (size_t)n + (size_t)i] =
                (double)vectors[(size_t)i * (size_t)dim + (size_t)k];
    int fits = 1;
#pragma omp parallel for schedule(dynamic, 8) num_threads(n_threads) reduction(& : fits)
    for (int32_t first = 0; first < n; first += ROWS)
        fits &= measure_rows(transposed, n, dim, first, distance);
    free(transposed);
    return fits ? DPI_STATUS_OK
                : dpi_fail(err, DPI_STATUS_NUMERIC,
                           "vectors: a distance between two words is no number "
                           "below 4096");
}
