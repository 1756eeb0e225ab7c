/* books.h - what of a release is on the disk, and what it is charged: the journal of a job and the
 * ledger, of which a job that was given none has one of its own. They know no token's meaning, and
 * no record but for the hash that a job holds them to. Internal. */
#ifndef DPI_RELEASE_BOOKS_H
#define DPI_RELEASE_BOOKS_H

#include "pipeline/journal/journal.h"
#include "pipeline/release/plan.h"

typedef struct dpi_books {
    const dpi_plan *plan;
    dpi_run claim;     /* the plan's, with what the ledger has counted */
    bool begun;          /* a record may have been read: nothing is charged from now on */
    dpi_ledger *ledger;  /* the caller's, or the job's own; NULL: none */
    const char *dataset; /* of it */
    int64_t charge;      /* its id in the ledger; 0: none, or given back */
    bool owns_ledger;
    char *own_path;    /* its file */
    int64_t n_durable; /* what the journal has on the disk, when it was last looked at */
    bool lost;         /* it gets no more */
} dpi_books;

/* ---- charge.c -------------------------------------------------------------------------------- */

void dpi_books_open(dpi_books *books, const dpi_plan *plan);
/* As dpi_release_reserve. *pays [units] with scope UNIT, the caller's, private memory: 1: the unit
 * has paid; NULL: all of them take part. */
dpi_status dpi_books_reserve(dpi_books *books, uint8_t **pays, dpi_error *err);
/* As dpi_release_preview. */
dpi_status dpi_books_preview(dpi_books *books, dpi_error *err);
/* Takes the charge back, if there is one: no record was read. */
void dpi_books_give_back(dpi_books *books);

/* ---- own_ledger.c ---------------------------------------------------------------------------- */

/* A job without a ledger gets one in its folder; a job that goes on has that of its first begin.
 * Nothing happens where a ledger cannot count the run. Errors: IO, MEMORY; those of the ledger. */
dpi_status dpi_books_own_ledger(dpi_books *books, const char *folder, dpi_error *err);
/* Closes it; without `keep` no record was read, and its file goes. */
void dpi_books_end_ledger(dpi_books *books, bool keep);

/* ---- job.c ----------------------------------------------------------------------------------- */

/* Of a job that has begun: the charge that it was begun with, if there is a ledger. Errors: STATE;
 * those of the ledger. */
dpi_status dpi_books_find_charge(const dpi_books *books, dpi_charge *charge, dpi_error *err);
/* The facts of the release to the disk, or compared with those that it was begun with. Errors:
 * STATE (one is another), IO, MEMORY. */
dpi_status dpi_books_begin_job(const dpi_books *books, dpi_error *err);
/* The same for all records, as one keyed hash. Errors: STATE, IO, MEMORY, CANCELLED. */
dpi_status dpi_books_check_records(const dpi_books *books, dpi_error *err);

/* ---- kept_tokens.c --------------------------------------------------------------------------- */

/* The journal is that of a job that has begun. */
bool dpi_books_goes_on(const dpi_books *books);
/* What was drawn for n units or labels, to the disk under a name if there is a job. */
dpi_status dpi_books_keep_list(const dpi_books *books, const char *name, const int32_t *list,
                               size_t n, dpi_error *err);
/* The same back, freed with dpi_private_free; NULL: none is kept. Errors: FORMAT, IO, MEMORY. */
dpi_status dpi_books_kept_list(const dpi_books *books, const char *name, size_t n, int32_t **list,
                               dpi_error *err);
/* What an earlier process has drawn of a text: *tokens [*n]. */
void dpi_books_recall(const dpi_books *books, int32_t text, const int32_t **tokens, int32_t *n);
/* The next token of a text, with its place in the text, if there is a job. *sequence: what the disk
 * must have before it is told; 0: it may be told. Errors: those of dpi_journal_put. */
dpi_status dpi_books_put(const dpi_books *books, int32_t text, int32_t place, int32_t token,
                         bool is_last, int64_t *sequence, dpi_error *err);
/* Looks at what the disk has. */
void dpi_books_look(dpi_books *books);
/* Waits until the disk has all that was put. Errors: those of dpi_journal_wait: it gets no more. */
dpi_status dpi_books_wait(dpi_books *books, dpi_error *err);

#endif
