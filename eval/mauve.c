/* mauve.c - see mauve.h. */
#include "eval/mauve.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/kmeans.h"
#include "eval/fail.h"
#include "eval/lapack.h"

#define VARIANCE_KEPT .9
enum { DIMS_MAX = 8192, POINTS_MAX = 1 << 20 };

void mauve_options_init(mauve_options *o) {
    *o = (mauve_options){.n_seeds = 5, .seed = 25, .scaling = 5};
}

/* ---- Histograms ------------------------------------------------------------------------------ */

/* A score without what rounding adds to it. */
static double within_1(double score) { return fmin(fmax(score, 0), 1); }

/* KL(p, r) where r is w p + (1 - w) q; below 0 it is by rounding alone. */
static double divergence(const double *p, const double *q, double w, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        if (p[i] > 0)
            sum += p[i] * log(p[i] / (w * p[i] + (1 - w) * q[i]));
    return fmax(sum, 0);
}

/* The area under the points by the trapezoids between them. x does not fall, y does not rise. */
static double area(const double *x, const double *y, int32_t n) {
    double sum = 0;
    for (int32_t i = 1; i < n; i++)
        sum += fabs(x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2;
    return sum;
}

/* Twice the mean over w of the divergences to the mixture, in closed form. */
static double frontier_integral(const double *p, const double *q, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++) {
        if (p[i] == 0 || q[i] == 0)
            sum += (p[i] + q[i]) / 4;
        else if (fabs(p[i] - q[i]) > 1e-8)
            sum += (p[i] + q[i]) / 4 -
                   p[i] * q[i] * (log(p[i]) - log(q[i])) / (p[i] - q[i]) / 2;
    }
    return 2 * sum;
}

void mauve_of_histograms(const double *p, const double *q, int32_t n, double scaling,
                         double *mauve, double *integral, mauve_score *curve) {
    double x[MAUVE_WEIGHTS + 2], y[MAUVE_WEIGHTS + 2];
    x[0] = y[MAUVE_WEIGHTS + 1] = 0;
    y[0] = x[MAUVE_WEIGHTS + 1] = 1;
    for (int32_t i = 0; i < MAUVE_WEIGHTS; i++) {
        const double w = 1e-6 + (1 - 2e-6) * i / (MAUVE_WEIGHTS - 1);
        x[MAUVE_WEIGHTS - i] = exp(-scaling * divergence(q, p, 1 - w, n));
        y[MAUVE_WEIGHTS - i] = exp(-scaling * divergence(p, q, w, n));
    }
    *mauve = within_1((area(x, y, MAUVE_WEIGHTS + 2) + area(y, x, MAUVE_WEIGHTS + 2)) / 2);
    *integral = within_1(frontier_integral(p, q, n));
    if (curve) {
        memcpy(curve->x, x, sizeof x);
        memcpy(curve->y, y, sizeof y);
    }
}

/* ---- Principal components -------------------------------------------------------------------- */

/* Both sets, p first: [n, dim], of which each row has length 1. */
typedef struct points {
    double *at;
    int32_t n, dim;
} points;

static dpi_status check(const eval_vectors *p, const eval_vectors *q, dpi_error *err) {
    if (p->dim != q->dim || p->dim < 1 || p->dim > DIMS_MAX)
        return eval_fail(err, DPI_STATUS_ARG, "features: found %d and %d dimensions, allowed "
                         "1..%d, the same", (int)p->dim, (int)q->dim, DIMS_MAX);
    if (p->n < 2 || q->n < 2 || p->n > POINTS_MAX || q->n > POINTS_MAX)
        return eval_fail(err, DPI_STATUS_ARG, "features: found %d and %d texts, allowed 2..%d",
                         (int)p->n, (int)q->n, POINTS_MAX);
    return DPI_STATUS_OK;
}

static dpi_status unit_rows(const eval_vectors *v, double *out, dpi_error *err) {
    for (int32_t i = 0; i < v->n; i++) {
        const float *x = v->at + (size_t)i * (size_t)v->dim;
        double *row = out + (size_t)i * (size_t)v->dim, sum = 0;
        for (int32_t d = 0; d < v->dim; d++)
            sum += (double)x[d] * (double)x[d];
        if (!isfinite(sum))
            return eval_fail(err, DPI_STATUS_NUMERIC, "features: a number is not finite");
        for (int32_t d = 0; d < v->dim; d++)
            row[d] = sum > 0 ? (double)x[d] / sqrt(sum) : 0;
    }
    return DPI_STATUS_OK;
}

/* Takes the mean away; the lower triangle of the sum of x x^T, into square [dim, dim]. */
static void covariance(const points *x, double *square) {
    const size_t dim = (size_t)x->dim;
    for (size_t d = 0; d < dim; d++) {
        double mean = 0;
        for (int32_t i = 0; i < x->n; i++)
            mean += x->at[(size_t)i * dim + d];
        mean /= x->n;
        for (int32_t i = 0; i < x->n; i++)
            x->at[(size_t)i * dim + d] -= mean;
    }
    memset(square, 0, dim * dim * sizeof *square);
    for (int32_t i = 0; i < x->n; i++) {
        const double *row = x->at + (size_t)i * dim;
        for (size_t a = 0; a < dim; a++)
            for (size_t b = 0; b <= a; b++)
                square[a * dim + b] += row[a] * row[b];
    }
}

/* The least number of largest values that hold the share of the variance. */
static int32_t dims_that_hold(const double *values, int32_t dim, double share) {
    double all = 0, sum = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < dim; i++)
        all += values[i] > 0 ? values[i] : 0;
    while (n < dim && (n == 0 || sum < share * all)) {
        sum += values[dim - 1 - n] > 0 ? values[dim - 1 - n] : 0;
        n++;
    }
    return n;
}

static double dot(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* x becomes its first components, those that hold `share` of the variance. map [n, 2] gets the
 * first two of all; NULL: none. */
static dpi_status project(points *x, double share, double *map, dpi_error *err) {
    const size_t dim = (size_t)x->dim;
    double *square = calloc(dim * dim, sizeof *square), *values = calloc(dim, sizeof *values);
    double *row = calloc(dim, sizeof *row);
    dpi_status status = square && values && row ? DPI_STATUS_OK : eval_no_memory(err, "components");
    if (status == DPI_STATUS_OK) {
        covariance(x, square);
        status = eval_eigenvectors(square, x->dim, values, err);
    }
    const size_t n = status == DPI_STATUS_OK ? (size_t)dims_that_hold(values, x->dim, share) : 0;
    for (size_t i = 0; i < (size_t)x->n && status == DPI_STATUS_OK; i++) {
        memcpy(row, x->at + i * dim, dim * sizeof *row);
        for (size_t k = 0; k < n; k++) /* before what is still to be read */
            x->at[i * n + k] = dot(square + (dim - 1 - k) * dim, row, dim);
        for (size_t k = 0; k < 2 && map; k++)
            map[2 * i + k] = k < dim ? dot(square + (dim - 1 - k) * dim, row, dim) : 0;
    }
    x->dim = (int32_t)n;
    free(square);
    free(values);
    free(row);
    return status;
}

/* Both sets in their components. x->at is the caller's, to be freed also after a failure. */
static dpi_status components(const eval_vectors *p, const eval_vectors *q, points *x, double *map,
                             dpi_error *err) {
    *x = (points){0};
    EVAL_TRY(check(p, q, err));
    *x = (points){.n = p->n + q->n, .dim = p->dim};
    x->at = calloc((size_t)x->n * (size_t)x->dim, sizeof *x->at);
    if (!x->at)
        return eval_no_memory(err, "features");
    EVAL_TRY(unit_rows(p, x->at, err));
    EVAL_TRY(unit_rows(q, x->at + (size_t)p->n * (size_t)p->dim, err));
    return project(x, VARIANCE_KEPT, map, err);
}

/* ---- MAUVE ----------------------------------------------------------------------------------- */

static dpi_status score_of_seed(const points *x, int32_t n_p, const mauve_options *o,
                                int32_t n_clusters, uint64_t seed, mauve_score *s, double *mauve,
                                double *integral, int32_t *group, dpi_error *err) {
    dpi_kmeans_options k;
    dpi_kmeans_options_init(&k);
    k.n_groups = n_clusters;
    k.seed = seed;
    k.n_starts = MAUVE_STARTS;
    k.n_rounds = MAUVE_ROUNDS;
    k.uniform = 1; /* as in the code of the metric's authors: better groups give lower scores */
    k.cancel = o->cancel;
    k.cancel_user = o->cancel_user;
    double *p = calloc(2 * (size_t)n_clusters, sizeof *p), *q = p ? p + n_clusters : NULL;
    dpi_status status = p ? dpi_kmeans(x->at, x->n, x->dim, &k, group, NULL, NULL, err)
                          : eval_no_memory(err, "MAUVE");
    for (int32_t i = 0; i < x->n && status == DPI_STATUS_OK; i++) {
        if (i < n_p)
            p[group[i]] += 1.0 / n_p;
        else
            q[group[i]] += 1.0 / (x->n - n_p);
    }
    if (status == DPI_STATUS_OK)
        mauve_of_histograms(p, q, n_clusters, o->scaling, mauve, integral, s);
    free(p);
    return status;
}

/* Mean and standard deviation of x [n]. */
static void over_seeds(const double *x, int32_t n, double *mean, double *deviation) {
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i];
    *mean = sum / n;
    for (int32_t i = 0; i < n; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *deviation = n > 1 ? sqrt(squares / (n - 1)) : 0;
}

/* group [x->n] is that of the first seed in the end: it comes last. */
static dpi_status score_all(const points *x, int32_t n_p, const mauve_options *o, mauve_score *s,
                            int32_t *group, dpi_error *err) {
    double integral[MAUVE_SEEDS_MAX];
    for (int32_t i = o->n_seeds - 1; i >= 0; i--)
        EVAL_TRY(score_of_seed(x, n_p, o, s->n_clusters, o->seed + (uint64_t)i,
                               i == 0 ? s : NULL, &s->of_seed[i], &integral[i], group, err));
    over_seeds(s->of_seed, o->n_seeds, &s->mauve, &s->deviation);
    over_seeds(integral, o->n_seeds, &s->integral, &s->integral_deviation);
    return DPI_STATUS_OK;
}

dpi_status eval_mauve(const eval_vectors *p, const eval_vectors *q, const mauve_options *o,
                      mauve_score *s, double *map, int32_t *group, dpi_error *err) {
    points x;
    int32_t *own = NULL;
    *s = (mauve_score){0};
    if (o->n_seeds < 1 || o->n_seeds > MAUVE_SEEDS_MAX)
        return eval_fail(err, DPI_STATUS_ARG, "n_seeds: found %d, allowed 1..%d", (int)o->n_seeds,
                         MAUVE_SEEDS_MAX);
    dpi_status status = components(p, q, &x, map, err);
    const int32_t fewer = p->n < q->n ? p->n : q->n;
    const int32_t by_rule = (int32_t)fmax(2, rint(fewer / 10.0));
    s->n_clusters = o->n_clusters > 0 ? o->n_clusters : by_rule;
    s->n_dims = x.dim;
    s->n_seeds = o->n_seeds;
    if (status == DPI_STATUS_OK && s->n_clusters > x.n)
        status = eval_fail(err, DPI_STATUS_ARG, "clusters: found %d, allowed 2..%d, the texts",
                           (int)s->n_clusters, (int)x.n);
    if (status == DPI_STATUS_OK && !group && !(own = calloc((size_t)x.n, sizeof *own)))
        status = eval_no_memory(err, "MAUVE");
    if (status == DPI_STATUS_OK)
        status = score_all(&x, p->n, o, s, group ? group : own, err);
    free(own);
    free(x.at);
    return status;
}

/* ---- Neighbours ------------------------------------------------------------------------------ */

static double squared_distance(const float *a, const float *b, int32_t dim) {
    double sum = 0;
    for (int32_t d = 0; d < dim; d++)
        sum += ((double)a[d] - (double)b[d]) * ((double)a[d] - (double)b[d]);
    return sum;
}

/* Squared distance of each vector to its k-th nearest other one, into radius [n]. */
static void find_radii(const eval_vectors *v, int32_t k, double *radius) {
    double least[16];
    for (int32_t i = 0; i < v->n; i++) {
        for (int32_t r = 0; r < k; r++)
            least[r] = INFINITY;
        for (int32_t j = 0; j < v->n; j++) {
            const size_t dim = (size_t)v->dim;
            double d = j == i ? INFINITY
                              : squared_distance(v->at + (size_t)i * dim, v->at + (size_t)j * dim,
                                                 v->dim);
            for (int32_t r = 0; r < k; r++) {
                const double larger = fmax(d, least[r]);
                least[r] = fmin(d, least[r]);
                d = larger;
            }
        }
        radius[i] = least[k - 1];
    }
}

/* Share of `of` that is in a ball around `around`. */
static double covered(const eval_vectors *of, const eval_vectors *around, const double *radius) {
    int32_t n = 0;
    for (int32_t i = 0; i < of->n; i++) {
        bool is_in = false;
        for (int32_t j = 0; j < around->n && !is_in; j++)
            is_in = squared_distance(of->at + (size_t)i * (size_t)of->dim,
                                     around->at + (size_t)j * (size_t)of->dim,
                                     of->dim) <= radius[j];
        n += is_in;
    }
    return (double)n / of->n;
}

dpi_status eval_neighbours(const eval_vectors *p, const eval_vectors *q, int32_t k,
                           double *precision, double *recall, dpi_error *err) {
    EVAL_TRY(check(p, q, err));
    if (k < 1 || k > 16 || k >= p->n || k >= q->n)
        return eval_fail(err, DPI_STATUS_ARG, "neighbours: found %d, allowed 1..16, fewer than the "
                         "texts of each set", (int)k);
    const int32_t most = p->n > q->n ? p->n : q->n;
    double *radius = calloc((size_t)most, sizeof *radius);
    if (!radius)
        return eval_no_memory(err, "neighbours");
    find_radii(q, k, radius);
    *precision = covered(p, q, radius);
    find_radii(p, k, radius);
    *recall = covered(q, p, radius);
    free(radius);
    return DPI_STATUS_OK;
}
