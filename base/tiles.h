/* tiles.h - which thread of a pass computes which tiles of an operation. Internal.
 *
 * An operation is cut into tiles that do not depend on the threads. Each thread has a share of them
 * and starts at its front: one upwards stream of weights, a quarter of the rest of the share at a
 * time, since memory rests between two calls of a kernel. When a thread's own share is done, it
 * steals tiles from the shares of others, one by one from the back. So no thread waits long for one
 * that memory or another process holds up. */
#ifndef DPI_TILES_H
#define DPI_TILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How much of one thread's share is assigned. Cleared before an operation. */
typedef struct dpi_share_state {
    /* Tiles assigned to any thread. Requests that came too late count as well, so that it may
     * exceed the share. */
    _Alignas(64) _Atomic int32_t n_requested;
    _Atomic int32_t n_stolen; /* of these, tiles assigned to other threads */
} dpi_share_state;

/* One thread's view of an operation. */
typedef struct dpi_tiles {
    dpi_share_state *shares; /* [n_threads], not owned */
    int64_t n;
    int32_t thread, n_threads;
    int64_t begin, end; /* tiles of its own share that this thread has computed */
    int64_t left;       /* tiles of its own share that were free at the last request */
    int32_t n_done;     /* shares that have no free tile, its own first */
} dpi_tiles;

/* [*begin, *end): the share of `thread` in n things, contiguous. */
void dpi_share(int64_t n, int32_t thread, int32_t n_threads, int64_t *begin, int64_t *end);

/* All of the share is free. */
void dpi_share_clear(dpi_share_state *share);

/* An operation of n tiles (0..2^30). shares [n_threads] are the same for all threads. */
dpi_tiles dpi_tiles_begin(dpi_share_state *shares, int64_t n, int32_t thread, int32_t n_threads);

/* Assigns tiles [*first, *last) to this thread; each tile is assigned once. False when no tile of
 * any share is free. */
bool dpi_tiles_next(dpi_tiles *tiles, int64_t *first, int64_t *last);

/* Whether the last tiles are of another thread's share. */
static inline bool dpi_tiles_stolen(const dpi_tiles *tiles) { return tiles->n_done > 0; }

#endif
