#include "kernels/pack.h"

#include <string.h>

/* Offset in a block of the word that comes i-th. */
static int32_t word_offset(const dpi_type *type, int32_t i) {
    return type->words_at + 4 * (type->order ? type->order[i] : i);
}

/* Where the scales of block b stand in a panel, and where the first word of each row. */
static int64_t scales_at(const dpi_type *type, int64_t b) {
    return (b - b % 2) * DPI_PANEL_ROWS * type->block_bytes + b % 2 * DPI_PANEL_ROWS * 2;
}
static int64_t words_at(const dpi_type *type, int64_t b, int64_t n_blocks) {
    int64_t pair = b - b % 2, n_scales = type->scale_at < 0 ? 0 : pair + 1 < n_blocks ? 2 : 1;
    return DPI_PANEL_ROWS * (pair * type->block_bytes + n_scales * 2 + b % 2 * type->n_words * 4);
}

void dpi_panel_pack(const dpi_type *type, const void *rows, int32_t n_rows, int64_t n_blocks,
                    void *panel) {
    unsigned char *to = panel;
    if (n_rows < DPI_PANEL_ROWS)
        memset(panel, 0, (size_t)(DPI_PANEL_ROWS * n_blocks * type->block_bytes));
    for (int32_t r = 0; r < n_rows; r++) {
        const unsigned char *block = (const unsigned char *)rows + r * n_blocks * type->block_bytes;
        for (int64_t b = 0; b < n_blocks; b++, block += type->block_bytes) {
            if (type->scale_at >= 0)
                memcpy(to + scales_at(type, b) + 2 * r, block + type->scale_at, 2);
            unsigned char *word = to + words_at(type, b, n_blocks) + 4 * r;
            for (int32_t i = 0; i < type->n_words; i++, word += DPI_PANEL_ROWS * 4)
                memcpy(word, block + word_offset(type, i), 4);
        }
    }
}

void dpi_panel_unpack(const dpi_type *type, const void *panel, int32_t row, int64_t first,
                      int64_t count, int64_t n_blocks, void *out) {
    unsigned char *to = out;
    for (int64_t b = first; b < first + count; b++, to += type->block_bytes) {
        const unsigned char *from = panel;
        if (type->scale_at >= 0)
            memcpy(to + type->scale_at, from + scales_at(type, b) + 2 * row, 2);
        from += words_at(type, b, n_blocks) + 4 * row;
        for (int32_t i = 0; i < type->n_words; i++, from += DPI_PANEL_ROWS * 4)
            memcpy(to + word_offset(type, i), from, 4);
    }
}
