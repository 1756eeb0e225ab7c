/* Sums of clipped contributions: what they are, that parts of them merge to the whole, and their
 * bounds, for any bits of the references. */
#include <math.h>

#include "dp/exact/aggregate.h"
#include "dp/exact/center.h"
#include "tests/support/support.h"

enum { V = 2500, N = 12 };

typedef struct world {
    dpi_kernels kernels;
    dpi_aggregate aggregate;
    dpi_aggregate_step step;
    float p[V], zeros[V], logits[N][V];
    int32_t support[V];
    const float *references[N];
    double centre[N];
    uint64_t counts[N];
    bool zero_out;
} world;

static void random_world(world *w, uint64_t *seed) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f};
    const size_t n_vocab = 1 + (size_t)random_below(seed, V);
    const int32_t keep = 1 + random_below(seed, 4);
    w->zero_out = random_below(seed, 2);
    w->step = (dpi_aggregate_step){.public_logits = w->p,
                                   .null_logits = w->zero_out ? w->zeros : w->p,
                                   .support = w->support,
                                   .n_vocab = n_vocab,
                                   .K = 1 + (int64_t)(exp(21.4 * random_uniform(seed))),
                                   .center = random_below(seed, 2)};
    for (size_t y = 0; y < n_vocab; y++) {
        w->p[y] = (float)(4 * random_normal(seed));
        if (keep == 1 || y == 0 || random_below(seed, keep) == 0)
            w->support[w->step.n_support++] = (int32_t)y;
    }
    for (int j = 0; j < N; j++) {
        for (size_t y = 0; y < n_vocab; y++) {
            uint32_t bits = (uint32_t)random_u64(seed);
            w->logits[j][y] = w->p[y] + (float)(3 * random_normal(seed));
            if (random_below(seed, 40) == 0)
                w->logits[j][y] = odd[random_below(seed, 6)];
            if (random_below(seed, 40) == 0) /* any bits */
                memcpy(&w->logits[j][y], &bits, sizeof bits);
        }
        w->references[j] = random_below(seed, 5) ? w->logits[j] : NULL;
        w->counts[j] = 0 - (uint64_t)(random_below(seed, 6) > 0);
    }
}

/* sum[n_support] += slots first..end-1, as one thread would. */
static void add(world *w, int32_t first, int32_t end, int64_t *sum) {
    dpi_aggregate_begin(&w->aggregate, &w->kernels, &w->step);
    dpi_aggregate_centre(&w->aggregate, w->references + first, end - first, w->centre + first);
    dpi_aggregate_add(&w->aggregate, w->references + first, end - first, w->centre + first,
                      w->counts + first, sum);
}

/* The definition, in long double: the difference of two floats is exact in it. */
static int64_t contribution(const world *w, const float *logits, double centre, int32_t y) {
    const double d = (double)logits[y] - (double)w->p[y] - centre;
    const double scaled = d * 1048576;
    if (!isfinite(logits[y]))
        return 0;
    return scaled >= (double)w->step.K ? w->step.K
           : scaled <= -(double)w->step.K ? -w->step.K : (int64_t)nearbyint(scaled);
}

static void by_definition(const world *w, int64_t *sum) {
    const dpi_aggregate_step *s = &w->step;
    const double mass = s->center ? dpi_log_mass(w->p, s->support, s->n_support) : 0;
    const double null = s->center ? dpi_log_mass(s->null_logits, s->support, s->n_support) - mass
                                  : 0;
    for (size_t i = 0; i < s->n_support; i++)
        for (int j = 0; j < N; j++) {
            const float *l = w->references[j];
            const double m =
                l && s->center ? dpi_log_mass(l, s->support, s->n_support) - mass : null;
            const bool counts = l && w->counts[j];
            sum[i] += contribution(w, counts ? l : s->null_logits, counts ? m : null,
                                   s->support[i]);
        }
}

static void test_definition(void **state) {
    (void)state;
    uint64_t seed = 41;
    world *w = calloc(1, sizeof *w);
    assert_ok(dpi_kernels_init(&w->kernels, forced_isa(), NULL), NULL);
    for (int i = 0; i < 20; i++) {
        static int64_t sum[V], expected[V];
        random_world(w, &seed);
        memset(sum, 0, sizeof sum);
        memset(expected, 0, sizeof expected);
        add(w, 0, N, sum);
        by_definition(w, expected);
        assert_memory_equal(sum, expected, w->step.n_support * sizeof *sum);
    }
    free(w);
}

/* Any split into parts, merged in any order, some of them empty, gives the bits of the whole. */
static void test_parts_merge(void **state) {
    (void)state;
    uint64_t seed = 42;
    world *w = calloc(1, sizeof *w);
    assert_ok(dpi_kernels_init(&w->kernels, forced_isa(), NULL), NULL);
    for (int i = 0; i < 50; i++) {
        static int64_t whole[V], merged[V], parts[N][V];
        int32_t n_parts = 1 + random_below(&seed, N), at = 0, order[N];
        random_world(w, &seed);
        const size_t n = w->step.n_support;
        memset(whole, 0, sizeof whole);
        memset(merged, 0, sizeof merged);
        memset(parts, 0, sizeof parts);
        add(w, 0, N, whole);
        for (int32_t part = 0; part < n_parts; part++) {
            const int32_t end = part + 1 == n_parts ? N : at + random_below(&seed, N - at + 1);
            add(w, at, end, parts[part]);
            at = end;
            order[part] = part;
        }
        for (int32_t part = n_parts - 1; part > 0; part--) {
            const int32_t other = random_below(&seed, part + 1), kept = order[part];
            order[part] = order[other];
            order[other] = kept;
        }
        for (int32_t part = 0; part < n_parts; part++)
            dpi_aggregate_merge(merged, parts[order[part]], n);
        assert_memory_equal(merged, whole, n * sizeof *whole);
    }
    free(w);
}

/* K at its largest: sums of parts are far beyond 32 bits, and exact. */
static void test_beyond_32_bits(void **state) {
    (void)state;
    enum { SLOTS = 9, MERGES = 100000 };
    const int64_t K = INT64_C(0x7fffffff);
    const float p[2] = {0, 0}, up[2] = {1e30f, -1e30f};
    const float *references[SLOTS];
    const int32_t support[2] = {0, 1};
    const double centre[SLOTS] = {0};
    uint64_t counts[SLOTS];
    int64_t sum[2] = {0}, total[2] = {0}, utility[2];
    dpi_kernels kernels;
    dpi_aggregate *a = calloc(1, sizeof *a);
    assert_ok(dpi_kernels_init(&kernels, forced_isa(), NULL), NULL);
    for (int j = 0; j < SLOTS; j++) {
        references[j] = up;
        counts[j] = ~UINT64_C(0);
    }
    const dpi_aggregate_step step = {.public_logits = p, .null_logits = p, .support = support,
                                     .n_vocab = 2, .n_support = 2, .K = K};
    dpi_aggregate_begin(a, &kernels, &step);
    dpi_aggregate_add(a, references, SLOTS, centre, counts, sum);
    assert_true(sum[0] == 9 * K && sum[1] == -9 * K);
    for (int i = 0; i < MERGES; i++)
        dpi_aggregate_merge(total, sum, 2);
    assert_true(total[0] == INT64_C(1932735282300000) && total[1] == -total[0]);
    const int64_t fixed[2] = {0, -5};
    dpi_aggregate_utility(fixed, support, total, 2, 4096, utility);
    assert_true(utility[0] == total[0] && utility[1] == total[1] - 5 * 4096);
    free(a);
}

/* A step's K is its own, and a record moves a sum by no more, whatever its bits. */
static void test_sensitivity(void **state) {
    (void)state;
    uint64_t seed = 43;
    world *w = calloc(1, sizeof *w);
    assert_ok(dpi_kernels_init(&w->kernels, forced_isa(), NULL), NULL);
    int64_t largest = 0;
    for (int i = 0; i < 30; i++) {
        static int64_t with[V], without[V];
        int64_t range[N][2];
        random_world(w, &seed);
        const int j = random_below(&seed, N);
        const int64_t most = w->zero_out ? 2 * w->step.K : w->step.K;
        memset(with, 0, sizeof with);
        memset(without, 0, sizeof without);
        w->counts[j] = ~UINT64_C(0);
        add(w, 0, N, with);
        dpi_aggregate_range(&w->aggregate, w->references, N, w->centre, range);
        w->references[j] = NULL;
        add(w, 0, N, without);
        int64_t low = INT64_MAX, high = INT64_MIN;
        for (size_t y = 0; y < w->step.n_support; y++) {
            const int64_t moved = with[y] - without[y];
            assert_true(moved >= -most && moved <= most);
            low = moved < low ? moved : low;
            high = moved > high ? moved : high;
            largest = llabs(moved) == most ? largest + 1 : largest;
        }
        assert_true(range[j][0] == low && range[j][1] == high);
    }
    assert_true(largest > 30); /* the bound is reached */
    free(w);
}

static void test_recentred(void **state) {
    (void)state;
    uint64_t seed = 44;
    for (int i = 0; i < 200; i++) {
        enum { N_LOGITS = 50 };
        float logits[N_LOGITS];
        int64_t sum[N_LOGITS] = {0}, twice[N_LOGITS] = {0};
        const int64_t K = 1 + random_below(&seed, 1 << 23);
        double top = -3.4028234663852886e38;
        for (int y = 0; y < N_LOGITS; y++) {
            logits[y] = random_below(&seed, 9) ? (float)(5 * random_normal(&seed)) : NAN;
            if (isfinite(logits[y]))
                top = fmax(top, (double)logits[y]);
        }
        dpi_aggregate_add_recentred(logits, N_LOGITS, K, 1, sum);
        for (int y = 0; y < N_LOGITS; y++) {
            const double gap = (top - (double)logits[y]) * 1048576;
            const int64_t c = isfinite(logits[y]) && gap < 2 * (double)K
                                  ? K - (int64_t)nearbyint(gap) : -K;
            assert_true(sum[y] == c);
        }
        for (int k = 0; k < 2; k++)
            dpi_aggregate_add_recentred(logits, N_LOGITS, K, 1, twice);
        dpi_aggregate_add_recentred(logits, N_LOGITS, K, 0, twice);
        dpi_aggregate_merge(sum, sum, N_LOGITS);
        assert_memory_equal(sum, twice, sizeof sum);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),      cmocka_unit_test(test_parts_merge),
        cmocka_unit_test(test_beyond_32_bits),  cmocka_unit_test(test_sensitivity),
        cmocka_unit_test(test_recentred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
