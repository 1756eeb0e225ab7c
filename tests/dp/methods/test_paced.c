/* test_paced.c - InvisibleInk with a pace through the public interface: what is read, what is
 * refused, what the plan says, and texts that are spread over several samplers. */
#include "tests/dp/samplers.h"

enum { V = 500, N_REF = 6, T = 40 };

static batch text[T];

/* Public logits from nearly sure to nearly even. */
static void random_text(uint64_t seed) {
    for (int t = 0; t < T; t++) {
        const batch_law law = {.n_vocab = V,
                               .n_slots = N_REF,
                               .spread = 2,
                               .sure = exp(3 * random_uniform(&seed) - 1)};
        random_batch(&text[t], &law, &seed);
    }
}

static dpi_sampler_options paced(int32_t pace) {
    dpi_sampler_options o = ink_options(V, N_REF, T, 1, 1);
    o.top_k = 20, o.pace = pace, o.denominator = N_REF;
    o.pace_share = pace == DPI_PACE_SHARE ? 4 : 0;
    o.pace_theta = pace == DPI_PACE_TOP ? .6 : pace == DPI_PACE_CHANGE ? .1 : 0;
    o.pace_tokens = pace == DPI_PACE_SHARE ? 0 : 12;
    return o;
}

/* A free step says so before any reference is read, and then reads none: NaN in their place changes
 * no token, and nothing in their place where none is needed any more. */
TEST(test_free_steps_read_nothing) {
    static batch none;
    for (int y = 0; y < V; y++)
        none.reference[0][y] = NAN;
    for (int32_t pace = DPI_PACE_TOP; pace <= DPI_PACE_SHARE; pace++) {
        uint64_t bits[2] = {7, 7};
        SAMPLER one = begin_text(paced(pace), &bits[0]), *other = begin_text(paced(pace), &bits[1]);
        int n_free = 0, n_private = 0, n_over = 0;
        random_text(100 + (uint64_t)pace);
        for (const batch *b = text; b < END(text); b++) {
            const bool needs = dpi_sampler_needs_references(other);
            const int32_t *ids, n = candidates(other, b, &ids);
            const bool is_free = ids && n == 0;
            memcpy(none.public_logits, b->public_logits, sizeof none.public_logits);
            for (int j = 0; j < N_REF; j++)
                none.slots[j] = needs ? none.reference[0] : NULL;
            assert_true(pace == DPI_PACE_SHARE || needs == (n_private < 12));
            assert_true(is_free || needs);
            n_over += !needs, n_free += is_free, n_private += !is_free;
            assert_int_equal(step(one, b), step(other, is_free ? &none : b));
        }
        assert_true(n_free > 3 && n_private > 3 && n_over > 3);
        assert_int_equal(dpi_sampler_needs_references(other), 0); /* all tokens are drawn */
        assert_true(pace == DPI_PACE_SHARE || n_private <= 12);
    }
}

/* C of a quota, and of a share: dp/PRIVACY.md section 13. */
TEST(test_plan) {
    dpi_sampler_options o = paced(DPI_PACE_TOP), share = paced(DPI_PACE_SHARE);
    dpi_sampler_plan plan = make_plan(&o);
    assert_true(fabs(plan.clip / (N_REF * sqrt(2 * 1. / 12)) - 1) < 1e-6);
    assert_true(plan.n_private == 12 && plan.rho_total <= 1 && plan.rho_total > .999999);
    o.pace_tokens = 0; /* all of them */
    plan = make_plan(&o);
    assert_true(plan.n_private == T && fabs(plan.clip / (N_REF * sqrt(2. / T)) - 1) < 1e-6);
    plan = make_plan(&share);
    assert_true(fabs(plan.clip / (N_REF * sqrt(2. / 4)) - 1) < 1e-6 && plan.rho_total == 1);
    /* br: the epsilon of T_p steps, not of T. */
    double epsilon;
    o.pace_tokens = 12, o.rho = 0, o.epsilon = 3, o.delta = 1e-6, o.accountant = DPI_ACCOUNTANT_BR;
    plan = make_plan(&o);
    assert_ok(dpi_br_epsilon(plan.eta, 12, 1e-6, &epsilon, ERR));
    assert_true(plan.epsilon <= 3 && epsilon <= 3 && epsilon > 2.99);
}

TEST(test_refused) {
    dpi_sampler_options o, good = paced(DPI_PACE_SHARE);
    REFUSED(UNSUPPORTED, "the pace 'share' with the accountant br", o.rho = 0, o.epsilon = 1,
            o.delta = 1e-6, o.accountant = DPI_ACCOUNTANT_BR);
    REFUSED(ARG, "pace_tokens is given, but the pace 'share'", o.pace_tokens = 5);
    good = paced(DPI_PACE_TOP);
    REFUSED(ARG, "pace_share is given, but the pace 'top'", o.pace_share = 5);
    REFUSED(ARG, "pace_theta", o.pace_theta = NAN);
    REFUSED(ARG, "free_top_k is 501", o.free_top_k = V + 1);
    good = ink_options(V, N_REF, T, 1, 1);
    REFUSED(ARG, "free_tau is given, but the pace 'none'", o.free_tau = .5);
    /* A release makes it another one. */
    REFUSED(ARG, "pace is 'auto', must be none, top, change or share", o.pace = DPI_PACE_AUTO);
    REFUSED(ARG, "pace", o.pace = DPI_PACE_AUTO + 1);
}

/* A text whose references are spread over two samplers has the tokens of one: each part decides and
 * pays alike. */
TEST(test_spread) {
    static const int32_t first[] = {0, 2, N_REF};
    for (int32_t pace = DPI_PACE_TOP; pace <= DPI_PACE_SHARE; pace++) {
        const dpi_sampler_options o = paced(pace);
        random_text(200 + (uint64_t)pace);
        compare_parts(&o, text, 2, first, 0);
    }
}
