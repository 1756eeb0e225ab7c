/* test_adapmixed.c - AdaPMixED step by step against a second implementation, written from
 * docs/spec.md 4.7 in long double with plain powers: the same random words must give the same
 * tokens, costs and end. And its refusals: it is not a DP method. */
#include "dp/methods/adapmixed.h"

#include "tests/dp/samplers.h"
#include "tests/oracle/law.h"

enum { V = 24, N_MAX = 5 };

static dpi_sampler_options make_options(int32_t n_ref, double epsilon) {
    dpi_sampler_options o = ink_options(V, n_ref, 60, 0, 0);
    o.method = DPI_METHOD_ADAPMIXED, o.acknowledge_not_dp = 1;
    o.tau = 1, o.top_k = 8, o.epsilon = epsilon, o.delta = 1e-6;
    return o;
}

static void draw_batch(batch *b, double spread, uint64_t *seed) {
    batch_law law = {.n_vocab = V, .n_slots = N_MAX, .sure = 1 + spread, .spread = spread};
    law.null = 6, law.odd = 60, law.n_odd = 2;
    random_batch(b, &law, seed);
}

/* ---- The second implementation -------------------------------------------------------------- */

typedef struct oracle {
    real alpha, beta, lambda, sigma, threshold, tau, delta, budget;
    int n, k;
    real E;
    bool stopped;
    uint64_t seed;
    int n_screened, n_mixed, n_inside, n_cut; /* what the worlds made happen */
} oracle;

static real uniform(oracle *o, int above) {
    return (real)((random_u64(&o->seed) >> 11) + (uint64_t)above) / 0x1p53L;
}

static real renyi(const real *p, const real *q, int n, real alpha) {
    real sum = 0;
    for (int i = 0; i < n; i++)
        sum += powl(p[i], alpha) * powl(q[i], 1 - alpha);
    return logl(fmaxl(sum, 1e-12L)) / (alpha - 1);
}

static bool screened_out(oracle *o, const float *public_logits, const real *p0, real p[][V]) {
    int64_t P[V];
    int32_t index[V]; /* noise goes to them in the order of their ids */
    real a[V], b[V], sum_a = 0, sum_b = 0;
    law_public(public_logits, V, P);
    assert_int_equal(law_support(P, V, o->k, 1, 0, index), o->k);
    for (int i = 0; i < o->k; i++) {
        real mean = 0;
        for (int j = 0; j < o->n; j++)
            mean += p[j][index[i]] / o->n;
        const real u = uniform(o, 1), v = uniform(o, 0);
        const real noise = sqrtl(-2 * logl(u)) * cosl(2 * acosl(-1) * v);
        sum_a += a[i] = p0[index[i]];
        sum_b += b[i] = (1 - o->lambda) * a[i] + o->lambda * mean + o->sigma * noise;
    }
    for (int i = 0; i < o->k; i++)
        a[i] /= sum_a, b[i] /= sum_b;
    return fmaxl(renyi(a, b, o->k, o->alpha), renyi(b, a, o->k, o->alpha)) > o->threshold;
}

/* Divergence of g = x p + (1 - x) p0 from p0. */
static real blend(const oracle *o, const real *p, const real *p0, real x, real *g) {
    for (int y = 0; y < V; y++)
        g[y] = x * p[y] + (1 - x) * p0[y];
    return renyi(g, p0, V, o->alpha);
}

/* pr and the cost. */
static real mix(oracle *o, const real *p0, real p[][V], real *pr) {
    const real most = o->beta * o->alpha;
    real g[N_MAX][V], r[V], cost = 0;
    for (int j = 0; j < o->n; j++) {
        real low = 0, high = 1;
        const bool cut = blend(o, p[j], p0, 1, g[j]) > most;
        *(cut ? &o->n_cut : &o->n_inside) += 1;
        for (int i = 0; i < 100 && cut; i++) {
            const real x = (low + high) / 2;
            *(blend(o, p[j], p0, x, g[j]) <= most ? &low : &high) = x;
        }
        blend(o, p[j], p0, cut ? low : 1, g[j]);
    }
    for (int without = -1; without < o->n; without++) { /* first pr itself: all are in it */
        for (int y = 0; y < V; y++) {
            r[y] = without < 0 ? 0 : p0[y] / o->n;
            for (int j = 0; j < o->n; j++)
                r[y] += j == without ? 0 : g[j][y] / o->n;
        }
        if (without < 0)
            memcpy(pr, r, sizeof r);
        else
            cost = fmaxl(cost, renyi(pr, r, V, o->alpha));
    }
    return cost;
}

static int32_t oracle_step(oracle *o, const batch *b) {
    real p0[V], p[N_MAX][V], pr[V];
    law_softmax(b->public_logits, NULL, V, o->tau, -INFINITY, p0);
    memcpy(pr, p0, sizeof pr);
    if (!o->stopped) {
        for (int j = 0; j < o->n; j++)
            law_softmax(b->slots[j] ? b->slots[j] : b->public_logits, NULL, V, o->tau, -INFINITY,
                        p[j]);
        real E = o->E + o->alpha * powl(o->lambda / (o->n * o->sigma), 2);
        const bool mixed = !screened_out(o, b->public_logits, p0, p);
        *(mixed ? &o->n_mixed : &o->n_screened) += 1;
        if (mixed)
            E += mix(o, p0, p, pr);
        real epsilon = E + logl(1 - 1 / o->alpha) - logl(o->delta * o->alpha) / (o->alpha - 1);
        o->stopped = fmaxl(0, epsilon) > o->budget;
        if (o->stopped)
            memcpy(pr, p0, sizeof pr);
        else
            o->E = E;
    }
    real left = uniform(o, 0);
    for (int y = 0; y < V; y++)
        if ((left -= pr[y]) < 0)
            return y;
    return V - 1;
}

/* ---- Side by side --------------------------------------------------------------------------- */

/* A text beside the oracle, whose parameters that the options have are theirs. */
static void side_by_side(const dpi_sampler_options *options, double spread, oracle *o,
                         uint64_t *seed) {
    uint64_t words = random_u64(seed);
    batch b;
    o->sigma = options->screen_sigma > 0 ? options->screen_sigma : .01L; /* the defaults */
    o->threshold = options->screen_threshold > 0 ? options->screen_threshold : 4.5L;
    o->tau = options->tau, o->k = options->top_k, o->delta = options->delta;
    o->budget = options->epsilon;
    if (options->rho > 0) {
        double epsilon;
        assert_ok(dpi_zcdp_epsilon(options->rho, options->delta, &epsilon, ERR));
        o->budget = epsilon;
    }
    o->seed = words, o->E = 0, o->stopped = false, o->n = options->n_ref;
    SAMPLER s = begin_text(*options, &words);
    for (int t = 0; t < options->n_tokens; t++) {
        draw_batch(&b, spread, seed);
        assert_int_equal(step(s, &b), oracle_step(o, &b));
        assert_int_equal(words, o->seed); /* as many random words */
        const dpi_adapmixed_spent spent = dpi_adapmixed_spent_get(s);
        assert_int_equal(spent.stopped, o->stopped);
        assert_true(fabsl(spent.renyi - o->E) <= 1e-9L * (1 + o->E));
        assert_true(spent.epsilon <= (double)o->budget || spent.renyi == 0);
    }
}

TEST(test_defaults) {
    uint64_t seed = 1;
    oracle o = {.alpha = 15, .beta = .3L, .lambda = 1e-4L};
    for (int i = 0; i < 40; i++) {
        dpi_sampler_options options = make_options(1 + i % N_MAX, 3 + i);
        options.top_k = i % 2 ? 20 : 8;
        side_by_side(&options, .2 + .4 * (i % 7), &o, &seed);
    }
    assert_true(o.n_screened > 20 && o.n_mixed > 200);
}

TEST(test_other_parameters) {
    uint64_t seed = 2;
    int n_stopped = 0;
    oracle o = {.alpha = 15, .beta = .3L, .lambda = 1e-4L};
    for (int i = 0; i < 60; i++) {
        dpi_sampler_options options = make_options(1 + i % N_MAX, 2 + 8 * (i % 9));
        options.screen_sigma = .002 * (1 + 5 * (i % 5)), options.screen_threshold = .5 + i % 4;
        options.tau = .6 + .2 * (i % 5), options.top_k = 4 + 5 * (i % 4);
        options.delta = i % 2 ? 1e-6 : .01;
        if (i % 3 == 0)
            options.rho = .5 + i, options.epsilon = 0;
        side_by_side(&options, .1 + (i % 5), &o, &seed);
        n_stopped += o.stopped;
    }
    /* Everything that can happen did. */
    assert_true(o.n_screened > 20 && o.n_mixed > 200 && o.n_inside > 50 && o.n_cut > 50);
    assert_true(n_stopped > 10 && n_stopped < 55);
}

/* ---- Tokens that are allowed ----------------------------------------------------------------- */

/* A text whose steps may draw the tokens allowed[n] alone, beside a sampler whose vocabulary has no
 * others. */
static void compare_masked(const dpi_sampler_options *o, const int32_t *allowed, int32_t n,
                           uint64_t *seed) {
    uint64_t words = random_u64(seed), few_words = words, bits = 0;
    batch b, few;
    dpi_sampler_options few_options = *o;
    for (int32_t i = 0; i < n; i++)
        bits |= UINT64_C(1) << allowed[i];
    few_options.n_vocab = n, few_options.top_k = o->top_k < n ? o->top_k : n;
    SAMPLER s = begin_text(*o, &words), *t = begin_text(few_options, &few_words);
    assert_ok(dpi_sampler_allow(s, &bits, ERR));
    for (int i = 0; i < o->n_tokens; i++) {
        draw_batch(&b, 2, seed);
        for (int j = 0; j < o->n_ref; j++)
            few.slots[j] = b.slots[j] ? few.reference[j] : NULL;
        for (int32_t y = 0; y < n; y++) {
            few.public_logits[y] = b.public_logits[allowed[y]];
            for (int j = 0; j < o->n_ref; j++)
                few.reference[j][y] = b.reference[j][allowed[y]];
        }
        const int32_t token = step(s, &b);
        assert_int_equal(token, allowed[step(t, &few)]);
        assert_int_equal(words, few_words);
        assert_true(dpi_adapmixed_spent_get(s).renyi == dpi_adapmixed_spent_get(t).renyi);
    }
}

TEST(test_allowed) {
    uint64_t seed = 6;
    for (int i = 0; i < 40; i++) {
        const dpi_sampler_options o = make_options(1 + i % N_MAX, 30);
        int32_t allowed[V], n = 0;
        while (n < 2) {
            n = 0;
            for (int32_t y = 0; y < V; y++)
                if (random_below(&seed, 1 + i % 6) == 0)
                    allowed[n++] = y;
        }
        compare_masked(&o, allowed, n, &seed);
    }
}

/* A step without a choice draws nothing and costs nothing. */
TEST(test_one_allowed) {
    uint64_t seed = 7, words = 8, bits = 1 << 5;
    batch b;
    SAMPLER s = begin_text(make_options(2, 3), &words);
    draw_batch(&b, 2, &seed);
    assert_ok(dpi_sampler_allow(s, &bits, ERR));
    assert_int_equal(step(s, &b), 5);
    assert_int_equal(words, 8);
    assert_true(dpi_adapmixed_spent_get(s).renyi == 0);
}

/* The budget that stopped a text is there again for the next one. */
TEST(test_begin_starts_anew) {
    uint64_t seed = 3, words = 4;
    dpi_sampler_options o = make_options(2, 2);
    o.screen_sigma = 1e-4;
    SAMPLER s = begin_text(o, &words);
    for (int i = 0; i < 2; i++) {
        assert_ok(dpi_sampler_begin(s, ERR));
        assert_false(dpi_adapmixed_spent_get(s).stopped);
        assert_true(dpi_adapmixed_spent_get(s).renyi == 0);
        for (int t = 0; t < 60; t++) {
            batch b;
            draw_batch(&b, 2, &seed);
            step(s, &b);
        }
        assert_true(dpi_adapmixed_spent_get(s).stopped);
    }
}

/* ---- Not a DP method ------------------------------------------------------------------------ */

TEST(test_refusals) {
    const dpi_sampler_options good = make_options(4, 3);
    dpi_sampler_options o;
    REFUSED(ARG, "not differentially private", o.acknowledge_not_dp = 0);
    REFUSED(ARG, "acknowledge_not_dp = 1, found 2", o.acknowledge_not_dp = 2);
    REFUSED(ARG, "screen_sigma is nan", o.screen_sigma = NAN);
    REFUSED(ARG, "screen_threshold is -0.1", o.screen_threshold = -.1);
    REFUSED(ARG, "delta is 0", o.delta = 0);
    REFUSED(UNSUPPORTED, "adapmixed", o.adjacency = DPI_ADJACENCY_ZERO_OUT);
    REFUSED(UNSUPPORTED, "adapmixed", o.accountant = DPI_ACCOUNTANT_BR);
    REFUSED(ARG, "delta is 0", o.epsilon = 0, o.rho = 1, o.delta = 0);

    const dpi_sampler_plan plan = make_plan(&good); /* it claims nothing */
    assert_true(isinf(plan.eta) && isinf(plan.rho_token) && isinf(plan.rho_total));
    assert_true(plan.epsilon == 0 && plan.rho_budget == 0);
}

TEST(test_errors_of_a_step) {
    uint64_t seed = 5;
    limited_source none = {.n = 0};
    dpi_sampler_options o = make_options(3, 3);
    batch b;
    dpi_distribution d;
    int32_t token = -7;
    draw_batch(&b, 1, &seed);
    o.random = limited_bits, o.random_user = &none;
    SAMPLER s = open_sampler(&o);
    assert_error(dpi_sampler_distribution(s, b.public_logits, b.slots, &d, ERR), UNSUPPORTED,
                 "adapmixed");
    assert_ok(dpi_sampler_begin(s, ERR));
    assert_error(dpi_sampler_step(s, b.public_logits, b.slots, &token, ERR), ENTROPY,
                 "random source");
    assert_error(dpi_sampler_step(s, b.public_logits, NULL, &token, ERR), ARG,
                 "reference logits are NULL");
    b.public_logits[3] = NAN;
    assert_error(dpi_sampler_step(s, b.public_logits, b.slots, &token, ERR), NUMERIC,
                 "public logit 3");
    assert_int_equal(token, -7);
}
