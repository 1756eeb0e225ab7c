/* structure.c - see structure.h. */
#include "eval/structure.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/variation.h"

enum { DEPTH_MAX = 16, SEEN_MAX = 1 << 24, NAME_BYTES = 256, BIN_BYTES = 64 };

/* What one text has in one field. */
typedef struct seen {
    char *name, *value; /* value: as text; of a number NULL */
    double number;
    int32_t set, object; /* of the set's objects, which one */
} seen;

typedef struct all_seen {
    seen *at; /* [n], private */
    size_t n, capacity;
} all_seen;

static char *copy(const char *text) {
    const size_t n = strlen(text) + 1;
    char *own = dpi_private_malloc(n);
    return own ? memcpy(own, text, n) : NULL;
}

/* A text that snprintf has cut to `size` ends with a whole character. */
static void end_whole(char *text, int n_bytes, size_t size) {
    if ((size_t)n_bytes < size)
        return;
    char *end = text + size - 1;
    while (end > text && ((unsigned char)end[-1] & 0xc0) == 0x80)
        end--;
    if (end > text && (unsigned char)end[-1] >= 0xc0)
        end--;
    *end = '\0';
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The set that is being read, and the object. */
typedef struct place {
    int32_t set, object;
} place;

static dpi_status add_seen(all_seen *a, place at, const char *name, const char *value,
                           double number, dpi_error *err) {
    if (a->n == SEEN_MAX)
        return eval_fail(err, DPI_STATUS_LIMIT, "fields of all texts: more than %d", SEEN_MAX);
    if (!dpi_private_grow(&a->at, &a->capacity, a->n + 1, sizeof *a->at))
        return eval_no_memory(err, "the fields of texts");
    seen *s = &a->at[a->n++];
    *s = (seen){copy(name), value ? copy(value) : NULL, number, at.set, at.object};
    return s->name && (s->value || !value) ? DPI_STATUS_OK
                                           : eval_no_memory(err, "the fields of texts");
}

/* One value that is no object with fields. */
static dpi_status add_value(all_seen *a, place at, const char *name, const json_t *value,
                            dpi_error *err) {
    char list[NAME_BYTES + 2];
    if (json_is_number(value))
        return add_seen(a, at, name, NULL, json_number_value(value), err);
    if (json_is_array(value)) {
        snprintf(list, sizeof list, "%s[]", name);
        return add_seen(a, at, list, NULL, (double)json_array_size(value), err);
    }
    return add_seen(a, at, name,
                    json_is_string(value)  ? json_string_value(value)
                    : json_is_true(value)  ? "true"
                    : json_is_false(value) ? "false"
                    : json_is_null(value)  ? "null"
                                           : "{}",
                    0, err);
}

/* To DEPTH_MAX. */
static dpi_status add_object(all_seen *a, place at, const char *outer, const json_t *object,
                             int32_t depth, dpi_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        char name[NAME_BYTES];
        end_whole(name, snprintf(name, sizeof name, "%s%s%s", outer, outer[0] ? "." : "", key),
                  sizeof name);
        if (json_is_object(value) && json_object_size(value) > 0 && depth < DEPTH_MAX)
            EVAL_TRY(add_object(a, at, name, value, depth + 1, err));
        else
            EVAL_TRY(add_value(a, at, name, value, err));
    }
    return DPI_STATUS_OK;
}

static dpi_status read_text(const eval_text *t, int32_t set, const dpi_grammar *grammar,
                            eval_structure *s, all_seen *a, dpi_error *err) {
    json_error_t error;
    int32_t accepts = 0;
    if (grammar)
        EVAL_TRY(dpi_grammar_accepts(grammar, t->text, t->n_bytes, &accepts, err));
    s->n_accepted[set] += accepts;
    json_t *json =
        json_loadb(t->text, t->n_bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return DPI_STATUS_OK;
    dpi_status status = DPI_STATUS_OK;
    s->n_json[set]++;
    s->n_arrays += json_is_array(json);
    if (json_is_object(json)) {
        status = add_object(a, (place){set, s->n_objects[set]++}, "", json, 1, err);
    }
    json_decref(json);
    return status;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static int compare_seen(const void *a, const void *b) {
    const seen *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    if (names != 0)
        return names;
    if (!x->value || !y->value)
        return x->value || y->value ? (x->value != NULL) - (y->value != NULL)
                                    : (x->number > y->number) - (x->number < y->number);
    return strcmp(x->value, y->value);
}

static bool is_same_value(const seen *x, const seen *y) {
    return x->value && y->value ? strcmp(x->value, y->value) == 0
                                : !x->value && !y->value && x->number == y->number;
}

static void name_value(const seen *s, char text[BIN_BYTES]) {
    if (s->value)
        end_whole(text, snprintf(text, BIN_BYTES, "%s", s->value), BIN_BYTES);
    else
        snprintf(text, BIN_BYTES, "%.6g", s->number);
}

/* The bins in the order of how often they are seen; the last one has what there is no room for. */
static bool add_bin(eval_field *f, const char *name, double synthetic, double real) {
    const bool last = f->n_bins == EVAL_FIELD_BINS;
    const int32_t b = last ? EVAL_FIELD_BINS - 1 : f->n_bins++;
    if (last) {
        dpi_private_free(f->bin[b]);
        name = "other";
    }
    f->bin[b] = copy(name);
    f->share[0][b] += synthetic;
    f->share[1][b] += real;
    return f->bin[b];
}

/* A value that several texts may have. */
typedef struct counted {
    const seen *value;
    double share[2];
} counted;

static int compare_counted(const void *a, const void *b) {
    const counted *x = a, *y = b;
    const double p = x->share[0] + x->share[1], q = y->share[0] + y->share[1];
    return p != q ? (p < q) - (p > q) : (x->value > y->value) - (x->value < y->value);
}

/* Where a field's cells of each set are. */
typedef struct cells {
    int32_t *of[2];
} cells;

static void set_cell(cells *c, const seen *s, int32_t cell) { c->of[s->set][s->object] = cell + 1; }

/* seen [n] of one field, sorted: a bin for each value. */
static dpi_status fill_values(eval_field *f, const seen *s, size_t n, size_t n_values,
                              const double n_objects[2], cells *c, dpi_error *err) {
    counted *value = dpi_private_malloc(n_values * sizeof *value);
    size_t k = 0;
    bool ok = value;
    for (size_t i = 0; i < n && ok; i++) {
        if (i == 0 || !is_same_value(&s[i], &s[i - 1]))
            value[k++] = (counted){.value = &s[i]};
        value[k - 1].share[s[i].set]++;
        set_cell(c, &s[i], (int32_t)k - 1);
    }
    f->n_cells = (int32_t)k;
    for (size_t i = 0; i < n_values && ok; i++)
        for (int set = 0; set < 2; set++)
            value[i].share[set] /= n_objects[set];
    if (ok)
        qsort(value, n_values, sizeof *value, compare_counted);
    for (size_t i = 0; i < n_values && ok; i++) {
        char name[BIN_BYTES];
        name_value(value[i].value, name);
        ok = add_bin(f, name, value[i].share[0], value[i].share[1]);
    }
    dpi_private_free(value);
    return ok ? DPI_STATUS_OK : eval_no_memory(err, "the fields of texts");
}

static double count_words(const char *text) {
    int32_t n = 0;
    for (const char *c = text; *c; c++)
        n += (unsigned char)*c > ' ' && (unsigned char)c[1] <= ' ';
    return n;
}

static double number_of(const eval_field *f, const seen *s) {
    return f->kind == EVAL_FIELD_NUMBERS ? s->number : s->value ? count_words(s->value) : 1;
}

/* The same, with bins from the least to the largest number. */
static dpi_status fill_numbers(eval_field *f, const seen *s, size_t n, const double n_objects[2],
                               cells *c, dpi_error *err) {
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        least = fmin(least, number_of(f, &s[i]));
        most = fmax(most, number_of(f, &s[i]));
    }
    const double width = (most - least) / EVAL_FIELD_BINS;
    for (int32_t b = 0; b < EVAL_FIELD_BINS; b++) {
        char name[BIN_BYTES];
        snprintf(name, sizeof name, "%.4g .. %.4g", least + b * width, least + (b + 1) * width);
        if (!add_bin(f, name, 0, 0))
            return eval_no_memory(err, "the fields of texts");
    }
    for (size_t i = 0; i < n; i++) {
        const double from_least = width > 0 ? (number_of(f, &s[i]) - least) / width : 0;
        const int32_t b =
            from_least >= EVAL_FIELD_BINS ? EVAL_FIELD_BINS - 1 : (int32_t)from_least;
        f->share[s[i].set][b]++;
        set_cell(c, &s[i], b);
    }
    for (int32_t b = 0; b < EVAL_FIELD_BINS; b++)
        for (int set = 0; set < 2; set++)
            f->share[set][b] /= n_objects[set];
    f->n_cells = EVAL_FIELD_BINS;
    return DPI_STATUS_OK;
}

/* One field of seen [n], sorted. */
static dpi_status fill_field(const eval_structure *st, const seen *s, size_t n, eval_field *f,
                             cells *c, dpi_error *err) {
    const double n_objects[2] = {fmax(st->n_objects[0], 1), fmax(st->n_objects[1], 1)};
    size_t n_values = 0, n_numbers = 0;
    *f = (eval_field){.name = copy(s[0].name), .tv_low = NAN, .tv_high = NAN};
    if (!f->name)
        return eval_no_memory(err, "the fields of texts");
    for (size_t i = 0; i < n; i++) {
        f->present[s[i].set]++;
        n_numbers += !s[i].value;
        n_values += i == 0 || !is_same_value(&s[i], &s[i - 1]);
    }
    f->present[0] /= n_objects[0], f->present[1] /= n_objects[1];
    if (n_values > EVAL_FIELD_BINS && n_numbers == n)
        f->kind = EVAL_FIELD_NUMBERS;
    else if (n_values > EVAL_FIELD_BINS && 2 * n_values > n)
        f->kind = EVAL_FIELD_WORDS;
    return f->kind == EVAL_FIELD_VALUES ? fill_values(f, s, n, n_values, n_objects, c, err)
                                        : fill_numbers(f, s, n, n_objects, c, err);
}

static cells cells_of(const eval_structure *s, int32_t field) {
    cells c;
    for (int32_t k = 0; k < 2; k++)
        c.of[k] = s->cell[k] + (int64_t)field * s->n_objects[k];
    return c;
}

double eval_field_variation(const eval_structure *s, int32_t field,
                            const int32_t *const which[2], double *count) {
    const cells c = cells_of(s, field);
    const int32_t n_cells = s->field[field].n_cells + 1;
    memset(count, 0, 2 * (size_t)n_cells * sizeof *count);
    for (int32_t k = 0; k < 2; k++) {
        const int32_t n = s->n_objects[k];
        double *own = count + k * n_cells;
        if (n == 0)
            own[0] = 1;
        for (int32_t i = 0; i < n; i++)
            own[c.of[k][which[k] ? which[k][i] : i]] += 1. / n;
    }
    return eval_variation(count, count + n_cells, n_cells);
}

/* ---- The most frequent ones ------------------------------------------------------------------ */

/* The part of all that is seen that is one field. */
typedef struct part {
    size_t first, n;
} part;

static int compare_part(const void *a, const void *b) {
    const part *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n)
                        : (x->first > y->first) - (x->first < y->first);
}

static int compare_first(const void *a, const void *b) {
    const part *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Total variations of all fields. */
static dpi_status find_variations(eval_structure *s, dpi_error *err) {
    static const int32_t *const once[2] = {NULL, NULL};
    for (int32_t i = 0; i < s->n_fields; i++) {
        eval_field *f = &s->field[i];
        double *count = dpi_private_malloc(2 * ((size_t)f->n_cells + 1) * sizeof *count);
        if (!count)
            return eval_no_memory(err, "the fields of texts");
        f->tv = eval_field_variation(s, i, once, count);
        s->tv_mean += f->tv / s->n_fields;
        dpi_private_free(count);
    }
    return DPI_STATUS_OK;
}

static dpi_status make_cells(eval_structure *s, size_t n_fields, dpi_error *err) {
    for (int32_t k = 0; k < 2; k++) {
        const size_t n = n_fields * (size_t)s->n_objects[k];
        s->cell[k] = dpi_private_malloc((n + 1) * sizeof *s->cell[k]);
        if (!s->cell[k])
            return eval_no_memory(err, "the fields of texts");
        memset(s->cell[k], 0, (n + 1) * sizeof *s->cell[k]);
    }
    return DPI_STATUS_OK;
}

static dpi_status fill_fields(eval_structure *s, all_seen *a, dpi_error *err) {
    part *parts = dpi_private_malloc((a->n + 1) * sizeof *parts);
    size_t n = 0;
    s->field = dpi_private_malloc(EVAL_FIELDS_MAX * sizeof *s->field);
    dpi_status status =
        parts && s->field ? DPI_STATUS_OK : eval_no_memory(err, "the fields of texts");
    if (status == DPI_STATUS_OK && a->n > 0)
        qsort(a->at, a->n, sizeof *a->at, compare_seen);
    for (size_t i = 0; i < a->n && status == DPI_STATUS_OK; i++) {
        if (i == 0 || strcmp(a->at[i].name, a->at[i - 1].name) != 0)
            parts[n++] = (part){.first = i};
        parts[n - 1].n++;
    }
    if (status == DPI_STATUS_OK && n > EVAL_FIELDS_MAX) {
        qsort(parts, n, sizeof *parts, compare_part);
        n = EVAL_FIELDS_MAX;
        qsort(parts, n, sizeof *parts, compare_first);
    }
    if (status == DPI_STATUS_OK)
        status = make_cells(s, n, err);
    for (size_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        cells c = cells_of(s, s->n_fields);
        eval_field *f = &s->field[s->n_fields++];
        status = fill_field(s, a->at + parts[i].first, parts[i].n, f, &c, err);
    }
    dpi_private_free(parts);
    return status == DPI_STATUS_OK ? find_variations(s, err) : status;
}

dpi_status eval_find_structure(const eval_texts *synthetic, const eval_texts *real,
                               const dpi_grammar *grammar, eval_structure *s, dpi_error *err) {
    const eval_texts *const sets[] = {synthetic, real};
    all_seen a = {0};
    dpi_status status = DPI_STATUS_OK;
    *s = (eval_structure){0};
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < sets[k]->n && status == DPI_STATUS_OK; i++)
            status = read_text(&sets[k]->at[i], k, grammar, s, &a, err);
    if (status == DPI_STATUS_OK)
        status = fill_fields(s, &a, err);
    for (size_t i = 0; i < a.n; i++) {
        dpi_private_free(a.at[i].name);
        dpi_private_free(a.at[i].value);
    }
    dpi_private_free(a.at);
    return status;
}

void eval_structure_free(eval_structure *s) {
    for (int32_t i = 0; i < s->n_fields; i++) {
        dpi_private_free(s->field[i].name);
        for (int32_t b = 0; b < s->field[i].n_bins; b++)
            dpi_private_free(s->field[i].bin[b]);
    }
    dpi_private_free(s->field);
    for (int32_t k = 0; k < 2; k++)
        dpi_private_free(s->cell[k]);
    *s = (eval_structure){0};
}
