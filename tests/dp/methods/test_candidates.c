/* test_candidates.c - which reference logits a step reads: V_k+ by brute force, what "all" means,
 * and that nothing else is read. */
#include "tests/dp/samplers.h"
#include "tests/oracle/law.h"

enum { V = 997, FEW = V / 32, B = 3, T = 12 };

static void draw_batch(batch *b, uint64_t *seed) {
    static const batch_law law = {.n_vocab = V, .n_slots = B, .sure = 4, .ties = true, .spread = 2};
    random_batch(b, &law, seed);
}

/* D P(y) >= D P_(k) - 2K, dp/PRIVACY.md section 2. */
TEST(test_brute_force) {
    static batch b;
    uint64_t seed = 1;
    int n_few = 0, n_all = 0;
    for (int round = 0; round < 300; round++) {
        dpi_sampler_options o = ink_options(V, B, T, 1, exp(4 * random_uniform(&seed) - 3));
        o.top_k = 1 + random_below(&seed, 2 * FEW);
        o.denominator = random_below(&seed, 2) ? 0 : 1 + random_below(&seed, 9);
        o.adjacency = o.denominator ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
        SAMPLER s = open_sampler(&o);
        int64_t P[V];
        int32_t wanted[V];
        const int32_t *ids = wanted;
        draw_batch(&b, &seed);
        law_public(b.public_logits, V, P);
        const int32_t n_wanted = law_support(P, V, o.top_k, o.denominator ? o.denominator : B,
                                             2 * dpi_sampler_plan_get(s)->K, wanted);
        const int32_t n = candidates(s, &b, &ids);
        n_all += n_wanted > FEW, n_few += n_wanted <= FEW;
        assert_int_equal(n, n_wanted > FEW ? V : n_wanted);
        if (n_wanted > FEW)
            assert_null(ids);
        else
            assert_memory_equal(ids, wanted, (size_t)n * sizeof *ids);
    }
    assert_true(n_few > 50 && n_all > 50);
}

TEST(test_all_and_errors) {
    static batch b;
    uint64_t seed = 2;
    const int32_t *ids;
    int32_t n;
    draw_batch(&b, &seed);
    for (int32_t method = DPI_METHOD_PLAIN; method <= DPI_METHOD_ADAPMIXED; method++) {
        dpi_sampler_options o = ink_options(V, method == DPI_METHOD_PLAIN ? 0 : B, T, 1, 0);
        o.method = method, o.epsilon = 5, o.delta = 1e-6, o.acknowledge_not_dp = 1;
        o.top_k = method == DPI_METHOD_INVISIBLEINK ? 0 : 5;
        SAMPLER s = open_sampler(&o);
        ids = &method;
        assert_int_equal(candidates(s, &b, &ids), V);
        assert_null(ids);
    }
    dpi_sampler_options o = ink_options(V, B, T, 1, .1);
    o.top_k = 5;
    SAMPLER s = open_sampler(&o);
    assert_error(dpi_sampler_candidates(s, NULL, &ids, &n, ERR), ARG, "NULL");
    b.public_logits[V - 1] = NAN;
    assert_error(dpi_sampler_candidates(s, b.public_logits, &ids, &n, ERR), NUMERIC,
                 "public logit 996");
}

/* One text twice with the same random bits: with all reference logits, and with NaN wherever there
 * is no candidate. Sums and tokens are the same. */
static void compare_texts(const dpi_sampler_options *o) {
    static batch b;
    uint64_t bits = 7, poisoned_bits = 7, seed = 3;
    SAMPLER full = begin_text(*o, &bits), *poisoned = begin_text(*o, &poisoned_bits);
    for (int t = 0; t < T; t++) {
        draw_batch(&b, &seed);
        b.slots[1] = t % 2 ? NULL : b.slots[1];
        const dpi_distribution d = distribution(full, &b);
        const int64_t n_support = d.n_support;
        int64_t sum[V];
        memcpy(sum, d.sum, (size_t)n_support * sizeof *sum);
        const int32_t token = step(full, &b), *ids, n = candidates(poisoned, &b, &ids);
        assert_non_null(ids);
        for (int32_t y = 0, i = 0; y < V; y++) {
            if (i < n && ids[i] == y)
                i++;
            else
                b.reference[0][y] = b.reference[1][y] = b.reference[2][y] = NAN;
        }
        const dpi_distribution e = distribution(poisoned, &b);
        assert_int_equal(e.n_support, n_support);
        assert_memory_equal(e.sum, sum, (size_t)n_support * sizeof *sum);
        assert_int_equal(step(poisoned, &b), token);
    }
}

TEST(test_others_unread) {
    dpi_sampler_options o = ink_options(V, B, T, 1, .2);
    o.top_k = 10, o.denominator = B;
    for (int i = 0; i < 12; i++) {
        o.center = i % 2, o.adjacency = i / 2 % 3;
        o.accountant = i < 6 ? DPI_ACCOUNTANT_ZCDP : DPI_ACCOUNTANT_FILTER;
        compare_texts(&o);
    }
}
