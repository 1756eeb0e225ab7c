/* Units of several records. A unit that holds the same record several times is that record: so a
 * sampler of units is held, text by text, to one of records, for every method, adjacency,
 * accountant and pace; and the text of parts to that of the whole. Audit A has the means
 * themselves. */
#include <math.h>

#include "tests/support/support.h"

enum { V = 70, B = 5, M = 4, T = 12 };

typedef struct world {
    float p[T][V], logits[T][B * M][V];
    const float *records[T][B], *same[T][B * M], *several[T][B * M];
} world;

/* same: each unit has its record once to M times, or is null; several: its records differ. */
static void random_world(world *w, uint64_t *seed) {
    int32_t n[B];
    for (int u = 0; u < B; u++)
        n[u] = random_below(seed, M + 1);
    for (int t = 0; t < T; t++) {
        for (int y = 0; y < V; y++)
            w->p[t][y] = (float)(3 * random_normal(seed));
        for (int j = 0; j < B * M; j++) {
            for (int y = 0; y < V; y++)
                w->logits[t][j][y] = w->p[t][y] + (float)(2 * random_normal(seed));
            w->several[t][j] = j % M < n[j / M] ? w->logits[t][j] : NULL;
            w->same[t][j] = j % M < n[j / M] ? w->logits[t][j / M * M] : NULL;
        }
        for (int u = 0; u < B; u++)
            w->records[t][u] = n[u] > 0 ? w->logits[t][u * M] : NULL;
    }
}

static dpi_sampler *make(dpi_sampler_options o, int32_t n_ref, int32_t per_unit, uint64_t *bits) {
    dpi_sampler *s;
    dpi_error err;
    o.n_ref = n_ref;
    o.max_per_unit = per_unit;
    o.random = dpi_random_insecure;
    o.random_user = bits;
    assert_ok(dpi_sampler_create(&o, &s, &err), &err);
    assert_ok(dpi_sampler_begin(s, &err), &err);
    return s;
}

static dpi_sampler_options make_options(void) {
    dpi_sampler_options o = ink_options(V, B, T, 1, 3);
    o.denominator = B;
    o.top_k = 20;
    return o;
}

static void compare(const dpi_sampler_options *o, const world *w) {
    uint64_t bits = 5, units_bits = 5;
    dpi_sampler *records = make(*o, B, 0, &bits), *units = make(*o, B, M, &units_bits);
    assert_memory_equal(dpi_sampler_plan_get(records), dpi_sampler_plan_get(units),
                        sizeof(dpi_sampler_plan));
    for (int t = 0; t < T; t++) {
        int32_t token, expected;
        dpi_error err;
        assert_ok(dpi_sampler_step(records, w->p[t], w->records[t], &expected, &err), &err);
        assert_ok(dpi_sampler_step(units, w->p[t], w->same[t], &token, &err), &err);
        assert_int_equal(token, expected);
    }
    assert_true(bits == units_bits);
    dpi_sampler_free(records);
    dpi_sampler_free(units);
}

static void test_same_records(void **state) {
    (void)state;
    uint64_t seed = 7;
    world *w = calloc(1, sizeof *w);
    for (int i = 0; i < 40; i++) {
        dpi_sampler_options o = make_options();
        random_world(w, &seed);
        o.adjacency = random_below(&seed, 3);
        o.center = random_below(&seed, 2);
        o.accountant = random_below(&seed, 2) ? DPI_ACCOUNTANT_FILTER : DPI_ACCOUNTANT_ZCDP;
        o.pace = random_below(&seed, 4);
        o.pace_theta = o.pace == DPI_PACE_TOP ? .5 : o.pace == DPI_PACE_CHANGE ? .01 : 0;
        o.pace_tokens = o.pace == DPI_PACE_TOP ? 5 : 0;
        if (i % 8 == 0) {
            o = make_options();
            o.accountant = DPI_ACCOUNTANT_BR;
            o.rho = 0, o.epsilon = 4, o.delta = 1e-5;
        }
        compare(&o, w);
        if (i % 4)
            continue;
        o = make_options();
        o.method = DPI_METHOD_AMIN;
        o.adjacency = random_below(&seed, 3);
        o.rho = 30;
        o.svt_sigma = i % 8 ? 2 : 0;
        o.svt_threshold = i % 8 ? .3 : 0;
        compare(&o, w);
    }
    free(w);
}

/* All records of a unit in one part. */
static void test_parts(void **state) {
    (void)state;
    uint64_t seed = 8;
    world *w = calloc(1, sizeof *w);
    for (int i = 0; i < 10; i++) {
        enum { FIRST = 2 };
        dpi_sampler_options o = make_options();
        uint64_t bits = 5, parts_bits = 5;
        random_world(w, &seed);
        o.adjacency = i % 3;
        o.center = i % 2;
        o.accountant = i % 4 ? DPI_ACCOUNTANT_FILTER : DPI_ACCOUNTANT_ZCDP;
        dpi_sampler *whole = make(o, B, M, &bits), *a = make(o, FIRST, M, &parts_bits),
                    *b = make(o, B - FIRST, M, &parts_bits);
        dpi_part part;
        dpi_part_init(&part);
        part.count = 2;
        for (part.index = 0; part.index < 2; part.index++)
            assert_ok(dpi_sampler_begin_part(part.index ? b : a, &part, NULL), NULL);
        for (int t = 0; t < T; t++) {
            int64_t sums[DPI_SUMS_HEADER + V], others[DPI_SUMS_HEADER + V];
            int32_t n, token, expected;
            dpi_error err;
            assert_ok(dpi_sampler_partial(a, w->p[t], w->several[t], sums, &n, &err), &err);
            assert_ok(dpi_sampler_partial(b, w->p[t], w->several[t] + FIRST * M, others, &n, &err),
                      &err);
            assert_ok(dpi_sums_merge(sums, others, n, &err), &err);
            assert_ok(dpi_sampler_step_merged(b, w->p[t], sums, n, &token, &err), &err);
            assert_ok(dpi_sampler_step(whole, w->p[t], w->several[t], &expected, &err), &err);
            assert_int_equal(token, expected);
        }
        dpi_sampler_free(whole);
        dpi_sampler_free(a);
        dpi_sampler_free(b);
    }
    free(w);
}

static void test_refused(void **state) {
    (void)state;
    dpi_sampler_options o = make_options();
    dpi_sampler_plan plan;
    dpi_error err;
    dpi_sampler_plan_init(&plan);
    o.n_ref = B;
    o.max_per_unit = 65;
    assert_int_equal(dpi_sampler_plan_make(&o, &plan, &err), DPI_STATUS_ARG);
    assert_non_null(strstr(err.message, "max_per_unit is 65, must be 1..64"));
    o.max_per_unit = 2;
    o.method = DPI_METHOD_ADAPMIXED;
    o.acknowledge_not_dp = 1;
    o.rho = 0, o.epsilon = 1, o.delta = 1e-6;
    assert_int_equal(dpi_sampler_plan_make(&o, &plan, &err), DPI_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "unit"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_records),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
