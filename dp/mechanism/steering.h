/* steering.h - where the values of the mechanism `steering` stand. Internal. */
#ifndef DPI_MECHANISM_STEERING_H
#define DPI_MECHANISM_STEERING_H

/* Parameters. */
enum {
    DPI_STEERING_SIGMA,
    DPI_STEERING_CLIP,
    DPI_STEERING_LAYERS,
    DPI_STEERING_NUMBERS,
    DPI_STEERING_RANK,
    DPI_STEERING_WORDS
};

#endif
