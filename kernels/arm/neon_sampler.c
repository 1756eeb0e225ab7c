/* neon_sampler.c - the kernels of the sampler for AArch64: the bits of ref_sampler.c, two
 * candidates to a vector. What is private stands in vectors, never in an address. */
#include "base/mem.h"
#include "kernels/arm/neon_util.h"
#include "kernels/byte_slices.h"
#include "kernels/exact.h"
#include "kernels/kernels.h"

typedef int64x2_t vec;
typedef uint64_t u64s __attribute__((vector_size(sizeof(vec))));

INLINE vec load_i64(const int64_t *p) { return vld1q_s64(p); }
INLINE void store_i64(int64_t *p, vec v) { vst1q_s64(p, v); }
INLINE vec min_i64(vec a, vec b) { return vbslq_s64(vcgtq_s64(a, b), b, a); }
INLINE vec max_i64(vec a, vec b) { return vbslq_s64(vcgtq_s64(a, b), a, b); }

/* ---- Clipping ------------------------------------------------------------------------------- */

enum { STEP = 2 }; /* candidates to a vector */

typedef struct clipper {
    float64x2_t centre, bound;
    int64x2_t K, minus_K;
} clipper;

INLINE clipper make_clipper(double centre, int64_t K) {
    return (clipper){vdupq_n_f64(centre), vdupq_n_f64((double)K), vdupq_n_s64(K), vdupq_n_s64(-K)};
}

/* clip(x, p) of two candidates. */
INLINE int64x2_t clip(const clipper *c, float32x2_t x, float32x2_t p) {
    const uint64x2_t exponent = vdupq_n_u64(UINT64_C(0x7ff) << 52);
    const float64x2_t shift = vdupq_n_f64(0x1.8p52);
    float64x2_t d = vsubq_f64(vcvt_f64_f32(x), vcvt_f64_f32(p));
    d = vmulq_f64(vsubq_f64(d, c->centre), vdupq_n_f64(DPI_UNIT));
    const uint64x2_t bits = vreinterpretq_u64_f64(d);
    const uint64x2_t odd = vceqq_u64(vandq_u64(bits, exponent), exponent);
    d = vreinterpretq_f64_u64(vbicq_u64(bits, odd));
    d = vminq_f64(vmaxq_f64(d, vnegq_f64(c->bound)), c->bound);
    const int64x2_t i = vsubq_s64(vreinterpretq_s64_f64(vaddq_f64(d, shift)),
                                  vreinterpretq_s64_f64(shift));
    return max_i64(min_i64(i, c->K), c->minus_K);
}

INLINE vec moved(const clipper *c, const float *x, const float *p, const int64_t *null, int64_t i) {
    return vsubq_s64(clip(c, vld1_f32(x + i), vld1_f32(p + i)), vld1q_s64(null + i));
}

/* The last one alone, in both lanes. */
INLINE vec moved_rest(const clipper *c, const float *x, const float *p, const int64_t *null,
                      int64_t i, int64_t n) {
    (void)n;
    return vsubq_s64(clip(c, vld1_dup_f32(x + i), vld1_dup_f32(p + i)), vld1q_dup_s64(null + i));
}

/* ---- Weights -------------------------------------------------------------------------------- */

enum { VECTORS = 8 };

INLINE u64s mul_32(u64s a, u64s b) {
    return (u64s)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
}

#include "kernels/fixed63.h"

/* Bits at .. at + 7 of each lane of e, as bytes in their order. */
INLINE uint8x16_t bytes_at(const vec e[VECTORS], int at) {
    uint32x4_t of_four[4];
    uint16x8_t of_eight[2];
    for (int k = 0; k < 4; k++)
        of_four[k] = vuzp1q_u32((uint32x4_t)((u64s)e[2 * k] >> at),
                                (uint32x4_t)((u64s)e[2 * k + 1] >> at));
    for (int k = 0; k < 2; k++)
        of_eight[k] = vuzp1q_u16(vreinterpretq_u16_u32(of_four[2 * k]),
                                 vreinterpretq_u16_u32(of_four[2 * k + 1]));
    return vuzp1q_u8(vreinterpretq_u8_u16(of_eight[0]), vreinterpretq_u8_u16(of_eight[1]));
}

/* Byte s of LANES values is byte[s]: the values in their order. */
INLINE void zip(const uint8x16_t byte[8], vec value[VECTORS]) {
    uint16x8_t two[2][4]; /* of the first and the last eight values: bytes 2 k and 2 k + 1 */
    for (int k = 0; k < 4; k++) {
        two[0][k] = vreinterpretq_u16_u8(vzip1q_u8(byte[2 * k], byte[2 * k + 1]));
        two[1][k] = vreinterpretq_u16_u8(vzip2q_u8(byte[2 * k], byte[2 * k + 1]));
    }
    for (int half = 0; half < 2; half++) {
        const uint16x8_t *b = two[half];
        const uint32x4_t low[2] = {vreinterpretq_u32_u16(vzip1q_u16(b[0], b[1])),
                                   vreinterpretq_u32_u16(vzip2q_u16(b[0], b[1]))};
        const uint32x4_t high[2] = {vreinterpretq_u32_u16(vzip1q_u16(b[2], b[3])),
                                    vreinterpretq_u32_u16(vzip2q_u16(b[2], b[3]))};
        for (int k = 0; k < 2; k++) {
            value[4 * half + 2 * k] = vreinterpretq_s64_u32(vzip1q_u32(low[k], high[k]));
            value[4 * half + 2 * k + 1] = vreinterpretq_s64_u32(vzip2q_u32(low[k], high[k]));
        }
    }
}

/* Table t at bits 40 - 8 t .. 47 - 8 t of each lane of e. Every entry is read; the index selects
 * within registers, and leaves a lane as it is where it is beyond the 64 bytes. */
INLINE void look_up(const slices *tables, const int t, const vec e[VECTORS], vec value[VECTORS]) {
    const uint8x16_t index = bytes_at(e, 40 - 8 * t);
    uint8x16_t byte[8];
    for (int s = 0; s < 8; s++) {
        byte[s] = vdupq_n_u8(0);
        for (int from = 0; from < 256; from += 64)
            byte[s] = vqtbx4q_u8(byte[s], vld1q_u8_x4(tables->byte[t][s] + from),
                                 vsubq_u8(index, vdupq_n_u8((uint8_t)from)));
    }
    zip(byte, value);
}

/* Its order is that of e. */
INLINE void in_order(vec v[VECTORS]) { (void)v; }

/* max(mant * 2^46 >> q, 2^40) to w. Shifts are to the left, by less than 0 to the right; by 64 and
 * more they leave nothing. */
INLINE void store_weights(dpi_u128 *w, vec mant, vec q) {
    const uint64x2_t m = vreinterpretq_u64_s64(mant);
    const vec left = vsubq_s64(vdupq_n_s64(46), q);
    const uint64x2_t high = vshlq_u64(m, vsubq_s64(left, vdupq_n_s64(64)));
    const uint64x2_t low = vshlq_u64(m, left);
    const uint64x2_t none = vceqzq_u64(vorrq_u64(high, vshrq_n_u64(low, DPI_FLOOR_BITS)));
    const uint64x2_t least = vdupq_n_u64(UINT64_C(1) << DPI_FLOOR_BITS);
    vst2q_u64((uint64_t *)(void *)w, ((uint64x2x2_t){{vbslq_u64(none, least, low), high}}));
}

#define NAME(kernel) kernel##_neon
#include "kernels/byte_sampler_tmpl.h"

void dpi_kernels_init_neon_sampler(dpi_kernels *k) { init_sampler(k); }
