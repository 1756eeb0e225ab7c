/* Output perturbation. Oracles: neighbours are trained one by one, the law of the noise is that of
 * the formula, and without noise it is liblinear's logistic regression. */
#include "eval/perturbed.h"
#include "eval/classify.h"
#include "tests/eval/eval_support.h"

enum { N = N_CLEAR };

/* The weights that are best for texts, as rows of the vocabulary; the caller's. */
static double *best_weights(const eval_vocabulary *v, const eval_texts *texts, eval_rows *r) {
    double *w = calloc((size_t)v->n * (size_t)v->n_labels, sizeof *w);
    assert_ok(eval_rows_make(v, texts, r, ERR));
    assert_ok(eval_logistic(v, r, w, ERR));
    return w;
}

/* Trains the texts with and without record `other` replaced; how far the weights are apart. */
static double distance(int32_t other, int clear) {
    uint64_t seed = 1;
    OWN_TEXTS public = make_clear(&seed, 5, -1);
    OWN_VOCABULARY v;
    double *w[2], squares = 0;
    assert_ok(eval_vocabulary_make(&v, &public, ERR));
    for (int k = 0; k < 2; k++) {
        seed = 2;
        OWN_TEXTS texts = make_clear(&seed, clear, k ? other : -1);
        OWN_ROWS r;
        w[k] = best_weights(&v, &texts, &r);
    }
    for (int32_t i = 0; i < v.n * v.n_labels; i++)
        squares += (w[0][i] - w[1][i]) * (w[0][i] - w[1][i]);
    free(w[0]), free(w[1]);
    return sqrt(squares);
}

/* No neighbour moves the weights further than the bound, and one of few rows comes near it. */
TEST(test_sensitivity) {
    const double bound = eval_logistic_sensitivity(N, 3);
    double most = 0;
    for (int32_t i = 0; i < N; i += 7)
        for (int clear = 1; clear < 10; clear += 4)
            most = fmax(most, distance(i, clear));
    assert_true(fabs(bound / (2 * sqrt(3) / (N * EVAL_PERTURBED_LAMBDA)) - 1) < 2e-3);
    assert_true(most <= bound);
    assert_true(most > .1 * bound);
}

/* A gradient by finite differences is zero at the weights. */
TEST(test_minimum) {
    uint64_t seed = 4;
    OWN_TEXTS texts = make_clear(&seed, 4, -1);
    OWN_VOCABULARY v;
    OWN_ROWS r;
    assert_ok(eval_vocabulary_make(&v, &texts, ERR));
    OWN_ARRAY(double) w = best_weights(&v, &texts, &r);
    const double C = 1 / (N * EVAL_PERTURBED_LAMBDA), step = 1e-4;
    for (int32_t k = 0; k < v.n; k++) {
        double value[2] = {0};
        for (int side = 0; side < 2; side++) {
            const double kept = w[k];
            w[k] += side ? step : -step;
            for (int32_t i = 0; i < v.n; i++)
                value[side] += w[i] * w[i] / 2;
            for (int32_t i = 0; i < r.n; i++) {
                double x = 0;
                for (const struct feature_node *node = r.at[i]; node->index > 0; node++)
                    x += w[node->index - 1] * node->value;
                value[side] += C * log1p(exp(r.label[i] == 1 ? -x : x));
            }
            w[k] = kept;
        }
        assert_true(fabs(value[1] - value[0]) / (2 * step) < 2 * C * EVAL_PERTURBED_SLACK);
    }
}

/* Length: Gamma(n, scale) has mean n scale, variance n scale^2. Directions cancel. */
TEST(test_noise) {
    enum { DIMS = 30, DRAWS = 4000 };
    double b[DIMS], mean = 0, variance = 0, first = 0, squares = 0;
    uint64_t seed = 1;
    for (int i = 0; i < DRAWS; i++) {
        double length = 0;
        eval_noise_of_length(b, DIMS, .5, &seed);
        for (int k = 0; k < DIMS; k++)
            length += b[k] * b[k];
        length = sqrt(length);
        mean += length / DRAWS;
        variance += (length - 15) * (length - 15) / DRAWS;
        first += b[0] / DRAWS;
    }
    assert_true(fabs(mean - 15) < 4 * sqrt(7.5 / DRAWS));
    assert_true(fabs(variance / 7.5 - 1) < .15);
    assert_true(fabs(first) < 4 * sqrt(15 * 15.5 / DIMS / DRAWS));
    for (int i = 0; i < DRAWS; i++) {
        eval_noise_gaussian(b, DIMS, 2, &seed);
        for (int k = 0; k < DIMS; k++)
            squares += b[k] * b[k] / DIMS / DRAWS;
    }
    assert_true(fabs(squares / 4 - 1) < 4 * sqrt(2.0 / DIMS / DRAWS));
}

/* The share of right labels, of a classifier with this privacy. */
static double share_right(const eval_texts texts[3], double epsilon, double delta) {
    double right[N], sum = 0;
    int32_t n;
    assert_ok(
        eval_classify_perturbed(&texts[0], &texts[1], &texts[2], epsilon, delta, right, &n, ERR));
    assert_int_equal(n, N);
    for (int32_t i = 0; i < n; i++)
        sum += right[i] / n;
    return sum;
}

/* Clear texts: all labels without noise, fewer with it, none better than chance at a small epsilon.
 */
TEST(test_accuracy) {
    eval_texts texts[3]; /* public, of training, of the test */
    uint64_t seed = 6;
    for (int i = 0; i < 3; i++)
        texts[i] = make_clear(&seed, 8, -1);
    const double clean = share_right(texts, INFINITY, 0);
    assert_true(clean > .9);
    assert_near(share_right(texts, 1e6, 0), clean);
    assert_true(share_right(texts, .5, 0) < .6);
    /* a delta pays for dimensions */
    assert_true(share_right(texts, 10, 1e-5) > share_right(texts, 10, 0));
    for (int i = 0; i < 3; i++)
        eval_texts_free(&texts[i]);
}
