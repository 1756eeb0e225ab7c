/* tiles.h - which thread of a pass computes which part of a job. Internal.
 *
 * A job is cut into tiles that do not depend on the threads. Each thread has a share of them and
 * takes it from the front: one upwards stream of weights, a quarter of what is left at a time,
 * since between two calls of a kernel memory rests. When none is left there it takes those of
 * others, one by one from the back, so that nobody waits for a thread that memory or another
 * process holds up. */
#ifndef DPI_TILES_H
#define DPI_TILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What has been taken of one thread's share. Cleared before a job. */
typedef struct dpi_claims {
    _Alignas(64) _Atomic int32_t taken; /* by anyone, and what someone came for in vain */
    _Atomic int32_t stolen;             /* by other threads */
} dpi_claims;

/* One thread's view of a job. */
typedef struct dpi_tiles {
    dpi_claims *claims; /* [n_threads], not owned */
    int64_t n;
    int32_t thread, n_threads;
    int64_t begin, end; /* tiles that this thread has taken of its own share */
    int64_t left;       /* there, when it last looked */
    int32_t turn;       /* whose share it takes from, counted from its own */
} dpi_tiles;

/* [*begin, *end): the share of `thread` in n things, contiguous. */
void dpi_share(int64_t n, int32_t thread, int32_t n_threads, int64_t *begin, int64_t *end);

/* Makes one thread's claims those of a share that nobody has taken from. */
void dpi_claims_clear(dpi_claims *claims);

/* A job of n tiles (0..2^30). claims [n_threads] are the same for all threads. */
dpi_tiles dpi_tiles_of(dpi_claims *claims, int64_t n, int32_t thread, int32_t n_threads);

/* Takes tiles [*first, *last): each goes to one thread, and only when all are taken does it return
 * false. */
bool dpi_tiles_next(dpi_tiles *tiles, int64_t *first, int64_t *last);

/* Whether what was taken last is another thread's. */
static inline bool dpi_tiles_stolen(const dpi_tiles *tiles) { return tiles->turn > 0; }

#endif
