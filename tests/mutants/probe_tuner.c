/* probe_tuner.c - who is in a step, the sum, its noise, its divisor; see probes.h. All units have
 * the same gradient, and the adapters do not move: what a step releases is then how many units are
 * in it, in one direction, and noise in all. */
#include "tests/mutants/probes.h"

#include <math.h>

#include "dp/exact/gradient.h"
#include "dp/exact/poisson.h"
#include "train/tuner.h"

enum { UNITS = 64, POSITIONS = 6, STEPS = 150, RECORDS = 2 };

static const double sigma = .05;

static bool next_row(void *user, int64_t unit, int32_t k, uint64_t bits,
                     const dpi_row_buffer *buffer, dpi_row *row) {
    static const int32_t begins[] = {0, POSITIONS}, tokens[] = {5, 70, 33, 21, 290, 7, 40};
    static const float weights[] = {1, 1, 1, 1, 1, 1};
    (void)user, (void)unit, (void)bits, (void)buffer;
    *row = (dpi_row){POSITIONS, 1, begins, tokens, tokens + 1, weights};
    return k < RECORDS;
}

static const dpi_tuner_units units = {.n = UNITS, .row = next_row};
static const dpi_tuner_units none = {.n = 0, .row = next_row};

/* Of one layer, which is enough. */
static dpi_model *small;

static dpi_tuner *open_tuner(int64_t share, const dpi_train_ranks *ranks) {
    dpi_tuner_options o = {.model = small, .targets = DPI_LORA_ALL, .n_steps = 1 << 20};
    o.rank = 2, o.alpha = 2, o.seed = 1, o.n_positions = POSITIONS, o.n_threads = 2;
    o.share = share, o.expected = UNITS / 2, o.clip = .01, o.sigma = sigma, o.ranks = ranks;
    dpi_tuner *t;
    assert_ok(dpi_tuner_create(&o, &t, ERR));
    return t;
}

static size_t n_params(const dpi_tuner *t) { return (size_t)dpi_tuner_lora(t)->n_params; }

/* The sum of the units that join; the caller frees it. */
static int64_t *sum_of(dpi_tuner *t, const uint8_t *joins) {
    static const uint64_t bits[UNITS];
    int64_t *z = calloc(n_params(t), sizeof *z);
    assert_non_null(z);
    assert_ok(dpi_tuner_sum(t, &units, joins, bits, z, ERR));
    return z;
}

/* Makes a step. How many units are in what it releases, along z; the rest is noise, and has its
 * size: 8 deviations. */
static double step_of(dpi_tuner *t, const dpi_tuner_units *of, const int64_t *z,
                      const char *fault) {
    const double one = .01 / (UNITS / 2.) / (1 << 20); /* of the integers */
    const double n = (double)n_params(t);
    const double wanted = pow(sigma * (double)dpi_gradient_bound((int64_t)n), 2);
    double along = 0, square = 0, whole = 0;
    assert_ok(dpi_tuner_step(t, of, ERR));
    for (size_t i = 0; i < n_params(t); i++) {
        const double released = (double)dpi_tuner_released(t)[i] / one;
        along += released * (double)z[i];
        square += (double)z[i] * (double)z[i];
        whole += released * released;
    }
    const double rest = (whole - along * along / square) / (n - 1);
    hold(fabs(rest / wanted - 1) < 8 * sqrt(2 / (n - 1)), fault);
    return along / square;
}

static void check_counts(dpi_tuner *t, const int64_t *z) {
    double sum = 0, squares = 0;
    for (int i = 0; i < STEPS; i++) {
        const double n_units = step_of(t, &units, z, "a step has other noise than sigma D");
        sum += n_units, squares += n_units * n_units;
    }
    const double mean = sum / STEPS, variance = squares / STEPS - mean * mean;
    const double expected = UNITS / 2., wanted = UNITS / 4.; /* binomial */
    hold(fabs(mean - expected) <= 8 * sqrt(wanted / STEPS),
         "units count for more or less than once");
    hold(variance >= wanted * (1 - 7 * sqrt(2. / STEPS)) && variance <= 2.2 * wanted,
         "who is in a step is no Poisson sample");
}

static void check_steps(void) {
    static const uint8_t first[UNITS] = {1};
    dpi_tuner *t = open_tuner(DPI_POISSON_ONE / 2, NULL);
    int64_t *z = sum_of(t, first);
    const double bound = (double)dpi_gradient_bound((int64_t)n_params(t));
    double square = 0;
    for (size_t i = 0; i < n_params(t); i++)
        square += (double)z[i] * (double)z[i];
    hold(square <= bound * bound, "a unit moves a sum by more than D");
    hold(square >= .9 * pow(2, 40), "a unit that is longer than C is not clipped to C");
    check_counts(t, z);
    step_of(t, &none, z, "a step without units has no noise");
    free(z);
    dpi_tuner_free(t);
}

/* Two trainings of the same options do not share a bit of noise. */
static void check_fresh(void) {
    dpi_tuner *t[2];
    int64_t same = 0;
    for (int i = 0; i < 2; i++) {
        t[i] = open_tuner(DPI_POISSON_ONE, NULL);
        assert_ok(dpi_tuner_step(t[i], &units, ERR));
    }
    const int64_t n = (int64_t)n_params(t[0]);
    for (int64_t i = 0; i < n; i++)
        same += dpi_tuner_released(t[0])[i] == dpi_tuner_released(t[1])[i];
    hold(same <= n / 10, "two trainings have the same noise");
    for (int i = 0; i < 2; i++)
        dpi_tuner_free(t[i]);
}

/* Neighbours in the list join independently of each other and of the last draw: 8 deviations. */
static void check_draws(void) {
    enum { N = 1000, DRAWS = 40 };
    static uint8_t joins[2][N];
    double n = 0, pairs = 0, again = 0;
    for (int d = 0; d < DRAWS; d++) {
        uint8_t *now = joins[d % 2], *last = joins[1 - d % 2];
        assert_ok(dpi_poisson_draw(DPI_POISSON_ONE / 4, N, NULL, NULL, now, ERR));
        for (int i = 0; i < N; i++) {
            n += now[i];
            pairs += i % 2 && now[i] && now[i - 1];
            again += d > 0 && now[i] && last[i];
        }
    }
    const double all = (double)N * DRAWS, both = 1. / 16;
    hold(fabs(n / all - .25) <= 8 * sqrt(.25 * .75 / all),
         "units join with another probability than q");
    hold(fabs(2 * pairs / all - both) <= 8 * sqrt(both / all * 2),
         "units do not join independently");
    hold(fabs(again / (all - N) - both) <= 8 * sqrt(both / all), "a draw repeats the last one");
}

/* ---- Ranks, of which this process is each ---------------------------------------------------- */

static dpi_status add_nothing(void *user, int64_t *sums, int64_t n, dpi_error *err) {
    (void)user, (void)sums, (void)n, (void)err;
    return DPI_STATUS_OK;
}

static dpi_status share_nothing(void *user, void *data, size_t n_bytes, dpi_error *err) {
    (void)user, (void)data, (void)n_bytes, (void)err;
    return DPI_STATUS_OK;
}

/* The ranks' sums add up to that of one process, and rank 0 has noise in it. */
static void check_ranks(void) {
    enum { RANKS = 3 };
    dpi_train_ranks ranks = {.count = RANKS, .add = add_nothing, .share = share_nothing};
    dpi_tuner *alone = open_tuner(DPI_POISSON_ONE, NULL);
    uint8_t joins[UNITS];
    for (int i = 0; i < UNITS; i++)
        joins[i] = i % 5 != 0;
    int64_t *left = sum_of(alone, joins);
    for (ranks.index = RANKS - 1; ranks.index >= 0; ranks.index--) {
        dpi_tuner *t = open_tuner(DPI_POISSON_ONE, &ranks);
        int64_t *sum = sum_of(t, joins);
        for (size_t i = 0; i < n_params(t); i++)
            left[i] -= sum[i];
        if (ranks.index == 0)
            step_of(t, &units, sum, "the sum of ranks has other noise than sigma D");
        free(sum);
        dpi_tuner_free(t);
    }
    for (size_t i = 0; i < n_params(alone); i++)
        hold(left[i] == 0, "ranks add other units than one process");
    free(left);
    dpi_tuner_free(alone);
}

TEST(tuner) {
    tiny_spec spec = tiny_default();
    void *image;
    spec.n_layer = 1;
    small = tiny_open(&spec, 2, &image);
    check_draws();
    check_steps();
    check_fresh();
    check_ranks();
    dpi_model_close(small);
    free(image);
}
