/* Suggestions: C by the formula of docs/spec.md section 4, the order of preference, what is
 * refused; budgets that fit into a ledger; what a pace buys. */
#include <math.h>

#include "dpinfer/account.h"
#include "dpinfer/suggest.h"
#include "tests/support/support.h"

static dpi_suggestion all[DPI_SUGGESTIONS_MAX];
static int32_t n, chosen;

static dpi_sampler_options options_of(double epsilon, int32_t n_tokens) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    o.epsilon = epsilon, o.delta = 1e-5;
    o.n_tokens = n_tokens, o.n_vocab = 32000;
    return o;
}

/* rho = T eta^2 / 8 with eta = 2C / (B tau), of the rho that is (epsilon, delta)-DP. */
TEST(test_formula) {
    const dpi_sampler_options o = options_of(5, 200);
    double rho;
    assert_ok(dpi_zcdp_rho(5, 1e-5, &rho, ERR));
    assert_ok(dpi_suggest(&o, NULL, 5000, 500, all, &n, &chosen, ERR));
    assert_true(n > 5);
    for (int32_t i = 0; i < n; i++) {
        const double clip = all[i].batch * sqrt(2 * rho / all[i].n_tokens);
        assert_true(fabs(all[i].clip / clip - 1) < 1e-4);
        assert_true(fabs(log(all[i].factor) / (2 * all[i].clip) - 1) < 1e-9);
        assert_int_equal(all[i].hearing, all[i].factor >= 100  ? DPI_HEARING_WELL
                                         : all[i].factor >= 10 ? DPI_HEARING_HEARD
                                                               : DPI_HEARING_HARDLY);
        assert_true(all[i].n_units == (int64_t)all[i].batch * all[i].n_texts);
        assert_true(all[i].n_units <= 5000);
    }
    assert_non_null(dpi_hearing_text(DPI_HEARING_WELL));
    assert_null(dpi_hearing_text(3));
}

static void expect_choice(double epsilon, int64_t n_units, int32_t n_texts, int32_t want_texts,
                          int32_t want_tokens) {
    const dpi_sampler_options o = options_of(epsilon, 200);
    assert_ok(dpi_suggest(&o, NULL, n_units, n_texts, all, &n, &chosen, ERR));
    assert_int_equal(all[chosen].n_texts, want_texts);
    assert_int_equal(all[chosen].n_tokens, want_tokens);
}

TEST(test_choice) {
    expect_choice(5, 50000, 500, 500, 200); /* all that was wanted */
    for (int32_t i = 0; i < chosen; i++)
        assert_int_equal(all[i].hearing, DPI_HEARING_HARDLY);
    assert_true(all[chosen].hearing > DPI_HEARING_HARDLY);
    expect_choice(5, 5000, 500, 500, 50); /* shorter texts */
    expect_choice(1, 5000, 500, 62, 200); /* fewer texts */
    expect_choice(.01, 20, 10, 1, 200);   /* nothing helps: the largest factor */
    for (int32_t i = 0; i < n; i++)
        assert_true(all[i].factor <= all[chosen].factor && all[i].hearing == DPI_HEARING_HARDLY);
}

/* Batches that stay secret are those of each setting: the same C as a plan of so many has. */
TEST(test_secret_batches) {
    dpi_sampler_options o = options_of(2, 100);
    o.adjacency = DPI_ADJACENCY_ADD_REMOVE;
    o.allocation = 2;
    assert_ok(dpi_suggest(&o, NULL, 1000, 10, all, &n, &chosen, ERR));
    assert_true(n > 2);
    for (int32_t i = 0; i < n; i++) {
        dpi_sampler_plan plan;
        dpi_sampler_plan_init(&plan);
        o.n_ref = o.denominator = all[i].batch, o.n_tokens = all[i].n_tokens;
        o.allocation = all[i].n_texts > 1 ? all[i].n_texts : 0;
        assert_ok(dpi_sampler_plan_make(&o, &plan, ERR));
        assert_true(all[i].clip == plan.clip);
    }
}

/* The same with the pace of public texts: T_p tokens of each have the budget. */
TEST(test_pace) {
    enum { N_VOCAB = 8, TOKENS = 200 };
    static float logits[TOKENS][N_VOCAB];
    dpi_sampler_options o = options_of(5, TOKENS);
    dpi_pace_texts *texts = NULL;
    double rho;
    o.n_vocab = N_VOCAB, o.top_k = 4, o.pace = DPI_PACE_TOP;
    for (int32_t t = 0; t < TOKENS; t++) /* of five tokens the model is sure of four */
        logits[t][t % N_VOCAB] = t % 5 > 0 ? 20 : 0;
    o.n_ref = o.denominator = 10;
    assert_ok(dpi_pace_texts_create(&o, &texts, ERR));
    assert_ok(dpi_pace_texts_add(texts, logits[0], TOKENS, 0, ERR));
    assert_ok(dpi_zcdp_rho(5, 1e-5, &rho, ERR));
    dpi_pace_drop(&o);
    assert_ok(dpi_suggest(&o, texts, 5000, 500, all, &n, &chosen, ERR));
    assert_int_equal(all[chosen].n_tokens, TOKENS); /* heard, as with 50 tokens without a pace */
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(all[i].n_private, all[i].n_tokens / 5);
        const double clip = all[i].batch * sqrt(2 * rho / all[i].n_private);
        assert_true(fabs(all[i].clip / clip - 1) < 1e-4);
    }
    assert_ok(dpi_suggest(&o, NULL, 5000, 500, all, &n, &chosen, ERR));
    assert_int_equal(all[chosen].n_private, 0);
    dpi_pace_texts_free(texts);
}

TEST(test_refused) {
    dpi_sampler_options o = options_of(5, 200);
    assert_error(dpi_suggest(&o, NULL, 499, 500, all, &n, &chosen, ERR), ARG,
                 "n_texts: found '500', allowed 1..499");
    o.delta = 1. / 5000; /* as a run of so many units */
    assert_error(dpi_suggest(&o, NULL, 5000, 500, all, &n, &chosen, ERR), ARG,
                 "delta: found 0.0002 with 5000 records, allowed less than 1 / number of records");
    o.delta = .99 / 5000;
    assert_ok(dpi_suggest(&o, NULL, 5000, 500, all, &n, &chosen, ERR));
    o.epsilon = 0;
    assert_error(dpi_suggest(&o, NULL, 5000, 500, all, &n, &chosen, ERR), ARG, "");
    o = options_of(5, 200);
    o.method = DPI_METHOD_AMIN;
    assert_error(dpi_suggest(&o, NULL, 5000, 500, all, &n, &chosen, ERR), UNSUPPORTED,
                 "InvisibleInk alone");
}

/* rho is charged as order x rho: of what is left the largest number of three digits that is found
 * is a little below. Of an epsilon it is that of the rho that is left. */
TEST(test_budget) {
    dpi_run claim = {.struct_size = sizeof claim};
    dpi_dataset_info info;
    double epsilon;
    dpi_dataset_info_init(&info);
    dpi_sampler_plan_init(&claim.plan);
    info.order = 5, info.left = (int64_t)(2 * DPI_LEDGER_ONE);
    claim.method = options_of(0, 200);
    claim.method.n_ref = claim.method.denominator = 100;
    claim.method.rho = 3;
    const double rho = dpi_suggest_budget(&claim, &info);
    assert_true(rho < .4 && rho > .4 * .93 * .99);
    claim.method.rho = 0, claim.method.epsilon = 50;
    assert_ok(dpi_zcdp_epsilon(.4, 1e-5, &epsilon, ERR));
    const double found = dpi_suggest_budget(&claim, &info);
    assert_true(found < epsilon && found > epsilon * .93 * .93 * .99);
    info.left = 0;
    assert_true(dpi_suggest_budget(&claim, &info) == 0);
}

/* A quarter of the tokens: C is twice as large for the same charge, as it goes with 1 / sqrt(T). */
TEST(test_pace_gain) {
    dpi_sampler_options o = options_of(0, 200);
    dpi_sampler_plan plan;
    double clip, epsilon, wanted;
    o.rho = 1;
    o.n_ref = o.denominator = 100;
    dpi_sampler_plan_init(&plan);
    assert_ok(dpi_sampler_plan_make(&o, &plan, ERR));
    assert_int_equal(dpi_pace_gain(&o, &plan, &clip, &epsilon), 0);
    o.pace = DPI_PACE_TOP, o.pace_theta = .5, o.pace_tokens = 50;
    dpi_sampler_plan_init(&plan);
    assert_ok(dpi_sampler_plan_make(&o, &plan, ERR));
    assert_int_equal(dpi_pace_gain(&o, &plan, &clip, &epsilon), 1);
    assert_true(fabs(plan.clip / clip - 2) < 1e-3);
    assert_ok(dpi_zcdp_epsilon(4, 1e-5, &wanted, ERR)); /* four times as many tokens cost rho */
    assert_true(fabs(epsilon / wanted - 1) < 1e-3);
}
