/* Bounds of counts, and of epsilon from guesses: against closed forms, sums in full, tables, and a
 * second program. */
#include <math.h>

#include "dpinfer/bounds.h"
#include "tests/support/support.h"

static void assert_near(double found, double truth) { assert_true(fabs(found - truth) < 1e-9); }

/* Shares of none and of all have closed forms; the rest against sums in full. */
TEST(test_binomial) {
    assert_near(dpi_binomial_lower(20, 20, .025), pow(.025, 1.0 / 20));
    assert_near(dpi_binomial_upper(20, 0, .025), 1 - pow(.025, 1.0 / 20));
    assert_near(dpi_binomial_lower(20, 0, .025), 0);
    assert_near(dpi_binomial_upper(20, 20, .025), 1);
    assert_true(dpi_binomial_lower(0, 0, .025) == 0 && dpi_binomial_upper(0, 0, .025) == 1);
    /* Clopper, Pearson 1934: 95 % of 5 of 10 are .187 to .813. */
    assert_true(fabs(dpi_binomial_lower(10, 5, .025) - .1871) < 5e-5);
    assert_true(fabs(dpi_binomial_upper(10, 5, .025) - .8129) < 5e-5);
    for (int32_t n = 1; n < 60; n += 7)
        for (int32_t k = 0; k <= n + 1; k++)
            for (double p = .01; p < 1; p += .14) {
                double sum = 0;
                for (int32_t i = k; i <= n; i++)
                    sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0)) *
                           pow(p, i) * pow(1 - p, n - i);
                assert_near(dpi_binomial_tail(n, k, p), sum);
            }
    assert_true(fabs(dpi_binomial_tail(1000000, 500000, .5) - .5) < 1e-3);
}

TEST(test_tables) {
    const struct row {
        double found, truth, tolerance;
    } rows[] = {
        /* Closed forms at the ends: alpha^(1/n), 1 - (1 - alpha)^(1/n). */
        {dpi_binomial_lower(10, 10, .025), pow(.025, .1), 1e-9},
        {dpi_binomial_lower(10, 1, .025), 1 - pow(.975, .1), 1e-9},
        {dpi_binomial_upper(10, 0, .025), 1 - pow(.025, .1), 1e-9},
        {dpi_binomial_lower(10, 0, .025), 0, 1e-9},
        /* Clopper and Pearson's 95 % interval for 5 of 20, from tables. */
        {dpi_binomial_lower(20, 5, .025), .0866, 5e-5},
        {dpi_binomial_upper(20, 5, .025), .4910, 5e-5},
        /* By a second program after Steinke, Nasr and Jagielski 2023, appendix D. */
        {dpi_canary_epsilon(1000, 400, 400, 1e-10, 1e-4), 3.759586791, 1e-7},
        {dpi_canary_epsilon(1000, 100, 100, 1e-5, .05), 3.465376348, 1e-7},
        {dpi_canary_epsilon(1000, 1000, 700, 0, .05), .732010862, 1e-7},
        {dpi_canary_epsilon(500, 200, 180, 1e-5, .01), 1.653762434, 1e-7},
        {dpi_canary_epsilon(100, 50, 26, 0, .05), 0, 1e-7},
        {dpi_canary_epsilon(2000, 300, 260, 1e-6, 1e-3), 1.357138425, 1e-7},
    };
    for (const struct row *r = rows; r < END(rows); r++)
        if (!(fabs(r->found - r->truth) < r->tolerance))
            fail_msg("row %td: %.9g, wanted %.9g", r - rows, r->found, r->truth);
}
