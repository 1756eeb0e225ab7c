/* units.c - see units.h. */
#include "pipeline/records/units.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "dpinfer/json.h"
#include "dpinfer/memory.h"
#include "base/format.h"

bool dpi_units_is_blank(const dpi_span *span) {
    for (size_t i = 0; i < span->n_bytes; i++)
        if (!dpi_is_space(span->data[i]))
            return false;
    return true;
}

void dpi_units_drop_not_utf8(dpi_spans *names) {
    for (size_t i = 0; i < names->n; i++) {
        dpi_span *name = &names->at[i];
        if (!name->data || dpi_is_utf8(name->data, name->n_bytes))
            continue;
        dpi_private_free(name->data);
        *name = (dpi_span){NULL, DPI_SPAN_ABSENT};
    }
}

dpi_status dpi_units_write_digits(dpi_spans *ids, dpi_error *err) {
    for (size_t i = 0; i < ids->n; i++) {
        dpi_span *id = &ids->at[i];
        char *digits = NULL;
        if (id->data)
            DPI_TRY(dpi_json_digits(id->data, id->n_bytes, &digits, err));
        if (!digits)
            continue;
        dpi_private_free(id->data);
        *id = (dpi_span){digits, strlen(digits)};
    }
    return DPI_STATUS_OK;
}

/* A record on the way to its unit. */
typedef struct entry {
    dpi_span id; /* data NULL: a unit of its own */
    size_t record, first; /* first: of its unit */
} entry;

static int by_place(size_t a, size_t b) { return (a > b) - (a < b); }

static int by_id(const void *x, const void *y) {
    const entry *a = x, *b = y;
    if (a->id.n_bytes != b->id.n_bytes)
        return by_place(a->id.n_bytes, b->id.n_bytes);
    const int order = a->id.n_bytes > 0 ? memcmp(a->id.data, b->id.data, a->id.n_bytes) : 0;
    return order ? order : by_place(a->record, b->record);
}

static int by_unit(const void *x, const void *y) {
    const entry *a = x, *b = y;
    return a->first != b->first ? by_place(a->first, b->first) : by_place(a->record, b->record);
}

static bool is_same(const entry *a, const entry *b) {
    return a->id.data && b->id.data && a->id.n_bytes == b->id.n_bytes &&
           memcmp(a->id.data, b->id.data, a->id.n_bytes) == 0;
}

/* By ID, so that each record finds the first of its unit; then by these. */
static void order(const dpi_units *units, entry *all, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const dpi_span *id = &units->ids.at[i];
        const bool none = !id->data || dpi_units_is_blank(id);
        all[i] = (entry){none ? (dpi_span){NULL, 0} : *id, i, i};
    }
    qsort(all, n, sizeof *all, by_id);
    for (size_t i = 1; i < n; i++)
        if (is_same(&all[i], &all[i - 1]))
            all[i].first = all[i - 1].first;
    qsort(all, n, sizeof *all, by_unit);
}

bool dpi_units_find(dpi_units *units, size_t n) {
    entry *all = n < SIZE_MAX / sizeof *all ? dpi_private_malloc((n + 1) * sizeof *all) : NULL;
    units->records = all ? dpi_private_malloc((n + 1) * sizeof *units->records) : NULL;
    units->begin = all ? dpi_private_malloc((n + 1) * sizeof *units->begin) : NULL;
    const bool ok = all && units->records && units->begin;
    if (ok && n > 0)
        order(units, all, n);
    for (size_t i = 0; ok && i < n; i++) {
        units->records[i] = all[i].record;
        if (i == 0 || all[i].first != all[i - 1].first)
            units->begin[units->n++] = i;
    }
    if (ok)
        units->begin[units->n] = n;
    dpi_private_free(all);
    return ok;
}

size_t dpi_units_record(const dpi_units *units, size_t unit, size_t k) {
    if (unit >= units->n || k >= units->begin[unit + 1] - units->begin[unit])
        return SIZE_MAX;
    return units->records[units->begin[unit] + k];
}

void dpi_units_free(dpi_units *units) {
    dpi_spans_free(&units->ids, true);
    dpi_private_free(units->records);
    dpi_private_free(units->begin);
    *units = (dpi_units){0};
}
