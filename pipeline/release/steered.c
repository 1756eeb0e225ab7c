/* steered.c - steering vectors of the records that texts are about: their claim is a part of the
 * run's, and the costs of both add up (dp/PRIVACY.md section 29). */
#include <math.h>
#include <stdio.h>

#include "base/status.h"
#include "dp/mechanism/steering.h"
#include "dpinfer/report.h"
#include "pipeline/release/plan.h"
#include "pipeline/release/run_claim.h"

static const char ADVICE[] = "if they are of other records, or a ledger counts both, give them as "
                             "a control vector instead, without `steered`";

/* The claim of the vectors' file, as the file bears it out. */
static dpi_status read_claim(const dpi_model *model, dpi_claim *claim, dpi_error *err) {
    const char *path = dpi_model_control_vector(model);
    dpi_verification v;
    if (!path)
        return dpi_fail(err, DPI_STATUS_ARG, "steered: found a model without a control vector");
    dpi_verification_init(&v);
    dpi_status status = dpi_claim_verify_file(path, claim, &v, err);
    if (status == DPI_STATUS_OK && v.n_wrong > 0)
        status = dpi_fail(err, DPI_STATUS_ARG, "steered: the claim of %s does not hold", path);
    if (status == DPI_STATUS_OK && !dpi_claim_find(claim, "steering"))
        status = dpi_fail(err, DPI_STATUS_ARG, "steered: %s has no steering vectors", path);
    dpi_verification_free(&v);
    return status;
}

/* Both must protect the same units of the same records, and count in zCDP, in which they add up. */
static dpi_status check_sum(const dpi_plan *plan, const dpi_claim *steering, double sigma,
                            dpi_error *err) {
    const dpi_run *c = &plan->claim;
    const dpi_sampler_options *m = &c->method;
    if (!dpi_run_is_proven(c))
        return dpi_fail(err, DPI_STATUS_ARG, "steered: allowed with a method that has a guarantee");
    if (steering->labels) /* how many units have each is public there, and may be a secret here */
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "steered: the vectors are of %d labels, allowed are those of all units "
                        "together; %s", (int)steering->n_labels, ADVICE);
    if (!(sigma > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "steered: the vectors have no noise, and so no "
                                             "guarantee; %s", ADVICE);
    if (m->accountant == DPI_ACCOUNTANT_BR || m->subsample > 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "steered: found %s, allowed is what is counted in zCDP",
                        m->subsample > 0 ? "secret assignment" : "the accountant br");
    if (m->adjacency != DPI_ADJACENCY_REPLACE_BY_NULL || steering->adjacency != m->adjacency)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "steered: found %s, and vectors with %s, allowed is replace-by-null of "
                        "both; %s", dpi_adjacency_name(m->adjacency),
                        dpi_adjacency_name(steering->adjacency), ADVICE);
    if (steering->n_units != c->n_records || steering->max_per_unit != m->max_per_unit)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "steered: the vectors are of %lld units of at most %d records (0: each "
                        "record is one), and this run is of %lld of %d: they must be the same; %s",
                        (long long)steering->n_units, (int)steering->max_per_unit,
                        (long long)c->n_records, (int)m->max_per_unit, ADVICE);
    if (plan->options.ledger)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "steered: found a ledger, which has or needs a charge of the vectors of "
                        "its own, and would count them twice; %s", ADVICE);
    return DPI_STATUS_OK;
}

dpi_status dpi_plan_settle_steering(dpi_plan *plan, dpi_error *err) {
    dpi_claim claim;
    DPI_TRY(dpi_check_range("steered", plan->options.steered, 0, 1, err));
    if (!plan->options.steered)
        return DPI_STATUS_OK;
    DPI_TRY(read_claim(plan->options.model, &claim, err));
    const dpi_claim_part *part = dpi_claim_find(&claim, "steering");
    DPI_TRY(check_sum(plan, &claim, part->values[DPI_STEERING_SIGMA], err));
    if (claim.randomness != DPI_RANDOMNESS_SYSTEM)
        plan->claim.randomness = claim.randomness;
    dpi_run_steered(part, &plan->claim);
    return DPI_STATUS_OK;
}
