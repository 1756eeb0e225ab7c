/* accountant.h - the cost of mechanisms in long double, from their definitions. */
#ifndef DPI_TEST_ACCOUNTANT_H
#define DPI_TEST_ACCOUNTANT_H

#include <math.h>
#include <stdint.h>

#define LN2 0.693147180559945309417232121458176568L

/* eta of a step whose utilities move by `range` units at the inverse temperature a, with what the
 * rounding of weights may add (docs/spec.md section 2). */
static inline long double exact_eta(int64_t range, uint64_t a) {
    return (long double)range * (long double)a * LN2 * 0x1p-48L + 0x1p-38L;
}

/* Mass of the normal law above x. */
static inline long double normal_above(long double x, long double mean, long double sigma) {
    return erfcl((x - mean) / sigma * sqrtl(0.5L)) / 2;
}

/* delta of the Gaussian mechanism whose mean moves by mu deviations (Balle and Wang 2018). */
static inline long double gaussian_delta(long double mu, long double epsilon) {
    return normal_above(epsilon / mu - mu / 2, 0, 1) -
           expl(epsilon) * normal_above(epsilon / mu + mu / 2, 0, 1);
}

#endif
