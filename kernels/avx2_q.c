/* avx2_q.c - 8-bit activations, and products with packed weights, AVX2. */
#include <string.h>

#include "avx2_util.h"
#include "kernels.h"
#include "pack.h"
#include "quant.h"

/* ---- Activations ----------------------------------------------------------------------------- */

INLINE int32_t reduce_add_i(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* The squared error of one block with max / levels, in units of max^2, summed in the order that
 * kernels.def fixes: lane i of part 0 and 1 are elements i and i + 8, parts 2 and 3 theirs + 16. */
INLINE float q8_error(const float *x, float max, float levels) {
    __m256 inverse = _mm256_set1_ps(max > 1e-30f ? levels / max : 0.0f), e[4];
    for (int i = 0; i < 4; i++) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inverse);
        v = _mm256_sub_ps(v, round256(v));
        e[i] = _mm256_mul_ps(v, v);
    }
    return reduce_add(_mm256_add_ps(_mm256_add_ps(e[0], e[2]), _mm256_add_ps(e[1], e[3]))) /
           (levels * levels);
}

/* 8 values as 8-bit integers, in 32 bits each. */
INLINE __m256i quantize_8(const float *x, float inverse, float most) {
    const __m256 limit = _mm256_set1_ps(most), low = _mm256_set1_ps(-most);
    __m256 v = round256(_mm256_mul_ps(_mm256_loadu_ps(x), _mm256_set1_ps(inverse)));
    v = _mm256_min_ps(_mm256_max_ps(v, low), limit); /* a NaN becomes -most */
    return _mm256_cvtps_epi32(v);
}

static void quantize_q8_avx2(const dpi_q8 *block, int32_t rows, int32_t row, const float *x,
                             int64_t n, int32_t form) {
    const int32_t most = dpi_q8_most(form);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    for (int64_t b = 0; b < n / DPI_Q8_BLOCK; b++, x += DPI_Q8_BLOCK) {
        __m256 max = _mm256_setzero_ps();
        for (int i = 0; i < DPI_Q8_BLOCK; i += 8) /* a NaN is passed over: the second wins */
            max = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + i)), max);
        float amax = reduce_max(max), levels = (float)most;
        float best = q8_error(x, amax, levels);
        for (int32_t level = 1; level < dpi_q8_levels(most); level++) {
            float error = q8_error(x, amax, (float)(most - level));
            levels = error < best ? (float)(most - level) : levels;
            best = error < best ? error : best;
        }
        float inverse = amax > 1e-30f ? levels / amax : 0.0f, d = amax / levels;
        int32_t negative[2];
        for (int h = 0; h < 2; h++) {
            __m256i a = quantize_8(x + 16 * h, inverse, (float)most);
            __m256i c = quantize_8(x + 16 * h + 8, inverse, (float)most);
            negative[h] = -reduce_add_i(_mm256_add_epi32(a, c));
            block->negative16[(2 * b + h) * rows + row] = negative[h];
            __m256i pairs = _mm256_packs_epi32(a, c); /* within 128-bit lanes */
            __m128i lo = _mm256_castsi256_si128(pairs), hi = _mm256_extracti128_si256(pairs, 1);
            int32_t words[4]; /* weights 0..3, 8..11, 4..7, 12..15 */
            _mm_storeu_si128((__m128i *)(void *)words, _mm_packs_epi16(lo, hi));
            for (int i = 0; i < 4; i++)
                memcpy(block->q + ((b * 8 + h * 4 + i) * rows + row) * 4,
                       &words[(i & 1) << 1 | i >> 1], 4);
        }
        block->d[b * rows + row] = d;
        block->negative32[b * rows + row] = negative[0] + negative[1];
        block->scaled32[b * rows + row] = d * (float)(negative[0] + negative[1]);
        if (dpi_q8_is_folded(form))
            dpi_fold_32(block, rows, row, b);
    }
}

#define VNNI 0
#define NAME(kernel) kernel##_avx2
#include "avx2_products.h"

void dpi_kernels_init_avx2_q(dpi_kernels *k) {
    k->quantize_q8 = quantize_q8_avx2;
    init_products(k);
}
