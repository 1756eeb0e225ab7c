/* test_pace.c - public pacing: decisions against brute force, and sums of charges on every path. */
#include <math.h>

#include "dp/account/account.h"
#include "dp/account/pace.h"
#include "tests/support/support.h"

static const long double LN2 = 0.693147180559945309417232121458176568L;

/* What a step of clip bound K costs, by the formulas of dp/PRIVACY.md. */
static long double cost_of(const dpi_pacing *p, int64_t K) {
    const long double eta = (long double)p->factor * K * p->a * LN2 * 0x1p-48L + 0x1p-38L;
    return eta * eta / 8;
}

static void test_top_is_a_share(void **state) {
    (void)state;
    uint64_t seed = 90;
    for (int i = 0; i < 2000; i++) {
        dpi_u128 weights[64];
        const size_t n = 1 + (size_t)random_below(&seed, 64);
        long double sum = 0, top = 0;
        for (size_t j = 0; j < n; j++) {
            weights[j] = ((dpi_u128)random_u64(&seed) << 45 >> random_below(&seed, 60)) +
                         ((dpi_u128)1 << 40);
            sum += (long double)weights[j];
            top = fmaxl(top, (long double)weights[j]);
        }
        const double share = dpi_pace_top(weights, n);
        assert_true(share > 0 && share <= 1);
        assert_true(fabsl(share - top / sum) <= 1e-15L);
    }
    const dpi_u128 one = (dpi_u128)1 << 109;
    assert_true(dpi_pace_top(&one, 1) == 1);
}

/* The largest change over all sets of tokens that are raised, the others being lowered: the extreme
 * points of what references can do. */
static double brute_force(const double *p, int n, double swing) {
    double best = 0;
    for (int set = 0; set < 1 << n; set++) {
        double sum = 0, change = 0, moved[12];
        for (int j = 0; j < n; j++)
            sum += moved[j] = p[j] * exp(set >> j & 1 ? swing : -swing);
        for (int j = 0; j < n; j++)
            change += fabs(moved[j] / sum - p[j]) / 2;
        best = fmax(best, change);
    }
    return best;
}

static void test_change_against_brute_force(void **state) {
    (void)state;
    uint64_t seed = 91;
    double closest = INFINITY;
    for (int i = 0; i < 400; i++) {
        double p[12], sum = 0, top = 0;
        const int n = 2 + random_below(&seed, 9);
        const double swing = 3 * random_uniform(&seed), spread = 4 * random_uniform(&seed);
        for (int j = 0; j < n; j++)
            sum += p[j] = exp(spread * random_normal(&seed));
        for (int j = 0; j < n; j++)
            top = fmax(top, p[j] /= sum);
        const double bound = dpi_pace_change(top, swing), found = brute_force(p, n, swing);
        assert_true(found <= bound + 1e-12);
        if (found > .01)
            closest = fmin(closest, bound / found);
        /* Where the likeliest token has most of the mass, the bound is what is possible. */
        if (top >= .8 && 1 - top <= 1 / (1 + exp(swing)))
            assert_true(found >= bound - 1e-12);
    }
    assert_true(closest < 1 + 1e-9);
    assert_true(dpi_pace_change(.5, 0) == 0 && dpi_pace_change(1, 5) == 0);
    assert_true(fabs(dpi_pace_change(.5, 2000) - 1) < 1e-9); /* no overflow */
    for (double top = .5; top < .99; top += .01)
        assert_true(dpi_pace_change(top, 1.5) >= dpi_pace_change(top + .01, 1.5));
}

/* Whatever the public model thinks: the quota, the budget and the plan's K hold after each step. */
static void test_paths(void **state) {
    (void)state;
    uint64_t seed = 92;
    int exhausted = 0, quota = 0;
    for (int i = 0; i < 3000; i++) {
        dpi_pacing p = {.pace = 1 + random_below(&seed, 3),
                        .n_private = 1 + random_below(&seed, 40),
                        .factor = random_below(&seed, 2) ? 2 : 4,
                        .theta = random_uniform(&seed),
                        .swing = 4 * random_uniform(&seed),
                        .a = 1000 + random_u64(&seed) % 50000000,
                        .rho = exp(8 * random_uniform(&seed) - 6)};
        const double share = exp(5 * random_uniform(&seed) - 1);
        p.K = p.pace == DPI_PACE_SHARE
                  ? dpi_clip_calibrate(p.a, p.factor, 1, p.rho / fmax(1, share))
                  : dpi_clip_calibrate(p.a, p.factor, p.n_private, p.rho);
        dpi_pace_spent spent = {0};
        long double sum = 0;
        int n = 0;
        for (int t = 0; t < 200; t++) {
            const double top = random_below(&seed, 3) ? random_uniform(&seed) : 1;
            const int64_t K = dpi_pace_clip(&p, &spent, top);
            assert_true(K >= 0 && K <= p.K);
            const bool is_over = dpi_pace_is_over(&p, &spent);
            assert_true(K == 0 || !is_over);
            if (p.pace == DPI_PACE_CHANGE)
                assert_true(is_over == (n == p.n_private));
            else /* what the least sure token could have */
                assert_true(is_over == (dpi_pace_clip(&p, &spent, 0) == 0));
            if (p.pace == DPI_PACE_SHARE)
                assert_true((double)K <= (double)p.K * sqrt(1 - top));
            else
                assert_true(K == 0 || K == p.K);
            if (p.pace == DPI_PACE_TOP && K > 0)
                assert_true(top <= p.theta);
            dpi_pace_charge(&p, &spent, K);
            sum += K > 0 ? cost_of(&p, K) : 0;
            n += K > 0;
            assert_true(sum <= (long double)spent.rho && spent.n_private == n);
            assert_true(sum <= (long double)p.rho);
            if (p.pace != DPI_PACE_SHARE)
                assert_true(n <= p.n_private);
        }
        exhausted += p.pace == DPI_PACE_SHARE && sum > .999L * p.rho;
        quota += p.pace == DPI_PACE_TOP && n == p.n_private;
    }
    assert_true(exhausted > 300 && quota > 300); /* both ends were met */
}

static void test_decisions(void **state) {
    (void)state;
    dpi_pace_spent spent = {0};
    dpi_pacing p = {.pace = DPI_PACE_TOP, .n_private = 2, .factor = 2, .theta = .8, .K = 1000,
                    .a = 1000000, .rho = INFINITY};
    assert_true(dpi_pace_clip(&p, &spent, .8) == 1000 && dpi_pace_clip(&p, &spent, .81) == 0);
    dpi_pace_charge(&p, &spent, 1000);
    dpi_pace_charge(&p, &spent, 0);
    assert_true(spent.n_private == 1 && dpi_pace_clip(&p, &spent, .1) == 1000);
    dpi_pace_charge(&p, &spent, 1000);
    assert_true(spent.n_private == 2 && dpi_pace_clip(&p, &spent, .1) == 0);
    p.pace = DPI_PACE_SHARE;
    assert_true(dpi_pace_clip(&p, &spent, .75) == 500 && dpi_pace_clip(&p, &spent, 1) == 0 &&
                dpi_pace_clip(&p, &spent, 0) == 1000);
    p.pace = DPI_PACE_NONE;
    assert_true(dpi_pace_clip(&p, &spent, 1) == 1000);
    p.pace = DPI_PACE_CHANGE; /* e^1: .1 e / (.1 e + .9 / e) - .1 = .3509... */
    p.n_private = 9;
    p.swing = 1;
    p.theta = .35;
    assert_true(dpi_pace_clip(&p, &spent, .9) == 1000);
    p.theta = .352;
    assert_true(dpi_pace_clip(&p, &spent, .9) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_is_a_share),
        cmocka_unit_test(test_change_against_brute_force),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_decisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
