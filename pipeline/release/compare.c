#include "pipeline/release/compare.h"

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

bool dpi_compare_bound(double recorded, double computed) {
    return (isinf(recorded) && isinf(computed)) ||
           (recorded >= computed * (1 - 1e-9) && recorded <= computed * (1 + 1e-3));
}

/* Reals may differ by what another mathematical library, or the end of a search, makes of them. A
 * report of an older version has no key for what it did not know: null says that it was not
 * used. */
static bool is_same(const json_t *a, const json_t *b, bool is_bound) {
    if (!a && json_is_null(b))
        return true;
    if (json_is_real(b) && json_is_number(a)) {
        const double x = json_number_value(a), y = json_real_value(b);
        return is_bound ? dpi_compare_bound(x, y) : x == y || fabs(x - y) <= 2e-9 * fabs(y);
    }
    return a && b && json_equal(a, b);
}

/* A report of an earlier version says "-0.0 %" of a budget of which nothing was spent. */
static bool is_same_but_sign(const json_t *recorded, const json_t *computed) {
    static const char none[] = "Before this run -0.0 %";
    const char *a = json_string_value(recorded), *b = json_string_value(computed);
    const char *at = a && b ? strstr(a, none) : NULL;
    const size_t n = at ? (size_t)(strchr(at, '-') - a) : 0;
    return at && strncmp(a, b, n) == 0 && strcmp(a + n + 1, b + n) == 0;
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
    const bool is_bound = c->rules->is_bound && c->rules->is_bound(path);
    const bool same =
        is_same(recorded, computed, is_bound) || is_same_but_sign(recorded, computed);
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
