/* probe_training.c - see probe_training.h: delta at the epsilon that was found, by closed forms. */
#include "tests/mutations/probe_training.h"

#include <math.h>
#include <stdint.h>

#include "dp/exact/gradient.h"
#include "dp/exact/normal.h"
#include "dpinfer/gaussian.h"

static double epsilon_of(double sigma, double q, int32_t n_steps, double delta) {
    dpi_gaussian g;
    double epsilon;
    dpi_gaussian_init(&g);
    g.sigma = sigma, g.sampling = q, g.n_steps = n_steps;
    return dpi_gaussian_epsilon(&g, delta, &epsilon, NULL) == DPI_STATUS_OK ? epsilon : -1;
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
static const char *check_gradients(void) {
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
        if (!(square <= most))
            return "a gradient moves a sum by more than D";
    }
    return 0;
}

/* Shares of rounded noise at the deviation 1, and the variance at large ones: 8 deviations. */
static const char *check_noise(void) {
    enum { N = 40000 };
    static int64_t noise[N];
    if (dpi_normal_rounded(1 << DPI_NORMAL_SHIFT, 0, 0, noise, N, 0) != DPI_STATUS_OK)
        return "no noise was drawn";
    for (int k = 0; k <= 3; k++) {
        const double p = (k ? 2 : 1) * (above(k - .5) - above(k + .5));
        double count = 0;
        for (int i = 0; i < N; i++)
            count += noise[i] == k || noise[i] == -k;
        if (fabs(count - N * p) > 8 * sqrt(N * p * (1 - p)))
            return "rounded noise has another law";
    }
    /* With the same bits it is what D times sigma gives. */
    enum { M = 1000 };
    static int64_t added[M];
    uint64_t seed = 1, same = 1;
    const int64_t deviation = 2 * dpi_gradient_bound(M) * (1 << DPI_NORMAL_SHIFT);
    if (dpi_gradient_noise(2, M, dpi_random_insecure, &seed, added, 0) != DPI_STATUS_OK ||
        dpi_normal_rounded(deviation, dpi_random_insecure, &same, noise, M, 0) != DPI_STATUS_OK)
        return "no noise was drawn";
    for (int i = 0; i < M; i++)
        if (fabs((double)(added[i] - noise[i])) > 1)
            return "noise of another deviation than sigma D";
    return 0;
}

/* 2^30 coordinates need more noise than 2^20: D, not its first part. */
static const char *check_bound(void) {
    return dpi_gradient_bound(1 << 30) >= (1 << 20) + (1 << 14) + 1 ? 0 : "D is too small";
}

const char *probe_training(const dpi_model *model, const char *folder) {
    (void)model, (void)folder;
    const char *fault = check_bound();
    if (fault || (fault = check_gradients()) || (fault = check_noise()))
        return fault;

    const double margin = 1 + 1e-9, delta = 1e-5;
    double found = epsilon_of(1, .1, 1, delta);
    if (!(one_step(1, .1, found) <= delta * margin))
        return "one step costs more than was found";
    found = epsilon_of(4, 1, 50, delta);
    if (!(plain(sqrt(50) / 4, found) <= delta * margin))
        return "50 steps cost more than was found";
    if (!(epsilon_of(2, .1, 100, 1e-6) >= 2.6750345))
        return "100 sampled steps cost more than was found";
    return 0;
}
