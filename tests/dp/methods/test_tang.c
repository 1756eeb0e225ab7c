/* test_tang.c - the method of Tang et al. beside a second implementation in long double: which
 * tokens are candidates, what the units add, and which token is drawn where noise decides nothing.
 * The law of its draws is the business of its audit. */
#include "dp/methods/tang.h"

#include <math.h>

#include "dp/methods/sampler.h"
#include "tests/support/support.h"

enum { V = 24, N = 5, M = 3, TOP_K = 6 };

typedef struct world {
    dpi_sampler *sampler;
    float public_logits[V];
    float record[N * M][V];
    const float *pointers[N * M];
} world;

static void begin_text(world *w, double rho, int32_t per_unit) {
    dpi_sampler_options o;
    dpi_error err = {0};
    dpi_sampler_options_init(&o);
    o.method = DPI_METHOD_TANG;
    o.n_vocab = V;
    o.n_ref = N;
    o.n_tokens = 1000;
    o.top_k = TOP_K;
    o.rho = rho;
    o.tau = 1.25;
    o.max_per_unit = per_unit;
    assert_ok(dpi_sampler_create(&o, &w->sampler, &err), &err);
    assert_ok(dpi_sampler_begin(w->sampler, &err), &err);
}

/* One record in six is null, one value in sixty is not finite. */
static void random_logits(world *w, uint64_t *seed) {
    for (int y = 0; y < V; y++)
        w->public_logits[y] = (float)(2 * random_normal(seed));
    for (int j = 0; j < N * M; j++) {
        for (int y = 0; y < V; y++) {
            w->record[j][y] = w->public_logits[y] + (float)(2 * random_normal(seed));
            if (random_below(seed, 60) == 0)
                w->record[j][y] = random_below(seed, 2) ? NAN : -INFINITY;
        }
        w->pointers[j] = random_below(seed, 6) ? w->record[j] : NULL;
    }
}

/* The TOP_K likeliest public tokens, ascending. There are no ties. */
static void find_candidates(const world *w, int32_t *candidates) {
    int n = 0;
    for (int32_t y = 0; y < V; y++) {
        int n_above = 0;
        for (int z = 0; z < V; z++)
            n_above += w->public_logits[z] > w->public_logits[y];
        if (n_above < TOP_K)
            candidates[n++] = y;
    }
    assert_int_equal(n, TOP_K);
}

/* p[TOP_K] = the probabilities of a record among the candidates. A value that is not finite weighs
 * nothing; where none is finite all weigh the same. */
static void find_probabilities(const float *logits, const int32_t *candidates, double tau,
                               long double *p) {
    long double sum = 0;
    for (int i = 0; i < TOP_K; i++)
        sum += p[i] = isfinite(logits[candidates[i]])
                          ? expl((long double)logits[candidates[i]] / (long double)tau)
                          : 0;
    for (int i = 0; i < TOP_K; i++)
        p[i] = sum > 0 ? p[i] / sum : 1.0L / TOP_K;
}

/* sums[TOP_K]: over slots, of the mean of a slot's records. */
static void find_sums(const world *w, const int32_t *candidates, int per_unit, long double *sums) {
    for (int i = 0; i < TOP_K; i++)
        sums[i] = 0;
    for (int slot = 0; slot < N; slot++) {
        int n_records = 0;
        for (int j = 0; j < per_unit; j++)
            n_records += w->pointers[slot * per_unit + j] != NULL;
        for (int j = 0; j < per_unit; j++) {
            long double p[TOP_K];
            if (!w->pointers[slot * per_unit + j])
                continue;
            find_probabilities(w->pointers[slot * per_unit + j], candidates, 1.25, p);
            for (int i = 0; i < TOP_K; i++)
                sums[i] += p[i] / n_records;
        }
    }
}

static void check_sums(int per_unit, uint64_t seed) {
    world w;
    int32_t candidates[TOP_K], token;
    long double sums[TOP_K];
    dpi_error err = {0};
    begin_text(&w, 1, per_unit);
    for (int round = 0; round < 200; round++) {
        random_logits(&w, &seed);
        find_candidates(&w, candidates);
        find_sums(&w, candidates, per_unit, sums);
        assert_ok(dpi_sampler_step(w.sampler, w.public_logits, w.pointers, &token, &err), &err);
        int n_is_candidate = 0;
        for (int i = 0; i < TOP_K; i++)
            n_is_candidate += candidates[i] == token;
        assert_int_equal(n_is_candidate, 1);
        /* Each record's probability and each mean is rounded down, by less than one each. */
        dpi_tang_sums(w.sampler, w.pointers);
        assert_int_equal(w.sampler->n_support, TOP_K);
        for (int i = 0; i < TOP_K; i++) {
            assert_int_equal(w.sampler->support[i], candidates[i]);
            const long double exact = sums[i] * DPI_TANG_ONE;
            assert_true((long double)w.sampler->sum[i] <= exact + .01L);
            assert_true((long double)w.sampler->sum[i] > exact - 2 * N);
        }
    }
    dpi_sampler_free(w.sampler);
}

static void test_sums(void **state) {
    (void)state;
    check_sums(1, 11);
    check_sums(M, 12);
}

/* With so large a budget noise is small: the largest sum wins where the next one is well below. */
static void test_largest(void **state) {
    world w;
    uint64_t seed = 13;
    int32_t candidates[TOP_K], token, n_clear = 0;
    long double sums[TOP_K];
    dpi_error err = {0};
    (void)state;
    begin_text(&w, 1e6, 1);
    const double sigma = ldexp((double)w.sampler->plan.noise_sigma, -20) / DPI_TANG_ONE;
    /* sqrt(T / (2 rho)), and not more than a rounding above it */
    assert_true(sigma >= sqrt(1000 / 2e6) && sigma < 1.0001 * sqrt(1000 / 2e6));
    for (int round = 0; round < 500; round++) {
        random_logits(&w, &seed);
        find_candidates(&w, candidates);
        find_sums(&w, candidates, 1, sums);
        int best = 0;
        long double next = -1;
        for (int i = 1; i < TOP_K; i++)
            best = sums[i] > sums[best] ? i : best;
        for (int i = 0; i < TOP_K; i++)
            next = i != best && sums[i] > next ? sums[i] : next;
        assert_ok(dpi_sampler_step(w.sampler, w.public_logits, w.pointers, &token, &err), &err);
        if (sums[best] - next > 12 * sigma) {
            assert_int_equal(token, candidates[best]);
            n_clear++;
        }
    }
    assert_true(n_clear > 100);
    dpi_sampler_free(w.sampler);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_largest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
