/* report.c - the report of texts that were written with an adapter: the adapter's claim, and what
 * follows from it by post-processing; and its verification, which trusts nothing of it. */
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "dpinfer/model.h"
#include "pipeline/finetune/finetune.h"
#include "pipeline/journal/json_text.h"
#include "pipeline/release/compare.h"
#include "pipeline/release/hash.h"

static const char FORMAT[] = "dpinfer texts of an adapter";
enum { VERSION = 2 };

/* The numbers of a claim that its epsilon follows from, and what else is public. */
typedef struct number {
    const char *key;
    size_t offset; /* in the claim */
    size_t n_bytes; /* of an integer; 0: a double */
    double min, max;
} number;

#define CLAIM(member) offsetof(dpi_finetune_claim, member)
static const number numbers[] = {
    {"delta", CLAIM(delta), 0, 1e-100, 1 - 0x1p-53},
    {"sigma", CLAIM(sigma), 0, 0, DPI_FINETUNE_SIGMA_MAX},
    {"sampling", CLAIM(sampling), 0, 0x1p-32, 1},
    {"expected", CLAIM(n_expected), 0, 0, 1e12},
    {"clip", CLAIM(clip), 0, 0, 1e6},
    {"units", CLAIM(n_units), 8, 1, 0x1p40},
    {"steps", CLAIM(n_steps), 4, 1, 1 << 24},
    {"max_per_unit", CLAIM(max_per_unit), 4, 0, 64},
    {"histogram_scale", CLAIM(histogram_scale), 4, 0, 1 << 20},
    {"record_kind", CLAIM(record_kind), 4, 0, DPI_RECORD_ROW},
    {"randomness", CLAIM(randomness), 4, 0, DPI_RANDOMNESS_SEED},
    {"full", CLAIM(full), 4, 0, 1},
    {"numbers", CLAIM(n_params), 8, 0, 0x1p50},
};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static double get(const dpi_finetune_claim *c, const number *n) {
    const char *at = (const char *)c + n->offset;
    int32_t small;
    int64_t large;
    double real;
    memcpy(&small, at, sizeof small), memcpy(&large, at, sizeof large);
    memcpy(&real, at, sizeof real);
    return n->n_bytes == 0 ? real : n->n_bytes == 8 ? (double)large : (double)small;
}

static void put(dpi_finetune_claim *c, const number *n, double value) {
    char *at = (char *)c + n->offset;
    const int64_t large = n->n_bytes > 0 ? (int64_t)value : 0;
    const int32_t small = n->n_bytes == 4 ? (int32_t)value : 0;
    if (n->n_bytes == 0)
        memcpy(at, &value, sizeof value);
    else if (n->n_bytes == 8)
        memcpy(at, &large, sizeof large);
    else
        memcpy(at, &small, sizeof small);
}

static const char *guarantee_of(const dpi_finetune_claim *c) {
    return dpi_finetune_is_private(c) ? "(epsilon, delta)-DP" : "none";
}

static const char BY[] = "post-processing of the adapter";

/* ---- Writing --------------------------------------------------------------------------------- */

static json_t *parameters_of(const dpi_finetune_claim *c) {
    json_t *o = json_object();
    int bad = !o;
    for (int i = 0; i < N_NUMBERS && !bad; i++) {
        const double value = get(c, &numbers[i]);
        bad = json_object_set_new(o, numbers[i].key,
                                  numbers[i].n_bytes > 0 ? json_integer((json_int_t)value)
                                                         : json_real(value));
    }
    if (!bad)
        return o;
    json_decref(o);
    return NULL;
}

/* null: none. */
static json_t *real_or_null(double epsilon) {
    return isfinite(epsilon) ? json_real(epsilon) : json_null();
}

static json_t *statement_of(const dpi_finetune_claim *c) {
    return json_pack("{s:s, s:o, s:f, s:s, s:s}", "guarantee", guarantee_of(c), "epsilon",
                     real_or_null(c->epsilon), "delta", c->delta, "adjacency",
                     DPI_FINETUNE_ADJACENCY, "by", BY);
}

/* How texts stand in the output: a line each, or with an empty line between. */
static const char JSONL[] = "jsonl", PLAIN[] = "text";

static json_t *texts_of(const dpi_finetune_texts *t, json_t *output) {
    return json_pack("{s:i, s:s, s:I, s:f, s:f, s:f, s:o}", "number", (int)t->n_texts, "form",
                     t->jsonl ? JSONL : PLAIN, "bytes", (json_int_t)t->n_bytes, "temp", t->temp,
                     "top_p", t->top_p, "min_p", t->min_p, "output", output);
}

/* What follows from a claim; the objects, which are stolen, are believed. NULL: out of memory. */
static json_t *report_of(const dpi_finetune_claim *c, const char *program, json_t *adapter,
                         json_t *texts) {
    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "format", FORMAT, "version",
                     VERSION, "program", program, "label", dpi_finetune_label(c), "model",
                     c->model_name, "adapter", adapter, "parameters", parameters_of(c),
                     "statement", statement_of(c), "texts", texts);
}

dpi_status dpi_finetune_report(const dpi_finetune_claim *c, const dpi_finetune_texts *texts,
                               char **json, dpi_error *err) {
    json_t *adapter = NULL, *output = NULL;
    char program[64];
    DPI_TRY(dpi_hash_one(texts->adapter, &adapter, err));
    if (texts->output) {
        const dpi_status status = dpi_hash_one(texts->output, &output, err);
        if (status != DPI_STATUS_OK) {
            json_decref(adapter);
            return status;
        }
    }
    snprintf(program, sizeof program, "dpinfer %s", dpi_version());
    json_t *report =
        report_of(c, program, adapter, texts_of(texts, output ? output : json_null()));
    size_t n_bytes;
    *json = report ? dpi_json_text(report, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &n_bytes)
                   : NULL;
    json_decref(report);
    return *json ? DPI_STATUS_OK
                 : dpi_no_memory(err, "the report");
}

/* ---- Verification ---------------------------------------------------------------------------- */

int32_t dpi_finetune_report_is(const char *text, size_t n_bytes) {
    json_t *root = json_loadb(text, n_bytes, 0, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    const bool is = format && strcmp(format, FORMAT) == 0;
    json_decref(root);
    return is;
}

static dpi_status fail_key(const char *key, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT,
                    "the report of texts lacks %s, or it is out of range or of another type", key);
}

static dpi_status read_claim(const json_t *root, dpi_finetune_claim *c, dpi_error *err) {
    const json_t *o = json_object_get(root, "parameters");
    if (json_integer_value(json_object_get(root, "version")) != VERSION)
        return fail_key("version", err);
    if (!json_is_string(json_object_get(root, "program")))
        return fail_key("program", err);
    for (int i = 0; i < N_NUMBERS; i++) {
        const number *n = &numbers[i];
        const json_t *value = json_object_get(o, n->key);
        const double x = json_number_value(value);
        const bool typed = n->n_bytes > 0 ? json_is_integer(value) : json_is_number(value);
        if (!typed || !(x >= n->min && x <= n->max))
            return fail_key(n->key, err);
        put(c, n, x);
    }
    return dpi_finetune_epsilon(c, &c->epsilon, err);
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

/* How they were drawn, which nothing says a second time: what can be. */
static dpi_status check_texts(const json_t *texts, dpi_error *err) {
    static const struct {
        const char *key;
        double min, max;
    } ranges[] = {{"temp", 0, 100}, {"top_p", 0, 1}, {"min_p", 0, 1}};
    const json_t *output = json_object_get(texts, "output");
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const json_t *value = json_object_get(texts, ranges[i].key);
        const double x = json_number_value(value);
        if (!json_is_number(value) || !(x >= ranges[i].min && x <= ranges[i].max))
            return fail_key(ranges[i].key, err);
    }
    return json_is_null(output) || dpi_hash_is_file(output) ? DPI_STATUS_OK
                                                            : fail_key("texts.output", err);
}

/* How many texts there are, as the output has them: of lines, or of what stands between texts that
 * have so many bytes. */
static dpi_status count_texts(json_t *texts, const char *output, dpi_error *err) {
    const char *form = json_string_value(json_object_get(texts, "form"));
    const int64_t n_bytes =
        json_integer_value(json_object_get(json_object_get(texts, "output"), "n_bytes"));
    int64_t n = n_bytes - json_integer_value(json_object_get(texts, "bytes")) + 1;
    n = n_bytes > 0 ? n : 0;
    if (strcmp(form, JSONL) == 0)
        DPI_TRY(count_lines(output, &n, err));
    return json_object_set_new(texts, "number", json_integer(n)) == 0
               ? DPI_STATUS_OK
               : dpi_no_memory(err, "the report");
}

/* The section of the texts, with what the output says of it; output NULL: as it is recorded. */
static dpi_status read_texts(const json_t *recorded, const char *output, json_t **texts,
                             dpi_error *err) {
    const json_t *count = json_object_get(recorded, "number");
    const json_t *sum = json_object_get(recorded, "bytes");
    const char *form = json_string_value(json_object_get(recorded, "form"));
    json_t *hash;
    DPI_TRY(check_texts(recorded, err));
    if (!json_is_integer(count) || json_integer_value(count) < 0 ||
        json_integer_value(count) > INT32_MAX)
        return fail_key("texts.number", err);
    if (!form || (strcmp(form, JSONL) != 0 && strcmp(form, PLAIN) != 0))
        return fail_key("texts.form", err);
    if (!json_is_integer(sum) || json_integer_value(sum) < 0)
        return fail_key("texts.bytes", err);
    *texts = json_pack("{s:O, s:O, s:O, s:O, s:O, s:O, s:O}", "number", count, "form",
                       json_object_get(recorded, "form"), "bytes", sum, "temp",
                       json_object_get(recorded, "temp"), "top_p",
                       json_object_get(recorded, "top_p"), "min_p",
                       json_object_get(recorded, "min_p"), "output",
                       json_object_get(recorded, "output"));
    if (!*texts)
        return dpi_no_memory(err, "the report");
    dpi_status status = output ? dpi_hash_one(output, &hash, err) : DPI_STATUS_OK;
    if (status == DPI_STATUS_OK && output) {
        status = json_object_set_new(*texts, "output", hash) == 0
                     ? count_texts(*texts, output, err)
                     : dpi_no_memory(err, "the report");
    }
    if (status != DPI_STATUS_OK)
        json_decref(*texts);
    return status;
}

/* The hash of the adapter, and with its file the claim in it; NULL: as they are recorded. */
static dpi_status read_adapter(json_t *recorded, const char *path, dpi_finetune_claim *c,
                               int32_t *intact, json_t **adapter, dpi_error *err) {
    double epsilon;
    *intact = 1;
    if (!dpi_hash_is_file(recorded))
        return fail_key("adapter", err);
    if (path)
        DPI_TRY(dpi_finetune_read_claim(path, c, &epsilon, intact, err));
    if (path)
        return dpi_hash_one(path, adapter, err);
    *adapter = json_incref(recorded);
    return DPI_STATUS_OK;
}

int32_t dpi_finetune_holds(const dpi_finetune_claim *c, double recorded) {
    return dpi_compare_bound(recorded, c->epsilon);
}

static bool is_bound(const char *path) {
    return strcmp(path, "statement.epsilon") == 0 || strcmp(path, "epsilon") == 0;
}

/* Of texts. */
static bool is_given(const dpi_verification *v, const char *path) {
    static const char *const of_output[] = {"texts.number", "texts.output.sha256",
                                            "texts.output.n_bytes", NULL};
    if (strncmp(path, "statement.", 10) == 0 || strcmp(path, "label") == 0)
        return false;
    if (strncmp(path, "parameters.", 11) == 0 || strcmp(path, "model") == 0 ||
        strncmp(path, "adapter.", 8) == 0)
        return !v->model_hashed;
    return !v->output_hashed || !dpi_is_one_of(of_output, path);
}

/* That the numbers of a claim fit each other. */
static dpi_status add_check(dpi_verification *v, const dpi_finetune_claim *c, dpi_error *err) {
    static const char fits[] = "numbers that fit each other";
    char why[DPI_FINETUNE_WHY];
    dpi_finetune_check_claim(c, why);
    return dpi_compare_add(v, "claim", why[0] ? DPI_VERDICT_WRONG : DPI_VERDICT_OK,
                           why[0] ? why : fits, fits, err);
}

static dpi_status verify(json_t *root, const char *adapter_path, const char *output_path,
                         dpi_verification *v, dpi_error *err) {
    const char *model = json_string_value(json_object_get(root, "model"));
    json_t *adapter = NULL, *texts = NULL;
    dpi_finetune_claim said, c;
    int32_t intact;
    dpi_finetune_claim_init(&said);
    DPI_TRY(read_claim(root, &said, err));
    if (!model || strlen(model) >= sizeof said.model_name)
        return fail_key("model", err);
    snprintf(said.model_name, sizeof said.model_name, "%s", model);
    c = said;
    DPI_TRY(read_texts(json_object_get(root, "texts"), output_path, &texts, err));
    dpi_status status =
        read_adapter(json_object_get(root, "adapter"), adapter_path, &c, &intact, &adapter, err);
    json_t *computed = status != DPI_STATUS_OK
                           ? json_incref(texts)
                           : report_of(&c, json_string_value(json_object_get(root, "program")),
                                       adapter, json_incref(texts));
    json_decref(texts);
    if (status == DPI_STATUS_OK && !computed)
        status = dpi_no_memory(err, "the report");
    v->is_private = dpi_finetune_is_private(&said);
    v->model_hashed = adapter_path != NULL, v->output_hashed = output_path != NULL;
    snprintf(v->label, sizeof v->label, "%s", dpi_finetune_label(&said));
    if (status == DPI_STATUS_OK)
        status = dpi_compare(root, computed, &(dpi_compare_rules){is_given, is_bound}, v, err);
    json_decref(computed);
    if (status == DPI_STATUS_OK)
        status = add_check(v, &said, err);
    if (status == DPI_STATUS_OK && adapter_path)
        status = dpi_compare_add(v, "adapter.tensors",
                                 intact ? DPI_VERDICT_OK : DPI_VERDICT_WRONG,
                                 intact ? "intact" : "changed", "intact", err);
    return status;
}

dpi_status dpi_finetune_report_verify(const char *text, size_t n_bytes, const char *adapter_path,
                                      const char *output_path, dpi_verification *result,
                                      dpi_error *err) {
    json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, NULL);
    if (!root)
        return dpi_fail(err, DPI_STATUS_FORMAT, "the report of texts is not JSON");
    const dpi_status status = verify(root, adapter_path, output_path, result, err);
    json_decref(root);
    return status;
}

/* ---- The claim of an adapter ----------------------------------------------------------------- */

/* The claim as its file has it, and as it follows from its numbers. */
static json_t *claim_of(const dpi_finetune_claim *c, const dpi_finetune_said *said) {
    json_t *o = parameters_of(c);
    json_t *rest = json_pack("{s:s, s:o, s:s, s:s, s:b, s:s, s:s}", "model", c->model_name,
                             "epsilon", real_or_null(said->epsilon), "adjacency", said->adjacency,
                             "accountant", said->accountant, "private", said->is_private, "label",
                             said->label, "tensors_sha256", said->hash);
    const bool ok = o && rest && json_object_update(o, rest) == 0;
    json_decref(rest);
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}

static bool is_number(const dpi_verification *v, const char *path) {
    (void)v;
    for (int i = 0; i < N_NUMBERS; i++)
        if (strcmp(path, numbers[i].key) == 0)
            return true;
    return strcmp(path, "model") == 0;
}

dpi_status dpi_finetune_verify(const char *path, dpi_verification *v, dpi_error *err) {
    dpi_finetune_claim c;
    dpi_finetune_said said, follows = {0};
    dpi_finetune_claim_init(&c);
    DPI_TRY(dpi_finetune_read_said(path, &c, &said, err));
    v->is_private = dpi_finetune_is_private(&c);
    follows.epsilon = c.epsilon, follows.is_private = v->is_private != 0;
    snprintf(v->label, sizeof v->label, "%s", dpi_finetune_label(&c));
    snprintf(follows.label, sizeof follows.label, "%s", dpi_finetune_label(&c));
    snprintf(follows.adjacency, sizeof follows.adjacency, "%s", DPI_FINETUNE_ADJACENCY);
    snprintf(follows.accountant, sizeof follows.accountant, "%s", DPI_FINETUNE_ACCOUNTANT);
    snprintf(follows.hash, sizeof follows.hash, "%s", said.tensors);
    json_t *recorded = claim_of(&c, &said), *computed = claim_of(&c, &follows);
    dpi_status status =
        recorded && computed
            ? dpi_compare(recorded, computed, &(dpi_compare_rules){is_number, is_bound}, v, err)
            : dpi_no_memory(err, "the fields of the claim");
    json_decref(recorded), json_decref(computed);
    return status == DPI_STATUS_OK ? add_check(v, &c, err) : status;
}
