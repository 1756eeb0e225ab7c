/* report_parameters.c - the section `parameters` of a report, to and from a claim. The
 * methods' registry says which parameters there are. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dpinfer/ledger.h"
#include "dpinfer/registry.h"
#include "pipeline/claim.h"
#include "pipeline/release/report.h"

/* ---- Words ---------------------------------------------------------------------------------- */

static const char *const RANDOMNESS[] = {"getrandom", "seed", NULL};

enum { MAX_METHODS = 16, MAX_KINDS = 16 };

/* The names of what a record is, by dpi_record_kind, ended by NULL. */
static void list_kinds(const char *names[MAX_KINDS + 1]) {
    int32_t n = 0;
    for (; n < MAX_KINDS && dpi_record_kind_text(n); n++)
        names[n] = dpi_record_kind_text(n);
    names[n] = NULL;
}

/* The names of the methods, ended by NULL. */
static void list_methods(const char *names[MAX_METHODS + 1]) {
    int32_t n = dpi_method_count();
    n = n < MAX_METHODS ? n : MAX_METHODS;
    for (int32_t id = 0; id < n; id++)
        names[id] = dpi_method_get(id)->name;
    names[n] = NULL;
}

/* ---- Writing -------------------------------------------------------------------------------- */

static json_t *write_parameter(const dpi_parameter *p, const dpi_sampler_options *o) {
    const double value = dpi_parameter_value(p, o);
    return p->is_optional && value == 0        ? json_null()
           : p->type == DPI_PARAMETER_REAL ? json_real(value)
           : p->type == DPI_PARAMETER_FLAG ? json_boolean((int)value)
           : p->type == DPI_PARAMETER_INT  ? json_integer((json_int_t)value)
                                           : json_string(p->choices[(int)value]);
}

/* null without a ledger. */
static json_t *write_ledger(const dpi_claim_ledger *l) {
    if (!l->dataset[0])
        return json_pack("{s:n, s:n, s:n, s:n, s:n, s:n}", "ledger_dataset", "ledger_scope",
                         "ledger_epsilon", "ledger_delta", "ledger_order", "ledger_before");
    return json_pack("{s:s, s:s, s:f, s:f, s:i, s:f}", "ledger_dataset", l->dataset, "ledger_scope",
                     dpi_scope_name(l->scope), "ledger_epsilon", l->epsilon, "ledger_delta",
                     l->delta, "ledger_order", l->order, "ledger_before",
                     (double)l->before / DPI_LEDGER_ONE);
}

json_t *dpi_report_parameters(const dpi_claim *c) {
    const int32_t method = c->method.method;
    json_t *object = json_pack("{s:s}", "method", dpi_method_get(method)->name);
    bool ok = object;
    for (int32_t i = 0; i < dpi_method_parameter_count(method) && ok; i++) {
        const dpi_parameter *p = dpi_method_parameter_get(method, i);
        ok = json_object_set_new(object, p->key, write_parameter(p, &c->method)) == 0;
    }
    const char *labels = dpi_labels_name(c->labels);
    json_t *rest = json_pack("{s:o, s:s*, s:i, s:o, s:s, s:b, s:s, s:s?, s:o, s:o, s:o, s:o}",
        "pace_texts", c->pace_texts > 0 ? json_integer(c->pace_texts) : json_null(),
        "pace_given", dpi_pace_given_name(c->pace_given),
        "n_texts", c->n_texts,
        "n_records", c->n_records > 0 ? json_integer(c->n_records) : json_null(),
        "unit", dpi_record_kind_text(c->record_kind),
        "record_in_prompt", c->record_in_prompt,
        "randomness", RANDOMNESS[c->randomness],
        "grammar", c->grammar[0] ? c->grammar : NULL,
        "cluster_texts", c->cluster_texts > 0 ? json_integer(c->cluster_texts) : json_null(),
        "labels", labels ? json_string(labels) : json_null(),
        "n_labels", labels ? json_integer(c->n_labels) : json_null(),
        "histogram_variance", c->histogram > 0 ? json_integer(c->histogram) : json_null());
    ok = ok && rest && json_object_update(object, rest) == 0;
    json_decref(rest);
    json_t *ledger = write_ledger(&c->ledger);
    ok = ok && ledger && json_object_update(object, ledger) == 0;
    json_decref(ledger);
    if (!ok) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* ---- Reading: the file comes from anywhere -------------------------------------------------- */

static dpi_status refuse(const char *key, const json_t *found, const char *allowed,
                         dpi_error *err) {
    size_t n_bytes;
    if (!found)
        return dpi_fail(err, DPI_STATUS_FORMAT, "parameters.%s is missing, must be %s", key,
                        allowed);
    char *text =
        dpi_json_text(found, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT, &n_bytes);
    dpi_fail(err, DPI_STATUS_FORMAT, "parameters.%s is %.60s, must be %s", key, text ? text : "?",
             allowed);
    free(text);
    return DPI_STATUS_FORMAT;
}

static dpi_status read_int(const json_t *object, const char *key, int64_t min, int64_t max,
                    int64_t *value, dpi_error *err) {
    const json_t *found = json_object_get(object, key);
    if (json_is_integer(found) && json_integer_value(found) >= min &&
        json_integer_value(found) <= max) {
        *value = json_integer_value(found);
        return DPI_STATUS_OK;
    }
    char allowed[80];
    snprintf(allowed, sizeof allowed, "an integer %" PRId64 "..%" PRId64, min, max);
    return refuse(key, found, allowed, err);
}

static dpi_status read_choice(const json_t *object, const char *key, const char *const *names,
                       int32_t *index, dpi_error *err) {
    const json_t *found = json_object_get(object, key);
    char allowed[160] = "one of:";
    for (int32_t i = 0; names[i]; i++) {
        if (json_is_string(found) && strcmp(json_string_value(found), names[i]) == 0) {
            *index = i;
            return DPI_STATUS_OK;
        }
        size_t n = strlen(allowed);
        snprintf(allowed + n, sizeof allowed - n, "%s %s", i > 0 ? "," : "", names[i]);
    }
    return refuse(key, found, allowed, err);
}

/* A number may be out of range: the plan refuses it. */
static dpi_status read_parameter(const dpi_parameter *p, const json_t *object,
                                 dpi_sampler_options *o, dpi_error *err) {
    const json_t *found = json_object_get(object, p->key);
    char *at = (char *)o + p->offset;
    int64_t i = 0;
    int32_t value = 0;
    /* Reports before nucleus sampling lack its keys; of a guarantee none may be left out. */
    const bool lacks = !found && !dpi_method_get(o->method)->has_guarantee;
    if (p->is_optional && (lacks || json_is_null(found))) {
        memset(at, 0, p->type == DPI_PARAMETER_REAL ? sizeof(double) : sizeof value);
        return DPI_STATUS_OK;
    }
    if (p->type == DPI_PARAMETER_REAL) {
        if (!json_is_number(found))
            return refuse(p->key, found, p->is_optional ? "a number, or null" : "a number", err);
        double x = json_number_value(found);
        memcpy(at, &x, sizeof x);
        return DPI_STATUS_OK;
    }
    if (p->type == DPI_PARAMETER_FLAG) {
        if (!json_is_boolean(found))
            return refuse(p->key, found, "true or false", err);
        value = json_is_true(found);
    } else if (p->type == DPI_PARAMETER_CHOICE) {
        DPI_TRY(read_choice(object, p->key, p->choices, &value, err));
    } else {
        DPI_TRY(read_int(object, p->key, 0, INT32_MAX, &i, err));
        value = (int32_t)i;
    }
    memcpy(at, &value, sizeof value);
    return DPI_STATUS_OK;
}

static dpi_status read_given(const json_t *object, int32_t *given, dpi_error *err) {
    const char *names[] = {dpi_pace_given_name(DPI_PACE_GIVEN_THETA),
                           dpi_pace_given_name(DPI_PACE_GIVEN_TOKENS), NULL};
    DPI_TRY(read_choice(object, "pace_given", names, given, err));
    ++*given;
    return DPI_STATUS_OK;
}

/* What is not in dpi_sampler_options. */
static dpi_status read_rest(const json_t *object, dpi_claim *c, dpi_error *err) {
    int64_t n_texts = 0;
    const char *kinds[MAX_KINDS + 1];
    const json_t *n_records = json_object_get(object, "n_records");
    const json_t *in_prompt = json_object_get(object, "record_in_prompt");
    const json_t *pace_texts = json_object_get(object, "pace_texts");
    const json_t *given = json_object_get(object, "pace_given");
    int64_t n_pace_texts = 0;
    DPI_TRY(read_int(object, "n_texts", 1, INT32_MAX, &n_texts, err));
    list_kinds(kinds);
    DPI_TRY(read_choice(object, "unit", kinds, &c->record_kind, err));
    DPI_TRY(read_choice(object, "randomness", RANDOMNESS, &c->randomness, err));
    if (!json_is_boolean(in_prompt))
        return refuse("record_in_prompt", in_prompt, "true or false", err);
    if (!json_is_null(n_records))
        DPI_TRY(read_int(object, "n_records", 1, INT32_MAX, &c->n_records, err));
    if (!json_is_null(pace_texts))
        DPI_TRY(read_int(object, "pace_texts", 1, INT32_MAX, &n_pace_texts, err));
    if (given && !json_is_null(given)) /* reports before it have no such key */
        DPI_TRY(read_given(object, &c->pace_given, err));
    c->n_texts = (int32_t)n_texts;
    c->pace_texts = (int32_t)n_pace_texts;
    c->record_in_prompt = json_is_true(in_prompt);
    return DPI_STATUS_OK;
}

/* 16 digits; reports before grammars have no such key. */
static dpi_status read_grammar(const json_t *object, dpi_claim *c, dpi_error *err) {
    const json_t *found = json_object_get(object, "grammar");
    const char *digest = json_string_value(found);
    if (!found || json_is_null(found))
        return DPI_STATUS_OK;
    if (!digest || !dpi_claim_is_digest(digest))
        return refuse("grammar", found, "16 hexadecimal digits, or null", err);
    snprintf(c->grammar, sizeof c->grammar, "%s", digest);
    return DPI_STATUS_OK;
}

/* histogram_variance: in units of 1/256. */
static dpi_status read_labels(const json_t *object, dpi_claim *c, dpi_error *err) {
    static const char *const readings[] = {"public", "private", NULL};
    int64_t n = 0, variance = 0, n_texts = 0;
    const json_t *value = json_object_get(object, "histogram_variance");
    const json_t *labels = json_object_get(object, "labels");
    if (value && !json_is_null(value)) /* reports before labels have neither */
        DPI_TRY(read_int(object, "histogram_variance", 1, INT32_MAX, &variance, err));
    const json_t *texts = json_object_get(object, "cluster_texts");
    if (texts && !json_is_null(texts)) /* reports before groups of records have none */
        DPI_TRY(read_int(object, "cluster_texts", 1, INT32_MAX, &n_texts, err));
    c->histogram = (int32_t)variance;
    c->cluster_texts = (int32_t)n_texts;
    if (!labels || json_is_null(labels))
        return DPI_STATUS_OK;
    DPI_TRY(read_choice(object, "labels", readings, &c->labels, err));
    DPI_TRY(read_int(object, "n_labels", 1, INT32_MAX, &n, err));
    c->labels++;
    c->n_labels = (int32_t)n;
    return DPI_STATUS_OK;
}

static dpi_status read_real(const json_t *object, const char *key, double *value, dpi_error *err) {
    const json_t *found = json_object_get(object, key);
    if (!json_is_number(found))
        return refuse(key, found, "a number", err);
    *value = json_number_value(found);
    return DPI_STATUS_OK;
}

/* What is charged, and what is left, is computed (verify.c). */
static dpi_status read_ledger(const json_t *object, dpi_claim_ledger *l, dpi_error *err) {
    static const char *const scopes[] = {"dataset", "unit", NULL};
    const json_t *name = json_object_get(object, "ledger_dataset");
    int64_t order = 0;
    double before = 0;
    if (json_is_null(name))
        return DPI_STATUS_OK;
    if (!json_is_string(name) || json_string_length(name) == 0 ||
        json_string_length(name) > DPI_DATASET_NAME_MAX)
        return refuse("ledger_dataset", name, "a name of 1..63 bytes, or null", err);
    snprintf(l->dataset, sizeof l->dataset, "%s", json_string_value(name));
    DPI_TRY(read_choice(object, "ledger_scope", scopes, &l->scope, err));
    DPI_TRY(read_real(object, "ledger_epsilon", &l->epsilon, err));
    DPI_TRY(read_real(object, "ledger_delta", &l->delta, err));
    DPI_TRY(read_int(object, "ledger_order", 2, DPI_RENYI_ORDER_MAX, &order, err));
    DPI_TRY(read_real(object, "ledger_before", &before, err));
    if (!(before >= 0 && before <= 2e6))
        return refuse("ledger_before", json_object_get(object, "ledger_before"), "0..2e+06", err);
    l->order = (int32_t)order;
    l->before = llrint(before * DPI_LEDGER_ONE);
    return DPI_STATUS_OK;
}

dpi_status dpi_report_read_parameters(const json_t *object, dpi_claim *c, dpi_error *err) {
    dpi_sampler_options *o = &c->method;
    const char *names[MAX_METHODS + 1];
    int32_t method = 0;
    dpi_claim_init(c);
    list_methods(names);
    if (!json_is_object(object))
        return dpi_fail(err, DPI_STATUS_FORMAT, "there is no section 'parameters'");
    DPI_TRY(read_choice(object, "method", names, &method, err));
    DPI_TRY(dpi_method_defaults(method, o, err));
    for (int32_t i = 0; i < dpi_method_parameter_count(method); i++)
        DPI_TRY(read_parameter(dpi_method_parameter_get(method, i), object, o, err));
    DPI_TRY(read_rest(object, c, err));
    DPI_TRY(read_labels(object, c, err));
    DPI_TRY(read_grammar(object, c, err));
    DPI_TRY(read_ledger(object, &c->ledger, err));
    o->n_ref = o->denominator; /* the plan needs no more than that it is in range */
    o->acknowledge_not_dp = dpi_method_get(method)->needs_acknowledgement;
    return DPI_STATUS_OK;
}
