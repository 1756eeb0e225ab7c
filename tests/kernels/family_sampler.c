/* family_sampler.c - the kernels that the sampler uses: every bit is that of ref.c, and that of a
 * plain oracle. */
#include "tests/kernels/family.h"

#include <math.h>

#include "dp/account/account.h"
#include "dp/exact/weights.h"

enum { N_MAX = 1100, MARGIN = 8, N = TIMED_N_IN };

static const int64_t counts[] = {1,  2,  3,  4,  5,  7,   8,   9,    15,
                                 16, 17, 31, 32, 33, 100, 257, 1024, 1099};
enum { N_COUNTS = sizeof counts / sizeof *counts };
/* ROUNDS of every count n. */
#define EACH_COUNT(rounds)                                                                         \
    for (int round = 0, i_n = 0; round < (rounds); i_n = (i_n + 1) % N_COUNTS, round += i_n == 0)

/* A float of any kind: usual, large, tiny, denormal, zeros, infinities, NaNs with any payload. */
static float any_float(uint64_t *seed) {
    static const float special[] = {0.0f,    -0.0f,    INFINITY, -INFINITY, NAN,
                                    3.4e38f, -3.4e38f, 1e-45f,   -1e-45f,   1e4f,
                                    -1e4f,   0x1p-21f, 0x1p-20f, 0x3p-21f,  2047.5f};
    uint32_t bits = (uint32_t)random_u64(seed);
    float x;
    switch (random_below(seed, 8)) {
    case 0:
        return special[random_below(seed, sizeof special / sizeof *special)];
    case 1:
        break; /* any bits */
    case 2:
        bits = (bits & 0x807fffff) | 0x7f800000;
        break; /* NaN, of both kinds */
    case 3:
        return (float)(random_below(seed, 1 << 20) - (1 << 19)) * 0x1p-21f; /* ties */
    case 4:
        return (float)(1000 * random_normal(seed));
    default:
        return (float)(4 * random_normal(seed));
    }
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int64_t any_clip(uint64_t *seed) {
    switch (random_below(seed, 5)) {
    case 0:
        return 1 + random_below(seed, 3);
    case 1:
        return DPI_CLIP_MAX - random_below(seed, 2);
    default:
        return 1 + (int64_t)(random_u64(seed) >> (33 + random_below(seed, 30)));
    }
}

static double any_centre(uint64_t *seed) {
    static const double some[] = {0, -0.0, 1e5, -1e39, 0x1p-30};
    return random_below(seed, 3) ? 3 * random_normal(seed) : some[random_below(seed, 5)];
}

/* The contribution by the mathematical library, for values in its range. */
static int64_t oracle_clip(float x, float p, double centre, int64_t K) {
    double d = ((double)x - (double)p - centre) * 0x1p20;
    if (!isfinite(d))
        return 0;
    return (int64_t)fmax(fmin(rint(d), (double)K), -(double)K);
}

typedef struct clip_case {
    float x[N_MAX], p[N_MAX];
    int64_t null[N_MAX], K, n;
    double centre;
} clip_case;

static void make_case(clip_case *c, int64_t n, uint64_t *seed) {
    c->n = n;
    c->K = any_clip(seed);
    c->centre = any_centre(seed);
    for (int64_t i = 0; i < n; i++) {
        c->x[i] = any_float(seed);
        c->p[i] = random_below(seed, 10) ? (float)(10 * random_normal(seed)) : c->x[i];
        c->null[i] = random_below(seed, 2) ? 0 : (int64_t)random_u64(seed) % (c->K + 1);
    }
}

CHECK(clip_add) {
    static clip_case k;
    uint64_t seed = 41;
    EACH_COUNT(40) {
        const int64_t n = counts[i_n];
        int64_t a[N_MAX + MARGIN], b[N_MAX + MARGIN], before[N_MAX];
        uint64_t mask = random_below(&seed, 4) ? ~UINT64_C(0) : 0;
        make_case(&k, n, &seed);
        for (int64_t i = 0; i < n + MARGIN; i++)
            a[i] = b[i] = (int64_t)random_u64(&seed) >> 20;
        memcpy(before, a, (size_t)n * sizeof *a);
        c->isa.clip_add(a, k.x, k.p, k.null, k.centre, k.K, mask, n);
        c->ref.clip_add(b, k.x, k.p, k.null, k.centre, k.K, mask, n);
        assert_memory_equal(a, b, (size_t)(n + MARGIN) * sizeof *a);
        for (int64_t i = 0; i < n; i++) {
            int64_t added = oracle_clip(k.x[i], k.p[i], k.centre, k.K) - k.null[i];
            assert_true(b[i] - before[i] == (mask ? added : 0));
        }
    }
}
KERNEL_OF(clip_add, 6.0 * N, 32.0 * N, t->sum, t->x, t->x + N, t->null, 0, 1 << 20, ~(uint64_t)0, N)

CHECK(clip_range) {
    static clip_case k;
    uint64_t seed = 42;
    EACH_COUNT(40) {
        int64_t low = INT64_C(1) << 40, high = -low;
        make_case(&k, counts[i_n], &seed);
        if (round % 4 == 0) /* earlier blocks had wider ranges */
            low = -(INT64_C(1) << 33), high = INT64_C(1) << 33;
        int64_t a[2] = {low, high}, b[2] = {low, high};
        c->isa.clip_range(a, k.x, k.p, k.null, k.centre, k.K, k.n);
        c->ref.clip_range(b, k.x, k.p, k.null, k.centre, k.K, k.n);
        for (int64_t i = 0; i < k.n; i++) {
            int64_t v = oracle_clip(k.x[i], k.p[i], k.centre, k.K) - k.null[i];
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        assert_true(a[0] == low && a[1] == high);
        assert_true(b[0] == low && b[1] == high);
    }
}
KERNEL_OF(clip_range, 6.0 * N, 16.0 * N, (int64_t[2]){0}, t->x, t->x + N, t->null, 0, 1 << 20, N)

/* docs/spec.md section 2, line by line. */
static dpi_u128 oracle_weight(const dpi_weight_tables *t, uint64_t a, int64_t gap) {
    const int64_t cap = (int64_t)((UINT64_C(69) << 48) / a + 1);
    const uint64_t ln2 = UINT64_C(0x58b90bfbe8e7bcd5), one = UINT64_C(1) << 63;
    uint64_t e = (uint64_t)(gap < cap ? gap : cap) * a, r = e & 0xffffffffffff;
    dpi_u128 mant = t->table[0][r >> 40];
    mant = mant * t->table[1][r >> 32 & 255] >> 63;
    mant = mant * t->table[2][r >> 24 & 255] >> 63;
    uint64_t x = (uint64_t)((dpi_u128)(r & 0xffffff) * ln2 >> 48);
    mant = mant * (one - x + (uint64_t)((dpi_u128)x * x >> 64)) >> 63;
    dpi_u128 w = mant << 46 >> (e >> 48), least = (dpi_u128)1 << 40;
    return w > least ? w : least;
}

/* Utilities whose gaps are small, everywhere up to the cap, around whole bits and far beyond. */
static int64_t any_gap(uint64_t a, uint64_t *seed) {
    const uint64_t cap = (UINT64_C(69) << 48) / a + 1, bit = (UINT64_C(1) << 48) / a;
    switch (random_below(seed, 6)) {
    case 0:
        return random_below(seed, 4);
    case 1:
        return (int64_t)((uint64_t)random_below(seed, 70) * bit + (uint64_t)random_below(seed, 3));
    case 2:
        return (int64_t)(cap + (uint64_t)random_below(seed, 3) - 1);
    case 3:
        return (int64_t)(random_u64(seed) >> 12);
    default:
        return (int64_t)(random_u64(seed) % (cap + 1));
    }
}

CHECK(exp2_weights) {
    static const uint64_t scales[] = {
        1, 945, 3049374, 50294870, UINT64_C(38726194000), (UINT64_C(1) << 37) - 1};
    static dpi_weight_tables tables;
    static dpi_u128 v[N_MAX + MARGIN], w[N_MAX + MARGIN];
    static int64_t u[N_MAX];
    dpi_weights_tables(&tables);
    const uint64_t(*table)[256] = (const uint64_t(*)[256])tables.table;
    uint64_t seed = 43;
    EACH_COUNT(60) {
        const int64_t n = counts[i_n], best = random_below(&seed, (int32_t)n);
        const uint64_t a = scales[round % 6];
        const int64_t top = ((int64_t)random_u64(&seed) >> 13) / 2;
        for (int64_t i = 0; i < n; i++)
            u[i] = top - any_gap(a, &seed);
        u[best] = top;
        memset(v, 0x5a, sizeof v);
        memset(w, 0x5a, sizeof w);
        c->isa.exp2_weights(v, u, a, table, n);
        c->ref.exp2_weights(w, u, a, table, n);
        assert_memory_equal(v, w, (size_t)(n + MARGIN) * sizeof *v);
        for (int64_t i = 0; i < n; i++)
            assert_true(w[i] == oracle_weight(&tables, a, top - u[i]));
    }
}
KERNEL_OF(exp2_weights, 12.0 * N, 24.0 * N, t->weight, t->null, (uint64_t)1 << 26,
          (const uint64_t (*)[256])t->tables, N)
