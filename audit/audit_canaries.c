/* audit_canaries.c - canaries of training: one run on made-up units, the canaries, of which each is
 * there by a coin. The gradient of each is the worst one, of any length in a direction of its own.
 * From what the steps release it is guessed for some of them whether they are there, in two ways:
 * which epsilon the right guesses prove, beside the one that the accountant claims (Steinke, Nasr
 * and Jagielski 2023; dp/PRIVACY.md section 17).
 *
 * Each canary has a coordinate of the gradient for itself: if it joins a step, that coordinate of
 * the sum is 2^20, beside the noise. A thousand audits of one unit each are made at once, as
 * each coordinate has noise of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/exact/poisson.h"
#include "dpinfer/gaussian.h"
#include "pipeline/finetune/finetune.h"

enum { N_CANARIES = 1000, N_GUESSES = 200, N_STEPS = 16 }; /* guesses at each end */

/* What is claimed; small, so that the guesses could prove more. */
static const double EPSILON = 2;

typedef struct guess {
    double score;
    uint8_t there;
} guess;

typedef struct canaries {
    int64_t n_params;
    uint8_t there[N_CANARIES];
    double sum[N_CANARIES], square[N_CANARIES]; /* of its coordinate over the steps */
    guess guesses[N_CANARIES];
} canaries;

static int64_t coordinate(const canaries *c, int64_t i) { return i * (c->n_params / N_CANARIES); }

/* Far longer than C. */
static bool gradient(void *user, int64_t unit, float *g) {
    const canaries *c = user;
    if (!c->there[unit])
        return false;
    memset(g, 0, (size_t)c->n_params * sizeof *g);
    g[coordinate(c, unit)] = 1e6f;
    return true;
}

static dpi_status play(dpi_audit *a, dpi_tuner *tuner, canaries *c) {
    const dpi_tuner_units units = {.n = N_CANARIES, .gradient = gradient, .user = c};
    c->n_params = dpi_tuner_lora(tuner)->n_params;
    for (int i = 0; i < N_CANARIES; i++)
        c->there[i] = (uint8_t)dpi_audit_below(a, 2);
    for (int step = 0; step < N_STEPS; step++) {
        DPI_TRY(dpi_tuner_step(tuner, &units, a->err));
        for (int i = 0; i < N_CANARIES; i++) {
            const double x = (double)dpi_tuner_released(tuner)[coordinate(c, i)];
            c->sum[i] += x;
            c->square[i] += x * x;
        }
    }
    return DPI_STATUS_OK;
}

/* ---- Guesses --------------------------------------------------------------------------------- */

static int by_score(const void *a, const void *b) {
    const double x = ((const guess *)a)->score, y = ((const guess *)b)->score;
    return (x > y) - (x < y);
}

/* The canaries with the highest scores are guessed to be there, those with the lowest not. */
static int32_t count_right(guess all[N_CANARIES]) {
    int32_t n_right = 0;
    qsort(all, N_CANARIES, sizeof *all, by_score);
    for (int i = 0; i < N_GUESSES; i++)
        n_right += !all[i].there + all[N_CANARIES - 1 - i].there;
    return n_right;
}

/* The attack by the sum of what is released, and by how much it changes from step to step, which a
 * unit that joins at times makes more if the noise stays. */
static dpi_status report(dpi_audit *a, canaries *c, bool by_change, double claimed, double delta) {
    DPI_TRY(dpi_audit_begin(a, "canaries", by_change ? "training, canaries by change"
                                              : "training, canaries by their sums"));
    for (int i = 0; i < N_CANARIES; i++) {
        const double mean = c->sum[i] / N_STEPS;
        c->guesses[i].score = by_change ? c->square[i] / N_STEPS - mean * mean : mean;
        c->guesses[i].there = c->there[i];
    }
    a->result.n_cases = N_CANARIES;
    const int32_t n_right = count_right(c->guesses);
    dpi_audit_end_bound(a, "epsilon, lower bound",
                        dpi_canary_epsilon(N_CANARIES, 2 * N_GUESSES, n_right, delta,
                                           dpi_audit_suspicious(a)),
                        dpi_canary_epsilon(N_CANARIES, 2 * N_GUESSES, n_right, delta,
                                           dpi_audit_certain(a)), claimed);
    return DPI_STATUS_OK;
}

/* ---- The training ---------------------------------------------------------------------------- */

static dpi_status train(dpi_audit *a, const dpi_model *model) {
    /* What delta adds to the chance of a false alarm is far below it. */
    const double delta = 1e-6 * dpi_audit_certain(a);
    dpi_gaussian g;
    dpi_gaussian_init(&g);
    g.sampling = .5, g.n_steps = N_STEPS;
    DPI_TRY(dpi_gaussian_sigma(&g, EPSILON, delta, &g.sigma, a->err));
    const dpi_tuner_options o = {
        .model = model, .rank = 4, .alpha = 1, .targets = DPI_LORA_ALL, .seed = 1,
        .n_positions = 2, .n_threads = 1, .share = DPI_POISSON_ONE / 2, .expected = N_CANARIES / 4.,
        .clip = 1, .sigma = g.sigma, .n_steps = N_STEPS, .random = a->options.random,
        .random_user = a->options.random_user};
    dpi_tuner *tuner = NULL;
    canaries *c = calloc(1, sizeof *c);
    dpi_status status = c ? dpi_tuner_create(&o, &tuner, a->err)
                          : dpi_fail(a->err, DPI_STATUS_MEMORY, "no memory for canaries");
    if (status == DPI_STATUS_OK)
        status = play(a, tuner, c);
    if (status == DPI_STATUS_OK)
        status = report(a, c, false, EPSILON, delta);
    if (status == DPI_STATUS_OK)
        status = report(a, c, true, EPSILON, delta);
    dpi_tuner_free(tuner);
    free(c);
    return status;
}

dpi_status dpi_audit_canaries(dpi_audit *a) {
    dpi_model *model;
    if (!a->options.folder)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_audit_make_model(a, 64, 16, &model));
    const dpi_status status = train(a, model);
    dpi_model_close(model);
    return status;
}
