/* Sums of clipped contributions: what they are, that parts of them merge to the whole, and their
 * bounds, for any bits of the references. */
#include "dp/exact/aggregate.h"
#include "dp/exact/center.h"
#include "tests/oracle/law.h"
#include "tests/support/support.h"

enum { V = 2500, N = 12 };

/* A step over random logits. */
static dpi_kernels kernels;
static dpi_aggregate aggregate;
static dpi_aggregate_step step;
static float p[V], zeros[V], logits[N][V];
static int32_t support[V];
static const float *references[N];
static double centre[N];
static uint64_t counts[N], seed;

SETUP { assert_ok(dpi_kernels_init(&kernels, forced_isa(), ERR)); }

static void random_step(void) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f};
    const int32_t keep = 1 + random_below(&seed, 4);
    step = (dpi_aggregate_step){.public_logits = p, .support = support};
    step.null_logits = random_below(&seed, 2) ? zeros : p;
    step.n_vocab = 1 + (size_t)random_below(&seed, V);
    step.K = 1 + (int64_t)(exp(21.4 * random_uniform(&seed)));
    step.center = random_below(&seed, 2);
    for (size_t y = 0; y < step.n_vocab; y++) {
        p[y] = (float)(4 * random_normal(&seed));
        if (keep == 1 || y == 0 || random_below(&seed, keep) == 0)
            support[step.n_support++] = (int32_t)y;
    }
    for (int j = 0; j < N; j++) {
        for (size_t y = 0; y < step.n_vocab; y++) {
            uint32_t bits = (uint32_t)random_u64(&seed);
            logits[j][y] = p[y] + (float)(3 * random_normal(&seed));
            if (random_below(&seed, 40) == 0)
                logits[j][y] = odd[random_below(&seed, 6)];
            if (random_below(&seed, 40) == 0) /* any bits */
                memcpy(&logits[j][y], &bits, sizeof bits);
        }
        references[j] = random_below(&seed, 5) ? logits[j] : NULL;
        counts[j] = 0 - (uint64_t)(random_below(&seed, 6) > 0);
    }
}

/* sum[n_support] = slots first..end-1, as one thread would have it. */
static void add(int32_t first, int32_t end, int64_t *sum) {
    memset(sum, 0, V * sizeof *sum);
    dpi_aggregate_begin(&aggregate, &kernels, &step);
    dpi_aggregate_centre(&aggregate, references + first, end - first, centre + first);
    dpi_aggregate_add(&aggregate, references + first, end - first, centre + first, counts + first,
                      sum);
}

/* Where logits are centred. */
static double centre_of(const float *l) {
    return step.center
               ? dpi_log_mass(l, support, step.n_support) - dpi_log_mass(p, support, step.n_support)
               : 0;
}

/* The definition, in double: the difference of two floats is exact in it. */
static void by_definition(int64_t *sum) {
    memset(sum, 0, V * sizeof *sum);
    for (int j = 0; j < N; j++) {
        const float *l = references[j] && counts[j] ? references[j] : step.null_logits;
        const double m = centre_of(l);
        for (size_t i = 0; i < step.n_support; i++) {
            const int32_t y = support[i];
            sum[i] += law_contribution((double)l[y] - (double)p[y] - m, step.K);
        }
    }
}

TEST(test_definition) {
    seed = 41;
    for (int i = 0; i < 20; i++) {
        static int64_t sum[V], expected[V];
        random_step();
        add(0, N, sum);
        by_definition(expected);
        assert_memory_equal(sum, expected, step.n_support * sizeof *sum);
    }
}

/* Any split into parts, merged in any order, some of them empty, gives the bits of the whole. */
TEST(test_parts_merge) {
    seed = 42;
    for (int i = 0; i < 50; i++) {
        static int64_t whole[V], merged[V], parts[N][V];
        const int32_t n_parts = 1 + random_below(&seed, N);
        random_step();
        memset(merged, 0, sizeof merged);
        add(0, N, whole);
        for (int32_t part = 0, at = 0, end; part < n_parts; part++, at = end) {
            end = part + 1 == n_parts ? N : at + random_below(&seed, N - at + 1);
            add(at, end, parts[part]);
        }
        for (int32_t n = n_parts; n > 0; n--) { /* one of those that are left */
            const int32_t part = random_below(&seed, n);
            dpi_aggregate_merge(merged, parts[part], step.n_support);
            memcpy(parts[part], parts[n - 1], sizeof parts[part]);
        }
        assert_memory_equal(merged, whole, step.n_support * sizeof *whole);
    }
}

/* K at its largest: sums of parts are far beyond 32 bits, and exact. */
TEST(test_beyond_32_bits) {
    enum { SLOTS = 9, MERGES = 100000 };
    static const float up[2] = {1e30f, -1e30f};
    const int64_t K = INT64_C(0x7fffffff), fixed[2] = {0, -5};
    int64_t sum[V], total[2] = {0}, utility[2];
    support[0] = 0, support[1] = 1, p[0] = p[1] = 0;
    for (int j = 0; j < SLOTS; j++)
        references[j] = up, counts[j] = ~UINT64_C(0);
    step = (dpi_aggregate_step){.public_logits = p, .null_logits = p, .support = support};
    step.n_vocab = step.n_support = 2, step.K = K;
    add(0, SLOTS, sum);
    assert_true(sum[0] == 9 * K && sum[1] == -9 * K);
    for (int i = 0; i < MERGES; i++)
        dpi_aggregate_merge(total, sum, 2);
    assert_true(total[0] == INT64_C(1932735282300000) && total[1] == -total[0]);
    dpi_aggregate_utility(fixed, support, total, 2, 4096, utility);
    assert_true(utility[0] == total[0] && utility[1] == total[1] - 5 * 4096);
}

/* A step's K is its own, and a record moves a sum by no more, whatever its bits. */
TEST(test_sensitivity) {
    seed = 43;
    int64_t n_largest = 0;
    for (int i = 0; i < 30; i++) {
        static int64_t with[V], without[V];
        int64_t range[N][2], low = INT64_MAX, high = INT64_MIN;
        random_step();
        const int j = random_below(&seed, N);
        const int64_t most = step.null_logits == zeros ? 2 * step.K : step.K;
        counts[j] = ~UINT64_C(0);
        add(0, N, with);
        dpi_aggregate_range(&aggregate, references, N, centre, range);
        references[j] = NULL;
        add(0, N, without);
        for (size_t y = 0; y < step.n_support; y++) {
            const int64_t moved = with[y] - without[y];
            assert_true(moved >= -most && moved <= most);
            low = moved < low ? moved : low;
            high = moved > high ? moved : high;
            n_largest += llabs(moved) == most;
        }
        assert_true(range[j][0] == low && range[j][1] == high);
    }
    assert_true(n_largest > 30); /* the bound is reached */
}

/* Against the definition; sums add up, and one that is not present adds nothing. */
TEST(test_recentred) {
    seed = 44;
    for (int i = 0; i < 200; i++) {
        enum { N_LOGITS = 50 };
        float l[N_LOGITS];
        int64_t sum[N_LOGITS] = {0}, others[N_LOGITS] = {0};
        const int64_t K = 1 + random_below(&seed, 1 << 23);
        double top = -3.4028234663852886e38;
        for (int y = 0; y < N_LOGITS; y++) {
            l[y] = random_below(&seed, 9) ? (float)(5 * random_normal(&seed)) : NAN;
            top = isfinite(l[y]) ? fmax(top, (double)l[y]) : top;
        }
        dpi_aggregate_add_recentred(l, N_LOGITS, K, 1, sum);
        for (int y = 0; y < N_LOGITS; y++) {
            const double gap = (top - (double)l[y]) * 1048576;
            const bool counts_more = isfinite(l[y]) && gap < 2 * (double)K;
            assert_true(sum[y] == (counts_more ? K - (int64_t)nearbyint(gap) : -K));
        }
        for (int present = 0; present < 3; present++)
            dpi_aggregate_add_recentred(l, N_LOGITS, K, present > 0, others);
        dpi_aggregate_merge(sum, sum, N_LOGITS);
        assert_memory_equal(sum, others, sizeof sum);
    }
}
