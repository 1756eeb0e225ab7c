/* avx512.c - kernels for AVX-512 F, BW, DQ, VL and VNNI.
 *
 * Remainders use masks, so an element's lane depends on its index alone. The matmul tiles take
 * their row and column counts as compile-time constants; each (row, column) has one accumulator
 * and the same sequence of operations in every tile shape. */
#include "avx512_util.h"
#include "kernels.h"

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

/* ---- Attention ------------------------------------------------------------------------------- */

INLINE __m512 load_kv(const void *p, int64_t i, __mmask16 mask, const int half) {
    if (half)
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, (const uint16_t *)p + i));
    return _mm512_maskz_loadu_ps(mask, (const float *)p + i);
}

/* The sums of the lanes of four vectors. */
INLINE __m128 reduce_add_4(const __m512 *v) {
    __m128 s[4];
    for (int i = 0; i < 4; i++) {
        __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v[i]), _mm512_extractf32x8_ps(v[i], 1));
        s[i] = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    }
    _MM_TRANSPOSE4_PS(s[0], s[1], s[2], s[3]);
    return _mm_add_ps(_mm_add_ps(s[0], s[1]), _mm_add_ps(s[2], s[3]));
}

/* Values of `heads` heads repeated over all lanes, and back: lane i belongs to head i % heads. */
INLINE __m512 repeat(const float *x, const int heads) {
    if (heads == 1)
        return _mm512_set1_ps(x[0]);
    if (heads == 2)
        return _mm512_castpd_ps(_mm512_set1_pd(_mm_cvtsd_f64(_mm_castps_pd(
            _mm_setr_ps(x[0], x[1], 0, 0)))));
    return _mm512_broadcast_f32x4(_mm_loadu_ps(x));
}

/* op over the lanes of each head, in all of its lanes. */
#define FOLD(op, v, heads)                                                                        \
    do {                                                                                          \
        v = op(v, _mm512_shuffle_f32x4(v, v, 0x4e));                                              \
        v = op(v, _mm512_shuffle_f32x4(v, v, 0xb1));                                              \
        if (heads <= 2)                                                                           \
            v = op(v, _mm512_permute_ps(v, 0x4e));                                                \
        if (heads == 1)                                                                           \
            v = op(v, _mm512_permute_ps(v, 0xb1));                                                \
    } while (0)

/* p[j * heads + h] = scale * q[h] . k[j], four at a time. */
INLINE void scores(const int heads, float *p, const float *q, const void *k, int32_t n,
                   int32_t head_dim, float scale, const int half) {
    const int at_once = 4 / heads; /* positions */
    for (int32_t j = 0; j < n; j += at_once) {
        __m512 s[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                       _mm512_setzero_ps()};
        for (int32_t i = 0; i < head_dim; i += 16) {
            __mmask16 mask = mask_of(head_dim - i);
            for (int t = 0; t < at_once; t++) {
                int64_t at = j + t < n ? j + t : j; /* past the end: any, it is not used */
                __m512 kv = load_kv(k, at * head_dim + i, mask, half);
                for (int h = 0; h < heads; h++)
                    s[t * heads + h] = _mm512_fmadd_ps(
                        _mm512_maskz_loadu_ps(mask, q + h * head_dim + i), kv, s[t * heads + h]);
            }
        }
        _mm_storeu_ps(p + j * heads, _mm_mul_ps(reduce_add_4(s), _mm_set1_ps(scale)));
    }
}

/* acc[h] = acc[h] * c[h] + sum_j p[j * heads + h] v[j] for `chunks` times 16 dimensions, the last
 * of which may be fewer. */
INLINE void add_values(const int heads, const int chunks, float *acc, int32_t head_dim_v,
                       const float *c, const float *p, const void *v, int32_t from, int32_t n,
                       const int half) {
    __m512 a[8][4];
    __mmask16 mask[8];
    for (int i = 0; i < chunks; i++) {
        mask[i] = mask_of(head_dim_v - from - 16 * i);
        for (int h = 0; h < heads; h++)
            a[i][h] = _mm512_mul_ps(
                _mm512_maskz_loadu_ps(mask[i], acc + h * head_dim_v + from + 16 * i),
                _mm512_set1_ps(c[h]));
    }
    for (int32_t j = 0; j < n; j++)
        for (int i = 0; i < chunks; i++) {
            __m512 kv = load_kv(v, (int64_t)j * head_dim_v + from + 16 * i, mask[i], half);
            for (int h = 0; h < heads; h++)
                a[i][h] = _mm512_fmadd_ps(_mm512_set1_ps(p[j * heads + h]), kv, a[i][h]);
        }
    for (int i = 0; i < chunks; i++)
        for (int h = 0; h < heads; h++)
            _mm512_mask_storeu_ps(acc + h * head_dim_v + from + 16 * i, mask[i], a[i][h]);
}

/* The block for `heads` (1, 2 or 4) heads, which share K and V: these are read once. */
INLINE void attend_heads(const int heads, float *acc, float *m, float *l, const float *q,
                         const void *k, const void *v, int32_t n, int32_t head_dim,
                         int32_t head_dim_v, float scale, const int half) {
    float p[4 * DPI_KV_BLOCK], c[16], total[16], new_max[16];
    scores(heads, p, q, k, n, head_dim, scale, half);
    __m512 old = repeat(m, heads), max = old, sum = _mm512_setzero_ps();
    for (int32_t i = 0; i < n * heads; i += 16) {
        __mmask16 mask = mask_of(n * heads - i);
        max = _mm512_mask_max_ps(max, mask, max, _mm512_maskz_loadu_ps(mask, p + i));
    }
    FOLD(_mm512_max_ps, max, heads);
    for (int32_t i = 0; i < n * heads; i += 16) {
        __mmask16 mask = mask_of(n * heads - i);
        __m512 e = exp512(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, p + i), max));
        sum = _mm512_mask_add_ps(sum, mask, sum, e);
        _mm512_mask_storeu_ps(p + i, mask, e);
    }
    FOLD(_mm512_add_ps, sum, heads);
    _mm512_storeu_ps(c, exp512(_mm512_sub_ps(old, max)));
    _mm512_storeu_ps(total, sum);
    _mm512_storeu_ps(new_max, max);
    int32_t from = 0;
    for (; heads < 4 && head_dim_v - from > 64; from += 128)
        add_values(heads, 8, acc, head_dim_v, c, p, v, from, n, half);
    for (; head_dim_v - from > 32; from += 64)
        add_values(heads, 4, acc, head_dim_v, c, p, v, from, n, half);
    for (; head_dim_v - from > 0; from += 32)
        add_values(heads, 2, acc, head_dim_v, c, p, v, from, n, half);
    for (int h = 0; h < heads; h++) {
        l[h] = l[h] * c[h] + total[h];
        m[h] = new_max[h];
    }
}

INLINE void attend(float *acc, float *m, float *l, const float *q, const void *k, const void *v,
                   int32_t n_q, int32_t n, int32_t head_dim, int32_t head_dim_v, float scale,
                   const int half) {
    int32_t h = 0;
#define HEADS(count)                                                                              \
    attend_heads(count, acc + h * head_dim_v, m + h, l + h, q + h * head_dim, k, v, n, head_dim,  \
                 head_dim_v, scale, half)
    for (; h + 4 <= n_q; h += 4)
        HEADS(4);
    for (; h + 2 <= n_q; h += 2)
        HEADS(2);
    for (; h < n_q; h++)
        HEADS(1);
#undef HEADS
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
    k->rmsnorm = rmsnorm_avx512;
    k->add = add_avx512;
    k->swiglu = swiglu_avx512;
    k->f16_to_f32 = f16_to_f32_avx512;
    k->f32_to_f16 = f32_to_f16_avx512;
    k->matmul_f32 = matmul_f32_avx512;
    k->attend_f32 = attend_f32_avx512;
    k->attend_f16 = attend_f16_avx512;
    dpi_kernels_init_avx512_q(k);
    dpi_kernels_init_avx512_sampler(k);
}
