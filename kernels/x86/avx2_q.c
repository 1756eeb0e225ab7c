/* avx2_q.c - 8-bit activations, and products with packed weights, AVX2. */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"
#include "kernels/x86/avx2_util.h"

/* ---- Activations ----------------------------------------------------------------------------- */

INLINE int32_t reduce_add_i(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* 16 values in 65536ths of the largest, modulo 2^16 (a NaN is 0), in any order. */
INLINE __m256i q8_parts(const float *x, float inverse) {
    const __m256 by = _mm256_set1_ps(inverse);
    __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), by));
    __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), by));
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
}

/* Errors with L to L - 3, which compare. */
INLINE __m128 q8_errors(const __m256i *t, const int32_t L) {
    __m256i e[4];
    for (int i = 0; i < 4; i++) {
        const __m256i by = _mm256_set1_epi16((int16_t)(L - i));
        __m256i a = _mm256_srai_epi16(_mm256_mullo_epi16(t[0], by), 4);
        __m256i b = _mm256_srai_epi16(_mm256_mullo_epi16(t[1], by), 4);
        e[i] = _mm256_add_epi32(_mm256_madd_epi16(a, a), _mm256_madd_epi16(b, b));
    }
    __m256i sum = _mm256_hadd_epi32(_mm256_hadd_epi32(e[0], e[1]), _mm256_hadd_epi32(e[2], e[3]));
    __m128i all = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    return _mm_mul_ps(_mm_cvtepi32_ps(all),
                      _mm_setr_ps(dpi_q8_weight(L), dpi_q8_weight(L - 1), dpi_q8_weight(L - 2),
                                  dpi_q8_weight(L - 3)));
}

/* The L whose scale max / L has the smallest error. */
INLINE int32_t best_levels(const float *x, float max, const int32_t most) {
    const float inverse = max > 1e-30f ? 65536.0f / max : 0.0f;
    const __m256i t[2] = {q8_parts(x, inverse), q8_parts(x + 16, inverse)};
    float error[8], least = INFINITY;
    int32_t best = most, n = dpi_q8_levels(most);
    _mm_storeu_ps(error, q8_errors(t, most));
    if (n > 4)
        _mm_storeu_ps(error + 4, q8_errors(t, most - 4));
    for (int32_t i = 0; i < n; i++) {
        best = error[i] < least ? most - i : best;
        least = error[i] < least ? error[i] : least;
    }
    return best;
}

/* 8 values as 8-bit integers, in 32 bits each. */
INLINE __m256i quantize_8(const float *x, float inverse, float most) {
    const __m256 limit = _mm256_set1_ps(most), low = _mm256_set1_ps(-most);
    __m256 v = round256(_mm256_mul_ps(_mm256_loadu_ps(x), _mm256_set1_ps(inverse)));
    v = _mm256_min_ps(_mm256_max_ps(v, low), limit); /* a NaN becomes -most */
    return _mm256_cvtps_epi32(v);
}

/* A block of all rows, then the next: they are written in their order. */
static void quantize_q8_avx2(const dpi_q8 *to, int32_t rows, const float *x, int64_t x_stride,
                             int64_t n, int32_t form) {
    const int32_t most = dpi_q8_most(form);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (int64_t at = 0; at < n / DPI_Q8_BLOCK * rows; at++) {
        const float *from = x + at % rows * x_stride + at / rows * DPI_Q8_BLOCK;
        __m256 max = _mm256_setzero_ps();
        for (int i = 0; i < DPI_Q8_BLOCK; i += 8) /* a NaN is passed over: the second wins */
            max = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(from + i)), max);
        float amax = reduce_max(max), levels = (float)best_levels(from, amax, most);
        float inverse = amax > 1e-30f ? levels / amax : 0.0f;
        int8_t q[DPI_Q8_BLOCK];
        int32_t sums[2];
        for (int h = 0; h < 2; h++) {
            __m256i a = quantize_8(from + 16 * h, inverse, (float)most);
            __m256i c = quantize_8(from + 16 * h + 8, inverse, (float)most);
            sums[h] = reduce_add_i(_mm256_add_epi32(a, c));
            __m256i pairs = _mm256_packs_epi32(a, c); /* within 128-bit lanes */
            __m128i lo = _mm256_castsi256_si128(pairs), hi = _mm256_extracti128_si256(pairs, 1);
            __m128i steps = _mm_packs_epi16(lo, hi); /* weights 0..3, 8..11, 4..7, 12..15 */
            _mm_storeu_si128((__m128i *)(void *)(q + 16 * h), _mm_shuffle_epi32(steps, 0xd8));
        }
        dpi_q8_put(to, at, form, q, sums, amax / levels);
    }
}

#define VNNI 0
#define NAME(kernel) kernel##_avx2
#include "kernels/x86/avx2_products_tmpl.h"

void dpi_kernels_init_avx2_q(dpi_kernels *k) {
    k->quantize_q8 = quantize_q8_avx2;
    init_products(k);
}
