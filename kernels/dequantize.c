/* dequantize.c - the float types and those with blocks of 32 weights, to f32. */
#include "kernels/weight_blocks.h"

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

void dpi_f32_dequantize(const void *src, float *dst, int64_t n) {
    memcpy(dst, src, (size_t)n * sizeof *dst);
}

void dpi_f16_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i++)
        dst[i] = dpi_f16_to_f32(load_u16(p + 2 * i));
}

/* BF16: the upper half of an f32. */
void dpi_bf16_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)load_u16(p + 2 * i) << 16;
        memcpy(dst + i, &bits, sizeof bits);
    }
}

/* In the types with blocks of 32, byte j of q has weight j in its low and weight j + 16 in its
 * high half; a fifth bit, if there is one, is bit j (j + 16) of the little-endian u32 before. */

/* Q4_0: { f16 scale; u8 q[16] }, weight = scale * (q - 8). */
void dpi_q4_0_dequantize(const void *src, float *dst, int64_t n) {
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
void dpi_q4_1_dequantize(const void *src, float *dst, int64_t n) {
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
void dpi_q5_0_dequantize(const void *src, float *dst, int64_t n) {
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
void dpi_q5_1_dequantize(const void *src, float *dst, int64_t n) {
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
void dpi_q8_0_dequantize(const void *src, float *dst, int64_t n) {
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
void dpi_iq4_nl_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += 32, p += 18) {
        float scale = load_f16(p);
        for (int j = 0; j < 16; j++) {
            dst[i + j] = scale * (float)dpi_iq4_values[p[2 + j] & 15];
            dst[i + 16 + j] = scale * (float)dpi_iq4_values[p[2 + j] >> 4];
        }
    }
}
