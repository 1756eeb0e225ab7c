/* test_noisy_max.c - the largest of noisy integers beside a search by comparison, and its cost
 * beside a value computed with 50 digits. */
#include "dp/exact/noisy_max.h"
#include "dp/exact/normal.h"
#include "tests/support/support.h"

TEST(test_index) {
    enum { N = 40 };
    int64_t values[N], noise[N];
    uint64_t seed = 5;
    for (int round = 0; round < 20000; round++) {
        const size_t n = 1 + (size_t)random_below(&seed, N);
        /* Few values, so that there are ties; large ones in each third round. */
        const int64_t unit = round % 3 == 0 ? INT64_C(1) << 45 : 1;
        size_t best = 0; /* the first of the largest sums */
        for (size_t i = 0; i < n; i++) {
            values[i] = (random_below(&seed, 9) - 4) * unit;
            noise[i] = (random_below(&seed, 5) - 2) * unit;
            best = values[i] + noise[i] > values[best] + noise[best] ? i : best;
        }
        assert_int_equal(dpi_noisy_max(values, noise, n), best);
    }
}

TEST(test_ends) {
    const int64_t most = (INT64_C(1) << 52) - 1;
    const int64_t values[3] = {-most, most, most}, none[3] = {0, 0, 0};
    const int64_t noise[3] = {INT64_C(1) << 60, -(INT64_C(1) << 60), 1};
    assert_int_equal(dpi_noisy_max(values, none, 3), 1); /* of equal sums the first one */
    assert_int_equal(dpi_noisy_max(values, noise, 3), 0);
    assert_int_equal(dpi_noisy_max(values, noise, 1), 0);
}

/* D^2 / (2 s^2): exact values that are powers of two, and one that no double holds. Never below. */
TEST(test_cost) {
    const int64_t one = INT64_C(1) << DPI_NORMAL_SHIFT;
    const struct row {
        int64_t D, sigma;
        double rho;
    } cases[] = {
        {1, one, .5},           {65536, 65536 * one, .5},
        {1 << 20, one, 0x1p39}, {1, 1024 * one, 0x1p-21},
        {3, 7 * one, 9. / 98},  {65536, 12345678901, 15.491723526493578},
    };
    for (const struct row *r = cases; r < END(cases); r++) {
        const double rho = dpi_rho_noisy_max_bound(r->D, r->sigma);
        assert_true(rho >= r->rho && rho <= r->rho * (1 + 1e-14));
    }
}
