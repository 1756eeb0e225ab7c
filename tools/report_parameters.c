/* report_parameters.c - the section `parameters` of a report, to and from a job: one table for
 * both ways. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "tools/facts.h"
#include "tools/records.h"
#include "tools/report.h"

/* ---- The table ------------------------------------------------------------------------------ */

enum {
    PLAIN = 1 << DPI_METHOD_PLAIN,
    AMIN = 1 << DPI_METHOD_AMIN,
    ADAPMIXED = 1 << DPI_METHOD_ADAPMIXED,
    PROVEN = 1 << DPI_METHOD_INVISIBLEINK | AMIN, /* methods that have a guarantee */
    WITH_RECORDS = PROVEN | ADAPMIXED,
    EVERY = WITH_RECORDS | PLAIN,
};

/* A field of dpi_sampler_options. */
typedef struct parameter {
    const char *key;
    enum { INT, REAL, FLAG, CHOICE } type;
    size_t offset;
    int methods;               /* that have it */
    bool optional;             /* 0 is written as null: not used, or the method's default */
    const char *const *names;  /* CHOICE: NULL-terminated, in the order of the enum */
} parameter;

static const char *const METHODS[] = {"plain", "invisibleink", "amin", "adapmixed", NULL};
static const char *const ACCOUNTANTS[] = {"zcdp", "br", "filter", NULL};
static const char *const ADJACENCIES[] = {"replace-by-null", "add-remove", "zero-out", NULL};

#define AT(field) offsetof(dpi_sampler_options, field)
static const parameter parameters[] = {
    {"accountant", CHOICE, AT(accountant), PROVEN, false, ACCOUNTANTS},
    {"adjacency", CHOICE, AT(adjacency), PROVEN, false, ADJACENCIES},
    {"budget_rho", REAL, AT(rho), WITH_RECORDS, true, NULL},
    {"budget_epsilon", REAL, AT(epsilon), WITH_RECORDS, true, NULL},
    {"budget_delta", REAL, AT(delta), WITH_RECORDS, false, NULL},
    {"subsample", REAL, AT(subsample), PROVEN, true, NULL},
    {"T", INT, AT(n_tokens), EVERY, false, NULL},
    {"B", INT, AT(denominator), WITH_RECORDS, false, NULL},
    {"tau", REAL, AT(tau), EVERY, false, NULL},
    {"top_k", INT, AT(top_k), EVERY, false, NULL},
    {"n_vocab", INT, AT(n_vocab), EVERY, false, NULL},
    {"clip", REAL, AT(clip), PROVEN, true, NULL},
    {"center", FLAG, AT(center), PROVEN, false, NULL},
    {"n_private", INT, AT(n_private), AMIN, true, NULL},
    {"threshold", REAL, AT(svt_threshold), AMIN, false, NULL},
    {"sigma", REAL, AT(svt_sigma), AMIN, true, NULL},
    {"threshold", REAL, AT(screen_threshold), ADAPMIXED, false, NULL},
    {"sigma", REAL, AT(screen_sigma), ADAPMIXED, true, NULL},
    {"tau_public", REAL, AT(tau_public), AMIN, true, NULL},
};
enum { N_PARAMETERS = sizeof parameters / sizeof *parameters };

static const char *const RANDOMNESS[] = {"getrandom", "seed", NULL};

bool report_tells_n_records(const job *j) {
    return j->sampler.adjacency != DPI_ADJACENCY_ADD_REMOVE && (!j->plain || j->reference >= 0);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static json_t *write_parameter(const parameter *p, const dpi_sampler_options *o) {
    const char *at = (const char *)o + p->offset;
    int32_t i;
    double x;
    if (p->type == REAL) {
        memcpy(&x, at, sizeof x);
        return p->optional && x == 0 ? json_null() : json_real(x);
    }
    memcpy(&i, at, sizeof i);
    return p->optional && i == 0 ? json_null()
           : p->type == INT      ? json_integer(i)
           : p->type == FLAG     ? json_boolean(i)
                                 : json_string(p->names[i]);
}

json_t *report_parameters(const job *j) {
    const int32_t method = j->sampler.method;
    json_t *object = json_pack("{s:s}", "method", METHODS[method]);
    bool ok = object;
    for (size_t i = 0; i < N_PARAMETERS && ok; i++)
        if (parameters[i].methods >> method & 1)
            ok = json_object_set_new(object, parameters[i].key,
                                     write_parameter(&parameters[i], &j->sampler)) == 0;
    json_t *rest = json_pack("{s:i, s:o, s:s, s:b, s:s}",
        "n_texts", j->n_texts,
        "n_records", report_tells_n_records(j) ? json_integer(j->n_records) : json_null(),
        "unit", j->unit,
        "record_in_prompt", !j->plain || j->reference >= 0,
        "randomness", RANDOMNESS[j->sampler.random != NULL]);
    ok = ok && rest && json_object_update(object, rest) == 0;
    json_decref(rest);
    if (!ok) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* ---- Reading: the file comes from anywhere -------------------------------------------------- */

static int refuse(const char *key, const json_t *found, const char *allowed) {
    if (!found)
        return cli_fail(CLI_REPORT, "parameters.%s is missing, must be %s", key, allowed);
    char *text = json_dumps(found, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
    int code = cli_fail(CLI_REPORT, "parameters.%s is %.60s, must be %s", key, text ? text : "?",
                        allowed);
    private_free(text);
    return code;
}

static int read_int(const json_t *object, const char *key, int64_t min, int64_t max,
                    int64_t *value) {
    const json_t *found = json_object_get(object, key);
    if (json_is_integer(found) && json_integer_value(found) >= min &&
        json_integer_value(found) <= max) {
        *value = json_integer_value(found);
        return CLI_OK;
    }
    char allowed[80];
    snprintf(allowed, sizeof allowed, "an integer %" PRId64 "..%" PRId64, min, max);
    return refuse(key, found, allowed);
}

static int read_choice(const json_t *object, const char *key, const char *const *names,
                       int32_t *index) {
    const json_t *found = json_object_get(object, key);
    char allowed[160] = "one of:";
    for (int32_t i = 0; names[i]; i++) {
        if (json_is_string(found) && strcmp(json_string_value(found), names[i]) == 0) {
            *index = i;
            return CLI_OK;
        }
        size_t n = strlen(allowed);
        snprintf(allowed + n, sizeof allowed - n, "%s %s", i > 0 ? "," : "", names[i]);
    }
    return refuse(key, found, allowed);
}

static int read_parameter(const parameter *p, const json_t *object, dpi_sampler_options *o) {
    const json_t *found = json_object_get(object, p->key);
    char *at = (char *)o + p->offset;
    int64_t i = 0;
    int32_t value = 0;
    int code = CLI_OK;
    if (p->optional && json_is_null(found))
        return CLI_OK; /* 0 already */
    if (p->type == REAL) {
        if (!json_is_number(found))
            return refuse(p->key, found, p->optional ? "a number, or null" : "a number");
        double x = json_number_value(found);
        memcpy(at, &x, sizeof x);
        return CLI_OK;
    }
    if (p->type == FLAG) {
        if (!json_is_boolean(found))
            return refuse(p->key, found, "true or false");
        value = json_is_true(found);
    } else if (p->type == CHOICE) {
        code = read_choice(object, p->key, p->names, &value);
    } else {
        code = read_int(object, p->key, 0, INT32_MAX, &i);
        value = (int32_t)i;
    }
    memcpy(at, &value, sizeof value);
    return code;
}

/* What is not in dpi_sampler_options. */
static int read_rest(const json_t *object, job *j) {
    int64_t n_texts = 0;
    int32_t unit = 0, seeded = 0;
    const json_t *n_records = json_object_get(object, "n_records");
    const json_t *in_prompt = json_object_get(object, "record_in_prompt");
    int code = read_int(object, "n_texts", 1, INT32_MAX, &n_texts);
    if (code == CLI_OK)
        code = read_choice(object, "unit", records_units, &unit);
    if (code == CLI_OK)
        code = read_choice(object, "randomness", RANDOMNESS, &seeded);
    if (code == CLI_OK && !json_is_boolean(in_prompt))
        code = refuse("record_in_prompt", in_prompt, "true or false");
    if (code == CLI_OK && !json_is_null(n_records))
        code = read_int(object, "n_records", 1, INT32_MAX, &j->n_records);
    j->n_texts = (int32_t)n_texts;
    j->unit = records_units[unit];
    j->reference = json_is_true(in_prompt) ? 0 : -1;
    if (seeded)
        j->sampler.random = dpi_random_insecure;
    return code;
}

int report_read_parameters(const json_t *object, job *j) {
    *j = (job){0};
    dpi_sampler_options *o = &j->sampler;
    dpi_sampler_options_init(o);
    if (!json_is_object(object))
        return cli_fail(CLI_REPORT, "there is no section 'parameters'");
    int code = read_choice(object, "method", METHODS, &o->method);
    for (size_t i = 0; i < N_PARAMETERS && code == CLI_OK; i++)
        if (parameters[i].methods >> o->method & 1)
            code = read_parameter(&parameters[i], object, o);
    if (code == CLI_OK)
        code = read_rest(object, j);
    j->plain = o->method == DPI_METHOD_PLAIN;
    j->delta = o->delta;
    j->assigned = o->adjacency == DPI_ADJACENCY_ADD_REMOVE || o->subsample > 0;
    o->n_ref = o->denominator; /* the plan asks for no more than that it is in range */
    o->acknowledge_not_dp = o->method == DPI_METHOD_ADAPMIXED;
    job_set_private(j);
    return code;
}
