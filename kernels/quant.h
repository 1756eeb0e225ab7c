/* quant.h - the weight types: one table row and one reference function each. Internal.
 * Source: the block layouts of GGML, as written in GGUF files. */
#ifndef DPI_QUANT_H
#define DPI_QUANT_H

#include <stdint.h>

/* GGML type ids of the types in the table of quant.c, which can be loaded. */
enum {
    DPI_TYPE_F32 = 0,
    DPI_TYPE_F16 = 1,
    DPI_TYPE_Q4_0 = 2,
    DPI_TYPE_Q4_1 = 3,
    DPI_TYPE_Q5_0 = 6,
    DPI_TYPE_Q5_1 = 7,
    DPI_TYPE_Q8_0 = 8,
    DPI_TYPE_Q2_K = 10,
    DPI_TYPE_Q3_K = 11,
    DPI_TYPE_Q4_K = 12,
    DPI_TYPE_Q5_K = 13,
    DPI_TYPE_Q6_K = 14,
    DPI_TYPE_IQ4_NL = 20,
    DPI_TYPE_IQ4_XS = 23,
    DPI_TYPE_BF16 = 30,
};

enum { DPI_MAX_BLOCK = 256 }; /* weights in the largest block of any type */

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
float dpi_f16_to_f32(uint16_t half);
uint16_t dpi_f32_to_f16(float value);

#endif
