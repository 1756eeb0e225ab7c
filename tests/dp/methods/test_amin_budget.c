/* test_amin_budget.c - Amin et al. 2024 in whole texts: the ledger under hostile inputs,
 * thresholds, public tokens, a source that fails, and the loss of a text seen from outside. */
#include "tests/dp/methods/amin_world.h"

/* ---- The budget under hostile inputs -------------------------------------------------------- */

/* References that all want token 1, public logits that want token 0 (or the same: distance 0). */
static void set_worlds(world *w, bool same) {
    for (int y = 0; y < V; y++) {
        w->public_logits[y] = y == 0 ? 30.f : 0.f;
        for (int j = 0; j < B_MAX; j++)
            w->reference[j][y] = same ? w->public_logits[y] : y == 1 ? 30.f : 0.f;
    }
    for (int j = 0; j < B_MAX; j++)
        w->pointers[j] = w->reference[j];
}

/* What instances and tokens cost, from the plan and no other code: to 1e-14. */
static double spent_by_hand(const dpi_sampler *s, const dpi_amin_spent *spent) {
    return spent->n_armed * dpi_amin_plan_get(dpi_sampler_options_get(s)).rho_svt +
           spent->n_private * dpi_sampler_plan_get(s)->rho_token;
}

/* Steps through whole texts and checks the ledger after every token. */
static void check_ledger(const world *w, int32_t n_texts, uint64_t *seed, dpi_amin_spent *last) {
    dpi_sampler_options o = w->options;
    o.random = dpi_random_insecure;
    o.random_user = seed;
    dpi_sampler *s = open_sampler(&o);
    const int32_t n_private = dpi_amin_plan_get(&o).n_private;
    for (int32_t i = 0; i < n_texts; i++) {
        dpi_amin_spent before = {0};
        assert_ok(dpi_sampler_begin(s, NULL), NULL);
        *last = dpi_amin_spent_get(s);
        assert_true(last->n_armed == 0 && last->n_private == 0);
        for (int32_t t = 0; t < o.n_tokens; t++) {
            int32_t token;
            assert_ok(dpi_sampler_step(s, w->public_logits, w->pointers, &token, NULL), NULL);
            *last = dpi_amin_spent_get(s);
            assert_true(last->rho <= o.rho);
            double by_hand = spent_by_hand(s, last);
            assert_true(last->rho >= by_hand * (1 - 1e-14) && last->rho <= by_hand * (1 + 1e-14));
            assert_true(last->n_private <= n_private);
            assert_in_range(last->n_private - before.n_private, 0, 1);
            if (o.svt_sigma > 0) { /* charged when armed: at most one is ahead of its token */
                assert_in_range(last->n_armed - last->n_private, 0, 1);
                assert_in_range(last->n_armed - before.n_armed, 0, 1);
                /* A private token needs an instance that was paid before or in this step. */
                assert_true(last->n_private == before.n_private ||
                            last->n_armed >= last->n_private);
            }
            before = *last;
        }
        int32_t token;
        dpi_error err;
        assert_error(dpi_sampler_step(s, w->public_logits, w->pointers, &token, &err),
                     DPI_STATUS_BUDGET, &err, "all 100 tokens");
    }
    dpi_sampler_free(s);
}

static void test_always_above(void **state) {
    (void)state;
    uint64_t seed = 6;
    for (int a = 0; a < 3; a++) {
        world w = {.options = make_options(adjacencies[a], 4, 20)};
        dpi_amin_spent spent;
        set_worlds(&w, false);
        w.options.svt_threshold = -1000;
        check_ledger(&w, 3, &seed, &spent);
        /* All ten, then public to the end of the text; an eleventh would not fit. */
        assert_int_equal(spent.n_private, 10);
        assert_int_equal(spent.n_armed, 10);
        assert_true(spent.rho > 20 * .999 && spent.rho <= 20);

        w.options.svt_sigma = 0; /* every token private while the budget lasts */
        check_ledger(&w, 3, &seed, &spent);
        assert_int_equal(spent.n_private, 10);
        assert_int_equal(spent.n_armed, 0);
    }
}

static void test_never_above(void **state) {
    (void)state;
    uint64_t seed = 7;
    world w = {.options = make_options(DPI_ADJACENCY_REPLACE_BY_NULL, 4, 20)};
    dpi_amin_spent spent;
    set_worlds(&w, true);
    w.options.svt_threshold = 1000;
    check_ledger(&w, 3, &seed, &spent);
    /* Armed and charged by the first token; never spent. */
    assert_int_equal(spent.n_armed, 1);
    assert_int_equal(spent.n_private, 0);
    assert_true(spent.rho > 0);
}

/* Somewhere between, with ragged records. */
static void test_sometimes_above(void **state) {
    (void)state;
    uint64_t seed = 8;
    for (int i = 0; i < 60; i++) {
        world w;
        dpi_amin_spent spent;
        random_world(&w, adjacencies[i % 3], &seed);
        w.options.svt_sigma = .5 + 4 * random_uniform(&seed);
        w.options.rho = 200 * random_uniform(&seed);
        w.options.n_private = 1 + random_below(&seed, 20);
        dpi_sampler_plan plan = {.struct_size = sizeof plan};
        if (dpi_sampler_plan_make(&w.options, &plan, NULL) == DPI_STATUS_OK)
            check_ledger(&w, 2, &seed, &spent);
    }
}

/* The threshold is noisy anew for each instance. At distance = threshold the first query of an
 * instance is above with probability 1/2, whatever happened before: the share of such instances
 * in a text then varies as that of coin tosses does. With one noise per text it would vary four
 * times as much. */
static void test_threshold_is_redrawn(void **state) {
    (void)state;
    enum { N_TEXTS = 300, N_INSTANCES = 40 };
    uint64_t seed = 9;
    world w = {.options = make_options(DPI_ADJACENCY_REPLACE_BY_NULL, 4, 400)};
    set_worlds(&w, true);
    w.options.svt_threshold = 0;
    w.options.n_private = N_INSTANCES;
    w.options.n_tokens = 1000;
    w.options.random = dpi_random_insecure;
    w.options.random_user = &seed;
    dpi_sampler *s = open_sampler(&w.options);
    double sum = 0, squares = 0;
    for (int i = 0; i < N_TEXTS; i++) {
        int32_t token, n_at_once = 0;
        assert_ok(dpi_sampler_begin(s, NULL), NULL);
        for (dpi_amin_spent spent = {0}, before; spent.n_private < N_INSTANCES;) {
            before = spent;
            assert_ok(dpi_sampler_step(s, w.public_logits, w.pointers, &token, NULL), NULL);
            spent = dpi_amin_spent_get(s);
            n_at_once += spent.n_armed > before.n_armed && spent.n_private > before.n_private;
        }
        sum += n_at_once;
        squares += (double)n_at_once * n_at_once;
    }
    dpi_sampler_free(s);
    double mean = sum / N_TEXTS, variance = squares / N_TEXTS - mean * mean;
    assert_true(fabs(mean / N_INSTANCES - .5) < 4 * .5 / sqrt(N_TEXTS * N_INSTANCES));
    assert_true(variance < 1.5 * N_INSTANCES / 4.0);
}

/* Public tokens: their own temperature and Top-k, whatever the references. */
static void test_public_tokens(void **state) {
    (void)state;
    enum { N = 20000, K_PUBLIC = 6 };
    uint64_t seed = 10;
    world w;
    random_world(&w, DPI_ADJACENCY_REPLACE_BY_NULL, &seed);
    for (int y = 0; y < V; y++)
        w.public_logits[y] = (float)(y % 20) / 4 + (float)y / 1000;
    w.options.svt_threshold = 1000;
    w.options.svt_sigma = 10;
    w.options.rho = 1e3;
    w.options.tau_public = .7;
    w.options.top_k = K_PUBLIC;
    w.options.n_tokens = N;
    w.options.random = dpi_random_insecure;
    w.options.random_user = &seed;
    dpi_sampler *s = open_sampler(&w.options);
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    int32_t count[V] = {0};
    for (int i = 0; i < N; i++) {
        int32_t token;
        assert_ok(dpi_sampler_step(s, w.public_logits, w.pointers, &token, NULL), NULL);
        count[token]++;
    }
    assert_int_equal(dpi_amin_spent_get(s).n_private, 0);
    dpi_sampler_free(s);
    double z = 0, x = 0;
    for (int y = 0; y < V; y++)
        z += y % 20 >= 17 ? exp((double)w.public_logits[y] / .7) : 0;
    for (int y = 0; y < V; y++) {
        double p = y % 20 >= 17 ? exp((double)w.public_logits[y] / .7) / z : 0;
        if (p == 0)
            assert_int_equal(count[y], 0);
        else
            x += pow(count[y] - N * p, 2) / (N * p);
    }
    assert_true(x < 25.7); /* chi-square, 5 degrees of freedom, 1e-4 */
}

/* Wherever the bits run out: no token, an error, and never more than the budget afterwards. */
static void test_a_source_that_fails(void **state) {
    (void)state;
    for (int32_t n = 0; n < 60; n++) {
        world w = {.options = make_options(DPI_ADJACENCY_ADD_REMOVE, 4, 20)};
        limited_source l = {.seed = (uint64_t)n};
        set_worlds(&w, n % 2);
        w.options.svt_threshold = n % 2 ? 1 : -1;
        w.options.random = limited_bits;
        w.options.random_user = &l;
        dpi_sampler *s = open_sampler(&w.options);
        assert_ok(dpi_sampler_begin(s, NULL), NULL);
        int32_t n_failed = 0;
        for (int32_t t = 0; t < 60; t++) {
            int32_t token = -7;
            dpi_error err;
            l.n = n;
            dpi_status status = dpi_sampler_step(s, w.public_logits, w.pointers, &token, &err);
            if (status != DPI_STATUS_OK) {
                assert_error(status, DPI_STATUS_ENTROPY, &err, "random source");
                assert_int_equal(token, -7);
                n_failed++;
            }
            assert_true(dpi_amin_spent_get(s).rho <= w.options.rho);
            assert_true(dpi_amin_spent_get(s).n_private <= 10);
        }
        if (n == 0)
            assert_int_equal(n_failed, 60);
        dpi_sampler_free(s);
    }
}

/* ---- Black box: a whole text on a small alphabet -------------------------------------------- */

/* The world without record j: an empty slot, or one reference less and the same denominator. */
static void neighbour(const world *w, int32_t j, world *n) {
    *n = *w;
    memcpy(n->pointers, w->pointers, sizeof n->pointers);
    if (w->options.adjacency == DPI_ADJACENCY_ADD_REMOVE) {
        n->options.n_ref--;
        for (int32_t i = j; i < n->options.n_ref; i++)
            n->pointers[i] = w->pointers[i + 1];
    } else {
        n->pointers[j] = NULL;
    }
}

/* Outcome of a text of three tokens over two letters: which letter and whether private. The
 * logarithm of the ratio of any outcome's probabilities is at most n (eta + svt_epsilon). */
static void test_black_box(void **state) {
    (void)state;
    enum { N = 40000, N_OUTCOMES = 64 };
    static int32_t count[2][N_OUTCOMES];
    uint64_t seed = 11;
    world w = {.options = make_options(DPI_ADJACENCY_ADD_REMOVE, 2, .4)};
    w.options.n_vocab = 2;
    w.options.n_tokens = 3;
    w.options.n_private = 1;
    w.options.svt_sigma = 2;
    w.options.svt_threshold = .5;
    w.options.random = dpi_random_insecure;
    w.options.random_user = &seed;
    memset(count, 0, sizeof count);
    double bound = 0;
    for (int side = 0; side < 2; side++) {
        world n;
        w.public_logits[0] = w.reference[1][0] = 3;
        w.reference[0][1] = 30;
        w.pointers[0] = w.reference[0];
        w.pointers[1] = w.reference[1];
        neighbour(&w, 0, &n);
        world *v = side ? &n : &w;
        dpi_sampler *s = open_sampler(&v->options);
        bound = dpi_sampler_plan_get(s)->eta + dpi_amin_plan_get(&v->options).svt_epsilon;
        for (int i = 0; i < N; i++) {
            int outcome = 0, n_private = 0;
            assert_ok(dpi_sampler_begin(s, NULL), NULL);
            for (int t = 0; t < 3; t++) {
                int32_t token;
                assert_ok(dpi_sampler_step(s, v->public_logits, v->pointers, &token, NULL), NULL);
                dpi_amin_spent spent = dpi_amin_spent_get(s);
                outcome = outcome << 2 | token << 1 | (spent.n_private - n_private);
                n_private = spent.n_private;
            }
            count[side][outcome]++;
        }
        dpi_sampler_free(s);
    }
    assert_true(bound < 2);
    double largest = 0;
    for (int k = 0; k < N_OUTCOMES; k++) {
        if (count[0][k] < 30 || count[1][k] < 30)
            continue;
        double loss = fabs(log((double)count[0][k] / count[1][k]));
        assert_true(loss <= bound + 4 * sqrt(1.0 / count[0][k] + 1.0 / count[1][k]));
        largest = fmax(largest, loss);
    }
    assert_true(largest > .2 * bound); /* the worlds do differ */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_always_above),    cmocka_unit_test(test_never_above),
        cmocka_unit_test(test_sometimes_above), cmocka_unit_test(test_threshold_is_redrawn),
        cmocka_unit_test(test_public_tokens),   cmocka_unit_test(test_a_source_that_fails),
        cmocka_unit_test(test_black_box),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
