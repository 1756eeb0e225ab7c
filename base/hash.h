/* hash.h - FNV-1a over 8 bytes at a time: tells files and settings apart, no defence against
 * intent. Internal. */
#ifndef DPI_HASH_H
#define DPI_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DPI_HASH_INIT 0xcbf29ce484222325u

static inline uint64_t dpi_hash(uint64_t hash, const void *data, size_t n_bytes) {
    const unsigned char *p = data;
    while (n_bytes > 0) {
        uint64_t word = 0;
        size_t n = n_bytes < sizeof word ? n_bytes : sizeof word;
        memcpy(&word, p, n);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29; /* a product only carries upwards */
        p += n;
        n_bytes -= n;
    }
    return hash;
}

#endif
