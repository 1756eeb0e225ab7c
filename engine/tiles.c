#include "tiles.h"

void dpi_share(int64_t n, int32_t thread, int32_t n_threads, int64_t *begin, int64_t *end) {
    *begin = n * thread / n_threads;
    *end = n * (thread + 1) / n_threads;
}

void dpi_claims_clear(dpi_claims *claims) {
    atomic_store_explicit(&claims->taken, 0, memory_order_relaxed);
    atomic_store_explicit(&claims->stolen, 0, memory_order_relaxed);
}

dpi_tiles dpi_tiles_of(dpi_claims *claims, int64_t n, int32_t thread, int32_t n_threads) {
    dpi_tiles t = {.claims = claims, .n = n, .thread = thread, .n_threads = n_threads};
    dpi_share(n, thread, n_threads, &t.begin, &t.end);
    t.end = t.begin;
    return t;
}

/* No order is needed: threads meet at a barrier before anyone reads what another one computed. */
static int32_t add_one(_Atomic int32_t *n) {
    return atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

bool dpi_tiles_next(dpi_tiles *t, int64_t *tile) {
    for (; t->turn < t->n_threads; t->turn++) {
        int32_t owner = (t->thread + t->turn) % t->n_threads;
        dpi_claims *c = &t->claims[owner];
        int64_t begin, end;
        dpi_share(t->n, owner, t->n_threads, &begin, &end);
        if (add_one(&c->taken) < end - begin) {
            *tile = t->turn == 0 ? t->end++ : end - 1 - add_one(&c->stolen);
            return true;
        }
    }
    return false;
}
