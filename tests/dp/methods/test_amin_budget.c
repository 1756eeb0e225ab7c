/* test_amin_budget.c - Amin et al. 2024 in whole texts: the ledger under hostile inputs,
 * thresholds, public tokens, a source that fails, and the loss of a text seen from outside. */
#include "tests/dp/methods/amin_world.h"
#include "tests/oracle/statistics.h"

/* ---- The budget under hostile inputs -------------------------------------------------------- */

/* References that all want token 1, public logits that want token 0 (or the same: distance 0). */
static void set_logits(batch *b, bool same) {
    memset(b, 0, sizeof *b);
    b->public_logits[0] = 30;
    for (int j = 0; j < B_MAX; j++) {
        b->reference[j][same ? 0 : 1] = 30;
        b->slots[j] = b->reference[j];
    }
}

/* Steps through whole texts and checks the ledger after every token. */
static dpi_amin_spent check_ledger(const dpi_sampler_options *o, const batch *b, int32_t n_texts,
                                   uint64_t *seed) {
    const dpi_amin_plan plan = dpi_amin_plan_get(o);
    dpi_amin_spent spent = {0};
    SAMPLER s = begin_text(*o, seed);
    for (int32_t i = 0; i < n_texts; i++) {
        assert_ok(dpi_sampler_begin(s, ERR));
        dpi_amin_spent before = spent = dpi_amin_spent_get(s);
        assert_true(spent.n_armed == 0 && spent.n_private == 0);
        for (int32_t t = 0; t < o->n_tokens; t++, before = spent) {
            step(s, b);
            spent = dpi_amin_spent_get(s);
            assert_true(spent.rho <= o->rho);
            /* What instances and tokens cost, from the plan and no other code. */
            const double by_hand =
                spent.n_armed * plan.rho_svt + spent.n_private * dpi_sampler_plan_get(s)->rho_token;
            assert_true(fabs(spent.rho - by_hand) <= by_hand * 1e-14);
            assert_true(spent.n_private <= plan.n_private);
            assert_in_range(spent.n_private - before.n_private, 0, 1);
            if (o->svt_sigma > 0) { /* charged when armed: at most one is ahead of its token */
                assert_in_range(spent.n_armed - spent.n_private, 0, 1);
                assert_in_range(spent.n_armed - before.n_armed, 0, 1);
            }
        }
        int32_t token;
        assert_error(dpi_sampler_step(s, b->public_logits, b->slots, &token, ERR), BUDGET,
                     "all 100 tokens");
    }
    return spent;
}

TEST(test_always_above) {
    uint64_t seed = 6;
    batch b;
    set_logits(&b, false);
    for (int a = 0; a < 3; a++) {
        dpi_sampler_options o = make_options(adjacencies[a], 4, 20);
        o.svt_threshold = -1000;
        /* All ten, then public to the end of the text; an eleventh would not fit. */
        dpi_amin_spent spent = check_ledger(&o, &b, 3, &seed);
        assert_true(spent.n_private == 10 && spent.n_armed == 10);
        assert_true(spent.rho > 20 * .999 && spent.rho <= 20);

        o.svt_sigma = 0; /* every token private while the budget lasts */
        spent = check_ledger(&o, &b, 3, &seed);
        assert_true(spent.n_private == 10 && spent.n_armed == 0);
    }
}

TEST(test_never_above) {
    uint64_t seed = 7;
    batch b;
    dpi_sampler_options o = make_options(DPI_ADJACENCY_REPLACE_BY_NULL, 4, 20);
    set_logits(&b, true);
    o.svt_threshold = 1000;
    /* Armed and charged by the first token; never spent. */
    const dpi_amin_spent spent = check_ledger(&o, &b, 3, &seed);
    assert_true(spent.n_armed == 1 && spent.n_private == 0 && spent.rho > 0);
}

/* Somewhere between, with ragged records. */
TEST(test_sometimes_above) {
    uint64_t seed = 8;
    for (int i = 0; i < 60; i++) {
        dpi_sampler_options o;
        dpi_sampler_plan plan = {.struct_size = sizeof plan};
        batch b;
        random_world(&o, &b, adjacencies[i % 3], &seed);
        o.svt_sigma = .5 + 4 * random_uniform(&seed), o.rho = 200 * random_uniform(&seed);
        o.n_private = 1 + random_below(&seed, 20);
        if (dpi_sampler_plan_make(&o, &plan, NULL) == DPI_STATUS_OK)
            check_ledger(&o, &b, 2, &seed);
    }
}

/* The threshold is noisy anew for each instance. At distance = threshold the first query of an
 * instance is above with probability 1/2, whatever happened before: the share of such instances
 * in a text then varies as that of coin tosses does. With one noise per text it would vary four
 * times as much. */
TEST(test_threshold_is_redrawn) {
    enum { N_TEXTS = 300, N_INSTANCES = 40 };
    uint64_t seed = 9;
    batch b;
    dpi_sampler_options o = make_options(DPI_ADJACENCY_REPLACE_BY_NULL, 4, 400);
    set_logits(&b, true);
    o.svt_threshold = 0, o.n_private = N_INSTANCES, o.n_tokens = 1000;
    SAMPLER s = begin_text(o, &seed);
    double sum = 0, squares = 0;
    for (int i = 0; i < N_TEXTS; i++) {
        int n_at_once = 0;
        assert_ok(dpi_sampler_begin(s, ERR));
        for (dpi_amin_spent spent = {0}, before; spent.n_private < N_INSTANCES;) {
            before = spent;
            step(s, &b);
            spent = dpi_amin_spent_get(s);
            n_at_once += spent.n_armed > before.n_armed && spent.n_private > before.n_private;
        }
        sum += n_at_once, squares += n_at_once * n_at_once;
    }
    const double mean = sum / N_TEXTS, variance = squares / N_TEXTS - mean * mean;
    assert_true(fabs(mean / N_INSTANCES - .5) < 4 * .5 / sqrt(N_TEXTS * N_INSTANCES));
    assert_true(variance < 1.5 * N_INSTANCES / 4.0);
}

/* Public tokens: their own temperature and Top-k, whatever the references. */
TEST(test_public_tokens) {
    enum { N = 20000, K_PUBLIC = 6 };
    uint64_t seed = 10;
    double count[V] = {0}, expected[V], z = 0;
    batch b;
    dpi_sampler_options o;
    random_world(&o, &b, DPI_ADJACENCY_REPLACE_BY_NULL, &seed);
    o.svt_threshold = 1000, o.svt_sigma = 10, o.rho = 1e3, o.tau_public = .7;
    o.top_k = K_PUBLIC, o.n_tokens = N;
    for (int y = 0; y < V; y++) { /* the six largest: 17, 18, 19, 37, 38, 39 */
        b.public_logits[y] = (float)(y % 20) / 4 + (float)y / 1000;
        z += expected[y] = y % 20 >= 17 ? exp((double)b.public_logits[y] / .7) : 0;
    }
    SAMPLER s = begin_text(o, &seed);
    for (int i = 0; i < N; i++)
        count[step(s, &b)]++;
    assert_int_equal(dpi_amin_spent_get(s).n_private, 0);
    for (int y = 0; y < V; y++) {
        expected[y] *= N / z;
        assert_true(expected[y] > 0 || count[y] == 0);
    }
    assert_true(counts_p(count, expected, V) > 1e-4);
}

/* Wherever the bits run out: no token, an error, and never more than the budget afterwards. */
TEST(test_a_source_that_fails) {
    for (int32_t n = 0; n < 60; n++) {
        dpi_sampler_options o = make_options(DPI_ADJACENCY_ADD_REMOVE, 4, 20);
        limited_source l = {.seed = (uint64_t)n};
        batch b;
        set_logits(&b, n % 2);
        o.svt_threshold = n % 2 ? 1 : -1, o.random = limited_bits, o.random_user = &l;
        SAMPLER s = open_sampler(&o);
        assert_ok(dpi_sampler_begin(s, ERR));
        int32_t n_failed = 0;
        for (int32_t t = 0; t < 60; t++) {
            int32_t token = -7;
            l.n = n;
            dpi_status status = dpi_sampler_step(s, b.public_logits, b.slots, &token, ERR);
            if (status != DPI_STATUS_OK) {
                assert_error(status, ENTROPY, "random source");
                assert_int_equal(token, -7);
                n_failed++;
            }
            assert_true(dpi_amin_spent_get(s).rho <= o.rho);
            assert_true(dpi_amin_spent_get(s).n_private <= 10);
        }
        assert_true(n > 0 || n_failed == 60);
    }
}

/* ---- Black box: a whole text on a small alphabet -------------------------------------------- */

/* Outcome of a text of three tokens over two letters: which letter and whether private; of two
 * records and of the second alone, with the same denominator. The logarithm of the ratio of any
 * outcome's probabilities is at most n (eta + svt_epsilon). */
TEST(test_black_box) {
    enum { N = 40000, N_OUTCOMES = 64 };
    static int32_t count[2][N_OUTCOMES];
    static const float wants_1[2] = {0, 30}, wants_0[2] = {3, 0};
    uint64_t seed = 11;
    dpi_sampler_options o = make_options(DPI_ADJACENCY_ADD_REMOVE, 2, .4);
    o.n_vocab = 2, o.n_tokens = 3, o.n_private = 1, o.svt_sigma = 2, o.svt_threshold = .5;
    double bound = 0, largest = 0;
    for (int side = 0; side < 2; side++, o.n_ref--) {
        const batch b = {.public_logits = {3, 0}, .slots = {side ? wants_0 : wants_1, wants_0}};
        SAMPLER s = begin_text(o, &seed);
        bound = dpi_sampler_plan_get(s)->eta + dpi_amin_plan_get(&o).svt_epsilon;
        for (int i = 0; i < N; i++) {
            int outcome = 0, n_private = 0;
            assert_ok(dpi_sampler_begin(s, ERR));
            for (int t = 0; t < 3; t++) {
                const int32_t token = step(s, &b), n = dpi_amin_spent_get(s).n_private;
                outcome = outcome << 2 | token << 1 | (n - n_private);
                n_private = n;
            }
            count[side][outcome]++;
        }
    }
    assert_true(bound < 2);
    for (int k = 0; k < N_OUTCOMES; k++) {
        if (count[0][k] < 30 || count[1][k] < 30)
            continue;
        double loss = fabs(log((double)count[0][k] / count[1][k]));
        assert_true(loss <= bound + 4 * sqrt(1.0 / count[0][k] + 1.0 / count[1][k]));
        largest = fmax(largest, loss);
    }
    assert_true(largest > .2 * bound); /* the records do differ */
}
