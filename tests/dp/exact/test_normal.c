/* test_normal.c - rounded normal noise against the law of its values: frequencies, moments and
 * tails at large deviations, the word that decides a rounding, a source that fails. */
#include "dp/exact/normal.h"
#include "tests/oracle/accountant.h"
#include "tests/oracle/statistics.h"
#include "tests/support/support.h"

enum { N = 400000 };
static int64_t noise[N];

static void fill(double s, uint64_t seed) {
    const int64_t sigma = (int64_t)(s * (1 << DPI_NORMAL_SHIFT));
    assert_ok(dpi_normal_rounded(sigma, dpi_random_insecure, &seed, noise, N, ERR));
}

static double above(double s, double x) { return (double)normal_above(x, 0, s); }

TEST(test_frequencies) {
    static const struct row {
        double s;
        int64_t width, radius;
    } cases[] = {{0.5, 1, 1}, {1, 1, 3}, {2.75, 1, 9}, {20, 3, 20}, {1000.125, 101, 32}};
    for (const struct row *r = cases; r < END(cases); r++) {
        fill(r->s, 900 + (uint64_t)(r - cases));
        const double p = cells_p(noise, N, r->width, r->radius, above, r->s);
        if (!(p > 1e-4 && p < 1 - 1e-4))
            fail_msg("deviation %g: p = %g", r->s, p);
        /* The test has power: two percent more is told apart. */
        const double wrong = cells_p(noise, N, r->width, r->radius, above, 1.02 * r->s);
        assert_true(wrong > 0 && wrong < 1e-4);
    }
}

/* At deviations as training uses them: moments, and shares beyond 1 to 4 deviations. */
TEST(test_large_deviations) {
    static const double cases[] = {1 << 20, 1073741824.0};
    for (size_t c = 0; c < 2; c++) {
        double mean = 0, square = 0, fourth = 0, beyond[5] = {0};
        fill(cases[c], 33 + c);
        for (int32_t i = 0; i < N; i++) {
            const double z = (double)noise[i] / cases[c];
            mean += z / N, square += z * z / N, fourth += z * z * z * z / N;
            for (int k = 1; k <= 4; k++)
                beyond[k] += fabs(z) > k;
        }
        assert_true(fabs(mean) < 4 / sqrt(N) && fabs(square - 1) < 4 * sqrt(2. / N));
        assert_true(fabs(fourth - 3) < 4 * sqrt(96. / N));
        for (int k = 1; k <= 4; k++) {
            const double p = 2 * above(1, k);
            assert_true(fabs(beyond[k] - N * p) < 4.5 * sqrt(N * p * (1 - p)) + 1);
        }
    }
}

/* Words in the order in which they are drawn. */
static int32_t play(void *user, void *buffer, size_t n_bytes) {
    const uint64_t **word = user;
    memcpy(buffer, *word, n_bytes);
    *word += n_bytes / sizeof **word;
    return 0;
}

/* 3 Z is rounded at Z = 1/6 = 0.2aaa... to the base 16. A run of one below one half ends k at 0,
 * x is kept as the next number is larger, the sign is plus; then more words of x; then all ones. */
TEST(test_the_word_that_decides) {
    const uint64_t down = UINT64_C(1) << 60, up = UINT64_MAX, plus = 0;
    const uint64_t first = 0x2aaaaaaaaaaaaaaa, more = 0xaaaaaaaaaaaaaaaa;
    for (int n = 0; n < 8; n++) { /* the word n / 2 is one more, or one less */
        const uint64_t x[] = {first, more, more, more};
        uint64_t words[1024] = {down, up, x[0], up, plus, x[1], x[2], x[3]};
        const uint64_t *at = words;
        int64_t found;
        memset(words + 8, 255, sizeof words - 8 * sizeof *words);
        words[n < 2 ? 2 : 4 + n / 2] += n % 2 ? 1 : UINT64_MAX;
        assert_ok(dpi_normal_rounded(3 << DPI_NORMAL_SHIFT, play, &at, &found, 1, ERR));
        assert_int_equal(found, n % 2);
    }
}

TEST(test_errors) {
    int64_t z[1000];
    assert_error(dpi_normal_rounded(0, NULL, NULL, z, 1, ERR), ARG, "of 0 / 2^20");
    assert_error(dpi_normal_rounded(DPI_NORMAL_SIGMA_MAX + 1, NULL, NULL, z, 1, ERR), ARG,
                 "must be 1..2^54");
    for (int n = 0; n < 3; n++) {
        limited_source l = {.seed = 5, .n = n};
        memset(z, 1, sizeof z);
        assert_error(dpi_normal_rounded(1 << 20, limited_bits, &l, z, 1000, ERR), ENTROPY, "");
        for (int i = 0; i < 1000; i++)
            assert_int_equal(z[i], 0);
    }
    assert_ok(dpi_normal_rounded(DPI_NORMAL_SIGMA_MAX, NULL, NULL, z, 1000, ERR));
}
