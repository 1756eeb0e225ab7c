/* avx512_q.c - 8-bit activations, and products with packed weights, AVX-512 VNNI. */
#include <string.h>

#include "avx512_util.h"
#include "kernels.h"
#include "pack.h"
#include "quant.h"

/* ---- Activations ----------------------------------------------------------------------------- */

enum { Q8_AT_ONCE = 4 };

/* The errors of one block for each of the scales max / L, in units of max^2, in the order that
 * kernels.def fixes. inverse [DPI_Q8_LEVELS] = L / max. */
INLINE __m128 q8_errors(__m512 x0, __m512 x1, const float *inverse) {
    __m128 e[DPI_Q8_LEVELS];
    for (int i = 0; i < DPI_Q8_LEVELS; i++) {
        __m512 scale = _mm512_set1_ps(inverse[i]);
        __m512 v0 = _mm512_mul_ps(x0, scale), v1 = _mm512_mul_ps(x1, scale);
        v0 = _mm512_sub_ps(v0, round512(v0));
        v1 = _mm512_sub_ps(v1, round512(v1));
        v0 = _mm512_add_ps(_mm512_mul_ps(v0, v0), _mm512_mul_ps(v1, v1));
        __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v0), _mm512_extractf32x8_ps(v0, 1));
        e[i] = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    }
    _MM_TRANSPOSE4_PS(e[0], e[1], e[2], e[3]);
    __m128 sum = _mm_add_ps(_mm_add_ps(e[0], e[2]), _mm_add_ps(e[1], e[3]));
    return _mm_div_ps(sum, _mm_setr_ps(127 * 127, 126 * 126, 125 * 125, 124 * 124));
}
_Static_assert(DPI_Q8_LEVELS == 4, "q8_errors has one lane a level");

/* The block's q as bytes, and minus the sums of its halves. */
INLINE __m256i q8_round(__m512 x0, __m512 x1, float inverse, int32_t *negative) {
    const __m512 limit = _mm512_set1_ps(127.0f), low = _mm512_set1_ps(-127.0f);
    __m128i half[2];
    for (int h = 0; h < 2; h++) {
        __m512 v = round512(_mm512_mul_ps(h ? x1 : x0, _mm512_set1_ps(inverse)));
        v = _mm512_min_ps(_mm512_max_ps(v, low), limit); /* a NaN becomes -127 */
        half[h] = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v));
    }
    __m256i q = _mm256_inserti128_si256(_mm256_castsi128_si256(half[0]), half[1], 1);
    __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), q);
    sums = _mm256_hadd_epi32(sums, sums); /* within each half */
    sums = _mm256_hadd_epi32(sums, sums);
    negative[0] = -_mm256_extract_epi32(sums, 0);
    negative[1] = -_mm256_extract_epi32(sums, 4);
    return q;
}

/* Blocks [b, b + n) of a row. One block is a long chain of operations, each waiting for the one
 * before, so that several go through it side by side. */
INLINE void q8_blocks(const int n, const dpi_q8 *block, int32_t rows, int32_t row, const float *x,
                      int64_t b) {
    const __m128 levels = _mm_setr_ps(127, 126, 125, 124);
    __m512 x0[Q8_AT_ONCE], x1[Q8_AT_ONCE];
    float amax[Q8_AT_ONCE], inverse[Q8_AT_ONCE][DPI_Q8_LEVELS];
    int best[Q8_AT_ONCE];
    for (int i = 0; i < n; i++) {
        x0[i] = _mm512_loadu_ps(x + (b + i) * DPI_Q8_BLOCK);
        x1[i] = _mm512_loadu_ps(x + (b + i) * DPI_Q8_BLOCK + 16);
        /* max(a, b) is b if either is NaN, so a NaN is passed over, as in ref_q.c. */
        __m512 max = _mm512_max_ps(_mm512_abs_ps(x0[i]), _mm512_setzero_ps());
        amax[i] = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(x1[i]), max));
    }
    for (int i = 0; i < n; i++)
        _mm_storeu_ps(inverse[i], amax[i] > 1e-30f ? _mm_div_ps(levels, _mm_set1_ps(amax[i]))
                                                   : _mm_setzero_ps());
    for (int i = 0; i < n; i++) {
        __m128 error = q8_errors(x0[i], x1[i], inverse[i]);
        __m128 least = _mm_min_ps(error, _mm_movehl_ps(error, error));
        least = _mm_min_ss(least, _mm_movehdup_ps(least));
        /* The first of those that are not larger; all of them if they are NaN. */
        __mmask8 small = _mm_cmp_ps_mask(error, _mm_broadcastss_ps(least), _CMP_NGT_UQ);
        best[i] = __builtin_ctz((unsigned)small | 8);
    }
    for (int i = 0; i < n; i++) {
        float d = amax[i] / (float)(127 - best[i]);
        int32_t negative[2], words[8];
        __m256i q = q8_round(x0[i], x1[i], inverse[i][best[i]], negative);
        _mm256_storeu_si256((__m256i *)(void *)words, q);
        for (int k = 0; k < 8; k++)
            memcpy(block->q + (((b + i) * 8 + k) * rows + row) * 4, &words[k], 4);
        block->d[(b + i) * rows + row] = d;
        block->negative16[2 * (b + i) * rows + row] = negative[0];
        block->negative16[(2 * (b + i) + 1) * rows + row] = negative[1];
        block->negative32[(b + i) * rows + row] = negative[0] + negative[1];
        block->scaled32[(b + i) * rows + row] = d * (float)(negative[0] + negative[1]);
    }
}

static void quantize_q8_avx512(const dpi_q8 *block, int32_t rows, int32_t row, const float *x,
                               int64_t n) {
    int64_t b = 0, n_blocks = n / DPI_Q8_BLOCK;
    for (; b + Q8_AT_ONCE <= n_blocks; b += Q8_AT_ONCE)
        q8_blocks(Q8_AT_ONCE, block, rows, row, x, b);
    for (; b < n_blocks; b++)
        q8_blocks(1, block, rows, row, x, b);
}

/* ---- Products: the primitives of q_products.h ------------------------------------------------ */

#define LANES 16
#define TILE DPI_ROW_BLOCK
#define SIGNED_CODES 0 /* vpdpbusd: unsigned weights, signed activations */
typedef __m512i vec;
typedef __m512 vecf;

INLINE vec load_word(const unsigned char *p) { return _mm512_loadu_si512(p); }
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
INLINE vec add_words(vec a, vec b) { return _mm512_add_epi32(a, b); }
INLINE vec load_words(const int32_t *p, int n) {
    return _mm512_maskz_loadu_epi32(n >= LANES ? 0xffff : (__mmask16)((1u << n) - 1), p);
}
INLINE void store_words(int32_t *p, vec v) { _mm512_storeu_si512(p, v); }
INLINE vec broadcast_word(int32_t x) { return _mm512_set1_epi32(x); }

INLINE vecf zero_f(void) { return _mm512_setzero_ps(); }
INLINE vecf broadcast_f(float x) { return _mm512_set1_ps(x); }
INLINE vecf mul_f(vecf a, vecf b) { return _mm512_mul_ps(a, b); }
INLINE vecf add_f(vecf a, vecf b) { return _mm512_add_ps(a, b); }
INLINE vecf sub_f(vecf a, vecf b) { return _mm512_sub_ps(a, b); }
INLINE vecf fma_f(vecf a, vecf b, vecf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vecf to_float(vec v) { return _mm512_cvtepi32_ps(v); }
INLINE vecf as_float(vec v) { return _mm512_castsi512_ps(v); }
INLINE vecf low_half(vec v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
INLINE vecf high_half(vec v) { return low_half(_mm512_srli_epi32(v, 16)); }
INLINE vecf load_halves(const unsigned char *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
INLINE void store_f(float *p, vecf v, int32_t n) {
    _mm512_mask_storeu_ps(p, n >= LANES ? 0xffff : (__mmask16)((1u << n) - 1), v);
}

/* One instruction, where GCC makes a load of its own of the broadcast. */
INLINE vec dot_words(vec sum, vec weights, const int32_t *x) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(weights), "m"(*x));
    return sum;
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

/* Cores of Intel (Emerald Rapids) take in 7 to 10 % more so; Zen 5 takes in 5 to 15 % less. */
INLINE int asks_far(void) { return __builtin_cpu_is("intel"); }

#include "q_products.h"

/* The tile sizes that matter: one sequence; the 5 of B = 4 and the 9 of B = 8; the 8 to 11 that
 * longer batches and prompts are cut into. The others are put together, which keeps the code
 * smaller. A tile of 11 has 22 sums, of 32 registers; some of the 11 accumulators, which are only
 * touched between sub-blocks, go to the stack. */
INLINE void tiles(const int type, int rows, float *y, int64_t y_stride, dpi_q8 x,
                  source from, int64_t n_in, int32_t n_out) {
    switch (rows) {
    case 11: tile(type, 11, rows, y, y_stride, x, from, n_in, n_out); return;
    case 10: tile(type, 10, rows, y, y_stride, x, from, n_in, n_out); return;
    case 9: tile(type, 9, rows, y, y_stride, x, from, n_in, n_out); return;
    case 8: tile(type, 8, rows, y, y_stride, x, from, n_in, n_out); return;
    case 5: tile(type, 5, rows, y, y_stride, x, from, n_in, n_out); return;
    default: break;
    }
    if (rows >= 4) {
        tile(type, 4, rows, y, y_stride, x, from, n_in, n_out);
        y += 4 * y_stride;
        x = dpi_q8_skip(&x, 4);
    }
    switch (rows % 4) {
    case 1: tile(type, 1, rows, y, y_stride, x, from, n_in, n_out); break;
    case 2: tile(type, 2, rows, y, y_stride, x, from, n_in, n_out); break;
    case 3: tile(type, 3, rows, y, y_stride, x, from, n_in, n_out); break;
    default: break;
    }
}

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
    case 10: h_tile(type, 10, y, y_stride, x, x_stride, w, n_in, n_out); break;
    case 11: h_tile(type, 11, y, y_stride, x, x_stride, w, n_in, n_out); break;
    default: break; /* DPI_ROW_BLOCK is 11 */
    }
}

#define NAME(kernel) kernel##_avx512
#include "product_slots.h"

void dpi_kernels_init_avx512_q(dpi_kernels *k) {
    k->quantize_q8 = quantize_q8_avx512;
    init_products(k);
}
