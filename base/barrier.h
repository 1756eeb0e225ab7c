/* barrier.h - where the threads of a pass wait for each other. Internal.
 *
 * A pass has eight or nine barriers a layer, a few microseconds apart in a small model. Threads
 * that only spin stop each other for whole time slices as soon as another process needs a core.
 * Threads that only sleep pay for being woken. These threads spin while spinning has lately been
 * enough, and sleep otherwise. They begin with the longest spin: a thread that was woken comes late
 * to the next barrier and makes the others sleep there, so that a short spin would stay short. */
#ifndef DPI_BARRIER_H
#define DPI_BARRIER_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct dpi_barrier {
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t phase; /* counts the times that all have arrived */
    _Atomic uint32_t n_asleep;
} dpi_barrier;

/* How long one thread spins before it sleeps. Each thread has its own, which starts at 0. */
typedef struct dpi_spin {
    int32_t n_halved; /* the longest spin is halved so often: once more after a spin that was too
                         short, once less after one that was enough */
} dpi_spin;

/* Returns when n_threads threads have called it. What each did before is visible to all after. */
void dpi_barrier_wait(dpi_barrier *barrier, int32_t n_threads, dpi_spin *spin);

#endif
