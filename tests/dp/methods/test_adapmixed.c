/* test_adapmixed.c - AdaPMixED step by step against a second implementation, written from
 * docs/spec.md 4.7 in long double with plain powers: the same random words must give the same
 * tokens, costs and end. And its refusals: it is not a DP method. */
#include "dp/methods/adapmixed.h"

#include <math.h>

#include "dp/methods/sampler.h"
#include "tests/support/support.h"

enum { V = 24, N_MAX = 5 };

typedef long double real;

typedef struct world {
    dpi_sampler_options options;
    float public_logits[V];
    float reference[N_MAX][V];
    const float *pointers[N_MAX];
} world;

static dpi_sampler_options make_options(int32_t n_ref, double epsilon) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    o.method = DPI_METHOD_ADAPMIXED;
    o.acknowledge_not_dp = 1;
    o.n_vocab = V;
    o.n_ref = n_ref;
    o.n_tokens = 60;
    o.top_k = 8;
    o.epsilon = epsilon;
    o.delta = 1e-6;
    return o;
}

static void random_logits(world *w, double spread, uint64_t *seed) {
    for (int y = 0; y < V; y++)
        w->public_logits[y] = (float)((1 + spread) * random_normal(seed));
    for (int j = 0; j < w->options.n_ref; j++) {
        for (int y = 0; y < V; y++) {
            w->reference[j][y] = w->public_logits[y] + (float)(spread * random_normal(seed));
            if (random_below(seed, 60) == 0)
                w->reference[j][y] = random_below(seed, 2) ? NAN : -INFINITY;
        }
        w->pointers[j] = random_below(seed, 6) ? w->reference[j] : NULL;
    }
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

static uint64_t word(oracle *o) {
    uint64_t bits;
    assert_int_equal(dpi_random_insecure(&o->seed, &bits, sizeof bits), 0);
    return bits;
}

static void softmax(const float *l, real tau, real *p) {
    real sum = 0;
    for (int y = 0; y < V; y++)
        sum += p[y] = isfinite(l[y]) ? expl(l[y] / tau) : 0;
    for (int y = 0; y < V; y++)
        p[y] /= sum;
}

static real renyi(const real *p, const real *q, int n, real alpha) {
    real sum = 0;
    for (int i = 0; i < n; i++)
        sum += powl(p[i], alpha) * powl(q[i], 1 - alpha);
    return logl(sum > 1e-12L ? sum : 1e-12L) / (alpha - 1);
}

static void top_k(const real *p, int k, int *index) {
    bool taken[V] = {false};
    for (int i = 0; i < k; i++) {
        int best = -1;
        for (int y = 0; y < V; y++)
            if (!taken[y] && (best < 0 || p[y] > p[best]))
                best = y;
        taken[best] = true;
    }
    for (int y = 0, i = 0; y < V; y++) /* noise goes to them in the order of their ids */
        if (taken[y])
            index[i++] = y;
}

static bool screened_out(oracle *o, const real *p0, real p[][V]) {
    int index[V];
    real a[V], b[V], sum_a = 0, sum_b = 0;
    top_k(p0, o->k, index);
    for (int i = 0; i < o->k; i++) {
        real mean = 0;
        for (int j = 0; j < o->n; j++)
            mean += p[j][index[i]] / o->n;
        real u = (real)((word(o) >> 11) + 1) / 0x1p53L, v = (real)(word(o) >> 11) / 0x1p53L;
        real noise = sqrtl(-2 * logl(u)) * cosl(2 * acosl(-1) * v);
        a[i] = p0[index[i]];
        b[i] = (1 - o->lambda) * a[i] + o->lambda * mean + o->sigma * noise;
        sum_a += a[i];
        sum_b += b[i];
    }
    for (int i = 0; i < o->k; i++) {
        a[i] /= sum_a;
        b[i] /= sum_b;
    }
    return fmaxl(renyi(a, b, o->k, o->alpha), renyi(b, a, o->k, o->alpha)) > o->threshold;
}

static void blend(const real *p, const real *p0, real x, real *g) {
    for (int y = 0; y < V; y++)
        g[y] = x * p[y] + (1 - x) * p0[y];
}

/* pr and the cost. */
static real mix(oracle *o, const real *p0, real p[][V], real *pr) {
    real g[N_MAX][V], r[V], cost = 0;
    for (int j = 0; j < o->n; j++) {
        real x = 1, low = 0, high = 1;
        blend(p[j], p0, x, g[j]);
        if (renyi(g[j], p0, V, o->alpha) > o->beta * o->alpha) {
            o->n_cut++;
            for (int i = 0; i < 100; i++) {
                x = (low + high) / 2;
                blend(p[j], p0, x, g[j]);
                if (renyi(g[j], p0, V, o->alpha) <= o->beta * o->alpha)
                    low = x;
                else
                    high = x;
            }
            blend(p[j], p0, low, g[j]);
        } else {
            o->n_inside++;
        }
    }
    for (int y = 0; y < V; y++) {
        pr[y] = 0;
        for (int j = 0; j < o->n; j++)
            pr[y] += g[j][y] / o->n;
    }
    for (int i = 0; i < o->n; i++) {
        for (int y = 0; y < V; y++) {
            r[y] = p0[y];
            for (int j = 0; j < o->n; j++)
                r[y] += j == i ? 0 : g[j][y];
            r[y] /= o->n;
        }
        cost = fmaxl(cost, renyi(pr, r, V, o->alpha));
    }
    return cost;
}

static int32_t oracle_step(oracle *o, const world *w) {
    real p0[V], p[N_MAX][V], pr[V], left;
    softmax(w->public_logits, o->tau, p0);
    memcpy(pr, p0, sizeof pr);
    if (!o->stopped) {
        for (int j = 0; j < o->n; j++)
            softmax(w->pointers[j] ? w->pointers[j] : w->public_logits, o->tau, p[j]);
        real E = o->E + o->alpha * powl(o->lambda / (o->n * o->sigma), 2);
        if (screened_out(o, p0, p)) {
            o->n_screened++;
        } else {
            E += mix(o, p0, p, pr);
            o->n_mixed++;
        }
        real epsilon = E + logl(1 - 1 / o->alpha) - logl(o->delta * o->alpha) / (o->alpha - 1);
        if (fmaxl(0, epsilon) > o->budget) {
            o->stopped = true;
            memcpy(pr, p0, sizeof pr);
        } else {
            o->E = E;
        }
    }
    left = (real)(word(o) >> 11) / 0x1p53L;
    for (int y = 0; y < V; y++) {
        left -= pr[y];
        if (left < 0)
            return y;
    }
    return V - 1;
}

/* ---- Side by side --------------------------------------------------------------------------- */

static void side_by_side(world *w, double spread, oracle *o, uint64_t *seed) {
    uint64_t words = random_u64(seed);
    o->seed = words;
    o->E = 0;
    o->stopped = false;
    o->n = w->options.n_ref;
    w->options.random = dpi_random_insecure;
    w->options.random_user = &words;
    dpi_sampler *s = open_sampler(&w->options);
    dpi_error err;
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    for (int t = 0; t < w->options.n_tokens; t++) {
        int32_t token;
        random_logits(w, spread, seed);
        assert_ok(dpi_sampler_step(s, w->public_logits, w->pointers, &token, &err), &err);
        assert_int_equal(token, oracle_step(o, w));
        assert_int_equal(words, o->seed); /* as many random words */
        dpi_adapmixed_spent spent = dpi_adapmixed_spent_get(s);
        assert_int_equal(spent.stopped, o->stopped);
        assert_true(fabsl(spent.renyi - o->E) <= 1e-9L * (1 + o->E));
        assert_true(spent.epsilon <= (double)o->budget || spent.renyi == 0);
    }
    dpi_sampler_free(s);
}

static void test_defaults(void **state) {
    (void)state;
    uint64_t seed = 1;
    oracle o = {.alpha = 15, .beta = .3L, .lambda = 1e-4L, .sigma = .01L, .threshold = 4.5L,
                .tau = 1, .delta = 1e-6L};
    for (int i = 0; i < 40; i++) {
        world w = {.options = make_options(1 + i % N_MAX, 3 + i)};
        w.options.top_k = o.k = i % 2 ? 20 : 8;
        o.budget = 3 + i;
        side_by_side(&w, .2 + .4 * (i % 7), &o, &seed);
    }
    assert_true(o.n_screened > 20 && o.n_mixed > 200);
}

static void test_other_parameters(void **state) {
    (void)state;
    uint64_t seed = 2;
    int n_stopped = 0;
    oracle o = {.alpha = 15, .beta = .3L, .lambda = 1e-4L};
    for (int i = 0; i < 60; i++) {
        world w = {.options = make_options(1 + i % N_MAX, 2 + 8 * (i % 9))};
        w.options.screen_sigma = .002 * (1 + 5 * (i % 5));
        w.options.screen_threshold = .5 + i % 4;
        w.options.tau = .6 + .2 * (i % 5);
        w.options.top_k = 4 + 5 * (i % 4);
        w.options.delta = i % 2 ? 1e-6 : .01;
        o.sigma = w.options.screen_sigma;
        o.threshold = w.options.screen_threshold;
        o.tau = w.options.tau;
        o.k = w.options.top_k;
        o.delta = w.options.delta;
        o.budget = w.options.epsilon;
        if (i % 3 == 0) { /* the same budget, as rho */
            double epsilon;
            w.options.rho = .5 + i;
            w.options.epsilon = 0;
            assert_ok(dpi_zcdp_epsilon(w.options.rho, w.options.delta, &epsilon, NULL), NULL);
            o.budget = epsilon;
        }
        side_by_side(&w, .1 + (i % 5), &o, &seed);
        n_stopped += o.stopped;
    }
    /* Everything that can happen did. */
    assert_true(o.n_screened > 20 && o.n_mixed > 200 && o.n_inside > 50 && o.n_cut > 50);
    assert_true(n_stopped > 10 && n_stopped < 55);
}

/* ---- Tokens that are allowed ----------------------------------------------------------------- */

/* A text of w whose steps may draw the tokens allowed [n] alone, beside a sampler whose vocabulary
 * has no others. */
static void compare_masked(world *w, const int32_t *allowed, int32_t n, uint64_t *seed) {
    uint64_t words[2] = {random_u64(seed)}, bits = 0;
    world few = {.options = w->options};
    dpi_sampler *s[2];
    words[1] = words[0];
    for (int32_t i = 0; i < n; i++)
        bits |= UINT64_C(1) << allowed[i];
    w->options.random = few.options.random = dpi_random_insecure;
    w->options.random_user = &words[0];
    few.options.random_user = &words[1];
    few.options.n_vocab = n;
    few.options.top_k = w->options.top_k < n ? w->options.top_k : n;
    s[0] = open_sampler(&w->options);
    s[1] = open_sampler(&few.options);
    for (int k = 0; k < 2; k++)
        assert_ok(dpi_sampler_begin(s[k], NULL), NULL);
    assert_ok(dpi_sampler_allow(s[0], &bits, NULL), NULL);
    for (int t = 0; t < w->options.n_tokens; t++) {
        int32_t token[2];
        random_logits(w, 2, seed);
        for (int32_t i = 0; i < n; i++)
            few.public_logits[i] = w->public_logits[allowed[i]];
        for (int j = 0; j < w->options.n_ref; j++) {
            for (int32_t i = 0; i < n; i++)
                few.reference[j][i] = w->reference[j][allowed[i]];
            few.pointers[j] = w->pointers[j] ? few.reference[j] : NULL;
        }
        assert_ok(dpi_sampler_step(s[0], w->public_logits, w->pointers, &token[0], NULL), NULL);
        assert_ok(dpi_sampler_step(s[1], few.public_logits, few.pointers, &token[1], NULL), NULL);
        assert_int_equal(token[0], allowed[token[1]]);
        assert_int_equal(words[0], words[1]);
        assert_true(dpi_adapmixed_spent_get(s[0]).renyi == dpi_adapmixed_spent_get(s[1]).renyi);
    }
    for (int k = 0; k < 2; k++)
        dpi_sampler_free(s[k]);
}

static void test_allowed(void **state) {
    (void)state;
    uint64_t seed = 6;
    for (int i = 0; i < 40; i++) {
        world w = {.options = make_options(1 + i % N_MAX, 30)};
        int32_t allowed[V], n = 0;
        while (n < 2) {
            n = 0;
            for (int32_t y = 0; y < V; y++)
                if (random_below(&seed, 1 + (uint32_t)i % 6) == 0)
                    allowed[n++] = y;
        }
        compare_masked(&w, allowed, n, &seed);
    }
}

/* A step without a choice draws nothing and costs nothing. */
static void test_one_allowed(void **state) {
    (void)state;
    uint64_t seed = 7, words = 8, bits = 1 << 5;
    world w = {.options = make_options(2, 3)};
    int32_t token;
    w.options.random = dpi_random_insecure;
    w.options.random_user = &words;
    dpi_sampler *s = open_sampler(&w.options);
    random_logits(&w, 2, &seed);
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    assert_ok(dpi_sampler_allow(s, &bits, NULL), NULL);
    assert_ok(dpi_sampler_step(s, w.public_logits, w.pointers, &token, NULL), NULL);
    assert_int_equal(token, 5);
    assert_int_equal(words, 8);
    assert_true(dpi_adapmixed_spent_get(s).renyi == 0);
    dpi_sampler_free(s);
}

/* The budget that stopped a text is there again for the next one. */
static void test_begin_starts_anew(void **state) {
    (void)state;
    uint64_t seed = 3, words = 4;
    world w = {.options = make_options(2, 2)};
    w.options.screen_sigma = 1e-4;
    w.options.random = dpi_random_insecure;
    w.options.random_user = &words;
    dpi_sampler *s = open_sampler(&w.options);
    for (int i = 0; i < 2; i++) {
        assert_ok(dpi_sampler_begin(s, NULL), NULL);
        assert_false(dpi_adapmixed_spent_get(s).stopped);
        assert_true(dpi_adapmixed_spent_get(s).renyi == 0);
        for (int t = 0; t < 60; t++) {
            int32_t token;
            random_logits(&w, 2, &seed);
            assert_ok(dpi_sampler_step(s, w.public_logits, w.pointers, &token, NULL), NULL);
        }
        assert_true(dpi_adapmixed_spent_get(s).stopped);
    }
    dpi_sampler_free(s);
}

/* ---- Not a DP method ------------------------------------------------------------------------ */

static void test_refusals(void **state) {
    (void)state;
    const dpi_sampler_options good = make_options(4, 3);
    dpi_sampler_options o;
#define REFUSED(field, value, status, part) \
    (o = good, o.field = (value), assert_refused(&o, status, part))
    REFUSED(acknowledge_not_dp, 0, DPI_STATUS_ARG, "not differentially private");
    REFUSED(acknowledge_not_dp, 2, DPI_STATUS_ARG, "acknowledge_not_dp = 1, found 2");
    REFUSED(screen_sigma, NAN, DPI_STATUS_ARG, "screen_sigma is nan");
    REFUSED(screen_threshold, -.1, DPI_STATUS_ARG, "screen_threshold is -0.1");
    REFUSED(delta, 0, DPI_STATUS_ARG, "delta is 0");
    REFUSED(adjacency, DPI_ADJACENCY_ZERO_OUT, DPI_STATUS_UNSUPPORTED, "adapmixed");
    REFUSED(accountant, DPI_ACCOUNTANT_BR, DPI_STATUS_UNSUPPORTED, "adapmixed");
    o = good;
    o.epsilon = 0;
    o.rho = 1;
    o.delta = 0;
    assert_refused(&o, DPI_STATUS_ARG, "delta is 0");

    /* It claims nothing. */
    dpi_sampler_plan plan = {.struct_size = sizeof plan};
    dpi_error err;
    assert_ok(dpi_sampler_plan_make(&good, &plan, &err), &err);
    assert_true(isinf(plan.eta) && isinf(plan.rho_token) && isinf(plan.rho_total));
    assert_true(plan.epsilon == 0 && plan.rho_budget == 0);
}

static int32_t no_bits(void *user, void *buffer, size_t n_bytes) {
    (void)user, (void)buffer, (void)n_bytes;
    return -1;
}

static void test_errors_of_a_step(void **state) {
    (void)state;
    uint64_t seed = 5;
    world w = {.options = make_options(3, 3)};
    dpi_error err;
    dpi_sampler *s = NULL;
    dpi_distribution d;
    int32_t token = -7;
    random_logits(&w, 1, &seed);
    w.options.random = no_bits;
    assert_ok(dpi_sampler_create(&w.options, &s, NULL), NULL);
    assert_error(dpi_sampler_distribution(s, w.public_logits, w.pointers, &d, &err),
                 DPI_STATUS_UNSUPPORTED, &err, "adapmixed");
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    assert_error(dpi_sampler_step(s, w.public_logits, w.pointers, &token, &err),
                 DPI_STATUS_ENTROPY, &err, "random source");
    assert_error(dpi_sampler_step(s, w.public_logits, NULL, &token, &err), DPI_STATUS_ARG, &err,
                 "reference logits are NULL");
    w.public_logits[3] = NAN;
    assert_error(dpi_sampler_step(s, w.public_logits, w.pointers, &token, &err),
                 DPI_STATUS_NUMERIC, &err, "public logit 3");
    assert_int_equal(token, -7);
    dpi_sampler_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),          cmocka_unit_test(test_other_parameters),
        cmocka_unit_test(test_begin_starts_anew), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_errors_of_a_step),  cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_one_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
