/* probe_tuner.c - see probe_tuner.h. All units have the same gradient, and the adapters do not
 * move: what a step releases is then how many units are in it, in one direction, and noise in
 * all. */
#include "tests/mutations/probe_tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dp/exact/gradient.h"
#include "dp/exact/poisson.h"
#include "tests/support/tiny_model.h"
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

static dpi_tuner *open_of_ranks(const dpi_model *model, int64_t share,
                                const dpi_train_ranks *ranks) {
    const dpi_tuner_options o = {.model = model, .rank = 2, .alpha = 2, .targets = DPI_LORA_ALL,
                                 .seed = 1, .n_positions = POSITIONS, .n_threads = 2,
                                 .share = share, .expected = UNITS / 2, .clip = .01,
                                 .sigma = sigma, .n_steps = 1 << 20, .lr = 0,
                                 .ranks = ranks};
    dpi_tuner *t = NULL;
    return dpi_tuner_create(&o, &t, NULL) == DPI_STATUS_OK ? t : NULL;
}

static dpi_tuner *open_tuner(const dpi_model *model, int64_t share) {
    return open_of_ranks(model, share, NULL);
}

/* What a step releases, in numbers of units along z [n], and the mean square of the rest. */
static void measure(const dpi_tuner *t, const int64_t *z, double *n_units, double *rest) {
    const int64_t n = dpi_tuner_lora(t)->n_params;
    const float *released = dpi_tuner_released(t);
    const double one = .01 / (UNITS / 2.) / (1 << 20); /* of the integers */
    double along = 0, square = 0, whole = 0;
    for (int64_t i = 0; i < n; i++) {
        along += (double)released[i] / one * (double)z[i];
        square += (double)z[i] * (double)z[i];
        whole += pow((double)released[i] / one, 2);
    }
    *n_units = along / square;
    *rest = (whole - along * along / square) / (double)(n - 1);
}

/* The noise is there, of the right size: 8 deviations. */
static bool is_noise(const dpi_tuner *t, double rest) {
    const double n = (double)dpi_tuner_lora(t)->n_params - 1;
    const double wanted = pow(sigma * (double)dpi_gradient_bound((int64_t)n + 1), 2);
    return fabs(rest / wanted - 1) < 8 * sqrt(2 / n);
}

static const char *check_counts(dpi_tuner *t, const int64_t *z) {
    double sum = 0, squares = 0;
    for (int step = 0; step < STEPS; step++) {
        double n_units, rest;
        if (dpi_tuner_step(t, &units, NULL) != DPI_STATUS_OK)
            return "a step fails";
        measure(t, z, &n_units, &rest);
        if (!is_noise(t, rest))
            return "a step has other noise than sigma D";
        sum += n_units, squares += n_units * n_units;
    }
    const double mean = sum / STEPS, variance = squares / STEPS - mean * mean;
    const double expected = UNITS / 2., wanted = UNITS / 4.; /* binomial */
    if (fabs(mean - expected) > 8 * sqrt(wanted / STEPS))
        return "units count for more or less than once";
    if (variance < wanted * (1 - 7 * sqrt(2. / STEPS)) || variance > 2.2 * wanted)
        return "who is in a step is no Poisson sample";
    return 0;
}

static const char *check_empty(dpi_tuner *t, const int64_t *z) {
    double n_units, rest;
    if (dpi_tuner_step(t, &none, NULL) != DPI_STATUS_OK)
        return "a step without units fails";
    measure(t, z, &n_units, &rest);
    return is_noise(t, rest) ? 0 : "a step without units has no noise";
}

/* Two trainings of the same options do not share a bit of noise. */
static const char *check_fresh(const dpi_model *model) {
    dpi_tuner *a = open_tuner(model, DPI_POISSON_ONE), *b = open_tuner(model, DPI_POISSON_ONE);
    const char *fault = "no tuner";
    if (a && b && dpi_tuner_step(a, &units, NULL) == DPI_STATUS_OK &&
        dpi_tuner_step(b, &units, NULL) == DPI_STATUS_OK) {
        const int64_t n = dpi_tuner_lora(a)->n_params;
        int64_t same = 0;
        for (int64_t i = 0; i < n; i++)
            same += dpi_tuner_released(a)[i] == dpi_tuner_released(b)[i];
        fault = same > n / 10 ? "two trainings have the same noise" : 0;
    }
    dpi_tuner_free(a), dpi_tuner_free(b);
    return fault;
}

/* Neighbours in the list join independently of each other and of the last draw: 8 deviations. */
static const char *check_draws(void) {
    enum { N = 1000, DRAWS = 40 };
    static uint8_t joins[2][N];
    double n = 0, pairs = 0, again = 0;
    for (int d = 0; d < DRAWS; d++) {
        uint8_t *now = joins[d % 2], *last = joins[1 - d % 2];
        if (dpi_poisson_draw(DPI_POISSON_ONE / 4, N, NULL, NULL, now, NULL) != DPI_STATUS_OK)
            return "no draw";
        for (int i = 0; i < N; i++) {
            n += now[i];
            pairs += i % 2 && now[i] && now[i - 1];
            again += d > 0 && now[i] && last[i];
        }
    }
    const double all = (double)N * DRAWS, both = 1. / 16;
    if (fabs(n / all - .25) > 8 * sqrt(.25 * .75 / all))
        return "units join with another probability than q";
    if (fabs(2 * pairs / all - both) > 8 * sqrt(both / all * 2))
        return "units do not join independently";
    return fabs(again / (all - N) - both) > 8 * sqrt(both / all) ? "a draw repeats the last one"
                                                                 : 0;
}

static const char *check_steps(const dpi_model *model) {
    dpi_tuner *t = open_tuner(model, DPI_POISSON_ONE / 2);
    if (!t)
        return "no tuner";
    const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
    int64_t *z = calloc(n, sizeof *z);
    static const uint64_t bits[UNITS];
    uint8_t first[UNITS] = {1};
    const char *fault = "no sum";
    if (z && dpi_tuner_sum(t, &units, first, bits, z, NULL) == DPI_STATUS_OK) {
        const double bound = (double)dpi_gradient_bound((int64_t)n);
        double square = 0;
        for (size_t i = 0; i < n; i++)
            square += (double)z[i] * (double)z[i];
        fault = square > bound * bound    ? "a unit moves a sum by more than D"
                : square < .9 * pow(2, 40) ? "a unit that is longer than C is not clipped to C"
                                           : check_counts(t, z);
        fault = fault ? fault : check_empty(t, z);
    }
    free(z);
    dpi_tuner_free(t);
    return fault;
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
static const char *check_ranks(const dpi_model *model) {
    enum { RANKS = 3 };
    static const uint64_t bits[UNITS];
    dpi_train_ranks ranks = {.count = RANKS, .add = add_nothing, .share = share_nothing};
    dpi_tuner *alone = open_tuner(model, DPI_POISSON_ONE);
    if (!alone)
        return "no tuner";
    const size_t n = (size_t)dpi_tuner_lora(alone)->n_params;
    int64_t *left = calloc(n, sizeof *left), *sum = calloc(n, sizeof *sum);
    uint8_t joins[UNITS];
    const char *fault = "no sum";
    for (int i = 0; i < UNITS; i++)
        joins[i] = i % 5 != 0;
    if (left && sum && dpi_tuner_sum(alone, &units, joins, bits, left, NULL) == DPI_STATUS_OK)
        fault = 0;
    for (ranks.index = RANKS - 1; ranks.index >= 0 && !fault; ranks.index--) {
        dpi_tuner *t = open_of_ranks(model, DPI_POISSON_ONE, &ranks);
        double n_units, rest;
        if (!t || dpi_tuner_sum(t, &units, joins, bits, sum, NULL) != DPI_STATUS_OK)
            fault = "no rank";
        for (size_t i = 0; i < n && !fault; i++)
            left[i] -= sum[i];
        if (!fault && ranks.index == 0) {
            if (dpi_tuner_step(t, &units, NULL) != DPI_STATUS_OK)
                fault = "a step of ranks fails";
            else if (measure(t, sum, &n_units, &rest), !is_noise(t, rest))
                fault = "the sum of ranks has other noise than sigma D";
        }
        dpi_tuner_free(t);
    }
    for (size_t i = 0; i < n && !fault; i++)
        fault = left[i] != 0 ? "ranks add other units than one process" : 0;
    dpi_tuner_free(alone);
    free(left), free(sum);
    return fault;
}

const char *probe_tuner(const dpi_model *model, const char *folder) {
    (void)model, (void)folder;
    tiny_spec spec = tiny_default();
    void *image;
    spec.n_layer = 1;
    dpi_model *small = tiny_open(&spec, 2, &image);
    const char *fault = check_draws();
    fault = fault ? fault : check_steps(small);
    fault = fault ? fault : check_fresh(small);
    fault = fault ? fault : check_ranks(small);
    dpi_model_close(small);
    free(image);
    return fault;
}
