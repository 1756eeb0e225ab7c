/* test_noisy_max.c - the largest of noisy integers beside a search by comparison, and its cost
 * beside a value computed with 50 digits. */
#include "dp/exact/noisy_max.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "dp/exact/normal.h"
#include "tests/support/support.h"

/* The first of the largest sums. */
static size_t by_comparison(const int64_t *values, const int64_t *noise, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (values[i] + noise[i] > values[best] + noise[best])
            best = i;
    return best;
}

static void test_index(void **state) {
    (void)state;
    enum { N = 40 };
    int64_t values[N], noise[N];
    uint64_t seed = 5, bits;
    for (int round = 0; round < 20000; round++) {
        assert_int_equal(dpi_random_insecure(&seed, &bits, sizeof bits), 0);
        const size_t n = 1 + bits % N;
        /* Few values, so that there are ties; large ones in each third round. */
        const int64_t unit = round % 3 == 0 ? INT64_C(1) << 45 : 1;
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(dpi_random_insecure(&seed, &bits, sizeof bits), 0);
            values[i] = ((int64_t)(bits % 9) - 4) * unit;
            noise[i] = ((int64_t)(bits >> 32) % 5 - 2) * unit;
        }
        assert_int_equal(dpi_noisy_max(values, noise, n), by_comparison(values, noise, n));
    }
}

static void test_ends(void **state) {
    (void)state;
    const int64_t most = (INT64_C(1) << 52) - 1;
    const int64_t values[3] = {-most, most, most}, none[3] = {0, 0, 0};
    const int64_t noise[3] = {INT64_C(1) << 60, -(INT64_C(1) << 60), 1};
    assert_int_equal(dpi_noisy_max(values, none, 3), 1); /* of equal sums the first one */
    assert_int_equal(dpi_noisy_max(values, noise, 3), 0);
    assert_int_equal(dpi_noisy_max(values, noise, 1), 0);
}

/* D^2 / (2 s^2): exact values that are powers of two, and one that no double holds. Never below. */
static void test_cost(void **state) {
    (void)state;
    const int64_t one = INT64_C(1) << DPI_NORMAL_SHIFT;
    const struct {
        int64_t D, sigma;
        double rho;
    } cases[] = {
        {1, one, .5}, {65536, 65536 * one, .5}, {1 << 20, one, 0x1p39}, {1, 1024 * one, 0x1p-21},
        {3, 7 * one, 9. / 98}, {65536, 12345678901, 15.491723526493578},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double rho = dpi_rho_noisy_max_bound(cases[i].D, cases[i].sigma);
        const double tolerance = 1e-14;
        assert_true(rho >= cases[i].rho);
        assert_true(rho <= cases[i].rho * (1 + tolerance));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
