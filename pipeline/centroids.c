/* centroids.c - see centroids.h. All sums are of doubles, in one order. */
#include "pipeline/centroids.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "dpinfer/kmeans.h"

enum { N_STARTS = 4, N_ROUNDS = 50 };

static const uint64_t SEED = 0x67726f7570; /* any constant: the points are public */

struct dpi_centroids {
    int32_t dim, n_groups;
    double *mean, *scale; /* [dim] of the points: x counts as (x - mean) scale */
    double *at;           /* [n_groups, dim] */
};

static void scale(const dpi_centroids *c, const float *x, double *scaled) {
    for (int32_t d = 0; d < c->dim; d++)
        scaled[d] = ((double)x[d] - c->mean[d]) * c->scale[d];
}

/* Coordinates that are the same for all points do not count. */
static dpi_status measure(dpi_centroids *c, const float *points, int32_t n, dpi_error *err) {
    for (int32_t d = 0; d < c->dim; d++) {
        double sum = 0, squares = 0;
        for (int32_t i = 0; i < n; i++)
            sum += (double)points[(size_t)i * (size_t)c->dim + (size_t)d];
        c->mean[d] = sum / n;
        for (int32_t i = 0; i < n; i++) {
            const double x = (double)points[(size_t)i * (size_t)c->dim + (size_t)d] - c->mean[d];
            squares += x * x;
        }
        if (!isfinite(squares))
            return dpi_fail(err, DPI_STATUS_NUMERIC, "a feature of a public text is not finite");
        c->scale[d] = squares > 0 ? 1 / sqrt(squares / n) : 0;
    }
    return DPI_STATUS_OK;
}

static dpi_status search_groups(dpi_centroids *c, const float *points, int32_t n, dpi_error *err) {
    dpi_kmeans_options o;
    double *scaled = dpi_calloc((size_t)n * (size_t)c->dim, sizeof *scaled);
    if (!scaled)
        return dpi_no_memory(err, "centroids");
    for (size_t i = 0; i < (size_t)n; i++)
        scale(c, points + i * (size_t)c->dim, scaled + i * (size_t)c->dim);
    dpi_kmeans_options_init(&o);
    o.n_groups = c->n_groups;
    o.n_starts = N_STARTS;
    o.n_rounds = N_ROUNDS;
    o.seed = SEED;
    const dpi_status status = dpi_kmeans(scaled, n, c->dim, &o, NULL, c->at, NULL, err);
    free(scaled);
    return status;
}

dpi_status dpi_centroids_make(const float *points, int32_t n_points, int32_t dim, int32_t n_groups,
                              dpi_centroids **centroids, dpi_error *err) {
    DPI_TRY(dpi_check_range("dim", dim, 1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("n_groups", n_groups, 1, n_points, err));
    dpi_centroids *c = dpi_calloc(1, sizeof *c);
    if (!c)
        return dpi_no_memory(err, "centroids");
    *c = (dpi_centroids){.dim = dim, .n_groups = n_groups};
    c->mean = dpi_calloc((size_t)dim, sizeof *c->mean);
    c->scale = dpi_calloc((size_t)dim, sizeof *c->scale);
    c->at = dpi_calloc((size_t)n_groups * (size_t)dim, sizeof *c->at);
    dpi_status status = c->mean && c->scale && c->at ? measure(c, points, n_points, err)
                                                     : dpi_no_memory(err, "centroids");
    if (status == DPI_STATUS_OK)
        status = search_groups(c, points, n_points, err);
    if (status == DPI_STATUS_OK)
        *centroids = c;
    else
        dpi_centroids_free(c);
    return status;
}

void dpi_centroids_free(dpi_centroids *c) {
    if (!c)
        return;
    free(c->mean);
    free(c->scale);
    free(c->at);
    free(c);
}

/* x is scaled as it is looked at: no copy of it stays. */
int32_t dpi_centroids_nearest(const dpi_centroids *c, const float *x) {
    int32_t best = 0;
    double least = INFINITY;
    for (int32_t g = 0; g < c->n_groups; g++) {
        double sum = 0;
        for (int32_t d = 0; d < c->dim; d++) {
            const double step = ((double)x[d] - c->mean[d]) * c->scale[d] -
                                c->at[(size_t)g * (size_t)c->dim + (size_t)d];
            sum += step * step;
        }
        const bool closer = sum < least;
        best = closer ? g : best;
        least = closer ? sum : least;
    }
    return best;
}
