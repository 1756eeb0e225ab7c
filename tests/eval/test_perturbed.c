/* Output perturbation. Oracles: neighbours are trained one by one, the law of the noise is that of
 * the formula, and without noise it is liblinear's logistic regression. */
#include "eval/perturbed.h"
#include "tests/support/support.h"

#include <math.h>

#include "eval/classify.h"

enum { N = 60 };

/* Texts of eight words, of which `clear` in ten say the label. */
static void make(eval_texts *s, uint64_t *seed, int clear, int32_t other) {
    static const char *const names[] = {"fever", "heart", "skin"};
    static char text[N][80];
    const char *list[N], *label[N];
    dpi_error err;
    for (int i = 0; i < N; i++) {
        const int own = i == other ? 1 : i % 3;
        text[i][0] = '\0';
        for (int w = 0; w < 8; w++) {
            const bool says = random_u64(seed) % 10 < (uint64_t)clear;
            char word[] = {(char)(says ? 'a' + own : 'd'), (char)('a' + w), ' ', '\0'};
            if (i == other)
                word[0] = 'b';
            strcat(text[i], word);
        }
        list[i] = text[i];
        label[i] = names[own];
    }
    assert_ok(eval_texts_make(list, label, N, s, &err), &err);
}

/* Trains the texts with and without record `other` replaced; how far the weights are apart. */
static double distance(int32_t other, int clear) {
    eval_texts public, texts[2];
    eval_vocabulary v;
    eval_rows r[2];
    double *w[2], squares = 0;
    uint64_t seed = 1;
    dpi_error err;
    make(&public, &seed, 5, -1);
    assert_ok(eval_vocabulary_make(&v, &public, &err), &err);
    const size_t n = (size_t)v.n * (size_t)v.n_labels;
    for (int k = 0; k < 2; k++) {
        seed = 2;
        make(&texts[k], &seed, clear, k ? other : -1);
        assert_ok(eval_rows_make(&v, &texts[k], &r[k], &err), &err);
        w[k] = calloc(n, sizeof **w);
        assert_ok(eval_logistic(&v, &r[k], w[k], &err), &err);
    }
    for (size_t i = 0; i < n; i++)
        squares += (w[0][i] - w[1][i]) * (w[0][i] - w[1][i]);
    for (int k = 0; k < 2; k++) {
        free(w[k]);
        eval_rows_free(&r[k]);
        eval_texts_free(&texts[k]);
    }
    eval_vocabulary_free(&v);
    eval_texts_free(&public);
    return sqrt(squares);
}

/* No neighbour moves the weights further than the bound, and one of few rows comes near it. */
static void test_sensitivity(void **state) {
    (void)state;
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
static void test_minimum(void **state) {
    (void)state;
    eval_texts texts;
    eval_vocabulary v;
    eval_rows r;
    uint64_t seed = 4;
    dpi_error err;
    make(&texts, &seed, 4, -1);
    assert_ok(eval_vocabulary_make(&v, &texts, &err), &err);
    assert_ok(eval_rows_make(&v, &texts, &r, &err), &err);
    double *w = calloc((size_t)(v.n * v.n_labels), sizeof *w);
    assert_ok(eval_logistic(&v, &r, w, &err), &err);
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
    free(w);
    eval_rows_free(&r);
    eval_vocabulary_free(&v);
    eval_texts_free(&texts);
}

/* Length: Gamma(n, scale) has mean n scale, variance n scale^2. Directions cancel. */
static void test_noise(void **state) {
    (void)state;
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

static double mean_of(const double *x, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i] / n;
    return sum;
}

/* Clear texts: all labels without noise, fewer with it, none better than chance at a small epsilon.
 */
static void test_accuracy(void **state) {
    (void)state;
    eval_texts public, train, test;
    double right[N];
    int32_t n;
    uint64_t seed = 6;
    dpi_error err;
    make(&public, &seed, 8, -1);
    make(&train, &seed, 8, -1);
    make(&test, &seed, 8, -1);
    assert_ok(eval_classify_perturbed(&public, &train, &test, INFINITY, 0, right, &n, &err), &err);
    assert_int_equal(n, N);
    const double clean = mean_of(right, n);
    assert_true(clean > .9);
    assert_ok(eval_classify_perturbed(&public, &train, &test, 1e6, 0, right, &n, &err), &err);
    assert_true(fabs(mean_of(right, n) - clean) < 1e-9);
    assert_ok(eval_classify_perturbed(&public, &train, &test, .5, 0, right, &n, &err), &err);
    assert_true(mean_of(right, n) < .6);
    assert_ok(eval_classify_perturbed(&public, &train, &test, 10, 1e-5, right, &n, &err), &err);
    const double gaussian = mean_of(right, n);
    assert_ok(eval_classify_perturbed(&public, &train, &test, 10, 0, right, &n, &err), &err);
    assert_true(gaussian > mean_of(right, n)); /* a delta pays for dimensions */
    eval_texts_free(&public);
    eval_texts_free(&train);
    eval_texts_free(&test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sensitivity),
        cmocka_unit_test(test_minimum),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_accuracy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
