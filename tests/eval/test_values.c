/* Intervals by bootstrap. Oracles: the normal law's, which that of a mean of many numbers is near,
 * and the law of counts; total variation by hand. */
#include "eval/intervals.h"
#include "eval/variation.h"
#include "tests/eval/eval_support.h"

enum { N = 2000 };

static eval_value last(const evaluation *e) { return e->at[e->n - 1]; }

static void assert_interval(const evaluation *e, double value, double away) {
    const eval_value v = last(e);
    if (!(fabs(v.value - value) < 1e-9 * fmax(1, fabs(value)) &&
          fabs(v.low - (value - away)) < .15 * away && fabs(v.high - (value + away)) < .15 * away))
        fail_msg("found %g in %g..%g, expected %g +- %g", v.value, v.low, v.high, value, away);
}

TEST(test_mean) {
    OWN_EVALUATION e = {0};
    static double x[N];
    static int32_t count[N];
    uint64_t seed = 3;
    double mean = 0, squares = 0, sum = 0;
    int32_t n = 0;
    for (int i = 0; i < N; i++) {
        x[i] = i % 4 == 0 ? NAN : random_normal(&seed); /* a text without the number */
        count[i] = random_below(&seed, 3);
        sum += count[i];
        n += i % 4 != 0;
        mean += i % 4 != 0 ? x[i] : 0;
    }
    mean /= n;
    for (int i = 0; i < N; i++)
        squares += i % 4 != 0 ? (x[i] - mean) * (x[i] - mean) : 0;
    assert_ok(eval_add_mean(&e, "g", "k", "l", x, N, ERR));
    assert_interval(&e, mean, 1.96 * sqrt(squares / n / n));
    /* 0, 1, 2: variance 2/3 */
    assert_ok(eval_add_sum(&e, "g", "k", "l", count, N, ERR));
    assert_interval(&e, sum, 1.96 * sqrt(N * 2.0 / 3));
    assert_ok(eval_add_share(&e, "g", "k", "l", N / 4, N, ERR));
    assert_interval(&e, .25, 1.96 * sqrt(.25 * .75 / N));
    for (int i = 0; i < N; i++)
        x[i] = NAN;
    assert_ok(eval_add_mean(&e, "g", "k", "l", x, N, ERR));
    assert_int_equal(e.n, 3);
}

/* Two sets of coins, on the first n of which a head falls. */
typedef struct coins {
    int32_t heads[2], n[2];
} coins;

static double distance(const void *user, const int32_t *const which[2]) {
    const coins *c = user;
    double share[2][2] = {{0}};
    for (int k = 0; k < 2; k++)
        for (int32_t i = 0; i < c->n[k]; i++)
            share[k][which[k][i] < c->heads[k]] += 1. / c->n[k];
    return eval_variation(share[0], share[1], 2);
}

TEST(test_distance) {
    OWN_EVALUATION e = {0};
    const coins apart = {{1500, 200}, {N, N / 2}}, same = {{1000, 500}, {N, N / 2}};
    const eval_number a = {distance, &apart, {N, N / 2}, true};
    const eval_number b = {distance, &same, {N, N / 2}, true};
    assert_ok(eval_add_number(&e, "g", "k", "l", &a, ERR));
    assert_interval(&e, .55, 1.96 * sqrt(.75 * .25 / N + .2 * .8 / (N / 2)));
    /* Sets that are alike: the interval begins with 0, though resamples differ. */
    assert_ok(eval_add_number(&e, "g", "k", "l", &b, ERR));
    assert_true(fabs(last(&e).value) < 1e-9 && last(&e).low == 0 && last(&e).high > .01);
}

/* (.5 + .3 + .2) / 2, and a row of equal shares. */
TEST(test_variation) {
    const double p[] = {.5, .5, 0, .25, .25, .5}, q[] = {0, .8, .2, .25, .25, .5};
    assert_true(fabs(eval_variation(p, q, 3) - .5) < 1e-12);
    assert_true(fabs(eval_variation_mean(p, q, 2, 3) - .25) < 1e-12);
}
