/* barrier.h - where the threads of a pass wait for each other. Internal.
 *
 * A pass has eight or nine barriers a layer, a few microseconds apart in a small model. Threads
 * that only spin stop each other for whole time slices as soon as another process wants a core, and
 * threads that only sleep pay for being woken. These spin as long as that has lately been enough,
 * and sleep otherwise. They begin by spinning: whoever had to be woken comes late to the next
 * barrier, where the others then sleep in turn, so that little patience would not become more. */
#ifndef DPI_BARRIER_H
#define DPI_BARRIER_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct dpi_barrier {
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t phase; /* counts the times that all have arrived */
    _Atomic uint32_t n_asleep;
} dpi_barrier;

/* A thread's own: how much less it spins than at first, since that was in vain. Starts at 0. */
typedef struct dpi_patience {
    int32_t halvings;
} dpi_patience;

/* Returns when n_threads threads have called it. What each did before is visible to all after. */
void dpi_barrier_wait(dpi_barrier *barrier, int32_t n_threads, dpi_patience *patience);

#endif
