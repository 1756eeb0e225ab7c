#include "quant.h"

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
    if (bits < 0x38800000u) { /* below 2^-14: adding 1/2 leaves m * 2^-24, rounded, in the low bits */
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

static uint16_t load_u16(const unsigned char *p) { return (uint16_t)(p[0] | p[1] << 8); }

static void dequantize_f16(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i++)
        dst[i] = dpi_f16_to_f32(load_u16(p + 2 * i));
}

/* Q8_0: { f16 scale; int8 q[32] }, weight = scale * q. */
static void dequantize_q8_0(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += 32, p += 34) {
        float scale = dpi_f16_to_f32(load_u16(p));
        for (int j = 0; j < 32; j++)
            dst[i + j] = scale * (float)(int8_t)p[2 + j];
    }
}

static const dpi_type types[] = {
    /* id              name    block bytes  dequantize */
    {DPI_TYPE_F32, "F32", 1, 4, dequantize_f32},
    {DPI_TYPE_F16, "F16", 1, 2, dequantize_f16},
    {DPI_TYPE_Q8_0, "Q8_0", 32, 34, dequantize_q8_0},
};

const dpi_type *dpi_type_find(uint32_t id) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
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
