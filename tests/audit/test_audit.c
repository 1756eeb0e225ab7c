/* test_audit.c - the audits of docs/spec.md section 5, one test each, and whether they would notice
 * (tests/mutants.table has the faults that they must catch). */
#include "audit/lines.h"

#include <math.h>

#include "tests/audit/audit_run.h"

/* A tenth of the cases, or $DPI_EFFORT of them. */
static void run_audit(dpi_status (*audit)(dpi_audit *)) {
    const char *effort = getenv("DPI_EFFORT");
    const dpi_audit_options o = begin_audit(effort ? atof(effort) : .1);
    int32_t n;
    end_audit(dpi_audit_all(&o, &audit, 1, print_result, NULL, &n, ERR));
}

#define AUDIT(name)                                                                                \
    TEST(name) { run_audit(dpi_audit_##name); }
AUDIT(invisibleink)
AUDIT(filter)
AUDIT(pace)
AUDIT(mask)
AUDIT(products)
AUDIT(merge)
AUDIT(accounting)
AUDIT(amin)
AUDIT(tang)
AUDIT(votes)
TEST(model_logits) { run_audit(dpi_audit_model); }
AUDIT(random_bits)
AUDIT(draws)
AUDIT(noise)
AUDIT(assignment)
AUDIT(game)
AUDIT(one_run)

/* ---- Power ---------------------------------------------------------------------------------- */

static void keep_result(void *user, const dpi_audit_result *r) { *(dpi_audit_result *)user = *r; }

/* Chance of k heads or more of 8, by counting. */
static double heads(double p, int k) {
    static const double choose[] = {1, 8, 28, 56, 70, 56, 28, 8, 1};
    double sum = 0;
    for (; k <= 8; k++)
        sum += choose[k] * pow(p, k) * pow(1 - p, 8 - k);
    return sum;
}

/* A sampler whose sensitivity is wrong by a factor. The likelihood ratio speaks for the record from
 * 5 wanted tokens of 8 on, which have probability 1 / (1 + e^-eta) against 1/2. */
TEST(test_game_notices) {
    static const double factors[] = {1, 1.25, 2};
    for (const double *factor = factors; factor < END(factors); factor++) {
        uint64_t seed = 7 + (uint64_t)(factor - factors);
        dpi_audit_result result = {0};
        dpi_audit a = {.on_result = keep_result, .user = &result, .err = ERR};
        dpi_audit_options_init(&a.options);
        a.options.random = dpi_random_insecure, a.options.random_user = &seed;
        assert_ok(dpi_audit_play(&a, .5 * *factor, .5));
        const double tpr = heads(1 / (1 + exp(-.5 * *factor)), 5), fpr = heads(.5, 5);
        const double deviation = sqrt((tpr * (1 - tpr) + fpr * (1 - fpr)) / 20000);
        const double margin = 4.24 * (sqrt(tpr * (1 - tpr)) + sqrt(fpr * (1 - fpr))) / sqrt(20000);
        print_message("factor %g: lower bound %.4f, allowed %.4f\n", *factor, result.measured,
                      result.max);
        assert_true(fabs(result.measured - (tpr - fpr - margin)) < 4 * deviation);
        /* No less than this attack gains, no more than docs/spec.md's discretisation. */
        assert_true(result.max > heads(1 / (1 + exp(-.5)), 5) - fpr && result.max < .2872);
        assert_int_equal(result.passed, *factor == 1);
    }
}

/* ---- Statistics ----------------------------------------------------------------------------- */

TEST(test_chi_square_tail) {
    const struct row {
        double found, truth, tolerance;
    } rows[] = {
        /* From tables: the 95 % and 99.9 % points. */
        {dpi_chi_square_tail(24.9958, 15), .05, 1e-5},
        {dpi_chi_square_tail(37.6973, 15), .001, 1e-6},
        {dpi_chi_square_tail(18.3070, 10), .05, 1e-5},
        {dpi_chi_square_tail(82.5287, 63), .05, 1e-5},
    };
    for (const struct row *r = rows; r < END(rows); r++)
        if (!(fabs(r->found - r->truth) < r->tolerance))
            fail_msg("row %td: %.9g, wanted %.9g", r - rows, r->found, r->truth);
}

/* The bits of a token draw it, and one less the token before. */
TEST(test_bits) {
    uint64_t seed = 9;
    for (int round = 0; round < 300; round++) {
        dpi_u128 weights[20];
        uint64_t bits[DPI_DRAW_WORDS];
        for (int i = 0; i < 20; i++)
            weights[i] = ((dpi_u128)random_u64(&seed) << 45 >> random_below(&seed, 69)) + 1;
        for (size_t i = 0; i < 20; i++) {
            dpi_audit_bits(weights, 20, i, bits);
            assert_int_equal(dpi_weights_draw(weights, 20, bits), i);
        }
    }
}

/* Draws go on after the last token of a text: a second look has four times as many. */
TEST(test_count_draws) {
    static const float logits[4];
    uint64_t seed = 3;
    dpi_audit a = {.options = {.random = dpi_random_insecure, .random_user = &seed}, .err = ERR};
    dpi_sampler_options o;
    dpi_audit_defaults(&a, &o);
    o.n_vocab = 4, o.n_ref = 1, o.n_tokens = 4, o.top_k = 0, o.rho = 1;
    for (int pairs = 0; pairs < 2; pairs++) {
        int64_t count[16] = {0}, sum = 0;
        assert_ok(dpi_audit_count_draws(&a, &o, logits, (const float *const[]){logits}, 1000, pairs,
                                        count));
        for (int i = 0; i < 16; i++) {
            assert_int_equal(count[i] > 0, pairs || i < 4);
            sum += count[i];
        }
        assert_int_equal(sum, 1000);
    }
}

/* ---- Options --------------------------------------------------------------------------------- */

static int32_t always(void *user __attribute__((unused))) { return 1; }

TEST(test_options_are_refused) {
    dpi_audit_options o;
    n_failed = -1;
#define AUDIT_REFUSED(part, change)                                                                \
    (dpi_audit_options_init(&o), change,                                                           \
     assert_error(dpi_audit_run(&o, print_result, NULL, &n_failed, ERR), ARG, part))
    AUDIT_REFUSED("effort is 0, must be in .1..1", o.effort = 0);
    AUDIT_REFUSED("effort is nan", o.effort = NAN);
    AUDIT_REFUSED("false_alarm is 0.5, must be 1e-12..0.01", o.false_alarm = .5);
    AUDIT_REFUSED("dpi_audit_options.struct_size is 3", o.struct_size = 3);
    dpi_audit_options_init(&o);
    assert_error(dpi_audit_run(&o, NULL, NULL, &n_failed, ERR), ARG, "NULL");
    assert_int_equal(n_failed, -1);
    o.cancel = always;
    assert_error(dpi_audit_run(&o, print_result, NULL, &n_failed, ERR), CANCELLED,
                 "between audits");
    assert_int_equal(n_failed, 0);
}
