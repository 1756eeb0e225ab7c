/* avx2.c - kernels for AVX2, FMA and F16C. Structure and purity as in avx512.c. */
#include "kernels/kernels.h"
#include "kernels/x86/avx2_util.h"

#include <math.h>
#include <string.h>

enum { ROWS = 4, COLS = 2 }; /* 8 of 16 registers accumulate */

/* All bits of the first n lanes; of none if n < 0. */
INLINE __m256i mask_of(int64_t n) {
    __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes);
}

/* Elements [0, n) of p, zero beyond; n >= 1. */
INLINE __m256 load(const float *p, int64_t n) {
    return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, mask_of(n));
}

INLINE void store(float *p, __m256 v, int64_t n) {
    if (n >= 8)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, mask_of(n), v);
}

INLINE __m256 load_f16s(const uint16_t *p, int64_t n) {
    if (n >= 8)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    uint16_t part[8] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)part));
}

/* 2^k for integer k in [-150, 128] as two factors, since one exponent field does not reach. */
INLINE __m256 scale_by_power(__m256 p, __m256i k) {
    const __m256i bias = _mm256_set1_epi32(127);
    __m256i half = _mm256_srai_epi32(k, 1), rest = _mm256_sub_epi32(k, half);
    p = _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
    return _mm256_mul_ps(
        p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}

/* As exp512 of avx512.c. */
INLINE __m256 exp256(__m256 x) {
    x = _mm256_max_ps(x, _mm256_set1_ps(-104.0f));
    x = _mm256_min_ps(x, _mm256_set1_ps(89.0f));
    __m256 k = round256(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)));
    __m256 r = _mm256_fnmadd_ps(k, _mm256_set1_ps(0.693359375f), x);
    r = _mm256_fnmadd_ps(k, _mm256_set1_ps(-2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.0f / 720);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    return scale_by_power(p, _mm256_cvtps_epi32(k));
}

static void sum_squares_avx2(float *sum, const float *x, int64_t n) {
    __m256 all = _mm256_setzero_ps();
    for (int64_t i = 0; i < n; i += 8) {
        __m256 v = load(x + i, n - i);
        all = _mm256_fmadd_ps(v, v, all);
    }
    *sum = reduce_add(all);
}

static void scale_avx2(float *y, const float *x, const float *w, float by, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_mul_ps(load(x + i, n - i), _mm256_set1_ps(by));
        store(y + i, _mm256_mul_ps(v, load(w + i, n - i)), n - i);
    }
}

static void rope_avx2(float *x, const float *cs, int32_t n_head, int32_t head_dim, int32_t n_rot) {
    for (int32_t i = 0; i < n_rot; i += 8) {
        __m256 by = load(cs + i, n_rot - i);
        __m256 cosines = _mm256_moveldup_ps(by), sines = _mm256_movehdup_ps(by);
        for (int32_t h = 0; h < n_head; h++) {
            float *at = x + (int64_t)h * head_dim + i;
            __m256 v = load(at, n_rot - i);
            __m256 swapped = _mm256_mul_ps(_mm256_permute_ps(v, 0xb1), sines);
            store(at, _mm256_fmaddsub_ps(v, cosines, swapped), n_rot - i);
        }
    }
}

static void add_avx2(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 8)
        store(y + i, _mm256_add_ps(load(y + i, n - i), load(x + i, n - i)), n - i);
}

static void swiglu_avx2(float *g, const float *u, int64_t n) {
    const __m256 one = _mm256_set1_ps(1.0f);
    for (int64_t i = 0; i < n; i += 8) {
        __m256 z = load(g + i, n - i);
        __m256 e = exp256(_mm256_sub_ps(_mm256_setzero_ps(), z));
        z = _mm256_div_ps(z, _mm256_add_ps(one, e));
        store(g + i, _mm256_mul_ps(z, load(u + i, n - i)), n - i);
    }
}

static void f16_to_f32_avx2(float *y, const uint16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 8)
        store(y + i, load_f16s(x + i, n - i), n - i);
}

static void f32_to_f16_avx2(uint16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) {
        __m128i half = _mm256_cvtps_ph(load(x + i, n - i),
                                       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        memcpy(y + i, &half, n - i >= 8 ? sizeof half : (size_t)(n - i) * sizeof *y);
    }
}

/* ---- f32 products ---------------------------------------------------------------------------- */

INLINE void tile_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, const float *w,
                     int64_t n_in, const int rows, const int cols) {
    __m256 acc[ROWS][COLS];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            acc[r][c] = _mm256_setzero_ps();
    int64_t k = 0;
    for (; k + 8 <= n_in; k += 8) {
        __m256 wv[COLS];
        for (int c = 0; c < cols; c++)
            wv[c] = _mm256_loadu_ps(w + c * n_in + k);
        for (int r = 0; r < rows; r++) {
            __m256 xv = _mm256_loadu_ps(x + r * x_stride + k);
            for (int c = 0; c < cols; c++)
                acc[r][c] = _mm256_fmadd_ps(wv[c], xv, acc[r][c]);
        }
    }
    if (k < n_in)
        for (int r = 0; r < rows; r++) {
            __m256 xv = load(x + r * x_stride + k, n_in - k);
            for (int c = 0; c < cols; c++)
                acc[r][c] = _mm256_fmadd_ps(load(w + c * n_in + k, n_in - k), xv, acc[r][c]);
        }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            y[r * y_stride + c] = reduce_add(acc[r][c]);
}

#include "kernels/f32_products_tmpl.h"

static void matmul_f32_avx2(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                            int32_t n_rows, const float *w, int64_t n_in, int32_t n_out) {
    matmul_f32(y, y_stride, x, x_stride, n_rows, w, n_in, n_out);
}

/* ---- Attention ------------------------------------------------------------------------------- */

#define LANES 8
#define SUMS 8 /* of 16 registers */
typedef __m256 vecf;
typedef int64_t part; /* how many lanes */

INLINE part part_of(int64_t n) { return n; }
INLINE vecf load_part(const float *p, part n) { return n > 0 ? load(p, n) : _mm256_setzero_ps(); }
INLINE void store_part(float *p, vecf v, part n) {
    if (n > 0)
        store(p, v, n);
}
INLINE vecf load_kv(const void *p, int64_t i, part n, const int f16) {
    if (f16 && n > 0)
        return load_f16s((const uint16_t *)p + i, n);
    return load_part((const float *)p + i, n);
}
INLINE vecf load_f(const float *p) { return _mm256_loadu_ps(p); }
INLINE void store_f(float *p, vecf v) { _mm256_storeu_ps(p, v); }
INLINE vecf zero_f(void) { return _mm256_setzero_ps(); }
INLINE vecf broadcast_f(float x) { return _mm256_set1_ps(x); }
INLINE vecf add_f(vecf a, vecf b) { return _mm256_add_ps(a, b); }
INLINE vecf sub_f(vecf a, vecf b) { return _mm256_sub_ps(a, b); }
INLINE vecf mul_f(vecf a, vecf b) { return _mm256_mul_ps(a, b); }
INLINE vecf max_f(vecf a, vecf b) { return _mm256_max_ps(a, b); }
INLINE vecf fma_f(vecf a, vecf b, vecf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vecf div_f(vecf a, vecf b) { return _mm256_div_ps(a, b); }
INLINE vecf exp_f(vecf x) { return exp256(x); }
INLINE vecf where_less(vecf a, vecf b, vecf yes, vecf no) {
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
INLINE vecf or_lowest(vecf v, part n) {
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), v, _mm256_castsi256_ps(mask_of(n)));
}

#include "kernels/curves_tmpl.h"
#include "kernels/attend_tmpl.h"
#define NAME(kernel) kernel##_avx2
#include "kernels/vector_slots_tmpl.h"

/* ---- What the processor can do --------------------------------------------------------------- */

enum { PROBES = 10 }; /* independent chains: more than latency times throughput */

static uint64_t probe_read_avx2(const void *p, size_t n) {
    const unsigned char *at = p;
    const __m256i zero = _mm256_setzero_si256();
    __m256i sum[4] = {zero, zero, zero, zero};
    for (size_t i = 0; i < n; i += 4 * sizeof sum[0])
        for (size_t j = 0; j < 4; j++)
            sum[j] = _mm256_add_epi64(
                sum[j], _mm256_loadu_si256((const void *)(at + i + j * sizeof sum[0])));
    for (int j = 1; j < 4; j++)
        sum[0] = _mm256_add_epi64(sum[0], sum[j]);
    return (uint64_t)_mm256_extract_epi64(sum[0], 0);
}

static double probe_int8_avx2(int64_t steps, int32_t *result) {
    __m256i acc[PROBES], w = _mm256_set1_epi8((char)(steps % 3 + 1));
    for (int i = 0; i < PROBES; i++)
        acc[i] = _mm256_set1_epi32(i);
    for (int64_t s = 0; s < steps; s++)
        for (int i = 0; i < PROBES; i++)
            acc[i] = _mm256_add_epi32(acc[i],
                                      _mm256_madd_epi16(_mm256_maddubs_epi16(w, acc[i]), w));
    for (int i = 1; i < PROBES; i++)
        acc[0] = _mm256_add_epi32(acc[0], acc[i]);
    *result = _mm256_extract_epi32(acc[0], 0);
    return (double)steps * PROBES * 64;
}

static double probe_f32_avx2(int64_t steps, float *result) {
    __m256 acc[PROBES], w = _mm256_set1_ps(1.0f / (float)(steps + 2));
    for (int i = 0; i < PROBES; i++)
        acc[i] = _mm256_set1_ps((float)i);
    for (int64_t s = 0; s < steps; s++)
        for (int i = 0; i < PROBES; i++)
            acc[i] = _mm256_fmadd_ps(acc[i], w, w);
    for (int i = 1; i < PROBES; i++)
        acc[0] = _mm256_add_ps(acc[0], acc[i]);
    *result = reduce_add(acc[0]);
    return (double)steps * PROBES * 16;
}

void dpi_kernels_init_avx2(dpi_kernels *k) {
    k->probe_read = probe_read_avx2;
    k->probe_int8 = probe_int8_avx2;
    k->probe_f32 = probe_f32_avx2;
    k->sum_squares = sum_squares_avx2;
    k->scale = scale_avx2;
    k->rope = rope_avx2;
    k->add = add_avx2;
    k->swiglu = swiglu_avx2;
    k->f16_to_f32 = f16_to_f32_avx2;
    k->f32_to_f16 = f32_to_f16_avx2;
    k->matmul_f32 = matmul_f32_avx2;
    init_vectors(k);
    dpi_kernels_init_avx2_q(k);
    dpi_kernels_init_avx2_sampler(k);
}
