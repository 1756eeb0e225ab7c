/* test_constant_time.c - from the reference logits to the token that is released, no branch and no
 * address depends on a private value (dp/PRIVACY.md section 6). The production step, in two ways:
 *
 *   memcheck  under valgrind: private input is marked undefined, as in ctgrind (Langley 2010), and
 *             memcheck reports each branch and address that is computed from it.
 *   trace     without valgrind, which does not know AVX-512, and of AArch64: the same step on
 *             different private input has to execute the same instructions with the same addresses
 *             (trace.h).
 *
 * Private: every reference logit, and the random bits of a draw. Made public where the mechanism
 * publishes, and nowhere else: the index that dpi_weights_draw returns is the token, and so is that
 * of dpi_noisy_max; the answer of dpi_svt_query is part of amin's output. The bits of noise steer
 * its rejection samplers (noise.h, normal.h): out of scope, so they count as public here. */
#include <math.h>
#ifdef __x86_64__
#include <valgrind/memcheck.h>
#else /* traced alone */
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_COUNT_ERRORS 0
#define VALGRIND_MAKE_MEM_DEFINED(p, n_bytes) ((void)(p), (void)(n_bytes), 0)
#define VALGRIND_MAKE_MEM_UNDEFINED(p, n_bytes) VALGRIND_MAKE_MEM_DEFINED(p, n_bytes)
#define VALGRIND_GET_VBITS(p, bits, n_bytes) ((void)(bits), VALGRIND_MAKE_MEM_DEFINED(p, n_bytes))
#endif

#include "dp/exact/noisy_max.h"
#include "dp/exact/svt.h"
#include "dp/exact/weights.h"
#include "dp/methods/sampler.h"
#include "tests/dp/methods/trace.h"
#include "tests/support/support.h"

/* A vocabulary that is more than the longest vector and no multiple of any. */
enum { VOCAB = 21, REFS = 6, STEPS = 2, RUNS = 3, DRAW_BYTES = 8 * DPI_DRAW_WORDS };

static bool under_memcheck; /* else: traced, which takes some 10 microseconds an instruction */

/* ---- Where private values become public ----------------------------------------------------- */

static int64_t n_tainted; /* publications of what did depend on private data */

/* Memcheck: what stands at p is public from here on. */
static void publish(void *p, size_t n_bytes) {
    unsigned char undefined[sizeof(size_t)] = {0};
    bool tainted = false;
    (void)VALGRIND_GET_VBITS(p, undefined, n_bytes);
    for (size_t i = 0; i < n_bytes; i++)
        tainted |= undefined[i] != 0;
    n_tainted += tainted;
    (void)VALGRIND_MAKE_MEM_DEFINED(p, n_bytes);
}

/* Traced runs go on from the same public value, whatever came out. */
static size_t publish_index(size_t index) {
    volatile size_t released = 0;
    if (!under_memcheck)
        return released;
    publish(&index, sizeof index);
    return index;
}

/* A function of the program that the linker has renamed to __real_, and what stands for it. */
#define WRAPPED(result, name, ...)                                                                 \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

WRAPPED(size_t, dpi_weights_draw, const dpi_u128 *weights, size_t n,
        const uint64_t bits[DPI_DRAW_WORDS]) {
    return publish_index(__real_dpi_weights_draw(weights, n, bits));
}

WRAPPED(size_t, dpi_noisy_max, const int64_t *values, const int64_t *noise, size_t n) {
    return publish_index(__real_dpi_noisy_max(values, noise, n));
}

WRAPPED(dpi_status, dpi_svt_query, const dpi_svt *svt, int64_t value, dpi_random_fn random,
        void *user, bool *above, dpi_error *err) {
    dpi_status status = __real_dpi_svt_query(svt, value, random, user, above, err);
    if (under_memcheck)
        publish(above, sizeof *above);
    else
        *above = true;
    return status;
}

/* ---- Private input -------------------------------------------------------------------------- */

typedef struct scene {
    dpi_sampler *sampler;
    uint64_t public_bits, private_bits; /* seeds of the random source */
    float public_logits[VOCAB], logits[REFS][VOCAB];
    const float *references[REFS];
    bool nulls_vary; /* which slots are null is no matter of the steps */
    int32_t tokens[STEPS];
} scene;

static int32_t random_bits(void *user, void *buffer, size_t n_bytes) {
    scene *s = user;
    bool draw = n_bytes == DRAW_BYTES;
    unsigned char *p = buffer;
    for (size_t i = 0; i < n_bytes; i++)
        p[i] = (unsigned char)random_u64(draw ? &s->private_bits : &s->public_bits);
    if (draw)
        (void)VALGRIND_MAKE_MEM_UNDEFINED(buffer, n_bytes);
    return 0;
}

/* Private input number r: usual, like the public logits, far apart and with what is not finite. */
static float private_logit(const scene *s, int r, int y, uint64_t *seed) {
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-42f, 0.0f, -0.0f};
    double usual = (double)s->public_logits[y] + 2 * random_normal(seed);
    if (r == 1)
        return s->public_logits[y];
    if (r == 2)
        return random_below(seed, 2) ? odd[random_below(seed, 8)] : (float)(500 * usual);
    return (float)usual;
}

static void prepare(void *arg, int r) {
    scene *s = arg;
    uint64_t seed = 100 + (uint64_t)r;
    for (int j = 0; j < REFS; j++)
        for (int y = 0; y < VOCAB; y++)
            s->logits[j][y] = private_logit(s, r, y, &seed);
    for (int j = 0; j < REFS && s->nulls_vary; j++)
        s->references[j] = (r + j) % 2 ? NULL : s->logits[j];
    (void)VALGRIND_MAKE_MEM_UNDEFINED(s->logits, sizeof s->logits);
    s->public_bits = 1, s->private_bits = (uint64_t)r;
    assert_ok(dpi_sampler_begin(s->sampler, ERR));
}

static void run_steps(void *arg) {
    scene *s = arg;
    for (int t = 0; t < (under_memcheck ? STEPS : 1); t++)
        assert_ok(
            dpi_sampler_step(s->sampler, s->public_logits, s->references, &s->tokens[t], ERR));
}

/* The same in parts: sums leave the sampler, are added to others, and a token is drawn from
 * them. */
static void run_merged(void *arg) {
    scene *s = arg;
    for (int t = 0; t < (under_memcheck ? STEPS : 1); t++) {
        int64_t sums[DPI_SUMS_HEADER + VOCAB], all[DPI_SUMS_HEADER + VOCAB] = {0};
        int32_t n;
        assert_ok(dpi_sampler_partial(s->sampler, s->public_logits, s->references, sums, &n, ERR));
        assert_ok(dpi_sums_merge(all, sums, n, ERR));
        assert_ok(
            dpi_sampler_step_merged(s->sampler, s->public_logits, all, n, &s->tokens[t], ERR));
    }
}

static void free_scene(scene **s) {
    (void)VALGRIND_MAKE_MEM_DEFINED((*s)->logits, sizeof(*s)->logits);
    dpi_sampler_free((*s)->sampler);
    free(*s);
}

/* SCENE s = ...: freed where its block ends. */
#define SCENE __attribute__((cleanup(free_scene))) scene *

static dpi_sampler_options o; /* of each test; changed from check to check */

SETUP_EACH {
    dpi_sampler_options_init(&o);
    o.rho = .5, o.top_k = 10;
    o.isa = forced_isa(), o.n_vocab = VOCAB, o.n_tokens = STEPS;
}

static scene *make_scene(void) {
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    uint64_t seed = 5;
    o.n_ref = o.max_per_unit > 0 ? REFS / o.max_per_unit : REFS / 2;
    o.random = random_bits, o.random_user = s;
    s->sampler = open_sampler(&o);
    for (int y = 0; y < VOCAB; y++)
        s->public_logits[y] = (float)(4 * random_normal(&seed));
    for (int j = 0; j < REFS; j++)
        s->references[j] = j == 1 ? NULL : s->logits[j]; /* which slots are null is public here */
    if (o.max_per_unit == 3)                             /* a unit of two records, and none */
        s->references[3] = s->references[4] = s->references[5] = NULL;
    return s;
}

/* ---- The two ways --------------------------------------------------------------------------- */

/* Whether `run` has branches or addresses that depend on private data; says what was seen. */
static bool leaks(const char *name, void (*run)(void *), scene *s) {
    if (under_memcheck) {
        const unsigned before = VALGRIND_COUNT_ERRORS;
        prepare(s, 0);
        run(s);
        const unsigned found = VALGRIND_COUNT_ERRORS - before;
        print_message("%s: %u reports of memcheck\n", name, found);
        return found > 0;
    }
    trace_report report;
    trace_result result = trace_compare(prepare, run, s, RUNS, &report);
    if (result == TRACE_UNAVAILABLE) {
        print_message("skipped: %s\n", report.message);
        skip();
    }
    print_message("%s: %lld instructions, %lld addresses: %s\n", name, (long long)report.n_steps,
                  (long long)report.n_memory,
                  result == TRACE_SAME ? "all the same" : report.message);
    return result == TRACE_DIFFERS;
}

/* What `run` does with the options leaks nothing, though private data reaches each draw, and each
 * query of the sparse vector. */
static void check(const char *name, void (*run)(void *)) {
    SCENE s = make_scene();
    n_tainted = 0;
    assert_false(leaks(name, run, s));
    if (under_memcheck)
        assert_int_equal(n_tainted, (o.svt_sigma > 0 ? 2 : 1) * STEPS);
}

/* A free step does the same whatever the references are, and however many of them. */
static void check_free_step(const char *name) {
    SCENE s = make_scene();
    s->nulls_vary = true;
    n_tainted = 0;
    assert_false(leaks(name, run_steps, s));
    assert_int_equal(dpi_sampler_n_private(s->sampler), 0);
    if (under_memcheck)
        assert_int_equal(n_tainted, STEPS); /* the random bits */
}

/* CHECK(name, changes of o): of the steps with these options. */
#define CHECK(name, ...) (__VA_ARGS__, check(name, run_steps))

SETUP { under_memcheck = RUNNING_ON_VALGRIND > 0; }

/* ---- Methods -------------------------------------------------------------------------------- */

/* The filter, with a C at which a token is more than some records can pay for. */
static void filter_few_tokens(void) {
    o.accountant = DPI_ACCOUNTANT_FILTER, o.clip = 64, o.center = 1;
}

TEST(test_invisibleink) {
    check("Top-k+", run_steps);
    CHECK("whole vocabulary", o.top_k = 0);
    CHECK("zero-out", o.adjacency = DPI_ADJACENCY_ZERO_OUT);
    CHECK("add/remove", o.adjacency = DPI_ADJACENCY_ADD_REMOVE, o.denominator = 2);
}

TEST(test_center) { CHECK("centring", o.center = 1); }

TEST(test_filter) {
    CHECK("filter", o.accountant = DPI_ACCOUNTANT_FILTER, o.top_k = 0);
    filter_few_tokens();
    CHECK("filter, zero-out, centring", o.adjacency = DPI_ADJACENCY_ZERO_OUT);
}

TEST(test_merged_sums) {
    check("merged sums", run_merged);
    filter_few_tokens();
    check("merged sums, filter, centring", run_merged);
}

TEST(test_units) {
    CHECK("units", o.max_per_unit = 3);
    filter_few_tokens();
    CHECK("units, filter, zero-out, centring", o.max_per_unit = 2,
          o.adjacency = DPI_ADJACENCY_ZERO_OUT);
    check("units, merged sums", run_merged);
}

/* The sparse vector is always above: each step is query and private draw. */
TEST(test_amin) {
    CHECK("amin", o.method = DPI_METHOD_AMIN, o.rho = 10);
    CHECK("amin, sparse vector", o.svt_sigma = 2, o.svt_threshold = -100);
    CHECK("amin, units, sparse vector", o.max_per_unit = 2);
}

TEST(test_tang) {
    CHECK("tang", o.method = DPI_METHOD_TANG);
    CHECK("tang, units, whole vocabulary", o.max_per_unit = 2, o.top_k = 0);
}

/* Steps that are not free do what steps without a pace do. theta 0 leaves every step free, theta 1
 * none. */
TEST(test_paced) {
    o.free_top_k = 5;
    for (o.pace = DPI_PACE_TOP; o.pace <= DPI_PACE_SHARE; o.pace++) {
        o.pace_theta = o.pace == DPI_PACE_CHANGE ? 1 : 1e-9;
        o.pace_share = o.pace == DPI_PACE_SHARE ? 1 : 0;
        check_free_step("a free step");
    }
    CHECK("a step that pays", o.pace = DPI_PACE_SHARE, o.pace_theta = 0);
    CHECK("a step that pays, filter", o.pace = DPI_PACE_TOP, o.pace_share = 0, o.pace_theta = 1,
          o.accountant = DPI_ACCOUNTANT_FILTER);
    o.accountant = DPI_ACCOUNTANT_ZCDP, o.free_top_k = 0, o.pace_theta = 1e-9;
    o.method = DPI_METHOD_AMIN, o.rho = 10;
    check_free_step("a free step of amin");
}

/* ---- What must be found --------------------------------------------------------------------- */

static volatile int sink;
static unsigned char table[256];

static void leak_branch(void *arg) {
    const scene *s = arg;
    if (s->logits[0][7] > s->public_logits[7])
        sink++;
}

static void leak_address(void *arg) {
    const scene *s = arg;
    unsigned char byte;
    memcpy(&byte, &s->logits[0][7], 1);
    sink += ((volatile unsigned char *)table)[byte];
}

TEST(test_leaks_are_found) {
    SCENE s = make_scene();
    assert_true(leaks("a branch", leak_branch, s));
    assert_true(leaks("an address", leak_address, s));
}
