/* quantize.c - f32 to the float types and to those with blocks of 32 weights. Layouts:
 * dequantize.c. */
#include <math.h>
#include <string.h>

#include "kernels/quant_fit.h"
#include "kernels/weight_blocks.h"

enum { BLOCK = 32 };

void dpi_f32_quantize(const float *src, void *dst, int64_t n) {
    memcpy(dst, src, (size_t)n * sizeof *src);
}

void dpi_f16_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    for (int64_t i = 0; i < n; i++)
        store_u16(p + 2 * i, dpi_f32_to_f16(src[i]));
}

/* Round to nearest even; what is finite stays finite. */
void dpi_bf16_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits, rounded;
        memcpy(&bits, src + i, sizeof bits);
        rounded = bits + 0x7fff + (bits >> 16 & 1);
        if ((rounded & 0x7f800000u) == 0x7f800000u) /* would be infinite: the largest instead */
            rounded = bits;
        store_u16(p + 2 * i, (uint16_t)(rounded >> 16));
    }
}

/* Scale of a block as the file holds it. */
static float put_f16(unsigned char *p, float value) {
    uint16_t half = finite_f16(value);
    store_u16(p, half);
    return dpi_f16_to_f32(half);
}

static void pack_4_bits(unsigned char *p, const int8_t *q, int bias) {
    for (int j = 0; j < 16; j++)
        p[j] = (unsigned char)(((q[j] + bias) & 15) | ((q[16 + j] + bias) & 15) << 4);
}

/* { u32 fifth bits; u8 q[16] } */
static void pack_5_bits(unsigned char *p, const int8_t *q, int bias) {
    uint32_t high = 0;
    for (int j = 0; j < BLOCK; j++)
        high |= (uint32_t)((q[j] + bias) >> 4 & 1) << j;
    store_u16(p, (uint16_t)high);
    store_u16(p + 2, (uint16_t)(high >> 16));
    pack_4_bits(p + 4, q, bias);
}

void dpi_q8_0_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    float w[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        w[i] = 1;
    for (int64_t i = 0; i < n; i += BLOCK, p += 34) {
        float largest = 0;
        for (int j = 0; j < BLOCK; j++)
            largest = fabsf(src[i + j]) > largest ? fabsf(src[i + j]) : largest;
        float scale = put_f16(p, largest / 127);
        int8_t q[BLOCK];
        dpi_fit_round(src + i, w, BLOCK, scale, 0, -127, 127, q);
        memcpy(p + 2, q, sizeof q);
    }
}

/* Q4_0 (half 8) and Q5_0 (half 16). */
static void quantize_symmetric(const float *x, unsigned char *p, int half, int8_t *q) {
    float w[BLOCK];
    dpi_fit_weights(w, x, BLOCK);
    float scale = put_f16(p, dpi_fit_symmetric(x, w, BLOCK, half).scale);
    dpi_fit_round(x, w, BLOCK, scale, 0, -half, half - 1, q);
}

/* Q4_1 (top 15) and Q5_1 (top 31). */
static void quantize_affine(const float *x, unsigned char *p, int top, int8_t *q) {
    float w[BLOCK];
    dpi_fit_weights(w, x, BLOCK);
    dpi_fit fit = dpi_fit_affine(x, w, BLOCK, top, 0);
    float scale = put_f16(p, fit.scale), offset = put_f16(p + 2, fit.offset);
    dpi_fit_round(x, w, BLOCK, scale, offset, 0, top, q);
}

void dpi_q4_0_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    int8_t q[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK, p += 18) {
        quantize_symmetric(src + i, p, 8, q);
        pack_4_bits(p + 2, q, 8);
    }
}

void dpi_q5_0_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    int8_t q[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK, p += 22) {
        quantize_symmetric(src + i, p, 16, q);
        pack_5_bits(p + 2, q, 16);
    }
}

void dpi_q4_1_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    int8_t q[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK, p += 20) {
        quantize_affine(src + i, p, 15, q);
        pack_4_bits(p + 4, q, 0);
    }
}

void dpi_q5_1_quantize(const float *src, void *dst, int64_t n) {
    unsigned char *p = dst;
    int8_t q[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK, p += 24) {
        quantize_affine(src + i, p, 31, q);
        pack_5_bits(p + 4, q, 0);
    }
}
