#define _GNU_SOURCE
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/system.h"

enum { ALIGNMENT = 64 };

void *dpi_calloc(size_t n, size_t size) {
    uint64_t bytes;
    if (!dpi_mul_u64(n, size, &bytes) || bytes > PTRDIFF_MAX - ALIGNMENT)
        return NULL;
    /* aligned_alloc wants a multiple of the alignment, and 0 bytes must not give NULL. */
    size_t padded = ((size_t)bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *p = aligned_alloc(ALIGNMENT, padded);
    if (p)
        memset(p, 0, padded);
    return p;
}

bool dpi_grow_by(void *(*resize)(void *, size_t), void *array, size_t *capacity, size_t n,
                 size_t size) {
    uint64_t wanted, n_bytes;
    void *old, *grown;
    if (n <= *capacity)
        return true;
    if (!dpi_mul_u64(n, 2, &wanted) || !dpi_add_u64(wanted, 64, &wanted) ||
        !dpi_mul_u64(wanted, size, &n_bytes))
        return false;
    memcpy(&old, array, sizeof old); /* a pointer to any type */
    if (!(grown = resize(old, (size_t)n_bytes)))
        return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = (size_t)wanted;
    return true;
}

bool dpi_grow(void *array, size_t *capacity, size_t n, size_t size) {
    return dpi_grow_by(realloc, array, capacity, n, size);
}

void *dpi_map(size_t n_bytes) {
    void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    dpi_system_large_pages(p, n_bytes);
    dpi_system_no_dump(p, n_bytes); /* what prompts have become, or gigabytes of weights */
    return p;
}

void dpi_unmap(void *p, size_t n_bytes) {
    if (p)
        munmap(p, n_bytes);
}

bool dpi_plan_fits(size_t n_points) {
    const size_t n_bytes = ((size_t)1 << 20) + 34 * n_points;
    void *p = dpi_map(n_bytes);
    dpi_unmap(p, n_bytes);
    return p != NULL;
}

void *dpi_key_alloc(size_t n_bytes) {
    void *key = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (key == MAP_FAILED)
        return NULL;
    dpi_system_no_dump(key, n_bytes);
    mlock(key, n_bytes); /* a wish: many systems allow little, and some none */
    return key;
}

void dpi_key_free(void *key, size_t n_bytes) {
    if (!key)
        return;
    dpi_wipe(key, n_bytes);
    munmap(key, n_bytes);
}

void dpi_wipe(void *p, size_t n_bytes) {
    if (p)
        dpi_system_wipe(p, n_bytes);
}

void dpi_wipe_free(void *p, size_t n_bytes) {
    dpi_wipe(p, n_bytes);
    free(p);
}
