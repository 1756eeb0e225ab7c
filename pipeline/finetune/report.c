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
#include "pipeline/release/hash.h"

static const char FORMAT[] = "dpinfer texts of an adapter";
enum { VERSION = 1 };

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

/* epsilon null: none. */
static json_t *statement_of(const dpi_finetune_claim *c) {
    return json_pack("{s:s, s:o, s:f, s:s, s:s}", "guarantee",
                     guarantee_of(c), "epsilon",
                     isfinite(c->epsilon) ? json_real(c->epsilon) : json_null(), "delta", c->delta,
                     "adjacency", DPI_FINETUNE_ADJACENCY, "by", BY);
}

/* How texts stand in the output: a line each, or with an empty line between. */
static const char JSONL[] = "jsonl", PLAIN[] = "text";

static json_t *texts_of(const dpi_finetune_texts *t, json_t *output) {
    return json_pack("{s:i, s:s, s:I, s:f, s:f, s:f, s:o}", "number", (int)t->n_texts, "form",
                     t->jsonl ? JSONL : PLAIN, "bytes", (json_int_t)t->n_bytes, "temp", t->temp,
                     "top_p", t->top_p, "min_p", t->min_p, "output", output);
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
    json_t *report = json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "format", FORMAT,
                               "version", VERSION, "program", program, "label",
                               dpi_finetune_label(c), "model", c->model_name, "adapter", adapter,
                               "parameters", parameters_of(c), "statement", statement_of(c),
                               "texts", texts_of(texts, output ? output : json_null()));
    size_t n_bytes;
    *json = report ? dpi_json_text(report, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &n_bytes)
                   : NULL;
    json_decref(report);
    return *json ? DPI_STATUS_OK
                 : dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for the report");
}

/* ---- Verification ---------------------------------------------------------------------------- */

int32_t dpi_finetune_report_is(const char *text, size_t n_bytes) {
    json_t *root = json_loadb(text, n_bytes, 0, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    const bool is = format && strcmp(format, FORMAT) == 0;
    json_decref(root);
    return is;
}

static bool is_number_of_claim(const char *key) {
    for (int i = 0; i < N_NUMBERS; i++)
        if (strcmp(numbers[i].key, key) == 0)
            return true;
    return false;
}

/* A report says nothing that is not read. */
static dpi_status check_keys(json_t *root, dpi_error *err) {
    static const char *const own[] = {"format",  "version",    "program",   "label", "model",
                                      "adapter", "parameters", "statement", "texts", NULL};
    static const char *const of_statement[] = {"guarantee", "epsilon", "delta", "adjacency", "by",
                                               NULL};
    static const char *const of_texts[] = {"number", "form",  "bytes",  "temp",
                                           "top_p",  "min_p", "output", NULL};
    const struct {
        const char *name;
        json_t *object;
        const char *const *keys; /* NULL: the numbers of a claim */
    } objects[] = {{"the report", root, own},
                   {"statement", json_object_get(root, "statement"), of_statement},
                   {"texts", json_object_get(root, "texts"), of_texts},
                   {"parameters", json_object_get(root, "parameters"), NULL}};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        const char *const *keys = objects[i].keys;
        const char *key;
        json_t *value;
        json_object_foreach(objects[i].object, key, value)
            if (keys ? !dpi_is_one_of(keys, key) : !is_number_of_claim(key))
                return dpi_fail(err, DPI_STATUS_FORMAT, "%s has the unknown key '%.60s'",
                                objects[i].name, key);
    }
    return DPI_STATUS_OK;
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

/* A field more; NULL: out of memory. */
static dpi_verified_field *add_field(dpi_verification *v, const char *path, int32_t verdict) {
    dpi_verified_field *grown = realloc(v->fields, (v->n_fields + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    v->fields = grown;
    dpi_verified_field *f = &grown[v->n_fields++];
    *f = (dpi_verified_field){.verdict = verdict};
    snprintf(f->path, sizeof f->path, "%s", path);
    v->n_ok += verdict == DPI_VERDICT_OK;
    v->n_wrong += verdict == DPI_VERDICT_WRONG;
    return f;
}

static bool add_number(dpi_verification *v, const char *path, double recorded, double computed,
                       int32_t verdict) {
    dpi_verified_field *f = add_field(v, path, verdict);
    if (f)
        dpi_format(f->recorded, sizeof f->recorded, "%.10g", recorded),
            dpi_format(f->computed, sizeof f->computed, "%.10g", computed);
    return f != NULL;
}

/* What is shown of a text from a file has no byte that could steer a terminal. */
static void show(char *to, size_t size, const char *text) {
    snprintf(to, size, "%s", text ? text : "(none)");
    for (; *to; to++)
        *to = (unsigned char)*to < 0x20 || (unsigned char)*to > 0x7e ? '?' : *to;
}

static bool add_text(dpi_verification *v, const char *path, const char *recorded,
                     const char *computed) {
    const bool same = recorded && strcmp(recorded, computed) == 0;
    dpi_verified_field *f = add_field(v, path, same ? DPI_VERDICT_OK : DPI_VERDICT_WRONG);
    if (f)
        show(f->recorded, sizeof f->recorded, recorded),
            snprintf(f->computed, sizeof f->computed, "%s", same ? "the same" : computed);
    return f != NULL;
}

/* A text that is not computed; one that was left out does not hold. */
static bool add_given(dpi_verification *v, const char *path, const char *recorded) {
    dpi_verified_field *f =
        add_field(v, path, recorded ? DPI_VERDICT_GIVEN : DPI_VERDICT_WRONG);
    if (f)
        show(f->recorded, sizeof f->recorded, recorded),
            snprintf(f->computed, sizeof f->computed, "a text");
    return f != NULL;
}

/* The hash of a file that an object of the report has. */
static dpi_status check_file(dpi_verification *v, const char *path, const json_t *object,
                             const char *file, int64_t *n_bytes, bool *added, dpi_error *err) {
    char hex[DPI_HASH_HEX + 1];
    if (!dpi_hash_file(file, hex, n_bytes))
        return dpi_fail(err, DPI_STATUS_IO, "cannot read %s", file);
    *added &= add_text(v, path, json_string_value(json_object_get(object, "sha256")), hex);
    return DPI_STATUS_OK;
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
 * have so many bytes. The first reports do not say in which form they are. */
static dpi_status check_number(dpi_verification *v, const json_t *texts, const char *output,
                               int64_t n_bytes, bool *added, dpi_error *err) {
    const json_t *count = json_object_get(texts, "number");
    const json_t *named = json_object_get(texts, "form"), *sum = json_object_get(texts, "bytes");
    const char *form = json_string_value(named);
    const int64_t of_texts = json_integer_value(sum);
    const double recorded = json_number_value(count);
    if (!json_is_integer(count) || recorded < 0 || recorded > INT32_MAX)
        return fail_key("texts.number", err);
    if (named && (!form || (strcmp(form, JSONL) != 0 && strcmp(form, PLAIN) != 0)))
        return fail_key("texts.form", err);
    if (!named != !sum || (sum && !json_is_integer(sum)) || of_texts < 0)
        return fail_key("texts.bytes", err);
    if (!output || !form) {
        *added &= add_number(v, "texts.number", recorded, recorded, DPI_VERDICT_GIVEN);
        return DPI_STATUS_OK;
    }
    int64_t computed = n_bytes > 0 ? n_bytes - of_texts + 1 : 0;
    if (strcmp(form, JSONL) == 0)
        DPI_TRY(count_lines(output, &computed, err));
    *added &= add_number(v, "texts.number", recorded, (double)computed,
                         json_integer_value(count) == computed ? DPI_VERDICT_OK
                                                                : DPI_VERDICT_WRONG);
    return DPI_STATUS_OK;
}

/* Numbers and model are those of the claim in the adapter's file. */
static dpi_status check_adapter(dpi_verification *v, const dpi_finetune_claim *c,
                                const char *model, const char *path, bool *added,
                                dpi_error *err) {
    dpi_finetune_claim own;
    double recorded;
    int32_t intact;
    char name[64];
    dpi_finetune_claim_init(&own);
    DPI_TRY(dpi_finetune_read_claim(path, &own, &recorded, &intact, err));
    for (int i = 0; i < N_NUMBERS; i++) {
        const double x = get(c, &numbers[i]), y = get(&own, &numbers[i]);
        snprintf(name, sizeof name, "parameters.%s", numbers[i].key);
        *added &= add_number(v, name, x, y,
                             x < y || x > y ? DPI_VERDICT_WRONG : DPI_VERDICT_OK);
    }
    *added &= add_text(v, "model", model, own.model_name);
    *added &= add_text(v, "adapter.tensors", intact ? "intact" : "changed", "intact");
    return DPI_STATUS_OK;
}

/* A bound that was recorded may be above the one that is computed now by what bisection leaves. */
int32_t dpi_finetune_holds(const dpi_finetune_claim *c, double recorded) {
    return (isinf(recorded) && isinf(c->epsilon)) ||
           (recorded >= c->epsilon * (1 - 1e-9) && recorded <= c->epsilon * (1 + 1e-3));
}

static bool add_epsilon(dpi_verification *v, const char *path, double recorded,
                        const dpi_finetune_claim *c) {
    return add_number(v, path, recorded, c->epsilon,
                      dpi_finetune_holds(c, recorded) ? DPI_VERDICT_OK : DPI_VERDICT_WRONG);
}

static bool add_check(dpi_verification *v, const dpi_finetune_claim *c) {
    static const char fits[] = "numbers that fit each other";
    char why[DPI_FINETUNE_WHY];
    dpi_finetune_check_claim(c, why);
    return add_text(v, "claim", why[0] ? why : fits, fits);
}

/* What is said of the claim. */
static bool add_statement(dpi_verification *v, const json_t *root, const dpi_finetune_claim *c) {
    const json_t *statement = json_object_get(root, "statement");
    const json_t *epsilon = json_object_get(statement, "epsilon");
    const double recorded = json_is_null(epsilon) ? (double)INFINITY : json_number_value(epsilon);
    const double delta = json_number_value(json_object_get(statement, "delta"));
    const struct {
        const char *path;
        const json_t *value;
        const char *wanted;
    } words[] = {
        {"statement.guarantee", json_object_get(statement, "guarantee"), guarantee_of(c)},
        {"statement.adjacency", json_object_get(statement, "adjacency"), DPI_FINETUNE_ADJACENCY},
        {"statement.by", json_object_get(statement, "by"), BY},
        {"label", json_object_get(root, "label"), dpi_finetune_label(c)},
    };
    bool added = add_epsilon(v, "statement.epsilon", recorded, c) & add_check(v, c);
    added &= add_number(v, "statement.delta", delta, c->delta,
                        delta < c->delta || delta > c->delta ? DPI_VERDICT_WRONG : DPI_VERDICT_OK);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        added &= add_text(v, words[i].path, json_string_value(words[i].value), words[i].wanted);
    return added;
}

static dpi_status verify(json_t *root, const char *adapter_path, const char *output_path,
                         dpi_verification *v, dpi_error *err) {
    const json_t *epsilon = json_object_get(json_object_get(root, "statement"), "epsilon");
    const json_t *texts = json_object_get(root, "texts");
    const char *model = json_string_value(json_object_get(root, "model"));
    dpi_finetune_claim c;
    int64_t n_bytes = 0;
    bool added = true;
    dpi_finetune_claim_init(&c);
    DPI_TRY(check_keys(root, err));
    DPI_TRY(read_claim(root, &c, err));
    DPI_TRY(check_texts(texts, err));
    if (!dpi_hash_is_file(json_object_get(root, "adapter")))
        return fail_key("adapter", err);
    if (!json_is_number(epsilon) && !json_is_null(epsilon))
        return fail_key("statement.epsilon", err);
    for (int i = 0; i < N_NUMBERS && !adapter_path; i++) {
        const double x = get(&c, &numbers[i]);
        added &= add_number(v, numbers[i].key, x, x, DPI_VERDICT_GIVEN);
    }
    added &= add_statement(v, root, &c);
    if (adapter_path) {
        DPI_TRY(check_file(v, "adapter.sha256", json_object_get(root, "adapter"), adapter_path,
                           &n_bytes, &added, err));
        DPI_TRY(check_adapter(v, &c, model, adapter_path, &added, err));
    } else {
        added &= add_given(v, "model", model);
    }
    if (output_path)
        DPI_TRY(check_file(v, "texts.output.sha256", json_object_get(texts, "output"), output_path,
                           &n_bytes, &added, err));
    DPI_TRY(check_number(v, texts, output_path, n_bytes, &added, err));
    v->is_private = dpi_finetune_is_private(&c);
    v->model_hashed = adapter_path != NULL, v->output_hashed = output_path != NULL;
    snprintf(v->label, sizeof v->label, "%s", dpi_finetune_label(&c));
    return added ? DPI_STATUS_OK
                 : dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for the fields of the report");
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

static bool add_claim(dpi_verification *v, const dpi_finetune_claim *c,
                      const dpi_finetune_said *said) {
    bool added = true;
    for (int i = 0; i < N_NUMBERS; i++) {
        const double x = get(c, &numbers[i]);
        added &= add_number(v, numbers[i].key, x, x, DPI_VERDICT_GIVEN);
    }
    added &= add_given(v, "model", c->model_name);
    added &= add_epsilon(v, "epsilon", said->epsilon, c) & add_check(v, c);
    added &= add_text(v, "adjacency", said->adjacency, DPI_FINETUNE_ADJACENCY);
    added &= add_text(v, "accountant", said->accountant, DPI_FINETUNE_ACCOUNTANT);
    added &= add_text(v, "private", said->is_private ? "true" : "false",
                      dpi_finetune_is_private(c) ? "true" : "false");
    added &= add_text(v, "label", said->label, dpi_finetune_label(c));
    return added & add_text(v, "tensors_sha256", said->hash, said->tensors);
}

dpi_status dpi_finetune_verify(const char *path, dpi_verification *result, dpi_error *err) {
    dpi_finetune_claim c;
    dpi_finetune_said said;
    dpi_finetune_claim_init(&c);
    DPI_TRY(dpi_finetune_read_said(path, &c, &said, err));
    result->is_private = dpi_finetune_is_private(&c);
    snprintf(result->label, sizeof result->label, "%s", dpi_finetune_label(&c));
    return add_claim(result, &c, &said)
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_MEMORY, "out of memory for the fields of the claim");
}
