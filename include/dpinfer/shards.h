/* shards.h - one release that several processes draw, each some of its texts, and these texts as
 * one output. Part of libdpinfer_full. The processes do not talk to each other: they share a
 * folder, or have a copy of it each.
 *
 *     once           dpi_release_open, dpi_report_create, dpi_shards_create
 *     each process   dpi_shards_open, dpi_shards_join, dpi_release_open, dpi_report_create,
 *                    dpi_shards_begin, dpi_release_advance and its texts into dpi_shards_texts,
 *                    dpi_shards_end
 *     at the end     dpi_merge_open, dpi_merge_text, dpi_merge_report
 *
 * A job is one release: one claim, one charge, one key. Shard i of n draws the texts i, i + n, ...
 * The key says which batch a record is in, where it is not the record's position that does; so it
 * is the same batch in every shard, and no record is in the texts of two of them.
 *
 * The folder of a job is readable by its owner alone. In it:
 *     key                      32 random bytes
 *     shards.json              the report of the job, keyed digests of prompts and records
 *     count                    n, from the first shard on
 *     shard-I-of-N/            from the begin of a shard on
 *         job.json, tokens     the journal of the shard, with which it goes on (docs/job.md)
 *         texts.jsonl          its texts: a line for each, with index, text, n_tokens and ended
 *         shard.json           when it is over: whether it is complete, and a keyed digest of
 *                              texts.jsonl
 * The key is private, as whoever has it knows which batch a record would be in; so are journals.
 *
 * Threads: an object belongs to one thread at a time. Source: dp/PRIVACY.md section 18. */
#ifndef DPINFER_SHARDS_H
#define DPINFER_SHARDS_H

#include "dpinfer/release.h"
#include "dpinfer/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A job ----------------------------------------------------------------------------------- */

typedef struct dpi_shards dpi_shards;

/* Makes the folder of a job, which must not be there. The release is one that has not begun; its
 * options are those of each shard, but without shard, key and charged. `report` is of its claim.
 * Charges the whole job to the ledger of the release, if there is one, and then reads the records
 * for their digest. After that the charge stays, whatever becomes of the release object.
 * Errors: those of dpi_release_reserve; UNSUPPORTED (a dataset of scope UNIT); STATE (the release
 * has begun), IO, ENTROPY, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_shards_create(const char *folder, dpi_release *release,
                                                 dpi_report *report, dpi_error *err);

/* Opens the folder of a job. *job is the caller's. Errors: IO; FORMAT (no job, or one that was
 * changed); UNSUPPORTED (the key can be read by others); MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_shards_open(const char *folder, dpi_shards **job,
                                                  dpi_error *err);
/* Wipes. NULL is allowed. */
DPI_API void dpi_shards_close(dpi_shards *job);

/* Makes shard i of n of the job what the options are about: i, n, key and charge. They refer to
 * the job, which must be open when the release is. Errors: ARG (0 <= i < n). */
DPI_API DPI_MUST_CHECK dpi_status dpi_shards_join(dpi_shards *job, int32_t i, int32_t n,
                                               dpi_release_options *options, dpi_error *err);

/* The folder of the shard, from dpi_shards_join on; the job's. A release of the shard whose
 * options.journal is a journal in that folder (journal.h) can be stopped at any instruction: the
 * next process of the shard opens the journal that has begun, and goes on. Without a journal a
 * shard begins once, and what was not written when it stopped is lost. */
DPI_API const char *dpi_shards_folder(const dpi_shards *job);

/* Begins the shard: checks that the release has the claim, the prompts and the records of the job,
 * and `report`, which is made of the release, its model; then marks the shard as begun, on the
 * disk. To be called before dpi_release_begin. Reads all records once.
 * Errors: ARG (the release is another one: the message says where it differs, of records and
 * prompts only that they do; a journal that is elsewhere), STATE (the shard has begun before and
 * has no journal, or another n has begun), IO, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_shards_begin(dpi_shards *job, const dpi_release *release,
                                                const dpi_report *report, dpi_error *err);

/* Whether all texts of the shard are there, after dpi_shards_begin: nothing is left to draw. */
DPI_API int32_t dpi_shards_is_over(const dpi_shards *job);

/* The path of the shard's texts.jsonl, from dpi_shards_join on; the job's. The caller writes it,
 * after dpi_shards_begin, by dpi_release_line: all texts, as a release with a journal tells all of
 * them again. */
DPI_API const char *dpi_shards_texts(const dpi_shards *job);

typedef enum dpi_shard_end {
    DPI_SHARD_COMPLETE = 0, /* all texts of the shard are in texts.jsonl */
    DPI_SHARD_STOPPED = 1,  /* some are. Without a journal the others are lost, and the shard does
                               not begin again */
    DPI_SHARD_UNDRAWN = 2   /* no token was drawn: the shard may begin again */
} dpi_shard_end;

/* What became of the shard, on the disk. Errors: IO, MEMORY, STATE (no begin). */
DPI_API DPI_MUST_CHECK dpi_status dpi_shards_end(dpi_shards *job, int32_t end, dpi_error *err);

/* What processes of one release have to agree on. */
typedef enum dpi_agreement {
    DPI_AGREE_CLAIM = 0,   /* the claim but for its ledger, and with a report the model's files */
    DPI_AGREE_PROMPTS = 1, /* and all that caches depend on */
    DPI_AGREE_RECORDS = 2  /* all of them are read: after the charge */
} dpi_agreement;

/* A keyed digest of one of them, 64 hex digits and a NUL. `report` may be NULL. Errors: those of
 * dpi_records_read, CANCELLED, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_digest(const dpi_release *release,
                                                     const dpi_report *report, int32_t what,
                                                     const uint8_t key[DPI_RELEASE_KEY_BYTES],
                                                     char hex[65], dpi_error *err);

/* ---- All shards as one ----------------------------------------------------------------------- */

typedef struct dpi_merge dpi_merge;

/* The texts of a job from its folders [n_folders], which are copies of one, or one alone. With
 * partial 1 shards may be missing, or have stopped. Checks that the folders are of one job, that no
 * shard and no text is there twice, that texts are those that their shards ended with, and that
 * none is missing.
 * *merge is the caller's.
 * Errors: FORMAT (one of that; the message names the shards), STATE (a shard is missing, or not
 * over), those of dpi_shards_open. */
DPI_API DPI_MUST_CHECK dpi_status dpi_merge_open(const char *const *folders, size_t n_folders,
                                                 int32_t partial, dpi_merge **merge,
                                                 dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_merge_close(dpi_merge *merge);

/* Texts of the whole job, and how many of them there are. */
DPI_API int32_t dpi_merge_count(const dpi_merge *merge, int32_t *n_present);

/* A text of the job. */
typedef struct dpi_merged_text {
    const char *text, *line;   /* line: its line in texts.jsonl, without the line feed; NULL: the
                                  text is missing. The merge's */
    size_t n_bytes, n_line;
    int32_t n_tokens, end; /* end: a dpi_end */
    const char *label;     /* NULL: it has none */
} dpi_merged_text;

/* Errors: ARG (i). */
DPI_API DPI_MUST_CHECK dpi_status dpi_merge_text(const dpi_merge *merge, int32_t i,
                                                 dpi_merged_text *text, dpi_error *err);
/* The report of the job, ready for dpi_report_text; the merge's. */
DPI_API dpi_report *dpi_merge_report(const dpi_merge *merge);

#ifdef __cplusplus
}
#endif
#endif
