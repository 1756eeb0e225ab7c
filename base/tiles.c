#include "base/tiles.h"

void dpi_share(int64_t n, int32_t thread, int32_t n_threads, int64_t *begin, int64_t *end) {
    *begin = n * thread / n_threads;
    *end = n * (thread + 1) / n_threads;
}

void dpi_share_clear(dpi_share_state *share) {
    atomic_store_explicit(&share->n_requested, 0, memory_order_relaxed);
    atomic_store_explicit(&share->n_stolen, 0, memory_order_relaxed);
}

dpi_tiles dpi_tiles_begin(dpi_share_state *shares, int64_t n, int32_t thread, int32_t n_threads) {
    dpi_tiles t = {.shares = shares, .n = n, .thread = thread, .n_threads = n_threads};
    dpi_share(n, thread, n_threads, &t.begin, &t.end);
    t.left = t.end - t.begin;
    t.end = t.begin;
    return t;
}

/* No memory order is needed: threads meet at a barrier before one reads what another computed. */
static int32_t add(_Atomic int32_t *to, int64_t n) {
    return atomic_fetch_add_explicit(to, (int32_t)n, memory_order_relaxed);
}

bool dpi_tiles_next(dpi_tiles *t, int64_t *first, int64_t *last) {
    for (; t->n_done < t->n_threads; t->n_done++) {
        bool is_own = t->n_done == 0;
        int32_t owner = (t->thread + t->n_done) % t->n_threads;
        dpi_share_state *share = &t->shares[owner];
        int64_t begin, end, n = is_own && t->left >= 4 ? t->left / 4 : 1;
        dpi_share(t->n, owner, t->n_threads, &begin, &end);
        int64_t left = end - begin - add(&share->n_requested, n);
        if (left <= 0)
            continue;
        n = n < left ? n : left;
        if (is_own) {
            *first = t->end;
            t->end += n;
            t->left = left - n;
        } else {
            *first = end - 1 - add(&share->n_stolen, 1);
        }
        *last = *first + n;
        return true;
    }
    return false;
}
