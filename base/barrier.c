#include "base/barrier.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The longest spin, in pauses of 10 to 40 ns by processor: a few times what a sleep costs. And how
 * often it is halved at most. */
enum { SPINS = 4000, MOST_HALVED = 5 };

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Sleeps while *word is `value`. It may return earlier: the caller looks again. */
static void sleep_while(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_all(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void dpi_barrier_wait(dpi_barrier *b, int32_t n_threads, dpi_spin *spin) {
    uint32_t phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
    if (atomic_fetch_add(&b->arrived, 1) + 1 == (uint32_t)n_threads) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        atomic_fetch_add(&b->phase, 1);
        /* A thread that is not counted yet reads the phase once more before it sleeps. */
        if (atomic_load(&b->n_asleep) > 0)
            wake_all(&b->phase);
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
        sleep_while(&b->phase, phase);
    atomic_fetch_sub(&b->n_asleep, 1);
}
