/* nmse.h - how far numbers are from others: sum (a - b)^2 / sum b^2. */
#ifndef DPI_TEST_NMSE_H
#define DPI_TEST_NMSE_H

#include <stddef.h>

static inline double nmse(const float *a, const float *b, size_t n) {
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        power += (double)b[i] * (double)b[i];
    }
    return error / power;
}

#endif
