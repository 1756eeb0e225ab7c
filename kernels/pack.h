/* pack.h - quantised weights as the kernels read them: 16 output rows interleaved. Internal.
 *
 * A group is 16 rows of a matrix. It holds the bytes of those rows, each once, in another order.
 * Two blocks by two (the last of an odd number on its own) these are
 *     u16 [2, 16]           the lone halves of the blocks (their scales), where a type has them
 *     u32 [2, n_words, 16]  the rest of the blocks, four bytes at a time
 * so that one vector load yields the same four bytes of 16 rows, and lies in one cache line. A
 * matrix is one stream, in the order in which the kernel for one sequence first needs it, and so
 * can be fetched ahead. (With the halves of a group in front of all its words, one core took in 15
 * to 25 GB/s of memory that gives it 32 of one stream.)
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

#endif
