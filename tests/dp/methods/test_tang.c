/* test_tang.c - the method of Tang et al. beside a second implementation in long double: which
 * tokens are candidates, what the units add, and which token is drawn where noise decides nothing.
 * The law of its draws is the business of its audit. */
#include "dp/methods/tang.h"

#include "tests/dp/samplers.h"
#include "tests/oracle/law.h"

enum { V = 24, N = 5, M = 3, TOP_K = 6 };

/* A step, and what the second implementation says of it. */
typedef struct scene {
    batch b;
    int32_t candidates[TOP_K];
    real sums[TOP_K]; /* over slots, of the mean of a slot's records */
} scene;

static dpi_sampler *make(double rho, int32_t per_unit, uint64_t *bits) {
    dpi_sampler_options o = ink_options(V, N, 1000, 1.25, rho);
    o.method = DPI_METHOD_TANG, o.top_k = TOP_K, o.max_per_unit = per_unit;
    return begin_text(o, bits);
}

/* The TOP_K likeliest public tokens (there are no ties), and the probabilities of records among
 * them. A value that is not finite weighs nothing; where none is finite all weigh the same. */
static void random_scene(scene *s, int per_unit, uint64_t *seed) {
    static const batch_law law = {
        .n_vocab = V, .n_slots = N * M, .sure = 2, .spread = 2, .null = 6, .odd = 60, .n_odd = 2};
    int64_t P[V];
    random_batch(&s->b, &law, seed);
    law_public(s->b.public_logits, V, P);
    assert_int_equal(law_support(P, V, TOP_K, 1, 0, s->candidates), TOP_K);
    memset(s->sums, 0, sizeof s->sums);
    for (const float **slot = s->b.slots; slot < s->b.slots + N * per_unit; slot += per_unit) {
        int n_records = 0;
        for (int j = 0; j < per_unit; j++)
            n_records += slot[j] != NULL;
        for (int j = 0; j < per_unit; j++) {
            real p[TOP_K];
            if (!slot[j])
                continue;
            law_softmax(slot[j], s->candidates, TOP_K, 1.25L, -INFINITY, p);
            for (int i = 0; i < TOP_K; i++)
                s->sums[i] += p[i] / n_records;
        }
    }
}

static void check_sums(int per_unit, uint64_t seed) {
    scene w;
    uint64_t bits = seed;
    SAMPLER s = make(1, per_unit, &bits);
    for (int round = 0; round < 200; round++) {
        random_scene(&w, per_unit, &seed);
        const int32_t token = step(s, &w.b);
        int n_is_candidate = 0;
        /* Each record's probability and each mean is rounded down, by less than one each. */
        dpi_tang_sums(s, w.b.slots);
        assert_int_equal(s->n_support, TOP_K);
        for (int i = 0; i < TOP_K; i++) {
            n_is_candidate += w.candidates[i] == token;
            assert_int_equal(s->support[i], w.candidates[i]);
            const real exact = w.sums[i] * DPI_TANG_ONE, sum = (real)s->sum[i];
            assert_true(sum <= exact + .01L && sum > exact - 2 * N);
        }
        assert_int_equal(n_is_candidate, 1);
    }
}

TEST(test_sums) {
    check_sums(1, 11);
    check_sums(M, 12);
}

/* With so large a budget noise is small: the largest sum wins where the next one is well below. */
TEST(test_largest) {
    scene w;
    uint64_t seed = 13, bits = 14;
    int n_clear = 0;
    SAMPLER s = make(1e6, 1, &bits);
    const double sigma = ldexp((double)s->plan.noise_sigma, -20) / DPI_TANG_ONE;
    /* sqrt(T / (2 rho)), and not more than a rounding above it */
    assert_true(sigma >= sqrt(1000 / 2e6) && sigma < 1.0001 * sqrt(1000 / 2e6));
    for (int round = 0; round < 500; round++) {
        random_scene(&w, 1, &seed);
        int best = 0;
        real next = -1;
        for (int i = 1; i < TOP_K; i++)
            best = w.sums[i] > w.sums[best] ? i : best;
        for (int i = 0; i < TOP_K; i++)
            next = i != best ? fmaxl(next, w.sums[i]) : next;
        const int32_t token = step(s, &w.b);
        const bool clear = w.sums[best] - next > 12 * sigma;
        assert_true(!clear || token == w.candidates[best]);
        n_clear += clear;
    }
    assert_true(n_clear > 100);
}
