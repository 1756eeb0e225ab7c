/* Groups of points. The oracle: points around known places far from each other, whose groups are
 * known; and distances by brute force, in units of each coordinate's standard deviation. */
#include "pipeline/centroids.h"
#include "tests/support/support.h"

#include <math.h>

enum { N = 240, DIM = 5, N_PLACES = 6 };

static dpi_centroids *make(const float *points, int32_t n, int32_t dim, int32_t n_groups) {
    dpi_centroids *c = NULL;
    dpi_error err;
    assert_ok(dpi_centroids_make(points, n, dim, n_groups, &c, &err), &err);
    return c;
}

/* Point i is near place i % N_PLACES; coordinate 3 is coordinate 0 in other units, coordinate 4 is
 * constant. */
static void make_points(uint64_t *seed, float points[N][DIM]) {
    float places[N_PLACES][DIM];
    for (int p = 0; p < N_PLACES; p++)
        for (int d = 0; d < DIM; d++)
            places[p][d] = d == p % 3 ? 10 + 20 * (float)(p / 3) : 0;
    for (int i = 0; i < N; i++)
        for (int d = 0; d < DIM; d++) {
            const float x = places[i % N_PLACES][d] + (float)random_normal(seed) / 4;
            points[i][d] = d == 4 ? 7 : d == 3 ? 1e6f * points[i][0] : x;
        }
}

static void test_places(void **state) {
    (void)state;
    static float points[N][DIM];
    uint64_t seed = 3;
    make_points(&seed, points);
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
static void test_nearest(void **state) {
    (void)state;
    enum { FEW = 30 };
    static float points[FEW][DIM], x[DIM];
    uint64_t seed = 4;
    for (int i = 0; i < FEW; i++)
        for (int d = 0; d < DIM; d++)
            points[i][d] = (float)random_normal(&seed) * (float)(1 << d);
    dpi_centroids *c = make(points[0], FEW, DIM, FEW);
    double deviation[DIM];
    for (int d = 0; d < DIM; d++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < FEW; i++) {
            sum += (double)points[i][d];
            squares += (double)points[i][d] * (double)points[i][d];
        }
        deviation[d] = sqrt(squares / FEW - sum * sum / FEW / FEW);
    }
    for (int round = 0; round < 200; round++) {
        int best = 0;
        double least = INFINITY;
        for (int d = 0; d < DIM; d++)
            x[d] = (float)random_normal(&seed) * (float)(1 << d);
        for (int i = 0; i < FEW; i++) {
            double sum = 0;
            for (int d = 0; d < DIM; d++)
                sum += pow(((double)x[d] - (double)points[i][d]) / deviation[d], 2);
            best = sum < least ? i : best;
            least = sum < least ? sum : least;
        }
        assert_int_equal(dpi_centroids_nearest(c, x), dpi_centroids_nearest(c, points[best]));
    }
    dpi_centroids_free(c);
}

/* A private vector may be anything. */
static void test_not_finite(void **state) {
    (void)state;
    static float points[N][DIM], x[DIM];
    uint64_t seed = 5;
    dpi_error err;
    dpi_centroids *c;
    make_points(&seed, points);
    c = make(points[0], N, DIM, 4);
    for (int i = 0; i < 3; i++) {
        x[2] = i == 0 ? NAN : i == 1 ? INFINITY : -3e38f;
        const int32_t group = dpi_centroids_nearest(c, x);
        assert_in_range(group, 0, 3);
    }
    dpi_centroids_free(c);
    points[17][2] = NAN;
    assert_error(dpi_centroids_make(points[0], N, DIM, 4, &c, &err), DPI_STATUS_NUMERIC, &err,
                 "not finite");
}

static void test_edges(void **state) {
    (void)state;
    static const float same[4][2] = {{1, 2}, {1, 2}, {1, 2}, {1, 2}};
    dpi_error err;
    dpi_centroids *c = make(same[0], 4, 2, 3);
    assert_int_equal(dpi_centroids_nearest(c, same[1]), 0); /* the first of several */
    dpi_centroids_free(c);
    c = make(same[0], 4, 2, 1);
    assert_int_equal(dpi_centroids_nearest(c, (const float[]){9, -9}), 0);
    dpi_centroids_free(c);
    assert_error(dpi_centroids_make(same[0], 4, 2, 5, &c, &err), DPI_STATUS_ARG, &err, "n_groups");
    assert_error(dpi_centroids_make(same[0], 4, 2, 0, &c, &err), DPI_STATUS_ARG, &err, "n_groups");
    dpi_centroids_free(NULL);
}

static void test_memory(void **state) {
    (void)state;
    static float points[N][DIM];
    uint64_t seed = 6;
    dpi_error err;
    dpi_centroids *c;
    make_points(&seed, points);
    fail_allocation(0);
    dpi_centroids_free(make(points[0], N, DIM, 4));
    const int64_t n = fail_allocation(0);
    for (int64_t i = 1; i <= n; i++) {
        fail_allocation(i);
        const dpi_status status = dpi_centroids_make(points[0], N, DIM, 4, &c, &err);
        fail_allocation(0);
        assert_error(status, DPI_STATUS_MEMORY, &err, "memory");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),     cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_edges),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
