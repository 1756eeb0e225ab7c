/* centroids.c - see centroids.h. All sums are of doubles, in one order. */
#include "pipeline/centroids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"

enum { N_STARTS = 4, N_ROUNDS = 50 };

static const uint64_t SEED = 0x67726f7570; /* any constant: the points are public */

struct dpi_centroids {
    int32_t dim, n_groups;
    double *mean, *scale; /* [dim] of the points: x counts as (x - mean) scale */
    double *at;           /* [n_groups, dim] */
};

/* What the search for centroids needs beside them. */
typedef struct search {
    dpi_centroids *c;
    const double *points; /* [n, dim], scaled */
    int32_t n;
    double *sum;     /* [n_groups, dim] */
    int32_t *size;   /* [n_groups] */
    int32_t *group;  /* [n] */
    double *squared; /* [n] distances to the nearest of the first centroids */
    double *best;    /* [n_groups, dim] of all starts so far */
    double least;    /* sum of squared distances to them */
    uint64_t random;
} search;

static double squared_distance(const double *a, const double *b, int32_t dim) {
    double sum = 0;
    for (int32_t i = 0; i < dim; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* The nearest of the first n centroids. A distance that is no number is larger than all. */
static int32_t nearest(const dpi_centroids *c, int32_t n, const double *x, double *squared) {
    int32_t best = 0;
    *squared = INFINITY;
    for (int32_t g = 0; g < n; g++) {
        const double d = squared_distance(x, c->at + (size_t)g * (size_t)c->dim, c->dim);
        const bool closer = d < *squared;
        best = closer ? g : best;
        *squared = closer ? d : *squared;
    }
    return best;
}

/* ---- The first centroids --------------------------------------------------------------------- */

static double uniform(uint64_t *state) {
    uint64_t bits;
    (void)dpi_random_insecure(state, &bits, sizeof bits); /* it fails without a state only */
    return (double)(bits >> 11) * 0x1p-53;
}

/* A point with a chance in proportion to its squared distance to those before it. */
static int32_t draw_point(search *s, int32_t n_before) {
    double sum = 0;
    for (int32_t i = 0; i < s->n; i++) {
        if (n_before == 0)
            s->squared[i] = 1;
        else
            nearest(s->c, n_before, s->points + (size_t)i * (size_t)s->c->dim, &s->squared[i]);
        sum += s->squared[i];
    }
    double rest = uniform(&s->random) * sum;
    int32_t i = 0;
    while (i < s->n - 1 && rest >= s->squared[i])
        rest -= s->squared[i++];
    return i;
}

static void draw_first(search *s) {
    const size_t dim = (size_t)s->c->dim;
    for (int32_t g = 0; g < s->c->n_groups; g++) {
        const int32_t i = draw_point(s, g);
        memcpy(s->c->at + (size_t)g * dim, s->points + (size_t)i * dim, dim * sizeof *s->c->at);
    }
}

/* ---- Lloyd ----------------------------------------------------------------------------------- */

/* Points to their nearest centroids: the sum of squared distances, and whether one has moved. */
static double assign(search *s, bool *moved) {
    double sum = 0;
    *moved = false;
    for (int32_t i = 0; i < s->n; i++) {
        double squared;
        const int32_t g =
            nearest(s->c, s->c->n_groups, s->points + (size_t)i * (size_t)s->c->dim, &squared);
        *moved |= g != s->group[i];
        s->group[i] = g;
        sum += squared;
    }
    return sum;
}

/* Each centroid to the mean of its points; one without points stays. */
static void average(search *s) {
    const size_t dim = (size_t)s->c->dim, n_groups = (size_t)s->c->n_groups;
    memset(s->sum, 0, n_groups * dim * sizeof *s->sum);
    memset(s->size, 0, n_groups * sizeof *s->size);
    for (int32_t i = 0; i < s->n; i++) {
        s->size[s->group[i]]++;
        for (size_t d = 0; d < dim; d++)
            s->sum[(size_t)s->group[i] * dim + d] += s->points[(size_t)i * dim + d];
    }
    for (size_t g = 0; g < n_groups; g++)
        for (size_t d = 0; d < dim && s->size[g] > 0; d++)
            s->c->at[g * dim + d] = s->sum[g * dim + d] / s->size[g];
}

static void find(search *s) {
    const size_t n_bytes = (size_t)s->c->n_groups * (size_t)s->c->dim * sizeof *s->best;
    s->least = INFINITY;
    for (int32_t start = 0; start < N_STARTS; start++) {
        bool moved;
        draw_first(s);
        double sum = assign(s, &moved);
        moved = true; /* groups of the start before this one do not count */
        for (int32_t round = 0; round < N_ROUNDS && moved; round++) {
            average(s);
            sum = assign(s, &moved);
        }
        if (sum < s->least) {
            s->least = sum;
            memcpy(s->best, s->c->at, n_bytes);
        }
    }
    memcpy(s->c->at, s->best, n_bytes);
}

/* ---- All of it ------------------------------------------------------------------------------- */

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
    const size_t size = (size_t)c->n_groups * (size_t)c->dim, n_points = (size_t)n;
    double *scaled = dpi_calloc(n_points * (size_t)c->dim, sizeof *scaled);
    search s = {.c = c, .points = scaled, .n = n, .random = SEED};
    s.sum = dpi_calloc(size, sizeof *s.sum);
    s.best = dpi_calloc(size, sizeof *s.best);
    s.size = dpi_calloc((size_t)c->n_groups, sizeof *s.size);
    s.group = dpi_calloc(n_points, sizeof *s.group);
    s.squared = dpi_calloc(n_points, sizeof *s.squared);
    const bool ok = scaled && s.sum && s.best && s.size && s.group && s.squared;
    for (size_t i = 0; i < n_points && ok; i++)
        scale(c, points + i * (size_t)c->dim, scaled + i * (size_t)c->dim);
    if (ok)
        find(&s);
    free(scaled);
    free(s.sum);
    free(s.best);
    free(s.size);
    free(s.group);
    free(s.squared);
    return ok ? DPI_STATUS_OK : dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for centroids");
}

dpi_status dpi_centroids_make(const float *points, int32_t n_points, int32_t dim, int32_t n_groups,
                              dpi_centroids **centroids, dpi_error *err) {
    DPI_TRY(dpi_check_range("dim", dim, 1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("n_groups", n_groups, 1, n_points, err));
    dpi_centroids *c = dpi_calloc(1, sizeof *c);
    if (!c)
        return dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for centroids");
    *c = (dpi_centroids){.dim = dim, .n_groups = n_groups};
    c->mean = dpi_calloc((size_t)dim, sizeof *c->mean);
    c->scale = dpi_calloc((size_t)dim, sizeof *c->scale);
    c->at = dpi_calloc((size_t)n_groups * (size_t)dim, sizeof *c->at);
    dpi_status status = c->mean && c->scale && c->at
                            ? measure(c, points, n_points, err)
                            : dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for centroids");
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
