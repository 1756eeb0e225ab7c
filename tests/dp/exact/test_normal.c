/* test_normal.c - rounded normal noise against the law of its values: frequencies, moments and
 * tails at large deviations, the word that decides a rounding, a source that fails. */
#include "dp/exact/normal.h"

#include <math.h>
#include <string.h>

#include "tests/support/support.h"

/* p-value of a chi-square statistic by the Wilson-Hilferty cube root, as test_noise.c has it. */
static double chi_square_p(double x, double df) {
    const double z = (cbrt(x / df) - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
    return erfc(z / sqrt(2)) / 2;
}

/* Mass of the standard normal law above x. */
static double above(double x) { return erfc(x / sqrt(2)) / 2; }

enum { N = 400000 };
static int64_t noise[N];

static void fill(double s, uint64_t seed) {
    const int64_t sigma = (int64_t)(s * (1 << DPI_NORMAL_SHIFT));
    assert_ok(dpi_normal_rounded(sigma, dpi_random_insecure, &seed, noise, N, NULL), NULL);
}

/* Cells of `width` integers (odd) around multiples of it, up to `radius`, and two tails. The law is
 * that of the deviation `s`. */
static double p_value(double s, int64_t width, int64_t radius) {
    double x = 0, count[2 * 64 + 3] = {0};
    for (int32_t i = 0; i < N; i++) {
        int64_t c = (noise[i] >= 0 ? noise[i] + width / 2 : noise[i] - width / 2) / width;
        c = c > radius ? radius + 1 : c < -radius ? -radius - 1 : c;
        count[c + radius + 1]++;
    }
    for (int64_t c = -radius - 1; c <= radius + 1; c++) {
        const double low = ((double)llabs(c) - 0.5) * (double)width / s;
        const double high = ((double)llabs(c) + 0.5) * (double)width / s;
        const double p = llabs(c) > radius ? above(low) : above(low) - above(high);
        const double expected = N * p, d = count[c + radius + 1] - expected;
        assert_true(expected > 5);
        x += d * d / expected;
    }
    return chi_square_p(x, (double)(2 * radius + 2));
}

static void test_frequencies(void **state) {
    (void)state;
    static const struct {
        double s;
        int64_t width, radius;
    } cases[] = {{0.5, 1, 1}, {1, 1, 3}, {2.75, 1, 9}, {20, 3, 20}, {1000.125, 101, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fill(cases[i].s, 900 + i);
        const double p = p_value(cases[i].s, cases[i].width, cases[i].radius);
        if (!(p > 1e-4 && p < 1 - 1e-4))
            fail_msg("deviation %g: p = %g", cases[i].s, p);
        /* The test has power: two percent more is told apart. */
        assert_true(p_value(1.02 * cases[i].s, cases[i].width, cases[i].radius) < 1e-4);
    }
}

/* At deviations as training uses them: moments, and shares beyond 1 to 4 deviations. */
static void test_large_deviations(void **state) {
    (void)state;
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
            const double p = 2 * above(k);
            assert_true(fabs(beyond[k] - N * p) < 4.5 * sqrt(N * p * (1 - p)) + 1);
        }
    }
}

/* Words in the order in which they are drawn; then all ones. */
typedef struct script {
    const uint64_t *word;
    size_t n, used;
} script;

static int32_t play(void *user, void *buffer, size_t n_bytes) {
    script *s = user;
    unsigned char *p = buffer;
    for (size_t i = 0; i < n_bytes; i += sizeof(uint64_t)) {
        const uint64_t word = s->used < s->n ? s->word[s->used] : UINT64_MAX;
        s->used++;
        memcpy(p + i, &word, sizeof word);
    }
    return 0;
}

/* 3 Z is rounded at Z = 1/6 = 0.2aaa... to the base 16. A run of one below one half ends k at 0,
 * x is kept as the next number is larger, the sign is plus; then more words of x. */
static void test_the_word_that_decides(void **state) {
    (void)state;
    const uint64_t down = UINT64_C(1) << 60, up = UINT64_MAX, plus = 0;
    const uint64_t first = 0x2aaaaaaaaaaaaaaa, more = 0xaaaaaaaaaaaaaaaa;
    const struct {
        uint64_t x[4];
        int64_t expected;
    } cases[] = {{{first - 1}, 0},
                 {{first + 1}, 1},
                 {{first, more - 1}, 0},
                 {{first, more + 1}, 1},
                 {{first, more, more - 1}, 0},
                 {{first, more, more + 1}, 1},
                 {{first, more, more, more + 1}, 1},
                 {{first, more, more, more - 1}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t *x = cases[i].x;
        const uint64_t words[] = {down, up, x[0], up, plus, x[1], x[2], x[3]};
        script s = {words, sizeof words / sizeof *words, 0};
        int64_t found;
        assert_ok(dpi_normal_rounded(3 << DPI_NORMAL_SHIFT, play, &s, &found, 1, NULL), NULL);
        assert_int_equal(found, cases[i].expected);
    }
}

static int32_t fail_later(void *user, void *buffer, size_t n_bytes) {
    int *left = user;
    memset(buffer, 0x5a, n_bytes);
    return (*left)-- > 0 ? 0 : -1;
}

static void test_errors(void **state) {
    (void)state;
    dpi_error err;
    int64_t z[1000];
    assert_error(dpi_normal_rounded(0, NULL, NULL, z, 1, &err), DPI_STATUS_ARG, &err,
                 "of 0 / 2^20");
    assert_error(dpi_normal_rounded(DPI_NORMAL_SIGMA_MAX + 1, NULL, NULL, z, 1, &err),
                 DPI_STATUS_ARG, &err, "must be 1..2^54");
    for (int n = 0; n < 3; n++) {
        int left = n;
        memset(z, 1, sizeof z);
        assert_int_equal(dpi_normal_rounded(1 << 20, fail_later, &left, z, 1000, &err),
                         DPI_STATUS_ENTROPY);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(z[i], 0);
    }
    assert_ok(dpi_normal_rounded(DPI_NORMAL_SIGMA_MAX, NULL, NULL, z, 1000, &err), &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_large_deviations),
        cmocka_unit_test(test_the_word_that_decides),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
