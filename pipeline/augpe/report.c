/* report.c - the claim of an evolution as JSON, and back from a file, of which nothing is
 * trusted. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "pipeline/augpe/augpe.h"
#include "pipeline/claim.h"
#include "pipeline/journal/json_text.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/release/compare.h"
#include "pipeline/release/hash.h"

static const char FORMAT[] = "dpinfer augpe";
enum { VERSION = 2, REPORT_BYTES_MAX = 1 << 20 };

static dpi_status no_memory(dpi_error *err) {
    return dpi_no_memory(err, "a report");
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Without a grammar there is no such key, as in reports before there were any. */
static json_t *parameters_of(const dpi_augpe_claim *c) {
    return json_pack("{s:s, s:f, s:f, s:f, s:i, s:i, s:i, s:i, s:s, s:f, s:s, s:f, s:i, s:i, s:f, "
                     "s:s, s:i, s:I, s:i, s:i, s:i, s:s*}",
                     "model", c->model_name, "rho", c->rho, "epsilon", c->epsilon, "delta",
                     c->delta, "n_texts", c->n_texts, "n_rounds", c->n_rounds, "n_candidates",
                     c->n_candidates, "n_lookahead", c->n_lookahead, "selection",
                     dpi_augpe_selection_name(c->selection), "threshold", c->threshold,
                     "variation", dpi_augpe_variation_name(c->variation), "change", c->change,
                     "n_tokens", c->n_tokens, "top_k", c->top_k, "tau", c->tau, "adjacency",
                     dpi_adjacency_name(c->adjacency), "max_per_unit", c->max_per_unit, "n_units",
                     (json_int_t)c->n_units, "record_kind", c->record_kind, "randomness",
                     c->randomness, "remote", c->remote, "grammar",
                     c->grammar[0] ? c->grammar : NULL);
}

/* Amounts are Renyi divergences of the order. */
static json_t *ledger_of(const dpi_claim_ledger *l) {
    const double one = DPI_LEDGER_ONE;
    if (!l->dataset[0])
        return json_null();
    return json_pack("{s:s, s:f, s:f, s:s, s:i, s:f, s:f, s:f}", "dataset", l->dataset, "epsilon",
                     l->epsilon, "delta", l->delta, "scope", dpi_scope_name(l->scope), "order",
                     l->order, "budget", (double)l->budget / one, "charge",
                     (double)l->charge / one, "before", (double)l->before / one);
}

/* The sections that follow from a claim; `files` and `output`, which are stolen, are believed. */
static json_t *report_of(const dpi_augpe_claim *c, const char *program, json_t *files,
                         json_t *output, bool complete, dpi_error *err) {
    char *statement = NULL;
    json_t *report = NULL;
    if (dpi_augpe_statement(c, &statement, err) == DPI_STATUS_OK)
        report = json_pack("{s:s, s:i, s:s, s:b, s:o, s:{s:I, s:f, s:f, s:f, s:b}, s:o, s:O, s:O, "
                           "s:s}",
                           "format", FORMAT, "version", VERSION, "program", program,
                           "complete", complete, "parameters", parameters_of(c), "realised",
                           "variance", (json_int_t)c->variance, "rho_round", c->rho_round,
                           "rho_total", c->rho_total, "epsilon_total", c->epsilon_total,
                           "private", dpi_augpe_is_private(c), "ledger", ledger_of(&c->ledger),
                           "model_files", files, "output", output, "statement", statement);
    free(statement);
    json_decref(files);
    json_decref(output);
    if (!report)
        (void)!no_memory(err);
    return report;
}

/* {"n_bytes":, "sha256":} or null. */
static dpi_status hash_output(const char *path, json_t **output, dpi_error *err) {
    *output = json_null();
    return path ? dpi_hash_one(path, output, err) : DPI_STATUS_OK;
}

dpi_status dpi_augpe_report(const dpi_augpe_claim *c, const dpi_model *model,
                            const char *model_path, const char *output_path, int32_t complete,
                            char **text, dpi_error *err) {
    json_t *files, *output;
    size_t n_bytes;
    DPI_TRY(dpi_hash_model(model_path, dpi_hash_count_files(model), &files, err));
    const dpi_status status = hash_output(output_path, &output, err);
    if (status != DPI_STATUS_OK) {
        json_decref(files);
        return status;
    }
    json_t *report = report_of(c, dpi_version(), files, output, complete != 0, err);
    if (!report)
        return DPI_STATUS_MEMORY;
    *text = dpi_json_text(report, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &n_bytes);
    json_decref(report);
    return *text ? DPI_STATUS_OK : no_memory(err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

int32_t dpi_augpe_report_is(const char *text, size_t n_bytes) {
    json_t *root = n_bytes <= REPORT_BYTES_MAX ? json_loadb(text, n_bytes, 0, NULL) : NULL;
    const char *format = json_string_value(json_object_get(root, "format"));
    const bool is = format && strcmp(format, FORMAT) == 0;
    json_decref(root);
    return is;
}

/* Of those for which something is proven. */
static const char *adjacency_name(int32_t adjacency) {
    return adjacency <= DPI_ADJACENCY_ADD_REMOVE ? dpi_adjacency_name(adjacency) : NULL;
}

/* The value whose name it is; -1: none. */
static int32_t find_name(const char *(*name_of)(int32_t), const char *name) {
    for (int32_t i = 0; name_of(i); i++)
        if (strcmp(name_of(i), name) == 0)
            return i;
    return -1;
}

static bool read_parameters(json_t *root, dpi_augpe_claim *c) {
    const char *model, *selection, *variation, *adjacency, *grammar = "";
    json_int_t n_units;
    dpi_claim named;
    if (json_unpack(json_object_get(root, "parameters"),
                    "{s:s, s:F, s:F, s:F, s:i, s:i, s:i, s:i, s:s, s:F, s:s, s:F, s:i, s:i, s:F, "
                    "s:s, s:i, s:I, s:i, s:i, s:i, s?:s}",
                    "model", &model, "rho", &c->rho, "epsilon", &c->epsilon, "delta", &c->delta,
                    "n_texts", &c->n_texts, "n_rounds", &c->n_rounds, "n_candidates",
                    &c->n_candidates, "n_lookahead", &c->n_lookahead, "selection", &selection,
                    "threshold", &c->threshold, "variation", &variation, "change", &c->change,
                    "n_tokens", &c->n_tokens, "top_k", &c->top_k, "tau", &c->tau, "adjacency",
                    &adjacency, "max_per_unit", &c->max_per_unit, "n_units", &n_units,
                    "record_kind", &c->record_kind, "randomness", &c->randomness, "remote",
                    &c->remote, "grammar", &grammar) != 0 ||
        (grammar[0] && !dpi_claim_is_digest(grammar)))
        return false;
    snprintf(c->grammar, sizeof c->grammar, "%s", grammar);
    c->n_units = n_units;
    c->selection = find_name(dpi_augpe_selection_name, selection);
    c->variation = find_name(dpi_augpe_variation_name, variation);
    c->adjacency = find_name(adjacency_name, adjacency);
    dpi_claim_init(&named);
    dpi_claim_name_model(&named, model);
    memcpy(c->model_name, named.model_name, sizeof c->model_name);
    return c->n_units >= 0 && (c->remote == 0 || c->remote == 1) &&
           (c->randomness == DPI_RANDOMNESS_SYSTEM || c->randomness == DPI_RANDOMNESS_SEED);
}

/* All is computed anew, from what a round costs and the dataset's epsilon and delta. */
static dpi_status read_ledger(json_t *root, dpi_augpe_claim *c, dpi_error *err) {
    const json_t *ledger = json_object_get(root, "ledger");
    dpi_claim_ledger *l = &c->ledger;
    const char *dataset, *scope;
    double before;
    dpi_cost cost;
    if (json_is_null(ledger))
        return DPI_STATUS_OK;
    if (json_unpack((json_t *)(uintptr_t)ledger, "{s:s, s:F, s:F, s:s, s:i, s:F}", "dataset",
                    &dataset, "epsilon", &l->epsilon, "delta", &l->delta, "scope", &scope,
                    "order", &l->order, "before", &before) != 0 ||
        strlen(dataset) == 0 || strlen(dataset) > DPI_DATASET_NAME_MAX ||
        (l->scope = find_name(dpi_scope_name, scope)) < 0 || !(before >= 0 && before <= 2e6))
        return dpi_fail(err, DPI_STATUS_FORMAT, "the section 'ledger' is missing or malformed");
    snprintf(l->dataset, sizeof l->dataset, "%s", dataset);
    l->before = llrint(before * DPI_LEDGER_ONE);
    dpi_cost_init(&cost);
    DPI_TRY(dpi_cost_add(&cost, DPI_COST_ZCDP, c->n_rounds, c->rho_round, 0, err));
    if (!dpi_augpe_is_private(c))
        return dpi_fail(err, DPI_STATUS_FORMAT, "the section 'ledger': found one of a run with a "
                                                "seed, which no ledger takes");
    return dpi_claim_ledger_settle(l, &cost, err);
}

static dpi_status read_report(json_t *root, dpi_augpe_claim *c, dpi_error *err) {
    const json_t *version = json_object_get(root, "version");
    dpi_augpe_claim_init(c);
    if (json_integer_value(version) != VERSION)
        return dpi_fail(err, DPI_STATUS_FORMAT, "a report of augpe of another version: this "
                                                "program knows %d", VERSION);
    if (!read_parameters(root, c))
        return dpi_fail(err, DPI_STATUS_FORMAT, "the section 'parameters' lacks a key, or has one "
                                                "of another type");
    DPI_TRY(dpi_augpe_settle(c, err));
    return read_ledger(root, c, err);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* What the claim says, and what only the operator can vouch for. */
static bool is_given(const dpi_verification *v, const char *path) {
    static const char *const computed[] = {"realised.", "statement", "ledger.charge",
                                           "ledger.budget", "ledger.order"};
    if (strncmp(path, "model_files", 11) == 0)
        return !v->model_hashed;
    if (strncmp(path, "output", 6) == 0)
        return !v->output_hashed;
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++)
        if (strncmp(path, computed[i], strlen(computed[i])) == 0)
            return false;
    return true;
}

/* What only the operator can vouch for is copied where no file says it; what has no such form is
 * null. */
static dpi_status hash_files(json_t *root, const char *model_path, const char *output_path,
                             json_t **files, json_t **output, dpi_error *err) {
    json_t *said = json_object_get(root, "model_files"), *wrote = json_object_get(root, "output");
    bool whole = json_array_size(said) >= 1 && json_array_size(said) <= UINT16_MAX &&
                 (json_is_null(wrote) || dpi_hash_is_file(wrote));
    const json_t *file;
    size_t i;
    json_array_foreach(said, i, file)
        whole = whole && dpi_hash_is_file(file);
    if (!whole)
        return dpi_fail(err, DPI_STATUS_FORMAT, "the section 'model_files' or 'output' is missing "
                                                "or malformed");
    if (model_path)
        DPI_TRY(dpi_hash_model(model_path, (int64_t)json_array_size(said), files, err));
    else
        *files = json_incref(said);
    const dpi_status status = output_path ? dpi_hash_one(output_path, output, err) : DPI_STATUS_OK;
    if (!output_path)
        *output = json_incref(wrote);
    if (status != DPI_STATUS_OK)
        json_decref(*files);
    return status;
}

static dpi_status find_charge(dpi_ledger *ledger, const dpi_claim_ledger *l, dpi_error *err) {
    dpi_charge c;
    if (!l->dataset[0])
        return dpi_fail(err, DPI_STATUS_ARG, "the report was charged to no ledger");
    dpi_charge_init(&c);
    do {
        DPI_TRY(dpi_ledger_charge_next(ledger, l->dataset, c.id, &c, err));
        if (c.id > 0 && c.counted && c.before == l->before && c.amount == l->charge &&
            strcmp(c.method, "augpe") == 0)
            return DPI_STATUS_OK;
    } while (c.id > 0);
    return dpi_fail(err, DPI_STATUS_STATE, "the ledger does not have the charge of this report: it "
                                           "is another one, or a copy from before the run");
}

static dpi_status verify(json_t *root, const char *model_path, const char *output_path,
                         dpi_ledger *ledger, dpi_verification *v, dpi_error *err) {
    dpi_augpe_claim claim;
    json_t *files = NULL, *output = NULL;
    DPI_TRY(read_report(root, &claim, err));
    if (!json_is_boolean(json_object_get(root, "complete")) ||
        !json_is_string(json_object_get(root, "program")))
        return dpi_fail(err, DPI_STATUS_FORMAT, "the section 'complete' or 'program' is missing or "
                                                "malformed");
    DPI_TRY(hash_files(root, model_path, output_path, &files, &output, err));
    json_t *computed = report_of(&claim, json_string_value(json_object_get(root, "program")), files,
                                 output, json_is_true(json_object_get(root, "complete")), err);
    if (!computed)
        return DPI_STATUS_MEMORY;
    *v = (dpi_verification){.struct_size = sizeof *v, .is_private = dpi_augpe_is_private(&claim),
                            .model_hashed = model_path != NULL,
                            .output_hashed = output_path != NULL};
    snprintf(v->label, sizeof v->label, "%s",
             v->is_private ? "PRIVATE" : "NOT PRIVATE: --seed was given");
    dpi_status status =
        dpi_compare(root, computed, &(dpi_compare_rules){is_given, NULL}, v, err);
    json_decref(computed);
    if (status == DPI_STATUS_OK && ledger)
        status = find_charge(ledger, &claim.ledger, err);
    if (status != DPI_STATUS_OK)
        dpi_verification_free(v);
    return status;
}

dpi_status dpi_augpe_report_verify(const char *text, size_t n_bytes, const char *model_path,
                                   const char *output_path, dpi_ledger *ledger,
                                   dpi_verification *result, dpi_error *err) {
    if (n_bytes > REPORT_BYTES_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "a report of %zu bytes, allowed %d", n_bytes,
                        REPORT_BYTES_MAX);
    json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, NULL);
    if (!root || !dpi_augpe_report_is(text, n_bytes)) {
        json_decref(root);
        return dpi_fail(err, DPI_STATUS_FORMAT, "it is no report of augpe");
    }
    const dpi_status status = verify(root, model_path, output_path, ledger, result, err);
    json_decref(root);
    return status;
}
