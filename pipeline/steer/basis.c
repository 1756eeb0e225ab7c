/* basis.c - the directions in which public texts differ most, by orthogonal iteration: plain loops
 * over doubles, which give the same bits whatever the number of threads. Any rows would do for the
 * guarantee, which asks for public ones alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "pipeline/steer/steer.h"

enum { ITERATIONS = 12 };

static double product(const double *a, const double *b, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(double *to, double by, const double *from, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        to[i] += by * from[i];
}

/* Makes rows [rank, n] orthonormal. One that lies in the span of those before it becomes zeros. */
static void straighten(double *rows, int32_t rank, int32_t n) {
    for (int32_t i = 0; i < rank; i++) {
        double *row = rows + (int64_t)i * n;
        const double before = sqrt(product(row, row, n));
        for (int k = 0; k < 2; k++) /* the second time takes off what rounding has left */
            for (int32_t j = 0; j < i; j++)
                add(row, -product(row, rows + (int64_t)j * n, n), rows + (int64_t)j * n, n);
        const double length = sqrt(product(row, row, n));
        const double by = length > 1e-9 * before ? 1 / length : 0;
        for (int32_t c = 0; c < n; c++)
            row[c] *= by;
    }
}

/* Rows to begin with: each time the text that is furthest from the span of those before. left
 * [n_texts, n] has the texts without their mean, and is used up. */
static void begin(double *left, int64_t n_texts, int32_t n, int32_t rank, double *rows) {
    double first = 0;
    memset(rows, 0, (size_t)rank * (size_t)n * sizeof *rows);
    for (int32_t i = 0; i < rank; i++) {
        int64_t furthest = 0;
        double most = 0;
        for (int64_t t = 0; t < n_texts; t++) {
            const double square = product(left + t * n, left + t * n, n);
            furthest = square > most ? t : furthest;
            most = square > most ? square : most;
        }
        first = i == 0 ? most : first;
        if (!(most > 1e-18 * first)) /* what is left is rounding */
            return;
        double *row = rows + (int64_t)i * n;
        memcpy(row, left + furthest * n, (size_t)n * sizeof *row);
        straighten(rows, i + 1, n);
        for (int64_t t = 0; t < n_texts; t++)
            add(left + t * n, -product(left + t * n, row, n), row, n);
    }
}

/* rows = rows A'A, A [n_texts, n] the texts without their mean. */
static void multiply(const double *a, int64_t n_texts, int32_t n, int32_t rank, double *made,
                     double *rows) {
    memset(made, 0, (size_t)rank * (size_t)n * sizeof *made);
    for (int32_t i = 0; i < rank; i++)
        for (int64_t t = 0; t < n_texts; t++)
            add(made + (int64_t)i * n, product(rows + (int64_t)i * n, a + t * n, n), a + t * n, n);
    memcpy(rows, made, (size_t)rank * (size_t)n * sizeof *made);
}

dpi_status dpi_steer_basis_find(const double *texts, int64_t n_texts, int64_t stride,
                                const double *mean, int32_t n, int32_t rank, double *basis,
                                dpi_error *err) {
    const size_t n_all = (size_t)n_texts * (size_t)n, n_basis = (size_t)rank * (size_t)n;
    double *a = dpi_calloc(n_all + 1, sizeof *a);
    double *made = dpi_calloc((n_all > n_basis ? n_all : n_basis) + 1, sizeof *made);
    if (!a || !made) {
        free(a), free(made);
        return dpi_no_memory(err, "the directions of public texts");
    }
    for (int64_t t = 0; t < n_texts; t++)
        for (int32_t c = 0; c < n; c++)
            a[t * n + c] = texts[t * stride + c] - mean[c];
    memcpy(made, a, n_all * sizeof *made);
    begin(made, n_texts, n, rank, basis);
    for (int k = 0; k < ITERATIONS; k++) {
        multiply(a, n_texts, n, rank, made, basis);
        straighten(basis, rank, n);
    }
    free(a), free(made);
    return DPI_STATUS_OK;
}
