/* The mean of a unit's integers, against division in long double, whose 64 bits hold every quotient
 * here and every tie exactly. */
#include <math.h>

#include "dp/exact/mean.h"
#include "tests/support/support.h"

static void check(int64_t sum, int32_t m, int32_t most) {
    const dpi_mean mean = dpi_mean_of(m, most);
    const long double exact = (long double)sum / m;
    assert_int_equal(dpi_mean_round(mean, sum), llrintl(exact));
    assert_int_equal(dpi_mean_floor(mean, (uint64_t)llabs(sum)), (int64_t)floorl(fabsl(exact)));
}

TEST(test_all_small) {
    for (int32_t m = 1; m <= DPI_UNIT_RECORDS_MAX; m++)
        for (int64_t sum = -1000; sum <= 1000; sum++)
            check(sum, m, DPI_UNIT_RECORDS_MAX);
}

/* At the ends of the range, around multiples and ties. */
TEST(test_large) {
    const int64_t K = INT64_C(0x7fffffff);
    uint64_t seed = 1;
    for (int32_t m = 1; m <= DPI_UNIT_RECORDS_MAX; m++) {
        for (int64_t d = 0; d <= 200; d++)
            check(m * K - d, m, m), check(-m * K + d, m, m);
        for (int i = 0; i < 20000; i++) {
            const int64_t q = (int64_t)(random_u64(&seed) >> 33);
            const int64_t sum = q * m + random_below(&seed, 2 * m + 1) - m;
            check(sum > m * K ? m * K : sum, m, DPI_UNIT_RECORDS_MAX);
        }
        assert_int_equal(dpi_mean_round(dpi_mean_of(m, m), m * K), K);
        assert_int_equal(dpi_mean_round(dpi_mean_of(m, m), -m * K), -K);
    }
}

TEST(test_none) {
    assert_int_equal(dpi_mean_round(dpi_mean_of(0, 4), -7), -7);
    assert_int_equal(dpi_mean_of(0, 4).m, 1);
}
