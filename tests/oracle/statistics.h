/* statistics.h - whether counts are those of a law. Draws are made with fixed seeds, so that
 * nothing here fails by chance. */
#ifndef DPI_TEST_STATISTICS_H
#define DPI_TEST_STATISTICS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* p-value of a chi-square statistic with df degrees of freedom, by the Wilson-Hilferty cube root:
 * good to a few percent of p, where 1e-4 is the question. */
static inline double chi_square_p(double x, double df) {
    const double z = (cbrt(x / df) - (1 - 2 / (9 * df))) / sqrt(2 / (9 * df));
    return erfc(z / sqrt(2)) / 2;
}

/* p-value of count[n] under expected[n], whose sum is that of the counts. Cells of which fewer than
 * 5 are expected are one cell, which is left out if it is as small; fails the test if nothing is
 * left or a small one has 30. */
static inline double counts_p(const double *count, const double *expected, int n) {
    double x = 0, rest = 0, n_rest = 0;
    int n_cells = 0;
    for (int i = 0; i < n; i++) {
        if (expected[i] < 5) {
            rest += expected[i], n_rest += count[i];
            continue;
        }
        x += pow(count[i] - expected[i], 2) / expected[i];
        n_cells++;
    }
    if (rest >= 5)
        x += pow(n_rest - rest, 2) / rest, n_cells++;
    else if (n_rest >= 30)
        return 0;
    return n_cells > 1 ? chi_square_p(x, n_cells - 1) : 1;
}

/* p-value of n integers: cells of `width` of them (odd) around multiples of it, up to `radius`, and
 * two tails; above(s, x) is the mass of the law of parameter s above x, which is never an integer,
 * and symmetric. Fails (0) where less than 5 are expected in a cell. */
static inline double cells_p(const int64_t *z, int n, int64_t width, int64_t radius,
                             double (*above)(double s, double x), double s) {
    enum { CELLS_MAX = 131 };
    double count[CELLS_MAX] = {0}, expected[CELLS_MAX];
    const int64_t beyond = radius + 1, n_cells = 2 * beyond + 1;
    for (int i = 0; i < n; i++) {
        const int64_t c = (llabs(z[i]) + width / 2) / width, at = c > beyond ? beyond : c;
        count[beyond + (z[i] < 0 ? -at : at)]++;
    }
    for (int64_t c = -beyond; c <= beyond; c++) {
        const double low = ((double)llabs(c) - 0.5) * (double)width;
        const double p = above(s, low) - (llabs(c) == beyond ? 0 : above(s, low + (double)width));
        expected[beyond + c] = n * p;
        if (n * p < 5 || n_cells > CELLS_MAX)
            return 0;
    }
    return counts_p(count, expected, (int)n_cells);
}

#endif
