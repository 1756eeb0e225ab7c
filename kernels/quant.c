#include "kernels/quant_impl.h"

#include <stddef.h>
#include <string.h>

/* Exact in both directions of the bits: subnormals, infinities and NaN included. */
float dpi_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 31, mantissa = half & 1023;
    uint32_t bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000u | mantissa << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    } else {
        /* Subnormal: mantissa * 2^-24, exact in f32. */
        float magnitude = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &magnitude, sizeof bits);
        bits |= sign;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t dpi_f32_to_f16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) /* NaN: quiet, payload's top bits kept */
        return (uint16_t)(sign | 0x7e00 | (bits >> 13 & 0x3ff));
    if (bits >= 0x477ff000u) /* 65520 and above round to infinity */
        return sign | 0x7c00;
    if (bits < 0x38800000u) { /* below 2^-14: 1/2 + x has m * 2^-24, rounded, at its end */
        float magnitude;
        memcpy(&magnitude, &bits, sizeof magnitude);
        magnitude += 0.5f;
        memcpy(&bits, &magnitude, sizeof bits);
        return (uint16_t)(sign | (bits & 0x7ff));
    }
    uint32_t rounded = bits + 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}

static void dequantize_f32(const void *src, float *dst, int64_t n) {
    memcpy(dst, src, (size_t)n * sizeof *dst);
}

static void dequantize_f16(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i++)
        dst[i] = dpi_f16_to_f32(load_u16(p + 2 * i));
}

/* BF16: the upper half of an f32. */
static void dequantize_bf16(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)load_u16(p + 2 * i) << 16;
        memcpy(dst + i, &bits, sizeof bits);
    }
}

/* In the types with blocks of 32, byte j of q has weight j in its low and weight j + 16 in its
 * high half; a fifth bit, if there is one, is bit j (j + 16) of the little-endian u32 before. */

/* Q4_0: { f16 scale; u8 q[16] }, weight = scale * (q - 8). */
static void dequantize_q4_0(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += 32, p += 18) {
        float scale = load_f16(p);
        for (int j = 0; j < 16; j++) {
            dst[i + j] = scale * (float)((p[2 + j] & 15) - 8);
            dst[i + 16 + j] = scale * (float)((p[2 + j] >> 4) - 8);
        }
    }
}

/* Q4_1: { f16 scale; f16 min; u8 q[16] }, weight = scale * q + min. */
static void dequantize_q4_1(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += 32, p += 20) {
        float scale = load_f16(p), min = load_f16(p + 2);
        for (int j = 0; j < 16; j++) {
            dst[i + j] = scale * (float)(p[4 + j] & 15) + min;
            dst[i + 16 + j] = scale * (float)(p[4 + j] >> 4) + min;
        }
    }
}

/* The 32 values 0..31 of { u32 high; u8 q[16] }. */
static void unpack_5_bits(const unsigned char *p, int32_t *q) {
    uint32_t high = load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
    for (int j = 0; j < 16; j++) {
        q[j] = (int32_t)((p[4 + j] & 15) | (high >> j & 1) << 4);
        q[16 + j] = (int32_t)(p[4 + j] >> 4 | (high >> (16 + j) & 1) << 4);
    }
}

/* Q5_0: { f16 scale; u32 high; u8 q[16] }, weight = scale * (q - 16). */
static void dequantize_q5_0(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    int32_t q[32];
    for (int64_t i = 0; i < n; i += 32, p += 22) {
        float scale = load_f16(p);
        unpack_5_bits(p + 2, q);
        for (int j = 0; j < 32; j++)
            dst[i + j] = scale * (float)(q[j] - 16);
    }
}

/* Q5_1: { f16 scale; f16 min; u32 high; u8 q[16] }, weight = scale * q + min. */
static void dequantize_q5_1(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    int32_t q[32];
    for (int64_t i = 0; i < n; i += 32, p += 24) {
        float scale = load_f16(p), min = load_f16(p + 2);
        unpack_5_bits(p + 4, q);
        for (int j = 0; j < 32; j++)
            dst[i + j] = scale * (float)q[j] + min;
    }
}

/* Q8_0: { f16 scale; int8 q[32] }, weight = scale * q. */
static void dequantize_q8_0(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += 32, p += 34) {
        float scale = load_f16(p);
        for (int j = 0; j < 32; j++)
            dst[i + j] = scale * (float)(int8_t)p[2 + j];
    }
}

/* Constants of the format. */
const int8_t dpi_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

/* IQ4_NL: { f16 scale; u8 q[16] }, weight = scale * value[q]. */
static void dequantize_iq4_nl(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += 32, p += 18) {
        float scale = load_f16(p);
        for (int j = 0; j < 16; j++) {
            dst[i + j] = scale * (float)dpi_iq4_values[p[2 + j] & 15];
            dst[i + 16 + j] = scale * (float)dpi_iq4_values[p[2 + j] >> 4];
        }
    }
}

static const dpi_type types[] = {
    /* id, name, weights and bytes of a block, to f32, from f32 (NULL: only read) */
    {DPI_TYPE_F32, "F32", 1, 4, dequantize_f32, dpi_f32_quantize},
    {DPI_TYPE_F16, "F16", 1, 2, dequantize_f16, dpi_f16_quantize},
    {DPI_TYPE_BF16, "BF16", 1, 2, dequantize_bf16, dpi_bf16_quantize},
    {DPI_TYPE_Q8_0, "Q8_0", 32, 34, dequantize_q8_0, dpi_q8_0_quantize},
    {DPI_TYPE_Q4_0, "Q4_0", 32, 18, dequantize_q4_0, dpi_q4_0_quantize},
    {DPI_TYPE_Q4_1, "Q4_1", 32, 20, dequantize_q4_1, dpi_q4_1_quantize},
    {DPI_TYPE_Q5_0, "Q5_0", 32, 22, dequantize_q5_0, dpi_q5_0_quantize},
    {DPI_TYPE_Q5_1, "Q5_1", 32, 24, dequantize_q5_1, dpi_q5_1_quantize},
    {DPI_TYPE_IQ4_NL, "IQ4_NL", 32, 18, dequantize_iq4_nl, NULL},
    {DPI_TYPE_Q2_K, "Q2_K", 256, 84, dpi_q2_k_dequantize, NULL},
    {DPI_TYPE_Q3_K, "Q3_K", 256, 110, dpi_q3_k_dequantize, NULL},
    {DPI_TYPE_Q4_K, "Q4_K", 256, 144, dpi_q4_k_dequantize, dpi_q4_k_quantize},
    {DPI_TYPE_Q5_K, "Q5_K", 256, 176, dpi_q5_k_dequantize, dpi_q5_k_quantize},
    {DPI_TYPE_Q6_K, "Q6_K", 256, 210, dpi_q6_k_dequantize, dpi_q6_k_quantize},
    {DPI_TYPE_IQ4_XS, "IQ4_XS", 256, 136, dpi_iq4_xs_dequantize, NULL},
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
