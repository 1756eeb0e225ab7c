/* avx2_products_tmpl.h - products with packed weights for AVX2, with the dot product instruction of
 * AVX-VNNI or without: the same integers, so the same bits. The including file defines VNNI (0 or
 * 1) and NAME(kernel), the name of its function; it gets init_products(). */
#include "kernels/x86/avx2_util.h"
#include "kernels/kernels.h"
#include "kernels/order.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"

/* ---- Products: the primitives of q_products_tmpl.h ------------------------------------------- */

#define LANES 8
#define TILE 6 /* 6 sums and 6 accumulators, of 16 registers */
#define HAS_WINOGRAD 0
#define HAS_UNPACKED 1
#define HAS_PAIRS 0
#define SIGNED_CODES !VNNI /* vpdpbusd: unsigned weights, signed activations */
typedef __m256i vec;
typedef __m256 vecf;
#include "kernels/x86/prefetch.h"

INLINE vec lanes_below(int n) { /* all bits set */
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vec load_word(const unsigned char *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
INLINE vec zero_i(void) { return _mm256_setzero_si256(); }
INLINE vec or_bits(vec a, vec b) { return _mm256_or_si256(a, b); }
INLINE vec and_bytes(vec v, const int mask) {
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}
INLINE vec flip_sign(vec v) { return _mm256_xor_si256(v, _mm256_set1_epi8(-128)); }
INLINE vec shift_left16(vec v, const int n) { return _mm256_slli_epi16(v, n); }
INLINE vec shift_right16(vec v, const int n) { return _mm256_srli_epi16(v, n); }
INLINE vec shift_left32(vec v, const int n) { return _mm256_slli_epi32(v, n); }
INLINE vec shift_right32(vec v, const int n) { return _mm256_srli_epi32(v, n); }
INLINE vec shift_right32_signed(vec v, const int n) { return _mm256_srai_epi32(v, n); }
INLINE vec and_words(vec v, const int mask) { return _mm256_and_si256(v, _mm256_set1_epi32(mask)); }
INLINE vec sub_words(vec v, const int n) { return _mm256_sub_epi32(v, _mm256_set1_epi32(n)); }
INLINE vec broadcast_word(int32_t x) { return _mm256_set1_epi32(x); }

INLINE vecf load_f(const float *p) { return _mm256_loadu_ps(p); }
INLINE vecf zero_f(void) { return _mm256_setzero_ps(); }
INLINE vecf broadcast_f(float x) { return _mm256_set1_ps(x); }
INLINE vecf mul_f(vecf a, vecf b) { return _mm256_mul_ps(a, b); }
INLINE vecf add_f(vecf a, vecf b) { return _mm256_add_ps(a, b); }
INLINE vecf sub_f(vecf a, vecf b) { return _mm256_sub_ps(a, b); }
INLINE vecf fma_f(vecf a, vecf b, vecf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vecf to_float(vec v) { return _mm256_cvtepi32_ps(v); }
INLINE vecf as_float(vec v) { return _mm256_castsi256_ps(v); }
INLINE vecf low_f16(vec v) {
    vec packed = _mm256_packus_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0xffff)), zero_i());
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}
INLINE vecf high_f16(vec v) { return low_f16(_mm256_srli_epi32(v, 16)); }
INLINE vecf load_f16s(const unsigned char *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
INLINE void store_f(float *p, vecf v, int32_t n) { _mm256_maskstore_ps(p, lanes_below(n), v); }

#if VNNI
INLINE vec dot_words(vec sum, vec weights, const int32_t *x) {
#ifdef __AVXVNNI__
    return _mm256_dpbusd_avx_epi32(sum, weights, broadcast_word(*x));
#else /* the same of AVX-512, for tests */
    return _mm256_dpbusd_epi32(sum, weights, broadcast_word(*x));
#endif
}
#else
/* Sums of 32 bits, and those of pairs of bytes on their way, of 16. */
typedef struct sums {
    vec total, pairs;
} sums;

INLINE sums sums_from(vec v) { return (sums){v, zero_i()}; }
INLINE vec sums_total(sums sum) { return sum.total; }

/* vpmaddubsw wants unsigned bytes on the left, and saturates at 2^15: codes are at most 63, and
 * |w| * (x with the sign of w) reaches at most 2 * 128 * 127. */
INLINE sums dot(sums sum, vec weights, const int32_t *x, const int signed_weights, const int step,
                const int at_once, const int in_order) {
    vec four = broadcast_word(*x);
    vec pairs;
    if (signed_weights)
        pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(four, weights));
    else
        pairs = _mm256_maddubs_epi16(weights, four);
    sum.pairs = step % at_once == 0 ? pairs : _mm256_add_epi16(sum.pairs, pairs);
    if (in_order)
        COMPUTED(sum.pairs);
    if (step % at_once == at_once - 1) {
        sum.total = _mm256_add_epi32(sum.total,
                                     _mm256_madd_epi16(sum.pairs, _mm256_set1_epi16(1)));
        if (in_order)
            COMPUTED(sum.total);
    }
    return sum;
}
#endif

/* Adds 16 to the bytes of weights 4g..4g+3 whose bit is set in each row's word of 32 high bits. */
INLINE vec add_high_bits(vec low, vec high, const int g) {
    const char i = (char)(g / 2);
    const __m256i copy = _mm256_broadcastsi128_si256(
        _mm_add_epi8(_mm_set1_epi8(i), _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12,
                                                     12)));
    const __m256i select = _mm256_set1_epi32(g % 2 ? (int)0x80402010 : 0x08040201);
    vec set = _mm256_and_si256(_mm256_shuffle_epi8(high, copy), select);
    return or_bits(low, and_bytes(_mm256_cmpeq_epi8(set, select), 16));
}

/* The values of IQ4 codes, plus 128 if weights are unsigned. */
INLINE vec iq4_values(vec codes) {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113));
    vec values = _mm256_shuffle_epi8(table, codes);
    return SIGNED_CODES ? values : flip_sign(values);
}

#include "kernels/q_products_tmpl.h"
#include "kernels/unpacked_products_tmpl.h"

INLINE void tiles(const int type, int rows, float *y, int64_t y_stride, dpi_q8 x,
                  source from, int64_t n_in, int32_t n_out) {
    for (int r = 0, n; r < rows; r += n) {
        n = dpi_equal_part(rows, TILE, r);
        dpi_q8 part = dpi_q8_skip(&x, r);
        float *to = y + r * y_stride;
        switch (n) {
        case 1: tile(type, 1, rows, to, y_stride, part, from, n_in, n_out); break;
        case 2: tile(type, 2, rows, to, y_stride, part, from, n_in, n_out); break;
        case 3: tile(type, 3, rows, to, y_stride, part, from, n_in, n_out); break;
        case 4: tile(type, 4, rows, to, y_stride, part, from, n_in, n_out); break;
        case 5: tile(type, 5, rows, to, y_stride, part, from, n_in, n_out); break;
        default: tile(type, 6, rows, to, y_stride, part, from, n_in, n_out);
        }
    }
}

/* ---- Weights of 16 bits ---------------------------------------------------------------------- */

#define H_TILE 6

INLINE vecf load_bf16s(const unsigned char *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

INLINE void h_tiles(const int type, int rows, float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out,
                    const int32_t ahead);

#include "kernels/h_products_tmpl.h"

INLINE void h_tiles(const int type, int rows, float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out,
                    const int32_t ahead) {
    for (int r = 0, n; r < rows; r += n, x += n * x_stride, y += n * y_stride) {
        n = dpi_equal_part(rows, H_TILE, r);
        switch (n) {
        case 1: h_tile(type, 1, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 2: h_tile(type, 2, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 3: h_tile(type, 3, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 4: h_tile(type, 4, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        case 5: h_tile(type, 5, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
        default: h_tile(type, 6, y, y_stride, x, x_stride, w, n_in, n_out, ahead);
        }
    }
}

#include "kernels/product_slots_tmpl.h"
