/* Groups of points. The oracle: points around known places far from each other, whose groups are
 * known; and distances by brute force, in units of each coordinate's standard deviation. */
#include "pipeline/centroids.h"
#include "tests/support/support.h"

#include <math.h>

enum { N = 240, DIM = 5, N_PLACES = 6 };

static float points[N][DIM];

/* Point i is near place i % N_PLACES; coordinate 3 is coordinate 0 in other units, coordinate 4 is
 * constant. */
SETUP {
    uint64_t seed = 3;
    for (int i = 0; i < N; i++)
        for (int d = 0; d < DIM; d++) {
            const int p = i % N_PLACES;
            const float place = d == p % 3 ? 10 + 20 * (float)(p / 3) : 0;
            const float x = place + (float)random_normal(&seed) / 4;
            points[i][d] = d == 4 ? 7 : d == 3 ? 1e6f * points[i][0] : x;
        }
}

static dpi_centroids *make(const float *from, int32_t n, int32_t dim, int32_t n_groups) {
    dpi_centroids *c = NULL;
    assert_ok(dpi_centroids_make(from, n, dim, n_groups, &c, ERR));
    return c;
}

TEST(test_places) {
    dpi_centroids *c = make(points[0], N, DIM, N_PLACES);
    dpi_centroids *again = make(points[0], N, DIM, N_PLACES);
    int32_t group_of[N_PLACES];
    for (int p = 0; p < N_PLACES; p++) {
        group_of[p] = dpi_centroids_nearest(c, points[p]);
        for (int q = 0; q < p; q++)
            assert_int_not_equal(group_of[p], group_of[q]);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(dpi_centroids_nearest(c, points[i]), group_of[i % N_PLACES]);
        assert_int_equal(dpi_centroids_nearest(again, points[i]), group_of[i % N_PLACES]);
    }
    dpi_centroids_free(c);
    dpi_centroids_free(again);
}

/* As many groups as points: the centroids are the points, and the nearest one is known. */
TEST(test_nearest) {
    enum { FEW = 30 };
    static float few[FEW][DIM], x[DIM];
    double sum[DIM] = {0}, squares[DIM] = {0};
    uint64_t seed = 4;
    for (int i = 0; i < FEW; i++)
        for (int d = 0; d < DIM; d++) {
            few[i][d] = (float)random_normal(&seed) * (float)(1 << d);
            sum[d] += (double)few[i][d];
            squares[d] += (double)few[i][d] * (double)few[i][d];
        }
    dpi_centroids *c = make(few[0], FEW, DIM, FEW);
    for (int round = 0; round < 200; round++) {
        int best = 0;
        double least = INFINITY;
        for (int d = 0; d < DIM; d++)
            x[d] = (float)random_normal(&seed) * (float)(1 << d);
        for (int i = 0; i < FEW; i++) {
            double distance = 0;
            for (int d = 0; d < DIM; d++) {
                const double variance = squares[d] / FEW - sum[d] * sum[d] / FEW / FEW;
                distance += pow((double)x[d] - (double)few[i][d], 2) / variance;
            }
            best = distance < least ? i : best;
            least = fmin(distance, least);
        }
        assert_int_equal(dpi_centroids_nearest(c, x), dpi_centroids_nearest(c, few[best]));
    }
    dpi_centroids_free(c);
}

/* A private vector may be anything; public points may not. */
TEST(test_not_finite) {
    static const float values[] = {NAN, INFINITY, -3e38f};
    dpi_centroids *c = make(points[0], N, DIM, 4);
    for (int i = 0; i < 3; i++)
        assert_in_range(dpi_centroids_nearest(c, (const float[DIM]){[2] = values[i]}), 0, 3);
    dpi_centroids_free(c);
    const float kept = points[17][2];
    points[17][2] = NAN;
    const dpi_status status = dpi_centroids_make(points[0], N, DIM, 4, &c, ERR);
    points[17][2] = kept;
    assert_error(status, NUMERIC, "not finite");
}

TEST(test_edges) {
    static const float same[4][2] = {{1, 2}, {1, 2}, {1, 2}, {1, 2}};
    dpi_centroids *c = make(same[0], 4, 2, 3);
    assert_int_equal(dpi_centroids_nearest(c, same[1]), 0); /* the first of several */
    dpi_centroids_free(c);
    c = make(same[0], 4, 2, 1);
    assert_int_equal(dpi_centroids_nearest(c, (const float[]){9, -9}), 0);
    dpi_centroids_free(c);
    assert_error(dpi_centroids_make(same[0], 4, 2, 5, &c, ERR), ARG, "n_groups");
    assert_error(dpi_centroids_make(same[0], 4, 2, 0, &c, ERR), ARG, "n_groups");
    dpi_centroids_free(NULL);
}

TEST(test_memory) {
    dpi_centroids *c;
    fail_allocation(0);
    dpi_centroids_free(make(points[0], N, DIM, 4));
    const int64_t n = fail_allocation(0);
    for (int64_t i = 1; i <= n; i++) {
        fail_allocation(i);
        const dpi_status status = dpi_centroids_make(points[0], N, DIM, 4, &c, ERR);
        fail_allocation(0);
        assert_error(status, MEMORY, "memory");
    }
}
