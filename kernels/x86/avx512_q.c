/* avx512_q.c - 8-bit activations, and products with packed weights of blocks below 256, AVX-512
 * VNNI. */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"
#include "kernels/x86/avx512_util.h"

/* ---- Activations ----------------------------------------------------------------------------- */

/* Four blocks of a row go through at a time: a block's 16 lanes become four, then one, by steps
 * that reduce two vectors to one, so that no lane is idle. Where a vector holds something of each
 * block and level, it is [block, level]. Each step for itself goes through a stretch of such fours:
 * all of them one after the other are a chain so long that a core could not begin the next ones
 * meanwhile. */
enum { Q8_AT_ONCE = 4, Q8_FOURS = 8 };
enum { Q8_QUAD = 4 }; /* levels, a lane for each beside the blocks */

/* What is known of a stretch; numbers of a block four times. */
typedef struct stretch {
    const float *x[Q8_FOURS]; /* each Q8_AT_ONCE blocks */
    float max[Q8_FOURS * Q8_AT_ONCE][Q8_QUAD]; /* max|x| */
    float by[Q8_FOURS * Q8_AT_ONCE][Q8_QUAD]; /* 65536 / max, then L / max */
    float d[Q8_FOURS * Q8_AT_ONCE][Q8_QUAD]; /* max / L */
} stretch;

INLINE const float *q8_block(const stretch *s, int b) {
    return s->x[b / Q8_AT_ONCE] + b % Q8_AT_ONCE * DPI_Q8_BLOCK;
}

/* 16 values of block b from 16 h on, multiplied with its `by`. */
INLINE __m512 q8_scaled(const stretch *s, int b, int h) {
    return _mm512_mul_ps(_mm512_loadu_ps(q8_block(s, b) + 16 * h), _mm512_set1_ps(s->by[b][0]));
}

/* a / b, or 0 where b is too small to scale. */
INLINE __m512 q8_over(__m512 a, __m512 b) {
    return _mm512_maskz_div_ps(_mm512_cmp_ps_mask(b, _mm512_set1_ps(1e-30f), _CMP_GT_OQ), a, b);
}

/* The best lane of each block for all four. */
INLINE __m512 max_of_quad(__m512 v) {
    v = _mm512_max_ps(v, _mm512_permute_ps(v, 0x4e));
    return _mm512_max_ps(v, _mm512_permute_ps(v, 0xb1));
}
INLINE __m512 min_of_quad(__m512 v) {
    v = _mm512_min_ps(v, _mm512_permute_ps(v, 0x4e));
    return _mm512_min_ps(v, _mm512_permute_ps(v, 0xb1));
}

/* max and by of blocks [b, b + Q8_AT_ONCE). */
INLINE void q8_scales(stretch *s, int b) {
    __m512 v[Q8_AT_ONCE];
    for (int i = 0; i < Q8_AT_ONCE; i++) {
        const float *x = q8_block(s, b + i);
        /* max(a, b) is b if either is NaN, so a NaN is passed over, as in ref_q.c. */
        v[i] = _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(x)), _mm512_setzero_ps());
        v[i] = _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(x + 16)), v[i]);
    }
    __m512 ab = _mm512_max_ps(_mm512_shuffle_f32x4(v[0], v[1], 0x44),
                              _mm512_shuffle_f32x4(v[0], v[1], 0xee));
    __m512 cd = _mm512_max_ps(_mm512_shuffle_f32x4(v[2], v[3], 0x44),
                              _mm512_shuffle_f32x4(v[2], v[3], 0xee));
    __m512 max = max_of_quad(_mm512_max_ps(_mm512_shuffle_f32x4(ab, cd, 0x88),
                                           _mm512_shuffle_f32x4(ab, cd, 0xdd)));
    _mm512_storeu_ps(s->max[b], max);
    _mm512_storeu_ps(s->by[b], q8_over(_mm512_set1_ps(65536.0f), max));
}

/* Blocks [b, b + Q8_AT_ONCE) in 65536ths of their largest, modulo 2^16: 8 values of each block in
 * each vector. */
INLINE void q8_parts(const stretch *s, int b, __m512i *t) {
    __m512i v[Q8_AT_ONCE];
    for (int i = 0; i < Q8_AT_ONCE; i++) { /* a NaN becomes 2^31, that is 0 */
        __m512i low = _mm512_cvtps_epi32(q8_scaled(s, b + i, 0));
        __m512i high = _mm512_cvtps_epi32(q8_scaled(s, b + i, 1));
        v[i] = _mm512_mask_blend_epi16(0xaaaaaaaa, low, _mm512_slli_epi32(high, 16));
    }
    /* Lanes of 128 bits, transposed. */
    __m512i ab = _mm512_shuffle_i32x4(v[0], v[1], 0x44);
    __m512i cd = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    t[0] = _mm512_shuffle_i32x4(ab, cd, 0x88);
    t[1] = _mm512_shuffle_i32x4(ab, cd, 0xdd);
    ab = _mm512_shuffle_i32x4(v[0], v[1], 0xee), cd = _mm512_shuffle_i32x4(v[2], v[3], 0xee);
    t[2] = _mm512_shuffle_i32x4(ab, cd, 0x88);
    t[3] = _mm512_shuffle_i32x4(ab, cd, 0xdd);
}

/* Sums of r^2 with L, over each block's four lanes. */
INLINE __m512i q8_errors(const __m512i *t, const int L) {
    __m512i sum = _mm512_setzero_si512();
    for (int i = 0; i < Q8_AT_ONCE; i++) {
        __m512i r = _mm512_srai_epi16(_mm512_mullo_epi16(t[i], _mm512_set1_epi16((short)L)), 4);
        sum = _mm512_dpwssd_epi32(sum, r, r);
    }
    return sum;
}

/* Compares levels L to L - 3 with the best so far and its error. */
INLINE void q8_quad(const __m512i *t, const int L, __m512 *best, __m512 *least) {
#define OF_LEVELS(f) _mm512_broadcast_f32x4(_mm_setr_ps(f(L), f(L - 1), f(L - 2), f(L - 3)))
    __m512i e[Q8_QUAD];
    for (int i = 0; i < Q8_QUAD; i++)
        e[i] = q8_errors(t, L - i);
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(e[0], e[1]),
                                  _mm512_unpackhi_epi32(e[0], e[1]));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(e[2], e[3]),
                                  _mm512_unpackhi_epi32(e[2], e[3]));
    __m512i sum = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    __m512 error = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), OF_LEVELS(dpi_q8_weight));
    __m512 smallest = min_of_quad(error);
    __mmask16 is_smallest = _mm512_cmp_ps_mask(error, smallest, _CMP_EQ_OQ);
    __m512 first = max_of_quad(_mm512_maskz_mov_ps(is_smallest, OF_LEVELS((float))));
    __mmask16 is_better = _mm512_cmp_ps_mask(smallest, *least, _CMP_LT_OQ);
    *best = _mm512_mask_mov_ps(*best, is_better, first);
    *least = _mm512_min_ps(*least, smallest);
#undef OF_LEVELS
}

/* Chooses L: by, now of L, and d of blocks [b, b + Q8_AT_ONCE). */
INLINE void q8_levels(stretch *s, const int most, int b) {
    __m512i t[Q8_AT_ONCE];
    __m512 best = _mm512_setzero_ps(), least = _mm512_set1_ps(INFINITY);
    q8_parts(s, b, t);
    q8_quad(t, most, &best, &least);
    if (dpi_q8_levels(most) > Q8_QUAD)
        q8_quad(t, most - Q8_QUAD, &best, &least);
    __m512 max = _mm512_loadu_ps(s->max[b]);
    _mm512_storeu_ps(s->by[b], q8_over(best, max));
    _mm512_storeu_ps(s->d[b], _mm512_div_ps(max, best));
}

/* The bytes of q of 16 values of block b from 16 h on; a NaN becomes -most. */
INLINE __m128i q8_round(const stretch *s, const int most, int b, int h) {
    __m512 v = _mm512_max_ps(q8_scaled(s, b, h), _mm512_set1_ps((float)-most));
    v = _mm512_add_ps(v, _mm512_set1_ps(DPI_ORIGIN));
    return _mm512_cvtepi32_epi8(_mm512_castps_si512(v)); /* the lowest byte of each */
}

/* Sums over the first and the last 16 values of four blocks whose words are in a and b: of block i,
 * at [i % 2 * 8 + i / 2] and four further on. */
INLINE void q8_sums(int32_t *sums, __m512i a, __m512i b) {
    __m512i sum = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, 0x4e));
    _mm512_storeu_si512(sums, sum);
}

/* Writes the first n of blocks [b, b + Q8_AT_ONCE), `rows` apart. */
INLINE void q8_store(const stretch *s, const int form, int b, int n, const dpi_q8 *to,
                     int32_t rows) {
    const int most = dpi_q8_most(form);
    const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
    __m512i q[2];
    int32_t words[Q8_AT_ONCE][8], sums[16], offset_words[Q8_AT_ONCE][8], offset_sums[16];
    for (int i = 0; i < 2; i++) {
        const int k = b + 2 * i;
        __m256i low = _mm256_castsi128_si256(q8_round(s, most, k, 0));
        __m256i high = _mm256_castsi128_si256(q8_round(s, most, k + 1, 0));
        low = _mm256_inserti128_si256(low, q8_round(s, most, k, 1), 1);
        high = _mm256_inserti128_si256(high, q8_round(s, most, k + 1, 1), 1);
        q[i] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        _mm512_storeu_si512(words[2 * i], q[i]);
    }
    q8_sums(sums, _mm512_dpbusd_epi32(zero, ones, q[0]), _mm512_dpbusd_epi32(zero, ones, q[1]));
    if (dpi_q8_has_winograd(form)) {
        const __m512i even = _mm512_set1_epi64((int64_t)0xf8f8f8f878787878),
                      offset = _mm512_maskz_mov_epi32(
                          0x3f3f, even); /* of each block's first DPI_WINOGRAD_STEPS words */
        __m512i sum[2];
        for (int i = 0; i < 2; i++) {
            __m512i f = _mm512_add_epi8(q[i], offset), odd = _mm512_shuffle_epi32(f, 0xb1);
            sum[i] = _mm512_maskz_dpbusd_epi32(0x1515, zero, f, odd);
            _mm512_storeu_si512(offset_words[2 * i], f);
        }
        q8_sums(offset_sums, sum[0], sum[1]);
    }
    for (int i = 0; i < n; i++) {
        const int at = i * rows;
        const int32_t *half = sums + i % 2 * 8 + i / 2;
        const int32_t *offset_half = offset_sums + i % 2 * 8 + i / 2;
        const int32_t negative = -half[0] - half[4];
        const float d = s->d[b + i][0], scaled = d * (float)negative;
        if (dpi_q8_has_plain(form)) {
            dpi_q8_plain *p = &to->plain[at];
            p->start_128 = DPI_ORIGIN_BITS + 128 * negative;
            p->d = d;
            memcpy(p->q, words[i], sizeof p->q);
            to->sums[at] = (dpi_q8_sums){
                {DPI_ORIGIN_BITS - 32 * half[0], DPI_ORIGIN_BITS - 32 * half[4]}, scaled};
        }
        if (dpi_q8_has_winograd(form)) {
            dpi_q8_winograd *f = &to->winograd[at];
            f->start = DPI_WINOGRAD_ORIGIN - offset_half[0] - offset_half[4];
            f->start_8 = f->start + 8 * negative;
            f->d = d;
            f->scaled = scaled;
            memcpy(f->q, offset_words[i], sizeof f->q);
        }
    }
}

/* Four blocks of one row, then of the next: they are written nearly in their order. */
INLINE void quantize_rows(const dpi_q8 *all, int32_t rows, const float *x, int64_t x_stride,
                          int64_t n, const int form) {
    const int most = dpi_q8_most(form);
    const int64_t n_blocks = n / DPI_Q8_BLOCK;
    int64_t b = 0;
    int32_t row = 0;
    while (b < n_blocks) {
        float padded[Q8_FOURS][Q8_AT_ONCE * DPI_Q8_BLOCK]; /* of fours of which some are there */
        dpi_q8 to[Q8_FOURS];
        int there[Q8_FOURS], n_fours = 0;
        stretch s;
        for (; n_fours < Q8_FOURS && b < n_blocks; n_fours++) {
            const float *from = x + row * x_stride + b * DPI_Q8_BLOCK;
            int n_there = n_blocks - b < Q8_AT_ONCE ? (int)(n_blocks - b) : Q8_AT_ONCE;
            if (n_there < Q8_AT_ONCE) {
                memset(padded[n_fours], 0, sizeof padded[n_fours]);
                from = memcpy(padded[n_fours], from, (size_t)n_there * DPI_Q8_BLOCK * sizeof *from);
            }
            s.x[n_fours] = from;
            there[n_fours] = n_there;
            to[n_fours] = dpi_q8_skip(all, b * rows + row);
            if (++row == rows) {
                row = 0;
                b += Q8_AT_ONCE;
            }
        }
        for (int i = 0; i < n_fours; i++)
            q8_scales(&s, i * Q8_AT_ONCE);
        for (int i = 0; i < n_fours; i++)
            q8_levels(&s, most, i * Q8_AT_ONCE);
        for (int i = 0; i < n_fours; i++)
            q8_store(&s, form, i * Q8_AT_ONCE, there[i], &to[i], rows);
    }
}

static void quantize_q8_avx512(const dpi_q8 *to, int32_t rows, const float *x, int64_t x_stride,
                               int64_t n, int32_t form) {
    switch (form) {
    case DPI_Q8_NARROW: quantize_rows(to, rows, x, x_stride, n, DPI_Q8_NARROW); break;
    case DPI_Q8_WINOGRAD: quantize_rows(to, rows, x, x_stride, n, DPI_Q8_WINOGRAD); break;
    case DPI_Q8_BOTH: quantize_rows(to, rows, x, x_stride, n, DPI_Q8_BOTH); break;
    default: quantize_rows(to, rows, x, x_stride, n, DPI_Q8_PLAIN); break;
    }
}

/* ---- Products -------------------------------------------------------------------------------- */

#define HAS_PRODUCT(block) ((block) < 256) /* avx512_k.c has the others */
#include "kernels/x86/avx512_products_tmpl.h"

void dpi_kernels_init_avx512_q(dpi_kernels *k) {
    k->quantize_q8 = quantize_q8_avx512;
    k->has_winograd = true;
    init_products(k);
    dpi_kernels_init_avx512_k(k);
}
