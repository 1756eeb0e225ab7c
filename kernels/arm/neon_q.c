/* neon_q.c - 8-bit activations, and products with packed weights, for every AArch64. */
#include <math.h>

#include "kernels/arm/neon_util.h"
#include "kernels/kernels.h"

/* ---- Activations ----------------------------------------------------------------------------- */

enum { VECTORS = DPI_Q8_BLOCK / 4 };

/* 8 values in 65536ths of the largest, modulo 2^16 (a NaN is 0). */
INLINE int16x8_t q8_parts(const float *x, float32x4_t inverse) {
    const int32x4_t a = vcvtnq_s32_f32(vmulq_f32(vld1q_f32(x), inverse));
    const int32x4_t b = vcvtnq_s32_f32(vmulq_f32(vld1q_f32(x + 4), inverse));
    return vcombine_s16(vmovn_s32(a), vmovn_s32(b));
}

/* The L whose scale max / L has the smallest error. */
INLINE int32_t best_levels(const float *x, float max, const int32_t most) {
    const float32x4_t inverse = vdupq_n_f32(max > 1e-30f ? 65536.0f / max : 0.0f);
    int16x8_t t[4];
    float least = INFINITY;
    int32_t best = most;
    for (int i = 0; i < 4; i++)
        t[i] = q8_parts(x + 8 * i, inverse);
    for (int32_t L = most; L > most - dpi_q8_levels(most); L--) {
        int32x4_t sum = vdupq_n_s32(0);
        for (int i = 0; i < 4; i++) {
            const int16x8_t e = vshrq_n_s16(vmulq_n_s16(t[i], (int16_t)L), 4);
            sum = vmlal_s16(sum, vget_low_s16(e), vget_low_s16(e));
            sum = vmlal_high_s16(sum, e, e);
        }
        const float error = (float)vaddvq_s32(sum) * dpi_q8_weight(L);
        best = error < least ? L : best;
        least = error < least ? error : least;
    }
    return best;
}

/* 4 values as 8-bit integers, in 32 bits each; a NaN becomes -most. */
INLINE int32x4_t quantize_4(const float *x, float32x4_t inverse, float most) {
    float32x4_t v = vrndnq_f32(vmulq_f32(vld1q_f32(x), inverse));
    v = vminnmq_f32(vmaxnmq_f32(v, vdupq_n_f32(-most)), vdupq_n_f32(most));
    return vcvtq_s32_f32(v);
}

/* A block of all rows, then the next: they are written in their order. */
static void quantize_q8_neon(const dpi_q8 *to, int32_t rows, const float *x, int64_t x_stride,
                             int64_t n, int32_t form) {
    const int32_t most = dpi_q8_most(form);
    for (int64_t at = 0; at < n / DPI_Q8_BLOCK * rows; at++) {
        const float *from = x + at % rows * x_stride + at / rows * DPI_Q8_BLOCK;
        float32x4_t max = vdupq_n_f32(0);
        for (int i = 0; i < VECTORS; i++) /* a NaN is passed over */
            max = vmaxnmq_f32(vabsq_f32(vld1q_f32(from + 4 * i)), max);
        const float amax = vmaxvq_f32(max), levels = (float)best_levels(from, amax, most);
        const float32x4_t inverse = vdupq_n_f32(amax > 1e-30f ? levels / amax : 0.0f);
        int8_t q[DPI_Q8_BLOCK];
        int32_t sums[2];
        for (int h = 0; h < 2; h++) {
            int32x4_t v[4];
            for (int i = 0; i < 4; i++)
                v[i] = quantize_4(from + 16 * h + 4 * i, inverse, (float)most);
            sums[h] = vaddvq_s32(vaddq_s32(vaddq_s32(v[0], v[1]), vaddq_s32(v[2], v[3])));
            const int16x8_t a = vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]));
            const int16x8_t b = vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]));
            vst1q_s8(q + 16 * h, vcombine_s8(vmovn_s16(a), vmovn_s16(b)));
        }
        dpi_q8_put(to, at, form, q, sums, amax / levels);
    }
}

#define DOTPROD 0
#define HAS_PAIRS 0
#define NAME(kernel) kernel##_neon
#include "kernels/arm/neon_products_tmpl.h"

void dpi_kernels_init_neon_q(dpi_kernels *k) {
    k->quantize_q8 = quantize_q8_neon;
    k->probe_int8 = probe_int8_neon;
    init_products(k);
}
