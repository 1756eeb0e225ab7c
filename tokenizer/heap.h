/* heap.h - the merges that an encoder may still do, the best first. Internal to this folder. */
#ifndef DPI_HEAP_H
#define DPI_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* Two neighbours that make one token. Stale once one of them has grown or is gone: the encoder
 * notices that when it pops the merge. */
typedef struct dpi_pair {
    uint64_t key; /* the lowest first: priority, then the left neighbour's index in 32 bits */
    int32_t right;
    uint32_t n_bytes; /* of both */
} dpi_pair;

static inline uint64_t dpi_merge_key(uint32_t priority, int32_t left) {
    return (uint64_t)priority << 32 | (uint32_t)left;
}
static inline uint32_t dpi_merge_priority(const dpi_pair *m) { return (uint32_t)(m->key >> 32); }
static inline int32_t dpi_merge_left(const dpi_pair *m) { return (int32_t)(uint32_t)m->key; }

/* A merge removes one item and adds two new pairs at most, and there are fewer merges than symbols:
 * 2 * symbols items always suffice. */
typedef struct dpi_heap {
    dpi_pair *items;
    size_t n;
} dpi_heap;

static inline void dpi_heap_push(dpi_heap *h, dpi_pair item) {
    size_t i = h->n++;
    while (i > 0 && item.key < h->items[(i - 1) / 2].key) {
        h->items[i] = h->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->items[i] = item;
}

/* n >= 1. */
static inline dpi_pair dpi_heap_pop(dpi_heap *h) {
    dpi_pair top = h->items[0], last = h->items[--h->n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->n)
            break;
        if (child + 1 < h->n && h->items[child + 1].key < h->items[child].key)
            child++;
        if (h->items[child].key >= last.key)
            break;
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = last;
    return top;
}

#endif
