/* Counts with noise: budgets against the formulas, the charge, and what a failure leaves. The
 * law of the noise: audit/audit_counts.c. */
#include <math.h>

#include "dpinfer/counts.h"
#include "tests/support/support.h"

static dpi_counts_options options_of(double epsilon, double delta, int32_t n_groups) {
    dpi_counts_options o;
    dpi_counts_options_init(&o);
    o.epsilon = epsilon, o.delta = delta, o.n_groups = n_groups;
    return o;
}

static dpi_counts_info info_of(const dpi_counts *c) {
    dpi_counts_info info;
    dpi_counts_info_init(&info);
    dpi_counts_info_get(c, &info);
    return info;
}

/* rho is that of the budget, but for the grid of variances; the noise has the variance that
 * n_groups / (2 rho) says. */
TEST(test_budget) {
    for (int32_t n = 1; n <= 64; n *= 4)
        for (double epsilon = .5; epsilon < 9; epsilon *= 2) {
            const dpi_counts_options o = options_of(epsilon, 1e-6, n);
            dpi_counts *c;
            double rho;
            assert_ok(dpi_zcdp_rho(epsilon, 1e-6, &rho, ERR));
            assert_ok(dpi_counts_open(&o, &c, ERR));
            const dpi_counts_info info = info_of(c);
            assert_true(info.rho <= rho && info.rho > rho * .98);
            assert_true(info.epsilon <= epsilon && info.epsilon > epsilon * .98);
            assert_true(fabs(info.deviation * info.deviation * 2 * info.rho / n - 1) < 1e-9);
            assert_true(info.n_left == n && info.charge.id == 0);
            dpi_counts_close(c);
        }
}

TEST(test_refusals) {
    const struct {
        dpi_counts_options o;
        const char *part;
    } refused[] = {{options_of(1, 1e-6, 0), "must be 1..64"},
                   {options_of(1, 1e-6, 65), "must be 1..64"},
                   {options_of(1, 0, 1), "delta"},
                   {options_of(1e-9, 1e-6, 1), "too small"},
                   {{.struct_size = 1}, "struct_size is 1"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        dpi_counts *c;
        assert_error(dpi_counts_open(&refused[i].o, &c, ERR), ARG, refused[i].part);
        assert_null(c);
    }
}

/* Bits that fail: nothing of the counts is left, and the group is spent. */
TEST(test_failure) {
    dpi_counts_options o = options_of(1, 1e-6, 2);
    limited_source bits = {.seed = 1, .n = 40};
    int64_t cells[200];
    dpi_counts *c;
    o.random = limited_bits, o.random_user = &bits;
    assert_ok(dpi_counts_open(&o, &c, ERR));
    for (int i = 0; i < 200; i++)
        cells[i] = 1000;
    assert_int_equal(dpi_counts_release(c, cells, 200, ERR), DPI_STATUS_ENTROPY);
    for (int i = 0; i < 200; i++)
        assert_true(cells[i] == 0);
    assert_int_equal(info_of(c).n_left, 1);
    assert_error(dpi_counts_release(c, cells, 0, ERR), ARG, "1 or more");
    dpi_counts_close(c);
}

/* Each cell has noise of its own, the last one, too: seeded, 7 deviations. */
TEST(test_each_cell) {
    enum { N = 40, ROUNDS = 100 };
    uint64_t seed = 5;
    dpi_counts_options o = options_of(.5, 1e-6, 1);
    double square[N] = {0}, next[N] = {0}, variance = 0;
    o.random = dpi_random_insecure, o.random_user = &seed;
    for (int r = 0; r < ROUNDS; r++) {
        int64_t cells[N] = {0};
        dpi_counts *c;
        assert_ok(dpi_counts_open(&o, &c, ERR));
        assert_ok(dpi_counts_release(c, cells, N, ERR));
        variance = pow(info_of(c).deviation, 2);
        dpi_counts_close(c);
        for (int i = 0; i < N; i++) {
            square[i] += (double)(cells[i] * cells[i]);
            next[i] += (double)(cells[i] * cells[(i + 1) % N]);
        }
    }
    for (int i = 0; i < N; i++) {
        assert_true(fabs(square[i] / ROUNDS / variance - 1) < 7 * sqrt(2. / ROUNDS));
        assert_true(fabs(next[i] / ROUNDS / variance) < 7 / sqrt(ROUNDS));
    }
}
