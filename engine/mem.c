#define _DEFAULT_SOURCE
#include "mem.h"

#include <stdlib.h>
#include <string.h>

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

void dpi_wipe(void *p, size_t n_bytes) {
    if (p)
        explicit_bzero(p, n_bytes);
}

void dpi_wipe_free(void *p, size_t n_bytes) {
    dpi_wipe(p, n_bytes);
    free(p);
}
