/* byte_slices.h - the tables of the sampler by bytes, where a shuffle selects bytes. Internal. */
#ifndef DPI_BYTE_SLICES_H
#define DPI_BYTE_SLICES_H

#include <stdint.h>

/* byte[t][s][j] = byte s of table[t][j]. */
typedef struct slices {
    uint8_t byte[3][8][256];
} slices;

static inline void slice(const uint64_t table[3][256], slices *to) {
    for (int t = 0; t < 3; t++)
        for (int s = 0; s < 8; s++)
            for (int j = 0; j < 256; j++)
                to->byte[t][s][j] = (uint8_t)(table[t][j] >> 8 * s);
}

#endif
