#include "base/barrier.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Pauses of 10 to 40 ns, by processor: a few times what a sleep costs; how often that is halved. */
enum { SPINS = 4000, HALVINGS = 5 };

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Sleeps while *word is `value`, or less: the caller looks again. */
static void sleep_while(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_all(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void dpi_barrier_wait(dpi_barrier *b, int32_t n_threads, dpi_patience *patience) {
    uint32_t phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
    if (atomic_fetch_add(&b->arrived, 1) + 1 == (uint32_t)n_threads) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        atomic_fetch_add(&b->phase, 1);
        /* Whoever is not counted yet looks at the phase once more before it sleeps. */
        if (atomic_load(&b->n_asleep) > 0)
            wake_all(&b->phase);
        return;
    }
    for (int32_t i = 0; i < SPINS >> patience->halvings; i++) {
        if (atomic_load_explicit(&b->phase, memory_order_acquire) != phase) {
            patience->halvings -= patience->halvings > 0;
            return;
        }
        relax();
    }
    patience->halvings += patience->halvings < HALVINGS;
    atomic_fetch_add(&b->n_asleep, 1);
    while (atomic_load(&b->phase) == phase)
        sleep_while(&b->phase, phase);
    atomic_fetch_sub(&b->n_asleep, 1);
}
