/* test_audit.c - audit A of privacy.md section 5: the loss between neighbouring batches, measured
 * through the production path, for every adjacency, accountant and centring. */
#include <math.h>

#include "account.h"
#include "filter.h"
#include "sampler.h"
#include "support.h"

static dpi_sampler *create(const dpi_sampler_options *options) {
    dpi_sampler *s = NULL;
    dpi_error err;
    assert_ok(dpi_sampler_create(options, &s, &err), &err);
    return s;
}

/* ---- A. White box: the loss between neighbours ---------------------------------------------- */

enum { V = 64, B_MIN = 3, B_MAX = 8 };

typedef struct world {
    dpi_sampler_options options;
    float public_logits[V];
    float reference[B_MAX][V];
    const float *pointers[B_MAX];
} world;

/* Of the measured loss range to eta, over all cases of an adjacency. */
static double max_ratio[DPI_ADJACENCY_ZERO_OUT + 1];

static int64_t oracle_contribution(const float *l, const float *p, int y, int64_t K) {
    if (!l || !isfinite(l[y]))
        return 0;
    double d = ((double)l[y] - (double)p[y]) * 1048576;
    return d >= K ? K : d <= -K ? -K : llrint(d);
}

static long double log_mass(const float *l, const dpi_distribution *d) {
    long double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < d->n_support; i++)
        if (isfinite(l[d->support[i]]))
            top = fmaxl(top, l[d->support[i]]);
    if (top == -INFINITY)
        return 0; /* all of it contributes 0 */
    for (int64_t i = 0; i < d->n_support; i++)
        if (isfinite(l[d->support[i]]))
            sum += expl(l[d->support[i]] - top);
    return top + logl(sum);
}

/* What logits `l` contribute to candidate i; `l` NULL: what a null slot does. */
static int64_t oracle(const world *w, const float *l, const dpi_distribution *d, int64_t i,
                      int64_t K) {
    static const float zeros[V];
    const float *p = w->public_logits;
    if (!l && w->options.adjacency != DPI_ADJACENCY_ZERO_OUT)
        return 0;
    l = l ? l : zeros;
    if (!w->options.center)
        return oracle_contribution(l, p, d->support[i], K);
    if (!isfinite(l[d->support[i]]))
        return 0;
    long double m = log_mass(l, d) - log_mass(p, d);
    long double c = ((long double)l[d->support[i]] - p[d->support[i]] - m) * 1048576;
    return c >= K ? K : c <= -K ? -K : llrintl(c);
}

/* The neighbour that lacks record j, in the sense of the adjacency. */
static world neighbour(const world *w, int32_t j) {
    world n = *w;
    n.pointers[j] = NULL;
    if (w->options.adjacency != DPI_ADJACENCY_ADD_REMOVE)
        return n;
    n.options.n_ref--;
    for (int i = j; i < n.options.n_ref; i++)
        n.pointers[i] = w->pointers[i + 1];
    return n;
}

/* Length of the interval of log probability ratios of d and e. */
static long double loss_range(const dpi_distribution *d, const dpi_distribution *e) {
    long double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < d->n_support; i++) {
        long double loss = logl((long double)d->weights[i] / (long double)e->weights[i]);
        low = fminl(low, loss);
        high = fmaxl(high, loss);
    }
    return high - low;
}

/* Audits a world against its neighbour without record j. Returns the size of the support. */
static int64_t audit(const world *w, int32_t j) {
    const world n = neighbour(w, j);
    dpi_sampler *s = create(&w->options), *t = create(&n.options);
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(s);
    const int64_t K = plan->K, unit = w->options.center; /* exp and log differ in the last bits */
    assert_memory_equal(plan, dpi_sampler_plan_get(t), sizeof *plan);
    dpi_distribution d, e;
    assert_ok(dpi_sampler_distribution(s, w->public_logits, w->pointers, &d, NULL), NULL);
    assert_ok(dpi_sampler_distribution(t, n.public_logits, n.pointers, &e, NULL), NULL);

    assert_int_equal(d.n_support, e.n_support);
    assert_memory_equal(d.support, e.support, (size_t)d.n_support * sizeof *d.support);
    int64_t least = INT64_MAX, most = INT64_MIN, stays = 0;
    for (int64_t i = 0; i < d.n_support; i++) {
        int64_t moved = d.sum[i] - e.sum[i], null = oracle(w, NULL, &d, i, K);
        int64_t wanted = oracle(w, w->pointers[j], &d, i, K);
        assert_true(moved + null <= K + unit && moved + null >= -K - unit);
        if (w->options.adjacency != DPI_ADJACENCY_ZERO_OUT)
            assert_true(moved <= K && moved >= -K);
        bool same = llabs(moved - (wanted - null)) <= 2 * unit;
        assert_true(same || (w->options.accountant == DPI_ACCOUNTANT_FILTER && moved == 0));
        stays += !same;
        least = moved < least ? moved : least;
        most = moved > most ? moved : most;
    }
    assert_true(stays == 0 || (least == 0 && most == 0)); /* a record that cannot pay */
    long double range = loss_range(&d, &e);
    /* 2^-55: rounding of the logarithms here. The second bound is what a record of its own
     * range pays for. */
    assert_true(range <= (long double)plan->eta + 0x1p-55L);
    assert_true(range <= (long double)dpi_eta_bound(most - least, plan->a) + 0x1p-55L);
    double *ratio = &max_ratio[w->options.adjacency];
    *ratio = fmax(*ratio, (double)range / plan->eta);
    dpi_sampler_free(s);
    dpi_sampler_free(t);
    return d.n_support;
}

static void random_world(world *w, uint64_t *seed) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    memset(w, 0, sizeof *w);
    dpi_sampler_options_init(&w->options);
    w->options.n_vocab = V;
    w->options.n_ref = B_MIN + random_below(seed, B_MAX - B_MIN + 1);
    w->options.n_tokens = 1 + random_below(seed, 500);
    w->options.top_k = random_below(seed, V + 1);
    w->options.tau = .3 + 2 * random_uniform(seed);
    w->options.rho = exp(10 * random_uniform(seed) - 5);
    w->options.adjacency = random_below(seed, DPI_ADJACENCY_ZERO_OUT + 1);
    w->options.center = random_below(seed, 2);
    w->options.denominator = 1 + random_below(seed, 2 * B_MAX);
    if (random_below(seed, 3) == 0) {
        w->options.accountant = DPI_ACCOUNTANT_FILTER;
        w->options.clip = random_below(seed, 2) ? exp(6 * random_uniform(seed) - 3) : 0;
    }
    double spread = exp(6 * random_uniform(seed) - 4);
    bool ties = random_below(seed, 4) == 0;
    bool nulls = random_below(seed, 3) == 0;
    int32_t n_odd = random_below(seed, 3) == 0 ? 12 : 1000;
    for (int y = 0; y < V; y++) {
        double p = 4 * random_normal(seed);
        w->public_logits[y] = (float)(ties ? rint(p) : p);
    }
    for (int j = 0; j < w->options.n_ref; j++) {
        for (int y = 0; y < V; y++) {
            w->reference[j][y] = w->public_logits[y] + (float)(spread * random_normal(seed));
            if (random_below(seed, n_odd) == 0)
                w->reference[j][y] = odd[random_below(seed, 5)];
        }
        w->pointers[j] = nulls && random_below(seed, 2) ? NULL : w->reference[j];
    }
}

static void test_random_neighbours(void **state) {
    (void)state;
    uint64_t seed = 100;
    for (int i = 0; i < 2000; i++) {
        world w;
        random_world(&w, &seed);
        audit(&w, random_below(&seed, w.options.n_ref));
    }
}

/* All references: `distance` clip bounds above the public logits on even tokens, below on odd. */
static void set_references(world *w, double distance) {
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    assert_ok(dpi_sampler_plan_make(&w->options, &plan, NULL), NULL);
    double clip = ldexp((double)plan.K, -20);
    for (int j = 0; j < w->options.n_ref; j++) {
        w->pointers[j] = w->reference[j];
        for (int y = 0; y < V; y++)
            w->reference[j][y] =
                (float)(w->public_logits[y] + (y % 2 ? -distance : distance) * clip);
    }
}

/* The worst that one record can do, and values just around the clip bound. */
static void test_extreme_neighbours(void **state) {
    (void)state;
    static const double distances[] = {1e3, 1.000001, 1, .999999, .5, -1, -1e3};
    uint64_t seed = 101;
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
        for (int round = 0; round < 120; round++) {
            world w;
            random_world(&w, &seed);
            w.options.accountant = DPI_ACCOUNTANT_ZCDP;
            w.options.clip = 0;
            for (int y = 0; y < V && round % 2; y++)
                w.public_logits[y] = 0;
            set_references(&w, distances[i]);
            /* Alone among nulls, among equals, and against the others. */
            for (int j = 1; j < w.options.n_ref; j++) {
                if (round % 4 == 1)
                    w.pointers[j] = NULL;
                if (round % 4 == 2)
                    for (int y = 0; y < V; y++)
                        w.reference[j][y] = 2 * w.public_logits[y] - w.reference[j][y];
            }
            audit(&w, 0);
        }
}

/* Zero-out at its worst: the zeroed record is clipped to -K where the record is at +K, and the
 * other way round. */
static void test_extreme_zero_out(void **state) {
    (void)state;
    uint64_t seed = 104;
    for (int round = 0; round < 40; round++) {
        world w;
        random_world(&w, &seed);
        w.options.adjacency = DPI_ADJACENCY_ZERO_OUT;
        w.options.accountant = DPI_ACCOUNTANT_ZCDP;
        w.options.clip = 0;
        w.options.center = 0;
        w.options.top_k = 0;
        w.options.rho = .5;
        dpi_sampler_plan plan = {.struct_size = sizeof plan};
        assert_ok(dpi_sampler_plan_make(&w.options, &plan, NULL), NULL);
        for (int y = 0; y < V; y++)
            w.public_logits[y] = (float)((y % 2 ? -1.01 : 1.01) * plan.clip);
        set_references(&w, round % 2 ? 2 : 1.001);
        audit(&w, 0);
    }
}

/* Centred at its worst: all mass on a token whose public share is below e^-C. */
static void test_extreme_centred(void **state) {
    (void)state;
    uint64_t seed = 105;
    max_ratio[0] = max_ratio[1] = 0;
    for (int round = 0; round < 40; round++) {
        world w;
        random_world(&w, &seed);
        w.options.adjacency = round % 2;
        w.options.accountant = DPI_ACCOUNTANT_ZCDP;
        w.options.clip = 0;
        w.options.center = 1;
        w.options.top_k = 0;
        w.options.rho = .5;
        dpi_sampler_plan plan = {.struct_size = sizeof plan};
        assert_ok(dpi_sampler_plan_make(&w.options, &plan, NULL), NULL);
        for (int y = 0; y < V; y++) {
            w.public_logits[y] = y == 7 ? -(float)plan.clip - 1 : 0;
            w.reference[0][y] = y == 7 ? 1e4f : 0;
        }
        w.pointers[0] = w.reference[0];
        audit(&w, 0);
    }
    print_message("centred, largest loss range / eta: %.12f, %.12f\n", max_ratio[0], max_ratio[1]);
    assert_true(max_ratio[0] >= .999 && max_ratio[0] <= 1);
    assert_true(max_ratio[1] >= .999 && max_ratio[1] <= 1);
}

static void test_bounds_are_reached(void **state) {
    (void)state;
    for (int i = 0; i <= DPI_ADJACENCY_ZERO_OUT; i++) {
        print_message("adjacency %d: largest loss range / eta: %.12f\n", i, max_ratio[i]);
        assert_true(max_ratio[i] >= .999 && max_ratio[i] <= 1);
    }
}

/* Exact composition and secret assignment change what K is, not how a token is drawn. */
static void test_other_accountants(void **state) {
    (void)state;
    uint64_t seed = 106;
    for (int round = 0; round < 24; round++) {
        world w;
        random_world(&w, &seed);
        w.options.accountant = round % 2 ? DPI_ACCOUNTANT_BR : DPI_ACCOUNTANT_ZCDP;
        w.options.clip = 0;
        w.options.rho = 0;
        w.options.epsilon = 1 + 5 * random_uniform(&seed);
        w.options.delta = 1e-6;
        w.options.n_tokens = 1 + random_below(&seed, 4);
        if (w.options.adjacency != DPI_ADJACENCY_ZERO_OUT)
            w.options.subsample = random_uniform(&seed);
        set_references(&w, 1e3);
        audit(&w, 0);
    }
}

/* A text under accountant FILTER, token after token, against the neighbour with the same history:
 * what one record's losses cost in all stays within its budget, and comes near it; after that the
 * two are the same. */
static void test_filter_spends_its_budget(void **state) {
    (void)state;
    enum { N_TOKENS = 60 };
    uint64_t seed = 107;
    int n_exhausted = 0;
    double most = 0;
    for (int round = 0; round < 150; round++) {
        world w;
        random_world(&w, &seed);
        w.options.accountant = DPI_ACCOUNTANT_FILTER;
        w.options.n_tokens = N_TOKENS;
        w.options.clip = 0;
        w.options.rho = exp(5 * random_uniform(&seed) - 4);
        w.pointers[0] = w.reference[0];
        const world n = neighbour(&w, 0);
        dpi_sampler *s = create(&w.options), *t = create(&n.options);
        assert_ok(dpi_sampler_begin(s, NULL), NULL);
        assert_ok(dpi_sampler_begin(t, NULL), NULL);
        long double spent = 0;
        bool exhausted = false;
        for (int step = 0; step < N_TOKENS; step++) {
            double spread = exp(4 * random_uniform(&seed) - 3);
            for (int j = 0; j < w.options.n_ref; j++)
                for (int y = 0; y < V; y++)
                    w.reference[j][y] = w.public_logits[y] + (float)(spread * random_normal(&seed));
            dpi_distribution d, e;
            assert_ok(dpi_sampler_distribution(s, w.public_logits, w.pointers, &d, NULL), NULL);
            assert_ok(dpi_sampler_distribution(t, w.public_logits, n.pointers, &e, NULL), NULL);
            long double range = loss_range(&d, &e);
            bool moves = memcmp(d.sum, e.sum, (size_t)d.n_support * sizeof *d.sum) != 0;
            assert_true(!(exhausted && moves)); /* from then on */
            exhausted = !moves;
            spent += range * range / 8;
            int32_t token;
            assert_ok(dpi_sampler_step(s, w.public_logits, w.pointers, &token, NULL), NULL);
            assert_ok(dpi_sampler_step(t, w.public_logits, n.pointers, &token, NULL), NULL);
        }
        assert_true(spent <= w.options.rho);
        most = fmax(most, (double)spent / w.options.rho);
        n_exhausted += exhausted;
        dpi_sampler_free(s);
        dpi_sampler_free(t);
    }
    print_message("filter: %d of 150 exhausted, at most %.6f of a budget spent\n", n_exhausted,
                  most);
    assert_true(n_exhausted > 20 && n_exhausted < 130 && most > .98);
}

/* Ties and near-ties at the Top-k+ threshold: public logits exactly 2K/B below the k-th, one
 * unit above and one below, for a record that favours them and one that does not. */
static void test_threshold_neighbours(void **state) {
    (void)state;
    uint64_t seed = 102;
    for (int round = 0; round < 200; round++) {
        world w;
        random_world(&w, &seed);
        w.options.n_ref = 4;      /* 2K/B = K/2 */
        w.options.n_tokens = 500; /* K < 2^23: the logits below are exact floats */
        w.options.top_k = 10;
        w.options.adjacency %= DPI_ADJACENCY_ZERO_OUT;
        w.options.denominator = 4;
        w.options.accountant = DPI_ACCOUNTANT_ZCDP;
        w.options.clip = 0;
        dpi_sampler_plan plan = {.struct_size = sizeof plan};
        assert_ok(dpi_sampler_plan_make(&w.options, &plan, NULL), NULL);
        for (int y = 0; y < V; y++) {
            int64_t units = y < 10 ? -3 * y : -27 - plan.K / 2 + y % 5 - 2;
            w.public_logits[y] = (float)ldexp((double)units, -20);
        }
        set_references(&w, round % 2 ? 50 : .7);
        int64_t n_support = 10; /* and those that are not below the threshold */
        for (int y = 10; y < V; y++)
            n_support += y % 5 >= 2;
        for (int j = 0; j < 4; j++)
            assert_int_equal(audit(&w, j), n_support);
    }
}

/* Non-finite references, all slots null, and one reference beside nulls. */
static void test_degenerate_neighbours(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    uint64_t seed = 103;
    for (int round = 0; round < 60; round++) {
        world w;
        random_world(&w, &seed);
        set_references(&w, 1e3);
        for (int y = 0; y < V; y++)
            w.reference[0][y] = odd[round % 3];
        audit(&w, 0); /* weighs nothing */
        for (int y = 0; y < V; y += 2)
            w.reference[0][y] = odd[y % 3];
        audit(&w, 0);
        for (int j = 1; j < w.options.n_ref; j++)
            w.pointers[j] = NULL;
        audit(&w, 0);
        w.pointers[0] = NULL;
        audit(&w, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_neighbours),
        cmocka_unit_test(test_extreme_neighbours),
        cmocka_unit_test(test_extreme_zero_out),
        cmocka_unit_test(test_bounds_are_reached),
        cmocka_unit_test(test_extreme_centred),
        cmocka_unit_test(test_other_accountants),
        cmocka_unit_test(test_filter_spends_its_budget),
        cmocka_unit_test(test_threshold_neighbours),
        cmocka_unit_test(test_degenerate_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
