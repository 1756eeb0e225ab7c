/* avx512.c - kernels for AVX-512 F, BW, DQ, VL and VNNI.
 *
 * Remainders use masks, so an element's lane depends on its index alone. The matmul tiles take
 * their row and column counts as compile-time constants; each (row, column) has one accumulator
 * and the same sequence of operations in every tile shape. */
#include "kernels.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE __mmask16 mask_of(int64_t n) { return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1); }

INLINE __m512 round512(__m512 v) {
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* exp(x): x = k ln2 + r, |r| <= ln2 / 2, degree-6 Taylor in r. Relative error below 4e-7;
 * underflows to 0, overflows to infinity; exp(-inf) = 0. */
INLINE __m512 exp512(__m512 x) {
    x = _mm512_max_ps(x, _mm512_set1_ps(-104.0f));
    x = _mm512_min_ps(x, _mm512_set1_ps(89.0f));
    __m512 k = round512(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)));
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

static void rmsnorm_avx512(float *y, const float *x, const float *w, int32_t n, float eps) {
    __m512 sum = _mm512_setzero_ps();
    for (int32_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(mask_of(n - i), x + i);
        sum = _mm512_fmadd_ps(v, v, sum);
    }
    float scale = 1.0f / sqrtf(_mm512_reduce_add_ps(sum) / (float)n + eps);
    for (int32_t i = 0; i < n; i += 16) {
        __mmask16 mask = mask_of(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), _mm512_set1_ps(scale));
        _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, w + i)));
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

INLINE void tile_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, const float *w,
                     int64_t n_in, const int rows, const int cols) {
    __m512 acc[DPI_TILE_ROWS][4];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            acc[r][c] = _mm512_setzero_ps();
    int64_t k = 0;
    for (; k + 16 <= n_in; k += 16) {
        __m512 wv[4];
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

INLINE void rows_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, int32_t n_rows,
                     const float *w, int64_t n_in, const int cols) {
    for (; n_rows >= 4; n_rows -= 4, x += 4 * x_stride, y += 4 * y_stride)
        tile_f32(y, y_stride, x, x_stride, w, n_in, 4, cols);
    switch (n_rows) {
    case 3: tile_f32(y, y_stride, x, x_stride, w, n_in, 3, cols); break;
    case 2: tile_f32(y, y_stride, x, x_stride, w, n_in, 2, cols); break;
    case 1: tile_f32(y, y_stride, x, x_stride, w, n_in, 1, cols); break;
    default: break;
    }
}

static void matmul_f32_avx512(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                              int32_t n_rows, const float *w, int64_t n_in, int32_t n_out) {
    int32_t o = 0;
    for (; o + 4 <= n_out; o += 4)
        rows_f32(y + o, y_stride, x, x_stride, n_rows, w + o * n_in, n_in, 4);
    for (; o < n_out; o++)
        rows_f32(y + o, y_stride, x, x_stride, n_rows, w + o * n_in, n_in, 1);
}

/* ---- 8-bit products -------------------------------------------------------------------------- */

/* In the order that kernels.def fixes. */
INLINE float sum_halves(__m512 v) {
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* The squared error of one block with max / levels, in units of max^2. */
INLINE float q8_error(__m512 x0, __m512 x1, float max, float levels) {
    __m512 inverse = _mm512_set1_ps(max > 1e-30f ? levels / max : 0.0f);
    __m512 v0 = _mm512_mul_ps(x0, inverse), v1 = _mm512_mul_ps(x1, inverse);
    v0 = _mm512_sub_ps(v0, round512(v0));
    v1 = _mm512_sub_ps(v1, round512(v1));
    return sum_halves(_mm512_add_ps(_mm512_mul_ps(v0, v0), _mm512_mul_ps(v1, v1))) /
           (levels * levels);
}

static void quantize_q8_avx512(int8_t *q, float *d, const float *x, int64_t n) {
    const __m512 limit = _mm512_set1_ps(127.0f), low = _mm512_set1_ps(-127.0f);
    for (int64_t b = 0; b < n; b += DPI_Q8_BLOCK) {
        __m512 x0 = _mm512_loadu_ps(x + b), x1 = _mm512_loadu_ps(x + b + 16);
        /* max(a, b) is b if either is NaN, so a NaN is passed over, as in ref.c. */
        __m512 max = _mm512_max_ps(_mm512_abs_ps(x0), _mm512_setzero_ps());
        max = _mm512_max_ps(_mm512_abs_ps(x1), max);
        float amax = _mm512_reduce_max_ps(max), levels = 127.0f;
        float best = q8_error(x0, x1, amax, levels);
        for (int level = 1; level < DPI_Q8_LEVELS; level++) {
            float error = q8_error(x0, x1, amax, (float)(127 - level));
            levels = error < best ? (float)(127 - level) : levels;
            best = error < best ? error : best;
        }
        __m512 inverse = _mm512_set1_ps(amax > 1e-30f ? levels / amax : 0.0f);
        d[b / DPI_Q8_BLOCK] = amax / levels;
        for (int h = 0; h < 2; h++) {
            __m512 v = round512(_mm512_mul_ps(h ? x1 : x0, inverse));
            v = _mm512_min_ps(_mm512_max_ps(v, low), limit); /* a NaN becomes -127 */
            _mm_storeu_si128((__m128i *)(q + b + 16 * h),
                             _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
        }
    }
}

enum { Q8_0_BYTES = 34 };

/* Two blocks of 32 side by side; the second is zero if `pair` is 0. */
INLINE __m512i load_pair(const void *first, const void *second, const int pair) {
    __m256i a = _mm256_loadu_si256(first);
    __m256i b = pair ? _mm256_loadu_si256(second) : _mm256_setzero_si256();
    return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

INLINE __m512 scale_pair(float first, float second) {
    return _mm512_insertf32x8(_mm512_set1_ps(first), _mm256_set1_ps(second), 1);
}

INLINE float load_half(const void *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

/* One or two blocks of one tile. vpdpbusd wants its left side unsigned: (w + 128) x - 128 x. The
 * second term does not depend on the column, so it costs one instruction per row. */
INLINE void step_q8_0(__m512 acc[][4], const int8_t *xq, const float *xd, int64_t n_in,
                      const unsigned char *w, int64_t row_bytes, const int rows, const int cols,
                      const int pair) {
    const __m512i bias = _mm512_set1_epi8(-128);
    __m512i wv[4];
    __m512 wd[4];
    for (int c = 0; c < cols; c++) {
        const unsigned char *block = w + c * row_bytes;
        wv[c] = _mm512_xor_si512(load_pair(block + 2, block + Q8_0_BYTES + 2, pair), bias);
        wd[c] = scale_pair(load_half(block), pair ? load_half(block + Q8_0_BYTES) : 0.0f);
    }
    for (int r = 0; r < rows; r++) {
        __m512i x = load_pair(xq + r * n_in, xq + r * n_in + 32, pair);
        const float *d = xd + r * (n_in / 32);
        __m512 dx = scale_pair(d[0], pair ? d[1] : 0.0f);
        __m512i minus = _mm512_sub_epi32(_mm512_setzero_si512(),
                                         _mm512_dpbusd_epi32(_mm512_setzero_si512(), bias, x));
        for (int c = 0; c < cols; c++) {
            __m512 sum = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(minus, wv[c], x));
            acc[r][c] = _mm512_fmadd_ps(sum, _mm512_mul_ps(wd[c], dx), acc[r][c]);
        }
    }
}

INLINE void tile_q8_0(float *y, int64_t y_stride, const int8_t *xq, const float *xd,
                      const unsigned char *w, int64_t n_in, const int rows, const int cols) {
    int64_t n_blocks = n_in / 32, row_bytes = n_blocks * Q8_0_BYTES, b = 0;
    __m512 acc[DPI_TILE_ROWS][4];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            acc[r][c] = _mm512_setzero_ps();
    for (; b + 2 <= n_blocks; b += 2)
        step_q8_0(acc, xq + b * 32, xd + b, n_in, w + b * Q8_0_BYTES, row_bytes, rows, cols, 1);
    if (b < n_blocks)
        step_q8_0(acc, xq + b * 32, xd + b, n_in, w + b * Q8_0_BYTES, row_bytes, rows, cols, 0);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            y[r * y_stride + c] = _mm512_reduce_add_ps(acc[r][c]);
}

INLINE void rows_q8_0(float *y, int64_t y_stride, const int8_t *xq, const float *xd, int32_t n_rows,
                      const unsigned char *w, int64_t n_in, const int cols) {
    for (; n_rows >= 4; n_rows -= 4, xq += 4 * n_in, xd += 4 * (n_in / 32), y += 4 * y_stride)
        tile_q8_0(y, y_stride, xq, xd, w, n_in, 4, cols);
    switch (n_rows) {
    case 3: tile_q8_0(y, y_stride, xq, xd, w, n_in, 3, cols); break;
    case 2: tile_q8_0(y, y_stride, xq, xd, w, n_in, 2, cols); break;
    case 1: tile_q8_0(y, y_stride, xq, xd, w, n_in, 1, cols); break;
    default: break;
    }
}

static void matmul_q8_0_avx512(float *y, int64_t y_stride, const int8_t *xq, const float *xd,
                               int32_t n_rows, const void *w, int64_t n_in, int32_t n_out) {
    const unsigned char *row = w;
    int64_t row_bytes = n_in / 32 * Q8_0_BYTES;
    int32_t o = 0;
    for (; o + 4 <= n_out; o += 4)
        rows_q8_0(y + o, y_stride, xq, xd, n_rows, row + o * row_bytes, n_in, 4);
    for (; o < n_out; o++)
        rows_q8_0(y + o, y_stride, xq, xd, n_rows, row + o * row_bytes, n_in, 1);
}

/* ---- Attention ------------------------------------------------------------------------------- */

INLINE __m512 load_kv(const void *p, int64_t i, __mmask16 mask, const int half) {
    if (half)
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, (const uint16_t *)p + i));
    return _mm512_maskz_loadu_ps(mask, (const float *)p + i);
}

INLINE void attend(float *acc, float *m, float *l, const float *q, const void *k, const void *v,
                   int32_t n_q, int32_t n, int32_t head_dim, int32_t head_dim_v, float scale,
                   const int half) {
    float p[DPI_KV_BLOCK];
    for (int32_t h = 0; h < n_q; h++, q += head_dim, acc += head_dim_v) {
        for (int32_t j = 0; j < n; j++) {
            __m512 s = _mm512_setzero_ps();
            for (int32_t i = 0; i < head_dim; i += 16) {
                __mmask16 mask = mask_of(head_dim - i);
                s = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, q + i),
                                    load_kv(k, (int64_t)j * head_dim + i, mask, half), s);
            }
            p[j] = _mm512_reduce_add_ps(s) * scale;
        }
        __m512 max = _mm512_set1_ps(m[h]);
        for (int32_t j = 0; j < n; j += 16)
            max = _mm512_mask_max_ps(max, mask_of(n - j), max,
                                     _mm512_maskz_loadu_ps(mask_of(n - j), p + j));
        float new_max = _mm512_reduce_max_ps(max);
        __m512 sum = _mm512_setzero_ps();
        for (int32_t j = 0; j < n; j += 16) {
            __mmask16 mask = mask_of(n - j);
            __m512 e = exp512(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, p + j),
                                            _mm512_set1_ps(new_max)));
            sum = _mm512_mask_add_ps(sum, mask, sum, e);
            _mm512_mask_storeu_ps(p + j, mask, e);
        }
        __m512 correction = exp512(_mm512_set1_ps(m[h] - new_max));
        for (int32_t i = 0; i < head_dim_v; i += 16) {
            __mmask16 mask = mask_of(head_dim_v - i);
            __m512 a = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, acc + i), correction);
            for (int32_t j = 0; j < n; j++)
                a = _mm512_fmadd_ps(_mm512_set1_ps(p[j]),
                                    load_kv(v, (int64_t)j * head_dim_v + i, mask, half), a);
            _mm512_mask_storeu_ps(acc + i, mask, a);
        }
        l[h] = l[h] * _mm512_cvtss_f32(correction) + _mm512_reduce_add_ps(sum);
        m[h] = new_max;
    }
}

static void attend_f32_avx512(float *acc, float *m, float *l, const float *q, const float *k,
                              const float *v, int32_t n_q, int32_t n, int32_t head_dim,
                              int32_t head_dim_v, float scale) {
    attend(acc, m, l, q, k, v, n_q, n, head_dim, head_dim_v, scale, 0);
}

static void attend_f16_avx512(float *acc, float *m, float *l, const float *q, const uint16_t *k,
                              const uint16_t *v, int32_t n_q, int32_t n, int32_t head_dim,
                              int32_t head_dim_v, float scale) {
    attend(acc, m, l, q, k, v, n_q, n, head_dim, head_dim_v, scale, 1);
}

void dpi_kernels_init_avx512(dpi_kernels *k) {
    k->rmsnorm = rmsnorm_avx512;
    k->add = add_avx512;
    k->swiglu = swiglu_avx512;
    k->f16_to_f32 = f16_to_f32_avx512;
    k->f32_to_f16 = f32_to_f16_avx512;
    k->matmul_f32 = matmul_f32_avx512;
    k->quantize_q8 = quantize_q8_avx512;
    k->matmul_q8_0 = matmul_q8_0_avx512;
    k->attend_f32 = attend_f32_avx512;
    k->attend_f16 = attend_f16_avx512;
}
