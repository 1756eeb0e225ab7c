/* The optimiser against the algorithm of its paper, and the learning rate. */
#include <math.h>

#include "tests/support/support.h"
#include "train/adamw.h"

TEST(test_adamw) {
    enum { N = 5 };
    float x[N], m[N] = {0}, v[N] = {0};
    double y[N], mean[N] = {0}, square[N] = {0};
    uint64_t seed = 8;
    for (int i = 0; i < N; i++)
        y[i] = x[i] = (float)random_normal(&seed);
    for (int t = 1; t <= 6; t++) {
        float g[N];
        dpi_adamw a = {
            .lr = 0.1 / t, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.2, .step = t};
        for (int i = 0; i < N; i++) {
            g[i] = (float)random_normal(&seed);
            double scaled = 0.5 * (double)g[i]; /* Algorithm 2 of the paper, line by line */
            mean[i] = 0.8 * mean[i] + 0.2 * scaled;
            square[i] = 0.9 * square[i] + 0.1 * scaled * scaled;
            double m1 = mean[i] / (1 - pow(0.8, t)), v1 = square[i] / (1 - pow(0.9, t));
            y[i] -= a.lr * (m1 / (sqrt(v1) + 1e-3) + 0.2 * y[i]);
        }
        dpi_adamw_step(&a, x, m, v, g, 0.5, N, 2);
    }
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)x[i] - y[i]) < 1e-5);
}

TEST(test_learning_rate) {
    assert_true(fabs(dpi_learning_rate(1, 0.1, 10, 1, 110) - 0.1) < 1e-12);
    assert_true(fabs(dpi_learning_rate(1, 0.1, 10, 10, 110) - 1) < 1e-12);
    assert_true(fabs(dpi_learning_rate(1, 0.1, 10, 60, 110) - 0.55) < 1e-12);
    assert_true(fabs(dpi_learning_rate(1, 0.1, 10, 110, 110) - 0.1) < 1e-12);
    assert_true(fabs(dpi_learning_rate(1, 0.1, 0, 1, 1) - 0.1) < 1e-12);
}
