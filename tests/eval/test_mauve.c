/* MAUVE and neighbours. The oracle: scores by the code of the metric's authors (../shared/data,
 * mauve/scores.txt), whose k-means has other starts, so that means of five seeds are compared;
 * histograms by that code, exactly; neighbours by hand. */
#include "eval/mauve.h"
#include "eval/variation.h"
#include "tests/eval/eval_support.h"

static eval_vectors read_vectors(const char *name, const char *set, int32_t dim) {
    char relative[64];
    size_t n_bytes;
    snprintf(relative, sizeof relative, "mauve/%s.%s.f32", name, set);
    eval_vectors v = {.at = (float *)(void *)read_file(data_path(relative), &n_bytes), .dim = dim};
    v.n = (int32_t)(n_bytes / sizeof(float) / (size_t)dim);
    return v;
}

static void check_set(const char *name, int32_t dim, int32_t n_clusters, double scaling,
                      double expected, double integral) {
    DEFAULTS(mauve_options, o);
    mauve_score s;
    eval_vectors p = read_vectors(name, "p", dim), q = read_vectors(name, "q", dim);
    o.n_clusters = n_clusters, o.scaling = scaling;
    assert_ok(eval_mauve(&p, &q, &o, &s, NULL, NULL, ERR));
    assert_within(s.mauve, expected, .02);
    assert_within(s.integral, integral, .02);
    assert_int_equal(s.n_clusters, n_clusters ? n_clusters : (p.n < q.n ? p.n : q.n) / 10);
    free(p.at), free(q.at);
}

/* Means over the seeds of scores.txt. */
TEST(test_golden) {
    require_data("mauve/scores.txt");
    check_set("separated", 24, 12, 5, (.868680743 + .821371666 + .824550636) / 3,
              (.073015077 + .089032991 + .087971150) / 3);
    check_set("overlap", 32, 0, 5,
              (.949912968 + .923946435 + .928266621 + .904816289 + .945364304) / 5,
              (.041215498 + .052455032 + .050670836 + .059969873 + .043303172) / 5);
    check_set("same", 32, 0, 5,
              (.969464944 + .972609314 + .978302268 + .975693392 + .976433734) / 5,
              (.031258945 + .029448760 + .025940024 + .027582000 + .027098356) / 5);
    check_set("separated", 24, 12, 1, .992621541, .073015077);
}

TEST(test_histograms) {
    static const double p[] = {.5, .3, .2, 0, 0}, q[] = {.1, .2, .3, .25, .15};
    double mauve, integral;
    mauve_of_histograms(p, q, 5, 1, &mauve, &integral, NULL);
    assert_near(mauve, .892687851);
    assert_near(integral, .312262131);
    mauve_of_histograms(p, q, 5, 5, &mauve, &integral, NULL);
    assert_near(mauve, .271169652);
    mauve_of_histograms(p, p, 5, 5, &mauve, &integral, NULL);
    assert_near(mauve, 1), assert_near(integral, 0);
}

/* Scores are within 0..1 whatever rounding does: of shares that are the same, and of others, each a
 * sum of parts that are no doubles. */
TEST(test_ranges) {
    for (int n = 1; n < 400; n++) {
        double p[7] = {0}, q[7] = {0}, mauve, integral;
        for (int i = 0; i < n; i++) {
            p[i * i % 5] += 1.0 / n;
            q[5 + i % 2] += 1.0 / n;
        }
        for (int same = 0; same < 2; same++) {
            mauve_of_histograms(p, same ? p : q, 7, 5, &mauve, &integral, NULL);
            if (!(mauve >= 0 && mauve <= 1 && integral >= 0 && integral <= 1))
                fail_msg("of %d texts: MAUVE %.17g, integral %.17g", n, mauve, integral);
        }
        assert_true(eval_variation(p, q, 7) <= 1);
    }
}

/* Points of a line. With k = 1 the real balls are 0 +- 1, 1 +- 1, 5 +- 4, those of the others
 * .5 +- .3, .8 +- .3, 20 +- 19.2. */
TEST(test_neighbours) {
    float real[] = {0, 1, 5}, made[] = {.5f, .8f, 20};
    const eval_vectors q = {real, 3, 1}, p = {made, 3, 1};
    double precision, recall;
    assert_ok(eval_neighbours(&p, &q, 1, &precision, &recall, ERR));
    assert_near(precision, 2.0 / 3); /* .5, .8 */
    assert_near(recall, 2.0 / 3);    /* 1, 5 */
    assert_error(eval_neighbours(&p, &q, 3, &precision, &recall, ERR), ARG, "found 3");
}

TEST(test_refusals) {
    float x[] = {0, 1, 2, 3}, nan[] = {0, 1, NAN, 2};
    const eval_vectors p = {x, 2, 2}, one = {x, 1, 2}, flat = {x, 4, 1}, bad = {nan, 2, 2};
    DEFAULTS(mauve_options, o);
    mauve_score s;
    assert_error(eval_mauve(&p, &flat, &o, &s, NULL, NULL, ERR), ARG, "2 and 1 dimensions");
    assert_int_equal(eval_mauve(&p, &one, &o, &s, NULL, NULL, ERR), DPI_STATUS_ARG);
    assert_int_equal(eval_mauve(&p, &bad, &o, &s, NULL, NULL, ERR), DPI_STATUS_NUMERIC);
    o.n_clusters = 5;
    assert_error(eval_mauve(&p, &p, &o, &s, NULL, NULL, ERR), ARG,
                 "clusters: found 5, allowed 2..4");
}
