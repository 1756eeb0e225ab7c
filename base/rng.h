/* rng.h - where random bits come from. Internal.
 *
 * Every draw of a sampler reads fresh bits. If the source fails, the draw fails: there is no
 * fallback. Threads: getrandom(2) is safe from any thread; a caller's source is called
 * from the thread that steps the sampler. Source: docs/spec.md section 2, "Randomness". */
#ifndef DPI_RNG_H
#define DPI_RNG_H

#include <sys/types.h>

#include "dpinfer/status.h"

/* n_bytes from `random`, or from getrandom(2) if it is NULL. On failure the buffer is wiped.
 * Errors: ENTROPY. */
dpi_status dpi_random_fill(dpi_random_fn random, void *user, void *buffer, size_t n_bytes,
                           dpi_error *err);

/* The interface of getrandom(2). */
typedef ssize_t (*dpi_getrandom_fn)(void *buffer, size_t n_bytes, unsigned flags);

/* The loop around the system call, open to tests: goes on after short reads and EINTR. 0 when
 * the buffer is full, -1 with errno set otherwise. */
int32_t dpi_random_read(dpi_getrandom_fn source, void *buffer, size_t n_bytes);

#endif
