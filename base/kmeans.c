/* kmeans.c - see dpinfer/kmeans.h. All sums are of doubles, in one order. */
#include "dpinfer/kmeans.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"

typedef struct search {
    const dpi_kmeans_options *o;
    const double *points; /* [n, dim] */
    int32_t n, dim;
    double *at;           /* [n_groups, dim] */
    double *sum;          /* [n_groups, dim] */
    int32_t *size;        /* [n_groups] */
    int32_t *group;       /* [n] */
    double *squared;      /* [n] distances to the nearest of the first centres */
    double *best;         /* [n_groups, dim] of all starts so far */
    int32_t *best_group;  /* [n] */
    double least;         /* sum of squared distances to them */
    uint64_t random;
} search;

DPI_STRUCT_DEFAULTS(dpi_kmeans_options, .n_groups = 2, .n_starts = 5, .n_rounds = 500, .seed = 1)

/* Four sums side by side: one would wait for each addition. */
static double squared_distance(const double *a, const double *b, int32_t dim) {
    double sum[4] = {0};
    int32_t i = 0;
    for (; i + 4 <= dim; i += 4)
        for (int32_t k = 0; k < 4; k++)
            sum[k] += (a[i + k] - b[i + k]) * (a[i + k] - b[i + k]);
    for (; i < dim; i++)
        sum[0] += (a[i] - b[i]) * (a[i] - b[i]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* ---- The first centres ----------------------------------------------------------------------- */

static double uniform(uint64_t *state) {
    uint64_t bits;
    (void)dpi_random_insecure(state, &bits, sizeof bits); /* it fails without a state only */
    return (double)(bits >> 11) * 0x1p-53;
}

/* A point with a chance in proportion to its squared distance to those before it. */
static int32_t draw_point(search *s, int32_t n_before) {
    double sum = 0;
    for (int32_t i = 0; i < s->n; i++) {
        const double *x = s->points + (size_t)i * (size_t)s->dim;
        if (n_before == 0) {
            s->squared[i] = 1;
        } else {
            const double *last = s->at + (size_t)(n_before - 1) * (size_t)s->dim;
            const double d = squared_distance(x, last, s->dim);
            s->squared[i] = n_before == 1 || d < s->squared[i] ? d : s->squared[i];
        }
        sum += s->squared[i];
    }
    double rest = uniform(&s->random) * sum;
    int32_t i = 0;
    while (i < s->n - 1 && rest >= s->squared[i])
        rest -= s->squared[i++];
    return i;
}

/* A point that is none of those before it. squared: 0 where it is one. */
static int32_t draw_any(search *s, int32_t n_before) {
    int32_t i = 0, rest = (int32_t)(uniform(&s->random) * (s->n - n_before));
    for (int32_t k = 0; k < s->n && n_before == 0; k++)
        s->squared[k] = 1;
    while (rest > 0 || s->squared[i] == 0)
        rest -= s->squared[i++] > 0;
    s->squared[i] = 0;
    return i;
}

static void draw_first(search *s) {
    const size_t dim = (size_t)s->dim;
    for (int32_t g = 0; g < s->o->n_groups; g++) {
        const int32_t i = s->o->uniform ? draw_any(s, g) : draw_point(s, g);
        memcpy(s->at + (size_t)g * dim, s->points + (size_t)i * dim, dim * sizeof *s->at);
    }
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static int32_t nearest(const search *s, const double *x, double *squared) {
    int32_t best = 0;
    *squared = INFINITY;
    for (int32_t g = 0; g < s->o->n_groups; g++) {
        const double d = squared_distance(x, s->at + (size_t)g * (size_t)s->dim, s->dim);
        const bool closer = d < *squared;
        best = closer ? g : best;
        *squared = closer ? d : *squared;
    }
    return best;
}

/* Points to their nearest centres: the sum of squared distances, and whether one has moved. */
static double assign(search *s, bool *moved) {
    double sum = 0;
    *moved = false;
    for (int32_t i = 0; i < s->n; i++) {
        double squared;
        const int32_t g = nearest(s, s->points + (size_t)i * (size_t)s->dim, &squared);
        *moved |= g != s->group[i];
        s->group[i] = g;
        sum += squared;
    }
    return sum;
}

/* Each centre to the mean of its points; one without points stays. */
static void average(search *s) {
    const size_t dim = (size_t)s->dim, n_groups = (size_t)s->o->n_groups;
    memset(s->sum, 0, n_groups * dim * sizeof *s->sum);
    memset(s->size, 0, n_groups * sizeof *s->size);
    for (int32_t i = 0; i < s->n; i++) {
        s->size[s->group[i]]++;
        for (size_t d = 0; d < dim; d++)
            s->sum[(size_t)s->group[i] * dim + d] += s->points[(size_t)i * dim + d];
    }
    for (size_t g = 0; g < n_groups; g++)
        for (size_t d = 0; d < dim && s->size[g] > 0; d++)
            s->at[g * dim + d] = s->sum[g * dim + d] / s->size[g];
}

static dpi_status find(search *s, dpi_error *err) {
    const size_t n_bytes = (size_t)s->o->n_groups * (size_t)s->dim * sizeof *s->best;
    s->least = INFINITY;
    for (int32_t start = 0; start < s->o->n_starts; start++) {
        bool moved;
        draw_first(s);
        double sum = assign(s, &moved);
        moved = true; /* groups of the start before this one do not count */
        for (int32_t round = 0; round < s->o->n_rounds && moved; round++) {
            if (s->o->cancel && s->o->cancel(s->o->cancel_user))
                return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while groups are searched");
            average(s);
            sum = assign(s, &moved);
        }
        if (sum < s->least) {
            s->least = sum;
            memcpy(s->best, s->at, n_bytes);
            memcpy(s->best_group, s->group, (size_t)s->n * sizeof *s->group);
        }
    }
    return DPI_STATUS_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static dpi_status check(const double *points, int32_t n_points, int32_t dim,
                        const dpi_kmeans_options *o, dpi_error *err) {
    if (!points)
        return dpi_fail(err, DPI_STATUS_ARG, "points must not be NULL");
    DPI_TRY(dpi_check_range("dim", dim, 1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("n_groups", o->n_groups, 1, n_points, err));
    DPI_TRY(dpi_check_range("n_starts", o->n_starts, 1, INT32_MAX, err));
    DPI_TRY(dpi_check_range("n_rounds", o->n_rounds, 1, INT32_MAX, err));
    double sum = 0;
    for (size_t i = 0; i < (size_t)n_points * (size_t)dim; i++)
        sum += points[i] * points[i];
    return isfinite(sum) ? DPI_STATUS_OK
                         : dpi_fail(err, DPI_STATUS_NUMERIC, "a point is not finite");
}

static bool make_room(search *s) {
    const size_t size = (size_t)s->o->n_groups * (size_t)s->dim, n = (size_t)s->n;
    s->at = dpi_calloc(size, sizeof *s->at);
    s->sum = dpi_calloc(size, sizeof *s->sum);
    s->best = dpi_calloc(size, sizeof *s->best);
    s->size = dpi_calloc((size_t)s->o->n_groups, sizeof *s->size);
    s->group = dpi_calloc(n, sizeof *s->group);
    s->best_group = dpi_calloc(n, sizeof *s->best_group);
    s->squared = dpi_calloc(n, sizeof *s->squared);
    return s->at && s->sum && s->best && s->size && s->group && s->best_group && s->squared;
}

dpi_status dpi_kmeans(const double *points, int32_t n_points, int32_t dim,
                      const dpi_kmeans_options *options, int32_t *group, double *centres,
                      double *squares, dpi_error *err) {
    DPI_COPY_STRUCT(dpi_kmeans_options, o, options, err);
    DPI_TRY(check(points, n_points, dim, &o, err));
    search s = {.o = &o, .points = points, .n = n_points, .dim = dim, .random = o.seed};
    dpi_status status = make_room(&s) ? find(&s, err) : dpi_no_memory(err, "k-means");
    if (status == DPI_STATUS_OK && group)
        memcpy(group, s.best_group, (size_t)n_points * sizeof *group);
    if (status == DPI_STATUS_OK && centres)
        memcpy(centres, s.best, (size_t)o.n_groups * (size_t)dim * sizeof *centres);
    if (status == DPI_STATUS_OK && squares)
        *squares = s.least;
    free(s.at);
    free(s.sum);
    free(s.best);
    free(s.size);
    free(s.group);
    free(s.best_group);
    free(s.squared);
    return status;
}
