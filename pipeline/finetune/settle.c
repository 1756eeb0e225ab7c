/* settle.c - the numbers of a training, before a record is read; what it costs; its statement. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "engine/model.h"
#include "base/text.h"
#include "dp/exact/gradient.h"
#include "dp/exact/poisson.h"
#include "dpinfer/gaussian.h"
#include "pipeline/claim.h"
#include "pipeline/finetune/finetune.h"
#include "pipeline/release/payers.h"

void dpi_finetune_options_init(dpi_finetune_options *options) {
    *options = (dpi_finetune_options){.struct_size = sizeof *options,
                                      .chat = DPI_CHAT_AUTO,
                                      .n_positions = 256,
                                      .max_per_unit = 4,
                                      .mismatch = .2,
                                      .n_wrong = 4,
                                      .delta = 1e-6,
                                      .n_steps = 100,
                                      .rank = 1,
                                      .alpha = 16,
                                      .targets = DPI_FINETUNE_ALL,
                                      .clip = 1,
                                      .n_warmup = 10,
                                      .checkpoint_steps = 10};
}

void dpi_finetune_claim_init(dpi_finetune_claim *claim) {
    *claim = (dpi_finetune_claim){.struct_size = sizeof *claim};
}

int32_t dpi_finetune_is_private(const dpi_finetune_claim *c) {
    return isfinite(c->epsilon) && c->randomness == DPI_RANDOMNESS_SYSTEM;
}

const char *dpi_finetune_label(const dpi_finetune_claim *c) {
    return dpi_finetune_is_private(c) ? "PRIVATE" : "NOT PRIVATE";
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static dpi_status check(const dpi_finetune_options *o, dpi_error *err) {
    if (o->struct_size != sizeof *o)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_finetune_options.struct_size is %zu, must be %zu",
                        o->struct_size, sizeof *o);
    if (!o->model || !o->records)
        return dpi_fail(err, DPI_STATUS_ARG, "model and records must not be NULL");
    if (o->n_units < 1)
        return dpi_fail(err, DPI_STATUS_ARG, "units: found none, needed is about how many there "
                                             "are, a public number");
    DPI_TRY(dpi_check_range("steps", o->n_steps, 1, 1 << 24, err));
    DPI_TRY(dpi_check_range("max_per_unit", o->max_per_unit, 1, 64, err));
    DPI_TRY(dpi_check_range("labels", o->n_labels, 0, DPI_FINETUNE_LABELS_MAX, err));
    DPI_TRY(dpi_check_range("n_wrong", o->n_wrong, 1, DPI_WRONG_MAX, err));
    if (!(o->mismatch >= 0 && o->mismatch <= 1))
        return dpi_fail(err, DPI_STATUS_ARG, "mismatch: found %g, allowed 0..1", o->mismatch);
    DPI_TRY(dpi_check_range("attributes", o->n_attributes, 0, DPI_LABEL_FIELDS_MAX, err));
    if (o->histogram_epsilon != 0 &&
        !(o->histogram_epsilon >= 0x1p-20 && o->histogram_epsilon <= 1 && o->n_labels > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "histogram_epsilon: found %g, allowed 2^-20..1, with "
                                             "labels", o->histogram_epsilon);
    if ((o->n_labels > 0) != (dpi_records_has_labels(o->records) != 0))
        return dpi_fail(err, DPI_STATUS_ARG, "labels: found %s, and records %s labels",
                        o->n_labels > 0 ? "some" : "none", o->n_labels > 0 ? "without" : "with");
    if (o->held_out && dpi_records_has_labels(o->held_out) != dpi_records_has_labels(o->records))
        return dpi_fail(err, DPI_STATUS_ARG, "held_out: labels are needed where records have them");
    DPI_TRY(dpi_check_range("checkpoint_steps", o->checkpoint_steps, 1, 1 << 24, err));
    if (!(o->delta > 0 && o->delta * (double)o->n_units < 1))
        return dpi_fail(err, DPI_STATUS_ARG, "delta: found %g, allowed below 1 / units = %g",
                        o->delta, 1 / (double)o->n_units);
    if (!(o->epsilon >= 0 && o->sigma >= 0) || (o->epsilon > 0) == (o->sigma > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "epsilon: found %g with sigma %g, allowed is one of "
                                             "them", o->epsilon, o->sigma);
    if (!(o->n_expected >= 0 && o->n_expected <= (double)o->n_units))
        return dpi_fail(err, DPI_STATUS_ARG, "expected: found %g, allowed above 0 and at most "
                                             "units, %lld", o->n_expected, (long long)o->n_units);
    if (o->ledger && !o->dataset)
        return dpi_fail(err, DPI_STATUS_ARG, "dataset: found none, needed with a ledger");
    if (o->model && dpi_finetune_is_claimed(o->model->gguf))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the model was trained on records itself: what is trained on it would not "
                        "count what that cost; allowed is a model without such a claim");
    if (o->ledger && (o->seeded || isinf(o->epsilon)))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a ledger counts guarantees, and this training has none");
    return DPI_STATUS_OK;
}

_Static_assert((int)DPI_FINETUNE_SIGMA_MAX <= (int)DPI_GRADIENT_NOISE_MAX &&
                   (int)DPI_FINETUNE_SIGMA_MAX <= (int)DPI_GAUSSIAN_SIGMA_MAX,
               "the noise of a training is drawn and accounted for");

/* Of a noise that was given, or found for epsilon. */
static dpi_status check_sigma(const dpi_finetune_options *o, double sigma, dpi_error *err) {
    if (sigma >= DPI_GAUSSIAN_SIGMA_MIN && sigma <= DPI_FINETUNE_SIGMA_MAX)
        return DPI_STATUS_OK;
    if (o->sigma > 0)
        return dpi_fail(err, DPI_STATUS_ARG, "sigma: found %g, allowed %g..%g", sigma,
                        DPI_GAUSSIAN_SIGMA_MIN, DPI_FINETUNE_SIGMA_MAX);
    return dpi_fail(err, DPI_STATUS_ARG,
                    "epsilon: found %g, which %d steps reach with sigma %g, allowed %g..%g",
                    o->epsilon, o->n_steps, sigma, DPI_GAUSSIAN_SIGMA_MIN, DPI_FINETUNE_SIGMA_MAX);
}

static dpi_gaussian gaussian_of(const dpi_finetune_claim *c) {
    dpi_gaussian g;
    dpi_gaussian_init(&g);
    g.sigma = c->sigma > 0 ? c->sigma : 1;
    g.sampling = c->sampling;
    g.n_steps = c->n_steps;
    return g;
}

dpi_status dpi_finetune_epsilon(const dpi_finetune_claim *c, double *epsilon, dpi_error *err) {
    const dpi_gaussian g = gaussian_of(c);
    *epsilon = INFINITY;
    if (!(c->sigma > 0))
        return DPI_STATUS_OK;
    DPI_TRY(dpi_gaussian_epsilon(&g, c->delta, epsilon, err));
    if (c->histogram_scale > 0)
        *epsilon = nextafter(*epsilon + dpi_finetune_histogram_epsilon(c), INFINITY);
    return DPI_STATUS_OK;
}

dpi_status dpi_finetune_spent(const dpi_finetune *f, double *epsilon, dpi_error *err) {
    dpi_finetune_claim c = f->claim;
    c.n_steps = dpi_finetune_steps_done(f);
    *epsilon = dpi_finetune_histogram_epsilon(&c);
    return c.n_steps > 0 ? dpi_finetune_epsilon(&c, epsilon, err) : DPI_STATUS_OK;
}

/* sigma, for what the histogram leaves of epsilon. */
static dpi_status settle_sigma(const dpi_finetune_options *o, dpi_finetune_claim *c,
                               dpi_error *err) {
    const dpi_gaussian g = gaussian_of(c);
    const double histogram = dpi_finetune_histogram_epsilon(c);
    const double left = histogram > 0 ? (o->epsilon - histogram) * (1 - 1e-12) : o->epsilon;
    if (!(left > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "histogram_epsilon: found %g, allowed less than "
                                             "epsilon, %g", histogram, o->epsilon);
    return dpi_gaussian_sigma(&g, left, o->delta, &c->sigma, err);
}

/* q is a multiple of 2^-32: the next one above n_expected / n_units. */
static double sampling_of(double n_expected, int64_t n_units) {
    const double one = (double)DPI_POISSON_ONE, share = ceil(n_expected / (double)n_units * one);
    return fmin(fmax(share, 1), one) / one;
}

void dpi_finetune_check_claim(const dpi_finetune_claim *c, char why[DPI_FINETUNE_WHY]) {
    const size_t size = DPI_FINETUNE_WHY;
    const double units = (double)c->n_units;
    why[0] = '\0';
    if (!(c->n_expected > 0 && c->n_expected <= units))
        dpi_format(why, size, "expected: %.10g of %.10g units", c->n_expected, units);
    else if (c->sampling < sampling_of(c->n_expected, c->n_units) ||
             c->sampling > sampling_of(c->n_expected, c->n_units))
        dpi_format(why, size, "sampling: %.10g, and %.10g of %.10g units are %.10g", c->sampling,
                 c->n_expected, units, sampling_of(c->n_expected, c->n_units));
    else if (!(c->delta * units < 1))
        dpi_format(why, size, "delta: %.10g, not below 1 / units = %.10g", c->delta, 1 / units);
    else if (c->sigma > 0 && c->sigma < DPI_GAUSSIAN_SIGMA_MIN)
        dpi_format(why, size, "sigma: %.10g, below %g", c->sigma, DPI_GAUSSIAN_SIGMA_MIN);
    else if (!(c->clip > 0))
        dpi_format(why, size, "clip: %.10g", c->clip);
    else if (c->n_params < 1)
        dpi_format(why, size, "numbers: none");
}

dpi_status dpi_finetune_settle(dpi_finetune *f, dpi_error *err) {
    dpi_finetune_options *o = &f->options;
    dpi_finetune_claim *c = &f->claim;
    dpi_model_info info;
    DPI_TRY(check(o, err));
    if (o->lr == 0)
        o->lr = o->full ? 1e-5 : 1e-3;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(o->model, &info, err));
    if (o->n_expected == 0)
        o->n_expected = (double)o->n_units / 20;
    dpi_finetune_claim_init(c);
    c->delta = o->delta, c->sigma = o->sigma;
    c->n_units = o->n_units, c->n_expected = o->n_expected;
    c->sampling = sampling_of(o->n_expected, o->n_units);
    c->n_steps = o->n_steps, c->clip = o->clip;
    c->max_per_unit = dpi_records_has_units(o->records) ? o->max_per_unit : 0;
    c->record_kind = dpi_records_kind(o->records);
    c->randomness = o->seeded ? DPI_RANDOMNESS_SEED : DPI_RANDOMNESS_SYSTEM;
    c->full = o->full != 0;
    if (!o->full)
        c->rank = o->rank, c->alpha = o->alpha, c->targets = o->targets;
    snprintf(c->model_name, sizeof c->model_name, "%s", info.name);
    if (o->histogram_epsilon > 0)
        c->histogram_scale = (int32_t)ceil(1 / o->histogram_epsilon);
    if (o->epsilon > 0 && isfinite(o->epsilon))
        DPI_TRY(settle_sigma(o, c, err));
    if (c->sigma > 0)
        DPI_TRY(check_sigma(o, c->sigma, err));
    return dpi_finetune_epsilon(c, &c->epsilon, err);
}

/* ---- The charge ------------------------------------------------------------------------------ */

static const char METHOD[] = "finetune";

static void keep(dpi_finetune *f, const dpi_dataset_info *info, const dpi_charge *charge) {
    f->charge = charge->id;
    dpi_payers_keep(&f->claim.ledger, info, charge);
}

/* Each unit pays for itself; after a checkpoint the ledger tells who has (request NULL). */
static dpi_status charge_units(dpi_finetune *f, dpi_charge_request *request, dpi_charge *charge,
                               dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    const dpi_payers payers = {.records = o->records, .ledger = o->ledger, .dataset = o->dataset,
                               .request = request, .paid = request ? 0 : f->charge};
    return dpi_payers_charge(&payers, &f->pays, charge, err);
}

static dpi_status find_cost(const dpi_finetune *f, dpi_cost *cost, dpi_error *err) {
    dpi_cost_init(cost);
    DPI_TRY(dpi_cost_add(cost, DPI_COST_GAUSSIAN, f->options.n_steps, f->claim.sigma,
                         f->claim.sampling, err));
    return f->claim.histogram_scale > 0
               ? dpi_cost_add(cost, DPI_COST_PURE, 1, dpi_finetune_histogram_epsilon(&f->claim), 0,
                              err)
               : DPI_STATUS_OK;
}

/* Whether a charge may be the one of this training: another ledger has charges of the same number.
 * Its amount may be that of an earlier program, which was no smaller. */
static dpi_status is_ours(const dpi_finetune *f, const dpi_dataset_info *info,
                          const dpi_charge *charge, bool *ours, dpi_error *err) {
    dpi_cost cost;
    double divergence;
    DPI_TRY(find_cost(f, &cost, err));
    DPI_TRY(dpi_cost_renyi(&cost, info->order, &divergence, err));
    *ours = f->charge > 0 && charge->id == f->charge && charge->counted &&
            strcmp(charge->method, METHOD) == 0 &&
            (double)charge->amount >= .999999 * divergence * DPI_LEDGER_ONE;
    return DPI_STATUS_OK;
}

dpi_status dpi_finetune_recall(dpi_finetune *f, dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    dpi_dataset_info info;
    dpi_charge charge;
    bool ours;
    if (!o->ledger)
        return DPI_STATUS_OK;
    dpi_dataset_info_init(&info);
    dpi_charge_init(&charge);
    DPI_TRY(dpi_ledger_info(o->ledger, o->dataset, &info, err));
    DPI_TRY(dpi_ledger_charge_next(o->ledger, o->dataset, f->charge - 1, &charge, err));
    DPI_TRY(is_ours(f, &info, &charge, &ours, err));
    if (!ours)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is of a training whose charge %lld is not in the ledger of '%s'",
                        o->checkpoint, (long long)f->charge, info.name);
    keep(f, &info, &charge);
    return info.scope == DPI_SCOPE_UNIT ? charge_units(f, NULL, NULL, err) : DPI_STATUS_OK;
}

dpi_status dpi_finetune_charge(dpi_finetune *f, dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    char note[DPI_CHARGE_NOTE_MAX + 1];
    dpi_charge_request request;
    dpi_dataset_info info;
    dpi_charge charge;
    dpi_cost cost;
    if (!o->ledger)
        return DPI_STATUS_OK;
    dpi_charge_request_init(&request);
    dpi_dataset_info_init(&info);
    dpi_charge_init(&charge);
    DPI_TRY(dpi_ledger_info(o->ledger, o->dataset, &info, err));
    DPI_TRY(find_cost(f, &cost, err));
    DPI_TRY(dpi_records_privacy_unit(o->records, DPI_ADJACENCY_ADD_REMOVE, f->claim.max_per_unit,
                                     &request.unit, err));
    dpi_format(note, sizeof note, "%s, (%.6g, %g)-DP", o->full ? "all weights" : "an adapter",
               f->claim.epsilon, o->delta);
    request.cost = &cost;
    request.method = METHOD;
    request.note = note;
    DPI_TRY(info.scope == DPI_SCOPE_UNIT
                ? charge_units(f, &request, &charge, err)
                : dpi_ledger_reserve(o->ledger, o->dataset, &request, &charge, err));
    keep(f, &info, &charge);
    return DPI_STATUS_OK;
}

/* ---- The statement --------------------------------------------------------------------------- */

static void add_guarantee(dpi_text *t, const dpi_finetune_claim *c) {
    char epsilon[40];
    if (!isfinite(c->epsilon)) {
        dpi_text_add(t, "  guarantee          none: no noise was added\n");
        return;
    }
    dpi_bound_text(c->epsilon, 7, epsilon, sizeof epsilon);
    if (dpi_finetune_is_private(c))
        dpi_text_add(t, "  guarantee          (%s, %g)-DP, for the %s and all texts from it\n",
                     epsilon, c->delta, c->full ? "model" : "adapter");
    else
        dpi_text_add(t, "  guarantee          none (with secret randomness: (%s, %g)-DP)\n",
                     epsilon, c->delta);
}

dpi_status dpi_finetune_statement(const dpi_finetune_claim *c, char **text, dpi_error *err) {
    const char *kind = dpi_record_kind_text(c->record_kind);
    dpi_text t = {0};
    dpi_text_add(&t, "Privacy statement%s\n", dpi_finetune_is_private(c) ? "" : ": NOT PRIVATE");
    dpi_text_add(&t, "  model              %s\n", c->model_name);
    dpi_text_add(&t, "  method             training with clipped gradients and Gaussian noise, in "
                     "integers\n");
    add_guarantee(&t, c);
    dpi_text_add(&t, "  adjacency          add-remove: one unit more or less\n");
    if (c->max_per_unit > 0)
        dpi_text_add(&t, "  unit               all records with one unit ID; one record = %s\n"
                         "  M, records a unit  %d\n", kind ? kind : "a record", c->max_per_unit);
    else
        dpi_text_add(&t, "  unit               one record = %s\n", kind ? kind : "a record");
    dpi_text_add(&t, "  accounting         privacy loss distribution of %d steps on Poisson "
                     "samples\n",
                 c->n_steps);
    dpi_text_add(&t, "  q, of joining      %.10g\n  sigma, noise       %.10g\n"
                     "  C, clip bound      %.10g\n  units, about       %lld\n"
                     "  units of a step    %.10g, expected\n",
                 c->sampling, c->sigma, c->clip, (long long)c->n_units, c->n_expected);
    if (c->full)
        dpi_text_add(&t, "  trained            all %lld weights\n", (long long)c->n_params);
    else
        dpi_text_add(&t, "  adapter            rank %d, alpha %.10g, %lld numbers%s\n", c->rank,
                     c->alpha, (long long)c->n_params, c->merged ? ", in the weights" : "");
    if (c->histogram_scale > 0)
        dpi_text_add(&t, "  numbers of units   of each label, with Laplace noise of scale %d: "
                         "epsilon %.4g of it\n",
                     c->histogram_scale, dpi_finetune_histogram_epsilon(c));
    dpi_claim_ledger_lines(&t, &c->ledger);
    dpi_text_add(&t, "  randomness         %s\n",
                 c->randomness == DPI_RANDOMNESS_SYSTEM ? "getrandom(2), fresh for every step"
                                                        : "--seed (insecure)");
    if (t.failed) {
        free(t.data);
        return dpi_no_memory(err, "the statement");
    }
    *text = t.data;
    return DPI_STATUS_OK;
}
