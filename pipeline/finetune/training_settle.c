/* training_settle.c - the numbers of a training, before a record is read, and its charge. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/struct.h"
#include "engine/model.h"
#include "base/text.h"
#include "dp/exact/gradient.h"
#include "dp/mechanism/gradients.h"
#include "dpinfer/gaussian.h"
#include "pipeline/run.h"
#include "pipeline/finetune/finetune.h"
#include "pipeline/release/payers.h"

DPI_STRUCT_DEFAULTS(dpi_finetune_options,
    .chat = DPI_CHAT_AUTO, .n_positions = 256, .max_per_unit = 4, .mismatch = .2, .n_wrong = 4,
    .delta = 1e-6, .n_steps = 100, .rank = 1, .alpha = 16, .targets = DPI_FINETUNE_ALL, .clip = 1,
    .n_warmup = 10, .checkpoint_steps = 10)

/* ---- Numbers --------------------------------------------------------------------------------- */

static dpi_status check(const dpi_finetune_options *o, dpi_error *err) {
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
    if (o->model && dpi_claim_file_has(o->model->gguf))
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

dpi_status dpi_finetune_spent(const dpi_finetune *f, double *epsilon, dpi_error *err) {
    dpi_claim c = f->claim;
    c.parts[0].n_runs = dpi_finetune_steps_done(f);
    *epsilon = dpi_finetune_histogram_epsilon(&c);
    if (c.parts[0].n_runs == 0)
        return DPI_STATUS_OK;
    c.ledger = (dpi_claim_ledger){0};
    DPI_TRY(dpi_claim_settle(&c, err));
    *epsilon = c.epsilon;
    return DPI_STATUS_OK;
}

/* sigma, for what the histogram leaves of epsilon. */
static dpi_status find_sigma(const dpi_finetune_options *o, const dpi_claim *c, double *sigma,
                             dpi_error *err) {
    const double histogram = dpi_finetune_histogram_epsilon(c);
    const double left = histogram > 0 ? (o->epsilon - histogram) * (1 - 1e-12) : o->epsilon;
    dpi_gaussian g;
    *sigma = o->sigma;
    if (isinf(o->epsilon) || !(o->epsilon > 0))
        return o->sigma > 0 ? check_sigma(o, o->sigma, err) : DPI_STATUS_OK;
    if (!(left > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "histogram_epsilon: found %g, allowed less than "
                                             "epsilon, %g", histogram, o->epsilon);
    dpi_gaussian_init(&g);
    g.sampling = dpi_gradients_sampling(o->n_expected, o->n_units);
    g.n_steps = o->n_steps;
    DPI_TRY(dpi_gaussian_sigma(&g, left, o->delta, sigma, err));
    return check_sigma(o, *sigma, err);
}

/* The mechanisms: the noise is found, the numbers that are trained are not known yet. */
static dpi_status add_parts(const dpi_finetune_options *o, dpi_claim *c, dpi_error *err) {
    dpi_claim_part *p = dpi_claim_add(c, "gradients");
    double sigma;
    if (o->histogram_epsilon > 0)
        dpi_claim_add(c, "label_counts")->values[0] = ceil(1 / o->histogram_epsilon);
    DPI_TRY(find_sigma(o, c, &sigma, err));
    const double values[] = {
        [DPI_GRADIENTS_SIGMA] = sigma,
        [DPI_GRADIENTS_SAMPLING] = dpi_gradients_sampling(o->n_expected, o->n_units),
        [DPI_GRADIENTS_EXPECTED] = o->n_expected, [DPI_GRADIENTS_CLIP] = o->clip,
        [DPI_GRADIENTS_TRAINED] = o->full ? DPI_TRAINED_WEIGHTS : DPI_TRAINED_ADAPTER,
        [DPI_GRADIENTS_RANK] = o->full ? 0 : o->rank,
        [DPI_GRADIENTS_ALPHA] = o->full ? 0 : o->alpha, [DPI_GRADIENTS_NUMBERS] = 1};
    p->n_runs = o->n_steps;
    memcpy(p->values, values, sizeof values);
    return dpi_claim_settle(c, err);
}

dpi_status dpi_finetune_settle(dpi_finetune *f, dpi_error *err) {
    dpi_finetune_options *o = &f->options;
    dpi_claim *c = &f->claim;
    dpi_model_info info;
    DPI_TRY(check(o, err));
    if (o->lr == 0)
        o->lr = o->full ? 1e-5 : 1e-3;
    dpi_model_info_init(&info);
    DPI_TRY(dpi_model_info_get(o->model, &info, err));
    if (o->n_expected == 0)
        o->n_expected = (double)o->n_units / 20;
    dpi_claim_init(c);
    c->adjacency = DPI_ADJACENCY_ADD_REMOVE;
    c->record_kind = dpi_records_kind(o->records);
    c->max_per_unit = dpi_records_has_units(o->records) ? o->max_per_unit : 0;
    c->n_units = o->n_units;
    c->delta = o->delta;
    c->randomness = o->seeded ? DPI_RANDOMNESS_SEED : DPI_RANDOMNESS_SYSTEM;
    dpi_claim_name_text(c->model_name, sizeof c->model_name, info.name);
    return add_parts(o, c, err);
}

/* ---- The charge ------------------------------------------------------------------------------ */

/* Whether a charge may be the one of this training: another ledger has charges of the same number.
 * Its amount may be that of an earlier program, which was no smaller. */
static dpi_status is_ours(const dpi_finetune *f, const dpi_dataset_info *info,
                          const dpi_charge *charge, bool *ours, dpi_error *err) {
    dpi_cost cost;
    double divergence;
    DPI_TRY(dpi_claim_cost(&f->claim, &cost, err));
    DPI_TRY(dpi_cost_renyi(&cost, info->order, &divergence, err));
    *ours = f->charge > 0 && charge->id == f->charge && charge->counted &&
            strcmp(charge->method, "gradients") == 0 &&
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
    dpi_payers_keep(&f->claim.ledger, &info, &charge);
    if (info.scope != DPI_SCOPE_UNIT)
        return DPI_STATUS_OK;
    /* The ledger tells who has paid. */
    const dpi_payers payers = {.records = o->records, .ledger = o->ledger, .dataset = o->dataset,
                               .paid = f->charge};
    return dpi_payers_charge(&payers, &f->pays, NULL, err);
}

dpi_status dpi_finetune_charge(dpi_finetune *f, dpi_error *err) {
    const dpi_finetune_options *o = &f->options;
    const dpi_payers payers = {.records = o->records, .ledger = o->ledger, .dataset = o->dataset};
    return dpi_payers_charge_claim(&payers, &f->claim, &f->pays, &f->charge, err);
}
