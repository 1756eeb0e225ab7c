/* unit.c - whom charges protect, see dpinfer/ledger.h. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "dpinfer/run.h"
#include "pipeline/ledger/ledger.h"

dpi_status dpi_ledger_check_text(const char *what, const char *text, size_t most, dpi_error *err) {
    const size_t n = strlen(text);
    size_t step = 1;
    bool ok = n <= most;
    for (size_t i = 0; i < n && ok; i += step) {
        step = dpi_utf8_bytes(text + i, n - i);
        ok = step > 0 && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f;
    }
    if (ok)
        return DPI_STATUS_OK;
    return dpi_fail(
        err, DPI_STATUS_ARG,
        "%s has %zu bytes, allowed are at most %zu, of UTF-8 without control characters", what, n,
        most);
}

void dpi_privacy_unit_init(dpi_privacy_unit *u) {
    *u = (dpi_privacy_unit){.adjacency = -1, .is_record = -1};
}

size_t dpi_privacy_unit_text(const dpi_privacy_unit *u, char *text, size_t size) {
    char whom[64 + sizeof u->unit_field] = "", most[48] = "";
    const char *kind = u->record_kind > 0 ? dpi_record_kind_text(u->record_kind) : NULL;
    const char *adjacency = u->adjacency >= 0 ? dpi_adjacency_name(u->adjacency) : NULL;
    if (u->is_record == 1)
        snprintf(whom, sizeof whom, "%s", kind ? kind : "one record");
    else if (u->is_record == 0)
        snprintf(whom, sizeof whom, "all records with one ID%s%s%s",
                 u->unit_field[0] ? " in '" : "", u->unit_field, u->unit_field[0] ? "'" : "");
    if (u->max_per_unit > 0)
        snprintf(most, sizeof most, ", at most %d of them used", (int)u->max_per_unit);
    const int n = snprintf(text, size, "%s%s%s%s", whom, most, whom[0] && adjacency ? "; " : "",
                           adjacency ? adjacency : "");
    return n > 0 ? (size_t)n : 0;
}

/* ---- Agreement ------------------------------------------------------------------------------- */

static dpi_status check(const dpi_privacy_unit *u, dpi_error *err) {
    DPI_TRY(dpi_check_range("unit.adjacency", u->adjacency, -1, DPI_ADJACENCY_ZERO_OUT, err));
    DPI_TRY(dpi_check_range("unit.is_record", u->is_record, -1, 1, err));
    DPI_TRY(dpi_check_range("unit.record_kind", u->record_kind, 0, DPI_RECORD_ROW, err));
    DPI_TRY(dpi_check_range("unit.max_per_unit", u->max_per_unit, 0, INT32_MAX, err));
    if (!memchr(u->unit_field, '\0', sizeof u->unit_field))
        return dpi_fail(err, DPI_STATUS_ARG, "unit.unit_field has no end");
    DPI_TRY(dpi_ledger_check_text("unit_field", u->unit_field, DPI_UNIT_FIELD_MAX, err));
    if (u->is_record != 0 && (u->max_per_unit > 0 || u->unit_field[0]))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "unit: found a field of IDs where each record is a unit");
    if (u->is_record != 1 && u->record_kind > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "unit: found a kind of records where units have IDs");
    return DPI_STATUS_OK;
}

/* *into takes a value that it has open; false: both have one, and they differ. */
static bool join(int32_t *into, int32_t value, int32_t open) {
    if (*into == open)
        *into = value;
    return value == open || *into == value;
}

dpi_status dpi_privacy_unit_join(dpi_privacy_unit *of_dataset, const dpi_privacy_unit *u,
                                 const char *dataset, dpi_error *err) {
    dpi_privacy_unit both = *of_dataset;
    char has[256], found[256];
    DPI_TRY(check(u, err));
    bool same = join(&both.adjacency, u->adjacency, -1);
    same &= join(&both.is_record, u->is_record, -1);
    same &= join(&both.record_kind, u->record_kind, 0);
    same &= join(&both.max_per_unit, u->max_per_unit, 0);
    if (!both.unit_field[0])
        memcpy(both.unit_field, u->unit_field, sizeof both.unit_field);
    same &= !u->unit_field[0] || strcmp(both.unit_field, u->unit_field) == 0;
    if (same) {
        *of_dataset = both;
        return DPI_STATUS_OK;
    }
    dpi_privacy_unit_text(of_dataset, has, sizeof has);
    dpi_privacy_unit_text(u, found, sizeof found);
    return dpi_fail(err, DPI_STATUS_ARG,
                    "the charges of the dataset '%s' protect %s, and this one protects %s: their "
                    "sum would protect nobody", dataset, has, found);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

dpi_status dpi_privacy_unit_read(const dpi_ledger *l, sqlite3_stmt *s, int i, dpi_privacy_unit *u,
                                 dpi_error *err) {
    dpi_error why;
    dpi_privacy_unit_init(u);
    if (sqlite3_column_type(s, i) == SQLITE_NULL) /* there is no such row */
        return DPI_STATUS_OK;
    u->adjacency = sqlite3_column_int(s, i);
    u->is_record = sqlite3_column_int(s, i + 1);
    u->record_kind = sqlite3_column_int(s, i + 2);
    u->max_per_unit = sqlite3_column_int(s, i + 3);
    dpi_sql_text(s, i + 4, u->unit_field, sizeof u->unit_field);
    return check(u, &why) == DPI_STATUS_OK
               ? DPI_STATUS_OK
               : dpi_fail(err, DPI_STATUS_FORMAT, "%s: the ledger is damaged: %s", l->path,
                          why.message);
}
