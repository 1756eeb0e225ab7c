/* avx512_sampler.c - the kernels of the sampler for AVX-512: the bits of ref_sampler.c, eight
 * candidates to a vector. What is private stands in vectors and masks, never in an address. */
#include "kernels/exact.h"
#include "kernels/kernels.h"
#include "kernels/x86/avx512_util.h"

/* The first n of 8 lanes. */
INLINE __mmask8 mask_of(int64_t n) { return n >= 8 ? 0xff : (__mmask8)((1u << n) - 1); }

/* ---- Clipping ------------------------------------------------------------------------------- */

typedef struct clipper {
    __m512d centre, bound;
    __m512i K, minus_K;
} clipper;

INLINE clipper make_clipper(double centre, int64_t K) {
    return (clipper){_mm512_set1_pd(centre), _mm512_set1_pd((double)K), _mm512_set1_epi64(K),
                     _mm512_set1_epi64(-K)};
}

/* clip(x, p) - null of up to 8 candidates; lanes that the mask leaves out are any numbers. */
INLINE __m512i moved(const clipper *c, const float *x, const float *p, const int64_t *null,
                     __mmask8 mask) {
    enum { NOT_FINITE = 0x99 }; /* quiet and signalling NaN, both infinities */
    const __m512d shift = _mm512_set1_pd(0x1.8p52);
    __m512d d = _mm512_sub_pd(_mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, x)),
                              _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, p)));
    d = _mm512_mul_pd(_mm512_sub_pd(d, c->centre), _mm512_set1_pd(DPI_UNIT));
    d = _mm512_maskz_mov_pd(_knot_mask8(_mm512_fpclass_pd_mask(d, NOT_FINITE)), d);
    d = _mm512_max_pd(d, _mm512_sub_pd(_mm512_setzero_pd(), c->bound));
    d = _mm512_min_pd(d, c->bound);
    __m512i i = _mm512_sub_epi64(_mm512_castpd_si512(_mm512_add_pd(d, shift)),
                                 _mm512_castpd_si512(shift));
    i = _mm512_max_epi64(_mm512_min_epi64(i, c->K), c->minus_K);
    return _mm512_sub_epi64(i, _mm512_maskz_loadu_epi64(mask, null));
}

static void clip_add_avx512(int64_t *sum, const float *x, const float *p, const int64_t *null,
                            double centre, int64_t K, uint64_t mask, int64_t n) {
    const clipper c = make_clipper(centre, K);
    const __m512i counts = _mm512_set1_epi64((int64_t)mask);
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 m = mask_of(n - i);
        __m512i add = _mm512_and_si512(moved(&c, x + i, p + i, null + i, m), counts);
        _mm512_mask_storeu_epi64(sum + i, m,
                                 _mm512_add_epi64(_mm512_maskz_loadu_epi64(m, sum + i), add));
    }
}

static void clip_range_avx512(int64_t range[2], const float *x, const float *p,
                              const int64_t *null, double centre, int64_t K, int64_t n) {
    const clipper c = make_clipper(centre, K);
    __m512i low = _mm512_set1_epi64(range[0]), high = _mm512_set1_epi64(range[1]);
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 m = mask_of(n - i);
        __m512i v = moved(&c, x + i, p + i, null + i, m);
        low = _mm512_mask_min_epi64(low, m, low, v);
        high = _mm512_mask_max_epi64(high, m, high, v);
    }
    range[0] = _mm512_reduce_min_epi64(low);
    range[1] = _mm512_reduce_max_epi64(high);
}

/* ---- Weights -------------------------------------------------------------------------------- */

enum { LANES = 16 }; /* candidates at a time: two vectors, whose indices fill one of 32 bits */

/* The tables in halves of 32 bits: a permutation reads 32 of their entries at once. */
typedef struct halves {
    uint32_t low[3][256], high[3][256];
} halves;

static void split(const uint64_t table[3][256], halves *h) {
    for (int t = 0; t < 3; t++)
        for (int j = 0; j < 256; j++) {
            h->low[t][j] = (uint32_t)table[t][j];
            h->high[t][j] = (uint32_t)(table[t][j] >> 32);
        }
}

INLINE __m512i load_entries(const uint32_t *p) { return _mm512_loadu_si512((const void *)p); }

/* table[index & 255] in 16 lanes: every entry is read, the index selects within registers. */
INLINE __m512i look_up_32(const uint32_t table[256], __m512i index) {
    __m512i v[8];
    for (int k = 0; k < 8; k++)
        v[k] = _mm512_permutex2var_epi32(load_entries(table + 32 * k), index,
                                         load_entries(table + 32 * k + 16));
    __mmask16 bit = _mm512_test_epi32_mask(index, _mm512_set1_epi32(32));
    for (int k = 0; k < 8; k += 2)
        v[k] = _mm512_mask_blend_epi32(bit, v[k], v[k + 1]);
    bit = _mm512_test_epi32_mask(index, _mm512_set1_epi32(64));
    for (int k = 0; k < 8; k += 4)
        v[k] = _mm512_mask_blend_epi32(bit, v[k], v[k + 2]);
    bit = _mm512_test_epi32_mask(index, _mm512_set1_epi32(128));
    return _mm512_mask_blend_epi32(bit, v[0], v[4]);
}

/* Low halves of a's 64-bit lanes, high halves of b's. */
INLINE __m512i halves_of(__m512i a, __m512i b) { return _mm512_mask_blend_epi32(0xaaaa, a, b); }

/* Table t at bits 40 - 8 t .. 47 - 8 t of each 64-bit lane of e[2]. */
INLINE void look_up(const halves *h, const int t, const __m512i e[2], __m512i value[2]) {
    __m512i index = halves_of(_mm512_srli_epi64(e[0], (unsigned)(40 - 8 * t)),
                              t == 2 ? _mm512_slli_epi64(e[1], 8)
                                     : _mm512_srli_epi64(e[1], (unsigned)(8 - 8 * t)));
    __m512i low = look_up_32(h->low[t], index), high = look_up_32(h->high[t], index);
    value[0] = halves_of(low, _mm512_slli_epi64(high, 32));
    value[1] = halves_of(_mm512_srli_epi64(low, 32), high);
}

typedef __m512i vec;
typedef uint64_t u64s __attribute__((vector_size(sizeof(vec))));

INLINE u64s mul_32(u64s a, u64s b) {
    return (u64s)_mm512_mul_epu32((vec)a, (vec)b);
}

#include "kernels/fixed63.h"

/* max(mant * 2^46 >> q, 2^40) to w. Shifts by 64 and more, and by less than 0, leave nothing. */
INLINE void store_weights(dpi_u128 *w, __m512i mant, __m512i q, int64_t n) {
    const __m512i zip_low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    const __m512i zip_high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    const __m512i left = _mm512_sub_epi64(_mm512_set1_epi64(46), q);
    __m512i high = _mm512_srlv_epi64(mant, _mm512_add_epi64(q, _mm512_set1_epi64(18)));
    __m512i low = _mm512_or_si512(
        _mm512_sllv_epi64(mant, left),
        _mm512_srlv_epi64(mant, _mm512_sub_epi64(_mm512_setzero_si512(), left)));
    __m512i over = _mm512_or_si512(high, _mm512_srli_epi64(low, DPI_FLOOR_BITS));
    low = _mm512_mask_mov_epi64(low, _mm512_testn_epi64_mask(over, over),
                                _mm512_set1_epi64(INT64_C(1) << DPI_FLOOR_BITS));
    long long *to = (long long *)(void *)w;
    _mm512_mask_storeu_epi64(to, mask_of(2 * n), _mm512_permutex2var_epi64(low, zip_low, high));
    if (n > 4)
        _mm512_mask_storeu_epi64(to + 8, mask_of(2 * n - 8),
                                 _mm512_permutex2var_epi64(low, zip_high, high));
}

/* Up to LANES weights. */
INLINE void weigh(dpi_u128 *w, const int64_t *u, const halves *h, __m512i top, uint64_t a,
                  int64_t n) {
    const __m512i gap_max = _mm512_set1_epi64(dpi_gap_max(a));
    __m512i e[2], mant[2], factor[2];
    for (int k = 0; k < 2; k++) {
        __mmask8 m = n > 8 * k ? mask_of(n - 8 * k) : 0;
        __m512i gap = _mm512_sub_epi64(top, _mm512_mask_loadu_epi64(top, m, u + 8 * k));
        e[k] = _mm512_mullo_epi64(_mm512_min_epi64(gap, gap_max), _mm512_set1_epi64((int64_t)a));
    }
    look_up(h, 0, e, mant);
    for (int t = 1; t < 3; t++) {
        look_up(h, t, e, factor);
        for (int k = 0; k < 2; k++)
            mant[k] = multiply_63(mant[k], factor[k]);
    }
    for (int k = 0; k < 2; k++)
        if (n > 8 * k)
            store_weights(w + 8 * k, multiply_63(mant[k], last_factor(e[k])),
                          _mm512_srli_epi64(e[k], 48), n - 8 * k);
}

static void exp2_weights_avx512(dpi_u128 *w, const int64_t *u, uint64_t a,
                                const uint64_t table[3][256], int64_t n) {
    halves h;
    split(table, &h);
    __m512i top = _mm512_set1_epi64(INT64_MIN);
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 m = mask_of(n - i);
        top = _mm512_mask_max_epi64(top, m, top, _mm512_maskz_loadu_epi64(m, u + i));
    }
    top = _mm512_set1_epi64(_mm512_reduce_max_epi64(top));
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        weigh(w + i, u + i, &h, top, a, LANES);
    if (i < n)
        weigh(w + i, u + i, &h, top, a, n - i);
}

void dpi_kernels_init_avx512_sampler(dpi_kernels *k) {
    k->clip_add = clip_add_avx512;
    k->clip_range = clip_range_avx512;
    k->exp2_weights = exp2_weights_avx512;
}
