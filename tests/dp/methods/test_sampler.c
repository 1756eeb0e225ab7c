/* test_sampler.c - state machine, and the distribution of a step against the formulas of
 * docs/spec.md section 2 written out plainly; random sources. Built with FAIL_ALLOC. */
#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "dp/methods/sampler.h"
#include "tests/support/support.h"

/* ---- The distribution of a step ------------------------------------------------------------- */

enum { V = 60, B_MAX = 6 };

typedef struct batch {
    float public_logits[V];
    float reference[B_MAX][V];
    const float *pointers[B_MAX];
} batch;

static void random_batch(batch *b, int32_t n_ref, uint64_t *seed) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f, -0.0f};
    double spread = exp(3 * random_uniform(seed) - 2);
    for (int y = 0; y < V; y++) {
        /* Multiples of 1/4: ties at every threshold. */
        b->public_logits[y] = (float)rint(12 * random_normal(seed)) / 4;
        if (y % 3 == 0)
            b->public_logits[y] += (float)random_uniform(seed);
    }
    for (int j = 0; j < n_ref; j++) {
        for (int y = 0; y < V; y++) {
            b->reference[j][y] = b->public_logits[y] + (float)(spread * random_normal(seed));
            if (random_below(seed, 20) == 0)
                b->reference[j][y] = odd[random_below(seed, 7)];
        }
        b->pointers[j] = random_below(seed, 5) ? b->reference[j] : NULL;
    }
}

static int descending(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

/* docs/spec.md section 2, term by term. */
static void check_against_formulas(dpi_sampler *s, const batch *b) {
    const dpi_sampler_options *o = dpi_sampler_options_get(s);
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(s);
    const int64_t B = o->n_ref, K = plan->K;
    int64_t P[V], sorted[V], S[V], U[V], top = INT64_MIN;
    bool in[V];
    float max = b->public_logits[0];
    for (int y = 1; y < V; y++)
        max = fmaxf(max, b->public_logits[y]);
    for (int y = 0; y < V; y++)
        sorted[y] = P[y] = llrint(((double)b->public_logits[y] - (double)max) * 1048576);
    qsort(sorted, V, sizeof *sorted, descending);
    for (int y = 0; y < V; y++) {
        S[y] = 0;
        for (int j = 0; j < B; j++) {
            double d = b->pointers[j] ? (double)b->pointers[j][y] - (double)b->public_logits[y] : 0;
            d *= 1048576;
            S[y] += !isfinite(d) ? 0 : d >= K ? K : d <= -K ? -K : llrint(d);
        }
        U[y] = B * P[y] + S[y];
        in[y] = o->top_k == 0 || B * P[y] >= B * sorted[o->top_k - 1] - 2 * K;
        if (in[y] && U[y] > top)
            top = U[y];
    }
    dpi_distribution d;
    assert_ok(dpi_sampler_distribution(s, b->public_logits, b->pointers, &d, NULL), NULL);
    int64_t i = 0;
    for (int y = 0; y < V; y++) {
        if (!in[y])
            continue;
        assert_true(i < d.n_support);
        assert_int_equal(d.support[i], y);
        assert_int_equal(d.sum[i], S[y]);
        long double bits = (long double)(top - U[y]) * (long double)plan->a * 0x1p-48L;
        long double ideal = exp2l(109 - fminl(bits, 69));
        assert_true(fabsl(logl((long double)d.weights[i] / ideal)) <= 0x1p-40L);
        i++;
    }
    assert_int_equal(i, d.n_support);
}

static void test_distribution(void **state) {
    (void)state;
    uint64_t seed = 20;
    for (int round = 0; round < 1500; round++) {
        int32_t n_ref = 1 + random_below(&seed, B_MAX);
        double tau = .05 + 2 * random_uniform(&seed), rho = exp(8 * random_uniform(&seed) - 5);
        dpi_sampler_options o = ink_options(V, n_ref, 20, tau, rho);
        o.top_k = random_below(&seed, V + 1);
        dpi_sampler *s = open_sampler(&o);
        batch b;
        for (int i = 0; i < 3; i++) {
            random_batch(&b, n_ref, &seed);
            check_against_formulas(s, &b);
        }
        dpi_sampler_free(s);
    }
}

/* Halves go to the even neighbour, on both sides; the clip bound is reached and not passed. */
static void test_rounding_of_contributions(void **state) {
    (void)state;
    static const double units[] = {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49, 0.51, 1e9, -1e9};
    static const int64_t wanted[] = {0, 2, 2, 0, -2, -2, 0, 1, 0, 0};
    enum { N = sizeof units / sizeof *units };
    float public_logits[N] = {0}, reference[N];
    const float *pointers[1] = {reference};
    for (int i = 0; i < N; i++)
        reference[i] = (float)(units[i] * 0x1p-20);
    dpi_sampler_options o = ink_options(N, 1, 10, 1, .5);
    dpi_sampler *s = open_sampler(&o);
    int64_t K = dpi_sampler_plan_get(s)->K;
    dpi_distribution d;
    assert_ok(dpi_sampler_distribution(s, public_logits, pointers, &d, NULL), NULL);
    for (int i = 0; i < 8; i++)
        assert_int_equal(d.sum[i], wanted[i]);
    assert_int_equal(d.sum[8], K);
    assert_int_equal(d.sum[9], -K);
    dpi_sampler_free(s);
}

/* The order of references does not show, nor does a null slot that repeats the public logits. */
static void test_order_and_nulls(void **state) {
    (void)state;
    uint64_t seed = 21;
    dpi_sampler_options o = ink_options(V, B_MAX, 20, .8, 2);
    o.top_k = 9;
    dpi_sampler *s = open_sampler(&o), *t = open_sampler(&o);
    for (int round = 0; round < 200; round++) {
        batch b;
        dpi_distribution d, e;
        random_batch(&b, B_MAX, &seed);
        assert_ok(dpi_sampler_distribution(s, b.public_logits, b.pointers, &d, NULL), NULL);
        for (int j = B_MAX - 1; j > 0; j--) {
            int k = random_below(&seed, j + 1);
            const float *swap = b.pointers[j];
            b.pointers[j] = b.pointers[k];
            b.pointers[k] = swap;
        }
        for (int j = 0; j < B_MAX; j++)
            if (!b.pointers[j])
                b.pointers[j] = b.public_logits;
        assert_ok(dpi_sampler_distribution(t, b.public_logits, b.pointers, &e, NULL), NULL);
        assert_int_equal(d.n_support, e.n_support);
        assert_memory_equal(d.support, e.support, (size_t)d.n_support * sizeof *d.support);
        assert_memory_equal(d.sum, e.sum, (size_t)d.n_support * sizeof *d.sum);
        assert_memory_equal(d.weights, e.weights, (size_t)d.n_support * sizeof *d.weights);
    }
    dpi_sampler_free(s);
    dpi_sampler_free(t);
}

/* Logits at the allowed limit: the far end saturates at -1e4 logits. */
static void test_saturation(void **state) {
    (void)state;
    const float public_logits[4] = {1e4f, 0, -1, -1e4f};
    const float *pointers[2] = {NULL, NULL};
    dpi_sampler_options o = ink_options(4, 2, 10, 100, 1);
    o.top_k = 2; /* the threshold is 0 = 1e4 below the top, where the others are saturated too */
    dpi_sampler *s = open_sampler(&o);
    dpi_distribution d;
    assert_ok(dpi_sampler_distribution(s, public_logits, pointers, &d, NULL), NULL);
    assert_int_equal(d.n_support, 4);
    assert_true(d.weights[0] == (dpi_u128)1 << 109);
    assert_true(d.weights[3] == (dpi_u128)1 << 40);
    dpi_sampler_free(s);
}

/* ---- Filter and centring --------------------------------------------------------------------- */

/* Budgets of records start anew with each text, whatever was spent. */
static void test_filter_begins_anew(void **state) {
    (void)state;
    float public_logits[8] = {0}, reference[8] = {5, -5, 5, -5, 5, -5, 5, -5};
    const float *pointers[2] = {reference, NULL};
    dpi_sampler_options o = ink_options(8, 2, 100, 1, .5);
    o.accountant = DPI_ACCOUNTANT_FILTER;
    o.clip = .5; /* eta = 2 * .5 / 2 = .5, rho of a token 1/32: 15 fit .5, with the rounding */
    dpi_sampler *s = open_sampler(&o);
    for (int text = 0; text < 3; text++) {
        assert_ok(dpi_sampler_begin(s, NULL), NULL);
        for (int i = 0; i < 30; i++) {
            dpi_distribution d;
            int32_t token;
            assert_ok(dpi_sampler_distribution(s, public_logits, pointers, &d, NULL), NULL);
            assert_int_equal(d.sum[0], i < 15 ? 1 << 19 : 0);
            assert_int_equal(d.sum[1], i < 15 ? -(1 << 19) : 0);
            assert_ok(dpi_sampler_step(s, public_logits, pointers, &token, NULL), NULL);
        }
    }
    dpi_sampler_free(s);
}

/* Share of (token, reference) pairs on the clip bound, for references whose logits have an offset:
 * with centring it does not depend on the offset, and does not exceed what it is without one. */
static double clipped_share(double offset, int32_t center) {
    enum { N = 200, N_REFS = 6 };
    static float public_logits[N], reference[N_REFS][N];
    const float *pointers[1];
    uint64_t seed = 26;
    int64_t n = 0, n_clipped = 0;
    dpi_sampler_options o = ink_options(N, 1, 100, 1, 50); /* C = 1 */
    o.center = center;
    o.top_k = 50;
    dpi_sampler *s = open_sampler(&o);
    const int64_t K = dpi_sampler_plan_get(s)->K;
    for (int round = 0; round < 20; round++) {
        for (int y = 0; y < N; y++)
            public_logits[y] = (float)(3 * random_normal(&seed));
        for (int j = 0; j < N_REFS; j++) {
            double shift = offset * random_normal(&seed);
            for (int y = 0; y < N; y++)
                reference[j][y] = public_logits[y] + (float)(shift + .7 * random_normal(&seed));
            dpi_distribution d;
            pointers[0] = reference[j];
            assert_ok(dpi_sampler_distribution(s, public_logits, pointers, &d, NULL), NULL);
            for (int64_t i = 0; i < d.n_support; i++, n++) {
                assert_true(llabs(d.sum[i]) <= K);
                n_clipped += llabs(d.sum[i]) == K;
            }
        }
    }
    dpi_sampler_free(s);
    return (double)n_clipped / (double)n;
}

static void test_centring_clips_less(void **state) {
    (void)state;
    for (double offset = 0; offset <= 8; offset = offset > 0 ? 2 * offset : .5) {
        double without = clipped_share(offset, 0), with = clipped_share(offset, 1);
        print_message("offsets of deviation %g: %.1f %% clipped, centred %.1f %%\n", offset,
                      100 * without, 100 * with);
        assert_true(with < .35 && (offset < 1 || with < without));
    }
}

/* ---- Plain ---------------------------------------------------------------------------------- */

static void test_plain(void **state) {
    (void)state;
    const float logits[6] = {-1, 2, 0.5f, 2, 0.5f, -7};
    int32_t token = -1;
    dpi_sampler_options o = ink_options(6, 0, 1000, 0, 0);
    o.method = DPI_METHOD_PLAIN;
    dpi_sampler *s = open_sampler(&o); /* greedy */
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    for (int i = 0; i < 100; i++) {
        assert_ok(dpi_sampler_step(s, logits, NULL, &token, NULL), NULL);
        assert_int_equal(token, 1);
    }
    dpi_sampler_free(s);

    o.tau = .7;
    o.top_k = 3; /* the third largest is 0.5, twice */
    s = open_sampler(&o);
    dpi_distribution d;
    assert_ok(dpi_sampler_distribution(s, logits, NULL, &d, NULL), NULL);
    assert_int_equal(d.n_support, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(d.support[i], i + 1);
        long double ideal = expl((logits[i + 1] - 2) / .7L);
        long double error = (long double)d.weights[i] * 0x1p-109L / ideal - 1;
        assert_true(fabsl(error) < 1e-7L); /* 2^-21 of a logit / tau, and a's rounding */
    }
    dpi_sampler_free(s);
}

/* The nucleus: masses are 1/2, 1/4, 1/8, 1/16, 1/16 of the tokens 4, 2, 0, 1 and 3. */
static void test_nucleus(void **state) {
    (void)state;
    static const struct {
        double top_p, min_p;
        int kept[5];
    } cases[] = {
        {.4, 0, {0, 0, 0, 0, 1}},   {.499, 0, {0, 0, 0, 0, 1}}, {.6, 0, {0, 0, 1, 0, 1}},
        {.749, 0, {0, 0, 1, 0, 1}}, {.8, 0, {1, 0, 1, 0, 1}},   {.9, 0, {1, 1, 1, 1, 1}},
        {1, 0, {1, 1, 1, 1, 1}},    {0, .3, {0, 0, 1, 0, 1}},   {0, .2, {1, 0, 1, 0, 1}},
        {0, 1, {0, 0, 0, 0, 1}},    {.8, .3, {0, 0, 1, 0, 1}},  {.1, .2, {0, 0, 0, 0, 1}},
    };
    const float step = 0.693147180559945f, logits[5] = {step, 0, 2 * step, 0, 3 * step};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        dpi_sampler_options o = ink_options(5, 0, 1000, 1, 0);
        dpi_distribution d;
        o.method = DPI_METHOD_PLAIN;
        o.top_p = cases[c].top_p, o.min_p = cases[c].min_p;
        dpi_sampler *s = open_sampler(&o);
        assert_ok(dpi_sampler_distribution(s, logits, NULL, &d, NULL), NULL);
        assert_int_equal(d.n_support, 5);
        for (int i = 0; i < 5; i++)
            assert_int_equal(d.weights[i] > 0, cases[c].kept[i]);
        assert_ok(dpi_sampler_begin(s, NULL), NULL);
        for (int i = 0; i < 200; i++) {
            int32_t token = -1;
            assert_ok(dpi_sampler_step(s, logits, NULL, &token, NULL), NULL);
            assert_true(token >= 0 && token < 5 && cases[c].kept[token]);
        }
        dpi_sampler_free(s);
    }
}

/* ---- State machine -------------------------------------------------------------------------- */

typedef struct script {
    int32_t result;
    unsigned char byte;
    int calls;
} script;

static int32_t scripted(void *user, void *buffer, size_t n_bytes) {
    script *s = user;
    s->calls++;
    assert_int_equal(n_bytes, 32);
    memset(buffer, s->byte, n_bytes);
    return s->result;
}

static void test_states(void **state) {
    (void)state;
    dpi_error err;
    uint64_t seed = 22;
    batch b;
    random_batch(&b, 3, &seed);
    script random = {0, 0, 0};
    dpi_sampler_options o = ink_options(V, 3, 2, 1, 1);
    o.random = scripted;
    o.random_user = &random;
    dpi_sampler *s = open_sampler(&o);
    int32_t token = -7;
    assert_int_equal(dpi_sampler_tokens_left(s), 0);
    assert_error(dpi_sampler_step(s, b.public_logits, b.pointers, &token, &err), DPI_STATUS_STATE,
                 &err, "begin");
    for (int text = 0; text < 3; text++) {
        assert_ok(dpi_sampler_begin(s, &err), &err);
        assert_int_equal(dpi_sampler_tokens_left(s), 2);
        random.byte = 0; /* X = 0 draws the first token, X = 2^256 - 1 the last */
        assert_ok(dpi_sampler_step(s, b.public_logits, b.pointers, &token, &err), &err);
        assert_int_equal(token, 0);
        assert_int_equal(dpi_sampler_tokens_left(s), 1);
        random.byte = 255;
        assert_ok(dpi_sampler_step(s, b.public_logits, b.pointers, &token, &err), &err);
        assert_int_equal(token, V - 1);
        token = -7;
        assert_int_equal(dpi_sampler_tokens_left(s), 0);
        assert_error(dpi_sampler_step(s, b.public_logits, b.pointers, &token, &err),
                     DPI_STATUS_BUDGET, &err, "all 2 tokens");
        assert_int_equal(token, -7);
    }
    assert_int_equal(random.calls, 6); /* fresh bits for each token, none without one */
    assert_error(dpi_sampler_step(NULL, b.public_logits, b.pointers, &token, &err), DPI_STATUS_ARG,
                 &err, "NULL");
    assert_error(dpi_sampler_begin(NULL, &err), DPI_STATUS_ARG, &err, "NULL");
    assert_ok(dpi_sampler_begin(s, &err), &err);
    assert_error(dpi_sampler_step(s, b.public_logits, NULL, &token, &err), DPI_STATUS_ARG, &err,
                 "must be pointers");
    dpi_sampler_free(s);
    dpi_sampler_free(NULL);
}

/* A failed step draws nothing and costs nothing. */
static void test_failures_draw_nothing(void **state) {
    (void)state;
    dpi_error err;
    uint64_t seed = 23;
    batch b;
    random_batch(&b, 3, &seed);
    script random = {-1, 0, 0};
    dpi_sampler_options o = ink_options(V, 3, 1, 1, 1);
    o.random = scripted;
    o.random_user = &random;
    dpi_sampler *s = open_sampler(&o);
    int32_t token = -7;
    assert_ok(dpi_sampler_begin(s, &err), &err);
    assert_error(dpi_sampler_step(s, b.public_logits, b.pointers, &token, &err), DPI_STATUS_ENTROPY,
                 &err, "random source");
    random.result = 0;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 10001, -10001};
    for (int i = 0; i < 5; i++) {
        float keep = b.public_logits[17];
        b.public_logits[17] = bad[i];
        assert_error(dpi_sampler_step(s, b.public_logits, b.pointers, &token, &err),
                     DPI_STATUS_NUMERIC, &err, "public logit 17 of 60");
        b.public_logits[17] = keep;
    }
    assert_int_equal(token, -7);
    assert_ok(dpi_sampler_step(s, b.public_logits, b.pointers, &token, &err), &err);
    assert_int_equal(token, 0);
    dpi_sampler_free(s);
}

/* A step is the distribution and the draw, and leaves nothing private behind. */
static void test_step_and_wipe(void **state) {
    (void)state;
    uint64_t seed = 24, state_a = 99, state_b = 99;
    dpi_sampler_options o = ink_options(V, 4, 1000, .9, 3);
    o.top_k = 30;
    o.random = dpi_random_insecure;
    o.random_user = &state_a;
    dpi_sampler *s = open_sampler(&o), *t = open_sampler(&o);
    assert_ok(dpi_sampler_begin(s, NULL), NULL);
    for (int i = 0; i < 500; i++) {
        batch b;
        dpi_distribution d, e;
        uint64_t bits[DPI_DRAW_WORDS];
        int32_t token;
        random_batch(&b, 4, &seed);
        assert_ok(dpi_sampler_distribution(s, b.public_logits, b.pointers, &d, NULL), NULL);
        assert_true(d.weights[0] != 0);
        assert_ok(dpi_sampler_step(s, b.public_logits, b.pointers, &token, NULL), NULL);
        for (int64_t k = 0; k < d.n_support; k++)
            assert_true(d.weights[k] == 0 && d.sum[k] == 0);
        assert_ok(dpi_sampler_distribution(t, b.public_logits, b.pointers, &e, NULL), NULL);
        assert_int_equal(dpi_random_insecure(&state_b, bits, sizeof bits), 0);
        assert_int_equal(token, e.support[dpi_weights_draw(e.weights, (size_t)e.n_support, bits)]);
    }
    dpi_sampler_free(s);
    dpi_sampler_free(t);
}

static void test_no_memory(void **state) {
    (void)state;
    dpi_sampler_options o = ink_options(1000, 4, 10, 1, 1);
    dpi_sampler *s = NULL;
    dpi_error err;
    fail_allocation(0);
    dpi_sampler_free(open_sampler(&o));
    int64_t n = fail_allocation(0);
    assert_true(n >= 5);
    for (int64_t i = 1; i <= n; i++) {
        fail_allocation(i);
        dpi_status status = dpi_sampler_create(&o, &s, &err);
        fail_allocation(0);
        assert_error(status, DPI_STATUS_MEMORY, &err, "no memory");
        assert_null(s);
    }
}

/* ---- Random sources ------------------------------------------------------------------------- */

static int getrandom_calls;

/* EINTR, then 3 bytes, then EINTR, then the rest. */
static ssize_t choppy(void *buffer, size_t n_bytes, unsigned flags) {
    assert_int_equal(flags, 0);
    int call = getrandom_calls++;
    if (call % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    size_t n = call == 1 ? 3 : n_bytes;
    memset(buffer, call, n);
    return (ssize_t)n;
}

static ssize_t broken(void *buffer, size_t n_bytes, unsigned flags) {
    (void)buffer, (void)n_bytes, (void)flags;
    errno = ENOSYS;
    return -1;
}

static ssize_t empty(void *buffer, size_t n_bytes, unsigned flags) {
    (void)buffer, (void)n_bytes, (void)flags;
    return 0;
}

static void test_system_randomness(void **state) {
    (void)state;
    unsigned char x[16] = {0};
    getrandom_calls = 0;
    assert_int_equal(dpi_random_read(choppy, x, 10), 0);
    const unsigned char wanted[16] = {1, 1, 1, 3, 3, 3, 3, 3, 3, 3};
    assert_memory_equal(x, wanted, sizeof x);
    assert_int_equal(getrandom_calls, 4);
    assert_int_equal(dpi_random_read(broken, x, 10), -1);
    assert_int_equal(errno, ENOSYS);
    assert_int_equal(dpi_random_read(empty, x, 10), -1);

    /* 5,000 bytes: more than one system call is sure to give when a signal comes. */
    static unsigned char big[2][5000];
    dpi_error err;
    for (int i = 0; i < 2; i++)
        assert_ok(dpi_random_fill(NULL, NULL, big[i], sizeof big[i], &err), &err);
    assert_memory_not_equal(big[0], big[1], sizeof big[0]);
    int seen[256] = {0}, distinct = 0;
    for (size_t i = 0; i < sizeof big[0]; i++)
        distinct += seen[big[0][i]]++ == 0;
    assert_true(distinct > 240); /* fewer with probability below 1e-60 */
}

/* SplitMix64 of seed 1234567, as published with its test values. */
static void test_insecure_randomness(void **state) {
    (void)state;
    static const uint64_t wanted[5] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                       UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                       UINT64_C(16408922859458223821)};
    uint64_t seed = 1234567, x[5];
    assert_int_equal(dpi_random_insecure(&seed, x, sizeof x), 0);
    assert_memory_equal(x, wanted, sizeof x);
    unsigned char y[3];
    seed = 1234567;
    assert_int_equal(dpi_random_insecure(&seed, y, sizeof y), 0);
    assert_memory_equal(y, wanted, sizeof y);
    assert_true(dpi_random_insecure(NULL, y, sizeof y) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter_begins_anew),
        cmocka_unit_test(test_centring_clips_less),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_rounding_of_contributions),
        cmocka_unit_test(test_order_and_nulls),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_plain), cmocka_unit_test(test_nucleus),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_failures_draw_nothing),
        cmocka_unit_test(test_step_and_wipe),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_system_randomness),
        cmocka_unit_test(test_insecure_randomness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
