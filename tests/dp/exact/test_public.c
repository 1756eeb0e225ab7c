/* test_public.c - the public half of a step, P and V_k+, against sorting. (test_sampler.c has the
 * formulas at small vocabularies.) */
#include <math.h>

#include "dp/exact/public.h"
#include "tests/support/support.h"

enum { N_MAX = 3000 };

static int descending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* V_k+ by its definition. */
static void check_support(const int64_t *fixed, int32_t n, int32_t k, int64_t D, int64_t slack) {
    static int64_t sorted[N_MAX];
    static int32_t support[N_MAX];
    memcpy(sorted, fixed, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, descending);
    const size_t n_support = dpi_support_find(fixed, n, k, D, slack, support);
    size_t at = 0;
    for (int32_t y = 0; y < n; y++)
        if (k == 0 || D * fixed[y] >= D * sorted[k - 1] - slack) {
            assert_true(at < n_support && support[at] == y);
            at++;
        }
    assert_true(at == n_support);
}

static int64_t value(int shape, int32_t i, int32_t n, uint64_t *seed) {
    switch (shape) {
    case 0: return -(int64_t)(random_u64(seed) >> 30);      /* anywhere */
    case 1: return -INT64_C(10485760000);                   /* all equal, as low as it gets */
    case 2: return -i;                                      /* sorted, either way */
    case 3: return i - n;
    case 4: return i < 40 ? -i % 7 : -(INT64_C(1) << 30);   /* few large ones, side by side */
    case 5: return i > n - 9 ? 0 : -(INT64_C(1) << 20) * i; /* at the end */
    case 6: return -(int64_t)random_below(seed, 5);         /* ties */
    default: return i % 512 == 3 ? -i : -(INT64_C(1) << 33) - i; /* a stride */
    }
}

static void test_support(void **state) {
    (void)state;
    static const int32_t sizes[] = {1, 2, 100, 511, 512, 513, 1023, 1024, 1500, 2999};
    static const int32_t ks[] = {0, 1, 2, 7, 100, 400, 511, 512, 513, 1000, 2999};
    static int64_t fixed[N_MAX];
    uint64_t seed = 3;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int shape = 0; shape < 8; shape++) {
            const int32_t n = sizes[s];
            for (int32_t i = 0; i < n; i++)
                fixed[i] = value(shape, i, n, &seed);
            for (size_t j = 0; j < sizeof ks / sizeof *ks; j++)
                for (int64_t slack = 0; slack < INT64_C(1) << 36; slack = slack * 40 + 3)
                    if (ks[j] <= n)
                        check_support(fixed, n, ks[j], 1 + random_below(&seed, 4096), slack);
        }
}

static void test_fixed_point(void **state) {
    (void)state;
    static float logits[N_MAX];
    static int64_t fixed[N_MAX];
    uint64_t seed = 4;
    dpi_error err;
    for (int round = 0; round < 200; round++) {
        const int32_t n = 1 + random_below(&seed, N_MAX);
        const double scale = pow(10, random_below(&seed, 8) - 4);
        int32_t top, best = 0;
        for (int32_t i = 0; i < n; i++)
            logits[i] = (float)fmax(fmin(scale * random_normal(&seed), 1e4), -1e4);
        if (round % 3 == 0) /* several of the largest; zeros of both signs */
            for (int32_t i = 0; i < n; i++)
                logits[i] = round % 2 ? -fabsf(truncf(logits[i])) : truncf(logits[i]);
        for (int32_t i = 1; i < n; i++)
            best = logits[i] > logits[best] ? i : best;
        assert_ok(dpi_public_fix(logits, n, fixed, &top, &err), &err);
        assert_int_equal(top, best);
        for (int32_t i = 0; i < n; i++) {
            double p = ((double)logits[i] - (double)logits[best]) * 0x1p20;
            assert_true(fixed[i] == llrint(fmax(p, -1e4 * 0x1p20)));
        }
    }
}

static void test_refused(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 10000.001f, -10000.001f, 3e38f};
    float logits[20] = {1e4f, -1e4f};
    int64_t fixed[20];
    dpi_error err;
    assert_ok(dpi_public_fix(logits, 20, fixed, NULL, &err), &err);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        logits[13] = logits[17] = odd[i];
        assert_error(dpi_public_fix(logits, 20, fixed, NULL, &err), DPI_STATUS_NUMERIC, &err,
                     "public logit 13 of 20");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_support),
        cmocka_unit_test(test_fixed_point),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
