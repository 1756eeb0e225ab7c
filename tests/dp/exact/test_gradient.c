/* test_gradient.c - clipped gradients as integers: no gradient moves a sum by more than D, whatever
 * its floats are; what is kept of a sane one; noise of the deviation that D asks for. */
#include "dp/exact/gradient.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

#include "tests/support/support.h"

__extension__ typedef unsigned __int128 u128;

/* The smallest integer whose double has a square of n at least, by counting. */
TEST(test_bound) {
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

enum { N = 4099, N_KINDS = 10 };

static float gradient[N];
static int64_t sum[N], other[N];
static int32_t scratch[N];

/* The sum of `gradient` alone. */
static void add_alone(float clip, int64_t *to) {
    memset(to, 0, N * sizeof *to);
    dpi_gradient_add(gradient, N, clip, scratch, to);
    for (int32_t i = 0; i < N; i++)
        assert_int_equal(scratch[i], to[i]);
}

static void fill(int kind, uint64_t *seed) {
    for (int32_t i = 0; i < N; i++) {
        const uint32_t bits = (uint32_t)random_u64(seed);
        const float uniform = (float)((double)bits / 4294967296.0 - 0.5);
        float any;
        memcpy(&any, &bits, sizeof any);
        const float values[N_KINDS] = {
            any, /* every pattern: NaN, infinities, denormals */
            FLT_MAX,
            i == 7 ? NAN : uniform,
            i % 2 ? INFINITY : -INFINITY,
            1e-42f,
            i == N - 1 ? 1e30f : uniform,
            0.5f / (1 << 20), /* each coordinate is rounded up */
            i == 0 ? 1 : 0.50001f / (1 << 20),
            0,
            uniform * 1e30f,
        };
        gradient[i] = values[kind];
    }
}

TEST(test_no_gradient_is_longer_than_D) {
    const u128 D = (u128)dpi_gradient_bound(N);
    static const float clips[] = {1, 1e-30f, 1e30f, FLT_MIN, FLT_MAX, 0.3f};
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    uint64_t seed = 5;
    for (int run = 0; run < 4 * N_KINDS; run++) {
        fesetround(modes[run / N_KINDS]);
        for (const float *clip = clips; clip < END(clips); clip++) {
            u128 square = 0;
            fill(run % N_KINDS, &seed);
            add_alone(*clip, sum);
            for (int32_t i = 0; i < N; i++)
                square += (u128)(uint64_t)llabs(sum[i]) * (uint64_t)llabs(sum[i]);
            if (square > D * D)
                fail_msg("gradient %d, clip %g, rounding %d: longer than D", run % N_KINDS, *clip,
                         run / N_KINDS);
        }
        fesetround(FE_TONEAREST);
    }
}

/* By the definition, in long double. */
TEST(test_what_is_kept) {
    static const float clips[] = {0.01f, 1, 1000};
    uint64_t seed = 6;
    for (const float *clip = clips; clip < END(clips); clip++) {
        long double square = 0;
        fill(2, &seed);
        gradient[7] = 0;
        for (int32_t i = 0; i < N; i++)
            square += (long double)gradient[i] * gradient[i];
        const long double s = fminl(1, *clip / sqrtl(square));
        add_alone(*clip, sum);
        for (int32_t i = 0; i < N; i++)
            assert_true(fabsl(sum[i] - gradient[i] * s * (1 << 20) / *clip) <= 0.5001L);
    }
    /* What is not finite counts as 0, and the rest as if that were 0. */
    static const float none[] = {0, NAN, -INFINITY};
    for (int k = 0; k < 3; k++) {
        gradient[9] = none[k];
        add_alone(1, k == 0 ? other : sum);
        assert_true(k == 0 || memcmp(sum, other, sizeof sum) == 0);
    }
}

/* Sums do not depend on the order of units, and are those of each unit by itself. */
TEST(test_sums) {
    enum { UNITS = 9 };
    static float units[UNITS][N];
    static int64_t forth[N], back[N], total[N];
    uint64_t seed = 8;
    for (int u = 0; u < UNITS; u++) {
        fill(u, &seed);
        memcpy(units[u], gradient, sizeof gradient);
        add_alone(1, sum);
        for (int32_t i = 0; i < N; i++)
            total[i] += sum[i];
    }
    for (int u = 0; u < UNITS; u++) {
        dpi_gradient_add(units[u], N, 1, scratch, forth);
        dpi_gradient_add(units[UNITS - 1 - u], N, 1, scratch, back);
    }
    assert_memory_equal(forth, total, sizeof total);
    assert_memory_equal(back, total, sizeof total);
}

/* Variance sigma^2 D^2, of coordinates that are independent of each other. */
TEST(test_noise) {
    enum { DRAWS = 100000 };
    static int64_t noise[DRAWS];
    static const double sigmas[] = {0.01, 1, 3.7, 4096};
    for (size_t c = 0; c < 4; c++) {
        uint64_t seed = 40 + c;
        const double deviation = sigmas[c] * (double)dpi_gradient_bound(DRAWS);
        double mean = 0, square = 0, next = 0, last = 0;
        for (int32_t i = 0; i < DRAWS; i++)
            noise[i] = 1000 + i;
        assert_ok(dpi_gradient_noise(sigmas[c], DRAWS, dpi_random_insecure, &seed, noise, ERR));
        for (int32_t i = 0; i < DRAWS; i++) {
            const double z = (double)(noise[i] - 1000 - i) / deviation;
            mean += z / DRAWS, square += z * z / DRAWS, next += z * last / DRAWS;
            last = z;
        }
        assert_true(fabs(mean) < 4 / sqrt(DRAWS) && fabs(next) < 4 / sqrt(DRAWS));
        assert_true(fabs(square - 1) < 4 * sqrt(2. / DRAWS));
    }
}

TEST(test_errors) {
    limited_source none = {.n = 0};
    int64_t z[3] = {1, 2, 3};
    assert_error(dpi_gradient_noise(0, 3, NULL, NULL, z, ERR), ARG, "sigma is 0, must be above 0");
    assert_error(dpi_gradient_noise(NAN, 3, NULL, NULL, z, ERR), ARG, "sigma");
    assert_error(dpi_gradient_noise(4097, 3, NULL, NULL, z, ERR), ARG, "4096");
    assert_int_equal(z[2], 3);
    assert_error(dpi_gradient_noise(1, 3, limited_bits, &none, z, ERR), ENTROPY, "");
    assert_true(z[0] == 0 && z[1] == 0 && z[2] == 0);
}
