/* ledger.h - the file behind a ledger, see dpinfer/ledger.h. Internal. */
#ifndef DPI_PIPELINE_LEDGER_H
#define DPI_PIPELINE_LEDGER_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "dpinfer/ledger.h"

enum { DPI_LEDGER_KEY_BYTES = 32, DPI_LEDGER_HASH_BYTES = 32 };

/* The rho of a dataset's charges up to one, as zCDP: more come, so that not all are read again. */
typedef struct dpi_ledger_rho {
    int64_t dataset, last_id, amount; /* of these charges together */
    double rho;
} dpi_ledger_rho;

struct dpi_ledger {
    sqlite3 *db;
    pthread_mutex_t lock; /* held in each public call */
    char *path;           /* as it was given, for messages */
    int32_t busy_ms;
    int64_t form;  /* of the tables; an earlier one only where the file is only read */
    int64_t *mine; /* [n_mine] charges of this object that may be given back */
    size_t n_mine, mine_capacity;
    dpi_ledger_rho *sums; /* [n_sums] datasets that were asked for */
    size_t n_sums, sums_capacity;
};

/* What a dataset is, inside a call. */
typedef struct dpi_dataset {
    dpi_dataset_info info;
    int64_t id;
    uint8_t key[DPI_LEDGER_KEY_BYTES]; /* of hashes of units */
} dpi_dataset;

/* ---- sql.c ----------------------------------------------------------------------------------- */

/* Opens, checks and, if it is empty and may be made, fills the file; brings one of an earlier form
 * to the present one. Errors: as dpi_ledger_open. */
dpi_status dpi_sql_open(dpi_ledger *ledger, const dpi_ledger_options *options, dpi_error *err);

/* A statement with `types` of its arguments: i int64_t, r double, t const char *, b const void *
 * and size_t. *statement is NULL after a failure. */
dpi_status dpi_sql_prepare(dpi_ledger *ledger, sqlite3_stmt **statement, dpi_error *err,
                           const char *sql, const char *types, ...);
/* *row: there is a row of results. */
dpi_status dpi_sql_step(dpi_ledger *ledger, sqlite3_stmt *statement, bool *row, dpi_error *err);
/* Both, for a statement without results. */
dpi_status dpi_sql_do(dpi_ledger *ledger, dpi_error *err, const char *sql, const char *types, ...);

/* A transaction that holds the write lock from its first line. dpi_sql_end commits if `status` is
 * OK, else rolls back; the commit is on the disk when it returns OK. */
dpi_status dpi_sql_begin(dpi_ledger *ledger, dpi_error *err);
dpi_status dpi_sql_end(dpi_ledger *ledger, dpi_status status, dpi_error *err);

/* Column i as a text, cut to size - 1 bytes. */
void dpi_sql_text(sqlite3_stmt *statement, int i, char *text, size_t size);

/* A name or a note: at most `most` bytes of UTF-8 without control characters. Errors: ARG. */
dpi_status dpi_ledger_check_text(const char *what, const char *text, size_t most, dpi_error *err);

/* ---- unit.c ---------------------------------------------------------------------------------- */

/* The columns of a privacy unit, in each table that has one. */
#define DPI_UNIT_COLUMNS(table)                                                                   \
    table "adjacency, " table "is_record, " table "record_kind, " table "max_per_unit, " table    \
          "unit_field"
enum { DPI_N_UNIT_COLUMNS = 5 };
/* Its types and values for a statement. */
#define DPI_UNIT_TYPES "iiiit"
#define DPI_UNIT_VALUES(unit)                                                                     \
    (int64_t)(unit).adjacency, (int64_t)(unit).is_record, (int64_t)(unit).record_kind,            \
        (int64_t)(unit).max_per_unit, (unit).unit_field

/* Column i and the next ones. Where all are NULL, all is open; what no unit has is refused. */
dpi_status dpi_privacy_unit_read(const dpi_ledger *l, sqlite3_stmt *statement, int i,
                                 dpi_privacy_unit *unit, dpi_error *err);

/* ---- ledger.c -------------------------------------------------------------------------------- */

/* The current time in UTC; "" if the clock has none. */
void dpi_ledger_date(char date[24]);

/* Errors: ARG (no such dataset), FORMAT (its numbers do not fit each other). */
dpi_status dpi_dataset_load(dpi_ledger *ledger, const char *name, dpi_dataset *dataset,
                            dpi_error *err);

#endif
