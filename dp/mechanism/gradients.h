/* gradients.h - where the values of the mechanism `gradients` stand. Internal. */
#ifndef DPI_MECHANISM_GRADIENTS_H
#define DPI_MECHANISM_GRADIENTS_H

#include <stdint.h>

/* Parameters. */
enum {
    DPI_GRADIENTS_SIGMA,
    DPI_GRADIENTS_SAMPLING,
    DPI_GRADIENTS_EXPECTED,
    DPI_GRADIENTS_CLIP,
    DPI_GRADIENTS_TRAINED,
    DPI_GRADIENTS_RANK,
    DPI_GRADIENTS_ALPHA,
    DPI_GRADIENTS_NUMBERS
};
/* What was trained, and where it is. */
enum { DPI_TRAINED_ADAPTER, DPI_TRAINED_WEIGHTS, DPI_TRAINED_MERGED };

/* q is a multiple of 2^-32: the next one above n_expected / n_units. */
double dpi_gradients_sampling(double n_expected, int64_t n_units);

#endif
