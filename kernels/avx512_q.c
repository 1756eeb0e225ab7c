/* avx512_q.c - 8-bit activations, and products with packed weights, AVX-512 VNNI. */
#include <string.h>

#include "avx512_util.h"
#include "kernels.h"
#include "pack.h"
#include "quant.h"

/* ---- Activations ----------------------------------------------------------------------------- */

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

static void quantize_q8_avx512(const dpi_q8 *block, int32_t rows, int32_t row, const float *x,
                               int64_t n) {
    const __m512 limit = _mm512_set1_ps(127.0f), low = _mm512_set1_ps(-127.0f);
    for (int64_t b = 0; b < n / DPI_Q8_BLOCK; b++, x += DPI_Q8_BLOCK) {
        __m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + 16);
        /* max(a, b) is b if either is NaN, so a NaN is passed over, as in ref_q.c. */
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
        float d = amax / levels;
        int32_t negative[2];
        for (int h = 0; h < 2; h++) {
            __m512 v = round512(_mm512_mul_ps(h ? x1 : x0, inverse));
            v = _mm512_min_ps(_mm512_max_ps(v, low), limit); /* a NaN becomes -127 */
            __m512i n32 = _mm512_cvtps_epi32(v);
            negative[h] = -_mm512_reduce_add_epi32(n32);
            block->negative16[(2 * b + h) * rows + row] = negative[h];
            int32_t words[4];
            _mm_storeu_si128((__m128i *)(void *)words, _mm512_cvtepi32_epi8(n32));
            for (int i = 0; i < 4; i++)
                memcpy(block->q + ((b * 8 + h * 4 + i) * rows + row) * 4, &words[i], 4);
        }
        block->d[b * rows + row] = d;
        block->negative32[b * rows + row] = negative[0] + negative[1];
        block->scaled32[b * rows + row] = d * (float)(negative[0] + negative[1]);
    }
}

/* ---- Products: the primitives of q_products.h -------------------------------------------------- */

#define LANES 16
#define TILE DPI_ROW_BLOCK
#define SIGNED_CODES 0 /* vpdpbusd: unsigned weights, signed activations */
typedef __m512i vec;
typedef __m512 vecf;

INLINE vec load_word(const unsigned char *p) { return _mm512_loadu_si512(p); }
INLINE vec zero_i(void) { return _mm512_setzero_si512(); }
INLINE vec or_bits(vec a, vec b) { return _mm512_or_si512(a, b); }
INLINE vec and_bytes(vec v, const int mask) {
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}
INLINE vec flip_sign(vec v) { return _mm512_xor_si512(v, _mm512_set1_epi8(-128)); }
INLINE vec shift_left16(vec v, const int n) { return _mm512_slli_epi16(v, (unsigned)n); }
INLINE vec shift_right16(vec v, const int n) { return _mm512_srli_epi16(v, (unsigned)n); }
INLINE vec shift_left32(vec v, const int n) { return _mm512_slli_epi32(v, (unsigned)n); }
INLINE vec shift_right32(vec v, const int n) { return _mm512_srli_epi32(v, (unsigned)n); }
INLINE vec shift_right32_signed(vec v, const int n) { return _mm512_srai_epi32(v, (unsigned)n); }
INLINE vec and_words(vec v, const int mask) { return _mm512_and_si512(v, _mm512_set1_epi32(mask)); }
INLINE vec sub_words(vec v, const int n) { return _mm512_sub_epi32(v, _mm512_set1_epi32(n)); }
INLINE vec broadcast_word(int32_t x) { return _mm512_set1_epi32(x); }

INLINE vecf zero_f(void) { return _mm512_setzero_ps(); }
INLINE vecf broadcast_f(float x) { return _mm512_set1_ps(x); }
INLINE vecf mul_f(vecf a, vecf b) { return _mm512_mul_ps(a, b); }
INLINE vecf add_f(vecf a, vecf b) { return _mm512_add_ps(a, b); }
INLINE vecf sub_f(vecf a, vecf b) { return _mm512_sub_ps(a, b); }
INLINE vecf fma_f(vecf a, vecf b, vecf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vecf to_float(vec v) { return _mm512_cvtepi32_ps(v); }
INLINE vecf low_half(vec v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
INLINE vecf high_half(vec v) { return low_half(_mm512_srli_epi32(v, 16)); }
INLINE vecf load_halves(const unsigned char *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
INLINE void store_f(float *p, vecf v, int32_t n) {
    _mm512_mask_storeu_ps(p, n >= LANES ? 0xffff : (__mmask16)((1u << n) - 1), v);
}

INLINE vec dot(vec sum, vec weights, vec x, const int signed_weights) {
    (void)signed_weights; /* never: SIGNED_CODES is 0 */
    return _mm512_dpbusd_epi32(sum, weights, x);
}

/* Adds 16 to the bytes of weights 4g..4g+3 whose bit is set in each row's word of 32 high bits. */
INLINE vec add_high_bits(vec low, vec high, const int g) {
    const char i = (char)(g / 2);
    const __m512i copy = _mm512_broadcast_i32x4(
        _mm_add_epi8(_mm_set1_epi8(i), _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12,
                                                     12)));
    const __m512i select = _mm512_set1_epi32(g % 2 ? (int)0x80402010 : 0x08040201);
    __mmask64 set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(high, copy), select);
    return _mm512_mask_add_epi8(low, set, low, _mm512_set1_epi8(16));
}

/* The values of IQ4 codes, plus 128. */
INLINE vec iq4_values(vec codes) {
    const __m512i table = _mm512_broadcast_i32x4(
        _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, (char)129, (char)141, (char)153, (char)166,
                      (char)181, (char)197, (char)217, (char)241));
    return _mm512_shuffle_epi8(table, codes);
}

INLINE void tiles(const int type, int rows, float *y, int64_t y_stride, dpi_q8 x,
                  const unsigned char *group, const int lane, int64_t n_in, int32_t n_out);

#include "q_products.h"

/* The tile sizes that matter: one sequence; the 9 of B = 8; the 8 that longer batches and prompts are
 * cut into. The others are put together, which keeps the code a third smaller. A tile of 9 has 9 sums
 * and 9 accumulators, of 32 registers. */
INLINE void tiles(const int type, int rows, float *y, int64_t y_stride, dpi_q8 x,
                  const unsigned char *group, const int lane, int64_t n_in, int32_t n_out) {
    if (rows == 9) {
        tile(type, 9, rows, y, y_stride, x, group, lane, n_in, n_out);
        return;
    }
    if (rows == 8) {
        tile(type, 8, rows, y, y_stride, x, group, lane, n_in, n_out);
        return;
    }
    if (rows >= 4) {
        tile(type, 4, rows, y, y_stride, x, group, lane, n_in, n_out);
        y += 4 * y_stride;
        x = dpi_q8_skip(&x, 4);
    }
    switch (rows % 4) {
    case 1:
        tile(type, 1, rows, y, y_stride, x, group, lane, n_in, n_out);
        break;
    case 2:
        tile(type, 2, rows, y, y_stride, x, group, lane, n_in, n_out);
        break;
    case 3:
        tile(type, 3, rows, y, y_stride, x, group, lane, n_in, n_out);
        break;
    default:
        break;
    }
}

/* One function a type: the dispatch table's slots. */
#define TYPE(name, type)                                                                          \
    static void matmul_##name##_avx512(float *y, int64_t y_stride, const dpi_q8 *x,               \
                                       int32_t n_rows, const void *w, int64_t n_in,               \
                                       int32_t n_out) {                                           \
        matmul(type, y, y_stride, x, n_rows, w, n_in, n_out);                                     \
    }
DPI_MATMUL_Q_TYPES(TYPE)
#undef TYPE


/* ---- Weights of 16 bits ---------------------------------------------------------------------- */

#define H_TILE DPI_ROW_BLOCK

INLINE vecf load_bfloats(const unsigned char *p) {
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

INLINE void h_tiles(const int type, int rows, float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out);

#include "h_products.h"

INLINE void h_tiles(const int type, int rows, float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out) {
    switch (rows) {
    case 1: h_tile(type, 1, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 2: h_tile(type, 2, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 3: h_tile(type, 3, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 4: h_tile(type, 4, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 5: h_tile(type, 5, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 6: h_tile(type, 6, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 7: h_tile(type, 7, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 8: h_tile(type, 8, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 9: h_tile(type, 9, y, y_stride, x, x_stride, w, n_in, n_out); break;
    default: break; /* DPI_ROW_BLOCK is 9 */
    }
}

/* One function a type: the dispatch table's slots. */
#define TYPE(name, type)                                                                          \
    static void matmul_##name##_avx512(float *y, int64_t y_stride, const float *x,                \
                                       int64_t x_stride, int32_t n_rows, const void *w,           \
                                       int64_t n_in, int32_t n_out) {                             \
        matmul_h(type, y, y_stride, x, x_stride, n_rows, w, n_in, n_out);                         \
    }
DPI_MATMUL_H_TYPES(TYPE)
#undef TYPE

void dpi_kernels_init_avx512_q(dpi_kernels *k) {
    k->quantize_q8 = quantize_q8_avx512;
#define TYPE(name, type) k->matmul_##name = matmul_##name##_avx512;
    DPI_MATMUL_Q_TYPES(TYPE)
    DPI_MATMUL_H_TYPES(TYPE)
#undef TYPE
}
