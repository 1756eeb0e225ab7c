/* test_magnitude.c - |discrete Laplace noise| from few bits: against logarithms in long double,
 * against its own long arithmetic at the ends of each cell, and draws against the closed form. */
#include "dp/local/magnitude.h"
#include "tests/oracle/statistics.h"
#include "tests/support/support.h"

static dpi_magnitude_tables t;

SETUP { dpi_magnitude_tables_fill(&t); }

/* Scales of all sizes, and first bits small and large. */
static void pick(uint64_t *seed, int i, int64_t *scale, uint32_t *u) {
    *scale = 1 + (int64_t)(random_u64(seed) & ((UINT64_C(1) << i % 23) - 1));
    *u = (uint32_t)random_u64(seed) >> i / 23 % 24;
}

/* What the first bits say is floor(-s ln X) at both ends of their cell, computed elsewhere. */
TEST(test_first_bits) {
    enum { TIMES = 400000 };
    uint64_t seed = 1, m;
    int n_said = 0;
    for (int i = 0; i < TIMES; i++) {
        int64_t scale;
        uint32_t u;
        pick(&seed, i, &scale, &u);
        if (!dpi_magnitude_of(&t, scale, u, &m))
            continue;
        n_said++;
        const long double s = (long double)scale;
        assert_true((uint64_t)floorl(-s * logl((u + 0x1p-40L) / 0x1p32L)) == m);
        assert_true((uint64_t)floorl(-s * logl((u + 1 - 0x1p-30L) / 0x1p32L)) == m);
    }
    assert_true(n_said > TIMES / 2);
    /* It is asked for more bits seldom: some 22 scale / 2^32. */
    int n_more = 0;
    for (int i = 0; i < TIMES; i++)
        n_more += !dpi_magnitude_of(&t, 20000, (uint32_t)random_u64(&seed), &m);
    assert_true(n_more < 4 * 22 * 20000. / 0x1p32 * TIMES + 20);
}

TEST(test_more_bits) {
    uint64_t seed = 2, m;
    uint32_t least[7] = {0}, most[7];
    int n_different = 0;
    memset(most, 255, sizeof most);
    for (int i = 0; i < 20000; i++) {
        int64_t scale;
        uint32_t u;
        pick(&seed, i, &scale, &u);
        const uint64_t low = dpi_magnitude_exactly(scale, u, most);
        if (u > 0) { /* X = 0 has no logarithm */
            const uint64_t high = dpi_magnitude_exactly(scale, u, least);
            if (dpi_magnitude_of(&t, scale, u, &m))
                assert_true(low == m && high == m);
            assert_true(low <= high);
            n_different += low < high;
        }
        /* Bits that are neither: in long double, where that is sure. */
        const uint32_t some[7] = {(uint32_t)random_u64(&seed), 7, 0, 1, 2, 3, 4};
        const long double x = -(long double)scale * logl((u + some[0] / 0x1p32L) / 0x1p32L);
        if (u > 0 && fabsl(x - roundl(x)) > 1e-6L)
            assert_true(dpi_magnitude_exactly(scale, u, some) == (uint64_t)floorl(x));
    }
    assert_true(n_different > 100);
}

/* e^-1 and e^(-1/2) to 100 bits (OEIS A068985, A092605), as X just below and just above. */
TEST(test_known_digits) {
    static const uint32_t digits[2][3] = {{0x5e2d58d8, 0xb3bcdf1a, 0xbadec782},
                                          {0x9b4597e3, 0x7cb04ff3, 0xd675a355}}; /* base 2^32 */
    for (int i = 0; i < 2; i++) {
        uint32_t more[7] = {digits[i][1], digits[i][2] & 0xffff0000};
        assert_int_equal(dpi_magnitude_exactly(1 + i, digits[i][0], more), 1);
        more[1] += 0x10000;
        assert_int_equal(dpi_magnitude_exactly(1 + i, digits[i][0], more), 0);
    }
}

/* One dimension: the square is |z|^2, of which P[|z| = 0] = (1 - g) / (1 + g). */
TEST(test_law) {
    enum { DRAWS = 200000, CELLS = 40 };
    static const int64_t scales[] = {1, 3, 40, 20000};
    uint64_t seed = 3;
    for (const int64_t *scale = scales; scale < END(scales); scale++) {
        const double s = (double)*scale, g = exp(-1 / s);
        const uint64_t width = (uint64_t)fmax(1, s / 10);
        double count[CELLS + 1] = {0}, expected[CELLS + 1];
        int n_cells = 0;
        for (int i = 0; i < DRAWS; i++) {
            dpi_u128 sum;
            assert_ok(dpi_magnitude_squares(&t, scale, 1, dpi_random_insecure, &seed, &sum, ERR));
            count[(size_t)fmin(floor(sqrt((double)sum) / (double)width), CELLS)]++;
        }
        for (uint64_t cell = 0; cell <= CELLS; cell++) {
            /* P[|z| >= a] = 2 g^a / (1 + g) for a >= 1. */
            const double from = 2 * exp(-(double)(cell * width) / s) / (1 + g);
            const double to = 2 * exp(-(double)((cell + 1) * width) / s) / (1 + g);
            expected[cell] = DRAWS * ((cell == 0 ? 1 : from) - (cell == CELLS ? 0 : to));
            n_cells += expected[cell] >= 5;
        }
        assert_true(n_cells > 8);
        const double p = counts_p(count, expected, CELLS + 1);
        if (p < 1e-5)
            fail_msg("scale %g: p = %g", s, p);
    }
}

/* Of 700 dimensions, with scales below and above what the first bits are for: mean 2 s^2 each. */
TEST(test_squares) {
    enum { N = 700, DRAWS = 2000 };
    static int64_t scale[N];
    uint64_t seed = 4;
    double expected = 0, variance = 0, mean = 0;
    for (int i = 0; i < N; i++) {
        scale[i] = i < 690 ? 4000000 + i : (int64_t)1 << 23;
        expected += 2 * pow((double)scale[i], 2);
        variance += 20 * pow((double)scale[i], 4);
    }
    for (int i = 0; i < DRAWS; i++) {
        dpi_u128 sum;
        assert_ok(dpi_magnitude_squares(&t, scale, N, dpi_random_insecure, &seed, &sum, ERR));
        mean += (double)sum / DRAWS;
    }
    assert_true(fabs(mean - expected) < 6 * sqrt(variance / DRAWS));
}

TEST(test_source_fails) {
    static const int64_t scale[3] = {1, 2, 3};
    dpi_u128 sum;
    limited_source source = {.seed = 1, .n = 0};
    assert_error(dpi_magnitude_squares(&t, scale, 3, limited_bits, &source, &sum, ERR), ENTROPY,
                 "");
}
