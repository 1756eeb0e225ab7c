/* dequantize_k.c - the types with super-blocks of 256 weights, to f32. Each weight is d * scale *
 * q, less dmin * min in the types that have one: d and dmin are f16 of the super-block, scale and
 * min small integers of a sub-block, so that every product is exact in f32. */
#include "kernels/weight_blocks.h"

enum { SUPER = DPI_MAX_BLOCK };

/* Scale and minimum of sub-block k: see dpi_k_scales_put. */
static void k_scales_of(const unsigned char *packed, int k, int *scale, int *min) {
    if (k < 4) {
        *scale = packed[k] & 63;
        *min = packed[k + 4] & 63;
    } else {
        *scale = (packed[k + 4] & 15) | packed[k - 4] >> 6 << 4;
        *min = packed[k + 4] >> 4 | packed[k] >> 6 << 4;
    }
}

void dpi_k_scales_put(unsigned char *packed, const uint8_t scales[8], const uint8_t mins[8]) {
    for (int k = 0; k < 4; k++) {
        packed[k] = (unsigned char)(scales[k] | scales[k + 4] >> 4 << 6);
        packed[k + 4] = (unsigned char)(mins[k] | mins[k + 4] >> 4 << 6);
        packed[k + 8] = (unsigned char)((scales[k + 4] & 15) | (mins[k + 4] & 15) << 4);
    }
}

/* Q2_K: { u8 scale_min[16]; u8 q[64]; f16 d; f16 dmin }. Sub-blocks of 16: scale in the low and
 * minimum in the high 4 bits. Weight 128 h + 32 j + l (h < 2, j < 4, l < 32) is bits 2j and 2j + 1
 * of q[32 h + l]. */
void dpi_q2_k_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += SUPER, p += 84) {
        float d = load_f16(p + 80), dmin = load_f16(p + 82);
        for (int s = 0; s < 16; s++) {
            const unsigned char *q = p + 16 + s / 8 * 32 + s % 2 * 16;
            float scale = d * (float)(p[s] & 15), min = dmin * (float)(p[s] >> 4);
            int shift = s % 8 / 2 * 2;
            for (int l = 0; l < 16; l++)
                dst[i + 16 * s + l] = scale * (float)(q[l] >> shift & 3) - min;
        }
    }
}

/* Q3_K: { u8 high[32]; u8 q[64]; u8 scales[12]; f16 d }. Weights as in Q2_K, with bit 4h + j of
 * high[l] on top; that makes 0..7, and 4 is taken off. Sub-blocks of 16: of scale k, byte k % 8 has
 * the low 4 bits (in its half k / 8), byte 8 + k % 4 the high 2 (at bit k / 4 * 2); 32 is taken
 * off. */
void dpi_q3_k_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += SUPER, p += 110) {
        const unsigned char *scales = p + 96;
        float d = load_f16(p + 108);
        for (int s = 0; s < 16; s++) {
            int low = scales[s % 8] >> s / 8 * 4 & 15, high = scales[8 + s % 4] >> s / 4 * 2 & 3;
            float scale = d * (float)((low | high << 4) - 32);
            const unsigned char *q = p + 32 + s / 8 * 32 + s % 2 * 16, *h = p + s % 2 * 16;
            int shift = s % 8 / 2 * 2, bit = s / 2;
            for (int l = 0; l < 16; l++)
                dst[i + 16 * s + l] =
                    scale * (float)((q[l] >> shift & 3) + 4 * (h[l] >> bit & 1) - 4);
        }
    }
}

/* Q4_K: { f16 d; f16 dmin; u8 scales[12]; u8 q[128] }. Sub-blocks of 32. Byte 32 g + l (g < 4,
 * l < 32) has weight 64 g + l in its low and weight 64 g + 32 + l in its high half. */
void dpi_q4_k_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += SUPER, p += 144) {
        float d = load_f16(p), dmin = load_f16(p + 2);
        for (int s = 0; s < 8; s++) {
            int sc, m, shift = s % 2 * 4;
            k_scales_of(p + 4, s, &sc, &m);
            const unsigned char *q = p + 16 + s / 2 * 32;
            float scale = d * (float)sc, min = dmin * (float)m;
            for (int l = 0; l < 32; l++)
                dst[i + 32 * s + l] = scale * (float)(q[l] >> shift & 15) - min;
        }
    }
}

/* Q5_K: { f16 d; f16 dmin; u8 scales[12]; u8 high[32]; u8 q[128] }: Q4_K with a fifth bit, bit s of
 * high[l] for weight l of sub-block s. */
void dpi_q5_k_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += SUPER, p += 176) {
        float d = load_f16(p), dmin = load_f16(p + 2);
        const unsigned char *h = p + 16;
        for (int s = 0; s < 8; s++) {
            int sc, m, shift = s % 2 * 4;
            k_scales_of(p + 4, s, &sc, &m);
            const unsigned char *q = p + 48 + s / 2 * 32;
            float scale = d * (float)sc, min = dmin * (float)m;
            for (int l = 0; l < 32; l++)
                dst[i + 32 * s + l] =
                    scale * (float)((q[l] >> shift & 15) | (h[l] >> s & 1) << 4) - min;
        }
    }
}

/* Q6_K: { u8 low[128]; u8 high[64]; i8 scales[16]; f16 d }. Sub-blocks of 16. Of weight
 * 128 h + 32 j + l, low[64 h + 32 (j % 2) + l] has the low 4 bits (in its half j / 2) and
 * high[32 h + l] the high 2 (at bit 2j); 32 is taken off. */
void dpi_q6_k_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += SUPER, p += 210) {
        float d = load_f16(p + 208);
        for (int s = 0; s < 16; s++) {
            float scale = d * (float)(int8_t)p[192 + s];
            int h = s / 8, j = s % 8 / 2, l0 = s % 2 * 16;
            const unsigned char *low = p + 64 * h + 32 * (j % 2) + l0;
            const unsigned char *high = p + 128 + 32 * h + l0;
            int shift = j / 2 * 4, high_shift = 2 * j;
            for (int l = 0; l < 16; l++)
                dst[i + 16 * s + l] = scale * (float)((low[l] >> shift & 15) +
                                                      (high[l] >> high_shift & 3) * 16 - 32);
        }
    }
}

/* IQ4_XS: { f16 d; u16 scales_high; u8 scales_low[4]; u8 q[128] }. Sub-blocks of 32 with a scale of
 * 6 bits less 32; within one, as IQ4_NL. */
void dpi_iq4_xs_dequantize(const void *src, float *dst, int64_t n) {
    const unsigned char *p = src;
    for (int64_t i = 0; i < n; i += SUPER, p += 136) {
        float d = load_f16(p);
        for (int s = 0; s < 8; s++) {
            int low = p[4 + s / 2] >> s % 2 * 4 & 15, high = load_u16(p + 2) >> 2 * s & 3;
            float scale = d * (float)((low | high << 4) - 32);
            const unsigned char *q = p + 8 + 16 * s;
            for (int l = 0; l < 16; l++) {
                dst[i + 32 * s + l] = scale * (float)dpi_iq4_values[q[l] & 15];
                dst[i + 32 * s + 16 + l] = scale * (float)dpi_iq4_values[q[l] >> 4];
            }
        }
    }
}
