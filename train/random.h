/* random.h - reproducible random numbers for initial weights and shuffles. Internal. */
#ifndef DPI_TRAIN_RANDOM_H
#define DPI_TRAIN_RANDOM_H

#include <math.h>

#include "dpinfer/status.h"

static inline uint64_t dpi_train_random(uint64_t *state) {
    uint64_t x = 0;
    dpi_random_insecure(state, &x, sizeof x);
    return x;
}

/* 0..n-1; the bias, below n / 2^64, does not matter here. */
static inline uint64_t dpi_train_random_below(uint64_t *state, uint64_t n) {
    return dpi_train_random(state) % n;
}

/* Normal with deviation 1 (Box and Muller 1958). */
static inline double dpi_train_random_normal(uint64_t *state) {
    double u = ((double)(dpi_train_random(state) >> 11) + 1) * 0x1p-53; /* (0, 1] */
    double v = (double)(dpi_train_random(state) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Fisher and Yates. */
static inline void dpi_train_shuffle(int64_t *items, int64_t n, uint64_t *state) {
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)dpi_train_random_below(state, (uint64_t)i + 1), kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

#endif
