/* test_utility.c - the statistics of eval/utility on texts and readings made by hand. */
#include "eval/utility.h"

#include "tests/eval/eval_support.h"

/* "a b c d e" has the trigrams abc bcd cde. */
TEST(test_near_copy) {
    assert_true(is_near_copy("a b c d e", "a b c d e"));
    assert_true(is_near_copy("a b c d e", "x y\na  b c d"));      /* abc bcd: 2 of 3 */
    assert_true(is_near_copy("a b c d x y", "a b c d v w"));      /* abc bcd: 2 of 4 */
    assert_false(is_near_copy("a b c d x y z", "a b c d u v w")); /* 2 of 5 */
    assert_true(is_near_copy("a b c d x y z", "a b c d")); /* 2 of the 2 that the shorter has */
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
    sample s = {.text = (char *)"one two three four", .n_tokens = 10};
    s.reading.domain = 2, s.reading.values[0] = a, s.reading.values[1] = b;
    s.reading.n_sentences = 4, s.reading.n_recognised = 3;
    return s;
}

static estimate measured(const result *r, const char *name) {
    for (int32_t i = 0; i < N_METRICS; i++)
        if (strcmp(metrics[i].name, name) == 0)
            return r->of[i];
    fail_msg("no metric %s", name);
    return r->of[0];
}

static void assert_metric(const result *r, const char *name, double value) {
    assert_near(measured(r, name).value, value);
}

TEST(test_measures) {
    target t = make_target();
    assert_float_equal(t.reference_law[0][0], 1, 0);
    assert_float_equal(t.reference_law[1][1], 0.5, 0);
    sample s[4] = {make_sample(0, 0), make_sample(0, 1), make_sample(1, 1), make_sample(0, -1)};
    s[2].reading.domain = 1; /* of another domain: nothing of it counts */
    s[0].nll = 10, s[0].n_scored = 4, s[0].n_support = 1050;
    s[1].nll = 2, s[1].n_scored = 8, s[1].n_outside = 3;
    s[0].near_copy = s[1].ended = s[3].reading.well_formed = 1;
    s[3].text = (char *)"one two three five";
    result r;
    measure(&(setting){.kind = TEXT_REFERENCE}, s, 4, &t, &r);
    /* a: read 3/4 and 0, 1/4 unread; b: 1/4, 1/4, and 1/2 unread */
    assert_float_equal(r.distance[0].value, (0 + 0.25 + 0.25) / 2, 1e-12);
    assert_float_equal(r.distance[1].value, (0.25 + 0.25 + 0.5) / 2, 1e-12);
    assert_float_equal(r.reference_distance[0].value, (0.25 + 0 + 0.25) / 2, 1e-12);
    assert_metric(&r, "tv_law", .375);
    assert_metric(&r, "tv_references", .375);
    assert_metric(&r, "perplexity", exp(1));
    assert_metric(&r, "well_formed", .25);
    assert_metric(&r, "sentences", .75);
    assert_metric(&r, "near_copies", .25);
    assert_metric(&r, "ended", .25);
    assert_metric(&r, "tokens", 10);
    assert_metric(&r, "support", 1050 / 40.);
    assert_metric(&r, "outside", 3 / 40.);
    /* reference 0 has (0, 1): half, whole, other domain, half */
    assert_metric(&r, "as_reference", (.5 + 1 + 0 + .5) / 4);
    assert_metric(&r, "distinct_3", 3 / 8.); /* 123 234 three times, 123 235 once */
}

/* The interval of a share p of n texts is that of a binomial: 1.96 sqrt(p (1 - p) / n). */
TEST(test_intervals) {
    enum { N = 200 };
    static sample s[N];
    target t = make_target();
    for (int32_t i = 0; i < N; i++) {
        s[i] = make_sample(0, 0);
        s[i].ended = i < N / 5;
    }
    result r;
    measure(&(setting){.kind = TEXT_PUBLIC}, s, N, &t, &r);
    assert_within(measured(&r, "ended").half, 1.96 * sqrt(.2 * .8 / N), .15 * 1.96 * .0283);
    assert_near(measured(&r, "tokens").half, 0);
}

static variant parse(const char *text) {
    variant v;
    assert_true(variant_parse(text, &v));
    return v;
}

TEST(test_variants) {
    variant v = parse("zcdp");
    assert_int_equal(v.options.accountant, DPI_ACCOUNTANT_ZCDP);
    assert_true(v.options.pace == DPI_PACE_NONE && v.options.center == 0);
    v = parse("filter-pace-center");
    assert_int_equal(v.options.accountant, DPI_ACCOUNTANT_FILTER);
    assert_true(v.options.pace == DPI_PACE_AUTO && v.options.center == 1);
    v = parse("br-pace:pace=top:pace-theta=.75:pace-tokens=40");
    assert_int_equal(v.options.accountant, DPI_ACCOUNTANT_BR);
    assert_true(v.options.pace == DPI_PACE_TOP && v.options.pace_theta == .75);
    assert_int_equal(v.options.pace_tokens, 40);
    assert_false(v.has_top_k || v.has_tau);
    v = parse("zcdp-pace:top-k=25:temp=.8");
    assert_true(v.has_top_k && v.has_tau && v.options.top_k == 25);
    v = parse("amin:private-tokens=9");
    assert_int_equal(v.options.method, DPI_METHOD_AMIN);
    assert_int_equal(v.options.n_private, 9);
    static const char *const none[] = {"",
                                       "zcd",
                                       "plain",
                                       "adapmixed",
                                       "zcdp-paced",
                                       "zcdp:pace",
                                       "zcdp:pace=much",
                                       "zcdp:private-tokens=3",
                                       "zcdp:epsilon=3"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(variant_parse(none[i], &v));
}
