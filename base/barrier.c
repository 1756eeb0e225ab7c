#include "base/barrier.h"

#include "base/system.h"

/* The longest spin, in pauses of 10 to 40 ns by processor: a few times what a sleep costs. And how
 * often it is halved at most. */
enum { SPINS = 4000, MOST_HALVED = 5 };

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void dpi_barrier_wait(dpi_barrier *b, int32_t n_threads, dpi_spin *spin) {
    uint32_t phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
    if (atomic_fetch_add(&b->arrived, 1) + 1 == (uint32_t)n_threads) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        atomic_fetch_add(&b->phase, 1);
        /* A thread that is not counted yet reads the phase once more before it sleeps. */
        if (atomic_load(&b->n_asleep) > 0)
            dpi_system_wake_all(&b->phase);
        return;
    }
    for (int32_t i = 0; i < SPINS >> spin->n_halved; i++) {
        if (atomic_load_explicit(&b->phase, memory_order_acquire) != phase) {
            spin->n_halved -= spin->n_halved > 0;
            return;
        }
        relax();
    }
    spin->n_halved += spin->n_halved < MOST_HALVED;
    atomic_fetch_add(&b->n_asleep, 1);
    while (atomic_load(&b->phase) == phase)
        dpi_system_sleep_while(&b->phase, phase);
    atomic_fetch_sub(&b->n_asleep, 1);
}
