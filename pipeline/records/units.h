/* units.h - which records are whose. Internal; private memory.
 *
 * A unit is the records with one ID. The order of units is that of their first records, the order
 * of a unit's records that of the input: neither depends on another unit's records, but for how
 * many units come before. Time: sorting the IDs. */
#ifndef DPI_UNITS_H
#define DPI_UNITS_H

#include "pipeline/records/csv.h"

typedef struct dpi_units {
    dpi_spans ids;   /* [n_records] data NULL or blank: none */
    size_t n;        /* units */
    size_t *records; /* [n_records] unit by unit, in their order */
    size_t *begin;   /* [n + 1] of a unit in records */
} dpi_units;

/* Spaces and line ends alone, or nothing. */
bool dpi_units_is_blank(const dpi_span *span);
/* IDs or labels that are not UTF-8 are none. */
void dpi_units_drop_not_utf8(dpi_spans *names);
/* An ID that is an integer is its digits, whatever its form (dpi_json_digits). Errors: MEMORY. */
dpi_status dpi_units_write_digits(dpi_spans *ids, dpi_error *err);
/* The rest, from `ids`. False if out of memory. */
bool dpi_units_find(dpi_units *units, size_t n_records);
/* The k-th record of a unit; SIZE_MAX: none. */
size_t dpi_units_record(const dpi_units *units, size_t unit, size_t k);
/* Wipes. */
void dpi_units_free(dpi_units *units);

#endif
