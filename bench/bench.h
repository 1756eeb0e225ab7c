/* bench.h - what the programs of bench/ share. They are programs, with nothing to clean up: a
 * failure prints why and ends them. */
#ifndef DPI_BENCH_BENCH_H
#define DPI_BENCH_BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dpinfer.h"

static inline void bench_die(const char *what, const char *why) {
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

static inline void bench_check(dpi_status status, const dpi_error *err) {
    if (status != DPI_STATUS_OK)
        bench_die("library", err->message);
}

/* Seconds of CLOCK_MONOTONIC, or of the process (CLOCK_PROCESS_CPUTIME_ID). */
static inline double bench_seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_upwards(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* v [n], n >= 1, is sorted. */
static inline double bench_median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, bench_upwards);
    return v[n / 2];
}

#endif
