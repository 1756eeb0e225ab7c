/* The law of noisy counts. Oracles: sums over the law in full, and the normal law's quantile. */
#include "eval/count_noise.h"
#include "tests/eval/eval_support.h"

enum { RANGE = 400 };

/* The law on -RANGE..RANGE; variances here are small enough that nothing is missing. */
static void law_of(int64_t variance, double p[2 * RANGE + 1]) {
    double sum = 0;
    for (int i = 0; i <= 2 * RANGE; i++)
        sum += p[i] = exp(-128. * (i - RANGE) * (i - RANGE) / (double)variance);
    for (int i = 0; i <= 2 * RANGE; i++)
        p[i] /= sum;
}

static double inside(const double *p, int64_t h) {
    double sum = 0;
    for (int64_t z = -h; z <= h; z++)
        sum += p[RANGE + z];
    return sum;
}

static const int64_t variances[] = {16, 40, 100, 256, 700, 2560, 20000, 200000};
enum { N_VARIANCES = sizeof variances / sizeof *variances };

TEST(test_cells) {
    double p[2 * RANGE + 1];
    for (int v = 0; v < N_VARIANCES; v++) {
        law_of(variances[v], p);
        for (int32_t n = 1; n <= 20; n += 3) {
            const int64_t h = eval_noise_of_cells(variances[v], n);
            assert_true(pow(inside(p, h), n) >= .95);
            assert_true(h == 0 || pow(inside(p, h - 1), n) < .95);
        }
    }
    /* Of a wide one 1.95996 deviations, 2048. */
    assert_true(llabs(eval_noise_of_cells(INT64_C(1) << 30, 1) - 4014) <= 1);
}

/* The law of a sum, by adding one cell after the other. */
TEST(test_sum) {
    double p[2 * RANGE + 1], sum[2 * RANGE + 1], more[2 * RANGE + 1];
    for (int v = 0; v < N_VARIANCES - 2; v++) {
        law_of(variances[v], p);
        memcpy(sum, p, sizeof sum);
        for (int32_t n = 1; n <= 20; n++) {
            const int64_t h = eval_noise_of_sum(variances[v], n);
            assert_true(inside(sum, h) >= .95);
            assert_true(variances[v] < 256 || h == 0 || inside(sum, h - 2) < .95);
            memset(more, 0, sizeof more);
            for (int i = -RANGE; i <= RANGE; i++)
                for (int k = -RANGE; k <= RANGE; k++)
                    if (i + k >= -RANGE && i + k <= RANGE)
                        more[RANGE + i + k] += sum[RANGE + i] * p[RANGE + k];
            memcpy(sum, more, sizeof sum);
        }
    }
}

/* The law of sizes, likewise; where noise is narrow the bound is the least one. */
TEST(test_sizes) {
    enum { MOST = 20 * RANGE };
    static double sum[MOST + 1], more[MOST + 1];
    double p[2 * RANGE + 1], h;
    for (int v = 0; v < N_VARIANCES; v++) {
        law_of(variances[v], p);
        memset(sum, 0, sizeof sum);
        sum[0] = 1;
        for (int32_t n = 1; n <= 20; n++) {
            double below = 0;
            int32_t least = 0;
            memset(more, 0, sizeof more);
            for (int i = 0; i <= MOST; i++)
                for (int k = 0; sum[i] > 0 && k <= RANGE && i + k <= MOST; k++)
                    more[i + k] += sum[i] * p[RANGE + k] * (k > 0 ? 2 : 1);
            memcpy(sum, more, sizeof sum);
            while ((below += sum[least]) < .95)
                least++;
            assert_ok(eval_noise_of_sizes(variances[v], n, &h, ERR));
            if (!(h >= least && h <= 1.03 * least))
                fail_msg("variance %d, %d cells: found %g, expected %d", (int)variances[v], n, h,
                         least);
        }
    }
    assert_ok(eval_noise_of_sizes(INT64_C(1) << 30, 20, &h, ERR));
    /* Mean and deviation of |Z| are sqrt(2 / pi) and sqrt(1 - 2 / pi) deviations. */
    const double wide = 2048 * (20 * .797885 + 1.645 * .602810 * sqrt(20));
    assert_true(fabs(h / wide - 1) < .03);
}
