/* sql.c - the SQLite file of a ledger: opening, statements, transactions. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/status.h"
#include "base/utf8.h"
#include "pipeline/ledger/ledger.h"

#define APPLICATION 1685088588 /* "dpiL", in the header of the file (PRAGMA application_id) */
#define FORM 4                 /* of the tables (PRAGMA user_version) */

#define TEXT_OF(number) TEXT_OF_VALUE(number)
#define TEXT_OF_VALUE(number) #number

/* Sums of units, and which units have paid for which charge. */
#define UNIT_TABLES                                                                               \
    "CREATE TABLE unit(id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset(id),"  \
    " hash BLOB NOT NULL, spent INTEGER NOT NULL CHECK(spent > 0), UNIQUE(dataset, hash)) "       \
    "STRICT;"                                                                                     \
    "CREATE TABLE payer(charge INTEGER NOT NULL REFERENCES charge(id),"                           \
    " unit INTEGER NOT NULL REFERENCES unit(id), PRIMARY KEY(charge, unit)) STRICT, WITHOUT "     \
    "ROWID;"
#define SET_FORM "PRAGMA user_version = " TEXT_OF(FORM) ";"

/* Whom charges protect: of a dataset what was fixed when it was added, of a charge what is fixed
 * from it on. The defaults are open. */
#define UNIT_COLUMNS(before, after)                                                               \
    before "adjacency INTEGER NOT NULL DEFAULT -1" after                                          \
    before "is_record INTEGER NOT NULL DEFAULT -1" after                                          \
    before "record_kind INTEGER NOT NULL DEFAULT 0" after                                         \
    before "max_per_unit INTEGER NOT NULL DEFAULT 0" after                                        \
    before "unit_field TEXT NOT NULL DEFAULT ''" after

/* Of a charge, what was done: "" is work outside of the program, or before form 4. */
#define CLAIM_COLUMN "claim TEXT NOT NULL DEFAULT ''"

/* Amounts are integers: sums in SQL are exact. */
static const char *const schema =
    "CREATE TABLE dataset(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " epsilon REAL NOT NULL, delta REAL NOT NULL, renyi_order INTEGER NOT NULL,"
    " budget INTEGER NOT NULL CHECK(budget >= 0), scope INTEGER NOT NULL CHECK(scope IN (0, 1)),"
    " unit_key BLOB NOT NULL, opened TEXT NOT NULL, " UNIT_COLUMNS("", ", ")
    "closed TEXT NOT NULL DEFAULT '') STRICT;"
    "CREATE TABLE charge(id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " dataset INTEGER NOT NULL REFERENCES dataset(id), amount INTEGER NOT NULL CHECK(amount > 0),"
    " before INTEGER NOT NULL, counted INTEGER NOT NULL DEFAULT 1 CHECK(counted IN (0, 1)),"
    " date TEXT NOT NULL, " UNIT_COLUMNS("", ", ")
    "method TEXT NOT NULL, note TEXT NOT NULL, cost TEXT NOT NULL, " CLAIM_COLUMN ") STRICT;"
    "CREATE INDEX charge_dataset ON charge(dataset);"
    "CREATE INDEX charge_sum ON charge(dataset, counted, amount);" UNIT_TABLES
    "PRAGMA application_id = " TEXT_OF(APPLICATION) ";" SET_FORM;

/* Form 1 kept of a unit only the last charge that it paid for. Its sum stays what it was. */
static const char *const from_form_1 =
    "ALTER TABLE unit RENAME TO unit_1;" UNIT_TABLES
    "INSERT INTO unit(dataset, hash, spent) SELECT dataset, hash, spent FROM unit_1;"
    "INSERT INTO payer(charge, unit) SELECT unit_1.charge, unit.id FROM unit_1"
    " JOIN unit USING(dataset, hash);"
    "DROP TABLE unit_1;";

/* Form 2 did not say whom charges protect. */
static const char *const from_form_2 =
    UNIT_COLUMNS("ALTER TABLE dataset ADD COLUMN ", ";")
    UNIT_COLUMNS("ALTER TABLE charge ADD COLUMN ", ";");

/* Form 3 did not have claims. */
static const char *const from_form_3 = "ALTER TABLE charge ADD COLUMN " CLAIM_COLUMN ";" SET_FORM;

/* ---- Errors ---------------------------------------------------------------------------------- */

static dpi_status fail_with(const dpi_ledger *l, int code, dpi_error *err) {
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return dpi_fail(err, DPI_STATUS_MEMORY, "%s: out of memory for the ledger", l->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return dpi_fail(err, DPI_STATUS_IO,
                        "%s: the ledger is locked by another process, waited %g s", l->path,
                        l->busy_ms / 1000.0);
    case SQLITE_FULL:
        return dpi_fail(err, DPI_STATUS_IO, "%s: cannot write the ledger: the disk is full",
                        l->path);
    case SQLITE_READONLY:
        return dpi_fail(err, DPI_STATUS_IO, "%s: the ledger, or its folder, is read-only",
                        l->path);
    case SQLITE_NOTADB:
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is no ledger: it is no SQLite file", l->path);
    case SQLITE_CORRUPT:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR: /* a table that is not there */
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: the ledger is damaged: %s", l->path,
                        l->db ? sqlite3_errmsg(l->db) : sqlite3_errstr(code));
    default:
        return dpi_fail(err, DPI_STATUS_IO, "%s: the ledger cannot be read or written: %s",
                        l->path, sqlite3_errstr(code));
    }
}

/* The status and message of the last call on the database. */
static dpi_status sql_fail(const dpi_ledger *l, dpi_error *err) {
    return fail_with(l, sqlite3_extended_errcode(l->db), err);
}

/* ---- Statements ------------------------------------------------------------------------------ */

static int bind(sqlite3_stmt *s, const char *types, va_list values) {
    int code = SQLITE_OK;
    for (int i = 0; types[i] && code == SQLITE_OK; i++) {
        if (types[i] == 'i') {
            code = sqlite3_bind_int64(s, i + 1, va_arg(values, int64_t));
        } else if (types[i] == 'r') {
            code = sqlite3_bind_double(s, i + 1, va_arg(values, double));
        } else if (types[i] == 't') {
            code = sqlite3_bind_text(s, i + 1, va_arg(values, const char *), -1, SQLITE_STATIC);
        } else {
            const void *data = va_arg(values, const void *);
            code = sqlite3_bind_blob64(s, i + 1, data, va_arg(values, size_t), SQLITE_STATIC);
        }
    }
    return code;
}

static dpi_status prepare(dpi_ledger *l, sqlite3_stmt **statement, dpi_error *err, const char *sql,
                          const char *types, va_list values) {
    *statement = NULL;
    if (sqlite3_prepare_v2(l->db, sql, -1, statement, NULL) == SQLITE_OK &&
        bind(*statement, types, values) == SQLITE_OK)
        return DPI_STATUS_OK;
    const dpi_status status = sql_fail(l, err);
    sqlite3_finalize(*statement);
    *statement = NULL;
    return status;
}

dpi_status dpi_sql_prepare(dpi_ledger *l, sqlite3_stmt **statement, dpi_error *err,
                           const char *sql, const char *types, ...) {
    va_list values;
    va_start(values, types);
    const dpi_status status = prepare(l, statement, err, sql, types, values);
    va_end(values);
    return status;
}

dpi_status dpi_sql_step(dpi_ledger *l, sqlite3_stmt *statement, bool *row, dpi_error *err) {
    const int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    return code == SQLITE_ROW || code == SQLITE_DONE ? DPI_STATUS_OK : sql_fail(l, err);
}

dpi_status dpi_sql_do(dpi_ledger *l, dpi_error *err, const char *sql, const char *types, ...) {
    sqlite3_stmt *statement;
    va_list values;
    bool row;
    va_start(values, types);
    dpi_status status = prepare(l, &statement, err, sql, types, values);
    va_end(values);
    if (status == DPI_STATUS_OK)
        status = dpi_sql_step(l, statement, &row, err);
    sqlite3_finalize(statement);
    return status;
}

dpi_status dpi_sql_begin(dpi_ledger *l, dpi_error *err) {
    return dpi_sql_do(l, err, "BEGIN IMMEDIATE", "");
}

dpi_status dpi_sql_end(dpi_ledger *l, dpi_status status, dpi_error *err) {
    if (status == DPI_STATUS_OK)
        status = dpi_sql_do(l, err, "COMMIT", "");
    if (status != DPI_STATUS_OK && !sqlite3_get_autocommit(l->db))
        (void)sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

void dpi_sql_text(sqlite3_stmt *s, int i, char *text, size_t size) {
    const unsigned char *value = sqlite3_column_text(s, i);
    snprintf(text, size, "%s", value ? (const char *)value : "");
}

/* The one integer that a statement gives. */
static dpi_status read_int(dpi_ledger *l, const char *sql, int64_t *value, dpi_error *err) {
    sqlite3_stmt *s;
    bool row;
    DPI_TRY(dpi_sql_prepare(l, &s, err, sql, ""));
    const dpi_status status = dpi_sql_step(l, s, &row, err);
    *value = row ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return status;
}

/* A statement that must give the text `wanted`; any other is `refusal`. */
static dpi_status expect_text(dpi_ledger *l, const char *sql, const char *wanted,
                              const char *refusal, dpi_error *err) {
    sqlite3_stmt *s;
    bool row;
    char text[128] = "";
    DPI_TRY(dpi_sql_prepare(l, &s, err, sql, ""));
    const dpi_status status = dpi_sql_step(l, s, &row, err);
    if (row)
        dpi_sql_text(s, 0, text, sizeof text);
    sqlite3_finalize(s);
    if (status != DPI_STATUS_OK || strcmp(text, wanted) == 0)
        return status;
    return dpi_fail(err, DPI_STATUS_FORMAT, "%s: %s", l->path, refusal);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The file is there afterwards. *is_empty: it may have to be filled. */
static dpi_status find_file(const dpi_ledger *l, bool create, bool *is_empty, dpi_error *err) {
    struct stat st;
    if (create) {
        const int fd = open(l->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return dpi_fail(err, DPI_STATUS_IO, "cannot make the ledger %s: %s", l->path,
                            dpi_reason(errno));
        if (fd >= 0)
            close(fd);
    }
    if (stat(l->path, &st) != 0)
        return dpi_fail(err, DPI_STATUS_IO, "cannot open the ledger %s: %s", l->path,
                        dpi_reason(errno));
    if (!S_ISREG(st.st_mode))
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is no ledger: it is not a regular file",
                        l->path);
    if (st.st_nlink > 1)
        return dpi_fail(
            err, DPI_STATUS_UNSUPPORTED,
            "the ledger %s has %ju names (hard links), allowed is one: each would have "
            "a journal of its own",
            l->path, (uintmax_t)st.st_nlink);
    *is_empty = st.st_size == 0;
    if (*is_empty && !create)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is no ledger: it is empty", l->path);
    return DPI_STATUS_OK;
}

/* The absolute path, so that no name means anything else to SQLite. */
static dpi_status connect(dpi_ledger *l, bool read_only, dpi_error *err) {
    char *path = realpath(l->path, NULL);
    if (!path)
        return dpi_fail(err, DPI_STATUS_IO, "cannot open the ledger %s: %s", l->path,
                        dpi_reason(errno));
    /* For reading too, where the file can be written: what a killed process left of a transaction
     * is undone before the first read. SQLite opens for reading alone where it must. */
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_PRIVATECACHE;
    const int code = sqlite3_open_v2(path, &l->db, flags, NULL);
    free(path);
    if (code != SQLITE_OK)
        return fail_with(l, code, err);
    sqlite3_busy_timeout(l->db, l->busy_ms);
    if (!read_only && sqlite3_db_readonly(l->db, "main") == 1)
        return fail_with(l, SQLITE_READONLY, err);
    return DPI_STATUS_OK;
}

static dpi_status execute(dpi_ledger *l, const char *sql, dpi_error *err) {
    return sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK ? DPI_STATUS_OK
                                                                   : sql_fail(l, err);
}

/* Whoever is second finds the tables of the first. */
static dpi_status fill(dpi_ledger *l, dpi_error *err) {
    int64_t n_tables;
    DPI_TRY(dpi_sql_begin(l, err));
    dpi_status status = read_int(l, "SELECT COUNT(*) FROM sqlite_schema", &n_tables, err);
    if (status == DPI_STATUS_OK && n_tables == 0)
        status = execute(l, schema, err);
    return dpi_sql_end(l, status, err);
}

/* Brings the tables of an earlier form to the present one: all of it, or nothing. The first
 * programs that had the table `payer` wrote form 1 too. */
static dpi_status bring_to_form(dpi_ledger *l, dpi_error *err) {
    int64_t form, has_payers = 0;
    DPI_TRY(dpi_sql_begin(l, err));
    dpi_status status = read_int(l, "PRAGMA user_version", &form, err);
    if (status == DPI_STATUS_OK && form < FORM) { /* no other process was first */
        status = read_int(
            l, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = 'payer'",
            &has_payers, err);
        if (status == DPI_STATUS_OK && !has_payers)
            status = execute(l, from_form_1, err);
        if (status == DPI_STATUS_OK && form < 3)
            status = execute(l, from_form_2, err);
        if (status == DPI_STATUS_OK)
            status = execute(l, from_form_3, err);
    }
    return dpi_sql_end(l, status, err);
}

static dpi_status check_file(dpi_ledger *l, dpi_error *err) {
    int64_t application, n_foreign;
    DPI_TRY(read_int(l, "PRAGMA application_id", &application, err));
    if (application != APPLICATION)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is no ledger: it is a SQLite file of another program", l->path);
    DPI_TRY(read_int(l, "PRAGMA user_version", &l->form, err));
    if (l->form < 1 || l->form > FORM)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the ledger %s has the form %" PRId64
                        ", allowed are 1 to " TEXT_OF(FORM) ": a later program made it",
                        l->path, l->form);
    DPI_TRY(expect_text(l, "PRAGMA quick_check(1)", "ok", "the ledger is damaged", err));
    DPI_TRY(read_int(l, "SELECT COUNT(*) FROM sqlite_schema WHERE type IN ('trigger', 'view')",
                     &n_foreign, err));
    if (n_foreign > 0)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "the ledger %s has triggers or views, which no ledger has", l->path);
    return DPI_STATUS_OK;
}

/* A commit is on the disk, with the folder's entry of the journal, before it returns. */
static dpi_status configure(dpi_ledger *l, bool read_only, dpi_error *err) {
    static const char *const settings[] = {
        "PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON", "PRAGMA foreign_keys = ON",
        "PRAGMA secure_delete = ON",   "PRAGMA temp_store = MEMORY",  "PRAGMA mmap_size = 0",
        "PRAGMA synchronous = EXTRA",
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        DPI_TRY(dpi_sql_do(l, err, settings[i], ""));
    if (read_only)
        return dpi_sql_do(l, err, "PRAGMA query_only = ON", "");
    return expect_text(l, "PRAGMA journal_mode = DELETE", "delete",
                       "the ledger cannot have a rollback journal", err);
}

dpi_status dpi_sql_open(dpi_ledger *l, const dpi_ledger_options *o, dpi_error *err) {
    bool is_empty;
    DPI_TRY(find_file(l, o->create, &is_empty, err));
    DPI_TRY(connect(l, o->read_only, err));
    if (!is_empty && o->create) { /* what a killed process began to make is undone by now */
        int64_t n_pages;
        DPI_TRY(read_int(l, "PRAGMA page_count", &n_pages, err));
        is_empty = n_pages == 0;
    }
    if (is_empty) {
        DPI_TRY(configure(l, o->read_only, err));
        DPI_TRY(fill(l, err));
    }
    DPI_TRY(check_file(l, err));
    DPI_TRY(configure(l, o->read_only, err));
    if (l->form == FORM || o->read_only) /* who only reads leaves the file as it is */
        return DPI_STATUS_OK;
    DPI_TRY(bring_to_form(l, err));
    l->form = FORM;
    return DPI_STATUS_OK;
}
