/* test_public.c - the public half of a step, P and V_k+, against sorting. (test_sampler.c has the
 * formulas at small vocabularies.) */
#include "dp/exact/public.h"
#include "tests/oracle/law.h"
#include "tests/support/support.h"

enum { N_MAX = LAW_VOCAB_MAX };

static int64_t value(int shape, int32_t i, int32_t n, uint64_t *seed) {
    const int64_t values[] = {
        -(int64_t)(random_u64(seed) >> 30), /* anywhere */
        -INT64_C(10485760000),              /* all equal, as low as it gets */
        -i,                                 /* sorted, either way */
        i - n,
        i < 40 ? -i % 7 : -(INT64_C(1) << 30),       /* few large ones, side by side */
        i > n - 9 ? 0 : -(INT64_C(1) << 20) * i,     /* at the end */
        -(int64_t)random_below(seed, 5),             /* ties */
        i % 512 == 3 ? -i : -(INT64_C(1) << 33) - i, /* a stride */
    };
    return values[shape];
}

static void check_support(const int64_t *fixed, int32_t n, int32_t k, int64_t D, int64_t slack) {
    static int32_t support[N_MAX], wanted[N_MAX];
    const size_t n_wanted = (size_t)law_support(fixed, n, k, D, slack, wanted);
    assert_int_equal(dpi_support_find(fixed, n, k, D, slack, support), n_wanted);
    assert_memory_equal(support, wanted, n_wanted * sizeof *support);
}

TEST(test_support) {
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

TEST(test_fixed_point) {
    static float logits[N_MAX];
    static int64_t fixed[N_MAX], wanted[N_MAX];
    uint64_t seed = 4;
    for (int round = 0; round < 200; round++) {
        const int32_t n = 1 + random_below(&seed, N_MAX);
        const double scale = pow(10, random_below(&seed, 8) - 4);
        int32_t top, best = 0;
        for (int32_t i = 0; i < n; i++) {
            logits[i] = (float)fmax(fmin(scale * random_normal(&seed), 1e4), -1e4);
            if (round % 3 == 0) /* several of the largest; zeros of both signs */
                logits[i] = round % 2 ? -fabsf(truncf(logits[i])) : truncf(logits[i]);
            best = logits[i] > logits[best] ? i : best;
        }
        law_public(logits, n, wanted);
        assert_ok(dpi_public_fix(logits, n, fixed, &top, ERR));
        assert_int_equal(top, best);
        assert_memory_equal(fixed, wanted, (size_t)n * sizeof *fixed);
    }
}

TEST(test_refused) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 10000.001f, -10000.001f, 3e38f};
    float logits[20] = {1e4f, -1e4f};
    int64_t fixed[20];
    assert_ok(dpi_public_fix(logits, 20, fixed, NULL, ERR));
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        logits[13] = logits[17] = odd[i];
        assert_error(dpi_public_fix(logits, 20, fixed, NULL, ERR), NUMERIC,
                     "public logit 13 of 20");
    }
}
