/* weight_types.h - the weight types: one row of weight_types.def each. Internal.
 * Source: the block layouts of GGML, as written in GGUF files. */
#ifndef DPI_WEIGHT_TYPES_H
#define DPI_WEIGHT_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* DPI_TYPE_<NAME>: the GGML type ids of the types that can be loaded. */
enum {
#define WEIGHT(NAME, name, id, ...) DPI_TYPE_##NAME = id,
#include "kernels/weight_types.def"
#undef WEIGHT
};

enum { DPI_MAX_BLOCK = 256 }; /* weights in the largest block of any type */

/* How a matrix is multiplied with (weight_types.def). */
enum { DPI_PRODUCT_F32, DPI_PRODUCT_H, DPI_PRODUCT_Q };

typedef struct dpi_type {
    uint32_t id;      /* GGML type id */
    const char *name; /* as llama.cpp prints it */
    int32_t block;    /* weights per block; divides a row */
    int32_t block_bytes;
    /* n weights (a multiple of block) from `src` (any alignment) to f32, exactly. */
    void (*dequantize)(const void *src, float *dst, int64_t n);
    /* The other way, as closely as the type allows; finite values of at most 65504 in magnitude.
     * NULL if the type can only be read. */
    void (*quantize)(const float *src, void *dst, int64_t n);
    int32_t product;  /* a DPI_PRODUCT_.. */
    bool is_narrow;   /* codes are 0 to 15: activations may be, too (q8.h) */
    bool has_min;     /* a weight is scale * code - min */
    int32_t scale_at; /* in a block: the block scale that stands beside its words; -1: none */
    int32_t words_at; /* in a block: the first word */
    int32_t n_words;  /* of 4 bytes in a block */
    const uint8_t *order; /* [n_words] which word of a block comes next; NULL: as they are */
} dpi_type;

/* The types in the order of the table; NULL beyond its end. */
const dpi_type *dpi_type_at(int32_t index);
/* NULL if the type cannot be loaded. */
const dpi_type *dpi_type_find(uint32_t id);
/* The name of any GGML type id, loadable or not; NULL if there is no such id. */
const char *dpi_type_name(uint32_t id);
/* Bytes of a row of n weights; n is a multiple of type->block. */
static inline uint64_t dpi_type_row_bytes(const dpi_type *type, int64_t n) {
    return (uint64_t)n / (uint64_t)type->block * (uint64_t)type->block_bytes;
}

/* IEEE half to single, exact, and back with round to nearest even. */
float dpi_f16_to_f32(uint16_t f16);
uint16_t dpi_f32_to_f16(float value);

#endif
