/* pack.h - quantised weights as the kernels read them: 16 output rows interleaved. Internal.
 *
 * A group is 16 rows of a matrix. It holds the bytes of those rows, each once, in another order:
 *     u16 [n_blocks, 16]        the lone half of every block (its scale), where a type has one
 *     u32 [n_blocks, n_words, 16]  the rest of every block, four bytes at a time
 * so that one vector load yields the same four bytes of 16 rows. The words of a block stand in the
 * order in which kernels first need them, because hardware fetches ahead only what is read upwards.
 * A weight of 16 bits is a block of one lone half. Nothing is lost or added: a packed matrix is as
 * large as it was, and any row can be read back. */
#ifndef DPI_PACK_H
#define DPI_PACK_H

#include <stdbool.h>
#include <stdint.h>

enum { DPI_GROUP = 16 };

typedef struct dpi_layout {
    uint32_t type;       /* GGML type id */
    int32_t half;        /* offset of the lone half in a block; -1: the type has none */
    int32_t words;       /* offset of the first word */
    int32_t n_words;     /* words of 4 bytes in a block */
    int32_t block_bytes; /* of one row */
    const uint8_t *order; /* [n_words] which word of a block comes next; NULL: as they are */
} dpi_layout;

/* NULL if there is no packed form of the type. */
const dpi_layout *dpi_layout_find(uint32_t type);

/* Packs n_rows (<= 16) rows of n_blocks blocks, row_bytes apart, into the 16 * n_blocks *
 * block_bytes bytes of `group`, aligned to 4. Missing rows become zeros. */
void dpi_pack_group(const dpi_layout *layout, const void *rows, int32_t n_rows, int64_t n_blocks,
                    void *group);
/* Blocks [first, first + count) of row `row` (0..15) of a group, as they were: block_bytes bytes
 * each. */
void dpi_unpack_blocks(const dpi_layout *layout, const void *group, int32_t row, int64_t first,
                       int64_t count, int64_t n_blocks, void *out);

/* Where a group's words begin. */
static inline int64_t dpi_layout_words(const dpi_layout *layout, int64_t n_blocks) {
    return layout->half < 0 ? 0 : n_blocks * DPI_GROUP * (int64_t)sizeof(uint16_t);
}

#endif
