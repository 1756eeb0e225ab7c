#include "pipeline/claim/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "pipeline/journal/json_text.h"

void dpi_verification_init(dpi_verification *result) {
    *result = (dpi_verification){.struct_size = sizeof *result};
}

void dpi_verification_free(dpi_verification *result) {
    free(result->fields);
    result->fields = NULL;
    result->n_fields = 0;
}

typedef struct comparison {
    const dpi_compare_rules *rules;
    dpi_verification *result;
    bool failed; /* out of memory */
} comparison;

/* One line of a value, without what would steer a terminal. False if out of memory. */
static bool show(const json_t *value, char *text, size_t size) {
    size_t n;
    if (!value) {
        snprintf(text, size, "(none)");
    } else if (json_is_real(value)) {
        for (int digits = 15; digits <= 17; digits++) {
            dpi_format(text, size, "%.*g", digits, json_real_value(value));
            if (dpi_strtod(text, NULL) == json_real_value(value))
                break;
        }
    } else {
        char *dump = dpi_json_text(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT, &n);
        if (!dump)
            return false;
        snprintf(text, size, "%s", dump);
        if (n >= size)
            memcpy(text + size - 4, "...", 4);
        for (char *at = text; *at; at++) /* jansson escapes all other control characters */
            *at = *at == 0x7f ? '?' : *at;
        free(dump);
    }
    return true;
}

/* An epsilon that was searched for may be above the one that another library of transforms finds,
 * by what the search leaves. */
static bool is_searched(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".epsilon") == 0;
}

/* Reals may differ by what another mathematical library makes of them. */
static bool is_same(const json_t *a, const json_t *b, const char *path) {
    if (json_is_real(b) && json_is_number(a)) {
        const double x = json_number_value(a), y = json_real_value(b);
        const double above = is_searched(path) ? 1e-6 : 2e-9;
        if (strstr(path, ".certificate_")) /* computed on a grid */
            return fabs(x - y) <= 1e-6;
        return x == y || (x - y <= above * fabs(y) && y - x <= 2e-9 * fabs(y));
    }
    return a && b && json_equal(a, b);
}

/* A power of two is reached: the room is doubled. */
static dpi_verified_field *add_field(dpi_verification *v) {
    const size_t n = v->n_fields;
    if ((n & (n - 1)) == 0) {
        dpi_verified_field *grown = realloc(v->fields, (n ? 2 * n : 1) * sizeof *grown);
        if (!grown)
            return NULL;
        v->fields = grown;
    }
    v->fields[v->n_fields] = (dpi_verified_field){0};
    return &v->fields[v->n_fields++];
}

static void judge(dpi_verification *v, dpi_verified_field *f, int32_t verdict) {
    f->verdict = verdict;
    v->n_ok += verdict == DPI_VERDICT_OK;
    v->n_wrong += verdict == DPI_VERDICT_WRONG;
}

static void compare_leaf(comparison *c, const char *path, const json_t *recorded,
                         const json_t *computed) {
    const bool same = is_same(recorded, computed, path);
    dpi_verified_field *f = add_field(c->result);
    if (!f || !show(recorded, f->recorded, sizeof f->recorded) ||
        !show(computed, f->computed, sizeof f->computed)) {
        c->failed = true;
        return;
    }
    snprintf(f->path, sizeof f->path, "%s", path);
    judge(c->result, f,
          !same                                    ? DPI_VERDICT_WRONG
          : c->rules->is_given(c->result, path) ? DPI_VERDICT_GIVEN
                                                   : DPI_VERDICT_OK);
    if (f->verdict == DPI_VERDICT_OK && json_is_string(computed))
        snprintf(f->computed, sizeof f->computed, "the same");
}

static void compare(comparison *c, const char *path, const json_t *recorded,
                    const json_t *computed);

/* A key that may be anything, behind the path. */
static void compare_key(comparison *c, const char *path, const char *key, const json_t *recorded,
                        const json_t *computed) {
    char longer[128];
    snprintf(longer, sizeof longer, "%s%s%.40s", path, path[0] ? "." : "", key);
    for (char *at = longer; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            *at = '?';
    compare(c, longer, recorded, computed);
}

static void compare(comparison *c, const char *path, const json_t *recorded,
                    const json_t *computed) {
    const char *key;
    json_t *value;
    if (json_is_object(recorded) && json_is_object(computed)) {
        json_object_foreach((json_t *)computed, key, value)
            compare_key(c, path, key, json_object_get(recorded, key), value);
        json_object_foreach((json_t *)recorded, key, value)
            if (!json_object_get(computed, key))
                compare_key(c, path, key, value, NULL);
    } else if (json_is_array(recorded) && json_is_array(computed)) {
        const size_t n = json_array_size(recorded), m = json_array_size(computed);
        for (size_t i = 0; i < (n > m ? n : m); i++) {
            char longer[160];
            snprintf(longer, sizeof longer, "%s[%zu]", path, i);
            compare(c, longer, json_array_get(recorded, i), json_array_get(computed, i));
        }
    } else {
        compare_leaf(c, path, recorded, computed);
    }
}

static dpi_status no_memory(dpi_verification *result, dpi_error *err) {
    dpi_verification_free(result);
    return dpi_no_memory(err, "the fields of the report");
}

dpi_status dpi_compare(const json_t *recorded, const json_t *computed,
                       const dpi_compare_rules *rules, dpi_verification *result, dpi_error *err) {
    comparison c = {.rules = rules, .result = result};
    compare(&c, "", recorded, computed);
    return c.failed ? no_memory(result, err) : DPI_STATUS_OK;
}

dpi_status dpi_compare_add(dpi_verification *result, const char *path, int32_t verdict,
                           const char *found, const char *needed, dpi_error *err) {
    dpi_verified_field *f = add_field(result);
    if (!f)
        return no_memory(result, err);
    snprintf(f->path, sizeof f->path, "%s", path);
    snprintf(f->recorded, sizeof f->recorded, "%s", found);
    snprintf(f->computed, sizeof f->computed, "%s", needed);
    judge(result, f, verdict);
    return DPI_STATUS_OK;
}
