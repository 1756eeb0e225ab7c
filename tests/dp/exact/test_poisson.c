/* test_poisson.c - each unit joins with its own bits and the probability that is accounted for. */
#include "dp/exact/poisson.h"

#include <math.h>

#include "tests/support/support.h"

enum { UNITS = 100000 };
static uint8_t joins[UNITS + 1], again[UNITS + 1];

/* Unit i has joined if the i-th 32 bits are below the share: the definition, of the same bits,
 * which are drawn in blocks. */
TEST(test_definition) {
    enum { N = 2500, BLOCK = 1024 };
    static const int64_t shares[] = {1, 2, 12345, INT64_C(1) << 31, DPI_POISSON_ONE - 1};
    for (const int64_t *share = shares; share < END(shares); share++) {
        uint64_t seed = 9, same = 9;
        uint32_t bits[N];
        for (size_t i = 0; i < N; i += BLOCK)
            dpi_random_insecure(&same, bits + i, (N - i < BLOCK ? N - i : BLOCK) * sizeof *bits);
        assert_ok(dpi_poisson_draw(*share, N, dpi_random_insecure, &seed, joins, ERR));
        for (size_t i = 0; i < N; i++)
            assert_int_equal(joins[i], (int64_t)bits[i] < *share);
    }
}

static int32_t ones(void *user __attribute__((unused)), void *buffer, size_t n_bytes) {
    memset(buffer, 255, n_bytes);
    return 0;
}

/* Bits that are the share itself are not below it. */
TEST(test_edge) {
    assert_ok(dpi_poisson_draw(DPI_POISSON_ONE - 1, 1, ones, NULL, joins, ERR));
    assert_int_equal(joins[0], 0);
}

/* Counts are binomial and neighbours independent: 5 deviations. */
TEST(test_law) {
    static const double qs[] = {.5, .04, .9};
    const double root = sqrt(UNITS);
    uint64_t seed = 3;
    for (int k = 0; k < 3; k++) {
        double q = qs[k], n = 0, pairs = 0, same = 0;
        const int64_t share = (int64_t)(q * (double)DPI_POISSON_ONE);
        assert_ok(dpi_poisson_draw(share, UNITS, dpi_random_insecure, &seed, joins, ERR));
        assert_ok(dpi_poisson_draw(share, UNITS, dpi_random_insecure, &seed, again, ERR));
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

TEST(test_all_join) {
    joins[UNITS] = 7;
    assert_ok(dpi_poisson_draw(DPI_POISSON_ONE, UNITS, NULL, NULL, joins, ERR));
    for (int i = 0; i < UNITS; i++)
        assert_int_equal(joins[i], 1);
    assert_int_equal(joins[UNITS], 7);
    assert_ok(dpi_poisson_draw(1, 0, NULL, NULL, joins, ERR));
}

TEST(test_errors) {
    limited_source source = {3, 2};
    assert_error(dpi_poisson_draw(0, 5, NULL, NULL, joins, ERR), ARG, "0 of 2^32");
    assert_error(dpi_poisson_draw(DPI_POISSON_ONE + 1, 5, NULL, NULL, joins, ERR), ARG,
                 "must be 1..2^32");
    memset(joins, 1, sizeof joins);
    assert_error(dpi_poisson_draw(DPI_POISSON_ONE, UNITS, limited_bits, &source, joins, ERR),
                 ENTROPY, "");
    for (int i = 0; i < UNITS; i++)
        assert_int_equal(joins[i], 0);
}
