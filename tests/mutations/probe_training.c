/* probe_training.c - see probe_training.h: delta at the epsilon that was found, by closed forms. */
#include "tests/mutations/probe_training.h"

#include <math.h>
#include <stdint.h>

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

const char *probe_training(void) {
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
