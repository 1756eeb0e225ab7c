/* run_claim.c - the settled numbers of a run as a claim, and back. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "dp/mechanism/samplers.h"
#include "dp/mechanism/steering.h"
#include "pipeline/claim/claim_json.h"
#include "pipeline/release/run_claim.h"

static void add_steering(const dpi_run *r, dpi_claim *c) {
    const dpi_run_steering *s = &r->steering;
    dpi_claim_part *part = dpi_claim_add(c, "steering");
    part->values[DPI_STEERING_SIGMA] = s->sigma;
    part->values[DPI_STEERING_CLIP] = s->clip;
    part->values[DPI_STEERING_LAYERS] = s->layers;
    part->values[DPI_STEERING_NUMBERS] = (double)s->layers * s->width;
    part->values[DPI_STEERING_RANK] = r->steering_rank;
    part->values[DPI_STEERING_WORDS] = r->steering_words;
    dpi_to_hex(s->tensors, sizeof s->tensors, part->text);
    if (dpi_part_settle(c, part, NULL) != DPI_STATUS_OK)
        c->epsilon = INFINITY; /* nothing is proven of it */
}

void dpi_claim_of_run(const dpi_run *r, dpi_claim *c) {
    const dpi_sampler_options *o = &r->method;
    const dpi_method_info *m = dpi_method_get(o->method);
    dpi_claim_init(c);
    c->adjacency = o->adjacency;
    c->record_kind = r->record_kind;
    c->max_per_unit = o->max_per_unit;
    c->labels = r->labels, c->n_labels = r->n_labels;
    c->cluster_texts = r->cluster_texts;
    c->no_records = !r->record_in_prompt;
    c->released = r->released;
    c->n_units = r->n_records;
    c->delta = m->max_ref > 0 ? o->delta : 0;
    c->randomness = r->randomness;
    c->pace_texts = r->pace_texts, c->pace_given = r->pace_given;
    snprintf(c->model_name, sizeof c->model_name, "%s", r->model_name);
    snprintf(c->grammar, sizeof c->grammar, "%s", r->grammar);
    snprintf(c->wording, sizeof c->wording, "%s", r->wording);
    snprintf(c->prompts, sizeof c->prompts, "%s", r->prompts);
    c->ledger = r->ledger;
    dpi_claim_part *part = dpi_claim_add(c, m->name);
    part->n_runs = r->n_texts;
    dpi_sampler_to_part(o, part);
    part->plan = r->plan;
    dpi_sampler_part_bound(o, part);
    c->rho = part->rho > 0 ? dpi_run_rho(r) : 0;
    c->epsilon = m->has_guarantee ? dpi_run_epsilon(r) : (double)INFINITY;
    if (r->histogram > 0) {
        dpi_claim_part *histogram = dpi_claim_add(c, "histogram");
        histogram->values[0] = r->histogram;
        histogram->rho = dpi_run_histogram_rho(r);
        dpi_part_cost(histogram, DPI_COST_ZCDP, 1, histogram->rho, 0);
    }
    if (r->steering.layers > 0)
        add_steering(r, c);
}

/* ---- What it says ---------------------------------------------------------------------------- */

size_t dpi_run_guarantee(const dpi_run *run, char *text, size_t size) {
    dpi_claim claim;
    dpi_claim_of_run(run, &claim);
    return dpi_claim_guarantee(&claim, text, size);
}

dpi_status dpi_run_cost(const dpi_run *run, dpi_cost *cost, dpi_error *err) {
    dpi_claim claim;
    dpi_claim_of_run(run, &claim);
    return dpi_claim_cost(&claim, cost, err);
}

dpi_status dpi_run_facts(const dpi_run *run, dpi_fact *facts, size_t *n_facts,
                           dpi_error *err) {
    dpi_claim claim;
    DPI_TRY(dpi_run_check(run, err));
    dpi_claim_of_run(run, &claim);
    dpi_claim_facts(&claim, facts, n_facts);
    return DPI_STATUS_OK;
}

dpi_status dpi_run_statement(const dpi_run *run, int32_t complete, char **text,
                               dpi_error *err) {
    dpi_claim claim;
    DPI_TRY(dpi_run_check(run, err));
    dpi_claim_of_run(run, &claim);
    return dpi_claim_statement(&claim, complete, text, err);
}

void dpi_run_steered(const dpi_claim_part *steering, dpi_run *r) {
    dpi_run_steering *s = &r->steering;
    r->steering_rank = (int32_t)steering->values[DPI_STEERING_RANK];
    r->steering_words = (int32_t)steering->values[DPI_STEERING_WORDS];
    s->sigma = steering->values[DPI_STEERING_SIGMA];
    s->clip = steering->values[DPI_STEERING_CLIP];
    s->layers = (int32_t)steering->values[DPI_STEERING_LAYERS];
    s->width = (int32_t)(steering->values[DPI_STEERING_NUMBERS] / s->layers);
    dpi_from_hex(steering->text, s->tensors, sizeof s->tensors); /* its form was checked */
}

void dpi_run_of_claim(const dpi_claim *c, dpi_run *r) {
    dpi_run_init(r);
    const dpi_claim_part *part = dpi_claim_sampler(c, &r->method);
    const dpi_claim_part *histogram = dpi_claim_find(c, "histogram");
    const dpi_claim_part *steering = dpi_claim_find(c, "steering");
    r->record_kind = c->record_kind;
    r->labels = c->labels, r->n_labels = c->n_labels;
    r->cluster_texts = c->cluster_texts;
    r->record_in_prompt = !c->no_records;
    r->released = c->released;
    r->n_records = c->n_units;
    r->randomness = c->randomness;
    r->pace_texts = c->pace_texts, r->pace_given = c->pace_given;
    snprintf(r->model_name, sizeof r->model_name, "%s", c->model_name);
    snprintf(r->grammar, sizeof r->grammar, "%s", c->grammar);
    snprintf(r->wording, sizeof r->wording, "%s", c->wording);
    snprintf(r->prompts, sizeof r->prompts, "%s", c->prompts);
    r->ledger = c->ledger;
    r->n_texts = part ? (int32_t)part->n_runs : 0;
    r->plan = part ? part->plan : r->plan;
    r->histogram = histogram ? (int32_t)histogram->values[0] : 0;
    if (steering)
        dpi_run_steered(steering, r);
}

json_t *dpi_report_parameters(const dpi_run *run) {
    dpi_claim claim;
    dpi_claim_of_run(run, &claim);
    return dpi_claim_json(&claim);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

int64_t dpi_claim_n_texts(const dpi_claim *c) {
    dpi_mechanism_info info;
    int64_t n = 0;
    for (int32_t i = 0; i < c->n_parts; i++) {
        const double texts = dpi_claim_value(&c->parts[i], "n_texts");
        dpi_mechanism_info_get(c->parts[i].mechanism, &info);
        n = texts >= 1                           ? (int64_t)texts
            : strcmp(info.runs, "texts") == 0 ? c->parts[i].n_runs
                                                 : n;
    }
    return n;
}

int64_t dpi_claim_n_tokens(const dpi_claim *c) {
    int64_t n = 0;
    for (int32_t i = 0; i < c->n_parts; i++) {
        const double tokens = dpi_claim_value(&c->parts[i], "T");
        n = tokens >= 1 ? (int64_t)tokens : n;
    }
    return n;
}
