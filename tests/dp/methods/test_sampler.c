/* test_sampler.c - state machine, and the distribution of a step against the formulas of
 * docs/spec.md section 2 written out plainly; random sources. Built with FAIL_ALLOC. */
#include <errno.h>

#include "base/rng.h"
#include "tests/dp/samplers.h"
#include "tests/oracle/law.h"

/* ---- The distribution of a step ------------------------------------------------------------- */

enum { V = 60, B_MAX = 6 };

static void draw_batch(batch *b, int32_t n_ref, uint64_t *seed) {
    const double spread = exp(3 * random_uniform(seed) - 2);
    batch_law law = {.n_vocab = V, .n_slots = n_ref, .sure = 3, .ties = true, .spread = spread};
    law.null = 5, law.odd = 20, law.n_odd = 7;
    random_batch(b, &law, seed);
}

/* docs/spec.md section 2, term by term. */
static void check_against_formulas(dpi_sampler *s, const batch *b) {
    const dpi_sampler_options *o = dpi_sampler_options_get(s);
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(s);
    int64_t P[V], S[V] = {0}, U[V], top = INT64_MIN;
    int32_t support[V];
    law_public(b->public_logits, V, P);
    const int32_t n = law_support(P, V, o->top_k, o->n_ref, 2 * plan->K, support);
    const dpi_distribution d = distribution(s, b);
    assert_int_equal(d.n_support, n);
    assert_memory_equal(d.support, support, (size_t)n * sizeof *support);
    for (int i = 0; i < n; i++) {
        const int y = support[i];
        const double p = (double)b->public_logits[y];
        for (int j = 0; j < o->n_ref; j++)
            S[i] += b->slots[j] ? law_contribution((double)b->slots[j][y] - p, plan->K) : 0;
        U[i] = o->n_ref * P[y] + S[i];
        top = U[i] > top ? U[i] : top;
    }
    assert_memory_equal(d.sum, S, (size_t)n * sizeof *S);
    for (int i = 0; i < n; i++) {
        const real bits = (real)(top - U[i]) * (real)plan->a * 0x1p-48L;
        const real ideal = exp2l(109 - fminl(bits, 69));
        assert_true(fabsl(logl((real)d.weights[i] / ideal)) <= 0x1p-40L);
    }
}

TEST(test_distribution) {
    uint64_t seed = 20;
    for (int round = 0; round < 1500; round++) {
        int32_t n_ref = 1 + random_below(&seed, B_MAX);
        double tau = .05 + 2 * random_uniform(&seed), rho = exp(8 * random_uniform(&seed) - 5);
        dpi_sampler_options o = ink_options(V, n_ref, 20, tau, rho);
        o.top_k = random_below(&seed, V + 1);
        SAMPLER s = open_sampler(&o);
        batch b;
        for (int i = 0; i < 3; i++) {
            draw_batch(&b, n_ref, &seed);
            check_against_formulas(s, &b);
        }
    }
}

/* Halves go to the even neighbour, on both sides; the clip bound is reached and not passed. */
TEST(test_rounding_of_contributions) {
    enum { N = 10 };
    static const double units[N] = {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49, 0.51, 1e9, -1e9};
    const dpi_sampler_options o = ink_options(N, 1, 10, 1, .5);
    SAMPLER s = open_sampler(&o);
    const int64_t K = dpi_sampler_plan_get(s)->K, wanted[N] = {0, 2, 2, 0, -2, -2, 0, 1, K, -K};
    batch b = {.slots = {b.reference[0]}};
    for (int i = 0; i < N; i++)
        b.reference[0][i] = (float)(units[i] * 0x1p-20);
    assert_memory_equal(distribution(s, &b).sum, wanted, sizeof wanted);
}

/* The order of references does not show, nor does a null slot that repeats the public logits. */
TEST(test_order_and_nulls) {
    uint64_t seed = 21;
    dpi_sampler_options o = ink_options(V, B_MAX, 20, .8, 2);
    o.top_k = 9;
    SAMPLER s = open_sampler(&o), *t = open_sampler(&o);
    for (int round = 0; round < 200; round++) {
        batch b;
        draw_batch(&b, B_MAX, &seed);
        const dpi_distribution d = distribution(s, &b);
        for (int j = B_MAX - 1; j > 0; j--) {
            int k = random_below(&seed, j + 1);
            const float *swap = b.slots[j];
            b.slots[j] = b.slots[k];
            b.slots[k] = swap;
        }
        for (int j = 0; j < B_MAX; j++)
            b.slots[j] = b.slots[j] ? b.slots[j] : b.public_logits;
        const dpi_distribution e = distribution(t, &b);
        assert_int_equal(d.n_support, e.n_support);
        assert_memory_equal(d.support, e.support, (size_t)d.n_support * sizeof *d.support);
        assert_memory_equal(d.sum, e.sum, (size_t)d.n_support * sizeof *d.sum);
        assert_memory_equal(d.weights, e.weights, (size_t)d.n_support * sizeof *d.weights);
    }
}

/* Logits at the allowed limit: the far end saturates at -1e4 logits. */
TEST(test_saturation) {
    const batch b = {.public_logits = {1e4f, 0, -1, -1e4f}};
    dpi_sampler_options o = ink_options(4, 2, 10, 100, 1);
    o.top_k = 2; /* the threshold is 0 = 1e4 below the top, where the others are saturated too */
    SAMPLER s = open_sampler(&o);
    const dpi_distribution d = distribution(s, &b);
    assert_int_equal(d.n_support, 4);
    assert_true(d.weights[0] == (dpi_u128)1 << 109);
    assert_true(d.weights[3] == (dpi_u128)1 << 40);
}

/* ---- Filter and centring --------------------------------------------------------------------- */

/* Budgets of records start anew with each text, whatever was spent. */
TEST(test_filter_begins_anew) {
    const batch b = {.reference = {{5, -5, 5, -5, 5, -5, 5, -5}}, .slots = {b.reference[0]}};
    uint64_t bits = 1;
    dpi_sampler_options o = ink_options(8, 2, 100, 1, .5);
    o.accountant = DPI_ACCOUNTANT_FILTER;
    o.clip = .5; /* eta = 2 * .5 / 2 = .5, rho of a token 1/32: 15 fit .5, with the rounding */
    SAMPLER s = begin_text(o, &bits);
    for (int text = 0; text < 3; text++) {
        assert_ok(dpi_sampler_begin(s, ERR));
        for (int i = 0; i < 30; i++) {
            const dpi_distribution d = distribution(s, &b);
            assert_int_equal(d.sum[0], i < 15 ? 1 << 19 : 0);
            assert_int_equal(d.sum[1], i < 15 ? -(1 << 19) : 0);
            step(s, &b);
        }
    }
}

/* Share of (token, reference) pairs on the clip bound, for references whose logits have an offset:
 * with centring it does not depend on the offset, and does not exceed what it is without one. */
static double clipped_share(double offset, int32_t center) {
    static const batch_law law = {.n_vocab = 200, .n_slots = 6, .sure = 3, .spread = .7};
    static batch b;
    uint64_t seed = 26;
    int64_t n = 0, n_clipped = 0;
    dpi_sampler_options o = ink_options(law.n_vocab, 1, 100, 1, 50); /* C = 1 */
    o.center = center, o.top_k = 50;
    SAMPLER s = open_sampler(&o);
    const int64_t K = dpi_sampler_plan_get(s)->K;
    for (int round = 0; round < 20; round++) {
        random_batch(&b, &law, &seed);
        for (int j = 0; j < law.n_slots; j++) {
            const float shift = (float)(offset * random_normal(&seed));
            for (int y = 0; y < law.n_vocab; y++)
                b.reference[j][y] += shift;
            b.slots[0] = b.reference[j];
            const dpi_distribution d = distribution(s, &b);
            for (int64_t i = 0; i < d.n_support; i++, n++) {
                assert_true(llabs(d.sum[i]) <= K);
                n_clipped += llabs(d.sum[i]) == K;
            }
        }
    }
    return (double)n_clipped / (double)n;
}

TEST(test_centring_clips_less) {
    for (double offset = 0; offset <= 8; offset = offset > 0 ? 2 * offset : .5) {
        double without = clipped_share(offset, 0), with = clipped_share(offset, 1);
        print_message("offsets of deviation %g: %.1f %% clipped, centred %.1f %%\n", offset,
                      100 * without, 100 * with);
        assert_true(with < .35 && (offset < 1 || with < without));
    }
}

/* ---- Plain ---------------------------------------------------------------------------------- */

static dpi_sampler_options plain_options(int32_t n_vocab, double tau) {
    dpi_sampler_options o = ink_options(n_vocab, 0, 1000, tau, 0);
    o.method = DPI_METHOD_PLAIN;
    return o;
}

TEST(test_plain) {
    const batch b = {.public_logits = {-1, 2, 0.5f, 2, 0.5f, -7}};
    uint64_t bits = 1;
    dpi_sampler_options o = plain_options(6, 0);
    SAMPLER greedy = begin_text(o, &bits);
    for (int i = 0; i < 100; i++)
        assert_int_equal(step(greedy, &b), 1);

    o.tau = .7, o.top_k = 3; /* the third largest is 0.5, twice */
    SAMPLER s = open_sampler(&o);
    const dpi_distribution d = distribution(s, &b);
    assert_int_equal(d.n_support, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(d.support[i], i + 1);
        const real ideal = expl((b.public_logits[i + 1] - 2) / .7L);
        const real error = (real)d.weights[i] * 0x1p-109L / ideal - 1;
        assert_true(fabsl(error) < 1e-7L); /* 2^-21 of a logit / tau, and a's rounding */
    }
}

/* The nucleus: masses are 1/2, 1/4, 1/8, 1/16, 1/16 of the tokens 4, 2, 0, 1 and 3. */
TEST(test_nucleus) {
    static const struct row {
        double top_p, min_p;
        int kept[5];
    } rows[] = {
        {.4, 0, {0, 0, 0, 0, 1}},   {.499, 0, {0, 0, 0, 0, 1}}, {.6, 0, {0, 0, 1, 0, 1}},
        {.749, 0, {0, 0, 1, 0, 1}}, {.8, 0, {1, 0, 1, 0, 1}},   {.9, 0, {1, 1, 1, 1, 1}},
        {1, 0, {1, 1, 1, 1, 1}},    {0, .3, {0, 0, 1, 0, 1}},   {0, .2, {1, 0, 1, 0, 1}},
        {0, 1, {0, 0, 0, 0, 1}},    {.8, .3, {0, 0, 1, 0, 1}},  {.1, .2, {0, 0, 0, 0, 1}},
    };
    const float one = 0.693147180559945f;
    const batch b = {.public_logits = {one, 0, 2 * one, 0, 3 * one}};
    uint64_t bits = 1;
    for (const struct row *r = rows; r < END(rows); r++) {
        dpi_sampler_options o = plain_options(5, 1);
        o.top_p = r->top_p, o.min_p = r->min_p;
        SAMPLER s = begin_text(o, &bits);
        const dpi_distribution d = distribution(s, &b);
        assert_int_equal(d.n_support, 5);
        for (int i = 0; i < 5; i++)
            assert_int_equal(d.weights[i] > 0, r->kept[i]);
        for (int i = 0; i < 200; i++)
            assert_true(r->kept[step(s, &b)]);
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

/* A batch, and a sampler for it of n_tokens tokens that draws with these bits. */
static dpi_sampler *open_scripted(batch *b, script *bits, int32_t n_tokens, uint64_t seed) {
    dpi_sampler_options o = ink_options(V, 3, n_tokens, 1, 1);
    o.random = scripted, o.random_user = bits;
    draw_batch(b, 3, &seed);
    return open_sampler(&o);
}

#define STEP_FAILS(s, slots, status, part)                                                         \
    assert_error(dpi_sampler_step(s, b.public_logits, slots, &token, ERR), status, part)

TEST(test_states) {
    batch b;
    script bits = {0, 0, 0};
    int32_t token = -7;
    SAMPLER s = open_scripted(&b, &bits, 2, 22);
    assert_int_equal(dpi_sampler_tokens_left(s), 0);
    STEP_FAILS(s, b.slots, STATE, "begin");
    for (int text = 0; text < 3; text++) {
        assert_ok(dpi_sampler_begin(s, ERR));
        assert_int_equal(dpi_sampler_tokens_left(s), 2);
        bits.byte = 0; /* X = 0 draws the first token, X = 2^256 - 1 the last */
        assert_int_equal(step(s, &b), 0);
        assert_int_equal(dpi_sampler_tokens_left(s), 1);
        bits.byte = 255;
        assert_int_equal(step(s, &b), V - 1);
        assert_int_equal(dpi_sampler_tokens_left(s), 0);
        STEP_FAILS(s, b.slots, BUDGET, "all 2 tokens");
        assert_int_equal(token, -7);
    }
    assert_int_equal(bits.calls, 6); /* fresh bits for each token, none without one */
    STEP_FAILS(NULL, b.slots, ARG, "NULL");
    assert_error(dpi_sampler_begin(NULL, ERR), ARG, "NULL");
    assert_ok(dpi_sampler_begin(s, ERR));
    STEP_FAILS(s, NULL, ARG, "must be pointers");
    dpi_sampler_free(NULL);
}

/* A failed step draws nothing and costs nothing. */
TEST(test_failures_draw_nothing) {
    static const float bad[] = {NAN, INFINITY, -INFINITY, 10001, -10001};
    batch b;
    script bits = {-1, 0, 0};
    int32_t token = -7;
    SAMPLER s = open_scripted(&b, &bits, 1, 23);
    assert_ok(dpi_sampler_begin(s, ERR));
    STEP_FAILS(s, b.slots, ENTROPY, "random source");
    bits.result = 0;
    const float good = b.public_logits[17];
    for (const float *x = bad; x < END(bad); x++) {
        b.public_logits[17] = *x;
        STEP_FAILS(s, b.slots, NUMERIC, "public logit 17 of 60");
    }
    b.public_logits[17] = good;
    assert_int_equal(token, -7);
    assert_int_equal(step(s, &b), 0);
}

/* A step is the distribution and the draw, and leaves nothing private behind. */
TEST(test_step_and_wipe) {
    uint64_t seed = 24, state_a = 99, state_b = 99;
    dpi_sampler_options o = ink_options(V, 4, 1000, .9, 3);
    o.top_k = 30;
    SAMPLER s = begin_text(o, &state_a), *t = open_sampler(&o);
    for (int i = 0; i < 500; i++) {
        batch b;
        uint64_t bits[DPI_DRAW_WORDS];
        draw_batch(&b, 4, &seed);
        const dpi_distribution d = distribution(s, &b), e = distribution(t, &b);
        assert_true(d.weights[0] != 0);
        const int32_t token = step(s, &b);
        for (int64_t k = 0; k < d.n_support; k++)
            assert_true(d.weights[k] == 0 && d.sum[k] == 0);
        assert_int_equal(dpi_random_insecure(&state_b, bits, sizeof bits), 0);
        assert_int_equal(token, e.support[dpi_weights_draw(e.weights, (size_t)e.n_support, bits)]);
    }
}

TEST(test_no_memory) {
    const dpi_sampler_options o = ink_options(1000, 4, 10, 1, 1);
    dpi_sampler *s = NULL;
    fail_allocation(0);
    dpi_sampler_free(open_sampler(&o));
    const int64_t n = fail_allocation(0);
    assert_true(n >= 5);
    for (int64_t i = 1; i <= n; i++) {
        fail_allocation(i);
        const dpi_status status = dpi_sampler_create(&o, &s, ERR);
        fail_allocation(0);
        assert_error(status, MEMORY, "no memory");
        assert_null(s);
    }
}

/* ---- Random sources ------------------------------------------------------------------------- */

static int getrandom_calls;

/* EINTR, then 3 bytes, then EINTR, then the rest. */
static ssize_t choppy(void *buffer, size_t n_bytes, unsigned flags) {
    assert_int_equal(flags, 0);
    const int call = getrandom_calls++;
    const size_t n = call == 1 ? 3 : n_bytes;
    if (call % 2)
        memset(buffer, call, n);
    errno = EINTR;
    return call % 2 ? (ssize_t)n : -1;
}

/* An error, or no bytes. */
static ssize_t failing_result;
static ssize_t failing(void *buffer, size_t n_bytes, unsigned flags) {
    (void)buffer, (void)n_bytes, (void)flags;
    errno = ENOSYS;
    return failing_result;
}

TEST(test_system_randomness) {
    static const unsigned char wanted[16] = {1, 1, 1, 3, 3, 3, 3, 3, 3, 3};
    unsigned char x[16] = {0};
    getrandom_calls = 0;
    assert_int_equal(dpi_random_read(choppy, x, 10), 0);
    assert_memory_equal(x, wanted, sizeof x);
    assert_int_equal(getrandom_calls, 4);
    for (failing_result = -1; failing_result <= 0; failing_result++) {
        assert_int_equal(dpi_random_read(failing, x, 10), -1);
        assert_int_equal(errno, failing_result < 0 ? ENOSYS : EIO);
    }

    /* 5,000 bytes: more than one system call is sure to give when a signal comes. */
    static unsigned char big[2][5000];
    for (int i = 0; i < 2; i++)
        assert_ok(dpi_random_fill(NULL, NULL, big[i], sizeof big[i], ERR));
    assert_memory_not_equal(big[0], big[1], sizeof big[0]);
    int seen[256] = {0}, distinct = 0;
    for (size_t i = 0; i < sizeof big[0]; i++)
        distinct += seen[big[0][i]]++ == 0;
    assert_true(distinct > 240); /* fewer with probability below 1e-60 */
}

/* SplitMix64 of seed 1234567, as published with its test values. */
TEST(test_insecure_randomness) {
    static const uint64_t wanted[5] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                       UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                       UINT64_C(16408922859458223821)};
    static const size_t sizes[] = {sizeof wanted, 3};
    for (const size_t *n = sizes; n < END(sizes); n++) {
        uint64_t seed = 1234567, x[5];
        assert_int_equal(dpi_random_insecure(&seed, x, *n), 0);
        assert_memory_equal(x, wanted, *n);
        assert_true(dpi_random_insecure(NULL, x, *n) != 0);
    }
}
