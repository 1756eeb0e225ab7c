/* pack.h - quantised weights as the kernels read them: 16 output rows interleaved. Internal.
 *
 * A panel is 16 rows of a matrix. It holds the bytes of those rows, each once, in another order.
 * Two blocks by two (the last of an odd number on its own) these are
 *     u16 [2, 16]           the block scales, where the type has them beside its words
 *     u32 [2, n_words, 16]  the rest of the blocks, four bytes at a time
 * so that one vector load yields the same four bytes of 16 rows, and lies in one cache line. A
 * matrix is one stream, in the order in which the kernel for one sequence first needs it, and so
 * can be prefetched. (With the block scales of a panel in front of all its words, one core read 15
 * to 25 GB/s of memory that gives it 32 of one stream.)
 * A weight of 16 bits is a block of one block scale and no words. Nothing is lost or added: a
 * packed matrix is as large as it was, and any row can be read back. */
#ifndef DPI_PACK_H
#define DPI_PACK_H

#include "kernels/weight_types.h"

enum { DPI_PANEL_ROWS = 16 };

/* Whether there is a packed form of the type. */
static inline bool dpi_type_is_packed(const dpi_type *type) {
    return type->product != DPI_PRODUCT_F32;
}

/* Packs n_rows (<= 16) rows of n_blocks blocks, row_bytes apart, into the 16 * n_blocks *
 * block_bytes bytes of `panel`, aligned to 4. Missing rows become zeros. */
void dpi_panel_pack(const dpi_type *type, const void *rows, int32_t n_rows, int64_t n_blocks,
                    void *panel);
/* Blocks [first, first + count) of row `row` (0..15) of a panel, as they were: block_bytes bytes
 * each. */
void dpi_panel_unpack(const dpi_type *type, const void *panel, int32_t row, int64_t first,
                      int64_t count, int64_t n_blocks, void *out);

#endif
