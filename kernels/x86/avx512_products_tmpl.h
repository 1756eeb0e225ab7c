/* avx512_products_tmpl.h - products with packed weights for vectors of 512 bits with VNNI. Included
 * by avx512_q.c and avx512_k.c, which have some of the weight types each, so that two processors
 * compile them, where HAS_PRODUCT(block) says which (product_slots_tmpl.h). Gives init_products().
 * Not a header to include elsewhere. */
#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"
#include "kernels/x86/avx512_util.h"

/* ---- The primitives of q_products_tmpl.h ----------------------------------------------------- */

#define LANES 16
#define TILE DPI_ROW_BLOCK
#define SIGNED_CODES 0 /* vpdpbusd: unsigned weights, signed activations */
#define HAS_WINOGRAD 1
#define HAS_UNPACKED 1
#define HAS_PAIRS 0
typedef __m512i vec;
typedef __m512 vecf;
#include "kernels/x86/prefetch.h"

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
INLINE vec broadcast_word(int32_t x) { return _mm512_set1_epi32(x); }

INLINE vecf zero_f(void) { return _mm512_setzero_ps(); }
INLINE vecf broadcast_f(float x) { return _mm512_set1_ps(x); }
INLINE vecf mul_f(vecf a, vecf b) { return _mm512_mul_ps(a, b); }
INLINE vecf add_f(vecf a, vecf b) { return _mm512_add_ps(a, b); }
INLINE vecf sub_f(vecf a, vecf b) { return _mm512_sub_ps(a, b); }
INLINE vecf fma_f(vecf a, vecf b, vecf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vecf to_float(vec v) { return _mm512_cvtepi32_ps(v); }
INLINE vecf as_float(vec v) { return _mm512_castsi512_ps(v); }
INLINE vecf low_f16(vec v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
INLINE vecf high_f16(vec v) { return low_f16(_mm512_srli_epi32(v, 16)); }
INLINE vecf load_f16s(const unsigned char *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
INLINE vec add_bytes(vec a, vec b) { return _mm512_add_epi8(a, b); }
INLINE vec sub_bytes(vec a, vec b) { return _mm512_sub_epi8(a, b); }
INLINE vec broadcast_byte(const int n) { return _mm512_set1_epi8((char)n); }
INLINE vec dot_bytes(vec sum, vec a, vec b) { return _mm512_dpbusd_epi32(sum, a, b); }
INLINE vecf load_f(const float *p) { return _mm512_loadu_ps(p); }
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

#include "kernels/q_products_tmpl.h"

/* Each number of rows is one tile: two would go through the weights twice (with 6, 7 and 12 rows 15
 * to 35 % more time). A tile of 11 has 22 sums, of 32 registers; some of the 11 accumulators, which
 * are only touched between sub-blocks, go to the stack. */
INLINE void tiles(const int type, int rows, float *y, int64_t y_stride, dpi_q8 x, source from,
                  int64_t n_in, int32_t n_out) {
    switch (rows) {
    case 11: tile(type, 11, rows, y, y_stride, x, from, n_in, n_out); break;
    case 10: tile(type, 10, rows, y, y_stride, x, from, n_in, n_out); break;
    case 9: tile(type, 9, rows, y, y_stride, x, from, n_in, n_out); break;
    case 8: tile(type, 8, rows, y, y_stride, x, from, n_in, n_out); break;
    case 7: tile(type, 7, rows, y, y_stride, x, from, n_in, n_out); break;
    case 6: tile(type, 6, rows, y, y_stride, x, from, n_in, n_out); break;
    case 5: tile(type, 5, rows, y, y_stride, x, from, n_in, n_out); break;
    case 4: tile(type, 4, rows, y, y_stride, x, from, n_in, n_out); break;
    case 3: tile(type, 3, rows, y, y_stride, x, from, n_in, n_out); break;
    case 2: tile(type, 2, rows, y, y_stride, x, from, n_in, n_out); break;
    case 1: tile(type, 1, rows, y, y_stride, x, from, n_in, n_out); break;
    default: break; /* DPI_ROW_BLOCK is 11 */
    }
}

#include "kernels/winograd_products_tmpl.h"
#include "kernels/unpacked_products_tmpl.h"

/* ---- Weights of 16 bits ---------------------------------------------------------------------- */

#define H_TILE DPI_ROW_BLOCK

INLINE vecf load_bf16s(const unsigned char *p) {
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

INLINE void h_tiles(const int type, int rows, float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out,
                    const int32_t ahead);

#include "kernels/h_products_tmpl.h"

INLINE void h_tiles(const int type, int rows, float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out,
                    const int32_t ahead) {
    switch (rows) {
    case 1: h_tile(type, 1, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 2: h_tile(type, 2, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 3: h_tile(type, 3, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 4: h_tile(type, 4, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 5: h_tile(type, 5, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 6: h_tile(type, 6, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 7: h_tile(type, 7, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 8: h_tile(type, 8, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 9: h_tile(type, 9, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 10: h_tile(type, 10, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    case 11: h_tile(type, 11, y, y_stride, x, x_stride, w, n_in, n_out, ahead); break;
    default: break; /* DPI_ROW_BLOCK is 11 */
    }
}

#define NAME(kernel) kernel##_avx512
#include "kernels/product_slots_tmpl.h"
