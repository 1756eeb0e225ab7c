/* neon.c - kernels for AArch64, whose every processor has these vectors of four floats. Structure
 * and purity as in x86/avx512.c. */
#include "kernels/kernels.h"
#include "kernels/arm/neon_util.h"

#include <math.h>

typedef float32x4_t vecf;
typedef int64_t part; /* how many lanes */

#define LANES 4

/* Elements [0, n) of p, zero beyond. */
INLINE vecf load_part(const float *p, part n) {
    float some[LANES] = {0};
    if (n >= LANES)
        return vld1q_f32(p);
    for (int i = 0; i < n; i++)
        some[i] = p[i];
    return vld1q_f32(some);
}

INLINE void store_part(float *p, vecf v, part n) { store_lanes(p, v, n); }

INLINE vecf load_f16s(const uint16_t *p, part n) {
    uint16_t some[LANES] = {0};
    if (n >= LANES)
        return widen_f16s(p);
    for (int i = 0; i < n; i++)
        some[i] = p[i];
    return widen_f16s(some);
}

INLINE part part_of(int64_t n) { return n; }
INLINE vecf load_kv(const void *p, int64_t i, part n, const int f16) {
    return f16 ? load_f16s((const uint16_t *)p + i, n) : load_part((const float *)p + i, n);
}
INLINE vecf load_f(const float *p) { return vld1q_f32(p); }
INLINE void store_f(float *p, vecf v) { vst1q_f32(p, v); }
INLINE vecf zero_f(void) { return vdupq_n_f32(0); }
INLINE vecf broadcast_f(float x) { return vdupq_n_f32(x); }
INLINE vecf add_f(vecf a, vecf b) { return vaddq_f32(a, b); }
INLINE vecf sub_f(vecf a, vecf b) { return vsubq_f32(a, b); }
INLINE vecf mul_f(vecf a, vecf b) { return vmulq_f32(a, b); }
INLINE vecf div_f(vecf a, vecf b) { return vdivq_f32(a, b); }
INLINE vecf max_f(vecf a, vecf b) { return vmaxq_f32(a, b); }
INLINE vecf fma_f(vecf a, vecf b, vecf c) { return vfmaq_f32(c, a, b); }
INLINE float reduce_add(vecf v) { return vaddvq_f32(v); }
INLINE float reduce_max(vecf v) { return vmaxvq_f32(v); }
INLINE vecf where_less(vecf a, vecf b, vecf yes, vecf no) {
    return vbslq_f32(vcltq_f32(a, b), yes, no);
}
INLINE vecf or_lowest(vecf v, part n) {
    static const int32_t lanes[LANES] = {0, 1, 2, 3};
    const int32_t most = n > LANES ? LANES : n < 0 ? 0 : (int32_t)n;
    return vbslq_f32(vcltq_s32(vld1q_s32(lanes), vdupq_n_s32(most)), v, vdupq_n_f32(-INFINITY));
}

/* 2^k for integer k in [-150, 128] as two factors, since one exponent field does not reach. */
INLINE vecf scale_by_power(vecf p, i32s k) {
    const i32s half = k >> 1, rest = k - half;
    p = vmulq_f32(p, (vecf)((half + 127) << 23));
    return vmulq_f32(p, (vecf)((rest + 127) << 23));
}

/* As exp512 of x86/avx512.c. A NaN becomes the lowest. */
INLINE vecf exp_f(vecf x) {
    x = vmaxnmq_f32(x, vdupq_n_f32(-104.0f));
    x = vminnmq_f32(x, vdupq_n_f32(89.0f));
    const vecf k = vrndnq_f32(vmulq_f32(x, vdupq_n_f32(1.44269504f)));
    vecf r = vfmsq_f32(x, k, vdupq_n_f32(0.693359375f));
    r = vfmsq_f32(r, k, vdupq_n_f32(-2.12194440e-4f));
    vecf p = vdupq_n_f32(1.0f / 720);
    p = fma_f(p, r, vdupq_n_f32(1.0f / 120));
    p = fma_f(p, r, vdupq_n_f32(1.0f / 24));
    p = fma_f(p, r, vdupq_n_f32(1.0f / 6));
    p = fma_f(p, r, vdupq_n_f32(0.5f));
    p = fma_f(p, r, vdupq_n_f32(1.0f));
    p = fma_f(p, r, vdupq_n_f32(1.0f));
    return scale_by_power(p, (i32s)vcvtq_s32_f32(k));
}

static void sum_squares_neon(float *sum, const float *x, int64_t n) {
    vecf all[2] = {zero_f(), zero_f()};
    for (int64_t i = 0; i < n; i += 2 * LANES)
        for (int64_t j = 0; j < 2; j++) {
            const vecf v = load_part(x + i + LANES * j, n - i - LANES * j);
            all[j] = fma_f(v, v, all[j]);
        }
    *sum = reduce_add(add_f(all[0], all[1]));
}

static void scale_neon(float *y, const float *x, const float *w, float by, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        const vecf v = mul_f(load_part(x + i, n - i), broadcast_f(by));
        store_part(y + i, mul_f(v, load_part(w + i, n - i)), n - i);
    }
}

static void rope_neon(float *x, const float *cs, int32_t n_head, int32_t head_dim, int32_t n_rot) {
    static const float signs[LANES] = {-1, 1, -1, 1};
    for (int32_t i = 0; i < n_rot; i += LANES) {
        const vecf by = load_part(cs + i, n_rot - i), cosines = vtrn1q_f32(by, by);
        const vecf sines = mul_f(vtrn2q_f32(by, by), vld1q_f32(signs));
        for (int32_t h = 0; h < n_head; h++) {
            float *at = x + (int64_t)h * head_dim + i;
            const vecf v = load_part(at, n_rot - i);
            store_part(at, fma_f(v, cosines, mul_f(vrev64q_f32(v), sines)), n_rot - i);
        }
    }
}

static void add_neon(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES)
        store_part(y + i, add_f(load_part(y + i, n - i), load_part(x + i, n - i)), n - i);
}

static void swiglu_neon(float *g, const float *u, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        const vecf z = load_part(g + i, n - i), e = exp_f(vnegq_f32(z));
        store_part(g + i, mul_f(div_f(z, add_f(broadcast_f(1), e)), load_part(u + i, n - i)),
                   n - i);
    }
}

static void f16_to_f32_neon(float *y, const uint16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES)
        store_part(y + i, load_f16s(x + i, n - i), n - i);
}

static void f32_to_f16_neon(uint16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        const float16x4_t half = vcvt_f16_f32(load_part(x + i, n - i));
        memcpy(y + i, &half, n - i >= LANES ? sizeof half : (size_t)(n - i) * sizeof *y);
    }
}

/* ---- f32 products ---------------------------------------------------------------------------- */

enum { ROWS = 4, COLS = 4 }; /* 16 of 32 registers accumulate */

INLINE void tile_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, const float *w,
                     int64_t n_in, const int rows, const int cols) {
    vecf acc[ROWS][COLS];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            acc[r][c] = zero_f();
    for (int64_t k = 0; k < n_in; k += LANES) {
        vecf wv[COLS];
        for (int c = 0; c < cols; c++)
            wv[c] = load_part(w + c * n_in + k, n_in - k);
        for (int r = 0; r < rows; r++) {
            const vecf xv = load_part(x + r * x_stride + k, n_in - k);
            for (int c = 0; c < cols; c++)
                acc[r][c] = fma_f(wv[c], xv, acc[r][c]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            y[r * y_stride + c] = reduce_add(acc[r][c]);
}

#include "kernels/f32_products_tmpl.h"

static void matmul_f32_neon(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                            int32_t n_rows, const float *w, int64_t n_in, int32_t n_out) {
    matmul_f32(y, y_stride, x, x_stride, n_rows, w, n_in, n_out);
}

/* ---- Attention ------------------------------------------------------------------------------- */

#define SUMS 8 /* four heads at a time, as many as a vector has lanes */

#include "kernels/curves_tmpl.h"
#include "kernels/attend_tmpl.h"
#define NAME(kernel) kernel##_neon
#include "kernels/vector_slots_tmpl.h"

/* ---- What the processor can do --------------------------------------------------------------- */

enum { PROBES = 16 }; /* independent chains: more than latency times throughput */

static uint64_t probe_read_neon(const void *p, size_t n) {
    const unsigned char *at = p;
    uint64x2_t sum[4] = {{0}, {0}, {0}, {0}};
    for (size_t i = 0; i < n; i += 4 * sizeof sum[0])
        for (size_t j = 0; j < 4; j++) {
            uint64x2_t v;
            memcpy(&v, at + i + j * sizeof v, sizeof v);
            sum[j] = vaddq_u64(sum[j], v);
        }
    return vaddvq_u64(vaddq_u64(vaddq_u64(sum[0], sum[1]), vaddq_u64(sum[2], sum[3])));
}

static double probe_f32_neon(int64_t steps, float *result) {
    vecf acc[PROBES], w = broadcast_f(1.0f / (float)(steps + 2));
    for (int i = 0; i < PROBES; i++)
        acc[i] = broadcast_f((float)i);
    for (int64_t s = 0; s < steps; s++)
        for (int i = 0; i < PROBES; i++)
            acc[i] = fma_f(acc[i], w, w);
    for (int i = 1; i < PROBES; i++)
        acc[0] = add_f(acc[0], acc[i]);
    *result = reduce_add(acc[0]);
    return (double)steps * PROBES * 2 * LANES;
}

void dpi_kernels_init_neon(dpi_kernels *k) {
    k->probe_read = probe_read_neon;
    k->probe_f32 = probe_f32_neon;
    k->sum_squares = sum_squares_neon;
    k->scale = scale_neon;
    k->rope = rope_neon;
    k->add = add_neon;
    k->swiglu = swiglu_neon;
    k->f16_to_f32 = f16_to_f32_neon;
    k->f32_to_f16 = f32_to_f16_neon;
    k->matmul_f32 = matmul_f32_neon;
    init_vectors(k);
    dpi_kernels_init_neon_q(k);
    dpi_kernels_init_neon_sampler(k);
}
