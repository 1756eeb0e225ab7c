#include "kernels/weight_types.h"

#include <stddef.h>

#include "kernels/weight_blocks.h"

/* The scale of the block, those of its parts, codes. */
static const uint8_t order_q2_k[] = {20, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                     10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
/* Scales; low bits of the first 128 weights, each with the high bits that all share; of the others.
 */
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

/* A block scale that stands beside the words is the first or the last of its block. */
#define WORDS_AT(scale_at) ((scale_at) == 0 ? 2 : 0)
#define N_WORDS(bytes, scale_at) (((bytes) - ((scale_at) < 0 ? 0 : 2)) / 4)
#define QUANTIZE_YES(name) dpi_##name##_quantize
#define QUANTIZE_NO(name) NULL
#define IS_NARROW(is_signed, most) (!(is_signed) && (most) == 15)

static const dpi_type types[] = {
#define WEIGHT(NAME_, name_, id_, block_, bytes_, quantize_, product_, scale_at_, order_, parts,   \
               has_min_, is_signed, bias, most, ...)                                               \
    {                                                                                             \
        .id = id_,                                                                                \
        .name = #NAME_,                                                                           \
        .block = block_,                                                                          \
        .block_bytes = bytes_,                                                                    \
        .dequantize = dpi_##name_##_dequantize,                                                   \
        .quantize = QUANTIZE_##quantize_(name_),                                                  \
        .product = DPI_PRODUCT_##product_,                                                        \
        .is_narrow = IS_NARROW(is_signed, most),                                                  \
        .has_min = has_min_,                                                                      \
        .scale_at = scale_at_,                                                                    \
        .words_at = WORDS_AT(scale_at_),                                                          \
        .n_words = N_WORDS(bytes_, scale_at_),                                                    \
        .order = order_,                                                                          \
    },
#include "kernels/weight_types.def"
#undef WEIGHT
};

enum { N_TYPES = sizeof types / sizeof types[0] };

const dpi_type *dpi_type_at(int32_t index) {
    return index >= 0 && index < N_TYPES ? &types[index] : NULL;
}

const dpi_type *dpi_type_find(uint32_t id) {
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].id == id)
            return &types[i];
    return NULL;
}

const char *dpi_type_name(uint32_t id) {
    /* Ids 4, 5, 31 to 33, 36 to 38 were removed from the format. */
    static const char *const names[] = {
        [0] = "F32",      [1] = "F16",      [2] = "Q4_0",     [3] = "Q4_1",      [6] = "Q5_0",
        [7] = "Q5_1",     [8] = "Q8_0",     [9] = "Q8_1",     [10] = "Q2_K",     [11] = "Q3_K",
        [12] = "Q4_K",    [13] = "Q5_K",    [14] = "Q6_K",    [15] = "Q8_K",     [16] = "IQ2_XXS",
        [17] = "IQ2_XS",  [18] = "IQ3_XXS", [19] = "IQ1_S",   [20] = "IQ4_NL",   [21] = "IQ3_S",
        [22] = "IQ2_S",   [23] = "IQ4_XS",  [24] = "I8",      [25] = "I16",      [26] = "I32",
        [27] = "I64",     [28] = "F64",     [29] = "IQ1_M",   [30] = "BF16",     [34] = "TQ1_0",
        [35] = "TQ2_0",   [39] = "MXFP4",   [40] = "NVFP4",
    };
    return id < sizeof names / sizeof names[0] ? names[id] : NULL;
}
