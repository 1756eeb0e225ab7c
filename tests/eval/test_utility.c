/* test_utility.c - the statistics of eval/utility on texts and readings made by hand. */
#include "tests/support/support.h"

#include <math.h>

#include "eval/utility.h"

/* "a b c d e" has the trigrams abc bcd cde. */
static void test_near_copy(void **state) {
    (void)state;
    assert_true(is_near_copy("a b c d e", "a b c d e"));
    assert_true(is_near_copy("a b c d e", "x y\na  b c d"));   /* abc bcd: 2 of 3 */
    assert_true(is_near_copy("a b c d x y", "a b c d v w"));   /* abc bcd: 2 of 4 */
    assert_false(is_near_copy("a b c d x y z", "a b c d u v w")); /* 2 of 5 */
    assert_true(is_near_copy("a b c d x y z", "a b c d"));     /* 2 of the 2 that the shorter has */
    assert_false(is_near_copy("a b c a b c a b c q", "a b c z a b c")); /* as sets: 1 of 4 */
    assert_false(is_near_copy("a b c", "a c b"));
    assert_false(is_near_copy("a b", "a b")); /* no trigram at all */
    assert_false(is_near_copy("", ""));
}

/* Two attributes of two values each; the law is (3/4, 1/4) and (1/2, 1/2). */
static const corpus_value two[] = {{"x", 1, 1, "", {"x"}, ""}, {"y", 1, 1, "", {"y"}, ""}};
static const corpus_attribute pair[] = {{"a", {"f"}, two, 2}, {"b", {"f"}, two, 2}};
static const corpus_domain own = {.name = "own", .attributes = pair, .n_attributes = 2};
static const reference refs[] = {{.values = {0, 1}}, {.values = {0, 0}}};

static target make_target(void) {
    target t = {.d = &own, .domain = 2, .refs = refs};
    t.law[0][0] = 0.75;
    t.law[0][1] = 0.25;
    t.law[1][0] = t.law[1][1] = 0.5;
    law_of_references(&own, refs, 2, t.reference_law);
    return t;
}

static sample make_sample(int8_t a, int8_t b) {
    return (sample){.text = (char *)"one two three four", .n_tokens = 10, .reference = 0,
                    .reading = {.domain = 2, .values = {a, b}, .n_sentences = 4,
                                .n_recognised = 3}};
}

static double value_of(const result *r, const char *name) {
    for (int32_t i = 0; i < N_METRICS; i++)
        if (strcmp(metrics[i].name, name) == 0)
            return r->of[i].value;
    fail_msg("no metric %s", name);
    return 0;
}

static void test_measures(void **state) {
    (void)state;
    target t = make_target();
    assert_float_equal(t.reference_law[0][0], 1, 0);
    assert_float_equal(t.reference_law[1][1], 0.5, 0);
    sample s[4] = {make_sample(0, 0), make_sample(0, 1), make_sample(1, 1), make_sample(0, -1)};
    s[2].reading.domain = 1; /* of another domain: nothing of it counts */
    s[0].nll = 10;
    s[0].n_scored = 4;
    s[1].nll = 2;
    s[1].n_scored = 8;
    s[0].n_support = 1050;
    s[1].n_outside = 3;
    s[0].near_copy = s[1].ended = s[3].reading.well_formed = 1;
    s[3].text = (char *)"one two three five";
    result r;
    measure(&(setting){.kind = TEXT_REFERENCE}, s, 4, &t, &r);
    /* a: read 3/4 and 0, 1/4 unread; b: 1/4, 1/4, and 1/2 unread */
    assert_float_equal(r.distance[0].value, (0 + 0.25 + 0.25) / 2, 1e-12);
    assert_float_equal(r.distance[1].value, (0.25 + 0.25 + 0.5) / 2, 1e-12);
    assert_float_equal(r.reference_distance[0].value, (0.25 + 0 + 0.25) / 2, 1e-12);
    assert_float_equal(value_of(&r, "tv_law"), 0.375, 1e-12);
    assert_float_equal(value_of(&r, "tv_references"), 0.375, 1e-12);
    assert_float_equal(value_of(&r, "perplexity"), exp(1), 1e-12);
    assert_float_equal(value_of(&r, "well_formed"), 0.25, 1e-12);
    assert_float_equal(value_of(&r, "sentences"), 0.75, 1e-12);
    assert_float_equal(value_of(&r, "near_copies"), 0.25, 1e-12);
    assert_float_equal(value_of(&r, "ended"), 0.25, 1e-12);
    assert_float_equal(value_of(&r, "tokens"), 10, 1e-12);
    assert_float_equal(value_of(&r, "support"), 1050 / 40.0, 1e-12);
    assert_float_equal(value_of(&r, "outside"), 3 / 40.0, 1e-12);
    /* reference 0 has (0, 1): half, whole, other domain, half */
    assert_float_equal(value_of(&r, "as_reference"), (0.5 + 1 + 0 + 0.5) / 4, 1e-12);
    /* 123 234 three times, 123 235 once: 3 different ones of 8 */
    assert_float_equal(value_of(&r, "distinct_3"), 3 / 8.0, 1e-12);
}

/* The interval of a share p of n texts is that of a binomial: 1.96 sqrt(p (1 - p) / n). */
static void test_intervals(void **state) {
    (void)state;
    enum { N = 200 };
    static sample s[N];
    target t = make_target();
    for (int32_t i = 0; i < N; i++) {
        s[i] = make_sample(0, 0);
        s[i].ended = i < N / 5;
    }
    result r;
    measure(&(setting){.kind = TEXT_PUBLIC}, s, N, &t, &r);
    for (int32_t i = 0; i < N_METRICS; i++)
        if (strcmp(metrics[i].name, "ended") == 0)
            assert_float_equal(r.of[i].half, 1.96 * sqrt(0.2 * 0.8 / N), 0.15 * 1.96 * 0.0283);
        else if (strcmp(metrics[i].name, "tokens") == 0)
            assert_float_equal(r.of[i].half, 0, 1e-9);
}

static void test_variants(void **state) {
    (void)state;
    variant v;
    assert_true(variant_parse("zcdp", &v));
    assert_int_equal(v.options.accountant, DPI_ACCOUNTANT_ZCDP);
    assert_int_equal(v.options.pace, DPI_PACE_NONE);
    assert_int_equal(v.options.center, 0);
    assert_true(variant_parse("filter-pace-center", &v));
    assert_int_equal(v.options.accountant, DPI_ACCOUNTANT_FILTER);
    assert_int_equal(v.options.pace, DPI_PACE_AUTO);
    assert_int_equal(v.options.center, 1);
    assert_true(variant_parse("br-pace:pace=top:pace-theta=.75:pace-tokens=40", &v));
    assert_int_equal(v.options.accountant, DPI_ACCOUNTANT_BR);
    assert_int_equal(v.options.pace, DPI_PACE_TOP);
    assert_float_equal(v.options.pace_theta, .75, 0);
    assert_int_equal(v.options.pace_tokens, 40);
    assert_false(v.has_top_k || v.has_tau);
    assert_true(variant_parse("zcdp-pace:top-k=25:temp=.8", &v));
    assert_true(v.has_top_k && v.has_tau);
    assert_int_equal(v.options.top_k, 25);
    assert_true(variant_parse("amin:private-tokens=9", &v));
    assert_int_equal(v.options.method, DPI_METHOD_AMIN);
    assert_int_equal(v.options.n_private, 9);
    static const char *const none[] = {"", "zcd", "plain", "adapmixed", "zcdp-paced", "zcdp:pace",
                                       "zcdp:pace=much", "zcdp:private-tokens=3", "zcdp:epsilon=3"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(variant_parse(none[i], &v));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_copy),
        cmocka_unit_test(test_measures),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
