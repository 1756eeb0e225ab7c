/* k-means. The oracle: the best of all partitions of a few points, by enumeration; points around
 * places far from each other, whose groups are known. */
#include "dpinfer/kmeans.h"
#include "tests/support/own.h"
#include "tests/support/support.h"

#include <math.h>

enum { FEW = 9, DIM = 3 };

/* The sum of squared distances to the means of two groups: bit i of `set` is the group of i. That
 * of a group is the sum of squares without the square of the sum, shared. */
static double sum_of_partition(const double *x, unsigned set) {
    double all = 0;
    for (unsigned g = 0; g < 2; g++)
        for (unsigned d = 0; d < DIM; d++) {
            double sum = 0, n = 0;
            for (unsigned i = 0; i < FEW; i++)
                if ((set >> i & 1) == g) {
                    sum += x[i * DIM + d], n++;
                    all += x[i * DIM + d] * x[i * DIM + d];
                }
            all -= n > 0 ? sum * sum / n : 0;
        }
    return all;
}

TEST(test_best_of_all) {
    double x[FEW * DIM], centres[2 * DIM], squares;
    int32_t group[FEW];
    uint64_t seed = 2;
    DEFAULTS(dpi_kmeans_options, o);
    o.n_starts = 200; /* one of them finds the best */
    for (int k = 0; k < 20; k++) {
        double least = INFINITY;
        unsigned set = 0;
        for (int i = 0; i < FEW * DIM; i++)
            x[i] = random_normal(&seed);
        for (unsigned s = 0; s < 1u << FEW; s++)
            least = fmin(least, sum_of_partition(x, s));
        o.uniform = k % 2;
        assert_ok(dpi_kmeans(x, FEW, DIM, &o, group, centres, &squares, ERR));
        assert_true(fabs(squares - least) < 1e-9);
        for (unsigned i = 0; i < FEW; i++)
            set |= (unsigned)group[i] << i;
        assert_true(fabs(sum_of_partition(x, set) - least) < 1e-9);
    }
}

TEST(test_places) {
    enum { N = 60, PLACES = 5 };
    double x[N], centres[PLACES], again[PLACES];
    int32_t group[N];
    uint64_t seed = 3;
    DEFAULTS(dpi_kmeans_options, o);
    o.n_groups = PLACES;
    for (int i = 0; i < N; i++)
        x[i] = 100 * (i % PLACES) + random_uniform(&seed);
    assert_ok(dpi_kmeans(x, N, 1, &o, group, centres, NULL, ERR));
    for (int i = 0; i < N; i++) {
        assert_int_equal(group[i], group[i % PLACES]);
        assert_true(fabs(centres[group[i]] - 100 * (i % PLACES) - .5) < .5);
    }
    assert_ok(dpi_kmeans(x, N, 1, &o, NULL, again, NULL, ERR));
    assert_memory_equal(centres, again, sizeof again);
}

static int32_t stop(void *user) {
    (void)user;
    return 1;
}

TEST(test_refusals) {
    const double x[] = {0, 1, NAN};
    DEFAULTS(dpi_kmeans_options, o);
    assert_error(dpi_kmeans(x, 3, 1, &o, NULL, NULL, NULL, ERR), NUMERIC, "not finite");
    o.n_groups = 3;
    assert_error(dpi_kmeans(x, 2, 1, &o, NULL, NULL, NULL, ERR), ARG, "n_groups");
    o.n_groups = 2, o.cancel = stop;
    assert_error(dpi_kmeans(x, 2, 1, &o, NULL, NULL, NULL, ERR), CANCELLED, "cancelled");
}
