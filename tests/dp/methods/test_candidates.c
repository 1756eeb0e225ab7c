/* test_candidates.c - which reference logits a step reads: V_k+ by brute force, what "all" means,
 * and that nothing else is read. */
#include <math.h>

#include "dp/methods/sampler.h"
#include "tests/support/support.h"

enum { V = 997, FEW = V / 32, B = 3, T = 12 };

typedef struct world {
    float public_logits[V], reference[B][V];
    const float *pointers[B];
} world;

static void random_world(world *w, uint64_t *seed) {
    for (int y = 0; y < V; y++)
        w->public_logits[y] = (float)rint(16 * random_normal(seed)) / 4; /* ties */
    for (int j = 0; j < B; j++) {
        for (int y = 0; y < V; y++)
            w->reference[j][y] = w->public_logits[y] + (float)(2 * random_normal(seed));
        w->pointers[j] = w->reference[j];
    }
}

static int descending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* D P(y) >= D P_(k) - 2K, dp/PRIVACY.md section 2; logits are multiples of 1/4, so P is exact. */
static int32_t brute_force(const dpi_sampler *s, const float *logits, int32_t *ids) {
    const dpi_sampler_options *o = dpi_sampler_options_get(s);
    const double D = o->denominator > 0 ? o->denominator : o->n_ref;
    const double slack = 2 * (double)dpi_sampler_plan_get(s)->K;
    double sorted[V];
    int32_t n = 0;
    for (int y = 0; y < V; y++)
        sorted[y] = (double)logits[y];
    qsort(sorted, V, sizeof *sorted, descending);
    for (int32_t y = 0; y < V; y++)
        if (D * ((double)logits[y] - sorted[o->top_k - 1]) * 1048576 >= -slack)
            ids[n++] = y;
    return n;
}

static void test_brute_force(void **state) {
    (void)state;
    uint64_t seed = 1;
    int n_few = 0, n_all = 0;
    for (int round = 0; round < 300; round++) {
        dpi_sampler_options o = ink_options(V, B, T, 1, exp(4 * random_uniform(&seed) - 3));
        o.top_k = 1 + random_below(&seed, 2 * FEW);
        o.denominator = random_below(&seed, 2) ? 0 : 1 + random_below(&seed, 9);
        if (o.denominator)
            o.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        dpi_sampler *s = open_sampler(&o);
        world w;
        random_world(&w, &seed);
        int32_t wanted[V], n_wanted = brute_force(s, w.public_logits, wanted), n = -1;
        const int32_t *ids = wanted;
        assert_ok(dpi_sampler_candidates(s, w.public_logits, &ids, &n, NULL), NULL);
        if (n_wanted > FEW) {
            assert_null(ids);
            assert_int_equal(n, V);
            n_all++;
        } else {
            assert_int_equal(n, n_wanted);
            assert_memory_equal(ids, wanted, (size_t)n * sizeof *ids);
            n_few++;
        }
        dpi_sampler_free(s);
    }
    assert_true(n_few > 50 && n_all > 50);
}

static void test_all_and_errors(void **state) {
    (void)state;
    uint64_t seed = 2;
    world w;
    random_world(&w, &seed);
    for (int32_t method = DPI_METHOD_PLAIN; method <= DPI_METHOD_ADAPMIXED; method++) {
        dpi_sampler_options o = ink_options(V, method == DPI_METHOD_PLAIN ? 0 : B, T, 1, 0);
        o.epsilon = 5;
        o.delta = 1e-6;
        o.method = method;
        o.top_k = method == DPI_METHOD_INVISIBLEINK ? 0 : 5;
        o.acknowledge_not_dp = 1;
        dpi_sampler *s = open_sampler(&o);
        const int32_t *ids = &method;
        int32_t n = -1;
        assert_ok(dpi_sampler_candidates(s, w.public_logits, &ids, &n, NULL), NULL);
        assert_null(ids);
        assert_int_equal(n, V);
        dpi_sampler_free(s);
    }
    dpi_sampler_options o = ink_options(V, B, T, 1, .1);
    o.top_k = 5;
    dpi_sampler *s = open_sampler(&o);
    const int32_t *ids;
    int32_t n;
    dpi_error err;
    assert_error(dpi_sampler_candidates(s, NULL, &ids, &n, &err), DPI_STATUS_ARG, &err, "NULL");
    w.public_logits[V - 1] = NAN;
    assert_error(dpi_sampler_candidates(s, w.public_logits, &ids, &n, &err), DPI_STATUS_NUMERIC,
                 &err, "public logit 996");
    dpi_sampler_free(s);
}

/* One text twice with the same random bits: with all reference logits, and with NaN wherever there
 * is no candidate. Sums and tokens are the same. */
static void compare_texts(dpi_sampler_options o) {
    uint64_t seed_full = 7, seed_poisoned = 7, seed = 3;
    o.random = dpi_random_insecure;
    o.random_user = &seed_full;
    dpi_sampler *full = open_sampler(&o);
    o.random_user = &seed_poisoned;
    dpi_sampler *poisoned = open_sampler(&o);
    assert_ok(dpi_sampler_begin(full, NULL), NULL);
    assert_ok(dpi_sampler_begin(poisoned, NULL), NULL);
    for (int t = 0; t < T; t++) {
        world w;
        random_world(&w, &seed);
        w.pointers[1] = t % 2 ? NULL : w.pointers[1];
        dpi_distribution d, e;
        int32_t token, other;
        assert_ok(dpi_sampler_distribution(full, w.public_logits, w.pointers, &d, NULL), NULL);
        const int64_t n_support = d.n_support;
        int64_t sum[V];
        memcpy(sum, d.sum, (size_t)n_support * sizeof *sum);
        assert_ok(dpi_sampler_step(full, w.public_logits, w.pointers, &token, NULL), NULL);

        const int32_t *ids;
        int32_t n, i = 0;
        assert_ok(dpi_sampler_candidates(poisoned, w.public_logits, &ids, &n, NULL), NULL);
        assert_non_null(ids);
        for (int32_t y = 0; y < V; y++) {
            if (i < n && ids[i] == y)
                i++;
            else
                w.reference[0][y] = w.reference[1][y] = w.reference[2][y] = NAN;
        }
        assert_ok(dpi_sampler_distribution(poisoned, w.public_logits, w.pointers, &e, NULL), NULL);
        assert_int_equal(e.n_support, n_support);
        assert_memory_equal(e.sum, sum, (size_t)n_support * sizeof *sum);
        assert_ok(dpi_sampler_step(poisoned, w.public_logits, w.pointers, &other, NULL), NULL);
        assert_int_equal(token, other);
    }
    dpi_sampler_free(full);
    dpi_sampler_free(poisoned);
}

static void test_others_unread(void **state) {
    (void)state;
    dpi_sampler_options o = ink_options(V, B, T, 1, .2);
    o.top_k = 10;
    o.denominator = B;
    for (o.center = 0; o.center <= 1; o.center++)
        for (o.adjacency = 0; o.adjacency <= DPI_ADJACENCY_ZERO_OUT; o.adjacency++) {
            o.accountant = DPI_ACCOUNTANT_ZCDP;
            compare_texts(o);
            o.accountant = DPI_ACCOUNTANT_FILTER;
            compare_texts(o);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_all_and_errors),
        cmocka_unit_test(test_others_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
