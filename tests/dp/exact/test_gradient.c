/* test_gradient.c - clipped gradients as integers: no gradient moves a sum by more than D, whatever
 * its floats are; what is kept of a sane one; noise of the deviation that D asks for. */
#include "dp/exact/gradient.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

__extension__ typedef unsigned __int128 u128;

/* The smallest integer whose double has a square of n at least, by counting. */
static void test_bound(void **state) {
    (void)state;
    int64_t root = 0;
    for (int64_t n = 1; n <= 20000; n++) {
        while (4 * root * root < n)
            root++;
        assert_int_equal(dpi_gradient_bound(n), (1 << 20) + root + 1);
    }
    const int64_t half = INT64_C(1) << 18; /* 2 half is the root of 2^38 */
    assert_int_equal(dpi_gradient_bound(4 * half * half), (1 << 20) + half + 1);
    assert_int_equal(dpi_gradient_bound(4 * half * half + 1), (1 << 20) + half + 2);
}

enum { N = 4099 };

static u128 square_of(const int64_t *sum) {
    u128 square = 0;
    for (int32_t i = 0; i < N; i++)
        square += (u128)(uint64_t)llabs(sum[i]) * (uint64_t)llabs(sum[i]);
    return square;
}

/* One gradient added to nothing. */
static void add_one(const float *gradient, float clip, int64_t *sum) {
    static int32_t scratch[N];
    memset(sum, 0, N * sizeof *sum);
    dpi_gradient_add(gradient, N, clip, scratch, sum);
    for (int32_t i = 0; i < N; i++)
        assert_int_equal(scratch[i], sum[i]);
}

static float hostile(int kind, int32_t i, uint64_t *seed) {
    uint32_t bits;
    dpi_random_insecure(seed, &bits, sizeof bits);
    const float uniform = (float)((double)bits / 4294967296.0 - 0.5);
    float any;
    memcpy(&any, &bits, sizeof any);
    switch (kind) {
    case 0:
        return any; /* every pattern: NaN, infinities, denormals */
    case 1:
        return FLT_MAX;
    case 2:
        return i == 7 ? NAN : uniform;
    case 3:
        return i % 2 ? INFINITY : -INFINITY;
    case 4:
        return 1e-42f;
    case 5:
        return i == N - 1 ? 1e30f : uniform;
    case 6:
        return 0.5f / (1 << 20); /* each coordinate is rounded up */
    case 7:
        return i == 0 ? 1 : 0.50001f / (1 << 20);
    case 8:
        return 0;
    default:
        return uniform * 1e30f;
    }
}

static void test_no_gradient_is_longer_than_D(void **state) {
    (void)state;
    static float gradient[N];
    static int64_t sum[N];
    const u128 most = (u128)dpi_gradient_bound(N) * (u128)dpi_gradient_bound(N);
    static const float clips[] = {1, 1e-30f, 1e30f, FLT_MIN, FLT_MAX, 0.3f};
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    uint64_t seed = 5;
    for (int m = 0; m < 4; m++) {
        fesetround(modes[m]);
        for (int kind = 0; kind < 10; kind++)
            for (size_t c = 0; c < sizeof clips / sizeof *clips; c++) {
                for (int32_t i = 0; i < N; i++)
                    gradient[i] = hostile(kind, i, &seed);
                add_one(gradient, clips[c], sum);
                if (square_of(sum) > most)
                    fail_msg("gradient %d, clip %g, rounding %d: longer than D", kind, clips[c], m);
            }
        fesetround(FE_TONEAREST);
    }
}

/* By the definition, in long double. */
static void test_what_is_kept(void **state) {
    (void)state;
    static float gradient[N];
    static int64_t sum[N];
    static const float clips[] = {0.01f, 1, 1000};
    uint64_t seed = 6;
    for (size_t c = 0; c < 3; c++) {
        long double square = 0;
        for (int32_t i = 0; i < N; i++) {
            gradient[i] = hostile(2, i == 7 ? 8 : i, &seed);
            square += (long double)gradient[i] * gradient[i];
        }
        const long double s = fminl(1, clips[c] / sqrtl(square));
        add_one(gradient, clips[c], sum);
        for (int32_t i = 0; i < N; i++)
            assert_true(fabsl(sum[i] - gradient[i] * s * (1 << 20) / clips[c]) <= 0.5001L);
    }
    /* What is not finite counts as 0, and the rest as if that were 0. */
    static int64_t without[N];
    gradient[9] = 0;
    add_one(gradient, 1, without);
    gradient[9] = NAN;
    add_one(gradient, 1, sum);
    assert_memory_equal(sum, without, sizeof sum);
    gradient[9] = -INFINITY;
    add_one(gradient, 1, sum);
    assert_memory_equal(sum, without, sizeof sum);
}

/* Sums do not depend on the order of units, and are those of each unit by itself. */
static void test_sums(void **state) {
    (void)state;
    enum { UNITS = 9 };
    static float gradient[UNITS][N];
    static int64_t forth[N], back[N], alone[N], total[N];
    static int32_t scratch[N];
    uint64_t seed = 8;
    memset(forth, 0, sizeof forth), memset(back, 0, sizeof back), memset(total, 0, sizeof total);
    for (int u = 0; u < UNITS; u++) {
        for (int32_t i = 0; i < N; i++)
            gradient[u][i] = hostile(u, i, &seed);
        add_one(gradient[u], 1, alone);
        for (int32_t i = 0; i < N; i++)
            total[i] += alone[i];
    }
    for (int u = 0; u < UNITS; u++) {
        dpi_gradient_add(gradient[u], N, 1, scratch, forth);
        dpi_gradient_add(gradient[UNITS - 1 - u], N, 1, scratch, back);
    }
    assert_memory_equal(forth, total, sizeof total);
    assert_memory_equal(back, total, sizeof total);
}

/* Variance sigma^2 D^2, of coordinates that are independent of each other. */
static void test_noise(void **state) {
    (void)state;
    enum { DRAWS = 100000 };
    int64_t *sum = calloc(DRAWS, sizeof *sum);
    assert_non_null(sum);
    static const double sigmas[] = {0.01, 1, 3.7, 4096};
    for (size_t c = 0; c < 4; c++) {
        uint64_t seed = 40 + c;
        const double deviation = sigmas[c] * (double)dpi_gradient_bound(DRAWS);
        double mean = 0, square = 0, next = 0;
        for (int32_t i = 0; i < DRAWS; i++)
            sum[i] = 1000 + i;
        assert_ok(dpi_gradient_noise(sigmas[c], DRAWS, dpi_random_insecure, &seed, sum, NULL),
                  NULL);
        for (int32_t i = 0; i < DRAWS; i++) {
            const double z = (double)(sum[i] - 1000 - i) / deviation;
            const double after = i + 1 < DRAWS ? (double)(sum[i + 1] - 1001 - i) / deviation : 0;
            mean += z / DRAWS, square += z * z / DRAWS, next += z * after / DRAWS;
        }
        assert_true(fabs(mean) < 4 / sqrt(DRAWS) && fabs(next) < 4 / sqrt(DRAWS));
        assert_true(fabs(square - 1) < 4 * sqrt(2. / DRAWS));
    }
    free(sum);
}

static int32_t no_bits(void *user, void *buffer, size_t n_bytes) {
    (void)user, (void)buffer, (void)n_bytes;
    return -1;
}

static void test_errors(void **state) {
    (void)state;
    dpi_error err;
    int64_t sum[3] = {1, 2, 3};
    assert_error(dpi_gradient_noise(0, 3, NULL, NULL, sum, &err), DPI_STATUS_ARG, &err,
                 "sigma is 0, must be above 0");
    assert_error(dpi_gradient_noise(NAN, 3, NULL, NULL, sum, &err), DPI_STATUS_ARG, &err, "sigma");
    assert_error(dpi_gradient_noise(4097, 3, NULL, NULL, sum, &err), DPI_STATUS_ARG, &err, "4096");
    assert_int_equal(sum[2], 3);
    assert_int_equal(dpi_gradient_noise(1, 3, no_bits, NULL, sum, &err), DPI_STATUS_ENTROPY);
    assert_true(sum[0] == 0 && sum[1] == 0 && sum[2] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),        cmocka_unit_test(test_no_gradient_is_longer_than_D),
        cmocka_unit_test(test_what_is_kept), cmocka_unit_test(test_sums),
        cmocka_unit_test(test_noise),        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
