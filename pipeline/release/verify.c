/* verify.c - a report from its JSON, and what follows from its parameters a second time. The report
 * comes from anywhere. See dpinfer/report.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/mechanism/mechanism.h"
#include "pipeline/run.h"
#include "pipeline/claim/claim_file.h"
#include "pipeline/claim/compare.h"
#include "pipeline/release/hash.h"
#include "pipeline/ledger/amount.h"
#include "pipeline/release/payers.h"
#include "pipeline/release/report.h"

enum { REPORT_BYTES_MAX = 1 << 20 };

/* ---- Parsing --------------------------------------------------------------------------------- */

static dpi_status parse(const char *name, const char *text, size_t n_bytes, json_t **root,
                        dpi_error *err) {
    json_error_t error;
    if (n_bytes > REPORT_BYTES_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "%s has %zu bytes, allowed %d", name, n_bytes,
                        REPORT_BYTES_MAX);
    *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (*root)
        return DPI_STATUS_OK;
    const enum json_error_code why = json_error_code(&error);
    if (why == json_error_out_of_memory)
        return dpi_no_memory(err, "the report");
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s is not a JSON report: line %d, column %d: %s%s",
                    name, error.line, error.column,
                    why == json_error_premature_end_of_input ? "it ends too early"
                                                             : "it is malformed",
                    n_bytes == 0      ? ""
                    : text[0] == '#' ? " (Markdown cannot be verified)"
                    : text[0] == '<' ? " (HTML cannot be verified)"
                                     : "");
}

/* The version comes first: nothing else is looked at in a form that is not known. */
static dpi_status check_schema(const char *name, const json_t *report, dpi_error *err) {
    const json_t *schema = json_object_get(report, "dpinfer_report");
    if (!json_is_integer(schema))
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is not a dpinfer report: it has no 'dpinfer_report'", name);
    if (json_integer_value(schema) != DPI_REPORT_SCHEMA)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s has dpinfer_report %" JSON_INTEGER_FORMAT
                        ", this program knows %d: use the version of dpinfer that wrote it",
                        name, json_integer_value(schema), DPI_REPORT_SCHEMA);
    return DPI_STATUS_OK;
}

/* What may stand under a key of `software`. */
static bool is_of_software(const char *key, const json_t *value) {
    enum { TEXT_MAX = 255 };
    const char *text = json_string_value(value);
    char shown[TEXT_MAX + 1];
    if (!text || strcmp(key, "sha256") == 0)
        return strcmp(key, "sha256") == 0 &&
               (json_is_null(value) || dpi_is_hex(text, DPI_DIGEST_HEX));
    if (strcmp(key, "program") == 0)
        return strcmp(text, "dpinfer") == 0;
    if (strcmp(key, "version") == 0)
        return text[0] && text[strspn(text, "0123456789.")] == '\0';
    dpi_claim_name_text(shown, sizeof shown, text);
    return strcmp(shown, text) == 0;
}

/* What is taken from `software` and `model` as it is has at least the form that it was written in.
 * New references, or NULL. */
static json_t *copy_software(const json_t *report) {
    static const char *const keys[] = {"program",  "version", "commit",
                                       "compiler", "build",   "sha256"};
    const json_t *found = json_object_get(report, "software");
    json_t *copy = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys && copy; i++) {
        json_t *value = json_object_get(found, keys[i]);
        if (!is_of_software(keys[i], value) || json_object_set(copy, keys[i], value) != 0) {
            json_decref(copy);
            copy = NULL;
        }
    }
    return copy;
}

static json_t *copy_model(const json_t *report, const dpi_claim *claim) {
    const json_t *found = json_object_get(report, "model");
    json_t *name = json_object_get(found, "name"), *files = json_object_get(found, "files"), *file;
    json_t *is_random = json_object_get(found, "random_weights");
    json_t *adapter = json_object_get(found, "adapter"); /* NULL: there was none */
    json_t *control = json_object_get(found, "control_vector"); /* the same */
    const dpi_claim_part *steering = dpi_claim_find(claim, "steering");
    const bool is_steered = steering && steering != &claim->parts[0]; /* texts about records */
    bool ok = json_is_string(name) && json_is_boolean(is_random) && json_array_size(files) > 0 &&
              json_array_size(files) <= UINT16_MAX && (!adapter || dpi_hash_is_file(adapter)) &&
              (control ? dpi_hash_is_file(control) : !is_steered) &&
              (dpi_claim_uses(claim) & DPI_USES_MODEL);
    size_t i;
    if (json_is_null(found))
        return json_null();
    json_array_foreach(files, i, file)
        ok = ok && dpi_hash_is_file(file);
    return ok ? json_pack("{s:O, s:O, s:O, s:O*, s:O*}", "name", name, "random_weights", is_random,
                          "files", files, "adapter", adapter, "control_vector", control)
              : NULL;
}

static dpi_status read_sections(dpi_report *r, dpi_error *err) {
    const json_t *complete = json_object_get(r->recorded, "complete");
    DPI_TRY(dpi_claim_of_json(json_object_get(r->recorded, "claim"), &r->claim, err));
    r->software = copy_software(r->recorded);
    r->model = copy_model(r->recorded, &r->claim);
    if (!dpi_report_added_read(&r->added, r->recorded))
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "one of the sections 'meta', 'output' and 'charges' is missing or "
                        "malformed");
    if (!r->software || !r->model || !json_is_boolean(complete))
        return dpi_fail(err, DPI_STATUS_FORMAT, "the section '%s' is missing or malformed",
                        !r->software ? "software" : !r->model ? "model" : "complete");
    DPI_TRY(dpi_report_added_wording(&r->added, r->recorded, err));
    DPI_TRY(dpi_report_added_prompts(&r->added, r->recorded, err));
    r->complete = json_is_true(complete);
    dpi_run_of_claim(&r->claim, &r->run);
    r->run.random_weights = json_is_true(json_object_get(r->model, "random_weights"));
    return DPI_STATUS_OK;
}

dpi_status dpi_report_parse(const char *name, const char *text, size_t n_bytes, dpi_report **report,
                            dpi_error *err) {
    dpi_report *r = calloc(1, sizeof *r);
    if (!r)
        return dpi_no_memory(err, "the report");
    dpi_status status = dpi_report_added_init(&r->added)
                            ? parse(name, text, n_bytes, &r->recorded, err)
                            : dpi_no_memory(err, "the report");
    if (status == DPI_STATUS_OK)
        status = check_schema(name, r->recorded, err);
    if (status == DPI_STATUS_OK)
        status = read_sections(r, err);
    if (status == DPI_STATUS_OK)
        *report = r;
    else
        dpi_report_free(r);
    return status;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* Sections that are not computed but believed. */
static bool is_given(const dpi_verification *v, const char *path) {
    if (strncmp(path, "model.files", 11) == 0)
        return !v->model_hashed;
    if (strcmp(path, "output.sha256") == 0 || strcmp(path, "output.n_bytes") == 0)
        return !v->output_hashed;
    if (strcmp(path, "output.texts") == 0 || strcmp(path, "output.tokens_most") == 0)
        return false;
    if (strncmp(path, "output", 6) == 0 || strncmp(path, "meta.", 5) == 0 ||
        strncmp(path, "charges[", 8) == 0 || strncmp(path, "wording", 7) == 0 ||
        strncmp(path, "prompts", 7) == 0)
        return true;
    return strcmp(path, "complete") == 0 || strncmp(path, "claim.", 6) == 0 ||
           strncmp(path, "software.", 9) == 0 || strncmp(path, "model.", 6) == 0;
}

/* ---- Computing a second time ----------------------------------------------------------------- */

/* When the charge of the report was made, from the list that it has; NULL: it has none. */
static const char *date_of_charge(const dpi_report *r, const dpi_claim_ledger *l) {
    const json_t *c;
    size_t i;
    json_array_foreach(r->added.charges, i, c) {
        const double after = json_number_value(json_object_get(c, "after")) * DPI_LEDGER_ONE;
        if (dpi_ledger_amount_is(after, (double)l->before + (double)l->charge))
            return json_string_value(json_object_get(c, "date"));
    }
    return NULL;
}

/* Whether a charge is for what the report claims. One from outside, or of an earlier form of
 * ledgers, has no claim. */
static dpi_status is_for(const dpi_report *r, dpi_ledger *ledger, int64_t id, bool *is,
                         dpi_error *err) {
    char *charged, *own = NULL;
    DPI_TRY(dpi_ledger_charge_claim(ledger, id, &charged, err));
    const dpi_status status = dpi_claim_charged(&r->claim, &own, err);
    *is = status == DPI_STATUS_OK && (!charged || strcmp(charged, own) == 0);
    free(charged);
    free(own);
    return status;
}

/* What all runs about the dataset may cost, which is fixed when it is opened. */
static dpi_status check_budget(const dpi_claim_ledger *l, dpi_ledger *ledger, dpi_error *err) {
    dpi_dataset_info info;
    dpi_dataset_info_init(&info);
    DPI_TRY(dpi_ledger_info(ledger, l->dataset, &info, err));
    if (info.epsilon == l->epsilon && info.delta == l->delta && info.scope == l->scope)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_STATE,
                    "the dataset of the ledger has epsilon %g, delta %g and scope %s, and the "
                    "report has %g, %g and %s", info.epsilon, info.delta,
                    dpi_scope_name(info.scope), l->epsilon, l->delta, dpi_scope_name(l->scope));
}

/* A charge of this amount that was made then, when the dataset had that sum. */
dpi_status dpi_report_find_charge(const dpi_report *r, dpi_ledger *ledger, dpi_error *err) {
    const dpi_claim_ledger *l = &r->claim.ledger;
    dpi_mechanism_info info;
    dpi_charge c;
    dpi_mechanism_info_get(r->claim.parts[0].mechanism, &info);
    if (!l->dataset[0])
        return dpi_fail(err, DPI_STATUS_ARG, "the report was charged to no ledger");
    DPI_TRY(check_budget(l, ledger, err));
    const char *date = date_of_charge(r, l);
    dpi_charge_init(&c);
    do {
        DPI_TRY(dpi_ledger_charge_next(ledger, l->dataset, c.id, &c, err));
        if (c.id > 0 && c.counted && c.before == l->before && strcmp(c.method, info.name) == 0 &&
            dpi_ledger_amount_is((double)c.amount, (double)l->charge) &&
            (!date || strcmp(date, c.date) == 0)) {
            bool is;
            DPI_TRY(is_for(r, ledger, c.id, &is, err));
            return is ? DPI_STATUS_OK
                      : dpi_fail(err, DPI_STATUS_STATE,
                                 "the ledger has charge %lld for other work than this report "
                                 "claims", (long long)c.id);
        }
    } while (c.id > 0);
    return dpi_fail(err, DPI_STATUS_STATE,
                    "the ledger does not have the charge of this report, %.10g after %.10g: it is "
                    "another one, or a copy from before the run",
                    (double)l->charge / DPI_LEDGER_ONE, (double)l->before / DPI_LEDGER_ONE);
}

static dpi_status count_lines(const char *path, int64_t *n, dpi_error *err) {
    char bytes[1 << 14];
    FILE *file = fopen(path, "re");
    *n = 0;
    for (size_t size; file && (size = fread(bytes, 1, sizeof bytes, file)) > 0;)
        for (size_t i = 0; i < size; i++)
            *n += bytes[i] == '\n';
    const bool failed = !file || ferror(file);
    if (file)
        fclose(file);
    return failed ? dpi_fail(err, DPI_STATUS_IO, "cannot read %s", path) : DPI_STATUS_OK;
}

/* How many texts the file has: lines, or what stands between texts that have so many bytes. */
static dpi_status count_texts(json_t *output, const char *path, int64_t n_bytes, dpi_error *err) {
    const char *form = json_string_value(json_object_get(output, "form"));
    const json_int_t of_texts = json_integer_value(json_object_get(output, "text_bytes"));
    int64_t n = dpi_report_texts_between(n_bytes, of_texts);
    if (!form)
        return DPI_STATUS_OK;
    if (strcmp(form, "jsonl") == 0)
        DPI_TRY(count_lines(path, &n, err));
    return json_object_set_new(output, "texts", json_integer(n)) == 0
               ? DPI_STATUS_OK
               : dpi_no_memory(err, "the report");
}

/* The section `output` with the hash and the size of the file; `path` NULL: as it is recorded. */
static dpi_status hash_output(const dpi_report *r, const dpi_claim *claim, const char *path,
                              json_t **output, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1];
    int64_t n_bytes;
    *output = dpi_report_output_json(&r->added, claim);
    if (!*output || !path)
        return *output ? DPI_STATUS_OK
                       : dpi_no_memory(err, "the report");
    dpi_status status = DPI_STATUS_OK;
    if (!json_is_object(*output))
        status = dpi_fail(err, DPI_STATUS_ARG, "the report names no output");
    else if (!dpi_hash_file(path, hex, &n_bytes))
        status = dpi_fail(err, DPI_STATUS_IO, "cannot read %s: %s", path, dpi_reason(errno));
    else if (json_object_set_new(*output, "sha256", json_string(hex)) != 0 ||
             json_object_set_new(*output, "n_bytes", json_integer(n_bytes)) != 0)
        status = dpi_no_memory(err, "the report");
    else
        status = count_texts(*output, path, n_bytes, err);
    if (status != DPI_STATUS_OK)
        json_decref(*output);
    return status;
}

void dpi_report_reopen(dpi_report *r) {
    json_decref(r->recorded);
    r->recorded = NULL;
    json_decref(r->added.recorded);
    r->added.recorded = NULL;
}

static dpi_status recompute(const dpi_report *r, const dpi_claim *claim, const char *model_path,
                            const char *output_path, json_t **expected, dpi_error *err) {
    json_t *model = json_copy(r->model), *files;
    if (json_is_object(model) &&
        json_object_set_new(model, "name", json_string(claim->model_name)) != 0) {
        json_decref(model);
        return dpi_no_memory(err, "the report");
    }
    if (model && model_path) {
        dpi_status status = dpi_hash_model(
            model_path, (int64_t)json_array_size(json_object_get(model, "files")), &files, err);
        if (status != DPI_STATUS_OK) {
            json_decref(model);
            return status;
        }
        if (json_object_set_new(model, "files", files) != 0) {
            json_decref(model);
            return dpi_no_memory(err, "the report");
        }
    }
    json_t *output;
    dpi_status status = hash_output(r, claim, output_path, &output, err);
    if (status != DPI_STATUS_OK) {
        json_decref(model);
        return status;
    }
    *expected = dpi_report_json(claim, r->complete, json_incref(r->software), model, output,
                                &r->added);
    return *expected ? DPI_STATUS_OK
                     : dpi_no_memory(err, "the report");
}

/* Whether a report about texts of what was trained has the claim of that file, and goes on from
 * there; and what holds of that. */
static dpi_status compare_trained(const dpi_report *r, const char *path, dpi_verification *v,
                                  dpi_error *err) {
    dpi_claim trained, begun = r->claim;
    dpi_gguf *file;
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    const dpi_status status = dpi_claim_file_compare(file, "trained", &trained, v, err);
    dpi_gguf_close(file);
    if (status != DPI_STATUS_OK)
        return status;
    begun.n_parts = trained.n_parts < begun.n_parts ? trained.n_parts : begun.n_parts;
    memset(begun.grammar, 0, sizeof begun.grammar); /* of the texts */
    memset(begun.wording, 0, sizeof begun.wording);
    memset(begun.prompts, 0, sizeof begun.prompts);
    json_t *a = dpi_claim_json(&begun), *b = dpi_claim_json(&trained);
    const bool same = a && b && json_equal(a, b);
    json_decref(a), json_decref(b);
    return dpi_compare_add(v, "claim", same ? DPI_VERDICT_OK : DPI_VERDICT_WRONG,
                           same ? "that of the file" : "another one", "that of the file", err);
}

/* Texts of an adapter or of vectors, whose claim theirs goes on from: not a run about records. */
static bool is_drawn_from_file(const dpi_claim *c) {
    dpi_sampler_options o;
    return !dpi_claim_sampler(c, &o) &&
           (dpi_claim_find(c, "gradients") || dpi_claim_find(c, "steering"));
}

/* What a run takes of vectors (steered.c): those of the same units, and what others know of their
 * noise they know of the run's. Vectors of labels took which unit has which as public. */
static bool may_steer(const dpi_claim *vectors, const dpi_claim *run) {
    const bool knows_none = vectors->randomness == DPI_RANDOMNESS_SYSTEM;
    return (!vectors->labels || vectors->labels == run->labels) &&
           vectors->adjacency == run->adjacency && vectors->n_units == run->n_units &&
           vectors->max_per_unit == run->max_per_unit &&
           (knows_none || vectors->randomness == run->randomness);
}

/* The hash of the file that the model was steered with. */
static dpi_status compare_control(const dpi_report *r, const char *path, dpi_verification *v,
                                  dpi_error *err) {
    const json_t *control = json_object_get(r->model, "control_vector");
    const char *recorded = json_string_value(json_object_get(control, "sha256"));
    char hex[DPI_DIGEST_HEX + 1];
    int64_t n_bytes;
    if (!dpi_hash_file(path, hex, &n_bytes))
        return dpi_fail(err, DPI_STATUS_IO, "cannot read %s: %s", path, dpi_reason(errno));
    const bool fits = recorded && strcmp(recorded, hex) == 0;
    return dpi_compare_add(v, "model.control_vector.sha256",
                           fits ? DPI_VERDICT_OK : DPI_VERDICT_WRONG, recorded ? recorded : "null",
                           hex, err);
}

dpi_status dpi_report_compare_vectors(const dpi_report *r, const char *path, dpi_verification *v,
                                      dpi_error *err) {
    const dpi_claim_part *recorded = dpi_claim_find(&r->claim, "steering"), *found;
    dpi_claim claim;
    dpi_gguf *file;
    if (!recorded)
        return dpi_fail(err, DPI_STATUS_ARG, "the report has no steering vectors");
    DPI_TRY(dpi_gguf_open(path, true, &file, err));
    const dpi_status status = dpi_claim_file_compare(file, "vectors", &claim, v, err);
    dpi_gguf_close(file);
    if (status != DPI_STATUS_OK)
        return status;
    found = dpi_claim_find(&claim, "steering");
    const bool same = found && strcmp(found->text, recorded->text) == 0 &&
                      memcmp(found->values, recorded->values, sizeof found->values) == 0 &&
                      may_steer(&claim, &r->claim);
    DPI_TRY(compare_control(r, path, v, err));
    return dpi_compare_add(v, "claim.steering", same ? DPI_VERDICT_OK : DPI_VERDICT_WRONG,
                           same ? "that of the file" : "another one", "that of the file", err);
}

static bool is_none(const dpi_verification *v, const char *path) {
    (void)v, (void)path;
    return false;
}

dpi_status dpi_report_compare_claim(const dpi_report *r, const dpi_claim *found,
                                    dpi_verification *v, dpi_error *err) {
    json_t *recorded = json_pack("{s:o}", "claim", dpi_claim_json(&r->claim));
    json_t *computed = json_pack("{s:o}", "claim", dpi_claim_json(found));
    const dpi_status status =
        recorded && computed
            ? dpi_compare(recorded, computed, &(dpi_compare_rules){is_none}, v, err)
            : dpi_no_memory(err, "the fields of the claim");
    json_decref(recorded), json_decref(computed);
    return status;
}

/* A section that the claim has the digest of. */
static dpi_status compare_section(const json_t *section, const char *path, const char *claimed,
                                  const char *same, dpi_verification *v, dpi_error *err) {
    char hex[DPI_DIGEST_HEX + 1];
    DPI_TRY(dpi_json_digest(section, hex, err));
    const bool fits = strcmp(hex, claimed) == 0;
    return dpi_compare_add(v, path, fits ? DPI_VERDICT_OK : DPI_VERDICT_WRONG,
                           claimed[0] ? claimed : "(none)",
                           fits     ? same
                           : hex[0] ? hex
                                    : "(none)", err);
}

dpi_status dpi_report_verify(const dpi_report *r, const char *model_path, const char *output_path,
                             dpi_verification *result, dpi_error *err) {
    const dpi_claim *claim = &r->claim;
    json_t *expected;
    DPI_CHECK_FIXED(dpi_verification, result, err);
    if (!r->recorded)
        return dpi_fail(err, DPI_STATUS_ARG, "only a report that was parsed is verified");
    DPI_TRY(recompute(r, claim, model_path, output_path, &expected, err));
    *result = (dpi_verification){.struct_size = sizeof *result,
                                 .model_hashed = model_path != NULL,
                                 .output_hashed = output_path != NULL,
                                 .is_private = dpi_claim_is_private(claim)};
    dpi_claim_label(claim, result->label, sizeof result->label);
    dpi_status status =
        dpi_compare(r->recorded, expected, &(dpi_compare_rules){is_given}, result, err);
    json_decref(expected);
    if (status == DPI_STATUS_OK)
        status = compare_section(r->added.wording, "claim.wording", claim->wording,
                                 "that of the section wording", result, err);
    if (status == DPI_STATUS_OK && !json_is_null(r->added.prompts)) /* they may not be told */
        status = compare_section(r->added.prompts, "claim.prompts", claim->prompts,
                                 "that of the section prompts", result, err);
    if (status == DPI_STATUS_OK && model_path && is_drawn_from_file(claim))
        status = compare_trained(r, model_path, result, err);
    if (status == DPI_STATUS_OK && !dpi_report_wording_fits(&r->added, claim))
        status = dpi_compare_add(result, "wording", DPI_VERDICT_WRONG, "words of texts or prompts",
                                 "none that the claim allows", err);
    if (status == DPI_STATUS_OK && !dpi_report_charges_fit(&r->added, claim))
        status = dpi_compare_add(result, "charges", DPI_VERDICT_WRONG, "charges of a dataset",
                                 "none that the claim allows", err);
    if (status == DPI_STATUS_OK && !dpi_report_output_fits(&r->added, claim, r->complete))
        status = dpi_compare_add(result, "output", DPI_VERDICT_WRONG,
                                 "numbers of texts, tokens or labels",
                                 "none that these parameters allow", err);
    return status;
}
