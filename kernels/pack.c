#include "pack.h"

#include <stddef.h>
#include <string.h>

#include "quant.h"

static const dpi_layout layouts[] = {
    /* type          half words n_words bytes */
    {DPI_TYPE_Q8_0, 0, 2, 8, 34},      {DPI_TYPE_Q4_0, 0, 2, 4, 18},
    {DPI_TYPE_Q4_1, -1, 0, 5, 20},     {DPI_TYPE_Q5_0, 0, 2, 5, 22},
    {DPI_TYPE_Q5_1, -1, 0, 6, 24},     {DPI_TYPE_Q2_K, -1, 0, 21, 84},
    {DPI_TYPE_Q3_K, 108, 0, 27, 110},  {DPI_TYPE_Q4_K, -1, 0, 36, 144},
    {DPI_TYPE_Q5_K, -1, 0, 44, 176},   {DPI_TYPE_Q6_K, 208, 0, 52, 210},
    {DPI_TYPE_IQ4_NL, 0, 2, 4, 18},    {DPI_TYPE_IQ4_XS, -1, 0, 34, 136},
    {DPI_TYPE_F16, 0, 2, 0, 2},        {DPI_TYPE_BF16, 0, 2, 0, 2},
};

const dpi_layout *dpi_layout_find(uint32_t type) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].type == type)
            return &layouts[i];
    return NULL;
}

void dpi_pack_group(const dpi_layout *layout, const void *rows, int32_t n_rows, int64_t n_blocks,
                    void *group) {
    unsigned char *halves = group;
    unsigned char *words = halves + dpi_layout_words(layout, n_blocks);
    if (n_rows < DPI_GROUP)
        memset(group, 0, (size_t)(DPI_GROUP * n_blocks * layout->block_bytes));
    for (int32_t r = 0; r < n_rows; r++) {
        const unsigned char *block =
            (const unsigned char *)rows + r * n_blocks * layout->block_bytes;
        for (int64_t b = 0; b < n_blocks; b++, block += layout->block_bytes) {
            if (layout->half >= 0)
                memcpy(halves + (b * DPI_GROUP + r) * 2, block + layout->half, 2);
            unsigned char *to = words + (b * layout->n_words * DPI_GROUP + r) * 4;
            const unsigned char *from = block + layout->words;
            for (int32_t i = 0; i < layout->n_words; i++, to += DPI_GROUP * 4, from += 4)
                memcpy(to, from, 4);
        }
    }
}

void dpi_unpack_blocks(const dpi_layout *layout, const void *group, int32_t row, int64_t first,
                       int64_t count, int64_t n_blocks, void *out) {
    const unsigned char *halves = group;
    const unsigned char *words = halves + dpi_layout_words(layout, n_blocks);
    unsigned char *to = out;
    for (int64_t b = first; b < first + count; b++, to += layout->block_bytes) {
        if (layout->half >= 0)
            memcpy(to + layout->half, halves + (b * DPI_GROUP + row) * 2, 2);
        for (int32_t i = 0; i < layout->n_words; i++)
            memcpy(to + layout->words + 4 * i,
                   words + ((b * layout->n_words + i) * DPI_GROUP + row) * 4, 4);
    }
}
