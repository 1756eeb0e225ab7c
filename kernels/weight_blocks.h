/* weight_blocks.h - the reference functions behind weight_types.def: one pair per weight type, in
 * dequantize.c and dequantize_k.c (to f32), quantize.c and quantize_k.c (from f32). Private to
 * them.
 *
 * dequantize: any bytes are safe; each weight is the exact value of its definition, rounded once.
 * quantize: finite input; n is a multiple of the block. Deterministic. */
#ifndef DPI_WEIGHT_BLOCKS_H
#define DPI_WEIGHT_BLOCKS_H

#include "kernels/weight_types.h"

static inline uint16_t load_u16(const unsigned char *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline float load_f16(const unsigned char *p) { return dpi_f16_to_f32(load_u16(p)); }

static inline void store_u16(unsigned char *p, uint16_t v) {
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

/* The nearest f16 that is finite: a fitted scale or offset may lie a little beyond the weights. */
static inline uint16_t finite_f16(float v) {
    return dpi_f32_to_f16(v > 65504 ? 65504 : v < -65504 ? -65504 : v);
}

/* The 16 values of a 4-bit code of IQ4_NL and IQ4_XS. */
extern const int8_t dpi_iq4_values[16];

/* Scales and minima of the eight sub-blocks of Q4_K and Q5_K, 0..63 each.
 * 12 bytes: k < 4: scale in the low 6 bits of byte k, minimum in those of byte k + 4;
 * k >= 4: their low 4 bits in the two nibbles of byte k + 4, their high 2 bits on top of bytes k -
 * 4 and k. */
void dpi_k_scales_put(unsigned char *packed, const uint8_t scales[8], const uint8_t mins[8]);

#define DECLARE_YES(name) void dpi_##name##_quantize(const float *src, void *dst, int64_t n);
#define DECLARE_NO(name)
#define WEIGHT(NAME, name, id, block, bytes, quantize, ...)                 \
    void dpi_##name##_dequantize(const void *src, float *dst, int64_t n); \
    DECLARE_##quantize(name)
#include "kernels/weight_types.def"
#undef WEIGHT
#undef DECLARE_YES
#undef DECLARE_NO

#endif
