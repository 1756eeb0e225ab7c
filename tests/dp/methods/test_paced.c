/* test_paced.c - InvisibleInk with a pace through the public interface: what is read, what is
 * refused, what the plan says, and texts that are spread over several samplers. */
#include <math.h>

#include "tests/support/support.h"

enum { V = 500, N_REF = 6, T = 40 };

static float public_logits[T][V], references[T][N_REF][V], nothing[V];

/* Public logits from nearly sure to nearly even. */
static void make_logits(uint64_t seed) {
    for (int t = 0; t < T; t++) {
        const double sure = exp(3 * random_uniform(&seed) - 1);
        for (int y = 0; y < V; y++) {
            public_logits[t][y] = (float)(sure * random_normal(&seed));
            for (int j = 0; j < N_REF; j++)
                references[t][j][y] = public_logits[t][y] + (float)(2 * random_normal(&seed));
        }
    }
    for (int y = 0; y < V; y++)
        nothing[y] = NAN;
}

static dpi_sampler_options paced(int32_t pace, uint64_t *seed) {
    dpi_sampler_options o = ink_options(V, N_REF, T, 1, 1);
    o.top_k = 20;
    o.pace = pace;
    o.denominator = N_REF;
    if (pace == DPI_PACE_SHARE)
        o.pace_share = 4;
    else
        o.pace_theta = pace == DPI_PACE_TOP ? .6 : .1;
    if (pace != DPI_PACE_SHARE)
        o.pace_tokens = 12;
    o.random = dpi_random_insecure;
    o.random_user = seed;
    return o;
}

/* A free step says so before any reference is read, and then reads none: NaN in their place changes
 * no token, and nothing in their place where none is needed any more. */
static void test_free_steps_read_nothing(void **state) {
    (void)state;
    for (int32_t pace = DPI_PACE_TOP; pace <= DPI_PACE_SHARE; pace++) {
        uint64_t seeds[2] = {7, 7};
        const dpi_sampler_options a = paced(pace, &seeds[0]), b = paced(pace, &seeds[1]);
        dpi_sampler *one = open_sampler(&a), *other = open_sampler(&b);
        int n_free = 0, n_private = 0, n_over = 0;
        dpi_error err;
        make_logits(100 + (uint64_t)pace);
        assert_ok(dpi_sampler_begin(one, &err), &err);
        assert_ok(dpi_sampler_begin(other, &err), &err);
        for (int t = 0; t < T; t++) {
            const float *all[N_REF], *none[N_REF];
            const int32_t *ids;
            int32_t n, x, y;
            for (int j = 0; j < N_REF; j++) {
                all[j] = references[t][j];
                none[j] = dpi_sampler_needs_references(other) ? nothing : NULL;
            }
            assert_ok(dpi_sampler_candidates(other, public_logits[t], &ids, &n, &err), &err);
            const bool is_free = ids && n == 0;
            if (pace != DPI_PACE_SHARE)
                assert_int_equal(dpi_sampler_needs_references(other), n_private < 12);
            assert_true(is_free || dpi_sampler_needs_references(other));
            n_over += !dpi_sampler_needs_references(other);
            n_free += is_free;
            n_private += !is_free;
            assert_ok(dpi_sampler_step(one, public_logits[t], all, &x, &err), &err);
            assert_ok(dpi_sampler_step(other, public_logits[t], is_free ? none : all, &y, &err),
                      &err);
            assert_int_equal(x, y);
        }
        assert_true(n_free > 3 && n_private > 3 && n_over > 3);
        assert_int_equal(dpi_sampler_needs_references(other), 0); /* all tokens are drawn */
        if (pace != DPI_PACE_SHARE)
            assert_true(n_private <= 12);
        dpi_sampler_free(one);
        dpi_sampler_free(other);
    }
}

/* C of a quota, and of a share: dp/PRIVACY.md section 13. */
static void test_plan(void **state) {
    (void)state;
    uint64_t seed = 1;
    dpi_sampler_plan plan;
    dpi_error err;
    dpi_sampler_plan_init(&plan);
    dpi_sampler_options o = paced(DPI_PACE_TOP, &seed);
    assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
    assert_true(fabs(plan.clip / (N_REF * sqrt(2 * 1. / 12)) - 1) < 1e-6);
    assert_true(plan.n_private == 12 && plan.rho_total <= 1 && plan.rho_total > .999999);
    o.pace_tokens = 0; /* all of them */
    assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
    assert_true(plan.n_private == T && fabs(plan.clip / (N_REF * sqrt(2. / T)) - 1) < 1e-6);
    o = paced(DPI_PACE_SHARE, &seed);
    assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
    assert_true(fabs(plan.clip / (N_REF * sqrt(2. / 4)) - 1) < 1e-6 && plan.rho_total == 1);
    /* br: the epsilon of T_p steps, not of T. */
    o = paced(DPI_PACE_TOP, &seed);
    o.rho = 0;
    o.epsilon = 3;
    o.delta = 1e-6;
    o.accountant = DPI_ACCOUNTANT_BR;
    double epsilon;
    assert_ok(dpi_sampler_plan_make(&o, &plan, &err), &err);
    assert_ok(dpi_br_epsilon(plan.eta, 12, 1e-6, &epsilon, &err), &err);
    assert_true(plan.epsilon <= 3 && epsilon <= 3 && epsilon > 2.99);
}

static void test_refused(void **state) {
    (void)state;
    uint64_t seed = 1;
    dpi_sampler_options o = paced(DPI_PACE_SHARE, &seed);
    o.accountant = DPI_ACCOUNTANT_BR;
    o.rho = 0;
    o.epsilon = 1;
    o.delta = 1e-6;
    assert_refused(&o, DPI_STATUS_UNSUPPORTED, "the pace 'share' with exact composition");
    o = paced(DPI_PACE_SHARE, &seed);
    o.pace_tokens = 5;
    assert_refused(&o, DPI_STATUS_ARG, "pace_tokens is given, but the pace 'share'");
    o = paced(DPI_PACE_TOP, &seed);
    o.pace_share = 5;
    assert_refused(&o, DPI_STATUS_ARG, "pace_share is given, but the pace 'top'");
    o = paced(DPI_PACE_TOP, &seed);
    o.pace_theta = NAN;
    assert_refused(&o, DPI_STATUS_ARG, "pace_theta");
    o = paced(DPI_PACE_TOP, &seed);
    o.free_top_k = V + 1;
    assert_refused(&o, DPI_STATUS_ARG, "free_top_k is 501");
    o = ink_options(V, N_REF, T, 1, 1);
    o.free_tau = .5;
    assert_refused(&o, DPI_STATUS_ARG, "free_tau is given, but the pace 'none'");
    o.free_tau = 0;
    o.pace = DPI_PACE_AUTO; /* a release makes it another one */
    assert_refused(&o, DPI_STATUS_ARG, "pace is 'auto', must be none, top, change or share");
    o.pace = DPI_PACE_AUTO + 1;
    assert_refused(&o, DPI_STATUS_ARG, "pace");
}

/* A text whose references are spread over two samplers has the tokens of one: each part decides and
 * pays alike. */
static void test_spread(void **state) {
    (void)state;
    for (int32_t pace = DPI_PACE_TOP; pace <= DPI_PACE_SHARE; pace++) {
        uint64_t seeds[2] = {9, 9}, unused = 5;
        dpi_sampler_options whole = paced(pace, &seeds[0]), left = paced(pace, &seeds[1]),
                            right = paced(pace, &unused);
        left.n_ref = 2;
        right.n_ref = N_REF - 2;
        dpi_sampler *one = open_sampler(&whole), *a = open_sampler(&left),
                    *b = open_sampler(&right);
        dpi_part part;
        dpi_error err;
        dpi_part_init(&part);
        part.count = 2;
        make_logits(200 + (uint64_t)pace);
        assert_ok(dpi_sampler_begin(one, &err), &err);
        for (part.index = 0; part.index < 2; part.index++)
            assert_ok(dpi_sampler_begin_part(part.index ? b : a, &part, &err), &err);
        for (int t = 0; t < T; t++) {
            const float *all[N_REF], *p = public_logits[t];
            int64_t sums[DPI_SUMS_HEADER + V], others[DPI_SUMS_HEADER + V];
            int32_t n, m, x, y;
            for (int j = 0; j < N_REF; j++)
                all[j] = references[t][j];
            assert_ok(dpi_sampler_step(one, p, all, &x, &err), &err);
            assert_ok(dpi_sampler_partial(a, p, all, sums, &n, &err), &err);
            assert_ok(dpi_sampler_partial(b, p, all + 2, others, &m, &err), &err);
            assert_int_equal(n, m);
            assert_ok(dpi_sums_merge(sums, others, n, &err), &err);
            assert_ok(dpi_sampler_step_merged(a, p, sums, n, &y, &err), &err);
            assert_int_equal(x, y);
        }
        dpi_sampler_free(one);
        dpi_sampler_free(a);
        dpi_sampler_free(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_steps_read_nothing),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
