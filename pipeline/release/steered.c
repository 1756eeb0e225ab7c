/* steered.c - steering vectors of the records that texts are about: their claim is a part of the
 * run's, and the costs of both add up (dp/PRIVACY.md section 29). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/mechanism/steering.h"
#include "dpinfer/report.h"
#include "engine/model.h"
#include "pipeline/release/plan.h"
#include "pipeline/release/run_claim.h"

static const char ADVICE[] = "if they are of other records, or a ledger counts both, give them by "
                             "control_vector in place of this option (steered)";

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
    /* How many units have each label is public there, and may be a secret here. */
    const bool same = steering->labels == DPI_LABELS_PUBLIC && c->labels == steering->labels;
    if (steering->labels && !same)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "steered: the vectors are of %d labels, allowed where these and those of "
                        "the run are public (a label field, replace-by-null); %s",
                        (int)steering->n_labels, ADVICE);
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

/* ---- Labels ---------------------------------------------------------------------------------- */

/* Which line of `lines` [n_lines] is the name; -1: none. */
static int32_t find_line(const char *lines, int32_t n_lines, dpi_span name) {
    for (int32_t i = 0; i < n_lines; i++) {
        const size_t n = strcspn(lines, "\n");
        if (n == name.n_bytes && memcmp(lines, name.data, n) == 0)
            return i;
        lines += n + (lines[n] == '\n');
    }
    return -1;
}

/* Labels are public here, and so is which of them there are. */
static dpi_status find_sets(dpi_plan *plan, dpi_error *err) {
    const dpi_control_vector *control = plan->options.model->control;
    const dpi_label_list *labels = &plan->labels;
    plan->sets = dpi_calloc((size_t)labels->n, sizeof *plan->sets);
    if (!plan->sets)
        return dpi_no_memory(err, "the labels");
    for (int32_t i = 0; i < labels->n; i++) {
        const dpi_span name = labels->names.at[i];
        plan->sets[i] = control->labels ? find_line(control->labels, control->n_sets, name) : -1;
        if (plan->sets[i] < 0)
            return dpi_fail(err, DPI_STATUS_ARG,
                            "steered: found texts of '%.*s', which is none of the %d labels of the "
                            "vectors", (int)name.n_bytes, name.data, (int)control->n_sets);
    }
    plan->options.session.steers = 1;
    return DPI_STATUS_OK;
}

dpi_status dpi_plan_steer(const dpi_plan *plan, dpi_session *session, int32_t first, int32_t n,
                          int32_t label, dpi_error *err) {
    for (int32_t seq = first; seq < first + n && plan->sets; seq++)
        DPI_TRY(dpi_session_steer(session, seq, plan->sets[label > 0 ? label : 0], err));
    return DPI_STATUS_OK;
}

dpi_status dpi_plan_settle_steering(dpi_plan *plan, dpi_error *err) {
    dpi_claim claim;
    DPI_TRY(dpi_check_range("steered", plan->options.steered, 0, 1, err));
    /* Sequences of a caller's sets would have none, which would show after the charge. */
    DPI_TRY(dpi_check_range("session.steers", plan->options.session.steers, 0, 0, err));
    if (!plan->options.steered)
        return DPI_STATUS_OK;
    DPI_TRY(read_claim(plan->options.model, &claim, err));
    const dpi_claim_part *part = dpi_claim_find(&claim, "steering");
    DPI_TRY(check_sum(plan, &claim, part->values[DPI_STEERING_SIGMA], err));
    if (claim.labels)
        DPI_TRY(find_sets(plan, err));
    if (claim.randomness != DPI_RANDOMNESS_SYSTEM)
        plan->claim.randomness = claim.randomness;
    dpi_run_steered(part, &plan->claim);
    return DPI_STATUS_OK;
}
