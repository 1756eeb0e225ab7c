/* Membership inference. Oracles: closed forms, sums over all pairs, randomised response, whose
 * epsilon is known; tests/tools/eval.sh has the whole of it a second time. */
#include "eval/members.h"
#include "eval/ngram.h"
#include "tests/eval/eval_support.h"

/* r right guesses of r: q^r = alpha. With delta the bound falls, to none at all. */
TEST(test_one_run) {
    for (int32_t r = 5; r < 200; r += 13) {
        const double q = pow(.05, 1.0 / r);
        assert_near(dpi_canary_epsilon(1000, r, r, 0, .05), log(q / (1 - q)));
    }
    assert_true(dpi_canary_epsilon(100, 100, 50, 0, .05) == 0);
    const double pure = dpi_canary_epsilon(1000, 100, 90, 0, .05);
    const double small = dpi_canary_epsilon(1000, 100, 90, 1e-6, .05);
    assert_true(pure > 1.4 && pure < log(9) && small < pure && small > pure - .05);
    assert_true(dpi_canary_epsilon(1000, 100, 90, .01, .05) == 0);
}

/* Nobody in the wrong place: bounds in closed form. Everybody: none. */
TEST(test_separated) {
    enum { N = 40 };
    double members[N], controls[N];
    eval_ranking r;
    for (int i = 0; i < N; i++)
        members[i] = 10 + i, controls[i] = -i;
    assert_ok(eval_rank(members, N, controls, N, 0, &r, ERR));
    assert_true(r.auc == 1 && r.auc_low == 1 && r.tpr == 1 && r.tpr_low == 1);
    const double share = pow(.025, 1.0 / (N / 2)), q = pow(.05, 1.0 / (2 * N / 10 * 2));
    assert_near(r.epsilon, log(share / (1 - share)));
    assert_near(r.epsilon_one_run, log(q / (1 - q)));
    assert_true(r.roc_tpr[0] == 1 && r.roc_tpr[EVAL_ROC_POINTS - 1] == 1);
    assert_ok(eval_rank(controls, N, members, N, 0, &r, ERR));
    assert_true(r.auc == 0 && r.tpr == 0 && r.epsilon_one_run == 0 && r.epsilon == 0);
    for (int i = 0; i < N; i++)
        members[i] = controls[i] = 3;
    assert_ok(eval_rank(members, N, controls, N, 0, &r, ERR));
    assert_true(r.auc == .5 && r.tpr == 0 && r.epsilon == 0 && r.epsilon_one_run == 0);
    assert_error(eval_rank(members, 1, controls, N, 0, &r, ERR), ARG,
                 "found 1 and 40, allowed 2 or more");
}

/* Against sums over all pairs, and every threshold. */
TEST(test_pairs) {
    enum { N = 150, M = 230 };
    double members[N], controls[M], area = 0, tpr = 0;
    uint64_t seed = 3;
    eval_ranking r;
    for (int i = 0; i < N; i++)
        members[i] = floor(8 * (random_normal(&seed) + 1)); /* there are ties */
    for (int i = 0; i < M; i++)
        controls[i] = floor(8 * random_normal(&seed));
    for (int i = 0; i < N; i++) {
        int above = 0, wrong = 0;
        for (int k = 0; k < M; k++) {
            area += members[i] > controls[k] ? 1 : members[i] == controls[k] ? .5 : 0;
            wrong += controls[k] >= members[i];
        }
        for (int k = 0; k < N; k++)
            above += members[k] >= members[i];
        if (wrong <= M / 100 && above > tpr)
            tpr = above;
    }
    assert_ok(eval_rank(members, N, controls, M, 0, &r, ERR));
    assert_near(r.auc, area / (N * M));
    assert_near(r.tpr, tpr / N);
    assert_true(r.auc_low < r.auc && r.auc < r.auc_high && r.tpr_low <= r.tpr);
    /* The standard error of the area (Hanley, McNeil 1982), within a third. */
    const double a = r.auc, q1 = a / (2 - a), q2 = 2 * a * a / (1 + a);
    const double error =
        sqrt((a * (1 - a) + (N - 1) * (q1 - a * a) + (M - 1) * (q2 - a * a)) / (N * M));
    assert_true(fabs((r.auc_high - r.auc_low) / (2 * 1.96 * error) - 1) < .33);
}

/* Randomised response with epsilon 1: bounds hold in 95 of 100 cases, and are not idle. */
TEST(test_response) {
    enum { N = 250, CASES = 200 };
    static double members[N], controls[N];
    const double q = 1 / (1 + exp(-1));
    int wrong[2] = {0};
    double sum[2] = {0};
    uint64_t seed = 12;
    for (int c = 0; c < CASES; c++) {
        eval_ranking r;
        for (int i = 0; i < N; i++) {
            members[i] = (random_uniform(&seed) < q) + 1e-6 * random_uniform(&seed);
            controls[i] = (random_uniform(&seed) >= q) + 1e-6 * random_uniform(&seed);
        }
        assert_ok(eval_rank(members, N, controls, N, 0, &r, ERR));
        wrong[0] += r.epsilon > 1;
        wrong[1] += r.epsilon_one_run > 1;
        sum[0] += r.epsilon / CASES;
        sum[1] += r.epsilon_one_run / CASES;
    }
    assert_true(wrong[0] <= 20 && wrong[1] <= 20);
    assert_true(sum[0] > .3 && sum[1] > .3);
}

/* "a b a b", "a c": bigrams by hand. p_1(a) = (3 + 4/5) / 12, after a: b twice, c once. */
TEST(test_ngram) {
    OWN_TEXTS made = TEXTS("a b a b", "a c");
    OWN_TEXTS said = TEXTS("a c", "x");
    eval_ngram *m;
    assert_ok(eval_ngram_train(&made, 2, -1, &m, ERR));
    /* 8 words with the ends: a 3, b 2, c 1, end 2; four different ones, p_0 = 1/5. */
    const double a1 = (3 + 4 * .2) / 12, c1 = (1 + 4 * .2) / 12, end1 = (2 + 4 * .2) / 12;
    const double a2 = (2 + 1 * a1) / 3;       /* begins: a twice */
    const double c2 = (1 + 2 * c1) / (3 + 2); /* after a: b twice, c once */
    const double end2 = (1 + 1 * end1) / 2;   /* after c: the end */
    assert_near(eval_ngram_score(m, &said.at[0]), (log(a2) + log(c2) + log(end2)) / 3);
    const double x1 = 4 * .2 / 12, x2 = (0 + 1 * x1) / 3;
    assert_near(eval_ngram_score(m, &said.at[1]), (log(x2) + log(end1)) / 2);
    eval_ngram_free(m);
    assert_ok(eval_ngram_train(&made, 2, 0, &m, ERR)); /* "a c" alone */
    const double once = (1 + (1 + 3 * .25) / 6) / 2;
    assert_near(eval_ngram_score(m, &said.at[0]), log(once));
    eval_ngram_free(m);
}

TEST(test_exposure) {
    const double controls[] = {1, 2, 3, 4, 5, 6, 7};
    int32_t rank;
    assert_near(eval_exposure(8, controls, 7, &rank), 3);
    assert_int_equal(rank, 1);
    assert_near(eval_exposure(4, controls, 7, &rank), 3 - log2(5)); /* a tie is before it */
    assert_int_equal(rank, 5);
    assert_near(eval_exposure(0, controls, 7, &rank), 0);
}
