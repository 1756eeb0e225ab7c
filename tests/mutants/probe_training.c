/* probe_training.c - the accountants of training: delta at the epsilon that was found, by closed
 * forms; see probes.h. */
#include "tests/mutants/probes.h"

#include <math.h>

#include "dp/exact/gradient.h"
#include "dp/exact/normal.h"
#include "dpinfer/gaussian.h"

static double epsilon_of(double sigma, double q, int32_t n_steps, double delta) {
    dpi_gaussian g;
    double epsilon;
    dpi_gaussian_init(&g);
    g.sigma = sigma, g.sampling = q, g.n_steps = n_steps;
    assert_ok(dpi_gaussian_epsilon(&g, delta, &epsilon, ERR));
    return epsilon;
}

/* Mass of a normal law above x. */
static double above(double x) { return erfc(x * sqrt(0.5)) / 2; }

/* One step of a unit that is removed. */
static double one_step(double sigma, double q, double epsilon) {
    const double x = sigma * sigma * log((exp(epsilon) - (1 - q)) / q) + 0.5;
    return (1 - q) * above(x / sigma) + q * above((x - 1) / sigma) -
           exp(epsilon) * above(x / sigma);
}

/* Steps without sampling: one Gaussian mechanism whose mean moves by mu. */
static double plain(double mu, double epsilon) {
    return above(epsilon / mu - mu / 2) - exp(epsilon) * above(epsilon / mu + mu / 2);
}

/* The longest z there is, of gradients that point along a few axes or hold what is no number. */
static void check_gradients(void) {
    enum { N = 64 };
    const double most = (double)dpi_gradient_bound(N) * (double)dpi_gradient_bound(N);
    for (int kind = 0; kind < N + 2; kind++) {
        float gradient[N];
        int32_t scratch[N];
        int64_t sum[N] = {0};
        double square = 0;
        for (int i = 0; i < N; i++)
            gradient[i] = kind < N ? (i == kind ? 1e30f : 1e-3f) : kind == N ? NAN : INFINITY;
        dpi_gradient_add(gradient, N, 1, scratch, sum);
        for (int i = 0; i < N; i++)
            square += (double)sum[i] * (double)sum[i];
        hold(square <= most, "a gradient moves a sum by more than D");
    }
}

/* Shares of rounded noise at the deviation 1: 8 deviations. */
static void check_noise(void) {
    enum { N = 40000 };
    static int64_t noise[N];
    assert_ok(dpi_normal_rounded(1 << DPI_NORMAL_SHIFT, 0, 0, noise, N, ERR));
    for (int k = 0; k <= 3; k++) {
        const double p = (k ? 2 : 1) * (above(k - .5) - above(k + .5));
        double count = 0;
        for (int i = 0; i < N; i++)
            count += noise[i] == k || noise[i] == -k;
        hold(fabs(count - N * p) <= 8 * sqrt(N * p * (1 - p)), "rounded noise has another law");
    }
}

/* With the same bits the noise of a sum is what D times sigma gives. */
static void check_deviation(void) {
    enum { N = 1000 };
    int64_t noise[N], added[N];
    uint64_t seed = 1, same = 1;
    const int64_t deviation = 2 * dpi_gradient_bound(N) * (1 << DPI_NORMAL_SHIFT);
    memset(added, 0, sizeof added);
    assert_ok(dpi_gradient_noise(2, N, dpi_random_insecure, &seed, added, ERR));
    assert_ok(dpi_normal_rounded(deviation, dpi_random_insecure, &same, noise, N, ERR));
    for (int i = 0; i < N; i++)
        hold(llabs(added[i] - noise[i]) <= 1, "noise of another deviation than sigma D");
}

TEST(training) {
    /* 2^30 coordinates need more noise than 2^20: D, not its first part. */
    hold(dpi_gradient_bound(1 << 30) >= (1 << 20) + (1 << 14) + 1, "D is too small");
    check_gradients();
    check_noise();
    check_deviation();
    const double most = 1e-5 * (1 + 1e-9);
    hold(one_step(1, .1, epsilon_of(1, .1, 1, 1e-5)) <= most, "one step costs more than was found");
    hold(plain(sqrt(50) / 4, epsilon_of(4, 1, 50, 1e-5)) <= most,
         "50 steps cost more than was found");
    hold(epsilon_of(2, .1, 100, 1e-6) >= 2.6750345, "100 sampled steps cost more than was found");
}
