/* clock.h - seconds, to tell how long something takes. Internal. */
#ifndef DPI_CLOCK_H
#define DPI_CLOCK_H

#include <time.h>

/* Seconds of a clock that nobody sets. */
static inline double dpi_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
