/* test_weights.c - tables, integer weights and the draw, against values computed elsewhere with
 * many digits, long double, and counting. */
#include <math.h>

#include "base/mem.h"
#include "dp/exact/weights.h"
#include "kernels/kernels.h"
#include "tests/support/support.h"

#define SCALE_7 UINT64_C(50294870) /* B = 7, tau = 1.1: docs/spec.md section 2 */

static dpi_weight_tables tables;
static dpi_kernels kernels;
static const dpi_u128 TOP = (dpi_u128)1 << 109, FLOOR = (dpi_u128)1 << 40;
static const uint64_t ZEROS[4], ONES[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};

SETUP {
    assert_ok(dpi_kernels_init(&kernels, forced_isa(), ERR));
    dpi_weights_tables(&tables);
}

static void compute_weights(uint64_t a, const int64_t *utility, int64_t n, dpi_u128 *w) {
    kernels.exp2_weights(w, utility, a, (const uint64_t(*)[256])tables.table, n);
}

/* round(2^(63 - j / 2^(8 (t + 1)))) was computed with 50 digits for all t, j; these are some of
 * them and the FNV-1a hash of all, as little-endian words. */
TEST(test_tables) {
    static const struct row {
        int t, j;
        uint64_t value;
    } some[] = {
        {0, 0, UINT64_C(0x8000000000000000)},   {0, 1, UINT64_C(0x7fa765aca88f6453)},
        {0, 128, UINT64_C(0x5a827999fcef3242)}, {0, 255, UINT64_C(0x402c6be96af2fb58)},
        {1, 1, UINT64_C(0x7fffa74712c3cdfd)},   {1, 255, UINT64_C(0x7fa7be2869052536)},
        {2, 1, UINT64_C(0x7fffffa746f422d7)},   {2, 200, UINT64_C(0x7fffbaaf8167b65f)},
        {2, 255, UINT64_C(0x7fffa79fcb92693f)},
    };
    for (const struct row *r = some; r < END(some); r++)
        assert_int_equal(tables.table[r->t][r->j], r->value);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int t = 0; t < 3; t++)
        for (int j = 0; j < 256; j++)
            for (int b = 0; b < 64; b += 8)
                hash = (hash ^ (tables.table[t][j] >> b & 255)) * UINT64_C(0x100000001b3);
    assert_int_equal(hash, UINT64_C(0x3627c405240e5b76));
}

/* The inverse temperature of docs/spec.md's golden vectors. */
TEST(test_scale) {
    assert_int_equal(dpi_weights_scale(7, 1.1), SCALE_7);
    assert_int_equal(dpi_weights_scale(15, 1.2), 21515028);
    assert_int_equal(dpi_weights_scale(31, 1.0), 12492597);
    assert_int_equal(dpi_weights_scale(127, 1.0), 3049374);
    /* Ends of the range keep gap * a below 2^56 and a above 0. */
    assert_int_equal(dpi_weights_scale(4096, 100), 945);
    assert_true(dpi_weights_scale(1, .01) < UINT64_C(1) << 36);
}

static dpi_u128 weight_of_gap(uint64_t a, int64_t gap) {
    const int64_t utility[2] = {5, 5 - gap};
    dpi_u128 w[2];
    compute_weights(a, utility, 2, w);
    assert_true(w[0] == TOP);
    return w[1];
}

/* ln(w / 2^(109 - min(gap a / 2^48, 69))). */
static long double log_error(dpi_u128 w, uint64_t a, int64_t gap) {
    dpi_u128 e = (dpi_u128)(uint64_t)gap * a, end = (dpi_u128)69 << 48;
    e = e > end ? end : e;
    const long double fraction = (long double)(uint64_t)(e & ((UINT64_C(1) << 48) - 1)) * 0x1p-48L;
    return logl(ldexpl((long double)w, (int)(e >> 48) - 109) / exp2l(-fraction));
}

/* The bound that the slack in eta stands on: within 2^-40, and upwards only by 2^-58. */
TEST(test_weights_against_long_double) {
    static const uint64_t scales[] = {945, 3049374, 12492597, SCALE_7, UINT64_C(38726194000)};
    uint64_t seed = 7;
    long double lowest = 0, highest = 0;
    for (int i = 0; i < 400000; i++) {
        uint64_t a = scales[i % 5];
        int64_t end = (int64_t)((UINT64_C(69) << 48) / a);
        int64_t gap = (int64_t)(random_u64(&seed) % ((uint64_t)end + 2));
        if (i % 7 == 0) /* just above the floor, where a unit weighs most */
            gap = end - (int64_t)(random_u64(&seed) % ((uint64_t)end / 69 / 1000 + 1));
        if (i % 7 == 1)
            gap = random_below(&seed, 1000);
        long double error = log_error(weight_of_gap(a, gap), a, gap);
        lowest = error < lowest ? error : lowest;
        highest = error > highest ? error : highest;
    }
    print_message("ln(w / ideal) in [-2^%.3f, 2^%.1f]\n", (double)log2l(-lowest),
                  (double)log2l(highest));
    assert_true(lowest >= -0x1p-40L && highest <= 0x1p-58L);
    assert_true(lowest <= -0x1p-41L); /* so the cases above do reach the worst */
}

TEST(test_weights_at_the_edges) {
    static const uint64_t scales[] = {945, SCALE_7, UINT64_C(38726194000)};
    static const int64_t at[] = {0, 1, 45, 46, 47, 63, 64, 68, 69};
    for (const uint64_t *a = scales; a < END(scales); a++) {
        const int64_t cap = (int64_t)((UINT64_C(69) << 48) / *a + 1); /* G */
        assert_true(weight_of_gap(*a, 0) == TOP);
        assert_true(weight_of_gap(*a, cap) == FLOOR && weight_of_gap(*a, cap + 1) == FLOOR);
        assert_true(weight_of_gap(*a, INT64_C(1) << 47) == FLOOR);
        assert_true(weight_of_gap(*a, cap - 1) >= FLOOR);
        /* Never increasing with the gap, here across powers of two and the floor. */
        const int64_t bit = (int64_t)((UINT64_C(1) << 48) / *a);
        for (const int64_t *k = at; k < END(at); k++) {
            const int64_t from = *k * bit > 300 ? *k * bit - 300 : 0;
            dpi_u128 before = weight_of_gap(*a, from);
            for (int64_t gap = from + 1; gap < from + 600; gap++) {
                const dpi_u128 w = weight_of_gap(*a, gap);
                assert_true(w <= before && w >= FLOOR);
                before = w;
            }
        }
    }
}

/* The best candidate may be anywhere, and only differences count. */
TEST(test_weights_are_shift_invariant) {
    enum { N = 300 };
    int64_t u[N], v[N];
    dpi_u128 w[N], x[N];
    uint64_t seed = 8;
    for (int round = 0; round < 50; round++) {
        int64_t shift = (int64_t)(random_u64(&seed) >> 18) - (INT64_C(1) << 45);
        for (int i = 0; i < N; i++)
            v[i] = (u[i] = -(int64_t)(random_u64(&seed) >> 38)) + shift;
        compute_weights(SCALE_7, u, N, w);
        compute_weights(SCALE_7, v, N, x);
        assert_memory_equal(w, x, sizeof w);
    }
}

/* ---- The draw ------------------------------------------------------------------------------- */

/* floor(X * sum / 2^256) >= prefix <=> X >= ceil(prefix * 2^256 / sum): the least X that draws
 * index i, by long division, one bit at a time; `less` than that by 0 or 1. */
static void least_bits(dpi_u128 prefix, dpi_u128 sum, int less, uint64_t bits[4]) {
    dpi_u128 rest = prefix; /* < sum < 2^127 */
    for (int i = 255; i >= 0; i--) {
        rest <<= 1;
        bits[i / 64] = bits[i / 64] << 1 | (rest >= sum);
        rest -= rest >= sum ? sum : 0;
    }
    if (rest && !less) /* round up */
        for (int word = 0; word < 4 && ++bits[word] == 0; word++)
            ;
    if (!rest && less)
        for (int word = 0; word < 4 && bits[word]-- == 0; word++)
            ;
}

TEST(test_draw_boundaries) {
    enum { N = 200 };
    uint64_t seed = 9;
    for (int round = 0; round < 20; round++) {
        dpi_u128 w[N], sum = 0;
        for (int i = 0; i < N; i++) {
            w[i] = ((dpi_u128)1 << (40 + random_below(&seed, 69))) + random_u64(&seed);
            sum += w[i];
        }
        assert_int_equal(dpi_weights_draw(w, N, ZEROS), 0);
        assert_int_equal(dpi_weights_draw(w, N, ONES), N - 1);
        dpi_u128 prefix = w[0];
        for (int i = 1; i < N; i++) {
            for (int less = 0; less < 2; less++) {
                uint64_t bits[4] = {0};
                least_bits(prefix, sum, less, bits);
                assert_int_equal(dpi_weights_draw(w, N, bits), i - less);
            }
            prefix += w[i];
        }
    }
}

/* Sums of 2^127, and 2^18 candidates, one of them possible. */
TEST(test_draw_at_the_limits) {
    const uint64_t half[4] = {0, 0, 0, UINT64_C(1) << 63};
    dpi_u128 *w = dpi_calloc(DPI_WEIGHTS_MAX, sizeof *w);
    assert_non_null(w);
    for (size_t i = 0; i < DPI_WEIGHTS_MAX; i++)
        w[i] = TOP;
    assert_int_equal(dpi_weights_draw(w, DPI_WEIGHTS_MAX, ONES), DPI_WEIGHTS_MAX - 1);
    assert_int_equal(dpi_weights_draw(w, DPI_WEIGHTS_MAX, half), DPI_WEIGHTS_MAX / 2);
    assert_int_equal(dpi_weights_draw(w, 1, ONES), 0);
    for (size_t i = 0; i < DPI_WEIGHTS_MAX; i++)
        w[i] = FLOOR;
    w[77777] = TOP;
    assert_int_equal(dpi_weights_draw(w, DPI_WEIGHTS_MAX, half), 77777);
    free(w);
}
