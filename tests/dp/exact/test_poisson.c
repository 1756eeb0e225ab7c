/* test_poisson.c - each unit joins with its own bits and the probability that is accounted for. */
#include "dp/exact/poisson.h"

#include <math.h>

#include "tests/support/support.h"

enum { UNITS = 100000 };
static uint8_t joins[UNITS + 1], again[UNITS + 1];

/* Unit i has joined if the i-th 32 bits are below the share: the definition, of the same bits. */
static void test_definition(void **state) {
    (void)state;
    static const int64_t shares[] = {1, 2, 12345, INT64_C(1) << 31, DPI_POISSON_ONE - 1};
    for (size_t s = 0; s < 5; s++) {
        uint64_t seed = 9, same = 9;
        assert_ok(dpi_poisson_draw(shares[s], 2500, dpi_random_insecure, &seed, joins, NULL), NULL);
        for (size_t i = 0; i < 2500; i += 1024) {
            uint32_t bits[1024];
            const size_t n = 2500 - i < 1024 ? 2500 - i : 1024;
            assert_int_equal(dpi_random_insecure(&same, bits, n * sizeof *bits), 0);
            for (size_t j = 0; j < n; j++)
                assert_int_equal(joins[i + j], (int64_t)bits[j] < shares[s]);
        }
    }
}

/* Counts are binomial and neighbours independent: 5 deviations. */
static void test_law(void **state) {
    (void)state;
    static const double qs[] = {.5, .04, .9};
    uint64_t seed = 3;
    for (int k = 0; k < 3; k++) {
        const double q = qs[k], root = sqrt(UNITS);
        double n = 0, pairs = 0, same = 0;
        const int64_t share = (int64_t)(q * (double)DPI_POISSON_ONE);
        assert_ok(dpi_poisson_draw(share, UNITS, dpi_random_insecure, &seed, joins, NULL), NULL);
        assert_ok(dpi_poisson_draw(share, UNITS, dpi_random_insecure, &seed, again, NULL), NULL);
        for (int i = 0; i < UNITS; i++) {
            n += joins[i];
            pairs += i > 0 && joins[i] && joins[i - 1];
            same += joins[i] && again[i];
        }
        assert_true(fabs(n - q * UNITS) < 5 * root * sqrt(q * (1 - q)));
        assert_true(fabs(pairs - q * q * UNITS) < 10 * root * q);
        assert_true(fabs(same - q * q * UNITS) < 5 * root * q);
    }
}

static void test_all_join(void **state) {
    (void)state;
    joins[UNITS] = 7;
    assert_ok(dpi_poisson_draw(DPI_POISSON_ONE, UNITS, NULL, NULL, joins, NULL), NULL);
    for (int i = 0; i < UNITS; i++)
        assert_int_equal(joins[i], 1);
    assert_int_equal(joins[UNITS], 7);
    assert_ok(dpi_poisson_draw(1, 0, NULL, NULL, joins, NULL), NULL);
}

static void test_errors(void **state) {
    (void)state;
    dpi_error err;
    limited_source source = {3, 2};
    assert_error(dpi_poisson_draw(0, 5, NULL, NULL, joins, &err), DPI_STATUS_ARG, &err,
                 "0 of 2^32");
    assert_error(dpi_poisson_draw(DPI_POISSON_ONE + 1, 5, NULL, NULL, joins, &err), DPI_STATUS_ARG,
                 &err, "must be 1..2^32");
    memset(joins, 1, sizeof joins);
    assert_int_equal(dpi_poisson_draw(DPI_POISSON_ONE, UNITS, limited_bits, &source, joins, &err),
                     DPI_STATUS_ENTROPY);
    for (int i = 0; i < UNITS; i++)
        assert_int_equal(joins[i], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_law),
        cmocka_unit_test(test_all_join),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
