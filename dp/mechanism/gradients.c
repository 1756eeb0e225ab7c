/* gradients.c - training: clipped gradients of units that join at random, added in integers, with
 * discrete Gaussian noise. Source: Abadi et al. 2016, Mattern et al. 2022; dp/PRIVACY.md section
 * 16. */
#include "dp/mechanism/gradients.h"

#include <inttypes.h>
#include <math.h>

#include "base/status.h"
#include "base/text.h"
#include "dp/exact/poisson.h"
#include "dp/mechanism/mechanism.h"
#include "dpinfer/finetune.h"
#include "dpinfer/gaussian.h"

static const char *const trainings[] = {"adapter", "weights", "merged", NULL};

static const dpi_parameter sigma = {
    .name = "sigma", .key = "sigma", .label = "sigma, noise", .unit = "",
    .type = DPI_PARAMETER_REAL,
    .max = DPI_FINETUNE_SIGMA_MAX, .help = "noise multiplier; 0: no noise"};
static const dpi_parameter sampling = {
    .name = "sampling", .key = "sampling", .label = "q, of joining", .unit = "",
    .type = DPI_PARAMETER_REAL, .min = 0x1p-32, .max = 1, .default_value = 1,
    .help = "probability that a unit joins a step"};
static const dpi_parameter expected = {
    .name = "expected", .key = "expected", .label = "units of a step", .unit = "units",
    .type = DPI_PARAMETER_REAL, .min_open = 1, .max = 1e12, .default_value = 1,
    .help = "units of a step, expected: what sums are divided by"};
static const dpi_parameter clip = {
    .name = "clip", .key = "clip", .label = "C, clip bound", .unit = "", .type = DPI_PARAMETER_REAL,
    .min_open = 1, .max = 1e6, .default_value = 1, .help = "the longest gradient of a unit"};
static const dpi_parameter trained = {
    .name = "trained", .key = "trained", .unit = "", .type = DPI_PARAMETER_CHOICE,
    .choices = trainings, .help = "an adapter, all weights, or an adapter that is in the weights"};
static const dpi_parameter rank = {
    .name = "rank", .key = "rank", .unit = "", .type = DPI_PARAMETER_INT,
    .max = DPI_FINETUNE_RANK_MAX,
    .help = "of the adapter; 0: all weights"};
static const dpi_parameter alpha = {
    .name = "alpha", .key = "alpha", .unit = "", .type = DPI_PARAMETER_REAL, .max = 1e6,
    .help = "the adapter's scale times its rank; 0: all weights"};
static const dpi_parameter numbers = {
    .name = "numbers", .key = "numbers", .unit = "", .type = DPI_PARAMETER_INT, .min = 1,
    .max = 0x1p50, .default_value = 1, .help = "how many numbers were trained"};
static const dpi_parameter tensors = {
    .name = "tensors", .key = "tensors_sha256", .unit = "", .type = DPI_PARAMETER_TEXT,
    .max = 64, .help = "hash of what was trained"};

static const dpi_parameter *const parameters[] = {
    [DPI_GRADIENTS_SIGMA] = &sigma,       [DPI_GRADIENTS_SAMPLING] = &sampling,
    [DPI_GRADIENTS_EXPECTED] = &expected, [DPI_GRADIENTS_CLIP] = &clip,
    [DPI_GRADIENTS_TRAINED] = &trained,   [DPI_GRADIENTS_RANK] = &rank,
    [DPI_GRADIENTS_ALPHA] = &alpha,       [DPI_GRADIENTS_NUMBERS] = &numbers,
    &tensors,                             NULL};

double dpi_gradients_sampling(double n_expected, int64_t n_units) {
    const double one = (double)DPI_POISSON_ONE, share = ceil(n_expected / (double)n_units * one);
    return fmin(fmax(share, 1), one) / one;
}

static dpi_status check(const dpi_claim *c, const dpi_claim_part *p, dpi_error *err) {
    const double *v = p->values, units = (double)c->n_units;
    const bool whole = v[DPI_GRADIENTS_TRAINED] == DPI_TRAINED_WEIGHTS;
    DPI_TRY(dpi_check_range("steps", p->n_runs, 1, DPI_GAUSSIAN_STEPS_MAX, err));
    DPI_TRY(dpi_check_range("n_units", c->n_units, 1, INT64_C(1) << 40, err));
    DPI_TRY(dpi_check_range("max_per_unit", c->max_per_unit, 0, 64, err));
    if (v[DPI_GRADIENTS_EXPECTED] > units)
        return dpi_fail(err, DPI_STATUS_ARG, "expected: found %.10g, allowed above 0 and at most "
                                             "units, %" PRId64, v[DPI_GRADIENTS_EXPECTED],
                        c->n_units);
    const double q = dpi_gradients_sampling(v[DPI_GRADIENTS_EXPECTED], c->n_units);
    if (v[DPI_GRADIENTS_SAMPLING] != q)
        return dpi_fail(err, DPI_STATUS_ARG, "sampling: found %.10g, and %.10g of %.10g units are "
                                             "%.10g", v[DPI_GRADIENTS_SAMPLING],
                        v[DPI_GRADIENTS_EXPECTED], units, q);
    if (v[DPI_GRADIENTS_SIGMA] > 0 && v[DPI_GRADIENTS_SIGMA] < DPI_GAUSSIAN_SIGMA_MIN)
        return dpi_fail(err, DPI_STATUS_ARG, "sigma: found %.10g, allowed %g..%g, or 0: no noise",
                        v[DPI_GRADIENTS_SIGMA], DPI_GAUSSIAN_SIGMA_MIN, DPI_FINETUNE_SIGMA_MAX);
    if (whole != (v[DPI_GRADIENTS_RANK] < 1) || whole != !(v[DPI_GRADIENTS_ALPHA] > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "rank: found %.10g with alpha %.10g, allowed are both "
                                             "above 0 of an adapter, and 0 of all weights",
                        v[DPI_GRADIENTS_RANK], v[DPI_GRADIENTS_ALPHA]);
    return DPI_STATUS_OK;
}

/* Of each matrix an adapter has two, one of `rank` rows and one of `rank` columns. */
static dpi_status check_tensors(const dpi_claim *c, const dpi_claim_part *p, dpi_error *err) {
    const double n = p->values[DPI_GRADIENTS_NUMBERS], r = p->values[DPI_GRADIENTS_RANK];
    if (p->text[0] && r > 0 && (n < 2 * r || fmod(n, r) != 0))
        return dpi_fail(err, DPI_STATUS_ARG, "numbers: found %.10g, allowed is a multiple of the "
                                             "rank %.10g, and at least twice it", n, r);
    return dpi_part_check_tensors(c, p, err);
}

static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    dpi_gaussian g;
    DPI_TRY(check(c, p, err));
    DPI_TRY(check_tensors(c, p, err));
    p->epsilon = INFINITY;
    if (p->values[DPI_GRADIENTS_SIGMA] == 0)
        return DPI_STATUS_OK;
    dpi_gaussian_init(&g);
    g.sigma = p->values[DPI_GRADIENTS_SIGMA];
    g.sampling = p->values[DPI_GRADIENTS_SAMPLING];
    g.n_steps = (int32_t)p->n_runs;
    dpi_part_cost(p, DPI_COST_GAUSSIAN, p->n_runs, g.sigma, g.sampling);
    return dpi_gaussian_epsilon(&g, c->delta, &p->epsilon, err);
}

static const char *warning(const dpi_claim *c, const dpi_claim_part *p) {
    (void)c;
    return p->values[DPI_GRADIENTS_SIGMA] > 0 ? NULL : "no noise was added";
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    const double *v = p->values;
    (void)c;
    if (v[DPI_GRADIENTS_TRAINED] == DPI_TRAINED_WEIGHTS)
        dpi_facts_text(f, NULL, "trained", "all %.0f weights", v[DPI_GRADIENTS_NUMBERS]);
    else
        dpi_facts_text(f, NULL, "adapter", "rank %.0f, alpha %.10g, %.0f numbers%s",
                       v[DPI_GRADIENTS_RANK], v[DPI_GRADIENTS_ALPHA], v[DPI_GRADIENTS_NUMBERS],
                       v[DPI_GRADIENTS_TRAINED] == DPI_TRAINED_MERGED ? ", in the weights" : "");
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    const char *one = c->max_per_unit > 0 ? "person" : "record";
    dpi_text_add(t,
                 "A language model (%s) learnt from about %" PRId64 " %ss in %.0f steps. In each "
                 "step some of them, drawn at random, said how the model should change; how far "
                 "one %s may move it is limited%s. Only the %s is given away.",
                 c->model_name, c->n_units, one, (double)p->n_runs, one,
                 p->values[DPI_GRADIENTS_SIGMA] > 0 ? ", and random noise was added to the sum"
                                                    : "",
                 p->values[DPI_GRADIENTS_TRAINED] == DPI_TRAINED_ADAPTER ? "adapter" : "model");
}

static const char *const assumptions[] = {
    "The sum of gradients, each of a norm of at most D, with discrete Gaussian noise of sigma D on "
    "each number is bounded by the privacy loss of Gaussian noise (dp/PRIVACY.md, section 17); the "
    "losses of all steps are convolved, discretised upwards. Holds for any records.",
    "Amplification needs that each unit joins each step with probability q, independently of all "
    "else, and that who joined stays secret. Fulfilled by the program: a fresh draw for each unit "
    "and step; no shuffling.",
    NULL};

const dpi_mechanism_ops dpi_mechanism_gradients = {
    .info = {.name = "gradients",
             .title = "training with clipped gradients and Gaussian noise, in integers",
             .help = "clipped gradients of units that join steps at random, with noise",
             .source = "Mattern et al. 2022",
             .proof = "dp/PRIVACY.md section 16",
             .runs = "steps"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_ADD_REMOVE,
    .has_records = true,
    .uses = DPI_USES_UNITS | DPI_USES_DELTA | DPI_USES_MODEL,
    .leads = DPI_BEHIND_TRAINING,
    .accounting = "privacy loss distribution of steps on Poisson samples",
    .output = "what was trained, after the last step",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .warning = warning,
    .facts = facts,
};
