/* avx2_sampler.c - the kernels of the sampler for AVX2: the bits of ref_sampler.c, four candidates
 * to a vector. What is private stands in vectors, never in an address. */
#include "base/mem.h"
#include "kernels/byte_slices.h"
#include "kernels/exact.h"
#include "kernels/kernels.h"
#include "kernels/x86/avx2_util.h"

INLINE __m256i load_i64(const int64_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINE void store_i64(int64_t *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }

/* a where the mask is 0, b where it is all ones. */
INLINE __m256i choose(__m256i a, __m256i b, __m256i mask) {
    return _mm256_blendv_epi8(a, b, mask);
}

INLINE __m256i min_i64(__m256i a, __m256i b) { return choose(a, b, _mm256_cmpgt_epi64(a, b)); }
INLINE __m256i max_i64(__m256i a, __m256i b) { return choose(b, a, _mm256_cmpgt_epi64(a, b)); }

/* ---- Clipping ------------------------------------------------------------------------------- */

enum { STEP = 4 }; /* candidates to a vector */

typedef struct clipper {
    __m256d centre, bound;
    __m256i K, minus_K;
} clipper;

INLINE clipper make_clipper(double centre, int64_t K) {
    return (clipper){_mm256_set1_pd(centre), _mm256_set1_pd((double)K), _mm256_set1_epi64x(K),
                     _mm256_set1_epi64x(-K)};
}

/* clip(x, p) of four candidates. */
INLINE __m256i clip(const clipper *c, __m128 x, __m128 p) {
    const __m256i exponent = _mm256_set1_epi64x(INT64_C(0x7ff) << 52);
    const __m256d shift = _mm256_set1_pd(0x1.8p52);
    __m256d d = _mm256_sub_pd(_mm256_cvtps_pd(x), _mm256_cvtps_pd(p));
    d = _mm256_mul_pd(_mm256_sub_pd(d, c->centre), _mm256_set1_pd(DPI_UNIT));
    __m256i bits = _mm256_castpd_si256(d);
    __m256i odd = _mm256_cmpeq_epi64(_mm256_and_si256(bits, exponent), exponent);
    d = _mm256_castsi256_pd(_mm256_andnot_si256(odd, bits));
    d = _mm256_max_pd(d, _mm256_sub_pd(_mm256_setzero_pd(), c->bound));
    d = _mm256_min_pd(d, c->bound);
    __m256i i = _mm256_sub_epi64(_mm256_castpd_si256(_mm256_add_pd(d, shift)),
                                 _mm256_castpd_si256(shift));
    return max_i64(min_i64(i, c->K), c->minus_K);
}

INLINE __m256i moved(const clipper *c, const float *x, const float *p, const int64_t *null,
                     int64_t i) {
    return _mm256_sub_epi64(clip(c, _mm_loadu_ps(x + i), _mm_loadu_ps(p + i)), load_i64(null + i));
}

INLINE __m256i moved_rest(const clipper *c, const float *x, const float *p, const int64_t *null,
                          int64_t i, int64_t n) {
    const __m256i left = _mm256_set1_epi64x(n - i);
    const __m256i mask = _mm256_cmpgt_epi64(left, _mm256_setr_epi64x(0, 1, 2, 3));
    const __m128i mask_32 =
        _mm_cmpgt_epi32(_mm_set1_epi32((int)(n - i)), _mm_setr_epi32(0, 1, 2, 3));
    __m256i v = clip(c, _mm_maskload_ps(x + i, mask_32), _mm_maskload_ps(p + i, mask_32));
    return _mm256_sub_epi64(v, _mm256_maskload_epi64((const long long *)(null + i), mask));
}

/* ---- Weights -------------------------------------------------------------------------------- */

enum { VECTORS = 8 };

/* Zips the bytes, pairs and quadruples of v[8]: lane i of vector k was in byte k of lane i of all
 * eight; now v[k] has lanes (k', i) in the order (0, 0) (1, 0) (0, 2) (1, 2), (0, 1) (1, 1) ...
 * v[2 m] and v[2 m + 1] being vectors 2 m and 2 m + 1, even lanes and odd lanes. */
INLINE void zip(__m256i v[VECTORS]) {
    __m256i a[VECTORS], b[VECTORS];
    for (int k = 0; k < 4; k++) {
        a[k] = _mm256_unpacklo_epi8(v[2 * k], v[2 * k + 1]); /* bytes 2k, 2k + 1; even lanes */
        a[k + 4] = _mm256_unpackhi_epi8(v[2 * k], v[2 * k + 1]);
    }
    for (int odd = 0; odd < 8; odd += 4)
        for (int k = 0; k < 2; k++) {
            b[odd + k] = _mm256_unpacklo_epi16(a[odd + 2 * k], a[odd + 2 * k + 1]);
            b[odd + k + 2] = _mm256_unpackhi_epi16(a[odd + 2 * k], a[odd + 2 * k + 1]);
        }
    for (int odd = 0; odd < 2; odd++)
        for (int half = 0; half < 2; half++) {
            const __m256i *from = b + 4 * odd + 2 * half;
            v[4 * half + odd] = _mm256_unpacklo_epi32(from[0], from[1]);
            v[4 * half + 2 + odd] = _mm256_unpackhi_epi32(from[0], from[1]);
        }
}

/* Back from the order of `zip`. */
INLINE void in_order(__m256i v[VECTORS]) {
    for (int k = 0; k < VECTORS; k += 2) {
        __m256i even = v[k], odd = v[k + 1];
        v[k] = _mm256_unpacklo_epi64(even, odd);
        v[k + 1] = _mm256_unpackhi_epi64(even, odd);
    }
}

/* Table t at bits 40 - 8 t .. 47 - 8 t of each lane of e, in the order of `zip`. Every entry is
 * read; the index selects within registers. */
INLINE void look_up(const slices *tables, const int t, const __m256i e[VECTORS],
                    __m256i value[VECTORS]) {
    __m256i index = _mm256_setzero_si256();
    for (int k = 0; k < VECTORS; k++) {
        __m256i byte = _mm256_and_si256(_mm256_srli_epi64(e[k], 40 - 8 * t),
                                        _mm256_set1_epi64x(255));
        index = _mm256_or_si256(index, _mm256_slli_epi64(byte, 8 * k));
        value[k] = _mm256_setzero_si256();
    }
    for (int row = 0; row < 16; row++) {
        /* Bit 7, which makes a shuffle give 0, where the index is not in this row of 16. */
        __m256i at = _mm256_xor_si256(index, _mm256_set1_epi8((char)(16 * row)));
        at = _mm256_adds_epu8(at, _mm256_set1_epi8(0x70));
        for (int s = 0; s < 8; s++) {
            __m128i entries = _mm_loadu_si128((const __m128i *)(tables->byte[t][s] + 16 * row));
            value[s] = _mm256_or_si256(
                value[s], _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), at));
        }
    }
    zip(value);
}

typedef __m256i vec;
typedef uint64_t u64s __attribute__((vector_size(sizeof(vec))));

INLINE u64s mul_32(u64s a, u64s b) {
    return (u64s)_mm256_mul_epu32((vec)a, (vec)b);
}

#include "kernels/fixed63.h"

/* max(mant * 2^46 >> q, 2^40) to w. Shifts by 64 and more, and by less than 0, leave nothing. */
INLINE void store_weights(dpi_u128 *w, __m256i mant, __m256i q) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i left = _mm256_sub_epi64(_mm256_set1_epi64x(46), q);
    __m256i high = _mm256_srlv_epi64(mant, _mm256_add_epi64(q, _mm256_set1_epi64x(18)));
    __m256i low = _mm256_or_si256(_mm256_sllv_epi64(mant, left),
                                  _mm256_srlv_epi64(mant, _mm256_sub_epi64(zero, left)));
    __m256i over = _mm256_or_si256(high, _mm256_srli_epi64(low, DPI_FLOOR_BITS));
    low = choose(low, _mm256_set1_epi64x(INT64_C(1) << DPI_FLOOR_BITS),
                 _mm256_cmpeq_epi64(over, zero));
    __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
    __m256i *to = (__m256i *)(void *)w;
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}

#define NAME(kernel) kernel##_avx2
#include "kernels/byte_sampler_tmpl.h"

void dpi_kernels_init_avx2_sampler(dpi_kernels *k) { init_sampler(k); }
