#include "kernels/pack.h"

#include <stddef.h>
#include <string.h>

#include "kernels/quant.h"

/* The scale of the block, those of its parts, codes. */
static const uint8_t order_q2_k[] = {20, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                     10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
/* Scales; low bits of the first half, each with the high bits that all share; of the second. */
static const uint8_t order_q3_k[] = {24, 25, 26, 8, 0,  9, 1,  10, 2,  11, 3,  12, 4,  13,
                                     5,  14, 6,  15, 7, 16, 17, 18, 19, 20, 21, 22, 23};
/* For g = 0..7, of weights 4g..4g+3 of all sub-blocks: high bits, low bits of two each; scales. */
static const uint8_t order_q5_k[] = {
    4, 12, 20, 28, 36, 5, 13, 21, 29, 37, 6, 14, 22, 30, 38, 7, 15, 23, 31, 39, 8, 16, 24, 32, 40,
    9, 17, 25, 33, 41, 10, 18, 26, 34, 42, 11, 19, 27, 35, 43, 0, 1, 2, 3};
/* For each half: scales; for g = 0..7, of weights 4g..4g+3 of all quarters: low bits of the first
 * and third, high bits, low bits of the others. */
static const uint8_t order_q6_k[] = {
    48, 49, 0, 32, 8, 1, 33, 9, 2, 34, 10, 3, 35, 11, 4, 36, 12, 5, 37, 13, 6, 38, 14, 7, 39, 15,
    50, 51, 16, 40, 24, 17, 41, 25, 18, 42, 26, 19, 43, 27, 20, 44, 28, 21, 45, 29, 22, 46, 30, 23,
    47, 31};

static const dpi_layout layouts[] = {
    /* type          half words n_words bytes order */
    {DPI_TYPE_Q8_0, 0, 2, 8, 34, NULL},
    {DPI_TYPE_Q4_0, 0, 2, 4, 18, NULL},
    {DPI_TYPE_Q4_1, -1, 0, 5, 20, NULL},
    {DPI_TYPE_Q5_0, 0, 2, 5, 22, NULL},
    {DPI_TYPE_Q5_1, -1, 0, 6, 24, NULL},
    {DPI_TYPE_Q2_K, -1, 0, 21, 84, order_q2_k},
    {DPI_TYPE_Q3_K, 108, 0, 27, 110, order_q3_k},
    {DPI_TYPE_Q4_K, -1, 0, 36, 144, NULL},
    {DPI_TYPE_Q5_K, -1, 0, 44, 176, order_q5_k},
    {DPI_TYPE_Q6_K, 208, 0, 52, 210, order_q6_k},
    {DPI_TYPE_IQ4_NL, 0, 2, 4, 18, NULL},
    {DPI_TYPE_IQ4_XS, -1, 0, 34, 136, NULL},
    {DPI_TYPE_F16, 0, 2, 0, 2, NULL},
    {DPI_TYPE_BF16, 0, 2, 0, 2, NULL},
};

/* Offset in a block of the word that comes i-th. */
static int32_t word_offset(const dpi_layout *layout, int32_t i) {
    return layout->words + 4 * (layout->order ? layout->order[i] : i);
}

/* Where the lone halves of block b stand in a group, and where the first word of each row. */
static int64_t half_at(const dpi_layout *layout, int64_t b) {
    return (b - b % 2) * DPI_GROUP * layout->block_bytes + b % 2 * DPI_GROUP * 2;
}
static int64_t words_at(const dpi_layout *layout, int64_t b, int64_t n_blocks) {
    int64_t pair = b - b % 2, halves = layout->half < 0 ? 0 : pair + 1 < n_blocks ? 2 : 1;
    return DPI_GROUP * (pair * layout->block_bytes + halves * 2 + b % 2 * layout->n_words * 4);
}

const dpi_layout *dpi_layout_find(uint32_t type) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].type == type)
            return &layouts[i];
    return NULL;
}

void dpi_pack_group(const dpi_layout *layout, const void *rows, int32_t n_rows, int64_t n_blocks,
                    void *group) {
    unsigned char *to = group;
    if (n_rows < DPI_GROUP)
        memset(group, 0, (size_t)(DPI_GROUP * n_blocks * layout->block_bytes));
    for (int32_t r = 0; r < n_rows; r++) {
        const unsigned char *block =
            (const unsigned char *)rows + r * n_blocks * layout->block_bytes;
        for (int64_t b = 0; b < n_blocks; b++, block += layout->block_bytes) {
            if (layout->half >= 0)
                memcpy(to + half_at(layout, b) + 2 * r, block + layout->half, 2);
            unsigned char *word = to + words_at(layout, b, n_blocks) + 4 * r;
            for (int32_t i = 0; i < layout->n_words; i++, word += DPI_GROUP * 4)
                memcpy(word, block + word_offset(layout, i), 4);
        }
    }
}

void dpi_unpack_blocks(const dpi_layout *layout, const void *group, int32_t row, int64_t first,
                       int64_t count, int64_t n_blocks, void *out) {
    unsigned char *to = out;
    for (int64_t b = first; b < first + count; b++, to += layout->block_bytes) {
        const unsigned char *from = group;
        if (layout->half >= 0)
            memcpy(to + layout->half, from + half_at(layout, b) + 2 * row, 2);
        from += words_at(layout, b, n_blocks) + 4 * row;
        for (int32_t i = 0; i < layout->n_words; i++, from += DPI_GROUP * 4)
            memcpy(to + word_offset(layout, i), from, 4);
    }
}
