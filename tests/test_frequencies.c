/* test_frequencies.c - audit B of privacy.md section 5: what is drawn, against frequencies computed
 * from the formulas in real arithmetic, and against an exact sampler of another kind. */
#include <math.h>

#include "sampler.h"
#include "support.h"

static dpi_sampler *create(const dpi_sampler_options *options) {
    dpi_sampler *s = NULL;
    dpi_error err;
    assert_ok(dpi_sampler_create(options, &s, &err), &err);
    return s;
}

static int64_t oracle_contribution(const float *l, const float *p, int y, int64_t K) {
    if (!l || !isfinite(l[y]))
        return 0;
    double d = ((double)l[y] - (double)p[y]) * 1048576;
    return d >= K ? K : d <= -K ? -K : llrint(d);
}

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
        cmocka_unit_test(test_chi_square_tail),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_against_reference_sampler),
        cmocka_unit_test(test_batches_share_no_randomness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
