/* records.h - what a release needs of its records beside dpinfer/records.h, and what the files
 * that implement that share: records.c has the texts, record_units.c units and labels. Internal. */
#ifndef DPI_RECORDS_RECORDS_H
#define DPI_RECORDS_RECORDS_H

#include "dpinfer/json.h"
#include "dpinfer/records.h"
#include "pipeline/records/csv.h"
#include "pipeline/records/units.h"

struct dpi_records {
    int32_t kind; /* a dpi_record_kind */
    char *path, *text_field, *unit_field; /* NULL from memory */
    char *label_fields[DPI_LABEL_FIELDS_MAX];
    int32_t n_label_fields;
    char delimiter;
    int32_t encoding; /* a dpi_encoding */
    bool public_fields;
    size_t max_expanded;
    int folder;    /* file descriptor, -1 if none */
    char *content; /* of a .jsonl file; its spans point into it */
    dpi_spans spans; /* a folder's names; fields of a .csv; lines. All but lines own their data */
    dpi_units units; /* with unit_field */
    dpi_spans labels; /* with label_fields */
    dpi_spans parts[DPI_LABEL_FIELDS_MAX]; /* of labels, until they are joined */
};

/* FORMAT, with a message that there is no record. */
dpi_status dpi_records_refuse_empty(const dpi_records *records, dpi_error *err);

/* Of a .jsonl: line i, and its member `name`. In record_units.c, as the next ones. */
void dpi_records_field(const dpi_records *r, size_t i, const char *name, dpi_json *line,
                       dpi_json *field);
/* Which records are whose, and their labels: last, when the spans are there. Errors: FORMAT (public
 * fields), ARG (fields of a folder), MEMORY. */
dpi_status dpi_records_find_units(dpi_records *r, dpi_error *err);
/* False: there are units, and record i has no ID. */
bool dpi_records_has_id(const dpi_records *r, size_t i);

#endif
