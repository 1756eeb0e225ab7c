/* test_audit.c - audits A and B of privacy.md section 5. They stand on their own: the loss is
 * measured between neighbouring batches through the production path, and the expected
 * frequencies are computed from the formulas in real arithmetic. */
#include <math.h>

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

static double max_ratio; /* of the measured loss range to eta, over all cases */

static int64_t oracle_contribution(const float *l, const float *p, int y, int64_t K) {
    if (!l || !isfinite(l[y]))
        return 0;
    double d = ((double)l[y] - (double)p[y]) * 1048576;
    return d >= K ? K : d <= -K ? -K : llrint(d);
}

/* Audits a world against itself with record j removed (replaced by null). Returns the size of
 * the support. */
static int64_t audit(const world *w, int32_t j) {
    dpi_sampler *s = create(&w->options), *t = create(&w->options);
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(s);
    const float *without[B_MAX];
    dpi_distribution d, e;
    memcpy(without, w->pointers, sizeof without);
    without[j] = NULL;
    assert_ok(dpi_sampler_distribution(s, w->public_logits, w->pointers, &d, NULL), NULL);
    assert_ok(dpi_sampler_distribution(t, w->public_logits, without, &e, NULL), NULL);

    assert_int_equal(d.n_support, e.n_support);
    long double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < d.n_support; i++) {
        assert_int_equal(d.support[i], e.support[i]);
        int64_t c = d.sum[i] - e.sum[i];
        assert_true(c <= plan->K && c >= -plan->K);
        assert_int_equal(
            c, oracle_contribution(w->pointers[j], w->public_logits, d.support[i], plan->K));
        long double loss = logl((long double)d.weights[i] / (long double)e.weights[i]);
        low = loss < low ? loss : low;
        high = loss > high ? loss : high;
    }
    /* 2^-55: rounding of the logarithms here. */
    assert_true(high - low <= (long double)plan->eta + 0x1p-55L);
    double ratio = (double)(high - low) / plan->eta;
    max_ratio = ratio > max_ratio ? ratio : max_ratio;
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
        for (int round = 0; round < 40; round++) {
            world w;
            random_world(&w, &seed);
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
    print_message("largest loss range / eta: %.12f\n", max_ratio);
    assert_true(max_ratio >= .999 && max_ratio <= 1);
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

/* ---- B. Black box: frequencies -------------------------------------------------------------- */

/* Chance that chi-square with n degrees of freedom exceeds x: Q(n/2, x/2), from Q(1/2, x) =
 * erfc(sqrt x), Q(1, x) = e^-x and Q(s+1, x) = Q(s, x) + x^s e^-x / Gamma(s+1). */
static double chi_square_tail(double x, int n) {
    double h = x / 2, s = n % 2 ? .5 : 1, q = n % 2 ? erfc(sqrt(h)) : exp(-h);
    for (; s < n / 2. - .25; s++)
        q += exp(s * log(h) - h - lgamma(s + 1));
    return q;
}

static void test_chi_square_tail(void **state) {
    (void)state;
    /* From tables: the 95 % and 99.9 % points. */
    assert_true(fabs(chi_square_tail(24.9958, 15) - .05) < 1e-5);
    assert_true(fabs(chi_square_tail(37.6973, 15) - .001) < 1e-6);
    assert_true(fabs(chi_square_tail(18.3070, 10) - .05) < 1e-5);
    assert_true(fabs(chi_square_tail(82.5287, 63) - .05) < 1e-5);
}

static void assert_p_value(double x, int n, double bound, const char *what) {
    double p = chi_square_tail(x, n);
    print_message("%s: chi-square %.2f, %d degrees of freedom, p = %.4f\n", what, x, n, p);
    assert_true(p > bound && p < 1 - bound);
}

enum { CELLS_MAX = 16, N_REF = 3 };

/* A batch in which clipping bites, and its softmax((p + mean of clipped l - p) / tau) on the
 * whole vocabulary, in real arithmetic. */
typedef struct game {
    int n;
    dpi_sampler_options options;
    float public_logits[CELLS_MAX];
    float reference[N_REF][CELLS_MAX];
    const float *pointers[N_REF];
    double probability[CELLS_MAX];
} game;

static void make_game(game *g, int n, uint64_t seed) {
    memset(g, 0, sizeof *g);
    g->n = n;
    dpi_sampler_options_init(&g->options);
    g->options.n_vocab = n;
    g->options.n_ref = N_REF;
    g->options.n_tokens = 1 << 20;
    g->options.top_k = 0;
    g->options.tau = 1;
    g->options.rho = 2e4; /* C = 0.59 */
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    assert_ok(dpi_sampler_plan_make(&g->options, &plan, NULL), NULL);
    double sum = 0;
    for (int y = 0; y < n; y++) {
        g->public_logits[y] = (float)(.7 * random_normal(&seed));
        double phi = g->public_logits[y];
        for (int j = 0; j < N_REF; j++) {
            g->reference[j][y] = g->public_logits[y] + (float)random_normal(&seed);
            double d = (double)g->reference[j][y] - (double)g->public_logits[y];
            phi += fmax(-plan.clip, fmin(d, plan.clip)) / N_REF;
        }
        sum += g->probability[y] = exp(phi);
    }
    for (int j = 0; j < N_REF; j++)
        g->pointers[j] = g->reference[j];
    for (int y = 0; y < n; y++)
        g->probability[y] /= sum;
}

static int32_t step(dpi_sampler *s, const game *g) {
    int32_t token;
    dpi_error err;
    assert_ok(dpi_sampler_step(s, g->public_logits, g->pointers, &token, &err), &err);
    return token;
}

static double chi_square(const int64_t *count, const double *probability, int n, double total) {
    double x = 0;
    for (int i = 0; i < n; i++) {
        double expected = total * probability[i];
        assert_true(expected > 100);
        x += (count[i] - expected) * (count[i] - expected) / expected;
    }
    return x;
}

static void count_draws(const game *g, uint64_t *seed, int n_draws, int64_t *count) {
    dpi_sampler_options o = g->options;
    if (seed) {
        o.random = dpi_random_insecure;
        o.random_user = seed;
    }
    dpi_sampler *s = create(&o);
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    for (int i = 0; i < n_draws; i++)
        count[step(s, g)]++;
    dpi_sampler_free(s);
}

static void test_frequencies(void **state) {
    (void)state;
    game g;
    make_game(&g, 16, 200);
    int64_t count[16] = {0}, from_os[16] = {0};
    uint64_t seed = 201;
    count_draws(&g, &seed, 1000000, count);
    assert_p_value(chi_square(count, g.probability, 16, 1e6), 15, 1e-4, "1e6 draws");
    /* Not seeded, so the bound is one that no machine will ever meet by chance. */
    count_draws(&g, NULL, 300000, from_os);
    assert_p_value(chi_square(from_os, g.probability, 16, 3e5), 15, 1e-9, "3e5 draws, OS bits");
}

/* Consecutive draws are independent: 8 x 8 pairs. */
static void test_pairs(void **state) {
    (void)state;
    game g;
    make_game(&g, 8, 202);
    int64_t count[64] = {0};
    double probability[64];
    uint64_t seed = 203;
    g.options.random = dpi_random_insecure;
    g.options.random_user = &seed;
    dpi_sampler *s = create(&g.options);
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    for (int i = 0; i < 500000; i++) {
        int32_t first = step(s, &g);
        count[8 * first + step(s, &g)]++;
    }
    dpi_sampler_free(s);
    for (int i = 0; i < 64; i++)
        probability[i] = g.probability[i / 8] * g.probability[i % 8];
    assert_p_value(chi_square(count, probability, 64, 5e5), 63, 1e-4, "5e5 pairs");
}

/* ---- The reference sampler: Canonne, Kamath and Steinke 2020, exact integer rejection ------- */

/* Uniform in [0, n). */
static uint64_t below(uint64_t n, uint64_t *seed) {
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;
    do
        x = random_u64(seed);
    while (x >= limit);
    return x % n;
}

/* True with probability exp(-num / den), num <= den. */
static bool bernoulli_exp_unit(uint64_t num, uint64_t den, uint64_t *seed) {
    uint64_t k = 1;
    while (below(den * k, seed) < num)
        k++;
    return k % 2 == 1;
}

static bool bernoulli_exp(uint64_t num, uint64_t den, uint64_t *seed) {
    for (; num > den; num -= den)
        if (!bernoulli_exp_unit(1, 1, seed))
            return false;
    return bernoulli_exp_unit(num, den, seed);
}

static void test_against_reference_sampler(void **state) {
    (void)state;
    enum { N_DRAWS = 1000000 };
    game g;
    make_game(&g, 16, 204);
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    assert_ok(dpi_sampler_plan_make(&g.options, &plan, NULL), NULL);
    int64_t utility[16], top = INT64_MIN; /* privacy.md section 2; a common offset of p is free */
    for (int y = 0; y < 16; y++) {
        utility[y] = N_REF * llrint((double)g.public_logits[y] * 1048576);
        for (int j = 0; j < N_REF; j++)
            utility[y] += oracle_contribution(g.pointers[j], g.public_logits, y, plan.K);
        top = utility[y] > top ? utility[y] : top;
    }
    int64_t ours[16] = {0}, theirs[16] = {0};
    uint64_t seed = 205, other = 206;
    for (int i = 0; i < N_DRAWS; i++) {
        uint64_t y; /* tau = 1: the exponent is gap / (2^20 B) */
        do
            y = below(16, &other);
        while (!bernoulli_exp((uint64_t)(top - utility[y]), N_REF << 20, &other));
        theirs[y]++;
    }
    count_draws(&g, &seed, N_DRAWS, ours);
    assert_p_value(chi_square(theirs, g.probability, 16, N_DRAWS), 15, 1e-4, "reference sampler");
    double x = 0;
    for (int y = 0; y < 16; y++) {
        double difference = (double)(ours[y] - theirs[y]);
        x += difference * difference / (double)(ours[y] + theirs[y]);
    }
    assert_p_value(x, 15, 1e-4, "ours against the reference sampler");
}

/* Two batches with the same references agree as often as independent draws do, no more. */
static void test_batches_share_no_randomness(void **state) {
    (void)state;
    enum { N_DRAWS = 300000 };
    game g;
    make_game(&g, 16, 207);
    double collision = 0;
    for (int y = 0; y < 16; y++)
        collision += g.probability[y] * g.probability[y];
    dpi_sampler *s = create(&g.options), *t = create(&g.options);
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    assert_ok(dpi_sampler_begin(t, NULL), NULL);
    int agree = 0;
    for (int i = 0; i < N_DRAWS; i++)
        agree += step(s, &g) == step(t, &g);
    double z = (agree - N_DRAWS * collision) / sqrt(N_DRAWS * collision * (1 - collision));
    print_message("agreement of two batches: z = %.2f\n", z);
    assert_true(fabs(z) < 6.2); /* chance 6e-10 */
    dpi_sampler_free(s);
    dpi_sampler_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_neighbours),
        cmocka_unit_test(test_extreme_neighbours),
        cmocka_unit_test(test_threshold_neighbours),
        cmocka_unit_test(test_degenerate_neighbours),
        cmocka_unit_test(test_chi_square_tail),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_against_reference_sampler),
        cmocka_unit_test(test_batches_share_no_randomness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
