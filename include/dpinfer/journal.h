/* journal.h - a job: a folder that keeps a release while it is made, so that it can be stopped at
 * any instruction and go on. Part of libdpinfer_full. docs/job.md has the format of its files.
 *
 *     options.create = 1;                               or 0, for a job that is there
 *     dpi_journal_open("job", &options, &journal, &err);
 *     release_options.journal = journal;                 the release does the rest (release.h)
 *     dpi_journal_close(journal);
 *
 * A token is in the file before it is shown, and dpi_journal_put alone does not mean that it is:
 * the disk has it when dpi_journal_durable has counted it. A thread of the journal's own waits for
 * the disk, so that the next step is computed meanwhile. A token that the disk does not have was
 * not shown, and is drawn anew. dp/PRIVACY.md section 19 has the argument.
 *
 * Who opens a job to write it holds a lock on it (flock) until it is closed or the process ends:
 * two processes that go on with one job would each draw the same tokens. A copy of a folder has a
 * lock of its own: of a job and its copies only one may go on.
 *
 * The folder is readable by its owner alone, and as secret as the records: it holds the key or the
 * table that puts records into batches, and a keyed hash of the records.
 *
 * Threads: a journal belongs to one thread at a time. A process that was forked must open it anew.
 */
#ifndef DPINFER_JOURNAL_H
#define DPINFER_JOURNAL_H

#include <stddef.h>

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_journal dpi_journal;

#define DPI_JOURNAL_VERSION 1
#define DPI_JOURNAL_KEY_BYTES 32
#define DPI_JOURNAL_TEXTS_MAX 1073741824 /* texts have an index below it */
#define DPI_JOURNAL_TOKENS_MAX 1048576   /* tokens of a text */

typedef struct dpi_journal_options {
    size_t struct_size;
    int32_t create; /* 1: a new job: the folder is made, or has none that has begun; 0 (default): a
                       job that has begun */
    int32_t read_only; /* 1: nothing is written or locked, for a job that is over or that another
                          process goes on with; default 0 */
    int32_t every; /* tokens that wait until the disk has them together, 1..1048576; default 1. The
                      last one of a text waits for none */
    int32_t reserved;
    const char
        *application; /* create: a JSON object that is kept for the caller; NULL (default): none */
} dpi_journal_options;

DPI_API void dpi_journal_options_init_size(dpi_journal_options *options, size_t size);
#define dpi_journal_options_init(o) dpi_journal_options_init_size((o), sizeof *(o))

/* Opens the job in `folder`. What a killed process has left beyond the last whole token is set to
 * zero: nothing of it was shown. *journal is the caller's.
 * Errors: ARG (create: a job has begun there), STATE (no job has begun there), IO (no such folder,
 * not writable, another process goes on with it), FORMAT (damaged: the message says where),
 * UNSUPPORTED (made by a later program), ENTROPY, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_journal_open(const char *folder,
                                                   const dpi_journal_options *options,
                                                   dpi_journal **journal, dpi_error *err);
/* Does not wait for the disk: tokens that are not there yet may be lost. NULL is allowed. */
DPI_API void dpi_journal_close(dpi_journal *journal);

/* ---- What a job is --------------------------------------------------------------------------- */

/* The caller's object as it was given; NULL: none. The journal's. */
DPI_API const char *dpi_journal_application(const dpi_journal *journal);
/* Facts as they were given to dpi_journal_begin, a JSON object; NULL: the job has not begun. The
 * journal's. */
DPI_API const char *dpi_journal_facts(const dpi_journal *journal);
/* [DPI_JOURNAL_KEY_BYTES] random bytes that the job was given when it was made. SECRET. */
DPI_API const uint8_t *dpi_journal_key(const dpi_journal *journal);

/* The tokens of a text, *tokens [*n], n 0 for a text that has none. The journal's, valid until the
 * next call on it. */
DPI_API void dpi_journal_text(const dpi_journal *journal, int32_t text, const int32_t **tokens,
                              int32_t *n);
/* Texts that have tokens; tokens of all of them. */
DPI_API void dpi_journal_count(const dpi_journal *journal, int32_t *n_texts, int64_t *n_tokens);

/* ---- Writing: what a release does ------------------------------------------------------------ */

/* The job begins: its facts, a JSON object, are on the disk when this returns OK. Errors: STATE (it
 * has begun), ARG (no JSON object), IO, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_journal_begin(dpi_journal *journal, const char *facts,
                                                    dpi_error *err);

/* Data that the job needs to go on, in a file `name` (letters and digits) of the folder: on the
 * disk when this returns OK. Errors: STATE (not begun, or kept already), ARG, IO, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_journal_keep(dpi_journal *journal, const char *name,
                                                   const void *data, size_t n_bytes,
                                                   dpi_error *err);
/* The same back: *data [*n_bytes], freed with dpi_private_free; NULL (and OK): it was not kept.
 * Errors: IO, FORMAT (damaged), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_journal_kept(const dpi_journal *journal, const char *name,
                                                   void **data, size_t *n_bytes, dpi_error *err);

/* The next token of a text, and a request for the disk to have it. *sequence (may be NULL) is its
 * number, from 1. With last != 0 the request does not wait for others.
 * Errors: STATE (not begun, read only), ARG (not the next token of the text), IO (the disk, now or
 * before: nothing more is written). */
DPI_API DPI_MUST_CHECK dpi_status dpi_journal_put(dpi_journal *journal, int32_t text, int32_t place,
                                                  int32_t token, int32_t last, int64_t *sequence,
                                                  dpi_error *err);
/* The number of the last token that the disk has, with all before it. */
DPI_API int64_t dpi_journal_durable(dpi_journal *journal);
/* Waits until the disk has the token with this number; 0: all that were put. Errors: IO. */
DPI_API DPI_MUST_CHECK dpi_status dpi_journal_wait(dpi_journal *journal, int64_t sequence,
                                                   dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
