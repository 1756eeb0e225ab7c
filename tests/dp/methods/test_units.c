/* Units of several records. A unit that holds the same record several times is that record: so a
 * sampler of units is held, text by text, to one of records, for every method, adjacency,
 * accountant and pace; and the text of parts to that of the whole. Audits of loss have
 * the means themselves. */
#include "tests/dp/samplers.h"

enum { V = 70, B = 5, M = 4, T = 12 };

/* Steps of records; of units that have their record once to M times; of units whose records
 * differ. Which units have how many, or none, is the same in all steps. */
static batch records[T], same[T], several[T];

static void random_text(uint64_t *seed) {
    static const batch_law law = {.n_vocab = V, .n_slots = B * M, .sure = 3, .spread = 2};
    int32_t n[B];
    for (int u = 0; u < B; u++)
        n[u] = random_below(seed, M + 1);
    for (int t = 0; t < T; t++) {
        random_batch(&several[t], &law, seed);
        records[t] = same[t] = several[t];
        for (int j = 0; j < B * M; j++) {
            const bool is_there = j % M < n[j / M];
            same[t].slots[j] = is_there ? several[t].reference[j / M * M] : NULL;
            several[t].slots[j] = is_there ? several[t].reference[j] : NULL;
            if (j % M == 0)
                records[t].slots[j / M] = same[t].slots[j];
        }
    }
}

static dpi_sampler_options make_options(int32_t per_unit) {
    dpi_sampler_options o = ink_options(V, B, T, 1, 3);
    o.denominator = B, o.top_k = 20, o.max_per_unit = per_unit;
    return o;
}

static void compare(dpi_sampler_options o) {
    uint64_t bits = 5, units_bits = 5;
    SAMPLER one = begin_text(o, &bits);
    o.max_per_unit = M;
    SAMPLER units = begin_text(o, &units_bits);
    assert_memory_equal(dpi_sampler_plan_get(one), dpi_sampler_plan_get(units),
                        sizeof(dpi_sampler_plan));
    for (int t = 0; t < T; t++)
        assert_int_equal(step(one, &records[t]), step(units, &same[t]));
    assert_true(bits == units_bits);
}

TEST(test_same_records) {
    uint64_t seed = 7;
    for (int i = 0; i < 40; i++) {
        dpi_sampler_options o = make_options(0);
        random_text(&seed);
        o.adjacency = random_below(&seed, 3), o.center = random_below(&seed, 2);
        o.accountant = random_below(&seed, 2) ? DPI_ACCOUNTANT_FILTER : DPI_ACCOUNTANT_ZCDP;
        o.pace = random_below(&seed, 4);
        o.pace_theta = o.pace == DPI_PACE_TOP ? .5 : o.pace == DPI_PACE_CHANGE ? .01 : 0;
        o.pace_tokens = o.pace == DPI_PACE_TOP ? 5 : 0;
        if (i % 8 == 0) {
            o = make_options(0);
            o.accountant = DPI_ACCOUNTANT_BR, o.rho = 0, o.epsilon = 4, o.delta = 1e-5;
        }
        compare(o);
        if (i % 4)
            continue;
        o = make_options(0);
        o.method = DPI_METHOD_AMIN, o.adjacency = random_below(&seed, 3), o.rho = 30;
        o.svt_sigma = i % 8 ? 2 : 0, o.svt_threshold = i % 8 ? .3 : 0;
        compare(o);
    }
}

/* All records of a unit in one part. */
TEST(test_parts) {
    static const int32_t first[] = {0, 2, B};
    uint64_t seed = 8;
    for (int i = 0; i < 10; i++) {
        dpi_sampler_options o = make_options(M);
        random_text(&seed);
        o.adjacency = i % 3, o.center = i % 2;
        o.accountant = i % 4 ? DPI_ACCOUNTANT_FILTER : DPI_ACCOUNTANT_ZCDP;
        compare_parts(&o, several, 2, first, 1);
    }
}

TEST(test_refused) {
    const dpi_sampler_options good = make_options(0);
    dpi_sampler_options o;
    REFUSED(ARG, "max_per_unit is 65, must be 1..64", o.max_per_unit = 65);
    REFUSED(UNSUPPORTED, "unit", o.max_per_unit = 2, o.method = DPI_METHOD_ADAPMIXED,
            o.acknowledge_not_dp = 1, o.rho = 0, o.epsilon = 1, o.delta = 1e-6);
}
