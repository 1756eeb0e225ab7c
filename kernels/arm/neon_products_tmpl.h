/* neon_products_tmpl.h - products with packed weights for AArch64, with the dot product instruction
 * or without, and with that for products of matrices: the same integers, so the same bits. The
 * including file defines DOTPROD and HAS_PAIRS (0 or 1) and NAME(kernel), the name of its function;
 * it gets init_products(), and probe_int8(). */
#include "kernels/arm/neon_util.h"
#include "kernels/kernels.h"
#include "kernels/order.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"

/* ---- Products: the primitives of q_products_tmpl.h ------------------------------------------- */

#define LANES 4
#define TILE (DOTPROD && !HAS_PAIRS ? 7 : 4) /* by simulation: bench/simulate.py */
#define HAS_WINOGRAD 0
#define HAS_UNPACKED 0
#define SIGNED_CODES 1
typedef int32x4_t vec;
typedef float32x4_t vecf;
#include "kernels/arm/prefetch.h"

INLINE vec load_word(const unsigned char *p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
INLINE vec or_bits(vec a, vec b) { return vorrq_s32(a, b); }
INLINE vec and_bytes(vec v, const int mask) { return (vec)((u8s)v & (uint8_t)mask); }
INLINE vec flip_sign(vec v) { return (vec)((u8s)v ^ 0x80); }
INLINE vec shift_left16(vec v, const int n) { return (vec)((u16s)v << n); }
INLINE vec shift_right16(vec v, const int n) { return (vec)((u16s)v >> n); }
INLINE vec shift_left32(vec v, const int n) { return (vec)((u32s)v << n); }
INLINE vec shift_right32(vec v, const int n) { return (vec)((u32s)v >> n); }
INLINE vec shift_right32_signed(vec v, const int n) { return (vec)((i32s)v >> n); }
INLINE vec and_words(vec v, const int mask) { return (vec)((i32s)v & mask); }
INLINE vec sub_words(vec v, const int n) { return (vec)((i32s)v - n); }
INLINE vec broadcast_word(int32_t x) { return vdupq_n_s32(x); }

INLINE vecf zero_f(void) { return vdupq_n_f32(0); }
INLINE vecf broadcast_f(float x) { return vdupq_n_f32(x); }
INLINE vecf mul_f(vecf a, vecf b) { return vmulq_f32(a, b); }
INLINE vecf add_f(vecf a, vecf b) { return vaddq_f32(a, b); }
INLINE vecf sub_f(vecf a, vecf b) { return vsubq_f32(a, b); }
INLINE vecf fma_f(vecf a, vecf b, vecf c) { return vfmaq_f32(c, a, b); }
INLINE vecf to_float(vec v) { return vcvtq_f32_s32(v); }
INLINE vecf as_float(vec v) { return vreinterpretq_f32_s32(v); }
INLINE vecf low_f16(vec v) {
    return vcvt_f32_f16(vreinterpret_f16_s16(vmovn_s32(v)));
}
INLINE vecf high_f16(vec v) {
    return vcvt_f32_f16(vreinterpret_f16_s16(vshrn_n_s32(v, 16)));
}
INLINE vecf load_f16s(const unsigned char *p) { return widen_f16s(p); }
INLINE void store_f(float *p, vecf v, int32_t n) { store_lanes(p, v, n); }

#if DOTPROD
typedef vec sums;
INLINE sums sums_from(vec v) { return v; }
INLINE vec sums_total(sums sum) { return sum; }

/* The four steps of a vector of activations are loaded at once. */
INLINE sums dot(sums sum, vec weights, const int32_t *x, const int signed_weights, const int step,
                const int at_once, const int in_order) {
    const int8x16_t w = vreinterpretq_s8_s32(weights);
    const int8x16_t four = vreinterpretq_s8_s32(vld1q_s32(x - step % 4));
    (void)signed_weights, (void)at_once, (void)in_order;
    switch (step % 4) {
    case 0: return vdotq_laneq_s32(sum, w, four, 0);
    case 1: return vdotq_laneq_s32(sum, w, four, 1);
    case 2: return vdotq_laneq_s32(sum, w, four, 2);
    default: return vdotq_laneq_s32(sum, w, four, 3);
    }
}
#else
/* Sums of 32 bits, and those of pairs of bytes on their way, of 16. */
typedef struct sums {
    vec total;
    int16x8_t pairs;
} sums;

INLINE sums sums_from(vec v) { return (sums){v, vdupq_n_s16(0)}; }
INLINE vec sums_total(sums sum) { return sum.total; }

/* A product of two bytes is at most 128 * 127: two fit into 16 bits. */
INLINE sums dot(sums sum, vec weights, const int32_t *x, const int signed_weights, const int step,
                const int at_once, const int in_order) {
    const int8x16_t w = vreinterpretq_s8_s32(weights);
    const int8x16_t four = vreinterpretq_s8_s32(broadcast_word(*x));
    const int16x8_t pairs =
        vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(four)), vmull_high_s8(w, four));
    (void)signed_weights;
    sum.pairs = step % at_once == 0 ? pairs : vaddq_s16(sum.pairs, pairs);
    if (in_order)
        COMPUTED(sum.pairs);
    if (step % at_once == at_once - 1)
        sum.total = vpadalq_s16(sum.total, sum.pairs);
    return sum;
}
#endif

#if HAS_PAIRS
INLINE vec low_rows(vec a, vec b) { return vzip1q_s32(a, b); }
INLINE vec high_rows(vec a, vec b) { return vzip2q_s32(a, b); }
INLINE vec two_sequences(const int32_t *x, const int32_t *y) {
    return vcombine_s32(vld1_s32(x), vld1_s32(y));
}
INLINE sums dot_pairs(sums sum, vec rows, vec x) {
    return vmmlaq_s32(sum, vreinterpretq_s8_s32(rows), vreinterpretq_s8_s32(x));
}
/* Of sequences a, b: row by row a, b. */
INLINE void pair_sums(sums *a, sums *b) {
    const vec low = vzip1q_s32(*a, *b), high = vzip2q_s32(*a, *b);
    *a = low, *b = high;
}
INLINE void part_sums(sums *low, sums *high) {
    const vec a = vuzp1q_s32(*low, *high), b = vuzp2q_s32(*low, *high);
    *low = a, *high = b;
}
#endif

/* Adds 16 to the bytes of weights 4g..4g+3 whose bit is set in each row's word of 32 high bits. */
INLINE vec add_high_bits(vec low, vec high, const int g) {
    const uint8_t i = (uint8_t)(g / 2);
    const u8s copy = (u8s){0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12} + i;
    const i32s select = (i32s){0} + (g % 2 ? (int)0x80402010 : 0x08040201);
    const uint8x16_t bytes = vqtbl1q_u8(vreinterpretq_u8_s32(high), (uint8x16_t)copy);
    const uint8x16_t set = vtstq_u8(bytes, (uint8x16_t)select);
    return or_bits(low, and_bytes(vreinterpretq_s32_u8(set), 16));
}

INLINE vec iq4_values(vec codes) {
    static const int8_t values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
    return vreinterpretq_s32_s8(vqtbl1q_s8(vld1q_s8(values), vreinterpretq_u8_s32(codes)));
}

#include "kernels/q_products_tmpl.h"

INLINE void tiles(const int type, int rows, float *y, int64_t y_stride, dpi_q8 x,
                  source from, int64_t n_in, int32_t n_out) {
    for (int r = 0, n; r < rows; r += n) {
        n = dpi_equal_part(rows, TILE, r);
        dpi_q8 part = dpi_q8_skip(&x, r);
        float *to = y + r * y_stride;
        switch (n) {
        case 1: tile(type, 1, rows, to, y_stride, part, from, n_in, n_out); break;
        case 2: tile(type, 2, rows, to, y_stride, part, from, n_in, n_out); break;
        case 3: tile(type, 3, rows, to, y_stride, part, from, n_in, n_out); break;
#if TILE > 4
        case 4: tile(type, 4, rows, to, y_stride, part, from, n_in, n_out); break;
        case 5: tile(type, 5, rows, to, y_stride, part, from, n_in, n_out); break;
        case 6: tile(type, 6, rows, to, y_stride, part, from, n_in, n_out); break;
#endif
        default: tile(type, TILE, rows, to, y_stride, part, from, n_in, n_out);
        }
    }
}

/* ---- Weights of 16 bits ---------------------------------------------------------------------- */

#define H_TILE 8

INLINE vecf load_bf16s(const unsigned char *p) {
    uint16x4_t v;
    memcpy(&v, p, sizeof v);
    return vreinterpretq_f32_u32(vshll_n_u16(v, 16));
}

INLINE void h_tiles(const int type, int rows, float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out,
                    const int32_t ahead);

#include "kernels/h_products_tmpl.h"

INLINE void h_tiles(const int type, int rows, float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out,
                    const int32_t ahead) {
    for (int r = 0, n; r < rows; r += n, x += n * x_stride, y += n * y_stride) {
        n = dpi_equal_part(rows, H_TILE, r);
        switch (n) {
        case 1: h_tile(type, 1, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 2: h_tile(type, 2, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 3: h_tile(type, 3, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 4: h_tile(type, 4, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 5: h_tile(type, 5, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 6: h_tile(type, 6, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 7: h_tile(type, 7, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        default: h_tile(type, 8, y, y_stride, x, x_stride, w, n_in, n_out, ahead);
        }
    }
}

#include "kernels/product_slots_tmpl.h"

/* ---- What the processor can do --------------------------------------------------------------- */

enum { PROBES = 12 }; /* independent chains: more than latency times throughput */

static double NAME(probe_int8)(int64_t steps, int32_t *result) {
    const int32_t some = (int32_t)(steps % 3) + 1, by[4] = {some, some, some, some};
    sums acc[PROBES];
    vec total = broadcast_word(0);
    for (int i = 0; i < PROBES; i++)
        acc[i] = sums_from(broadcast_word(i));
    for (int64_t s = 0; s < steps; s++)
        for (int i = 0; i < PROBES; i++)
#if HAS_PAIRS
            acc[i] = dot_pairs(acc[i], acc[i], vld1q_s32(by));
#else
            acc[i] = dot(acc[i], sums_total(acc[i]), by, 1, 0, 1, 0);
#endif
    for (int i = 0; i < PROBES; i++)
        total = vaddq_s32(total, sums_total(acc[i]));
    *result = vaddvq_s32(total);
    return (double)steps * PROBES * (HAS_PAIRS ? 16 : 8) * LANES;
}
