/* mem.h - checked sizes and allocations. Internal. */
#ifndef DPI_MEM_H
#define DPI_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *out = a * b or a + b; false (and *out unchanged) on overflow. */
static inline bool dpi_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool dpi_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* n * size zeroed bytes, NULL on overflow or lack of memory. Never NULL for n * size == 0.
 * Aligned to 64 bytes (one cache line, one AVX-512 vector). Free with free(). */
void *dpi_calloc(size_t n, size_t size);

/* Room for n entries of `size` bytes in an array that grows: `array` is the address of the pointer
 * to it, *capacity how many it has room for. NULL and 0 at first; free with free(). False, and both
 * as they were: no memory. dpi_private_grow (dpinfer/memory.h) does so in private memory. */
bool dpi_grow(void *array, size_t *capacity, size_t n, size_t size);
/* The same, with `resize` in the place of realloc. */
bool dpi_grow_by(void *(*resize)(void *, size_t), void *array, size_t *capacity, size_t n,
                 size_t size);

/* n_bytes (> 0) zeroed bytes straight from the system, in large pages where it has them: for
 * weights, which are read from end to end at every step. NULL on failure. Give back: dpi_unmap. */
void *dpi_map(size_t n_bytes);
void dpi_unmap(void *p, size_t n_bytes); /* NULL is allowed */

/* Whether there is memory now for plans of FFTW, there and back, of n_points: it ends the process
 * where it gets none. They take 17 bytes a point at most, and .2 MB; this asks for twice that. */
bool dpi_plan_fits(size_t n_points);

/* n_bytes (> 0) zeroed bytes for a key, in pages of their own: in no core dump, and not written to
 * swap where the system allows that (RLIMIT_MEMLOCK). NULL on failure. dpi_key_free wipes them and
 * gives them back; NULL is allowed. */
void *dpi_key_alloc(size_t n_bytes);
void dpi_key_free(void *key, size_t n_bytes);

/* Zeroes memory that held private data; not optimised away. NULL is allowed. */
void dpi_wipe(void *p, size_t n_bytes);
/* dpi_wipe, then free. NULL is allowed. */
void dpi_wipe_free(void *p, size_t n_bytes);

#endif
