/* keyed.h - random bits that are the same in each process of a release. Internal. */
#ifndef DPI_RELEASE_KEYED_H
#define DPI_RELEASE_KEYED_H

#include "dpinfer/release.h"

/* Private. */
typedef struct dpi_keyed_bits {
    uint8_t key[DPI_RELEASE_KEY_BYTES];
    uint64_t n_blocks; /* that were given */
} dpi_keyed_bits;

/* As a dpi_random_fn: the blocks of HMAC-SHA-256 under the key, one after the other. `user`: a
 * dpi_keyed_bits. */
int32_t dpi_keyed_random(void *user, void *bytes, size_t n_bytes);

#endif
