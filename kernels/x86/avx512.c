/* avx512.c - kernels for AVX-512 F, BW, DQ, VL and VNNI.
 *
 * Remainders use masks, so an element's lane depends on its index alone. The matmul tiles take
 * their row and column counts as compile-time constants; each (row, column) has one accumulator
 * and the same sequence of operations in every tile shape. */
#include "kernels/kernels.h"
#include "kernels/x86/avx512_util.h"

#include <math.h>

/* The first n lanes; none if n < 0. */
INLINE __mmask16 mask_of(int64_t n) {
    return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

/* exp(x): x = k ln2 + r, |r| <= ln2 / 2, degree-6 Taylor in r. Relative error below 4e-7;
 * underflows to 0, overflows to infinity; exp(-inf) = 0. */
INLINE __m512 exp512(__m512 x) {
    x = _mm512_max_ps(x, _mm512_set1_ps(-104.0f));
    x = _mm512_min_ps(x, _mm512_set1_ps(89.0f));
    __m512 k = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(k, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(k, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.0f / 720);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, k);
}

static void sum_squares_avx512(float *sum, const float *x, int64_t n) {
    __m512 all = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(mask_of(n - i), x + i);
        all = _mm512_fmadd_ps(v, v, all);
    }
    *sum = _mm512_reduce_add_ps(all);
}

static void scale_avx512(float *y, const float *x, const float *w, float by, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = mask_of(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), _mm512_set1_ps(by));
        _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, w + i)));
    }
}

static void rope_avx512(float *x, const float *cs, int32_t n_head, int32_t head_dim,
                        int32_t n_rot) {
    for (int32_t i = 0; i < n_rot; i += 16) {
        __mmask16 mask = mask_of(n_rot - i);
        __m512 by = _mm512_maskz_loadu_ps(mask, cs + i);
        __m512 cosines = _mm512_moveldup_ps(by), sines = _mm512_movehdup_ps(by);
        for (int32_t h = 0; h < n_head; h++) {
            float *at = x + (int64_t)h * head_dim + i;
            __m512 v = _mm512_maskz_loadu_ps(mask, at);
            __m512 swapped = _mm512_mul_ps(_mm512_permute_ps(v, 0xb1), sines);
            _mm512_mask_storeu_ps(at, mask, _mm512_fmaddsub_ps(v, cosines, swapped));
        }
    }
}

static void add_avx512(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = mask_of(n - i);
        _mm512_mask_storeu_ps(y + i, mask,
                              _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y + i),
                                            _mm512_maskz_loadu_ps(mask, x + i)));
    }
}

static void swiglu_avx512(float *g, const float *u, int64_t n) {
    const __m512 one = _mm512_set1_ps(1.0f);
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = mask_of(n - i);
        __m512 z = _mm512_maskz_loadu_ps(mask, g + i);
        __m512 e = exp512(_mm512_sub_ps(_mm512_setzero_ps(), z));
        z = _mm512_div_ps(z, _mm512_add_ps(one, e));
        _mm512_mask_storeu_ps(g + i, mask, _mm512_mul_ps(z, _mm512_maskz_loadu_ps(mask, u + i)));
    }
}

static void f16_to_f32_avx512(float *y, const uint16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = mask_of(n - i);
        _mm512_mask_storeu_ps(y + i, mask, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, x + i)));
    }
}

static void f32_to_f16_avx512(uint16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = mask_of(n - i);
        __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
        _mm256_mask_storeu_epi16(y + i, mask,
                                 _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}

/* ---- f32 products ---------------------------------------------------------------------------- */

enum { COLS = 4 };

INLINE void tile_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, const float *w,
                     int64_t n_in, const int rows, const int cols) {
    __m512 acc[DPI_TILE_ROWS][COLS];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            acc[r][c] = _mm512_setzero_ps();
    int64_t k = 0;
    for (; k + 16 <= n_in; k += 16) {
        __m512 wv[COLS];
        for (int c = 0; c < cols; c++)
            wv[c] = _mm512_loadu_ps(w + c * n_in + k);
        for (int r = 0; r < rows; r++) {
            __m512 xv = _mm512_loadu_ps(x + r * x_stride + k);
            for (int c = 0; c < cols; c++)
                acc[r][c] = _mm512_fmadd_ps(wv[c], xv, acc[r][c]);
        }
    }
    if (k < n_in) {
        __mmask16 mask = mask_of(n_in - k);
        for (int r = 0; r < rows; r++) {
            __m512 xv = _mm512_maskz_loadu_ps(mask, x + r * x_stride + k);
            for (int c = 0; c < cols; c++)
                acc[r][c] =
                    _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, w + c * n_in + k), xv, acc[r][c]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            y[r * y_stride + c] = _mm512_reduce_add_ps(acc[r][c]);
}

#include "kernels/f32_products_tmpl.h"

static void matmul_f32_avx512(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                              int32_t n_rows, const float *w, int64_t n_in, int32_t n_out) {
    matmul_f32(y, y_stride, x, x_stride, n_rows, w, n_in, n_out);
}

/* ---- Attention ------------------------------------------------------------------------------- */

#define LANES 16
#define SUMS 16 /* of 32 registers */
typedef __m512 vecf;
typedef __mmask16 part;

INLINE part part_of(int64_t n) { return mask_of(n); }
INLINE vecf load_part(const float *p, part lanes) { return _mm512_maskz_loadu_ps(lanes, p); }
INLINE void store_part(float *p, vecf v, part lanes) { _mm512_mask_storeu_ps(p, lanes, v); }
INLINE vecf load_kv(const void *p, int64_t i, part lanes, const int f16) {
    if (f16)
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, (const uint16_t *)p + i));
    return load_part((const float *)p + i, lanes);
}
INLINE vecf load_f(const float *p) { return _mm512_loadu_ps(p); }
INLINE void store_f(float *p, vecf v) { _mm512_storeu_ps(p, v); }
INLINE vecf zero_f(void) { return _mm512_setzero_ps(); }
INLINE vecf broadcast_f(float x) { return _mm512_set1_ps(x); }
INLINE vecf add_f(vecf a, vecf b) { return _mm512_add_ps(a, b); }
INLINE vecf sub_f(vecf a, vecf b) { return _mm512_sub_ps(a, b); }
INLINE vecf mul_f(vecf a, vecf b) { return _mm512_mul_ps(a, b); }
INLINE vecf max_f(vecf a, vecf b) { return _mm512_max_ps(a, b); }
INLINE vecf fma_f(vecf a, vecf b, vecf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vecf div_f(vecf a, vecf b) { return _mm512_div_ps(a, b); }
INLINE vecf exp_f(vecf x) { return exp512(x); }
INLINE vecf where_less(vecf a, vecf b, vecf yes, vecf no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
INLINE vecf or_lowest(vecf v, part lanes) {
    return _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), lanes, v);
}
INLINE float reduce_add(vecf v) { return _mm512_reduce_add_ps(v); }
INLINE float reduce_max(vecf v) { return _mm512_reduce_max_ps(v); }

#include "kernels/curves_tmpl.h"
#include "kernels/attend_tmpl.h"
#define NAME(kernel) kernel##_avx512
#include "kernels/vector_slots_tmpl.h"

/* ---- What the processor can do --------------------------------------------------------------- */

enum { PROBES = 12 }; /* independent chains: more than latency times throughput */

static uint64_t probe_read_avx512(const void *p, size_t n) {
    const unsigned char *at = p;
    const __m512i zero = _mm512_setzero_si512();
    __m512i sum[4] = {zero, zero, zero, zero};
    for (size_t i = 0; i < n; i += 4 * sizeof sum[0])
        for (size_t j = 0; j < 4; j++)
            sum[j] = _mm512_add_epi64(
                sum[j], _mm512_loadu_si512((const void *)(at + i + j * sizeof sum[0])));
    for (int j = 1; j < 4; j++)
        sum[0] = _mm512_add_epi64(sum[0], sum[j]);
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(sum[0]));
}

static double probe_int8_avx512(int64_t steps, int32_t *result) {
    __m512i acc[PROBES], w = _mm512_set1_epi8((char)(steps % 3 + 1));
    for (int i = 0; i < PROBES; i++)
        acc[i] = _mm512_set1_epi32(i);
    for (int64_t s = 0; s < steps; s++)
        for (int i = 0; i < PROBES; i++)
            acc[i] = _mm512_dpbusd_epi32(acc[i], w, w);
    for (int i = 1; i < PROBES; i++)
        acc[0] = _mm512_add_epi32(acc[0], acc[i]);
    *result = _mm_cvtsi128_si32(_mm512_castsi512_si128(acc[0]));
    return (double)steps * PROBES * 128;
}

static double probe_f32_avx512(int64_t steps, float *result) {
    __m512 acc[PROBES], w = _mm512_set1_ps(1.0f / (float)(steps + 2));
    for (int i = 0; i < PROBES; i++)
        acc[i] = _mm512_set1_ps((float)i);
    for (int64_t s = 0; s < steps; s++)
        for (int i = 0; i < PROBES; i++)
            acc[i] = _mm512_fmadd_ps(acc[i], w, w);
    for (int i = 1; i < PROBES; i++)
        acc[0] = _mm512_add_ps(acc[0], acc[i]);
    *result = _mm512_reduce_add_ps(acc[0]);
    return (double)steps * PROBES * 32;
}

void dpi_kernels_init_avx512(dpi_kernels *k) {
    k->probe_read = probe_read_avx512;
    k->probe_int8 = probe_int8_avx512;
    k->probe_f32 = probe_f32_avx512;
    k->sum_squares = sum_squares_avx512;
    k->scale = scale_avx512;
    k->rope = rope_avx512;
    k->add = add_avx512;
    k->swiglu = swiglu_avx512;
    k->f16_to_f32 = f16_to_f32_avx512;
    k->f32_to_f16 = f32_to_f16_avx512;
    k->matmul_f32 = matmul_f32_avx512;
    init_vectors(k);
    dpi_kernels_init_avx512_q(k);
    dpi_kernels_init_avx512_sampler(k);
}
