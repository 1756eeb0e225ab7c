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
#include "pipeline/release/hash.h"

static const char FORMAT[] = "dpinfer augpe";
enum { VERSION = 1, REPORT_BYTES_MAX = 1 << 20 };

static dpi_status no_memory(dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for a report");
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

static json_t *ledger_of(const dpi_claim_ledger *l) {
    if (!l->dataset[0])
        return json_null();
    return json_pack("{s:s, s:f, s:f, s:i, s:i, s:I, s:I, s:I}", "dataset", l->dataset, "epsilon",
                     l->epsilon, "delta", l->delta, "scope", l->scope, "order", l->order, "budget",
                     (json_int_t)l->budget, "charge", (json_int_t)l->charge, "before",
                     (json_int_t)l->before);
}

/* The sections that follow from a claim; `files` and `output`, which are stolen, are believed. */
static json_t *report_of(const dpi_augpe_claim *c, json_t *files, json_t *output, bool complete,
                         dpi_error *err) {
    char *statement = NULL;
    json_t *report = NULL;
    if (dpi_augpe_statement(c, &statement, err) == DPI_STATUS_OK)
        report = json_pack("{s:s, s:i, s:s, s:b, s:o, s:{s:I, s:f, s:f, s:f, s:b}, s:o, s:O, s:O, "
                           "s:s}",
                           "format", FORMAT, "version", VERSION, "program", dpi_version(),
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
    json_t *report = report_of(c, files, output, complete != 0, err);
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
    const char *dataset;
    json_int_t budget, before;
    dpi_cost cost;
    if (json_is_null(ledger))
        return DPI_STATUS_OK;
    if (json_unpack((json_t *)(uintptr_t)ledger, "{s:s, s:F, s:F, s:i, s:i, s:I, s:I}", "dataset",
                    &dataset, "epsilon", &l->epsilon, "delta", &l->delta, "scope", &l->scope,
                    "order", &l->order, "budget", &budget, "before", &before) != 0 ||
        strlen(dataset) == 0 || strlen(dataset) > DPI_DATASET_NAME_MAX ||
        !dpi_scope_name(l->scope) || budget < 0 || before < 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "the section 'ledger' is missing or malformed");
    snprintf(l->dataset, sizeof l->dataset, "%s", dataset);
    l->budget = budget, l->before = before;
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

enum { FIELDS_MAX = 64 };

static void show(const json_t *value, char *text, size_t size) {
    size_t n;
    char *dump = value ? dpi_json_text(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT |
                                                  JSON_REAL_PRECISION(15), &n)
                       : NULL;
    snprintf(text, size, "%s", dump ? dump : "(none)");
    for (char *at = text; *at; at++) /* jansson escapes all other control characters */
        *at = *at == 0x7f ? '?' : *at;
    free(dump);
}

/* Reals, and the budget that is the ledger's, may differ by what another mathematical library makes
 * of them. */
static bool is_same(const char *key, const json_t *a, const json_t *b) {
    if (key && strcmp(key, "budget") == 0 && json_is_integer(a) && json_is_integer(b))
        return dpi_ledger_amount_is(json_number_value(a), json_number_value(b));
    if (json_is_real(b) && json_is_number(a)) {
        const double x = json_number_value(a), y = json_real_value(b);
        return fabs(x - y) <= 2e-9 * fabs(y);
    }
    return a && b && json_equal(a, b);
}

static void add_field(dpi_verification *v, const char *section, const char *key,
                      const json_t *recorded, const json_t *computed, bool given) {
    dpi_verified_field *f = &v->fields[v->n_fields];
    if (v->n_fields == FIELDS_MAX)
        return;
    v->n_fields++;
    snprintf(f->path, sizeof f->path, "%s%s%s", section, key ? "." : "", key ? key : "");
    show(recorded, f->recorded, sizeof f->recorded);
    const bool same = is_same(key, recorded, computed);
    if (same && json_is_string(computed))
        snprintf(f->computed, sizeof f->computed, "the same");
    else
        show(computed, f->computed, sizeof f->computed);
    f->verdict = !same ? DPI_VERDICT_WRONG : given ? DPI_VERDICT_GIVEN : DPI_VERDICT_OK;
    v->n_ok += f->verdict == DPI_VERDICT_OK;
    v->n_wrong += f->verdict == DPI_VERDICT_WRONG;
}

/* Of a ledger: what is computed from the rest. */
static bool follows(const char *key) {
    return strcmp(key, "charge") == 0 || strcmp(key, "budget") == 0 || strcmp(key, "order") == 0;
}

/* Each key of an object, else the whole. What is there and should not be is wrong. */
static void add_section(dpi_verification *v, const char *name, json_t *recorded, json_t *computed,
                        bool given) {
    const char *key;
    json_t *value;
    if (!json_is_object(computed)) {
        add_field(v, name, NULL, recorded, computed, given);
        return;
    }
    json_object_foreach(computed, key, value)
        add_field(v, name, key, json_object_get(recorded, key), value,
                  given && !follows(key));
    json_object_foreach(recorded, key, value)
        if (!json_object_get(computed, key))
            add_field(v, name, "(another key)", value, NULL, false);
}

static void compare(dpi_verification *v, json_t *recorded, const json_t *computed) {
    static const char *const sections[] = {"complete",    "parameters", "realised", "ledger",
                                           "model_files", "output",     "statement"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const char *name = sections[i];
        const bool given = strcmp(name, "model_files") == 0 ? !v->model_hashed
                           : strcmp(name, "output") == 0
                               ? !v->output_hashed
                               : strcmp(name, "realised") != 0 && strcmp(name, "statement") != 0;
        add_section(v, name, json_object_get(recorded, name), json_object_get(computed, name),
                    given);
    }
    const char *key;
    json_t *value;
    json_object_foreach(recorded, key, value)
        if (!json_object_get(computed, key))
            add_field(v, "(another section)", NULL, value, NULL, false);
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
    json_t *computed =
        report_of(&claim, files, output, json_is_true(json_object_get(root, "complete")), err);
    if (!computed)
        return DPI_STATUS_MEMORY;
    *v = (dpi_verification){.struct_size = sizeof *v, .is_private = dpi_augpe_is_private(&claim),
                            .model_hashed = model_path != NULL,
                            .output_hashed = output_path != NULL,
                            .fields = calloc(FIELDS_MAX, sizeof *v->fields)};
    snprintf(v->label, sizeof v->label, "%s",
             v->is_private ? "PRIVATE" : "NOT PRIVATE: --seed was given");
    if (v->fields)
        compare(v, root, computed);
    json_decref(computed);
    if (!v->fields)
        return no_memory(err);
    const dpi_status status = ledger ? find_charge(ledger, &claim.ledger, err) : DPI_STATUS_OK;
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
