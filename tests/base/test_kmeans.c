/* k-means. The oracle: the best of all partitions of a few points, by enumeration; points around
 * places far from each other, whose groups are known. */
#include "dpinfer/kmeans.h"
#include "tests/support/support.h"

#include <math.h>

enum { FEW = 9, DIM = 3 };

/* The sum of squared distances to the means of two groups: bit i of `set` is the group of i. */
static double sum_of_partition(const double *x, unsigned set) {
    double sum = 0;
    for (unsigned g = 0; g < 2; g++)
        for (int d = 0; d < DIM; d++) {
            double mean = 0, n = 0;
            for (unsigned i = 0; i < FEW; i++)
                if ((set >> i & 1) == g) {
                    mean += x[i * DIM + (unsigned)d];
                    n++;
                }
            for (unsigned i = 0; i < FEW && n > 0; i++)
                if ((set >> i & 1) == g)
                    sum += pow(x[i * DIM + (unsigned)d] - mean / n, 2);
        }
    return sum;
}

static void test_best_of_all(void **state) {
    (void)state;
    double x[FEW * DIM], centres[2 * DIM], squares;
    int32_t group[FEW];
    uint64_t seed = 2;
    dpi_kmeans_options o;
    dpi_error err;
    dpi_kmeans_options_init(&o);
    o.n_starts = 200; /* one of them finds the best */
    for (int k = 0; k < 20; k++) {
        double least = INFINITY;
        unsigned set = 0;
        for (int i = 0; i < FEW * DIM; i++)
            x[i] = random_normal(&seed);
        for (unsigned s = 0; s < 1u << FEW; s++)
            least = fmin(least, sum_of_partition(x, s));
        o.uniform = k % 2;
        assert_ok(dpi_kmeans(x, FEW, DIM, &o, group, centres, &squares, &err), &err);
        assert_true(fabs(squares - least) < 1e-9);
        for (unsigned i = 0; i < FEW; i++)
            set |= (unsigned)group[i] << i;
        assert_true(fabs(sum_of_partition(x, set) - least) < 1e-9);
    }
}

static void test_places(void **state) {
    (void)state;
    enum { N = 60, PLACES = 5 };
    double x[N], centres[PLACES], again[PLACES];
    int32_t group[N];
    uint64_t seed = 3;
    dpi_kmeans_options o;
    dpi_error err;
    dpi_kmeans_options_init(&o);
    o.n_groups = PLACES;
    for (int i = 0; i < N; i++)
        x[i] = 100 * (i % PLACES) + random_uniform(&seed);
    assert_ok(dpi_kmeans(x, N, 1, &o, group, centres, NULL, &err), &err);
    for (int i = 0; i < N; i++) {
        assert_int_equal(group[i], group[i % PLACES]);
        assert_true(fabs(centres[group[i]] - 100 * (i % PLACES) - .5) < .5);
    }
    assert_ok(dpi_kmeans(x, N, 1, &o, NULL, again, NULL, &err), &err);
    assert_memory_equal(centres, again, sizeof again);
}

static int32_t stop(void *user) {
    (void)user;
    return 1;
}

static void test_refusals(void **state) {
    (void)state;
    const double x[] = {0, 1, NAN};
    dpi_kmeans_options o;
    dpi_error err;
    dpi_kmeans_options_init(&o);
    assert_error(dpi_kmeans(x, 3, 1, &o, NULL, NULL, NULL, &err), DPI_STATUS_NUMERIC, &err,
                 "not finite");
    o.n_groups = 3;
    assert_error(dpi_kmeans(x, 2, 1, &o, NULL, NULL, NULL, &err), DPI_STATUS_ARG, &err,
                 "n_groups");
    o.n_groups = 2;
    o.cancel = stop;
    assert_error(dpi_kmeans(x, 2, 1, &o, NULL, NULL, NULL, &err), DPI_STATUS_CANCELLED, &err,
                 "cancelled");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_of_all),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
