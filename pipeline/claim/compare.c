#include "pipeline/claim/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"
#include "base/struct.h"
#include "pipeline/journal/json_text.h"

DPI_STRUCT_DEFAULTS(dpi_verification, 0)

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

static bool compare_leaf(void *user, const char *path, const json_t *recorded,
                         const json_t *computed) {
    comparison *c = user;
    const bool same = is_same(recorded, computed, path);
    dpi_verified_field *f = add_field(c->result);
    if (!f || !show(recorded, f->recorded, sizeof f->recorded) ||
        !show(computed, f->computed, sizeof f->computed)) {
        c->failed = true;
        return true;
    }
    snprintf(f->path, sizeof f->path, "%s", path);
    judge(c->result, f,
          !same                                    ? DPI_VERDICT_WRONG
          : c->rules->is_given(c->result, path) ? DPI_VERDICT_GIVEN
                                                   : DPI_VERDICT_OK);
    if (f->verdict == DPI_VERDICT_OK && json_is_string(computed))
        snprintf(f->computed, sizeof f->computed, "the same");
    return false;
}

/* ---- Two values, part by part ---------------------------------------------------------------- */

/* Takes a value that has no parts, or of which one side alone has them. True: it is the last. */
typedef bool (*leaf_fn)(void *user, const char *path, const json_t *a, const json_t *b);

typedef struct walk {
    leaf_fn on_leaf;
    void *user;
} walk;

static bool go(const walk *w, const char *path, const json_t *a, const json_t *b);

/* A key that may be anything, behind the path. */
static bool go_to_key(const walk *w, const char *path, const char *key, const json_t *a,
                      const json_t *b) {
    char longer[DPI_JSON_PATH_MAX];
    snprintf(longer, sizeof longer, "%.110s%s%.40s", path, path[0] ? "." : "", key);
    for (char *at = longer; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            *at = '?';
    return go(w, longer, a, b);
}

static bool go_to_keys(const walk *w, const char *path, const json_t *a, const json_t *b) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)b, key, value)
        if (go_to_key(w, path, key, json_object_get(a, key), value))
            return true;
    json_object_foreach((json_t *)a, key, value)
        if (!json_object_get(b, key) && go_to_key(w, path, key, value, NULL))
            return true;
    return false;
}

static bool go_to_items(const walk *w, const char *path, const json_t *a, const json_t *b) {
    const size_t n = json_array_size(a), m = json_array_size(b);
    for (size_t i = 0; i < (n > m ? n : m); i++) {
        char longer[DPI_JSON_PATH_MAX];
        snprintf(longer, sizeof longer, "%.130s[%zu]", path, i);
        if (go(w, longer, json_array_get(a, i), json_array_get(b, i)))
            return true;
    }
    return false;
}

static bool go(const walk *w, const char *path, const json_t *a, const json_t *b) {
    return json_is_object(a) && json_is_object(b) ? go_to_keys(w, path, a, b)
           : json_is_array(a) && json_is_array(b) ? go_to_items(w, path, a, b)
                                                  : w->on_leaf(w->user, path, a, b);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static dpi_status no_memory(dpi_verification *result, dpi_error *err) {
    dpi_verification_free(result);
    return dpi_no_memory(err, "the fields of the report");
}

dpi_status dpi_compare(const json_t *recorded, const json_t *computed,
                       const dpi_compare_rules *rules, dpi_verification *result, dpi_error *err) {
    comparison c = {.rules = rules, .result = result};
    const walk w = {compare_leaf, &c};
    go(&w, "", recorded, computed);
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

/* ---- The first difference -------------------------------------------------------------------- */

typedef struct difference {
    char *path;
    const json_t **values;
    bool found, may_follow;
} difference;

/* What a plan finds by itself where it is not given: it may only follow from another value. */
static bool may_follow(const char *path) {
    const char *dot = strrchr(path, '.'), *key = dot ? dot + 1 : path;
    return strcmp(key, "runs") == 0 || strncmp(key, "pace", 4) == 0;
}

static bool find_leaf(void *user, const char *path, const json_t *before, const json_t *now) {
    difference *d = user;
    const bool follows = may_follow(path);
    if ((before && now && json_equal(before, now)) || (follows && d->may_follow))
        return false;
    snprintf(d->path, DPI_JSON_PATH_MAX, "%s", path);
    d->values[0] = before, d->values[1] = now;
    d->found = true, d->may_follow = follows;
    return !follows;
}

bool dpi_json_difference(const json_t *before, const json_t *now, char path[DPI_JSON_PATH_MAX],
                         const json_t *values[2]) {
    difference d = {.path = path, .values = values};
    const walk w = {find_leaf, &d};
    go(&w, "", before, now);
    return d.found;
}
