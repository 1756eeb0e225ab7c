/* record_units.c - whose a record is and which label it has; see dpinfer/records.h. */
#include <string.h>

#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/records/records.h"

void dpi_records_field(const dpi_records *r, size_t i, const char *name, dpi_json *line,
                       dpi_json *field) {
    dpi_json_read(r->spans.at[i].data, r->spans.at[i].n_bytes, line);
    dpi_json_member(line, name, field);
}

/* An ID or a label of a line. Integers are their digits. */
static dpi_status read_name(const dpi_records *r, size_t i, const char *name, dpi_spans *names,
                            dpi_error *err) {
    dpi_json line, field;
    dpi_span span = {NULL, 0};
    dpi_records_field(r, i, name, &line, &field);
    if (field.type == DPI_JSON_NUMBER) {
        DPI_TRY(dpi_json_digits(field.text, field.n_bytes, &span.data, err));
        span.n_bytes = span.data ? strlen(span.data) : 0;
    } else {
        DPI_TRY(dpi_json_string(&field, &span.data, &span.n_bytes, err));
    }
    if (dpi_spans_add(names, span))
        return DPI_STATUS_OK;
    dpi_private_free(span.data);
    return dpi_no_memory(err, "the records");
}

/* The label of record i into `label`, which has room; false: a part of it is none. */
static bool join(const dpi_records *r, size_t i, dpi_span *label) {
    label->n_bytes = 0;
    for (int32_t k = 0; k < r->n_label_fields; k++) {
        const dpi_span *part = &r->parts[k].at[i];
        if (!part->data || dpi_units_is_blank(part))
            return false;
        if (k > 0)
            label->data[label->n_bytes++] = '\t';
        memcpy(label->data + label->n_bytes, part->data, part->n_bytes);
        label->n_bytes += part->n_bytes;
    }
    label->data[label->n_bytes] = '\0';
    return true;
}

/* False: out of memory. */
static bool join_labels(dpi_records *r) {
    if (r->n_label_fields == 1) {
        r->labels = r->parts[0];
        r->parts[0] = (dpi_spans){0};
    }
    for (size_t i = 0; r->n_label_fields > 1 && i < r->spans.n; i++) {
        size_t room = (size_t)r->n_label_fields;
        for (int32_t k = 0; k < r->n_label_fields; k++)
            room += r->parts[k].at[i].n_bytes;
        dpi_span label = {dpi_private_malloc(room), 0};
        if (!label.data)
            return false;
        if (!join(r, i, &label)) {
            dpi_private_free(label.data);
            label = (dpi_span){NULL, 0};
        }
        if (!dpi_spans_add(&r->labels, label)) {
            dpi_private_free(label.data);
            return false;
        }
    }
    return true;
}

/* Where the names of fields are public: whether a line has it. */
static dpi_status check_field(const dpi_records *r, const char *option, const char *name,
                              dpi_error *err) {
    dpi_json line, field = {0};
    for (size_t i = 0; name && i < r->spans.n && field.type == DPI_JSON_NONE; i++)
        dpi_records_field(r, i, name, &line, &field);
    return !name || field.type != DPI_JSON_NONE
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_FORMAT, "%s: no line has a field '%s' (%s)", r->path,
                          name, option);
}

static dpi_status check_fields(const dpi_records *r, dpi_error *err) {
    if (r->kind != DPI_RECORD_LINE || !r->public_fields)
        return DPI_STATUS_OK;
    DPI_TRY(check_field(r, "text_field", r->text_field, err));
    DPI_TRY(check_field(r, "unit_field", r->unit_field, err));
    for (int32_t k = 0; k < r->n_label_fields; k++)
        DPI_TRY(check_field(r, "label_field", r->label_fields[k], err));
    return DPI_STATUS_OK;
}

dpi_status dpi_records_find_units(dpi_records *r, dpi_error *err) {
    DPI_TRY(check_fields(r, err));
    const char *field = r->unit_field ? r->unit_field : r->label_fields[0];
    if (!field)
        return DPI_STATUS_OK;
    if (r->kind == DPI_RECORD_FILE)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "%s: found '%s', but files of a folder have no fields: allowed "
                        "with a .jsonl or a .csv",
                        r->unit_field ? "unit_field" : "label_field", field);
    for (size_t i = 0; i < r->spans.n && r->kind == DPI_RECORD_LINE; i++) {
        if (r->unit_field)
            DPI_TRY(read_name(r, i, r->unit_field, &r->units.ids, err));
        for (int32_t k = 0; k < r->n_label_fields; k++)
            DPI_TRY(read_name(r, i, r->label_fields[k], &r->parts[k], err));
    }
    dpi_units_drop_not_utf8(&r->units.ids);
    DPI_TRY(dpi_units_write_digits(&r->units.ids, err));
    for (int32_t k = 0; k < r->n_label_fields; k++)
        dpi_units_drop_not_utf8(&r->parts[k]);
    const bool found = !r->unit_field || dpi_units_find(&r->units, r->spans.n);
    return found && join_labels(r) ? DPI_STATUS_OK : dpi_no_memory(err, "the records");
}

int32_t dpi_records_has_units(const dpi_records *r) { return r->unit_field != NULL; }

size_t dpi_records_unit_count(const dpi_records *r) {
    return r->unit_field ? r->units.n : r->spans.n;
}

/* The k-th of its records, whatever their labels. */
static size_t record_of(const dpi_records *r, size_t unit, size_t k) {
    if (r->unit_field)
        return dpi_units_record(&r->units, unit, k);
    return unit < r->spans.n && k == 0 ? unit : SIZE_MAX;
}

static bool has_same_label(const dpi_records *r, size_t i, size_t j) {
    const dpi_span *a = &r->labels.at[i], *b = &r->labels.at[j];
    return a->data && b->data && a->n_bytes == b->n_bytes &&
           memcmp(a->data, b->data, a->n_bytes) == 0;
}

size_t dpi_records_of_unit(const dpi_records *r, size_t unit, size_t k) {
    const size_t first = record_of(r, unit, 0);
    if (r->n_label_fields == 0 || k == 0)
        return record_of(r, unit, k);
    for (size_t j = 1, i; (i = record_of(r, unit, j)) != SIZE_MAX; j++)
        if (has_same_label(r, first, i) && --k == 0)
            return i;
    return SIZE_MAX;
}

void dpi_records_unit_size(const dpi_records *r, size_t unit, size_t *n_all, size_t *n_used) {
    const size_t first = record_of(r, unit, 0);
    size_t i, k = 0, n = 0;
    for (; (i = record_of(r, unit, k)) != SIZE_MAX; k++)
        n += r->n_label_fields == 0 || k == 0 || has_same_label(r, first, i);
    *n_all = k;
    *n_used = n;
}

int32_t dpi_records_has_labels(const dpi_records *r) { return r->n_label_fields > 0; }

void dpi_records_unit_label(const dpi_records *r, size_t unit, const char **label,
                            size_t *n_bytes) {
    const size_t first = r->n_label_fields > 0 ? record_of(r, unit, 0) : SIZE_MAX;
    const dpi_span none = {NULL, 0}, *span = first < r->labels.n ? &r->labels.at[first] : &none;
    const bool there = span->data && !dpi_units_is_blank(span);
    *label = there ? span->data : NULL;
    *n_bytes = there ? span->n_bytes : 0;
}

void dpi_records_unit_id(const dpi_records *r, size_t unit, const char **id, size_t *n_bytes) {
    const size_t first = r->unit_field ? dpi_units_record(&r->units, unit, 0) : SIZE_MAX;
    const dpi_span none = {NULL, 0}, *span = first < r->spans.n ? &r->units.ids.at[first] : &none;
    const bool there = span->data && !dpi_units_is_blank(span);
    *id = there ? span->data : NULL;
    *n_bytes = there ? span->n_bytes : 0;
}

/* A record without an ID is null: it must not be a second unit of the person whom it is about. */
bool dpi_records_has_id(const dpi_records *r, size_t i) {
    const dpi_span *id = r->unit_field ? &r->units.ids.at[i] : NULL;
    return !id || (id->data && !dpi_units_is_blank(id));
}
