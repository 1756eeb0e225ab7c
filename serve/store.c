/* store.c - see store.h. */
#include "serve/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "dpinfer/memory.h"
#include "serve/refusal.h"

/* "dpia", and the form of the tables. */
enum { APPLICATION = 0x64706961, FORM = 2 };

struct store {
    sqlite3 *db;
    int lock;
    char *path; /* of the file itself, whatever links lead to it */
};

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const dpi_status try_status = (call);                                                      \
        if (try_status != DPI_STATUS_OK)                                                           \
            return try_status;                                                                     \
    } while (0)

/* ---- SQL ------------------------------------------------------------------------------------- */

static dpi_status fail(const store *s, dpi_error *err) {
    const int code = sqlite3_errcode(s->db);
    return fail_with(err,
                     code == SQLITE_NOMEM                              ? DPI_STATUS_MEMORY
                     : code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? DPI_STATUS_FORMAT
                                                                       : DPI_STATUS_IO,
                     "the answers in %s: %s", s->path, sqlite3_errmsg(s->db));
}

/* Parameters: i an int64, t a string (NULL: null), b bytes and their number. */
static dpi_status prepare(store *s, sqlite3_stmt **made, dpi_error *err, const char *sql,
                          const char *types, ...) {
    va_list list;
    int code = sqlite3_prepare_v2(s->db, sql, -1, made, NULL);
    va_start(list, types);
    for (int i = 0; types[i] && code == SQLITE_OK; i++) {
        if (types[i] == 'i') {
            code = sqlite3_bind_int64(*made, i + 1, va_arg(list, int64_t));
        } else if (types[i] == 't') {
            code = sqlite3_bind_text(*made, i + 1, va_arg(list, const char *), -1, SQLITE_STATIC);
        } else {
            const void *bytes = va_arg(list, const void *);
            const size_t n_bytes = va_arg(list, size_t);
            code = sqlite3_bind_blob64(*made, i + 1, bytes ? bytes : "", n_bytes, SQLITE_STATIC);
        }
    }
    va_end(list);
    if (code == SQLITE_OK)
        return DPI_STATUS_OK;
    const dpi_status status = fail(s, err);
    sqlite3_finalize(*made);
    return status;
}

/* *row: there is one. */
static dpi_status step(store *s, sqlite3_stmt *statement, bool *row, dpi_error *err) {
    const int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    return *row || code == SQLITE_DONE ? DPI_STATUS_OK : fail(s, err);
}

/* A statement without rows. */
static dpi_status finish(store *s, sqlite3_stmt *statement, dpi_error *err) {
    bool row;
    const dpi_status status = step(s, statement, &row, err);
    sqlite3_finalize(statement);
    return status;
}

static dpi_status execute(store *s, const char *sql, dpi_error *err) {
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? DPI_STATUS_OK : fail(s, err);
}

/* A string or bytes of a column; NULL where it is null, or without memory. */
static char *copy_column(sqlite3_stmt *statement, int column, size_t *n_bytes) {
    const void *bytes = sqlite3_column_blob(statement, column);
    const size_t n = (size_t)sqlite3_column_bytes(statement, column);
    char *copy = sqlite3_column_type(statement, column) == SQLITE_NULL ? NULL
                                                                       : dpi_private_malloc(n + 1);
    if (!copy)
        return NULL;
    if (n > 0)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    if (n_bytes)
        *n_bytes = n;
    return copy;
}

static void copy_string(sqlite3_stmt *statement, int column, char *text, size_t size) {
    const unsigned char *from = sqlite3_column_text(statement, column);
    snprintf(text, size, "%s", from ? (const char *)from : "");
}

/* ---- The file -------------------------------------------------------------------------------- */

static const char tables[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE answer(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " principal TEXT NOT NULL, dataset TEXT NOT NULL, key TEXT, hash BLOB NOT NULL,"
    " state INTEGER NOT NULL, amount INTEGER NOT NULL, charge INTEGER NOT NULL,"
    " created INTEGER NOT NULL, n_prompt INTEGER, n_drawn INTEGER, end INTEGER, text BLOB,"
    " facts TEXT, report TEXT, label TEXT NOT NULL, round INTEGER NOT NULL,"
    " UNIQUE(principal, key)) STRICT;"
    "CREATE INDEX spent ON answer(dataset, principal, amount);"
    "CREATE INDEX rounds ON answer(dataset, label, round);"
    "PRAGMA application_id = 0x64706961;"
    "PRAGMA user_version = 2;"
    "COMMIT";

/* Form 1 had one sequence of rounds for all datasets, and no labels. */
static const char from_form_1[] =
    "BEGIN IMMEDIATE;"
    "ALTER TABLE answer ADD COLUMN label TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE answer ADD COLUMN round INTEGER NOT NULL DEFAULT 0;"
    "UPDATE answer SET round = number;"
    "CREATE INDEX rounds ON answer(dataset, label, round);"
    "PRAGMA user_version = 2;"
    "COMMIT";

static dpi_status pragma(store *s, const char *sql, int64_t *value, dpi_error *err) {
    sqlite3_stmt *statement;
    bool row;
    TRY(prepare(s, &statement, err, sql, ""));
    const dpi_status status = step(s, statement, &row, err);
    *value = row ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    return status;
}

static dpi_status check_form(store *s, dpi_error *err) {
    int64_t application, form, n_tables;
    TRY(pragma(s, "PRAGMA application_id", &application, err));
    TRY(pragma(s, "PRAGMA user_version", &form, err));
    TRY(pragma(s, "SELECT count(*) FROM sqlite_master", &n_tables, err));
    if (application == 0 && n_tables == 0)
        return execute(s, tables, err);
    if (application != APPLICATION)
        return fail_with(err, DPI_STATUS_FORMAT, "%s holds no answers of a server", s->path);
    if (form == 1)
        return execute(s, from_form_1, err);
    return form == FORM ? DPI_STATUS_OK
                        : fail_with(err, DPI_STATUS_UNSUPPORTED,
                                    "%s has the form %lld, and this program knows %d", s->path,
                                    (long long)form, FORM);
}

/* SQLite's own locks would keep a copy from being made while the server runs. */
static dpi_status lock(store *s, dpi_error *err) {
    char *path = malloc(strlen(s->path) + 6);
    if (!path)
        return fail_with(err, DPI_STATUS_MEMORY, "no memory for the answers");
    sprintf(path, "%s.lock", s->path);
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    free(path);
    if (s->lock < 0)
        return fail_with(err, DPI_STATUS_IO, "cannot make %s.lock: %s", s->path, strerror(errno));
    return flock(s->lock, LOCK_EX | LOCK_NB) == 0
               ? DPI_STATUS_OK
               : fail_with(err, DPI_STATUS_IO, "%s: another server has it", s->path);
}

/* It is there afterwards, for its owner alone if it was not; s->path is its real one. */
static dpi_status find_file(store *s, dpi_error *err) {
    const int fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_with(err, DPI_STATUS_IO, "cannot open %s: %s", s->path, strerror(errno));
    close(fd);
    char *real = realpath(s->path, NULL);
    if (!real)
        return fail_with(err, DPI_STATUS_IO, "cannot open %s: %s", s->path, strerror(errno));
    free(s->path);
    s->path = real;
    return DPI_STATUS_OK;
}

static dpi_status open_file(store *s, dpi_error *err) {
    TRY(find_file(s, err));
    TRY(lock(s, err));
    if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL) !=
        SQLITE_OK)
        return fail_with(err, DPI_STATUS_IO, "cannot open %s: %s", s->path, sqlite3_errmsg(s->db));
    sqlite3_busy_timeout(s->db, 10000); /* for a copy that is made */
    TRY(execute(s, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA", err));
    return check_form(s, err);
}

dpi_status store_open(const char *path, store **made, dpi_error *err) {
    store *s = calloc(1, sizeof *s);
    *made = s;
    if (!s || !(s->path = strdup(path))) {
        free(s);
        *made = NULL;
        return fail_with(err, DPI_STATUS_MEMORY, "no memory for the answers");
    }
    s->lock = -1;
    const dpi_status status = open_file(s, err);
    if (status != DPI_STATUS_OK) {
        store_close(s);
        *made = NULL;
    }
    return status;
}

void store_close(store *s) {
    if (!s)
        return;
    sqlite3_close(s->db);
    if (s->lock >= 0)
        close(s->lock);
    free(s->path);
    free(s);
}

void stored_free(stored *a) {
    dpi_private_free(a->text);
    dpi_private_free(a->facts);
    dpi_private_free(a->report);
    a->text = a->facts = a->report = NULL;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define COLUMNS                                                                                    \
    "number, id, principal, dataset, key, hash, state, amount, charge, created, n_prompt,"         \
    " n_drawn, end, text, facts"

static dpi_status read_row(sqlite3_stmt *statement, stored *a, dpi_error *err) {
    a->number = sqlite3_column_int64(statement, 0);
    copy_string(statement, 1, a->id, sizeof a->id);
    copy_string(statement, 2, a->principal, sizeof a->principal);
    copy_string(statement, 3, a->dataset, sizeof a->dataset);
    copy_string(statement, 4, a->key, sizeof a->key);
    const void *hash = sqlite3_column_blob(statement, 5);
    if (hash && sqlite3_column_bytes(statement, 5) == STORE_HASH_BYTES)
        memcpy(a->hash, hash, STORE_HASH_BYTES);
    a->state = sqlite3_column_int(statement, 6);
    a->amount = sqlite3_column_int64(statement, 7);
    a->charge = sqlite3_column_int64(statement, 8);
    a->created = sqlite3_column_int64(statement, 9);
    a->n_prompt = sqlite3_column_int64(statement, 10);
    a->n_drawn = sqlite3_column_int(statement, 11);
    a->end = sqlite3_column_int(statement, 12);
    if (a->state != STORED_DONE)
        return DPI_STATUS_OK;
    a->text = copy_column(statement, 13, &a->n_bytes);
    a->facts = copy_column(statement, 14, NULL);
    if (a->text && a->facts)
        return DPI_STATUS_OK;
    stored_free(a);
    return fail_with(err, DPI_STATUS_MEMORY, "no memory for an answer");
}

static dpi_status read_one(store *s, sqlite3_stmt *statement, stored *a, dpi_error *err) {
    bool row;
    *a = (stored){0};
    dpi_status status = step(s, statement, &row, err);
    if (status == DPI_STATUS_OK && row)
        status = read_row(statement, a, err);
    sqlite3_finalize(statement);
    return status;
}

dpi_status store_find(store *s, const char *principal, const char *key, stored *a,
                      dpi_error *err) {
    sqlite3_stmt *statement;
    TRY(prepare(s, &statement, err,
                "SELECT " COLUMNS " FROM answer WHERE principal = ?1 AND key = ?2", "tt",
                principal, key));
    return read_one(s, statement, a, err);
}

dpi_status store_is_done(store *s, const char *id, bool *is_done, dpi_error *err) {
    sqlite3_stmt *statement;
    TRY(prepare(s, &statement, err, "SELECT 1 FROM answer WHERE id = ?1 AND state = 2", "t", id));
    const dpi_status status = step(s, statement, is_done, err);
    sqlite3_finalize(statement);
    return status;
}

dpi_status store_next_begun(store *s, int64_t after, stored *a, dpi_error *err) {
    sqlite3_stmt *statement;
    TRY(prepare(s, &statement, err,
                "SELECT " COLUMNS " FROM answer WHERE state = 1 AND number > ?1"
                " ORDER BY number LIMIT 1", "i", after));
    return read_one(s, statement, a, err);
}

dpi_status store_report(store *s, const char *principal, const char *id, char **report,
                        dpi_error *err) {
    sqlite3_stmt *statement;
    bool row;
    *report = NULL;
    TRY(prepare(s, &statement, err,
                "SELECT report FROM answer WHERE principal = ?1 AND id = ?2 AND state = 2", "tt",
                principal, id));
    dpi_status status = step(s, statement, &row, err);
    if (status == DPI_STATUS_OK && row && !(*report = copy_column(statement, 0, NULL)))
        status = fail_with(err, DPI_STATUS_MEMORY, "no memory for a report");
    sqlite3_finalize(statement);
    return status;
}

/* ---- Changes --------------------------------------------------------------------------------- */

static dpi_status find_round(store *s, stored *a, dpi_error *err) {
    sqlite3_stmt *statement;
    bool row;
    TRY(prepare(s, &statement, err,
                "SELECT coalesce(max(round), 0) + 1 FROM answer WHERE dataset = ?1 AND label = ?2",
                "tt", a->dataset, a->label));
    const dpi_status status = step(s, statement, &row, err);
    a->round = row ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return status;
}

static dpi_status insert(store *s, stored *a, int64_t most, dpi_error *err) {
    sqlite3_stmt *statement;
    int64_t spent;
    TRY(find_round(s, a, err));
    TRY(store_spent(s, a->principal, a->dataset, &spent, err));
    if (most >= 0 && (spent > most || a->amount > most - spent))
        return fail_with(err, DPI_STATUS_BUDGET, "the share of '%s' of the dataset '%s' does not "
                                                 "allow this", a->principal, a->dataset);
    TRY(prepare(s, &statement, err,
                "INSERT INTO answer(id, principal, dataset, key, hash, state, amount, charge,"
                " created, label, round) VALUES(?1, ?2, ?3, ?4, ?5, 1, ?6, 0, ?7, ?8, ?9)",
                "ttttbiiti", a->id, a->principal, a->dataset, a->key[0] ? a->key : NULL, a->hash,
                (size_t)STORE_HASH_BYTES, a->amount, a->created, a->label, a->round));
    TRY(finish(s, statement, err));
    a->number = sqlite3_last_insert_rowid(s->db);
    a->state = STORED_BEGUN;
    return DPI_STATUS_OK;
}

dpi_status store_begin(store *s, stored *a, int64_t most, dpi_error *err) {
    TRY(execute(s, "BEGIN IMMEDIATE", err));
    dpi_status status = insert(s, a, most, err);
    if (sqlite3_extended_errcode(s->db) == SQLITE_CONSTRAINT_UNIQUE && status == DPI_STATUS_IO)
        status = fail_with(err, DPI_STATUS_STATE, "the key is there already");
    if (status == DPI_STATUS_OK)
        status = execute(s, "COMMIT", err);
    if (status != DPI_STATUS_OK && !sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

dpi_status store_forget(store *s, const char *id, dpi_error *err) {
    sqlite3_stmt *statement;
    TRY(prepare(s, &statement, err, "DELETE FROM answer WHERE id = ?1 AND state = 1", "t", id));
    return finish(s, statement, err);
}

dpi_status store_finish(store *s, const stored *a, dpi_error *err) {
    sqlite3_stmt *statement;
    TRY(prepare(s, &statement, err,
                "UPDATE answer SET state = 2, charge = ?2, n_prompt = ?3, n_drawn = ?4, end = ?5,"
                " text = ?6, facts = ?7, report = ?8 WHERE id = ?1 AND state = 1",
                "tiiiibtt", a->id, a->charge, a->n_prompt, (int64_t)a->n_drawn, (int64_t)a->end,
                a->text, a->n_bytes, a->facts, a->report));
    TRY(finish(s, statement, err));
    return sqlite3_changes(s->db) == 1
               ? DPI_STATUS_OK
               : fail_with(err, DPI_STATUS_IO, "%s: an answer that was begun is gone", s->path);
}

dpi_status store_lose(store *s, const char *id, int64_t charge, dpi_error *err) {
    sqlite3_stmt *statement;
    TRY(prepare(s, &statement, err,
                "UPDATE answer SET state = 3, charge = ?2 WHERE id = ?1 AND state = 1", "ti", id,
                charge));
    return finish(s, statement, err);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

dpi_status store_spent(store *s, const char *principal, const char *dataset, int64_t *amount,
                       dpi_error *err) {
    sqlite3_stmt *statement;
    bool row;
    TRY(prepare(s, &statement, err,
                "SELECT coalesce(sum(amount), 0) FROM answer WHERE principal = ?1 AND dataset = ?2",
                "tt", principal, dataset));
    const dpi_status status = step(s, statement, &row, err);
    *amount = row ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return status;
}

dpi_status store_spenders(store *s, const char *dataset,
                          void (*tell)(void *user, const char *principal, int64_t amount,
                                       int64_t n_answers),
                          void *user, dpi_error *err) {
    sqlite3_stmt *statement;
    bool row = true;
    TRY(prepare(s, &statement, err,
                "SELECT principal, sum(amount), count(*) FROM answer WHERE dataset = ?1"
                " GROUP BY principal ORDER BY principal", "t", dataset));
    dpi_status status = DPI_STATUS_OK;
    while (status == DPI_STATUS_OK && row) {
        status = step(s, statement, &row, err);
        if (status == DPI_STATUS_OK && row)
            tell(user, (const char *)sqlite3_column_text(statement, 0),
                 sqlite3_column_int64(statement, 1), sqlite3_column_int64(statement, 2));
    }
    sqlite3_finalize(statement);
    return status;
}
