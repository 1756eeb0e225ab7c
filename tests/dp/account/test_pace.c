/* test_pace.c - public pacing: decisions against brute force, and sums of charges on every path. */
#include "dp/account/account.h"
#include "dp/account/pace.h"
#include "tests/oracle/accountant.h"
#include "tests/support/support.h"

TEST(test_top_is_a_share) {
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

TEST(test_change_against_brute_force) {
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
TEST(test_paths) {
    uint64_t seed = 92;
    int exhausted = 0, quota = 0;
    for (int i = 0; i < 3000; i++) {
        dpi_pacing p = {.pace = 1 + random_below(&seed, 3)};
        p.n_private = 1 + random_below(&seed, 40), p.factor = random_below(&seed, 2) ? 2 : 4;
        p.theta = random_uniform(&seed), p.swing = 4 * random_uniform(&seed);
        p.a = 1000 + random_u64(&seed) % 50000000, p.rho = exp(8 * random_uniform(&seed) - 6);
        const double share = exp(5 * random_uniform(&seed) - 1);
        const bool is_share = p.pace == DPI_PACE_SHARE;
        p.K = dpi_clip_calibrate(p.a, p.factor, is_share ? 1 : p.n_private,
                                 is_share ? p.rho / fmax(1, share) : p.rho);
        dpi_pace_spent spent = {0};
        long double sum = 0;
        int n = 0;
        for (int t = 0; t < 200; t++) {
            const double top = random_below(&seed, 3) ? random_uniform(&seed) : 1;
            const int64_t K = dpi_pace_clip(&p, &spent, top);
            const bool is_over = dpi_pace_is_over(&p, &spent);
            assert_true(K == 0 || (K > 0 && K <= p.K && !is_over));
            /* Over: the quota is met, or the least sure token could have nothing. */
            assert_true(is_over == (p.pace == DPI_PACE_CHANGE ? n == p.n_private
                                                              : !dpi_pace_clip(&p, &spent, 0)));
            if (is_share)
                assert_true((double)K <= (double)p.K * sqrt(1 - top));
            else
                assert_true(K == 0 || K == p.K);
            assert_true(p.pace != DPI_PACE_TOP || K == 0 || top <= p.theta);
            dpi_pace_charge(&p, &spent, K);
            sum += K > 0 ? powl(exact_eta(p.factor * K, p.a), 2) / 8 : 0;
            n += K > 0;
            assert_true(sum <= (long double)spent.rho && spent.n_private == n);
            assert_true(sum <= (long double)p.rho && (is_share || n <= p.n_private));
        }
        exhausted += is_share && sum > .999L * p.rho;
        quota += p.pace == DPI_PACE_TOP && n == p.n_private;
    }
    assert_true(exhausted > 300 && quota > 300); /* both ends were met */
}

TEST(test_decisions) {
    dpi_pace_spent spent = {0};
    dpi_pacing p = {.pace = DPI_PACE_TOP, .n_private = 2, .factor = 2, .theta = .8};
    p.K = 1000, p.a = 1000000, p.rho = INFINITY;
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
    p.n_private = 9, p.swing = 1, p.theta = .35;
    assert_true(dpi_pace_clip(&p, &spent, .9) == 1000);
    p.theta = .352;
    assert_true(dpi_pace_clip(&p, &spent, .9) == 0);
}
