/* claim_json.c - a claim to JSON and back. What is read comes from anywhere: each key is known, has
 * its type and its range, and none is missing. */
#include "pipeline/claim/claim_json.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "dp/exact/mean.h"
#include "dp/mechanism/mechanism.h"
#include "dp/methods/parameters.h"
#include "dpinfer/ledger.h"
#include "dpinfer/prompts.h"
#include "pipeline/journal/digest.h"
#include "pipeline/journal/json_text.h"
#include "pipeline/run.h"

enum { CLAIM_VERSION = 3, CLAIM_BYTES_MAX = 1 << 16 };

/* ---- Fields of the struct -------------------------------------------------------------------- */

typedef enum field_type { INT, LONG, REAL, FLAG, TEXT, NAME } field_type;

/* A field of dpi_claim, or of its ledger. */
typedef struct field {
    const char *key;
    field_type type;
    size_t offset, size;            /* size: of a TEXT with its NUL */
    double min, max;                /* INT, LONG, REAL */
    const char *(*name_of)(int32_t); /* NAME: of an int32_t; NULL: no such value */
    bool zero_is_null;              /* 0, or "" */
} field;

static const char *randomness_name(int32_t randomness) {
    return randomness == DPI_RANDOMNESS_SYSTEM ? "getrandom"
           : randomness == DPI_RANDOMNESS_SEED ? "seed"
                                               : NULL;
}

static const char *adjacency_name(int32_t adjacency) {
    return adjacency >= 0 && adjacency <= DPI_ADJACENCY_WORD ? dpi_adjacency_name(adjacency) : NULL;
}

#define AT(member) .offset = offsetof(dpi_claim, member), .size = sizeof((dpi_claim *)0)->member
static const field data_fields[] = {
    {.key = "adjacency", .type = NAME, AT(adjacency), .name_of = adjacency_name},
    {.key = "unit", .type = NAME, AT(record_kind), .name_of = dpi_record_kind_text},
    {.key = "M", .type = INT, AT(max_per_unit), .min = 1, .max = DPI_UNIT_RECORDS_MAX,
     .zero_is_null = true},
    {.key = "n_units", .type = LONG, AT(n_units), .min = 1, .max = 0x1p53, .zero_is_null = true},
    {.key = "labels", .type = NAME, AT(labels), .name_of = dpi_labels_name, .zero_is_null = true},
    {.key = "n_labels", .type = INT, AT(n_labels), .min = 1, .max = INT32_MAX,
     .zero_is_null = true},
    {.key = "cluster_texts", .type = INT, AT(cluster_texts), .min = 1, .max = INT32_MAX,
     .zero_is_null = true},
    {.key = "no_records", .type = FLAG, AT(no_records)},
    {.key = "delta", .type = REAL, AT(delta), .max = 1},
    {.key = NULL}};
static const field bound_fields[] = {
    {.key = "randomness", .type = NAME, AT(randomness), .name_of = randomness_name},
    {.key = "model", .type = TEXT, AT(model_name), .zero_is_null = true},
    {.key = "grammar", .type = TEXT, AT(grammar), .zero_is_null = true},
    {.key = "wording", .type = TEXT, AT(wording), .zero_is_null = true},
    {.key = "prompts", .type = TEXT, AT(prompts), .zero_is_null = true},
    {.key = "released", .type = INT, AT(released), .min = 1, .max = DPI_EXAMPLES_MAX,
     .zero_is_null = true},
    {.key = "pace_texts", .type = INT, AT(pace_texts), .min = 1, .max = INT32_MAX,
     .zero_is_null = true},
    {.key = "pace_given", .type = NAME, AT(pace_given), .name_of = dpi_pace_given_name,
     .zero_is_null = true},
    {.key = NULL}};
static const field ledger_fields[] = {
    {.key = "dataset", .type = TEXT, AT(ledger.dataset)},
    {.key = "scope", .type = NAME, AT(ledger.scope), .name_of = dpi_scope_name},
    {.key = "epsilon", .type = REAL, AT(ledger.epsilon), .max = 1e6},
    {.key = "delta", .type = REAL, AT(ledger.delta), .max = 1},
    {.key = "order", .type = INT, AT(ledger.order), .min = 2, .max = DPI_RENYI_ORDER_MAX},
    {.key = "before", .type = LONG, AT(ledger.before), .max = 0x1p62}, /* 1 / DPI_LEDGER_ONE */
    {.key = NULL}};

/* ---- Writing --------------------------------------------------------------------------------- */

static json_t *real_json(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *field_json(const field *f, const dpi_claim *c) {
    const void *at = (const char *)c + f->offset;
    int32_t i;
    int64_t n;
    double x;
    switch (f->type) {
    case TEXT:
        return f->zero_is_null && !*(const char *)at ? json_null() : json_string(at);
    case LONG:
        memcpy(&n, at, sizeof n);
        return f->zero_is_null && n == 0 ? json_null() : json_integer(n);
    case REAL:
        memcpy(&x, at, sizeof x);
        return json_real(x);
    default:
        memcpy(&i, at, sizeof i);
        return f->zero_is_null && i == 0 ? json_null()
               : f->type == FLAG         ? json_boolean(i != 0)
               : f->type == NAME         ? json_string(f->name_of(i))
                                         : json_integer(i);
    }
}

static bool put_fields(json_t *object, const field *fields, const dpi_claim *c) {
    bool ok = object;
    for (; fields->key && ok; fields++)
        ok = json_object_set_new(object, fields->key, field_json(fields, c)) == 0;
    return ok;
}

static json_t *fields_json(const field *fields, const dpi_claim *c) {
    json_t *object = json_object();
    if (put_fields(object, fields, c))
        return object;
    json_decref(object);
    return NULL;
}

static bool may_be_absent(const dpi_parameter *p) { return p->is_optional == 2; }

static json_t *value_json(const dpi_parameter *p, const dpi_claim_part *part, double value) {
    switch (p->type) {
    case DPI_PARAMETER_TEXT:
        return part->text[0] ? json_string(part->text) : json_null();
    case DPI_PARAMETER_FLAG:
        return json_boolean(value > 0);
    case DPI_PARAMETER_CHOICE:
        return json_string(p->choices[(int)value]);
    default:
        return p->is_optional && value == 0    ? json_null()
               : p->type == DPI_PARAMETER_INT ? json_integer((json_int_t)value)
                                              : real_json(value);
    }
}

static json_t *part_json(const dpi_claim_part *part) {
    json_t *o = json_pack("{s:s, s:I}", "mechanism", dpi_mechanism_name(part->mechanism), "runs",
                          (json_int_t)part->n_runs);
    const dpi_parameter *p;
    bool ok = o;
    for (int32_t i = 0; ok && (p = dpi_mechanism_parameter_get(part->mechanism, i)); i++)
        if (!(may_be_absent(p) && part->values[i] == 0))
            ok = json_object_set_new(o, p->key, value_json(p, part, part->values[i])) == 0;
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}

json_t *dpi_claim_json(const dpi_claim *c) {
    json_t *parts = json_array();
    bool ok = parts;
    for (int32_t i = 0; i < c->n_parts && ok; i++)
        ok = json_array_append_new(parts, part_json(&c->parts[i])) == 0;
    json_t *o = json_pack("{s:i, s:o, s:o}", "version", CLAIM_VERSION, "data",
                          fields_json(data_fields, c), "mechanisms", parts);
    ok = ok && put_fields(o, bound_fields, c);
    ok = ok && json_object_set_new(o, "ledger", c->ledger.dataset[0] ? fields_json(ledger_fields, c)
                                                                     : json_null()) == 0;
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}

enum { BYTES = JSON_COMPACT | JSON_REAL_PRECISION(17) };

dpi_status dpi_claim_write(const dpi_claim *c, char **json, dpi_error *err) {
    size_t n_bytes;
    json_t *o = dpi_claim_json(c);
    *json = o ? dpi_json_text(o, BYTES, &n_bytes) : NULL;
    json_decref(o);
    return *json ? DPI_STATUS_OK : dpi_no_memory(err, "the claim");
}

dpi_status dpi_claim_charged(const dpi_claim *claim, char **json, dpi_error *err) {
    dpi_claim alone = *claim;
    alone.ledger = (dpi_claim_ledger){0};
    return dpi_claim_write(&alone, json, err);
}

dpi_status dpi_json_digest(const json_t *value, char hex[DPI_DIGEST_HEX + 1], dpi_error *err) {
    size_t n_bytes;
    hex[0] = '\0';
    if (json_is_null(value))
        return DPI_STATUS_OK;
    char *json = value ? dpi_json_text(value, BYTES, &n_bytes) : NULL;
    if (!json)
        return dpi_no_memory(err, "a digest");
    dpi_digest(json, n_bytes, hex);
    free(json);
    return DPI_STATUS_OK;
}

/* ---- What follows ---------------------------------------------------------------------------- */

static json_t *fact_json(const dpi_fact *f) {
    return f->type == DPI_FACT_TEXT   ? json_string(f->text)
           : f->type == DPI_FACT_FLAG ? json_boolean(f->integer != 0)
           : f->type == DPI_FACT_INT  ? json_integer((json_int_t)f->integer)
                                      : real_json(f->real);
}

static json_t *part_follows(const dpi_claim *c, const dpi_claim_part *p) {
    dpi_fact facts[DPI_CLAIM_FACTS_MAX];
    dpi_facts l = {.facts = facts};
    json_t *o = json_pack("{s:s, s:o, s:o}", "mechanism", dpi_mechanism_name(p->mechanism), "rho",
                          p->rho > 0 ? json_real(p->rho) : json_null(), "epsilon",
                          real_json(p->epsilon));
    bool ok = o;
    dpi_part_facts(c, p, &l);
    for (size_t i = 0; i < l.n && ok; i++)
        if (facts[i].where & DPI_FACT_REALISED)
            ok = json_object_set_new(o, facts[i].key, fact_json(&facts[i])) == 0;
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}

/* Renyi divergences of the dataset's order. A unit was charged at most so much, and no more than
 * the budget. */
static json_t *ledger_follows(const dpi_claim_ledger *l) {
    const double one = DPI_LEDGER_ONE;
    const int64_t after = l->before + l->charge;
    if (!l->dataset[0])
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f}", "budget", (double)l->budget / one, "before",
                     (double)l->before / one, "charge", (double)l->charge / one, "after",
                     (double)(l->scope == DPI_SCOPE_UNIT && after > l->budget ? l->budget : after) /
                         one);
}

/* Of the bytes that dpi_claim_write makes: whatever is changed in a claim shows. */
static json_t *digest_json(const dpi_claim *c) {
    char hex[DPI_DIGEST_HEX + 1];
    json_t *claim = dpi_claim_json(c);
    const dpi_status status = dpi_json_digest(claim, hex, NULL);
    json_decref(claim);
    return status == DPI_STATUS_OK ? json_string(hex) : NULL;
}

json_t *dpi_claim_follows(const dpi_claim *c) {
    json_t *parts = json_array();
    bool ok = parts;
    for (int32_t i = 0; i < c->n_parts && ok; i++)
        ok = json_array_append_new(parts, part_follows(c, &c->parts[i])) == 0;
    if (ok)
        return json_pack("{s:o, s:o, s:f, s:o, s:o, s:o}", "rho",
                         c->rho > 0 ? json_real(c->rho) : json_null(), "epsilon",
                         real_json(c->epsilon), "delta", c->delta, "mechanisms", parts, "ledger",
                         ledger_follows(&c->ledger), "claim_sha256", digest_json(c));
    json_decref(parts);
    return NULL;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* FORMAT: what was found under a key of a section, and what is allowed. */
static dpi_status refuse(const char *section, const char *key, const json_t *found,
                         const char *allowed, dpi_error *err) {
    size_t n_bytes;
    if (!found)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s.%s is missing, must be %s", section, key,
                        allowed);
    char *text =
        dpi_json_text(found, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT, &n_bytes);
    dpi_fail(err, DPI_STATUS_FORMAT, "%s.%s is %.60s, must be %s", section, key, text ? text : "?",
             allowed);
    free(text);
    return DPI_STATUS_FORMAT;
}

static dpi_status read_int(const char *section, const char *key, const json_t *found, double min,
                           double max, double *value, dpi_error *err) {
    char allowed[80];
    *value = json_is_integer(found) ? (double)json_integer_value(found) : (double)NAN;
    if (*value >= min && *value <= max)
        return DPI_STATUS_OK;
    dpi_format(allowed, sizeof allowed, "an integer %.0f..%.0f", min, max);
    return refuse(section, key, found, allowed, err);
}

/* The index of a name; names (i) is NULL behind the last one. */
static dpi_status read_name(const char *section, const char *key, const json_t *found,
                            const char *const *names, int32_t *index, dpi_error *err) {
    char allowed[240] = "one of:";
    for (int32_t i = 0; names[i]; i++) {
        if (json_is_string(found) && strcmp(json_string_value(found), names[i]) == 0) {
            *index = i;
            return DPI_STATUS_OK;
        }
        const size_t n = strlen(allowed);
        snprintf(allowed + n, sizeof allowed - n, "%s %s", i > 0 ? "," : "", names[i]);
    }
    return refuse(section, key, found, allowed, err);
}

static dpi_status read_text(const char *section, const char *key, const json_t *found, char *text,
                            size_t size, dpi_error *err) {
    const size_t n = json_string_length(found);
    char allowed[80];
    if (json_is_string(found) && n > 0 && n < size && strlen(json_string_value(found)) == n) {
        memcpy(text, json_string_value(found), n + 1);
        return DPI_STATUS_OK;
    }
    snprintf(allowed, sizeof allowed, "a text of 1..%zu bytes", size - 1);
    return refuse(section, key, found, allowed, err);
}

static dpi_status read_named(const field *f, const char *section, const json_t *found, void *at,
                             dpi_error *err) {
    enum { NAMES_MAX = 16 };
    const char *names[NAMES_MAX + 1] = {NULL};
    const int32_t first = f->zero_is_null; /* 0 has no name */
    int32_t n = 0, index = 0;
    while (n < NAMES_MAX && f->name_of(first + n))
        names[n] = f->name_of(first + n), n++;
    DPI_TRY(read_name(section, f->key, found, names, &index, err));
    index += first;
    memcpy(at, &index, sizeof index);
    return DPI_STATUS_OK;
}

static dpi_status read_field(const field *f, const char *section, const json_t *object,
                             dpi_claim *c, dpi_error *err) {
    const json_t *found = json_object_get(object, f->key);
    void *at = (char *)c + f->offset;
    double value;
    if (f->zero_is_null && json_is_null(found))
        return DPI_STATUS_OK;
    if (f->type == NAME)
        return read_named(f, section, found, at, err);
    if (f->type == TEXT)
        return read_text(section, f->key, found, at, f->size, err);
    if (f->type == FLAG) {
        const int32_t flag = json_is_true(found);
        memcpy(at, &flag, sizeof flag);
        return json_is_boolean(found) ? DPI_STATUS_OK
                                      : refuse(section, f->key, found, "true or false", err);
    }
    if (f->type == REAL) {
        char allowed[80];
        value = json_number_value(found);
        dpi_format(allowed, sizeof allowed, "a number %g..%g", f->min, f->max);
        if (!json_is_number(found) || !(value >= f->min && value <= f->max))
            return refuse(section, f->key, found, allowed, err);
        memcpy(at, &value, sizeof value);
        return DPI_STATUS_OK;
    }
    DPI_TRY(read_int(section, f->key, found, f->min, f->max, &value, err));
    const int64_t n = f->type == LONG ? json_integer_value(found) : 0;
    const int32_t i = f->type == INT ? (int32_t)value : 0;
    memcpy(at, f->type == LONG ? (const void *)&n : &i, f->type == LONG ? sizeof n : sizeof i);
    return DPI_STATUS_OK;
}

static bool has_key(const field *fields, const char *key) {
    while (fields->key && strcmp(fields->key, key) != 0)
        fields++;
    return fields->key;
}

static dpi_status unknown_key(const char *section, const char *key, dpi_error *err) {
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s has the unknown key '%.40s'", section, key);
}

static dpi_status read_fields(const field *fields, const char *section, const json_t *object,
                              dpi_claim *c, dpi_error *err) {
    for (; fields->key; fields++)
        DPI_TRY(read_field(fields, section, object, c, err));
    return DPI_STATUS_OK;
}

/* A section of fields alone. */
static dpi_status read_section(const field *fields, const char *section, const json_t *object,
                               dpi_claim *c, dpi_error *err) {
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is missing, or no object", section);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
        if (!has_key(fields, key))
            return unknown_key(section, key, err);
    return read_fields(fields, section, object, c, err);
}

static dpi_status read_value(const char *section, const dpi_parameter *p, const json_t *found,
                             dpi_claim_part *part, double *value, dpi_error *err) {
    int32_t index = 0;
    const bool optional = p->is_optional || p->type == DPI_PARAMETER_TEXT;
    *value = 0;
    if ((optional && json_is_null(found)) || (may_be_absent(p) && !found))
        return DPI_STATUS_OK;
    if (p->type == DPI_PARAMETER_REAL && isinf(p->max) && json_is_null(found)) {
        *value = INFINITY;
        return DPI_STATUS_OK;
    }
    if (p->type == DPI_PARAMETER_TEXT)
        return read_text(section, p->key, found, part->text, (size_t)p->max + 1, err);
    if (p->type == DPI_PARAMETER_CHOICE) {
        DPI_TRY(read_name(section, p->key, found, p->choices, &index, err));
        *value = index;
        return DPI_STATUS_OK;
    }
    const bool typed = p->type == DPI_PARAMETER_FLAG  ? json_is_boolean(found)
                       : p->type == DPI_PARAMETER_INT ? json_is_integer(found)
                                                      : json_is_number(found);
    char range[128];
    dpi_parameter_range(p, range, sizeof range);
    *value = json_is_boolean(found) ? json_is_true(found) : json_number_value(found);
    return typed && dpi_parameter_check(p, *value, NULL) == DPI_STATUS_OK &&
                   !(optional && *value == 0) /* that is null */
               ? DPI_STATUS_OK
               : refuse(section, p->key, found, range, err);
}

static int32_t find_parameter(int32_t id, const char *key) {
    const dpi_parameter *p;
    for (int32_t i = 0; (p = dpi_mechanism_parameter_get(id, i)); i++)
        if (strcmp(p->key, key) == 0)
            return i;
    return -1;
}

static dpi_status read_part(const char *section, const json_t *object, dpi_claim *c,
                            dpi_error *err) {
    const char *key, *name = json_string_value(json_object_get(object, "mechanism"));
    json_t *value;
    double runs;
    if (!name || dpi_mechanism_find(name) < 0)
        return refuse(section, "mechanism", json_object_get(object, "mechanism"),
                      "the name of a mechanism", err);
    dpi_claim_part *part = dpi_claim_add(c, name);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
        if (strcmp(key, "mechanism") != 0 && strcmp(key, "runs") != 0 &&
            find_parameter(part->mechanism, key) < 0)
            return unknown_key(section, key, err);
    DPI_TRY(read_int(section, "runs", json_object_get(object, "runs"), 1, 0x1p53, &runs, err));
    part->n_runs = (int64_t)runs;
    const dpi_parameter *p;
    for (int32_t i = 0; (p = dpi_mechanism_parameter_get(part->mechanism, i)); i++)
        DPI_TRY(read_value(section, p, json_object_get(object, p->key), part, &part->values[i],
                           err));
    return DPI_STATUS_OK;
}

static dpi_status read_parts(const json_t *parts, dpi_claim *c, dpi_error *err) {
    const size_t n = json_array_size(parts);
    if (n < 1 || n > DPI_CLAIM_PARTS_MAX)
        return dpi_fail(err, DPI_STATUS_FORMAT, "claim.mechanisms: found %zu, allowed 1..%d", n,
                        DPI_CLAIM_PARTS_MAX);
    for (size_t i = 0; i < n; i++) {
        char section[40];
        snprintf(section, sizeof section, "claim.mechanisms[%zu]", i);
        DPI_TRY(read_part(section, json_array_get(parts, i), c, err));
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_claim_of_json(const json_t *root, dpi_claim *c, dpi_error *err) {
    static const char *const sections[] = {"version", "data", "mechanisms", "ledger", NULL};
    const json_t *ledger = json_object_get(root, "ledger");
    const char *key;
    json_t *value;
    double version;
    dpi_error why;
    dpi_claim_init(c);
    if (!json_is_object(root))
        return dpi_fail(err, DPI_STATUS_FORMAT, "claim is missing, or no object");
    DPI_TRY(read_int("claim", "version", json_object_get(root, "version"), CLAIM_VERSION,
                     CLAIM_VERSION, &version, err));
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
        if (!dpi_is_one_of(sections, key) && !has_key(bound_fields, key))
            return unknown_key("claim", key, err);
    DPI_TRY(read_section(data_fields, "claim.data", json_object_get(root, "data"), c, err));
    DPI_TRY(read_parts(json_object_get(root, "mechanisms"), c, err));
    DPI_TRY(read_fields(bound_fields, "claim", root, c, err));
    if (!json_is_null(ledger))
        DPI_TRY(read_section(ledger_fields, "claim.ledger", ledger, c, err));
    const dpi_status status = dpi_claim_settle(c, &why);
    if (status != DPI_STATUS_OK)
        return dpi_fail(err, status, "no work has such a claim: %s", why.message);
    if (c->ledger.dataset[0] && dpi_claim_warning(c))
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "claim.ledger: found one, which counts guarantees, and there is none: %s",
                        dpi_claim_warning(c));
    return DPI_STATUS_OK;
}

dpi_status dpi_claim_read(const char *json, size_t n_bytes, dpi_claim *claim, dpi_error *err) {
    json_error_t error;
    if (n_bytes > CLAIM_BYTES_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "a claim of %zu bytes, allowed %d", n_bytes,
                        CLAIM_BYTES_MAX);
    json_t *root = json_loadb(json, n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return json_error_code(&error) == json_error_out_of_memory
                   ? dpi_no_memory(err, "the claim")
                   : dpi_fail(err, DPI_STATUS_FORMAT, "a claim is no JSON: line %d, column %d",
                              error.line, error.column);
    const dpi_status status = dpi_claim_of_json(root, claim, err);
    json_decref(root);
    return status;
}
