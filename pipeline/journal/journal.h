/* journal.h - the inside of a journal, see dpinfer/journal.h. Internal.
 *
 * docs/job.md has the format. A record is 32 bytes inside of one sector, in a file that was filled
 * with zeros and synced before: a write that a power cut stops leaves the record or zeros, and no
 * file size changes with it. After the last record there is always one that is zero. So a file that
 * has lost its end, a record that has changed and one that has vanished are told from a write that
 * did not arrive. */
#ifndef DPI_JOURNAL_JOURNAL_H
#define DPI_JOURNAL_JOURNAL_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>

#include "dpinfer/journal.h"

enum {
    DPI_JOURNAL_HEADER = 4096, /* bytes in front of the records */
    DPI_JOURNAL_RECORD = 32,
    DPI_JOURNAL_GROW = 1 << 16, /* bytes of zeros at a time */
    DPI_JOURNAL_ID = 16,
    DPI_JOURNAL_AHEAD = 16, /* records that are written before the disk has the first of them */
};

typedef struct dpi_journal_text_tokens {
    int32_t index, n;
    size_t capacity;
    int32_t *tokens; /* private memory: a plain text may be that of a record */
} dpi_journal_text_tokens;

/* The thread that waits for the disk. */
typedef struct dpi_journal_sync {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t requested, done;
    bool runs, stops;
    int64_t n_put, n_wanted, n_durable; /* tokens that are written, requested, on the disk */
    int reason;                         /* errno of a failure; 0: none */
} dpi_journal_sync;

struct dpi_journal {
    char *folder; /* as it was given, for messages */
    char *root;   /* the same from the root: a process may go to another folder */
    int dir, fd;  /* the folder; its file `tokens`, -1: not open */
    int32_t every;
    bool read_only, begun;
    int reason;                /* errno of a write that has failed; 0: none */
    bool made_folder, is_ours; /* here; `tokens` too, for a job that has not begun */
    uint8_t id[DPI_JOURNAL_ID], key[DPI_JOURNAL_KEY_BYTES];
    char *application, *facts;
    dpi_journal_text_tokens *texts; /* [n_texts], by index */
    int32_t n_texts;
    size_t texts_capacity;
    int64_t n_records;
    int64_t n_room; /* records that the file has room for, zero ones included, on the disk */
    dpi_journal_sync sync;
};

/* Whether this is the folder of the journal, however it is spelled. */
bool dpi_journal_is_in(const dpi_journal *journal, const char *folder);

/* Its folder from the root. */
const char *dpi_journal_root(const dpi_journal *journal);

/* ---- token_file.c: records ------------------------------------------------------------------- */

typedef struct dpi_journal_record {
    int64_t sequence, n_durable; /* from 0; records that the disk had when this one was written */
    int32_t text, place, token;
} dpi_journal_record;

void dpi_journal_encode(const uint8_t id[DPI_JOURNAL_ID], const dpi_journal_record *record,
                        uint8_t bytes[DPI_JOURNAL_RECORD]);
/* False: no record of this job. */
bool dpi_journal_decode(const uint8_t id[DPI_JOURNAL_ID], const uint8_t bytes[DPI_JOURNAL_RECORD],
                        dpi_journal_record *record);
bool dpi_journal_is_zero(const uint8_t *bytes, size_t n);

/* The header of the file `tokens`. */
bool dpi_journal_is_header(const uint8_t *bytes);
void dpi_journal_header(const uint8_t id[DPI_JOURNAL_ID], uint8_t bytes[DPI_JOURNAL_HEADER]);
/* Errors: FORMAT, UNSUPPORTED. */
dpi_status dpi_journal_check_header(const dpi_journal *journal,
                                    const uint8_t bytes[DPI_JOURNAL_HEADER], dpi_error *err);

/* Reads all records. With write access, zeros what was not shown. Errors: as dpi_journal_open. */
dpi_status dpi_journal_recover(dpi_journal *journal, dpi_error *err);

/* ---- token_texts.c: tokens in memory --------------------------------------------------------- */

/* Errors: ARG (not the next token of the text), MEMORY. */
dpi_status dpi_journal_add(dpi_journal *journal, int32_t text, int32_t place, int32_t token,
                           dpi_error *err);
void dpi_journal_free_texts(dpi_journal *journal);

/* ---- job_files.c: whole files and writes ----------------------------------------------------- */

dpi_status dpi_journal_fail(const dpi_journal *journal, const char *what, const char *name,
                            dpi_error *err); /* IO, with errno */
/* All of data at an offset. False: errno. */
bool dpi_journal_write(int fd, const void *data, size_t n_bytes, int64_t offset);
/* Zeros until there is room for a record and a zero one behind it, on the disk. False: errno. */
bool dpi_journal_make_room(dpi_journal *journal);
/* A file of the folder: it appears whole, and is on the disk. Errors: IO, MEMORY. */
dpi_status dpi_journal_write_file(const dpi_journal *journal, const char *name, const void *data,
                                  size_t n_bytes, dpi_error *err);
/* *data [*n_bytes] and a NUL behind it, private memory; NULL (and OK): there is none. Errors: IO,
 * MEMORY. */
dpi_status dpi_journal_read_file(const dpi_journal *journal, const char *name, char **data,
                                 size_t *n_bytes, dpi_error *err);

/* ---- job_json.c: job.json -------------------------------------------------------------------- */

/* What the job is, to the disk. Errors: IO, MEMORY, ARG. */
dpi_status dpi_job_write(const dpi_journal *journal, const char *facts, dpi_error *err);
/* *found: there is one. Errors: IO, FORMAT, UNSUPPORTED, MEMORY. */
dpi_status dpi_job_read(dpi_journal *journal, bool *found, dpi_error *err);

/* ---- sync.c ---------------------------------------------------------------------------------- */

void dpi_journal_sync_start(dpi_journal *journal);
void dpi_journal_sync_stop(dpi_journal *journal);
/* A token was written; wanted: the disk is to have all of them. */
void dpi_journal_sync_note(dpi_journal *journal, bool wanted);
/* errno of a failure; 0: none. */
int dpi_journal_sync_reason(dpi_journal *journal);

#endif
