/* test_filter.c - the integer ledger of a record, and where logits are centred. */
#include "dp/account/filter.h"
#include "dp/exact/center.h"
#include "dp/methods/method.h"
#include "tests/oracle/accountant.h"
#include "tests/support/support.h"

static long double unit(dpi_u128 x) { return (long double)x * LN2 * LN2 * 0x1p-99L; }

/* The cost is never below (range a ln2 / 2^48 + 2^-38)^2 / 8, and hardly above. */
TEST(test_cost_is_an_upper_bound) {
    uint64_t seed = 80;
    for (int i = 0; i < 100000; i++) {
        int64_t range = (int64_t)(random_u64(&seed) >> (30 + random_below(&seed, 34)));
        uint64_t a = 945 + (random_u64(&seed) >> (27 + random_below(&seed, 20))) % 38000000000u;
        const long double eta = exact_eta(range, a);
        const dpi_u128 cost = dpi_filter_cost(range, a);
        if ((dpi_u128)(uint64_t)range * a + 1478 >= (dpi_u128)1 << 63) {
            assert_true(cost == (dpi_u128)1 << 126);
            continue;
        }
        assert_true(unit(cost) >= eta * eta / 8 * (1 - 1e-18L));
        /* 1478 and not 1477.3 for the 2^-38. */
        long double above = eta + .7L * LN2 * 0x1p-48L;
        assert_true(unit(cost) <= above * above / 8 * (1 + 1e-17L));
    }
    assert_true(dpi_filter_cost(0, 945) == 1478 * 1478);
}

TEST(test_limit_is_a_lower_bound) {
    uint64_t seed = 81;
    for (int i = 0; i < 100000; i++) {
        double rho = exp(80 * random_uniform(&seed) - 66);
        if (rho > 1e6)
            continue;
        dpi_u128 limit = dpi_filter_limit(rho);
        assert_true(unit(limit) <= rho);
        assert_true(rho <= 1e-10 || unit(limit) >= rho * (1 - 1e-15L));
        assert_true(limit < (dpi_u128)1 << 121);
    }
    assert_true(dpi_filter_limit(1e6) >> 119 == 1 && dpi_filter_limit(1e-300) == 0);
}

/* To the last unit: what fits is paid, one more is not, and then nothing any more. */
TEST(test_pay) {
    const dpi_u128 most = (dpi_u128)1 << 126;
    uint64_t seed = 82;
    for (int i = 0; i < 10000; i++) {
        dpi_u128 limit = dpi_filter_limit(exp(70 * random_uniform(&seed) - 57)), after;
        dpi_u128 spent = limit / 7 * (dpi_u128)random_below(&seed, 8);
        assert_true(dpi_filter_pay(spent, limit - spent, limit, &after) == UINT64_MAX);
        assert_true(after == limit);
        assert_true(dpi_filter_pay(spent, limit - spent + 1, limit, &after) == 0);
        assert_true(after == most);
        assert_true(dpi_filter_pay(most, dpi_filter_cost(0, 945), limit, &after) == 0);
        assert_true(dpi_filter_pay(most, most, limit, &after) == 0 && after == most);
    }
}

/* ---- Centring ------------------------------------------------------------------------------- */

enum { N = 300 };

/* Against a sum of expl. */
TEST(test_log_mass) {
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    uint64_t seed = 83;
    float logits[N];
    int32_t support[N];
    for (int round = 0; round < 3000; round++) {
        double spread = exp(8 * random_uniform(&seed) - 3);
        long double sum = 0;
        size_t n = 0;
        for (int y = 0; y < N; y++) {
            logits[y] = (float)(spread * random_normal(&seed));
            if (round % 3 == 0 && random_below(&seed, 10) == 0)
                logits[y] = odd[random_below(&seed, 3)];
            if (random_below(&seed, 2))
                support[n++] = y, sum += isfinite(logits[y]) ? expl(logits[y]) : 0;
        }
        const double error = fabs(dpi_log_mass(logits, support, n) - (double)logl(sum));
        assert_true(error <= 0x1p-45 + 0x1p-51 * fabs((double)logl(sum)));
    }
}

/* Finite for any bits; nothing but non-finite entries is allowed too. */
TEST(test_log_mass_of_anything) {
    uint64_t seed = 84;
    float logits[N];
    int32_t support[N];
    for (int round = 0; round < 3000; round++) {
        for (int y = 0; y < N; y++) {
            uint32_t bits = (uint32_t)random_u64(&seed);
            memcpy(&logits[y], &bits, sizeof bits);
            if (round % 5 == 0)
                logits[y] = y % 2 ? NAN : -INFINITY;
            support[y] = y;
        }
        assert_true(isfinite(dpi_log_mass(logits, support, 1 + (size_t)random_below(&seed, N))));
    }
}
