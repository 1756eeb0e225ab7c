/* release.h - records to released texts: everything that `dpinfer run` does. Part of
 * libdpinfer_full. examples/private_text.c is a whole program.
 *
 *     dpi_release_open(&options, &release, &err);     settles every number; reads no record
 *         dpi_release_run, dpi_release_plan_get     what it guarantees and needs
 *     dpi_release_begin(release, &err);               batches, memory; the budget counts as spent
 *         dpi_release_advance(release, &event, &err)  until DPI_EVENT_NONE
 *     dpi_run_statement, dpi_report_create          what a reader is told
 *     dpi_release_free(release);
 *
 * Each batch of records gives one text. Each call of advance does a piece of work and says what
 * came of it. Nothing is called back but `cancel` and, where processes share the work, what the
 * options `spread` and `next_text` name. Several texts are drawn at a time where that is faster;
 * their events come in the order of the texts all the same, and are those of one text at a time.
 * With as_drawn they come at once, each with the index of its text: for a caller that keeps what is
 * drawn. */
#ifndef DPINFER_RELEASE_H
#define DPINFER_RELEASE_H

#include "dpinfer/claim.h"
#include "dpinfer/generation.h"
#include "dpinfer/journal.h"
#include "dpinfer/ledger.h"
#include "dpinfer/pace.h"
#include "dpinfer/prompts.h"
#include "dpinfer/records.h"
#include "dpinfer/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_release dpi_release;

#define DPI_MAX_PER_UNIT_DEFAULT 4 /* M, where a release has units and max_per_unit is 0 */
#define DPI_RELEASE_KEY_BYTES 32

/* The model and the records stay the caller's and must outlive the release. */
typedef struct dpi_release_options {
    size_t struct_size;
    const dpi_model *model;
    const dpi_records *records; /* NULL (default): n_records of them, for a plan; or none, with
                                   PLAIN from the public prompt */
    int64_t n_records;          /* if records is NULL: units. With add/remove and with subsample,
                                   where their number is secret: a public bound on it, 1 / delta
                                   must be above it. Default 0: none is stated */
    int64_t reference;  /* PLAIN: whose prompt is continued, a record from 0; -1 (default): none */
    int32_t batch;      /* B, 1..4096; 0 (default): all records up to 16, else 8 */
    int32_t n_texts;    /* at most one for each batch; 0 (default): one for each, with PLAIN one */
    int32_t n_tokens;   /* T; 0 (default): dpi_tokens_default() of the context */
    int32_t top_k;      /* at most the vocabulary; 0: all of it; -1 (default): the method's */
    int32_t n_parallel; /* texts that are drawn at a time, 1..4096; decides time and memory alone. 0
                           (default): what processors and memory allow, or 1 if method.random is
                           set */
    int32_t seeded; /* 1: NOT PRIVATE: random bits come from `seed`, those of a token from the seed,
                       its text and its place in it alone; default 0 */
    int32_t as_drawn; /* 1: events come as their texts are drawn; default 0: text after text */
    uint64_t seed; /* with seeded: whoever knows it can undo the mechanism */
    /* With units (records.h) a slot and a batch count units, and method.max_per_unit is M, default
     * 4; without, it is not allowed. */
    /* Method, its parameters, budget, adjacency, accountant, temperature and random bits. What
     * follows from the rest is set here: n_ref, denominator, n_tokens, top_k, n_vocab, isa. delta
     * defaults to 1e-6. With several texts at a time method.random is called for them in turn. */
    dpi_sampler_options method;
    dpi_session_options session; /* threads, ISA, KV, cancel. n_seq follows from the rest; n_ctx 0:
                                    the model's, 4096 at most */
    dpi_prompt_options prompts;
    /* A release whose texts are drawn by several processes, each of which has the same options and
     * records (shards.h). */
    int32_t shard, n_shards; /* only the texts shard, shard + n_shards, ...; n_shards 0 (default):
                                all */
    int32_t (*next_text)(void *user); /* the texts that this gives, ascending, each once in all
                                         processes; -1: no more. Called when there is room for one.
                                         NULL (default): see shard */
    void *next_user;
    const dpi_spread *spread; /* each process has some of the slots of each batch: those index,
                                 index + count, ...; all draw all texts, one at a time. With
                                 INVISIBLEINK. Must outlive the release. NULL (default) */
    const uint8_t *key; /* [DPI_RELEASE_KEY_BYTES] random bytes, secret, and of one release alone:
                           which batch a record is in follows from them with add/remove and with
                           subsample. Copied. NULL (default): it is drawn */
    const dpi_claim_ledger *charged; /* the release is charged already, to a dataset of scope
                                        DATASET. Copied. NULL (default) */
    /* With labels (records.h) each text is for one label, and the units with it. Numbers of texts:
     * all batches of public labels; or n_texts, in proportion to the units of public labels, the
     * same for private ones; or label_texts. label_names, label_meanings and label_texts are
     * copied. */
    int32_t labels;   /* a dpi_labels. NONE (default): PUBLIC by position, PRIVATE where units are
                         assigned. Any other pair is refused */
    int32_t n_labels; /* 0 (default): public labels are those that units have */
    const char *const *label_names; /* [n_labels] strings; a unit with another one is in no text */
    const char *const *label_meanings; /* [n_labels] PUBLIC strings, what {label} stands for in the
                                          prompts of the label: texts do not say it. NULL (default),
                                          and each that is NULL: the label, with a description
                                          in words (dpi_label_in_prompt) */
    const int32_t *label_texts;     /* [n_labels]; NULL (default) */
    int32_t n_clusters; /* 2..DPI_LABELS_MAX: batches of similar records. Labels are "1", "2", ..,
                           and a unit has that of the public centroid that its first record is
                           nearest to (dp/PRIVACY.md section 20). Only with add/remove, without
                           other labels and in one process that is not a job. 0 (default): none */
    int32_t n_released; /* 0..DPI_EXAMPLES_MAX: rounds of so many texts of one label. Both prompts
                           of a text have those of the round before as examples (dp/PRIVACY.md
                           section 28). One process draws all texts. 0 (default): none */
    double histogram_rho; /* private labels: n_texts in proportion to a noisy histogram of the
                             units, at this cost, which is part of the budget. 0 (default): none */
    dpi_ledger *ledger;  /* the run is charged to it, and refused if it does not fit; the caller's,
                            must outlive the release. NULL (default): a job makes one for itself,
                            the file `ledger` in its folder; any other run is counted nowhere */
    const char *dataset; /* of the ledger */
    dpi_journal *journal; /* keeps the release while it is made, or goes on with one (journal.h);
                             the caller's, must outlive the release. NULL (default): what is not
                             told is lost */
    const dpi_grammar *grammar; /* texts are of this form, as long as T tokens allow; public. The
                                   caller's, must outlive the release. NULL (default): any text */
    const dpi_wording *wording; /* how texts are worded; public, copied. NULL (default): nothing is
                                   set. prompts.answer is not used: it is that of the wording */
    const char *model_path; /* with a journal: the file that the model was opened with */
    int32_t known_batches; /* 1: which batch a record is in may become known, so that nothing is
                              counted on its being secret; 0 (default): where records are assigned
                              (add/remove, subsample) and the budget is epsilon, a run costs less
                              than a text does (method.allocation, which is set here), without a
                              histogram and without n_clusters */
    int32_t steered; /* 1: the model's control vector is of `dpinfer steer`, and of these records:
                        its claim is a part of the run's. Replace-by-null, with what is counted in
                        zCDP, without a ledger, which adds up the charges of both. Vectors of labels
                        are for texts of the same labels, public here, too. 0 (default):
                        what it cost is another claim, or nothing */
    /* Where another process has the journal, with next_text or spread: what earlier processes have
     * drawn of a text, *tokens [*n], valid until the release is freed. NULL (default): nothing */
    void (*recalled)(void *user, int32_t text, const int32_t **tokens, int32_t *n);
    void *recalled_user;
} dpi_release_options;

enum { DPI_LABELS_MAX = 1024, DPI_LABEL_TEXTS_MAX = 1000000 };

DPI_API void dpi_release_options_init_size(dpi_release_options *options, size_t size);
#define dpi_release_options_init(o) dpi_release_options_init_size((o), sizeof *(o))

/* What can be checked without the model, which may be NULL here.
 * Errors: ARG ("batch: found ..., allowed ..."), FORMAT (there is no record), LIMIT (too many). */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_options_check(const dpi_release_options *options,
                                                            dpi_error *err);

/* Settles every number of a release. Of the records only their number is looked at. Errors: as
 * dpi_release_options_check, dpi_prompts_create and dpi_run_settle; MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_open(const dpi_release_options *options,
                                                   dpi_release **release, dpi_error *err);
/* Wipes. NULL is allowed. */
DPI_API void dpi_release_free(dpi_release *release);

/* What it guarantees; the release's own. */
DPI_API const dpi_run *dpi_release_run(const dpi_release *release);

/* How its texts are worded; the release's own. */
DPI_API const dpi_wording *dpi_release_wording(const dpi_release *release);

/* The public texts that its pace was found from; the release's own. NULL: none were drawn. */
DPI_API const dpi_pace_texts *dpi_release_public_texts(const dpi_release *release);

/* Its prompts in full, as JSON: a string that the caller frees with dpi_private_free, of one
 * release always the same bytes, whose SHA-256 the claim has. docs/report.md has the keys. Errors:
 * MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_prompts(const dpi_release *release, char **json,
                                                      dpi_error *err);

/* What it needs, on this machine. All of it is public. */
typedef struct dpi_release_plan {
    size_t struct_size;
    int32_t n_ctx;
    int32_t n_prompt_most;   /* tokens of the longest prompt that can be */
    int32_t n_prompt_public; /* of the public prompt */
    int32_t n_prompt_shared; /* that private prompts begin with; 0 with PLAIN */
    int32_t n_record_usual;  /* set before the call: tokens of a usual record, as far as that is
                                public; 0 (default): 300, or prompts.max_reference_tokens */
    int32_t n_unit_usual;    /* the same: records of a usual unit, 1..M; 0 (default): M */
    int32_t n_prompt_usual;  /* tokens of a prompt with such a record */
    int32_t n_parallel;      /* texts that are drawn at a time */
    int32_t rows_per_step;   /* sequences that a step computes, most: B + 1 of each text, B M + 1
                                with units */
    int32_t rows_usual;      /* the same with units of n_unit_usual records: those that are
                                measured */
    int32_t chat;            /* the dpi_chat of the prompts */
    int32_t n_text_usual;    /* tokens of a usual text: of public ones on average where the pace is
                                found from them, else T */
    int32_t reserved;
    int64_t weight_bytes;    /* of the model, as stored */
    int64_t model_bytes;     /* of this process with the whole model in memory */
    int64_t session_bytes;   /* caches, work space, and prompts that are kept */
    int64_t memory_bytes;    /* the peak of all, with prompts of n_prompt_most: no records need
                                more */
    int64_t memory_usual_bytes; /* the peak with prompts of n_prompt_usual, and n_unit_usual
                                   records in a unit: caches grow with the records, in blocks */
    double read_bytes_per_second; /* from memory, all threads; 0: not known */
    double seconds_at_least; /* each step of these texts reads each weight once; 0: not known */
    double prompt_tokens_per_second; /* measured, with n_prompt_usual */
    double step_seconds;             /* measured: a step of all texts behind a short prompt */
    double seconds;         /* of the run, with texts of n_text_usual tokens and prompts of
                               n_prompt_usual */
    double seconds_reading; /* of them with prompts */
    double seconds_most;    /* with texts of T tokens, prompts of n_prompt_most, units of M records
                               each */
} dpi_release_plan;

DPI_API void dpi_release_plan_init_size(dpi_release_plan *plan, size_t size);
#define dpi_release_plan_init(o) dpi_release_plan_init_size((o), sizeof *(o))

/* Measures a few passes with made-up prompts, which takes a second or two, more for large models,
 * and as much memory as the begin of a release. Errors: ARG, MEMORY, ENTROPY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_plan_get(const dpi_release *release,
                                                       dpi_release_plan *plan, dpi_error *err);

/* Charges the whole run to the ledger of the options: on the disk when it returns. The claim has
 * the sums before and after from then on. Without a ledger, and the second time, nothing happens. A
 * charge is given back where the release is freed, or its begin fails, before a record was read.
 * Errors: BUDGET (too little is left), UNSUPPORTED (the run has no guarantee that a ledger could
 * count), STATE (begun already); those of dpi_ledger_reserve. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_reserve(dpi_release *release, dpi_error *err);

/* What a reserve would do: the claim has the sums before and after as if it were charged. Nothing
 * is written; the ledger may be read-only. Errors: those of dpi_release_reserve; with BUDGET the
 * claim has the sums all the same. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_preview(dpi_release *release, dpi_error *err);

/* Reserves, if that was not done. Makes the batches and the session. With add/remove every record
 * is read here. Once it has succeeded the budget counts as spent, whatever comes of it.
 * Errors: those of dpi_release_reserve; IO (a record), LIMIT (a batch has more records than a
 * session may have), STATE (begun already, or there are no records), CANCELLED, ENTROPY, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_begin(dpi_release *release, dpi_error *err);

/* What came of a piece of work. */
typedef struct dpi_release_event {
    int32_t type;  /* a dpi_event: PROMPT, TOKEN, END (of a text); NONE: all texts are over */
    int32_t index; /* of the text, from 0 */
    int32_t n_read, n_prompts; /* n_read of n_prompts of its prompts are read; n_prompts 0: their
                                  number is secret (dpi_run_is_assigned) */
    int32_t token;   /* TOKEN; else -1 */
    int32_t n_drawn; /* tokens of this text so far, the one that ends it included */
    int32_t end;     /* END: a dpi_end: how the text ended */
    int32_t reserved;
    const char *text; /* TOKEN, END: [n_bytes] whole UTF-8 sequences that are released; never NULL.
                         The release's, valid until the next call */
    size_t n_bytes;
} dpi_release_event;

/* The label of text `index`, *label [*n_bytes] and a NUL, which a release tells from its begin on;
 * NULL: there are none. The release's own. */
DPI_API void dpi_release_label(const dpi_release *release, int32_t index, const char **label,
                               size_t *n_bytes);
/* Text `index` as a line of JSON, as the command `run` writes it to a .jsonl and a shard to its
 * texts.jsonl (shards.h): text [n_bytes] is all that its events gave, in UTF-8; n_tokens and end
 * are those of its END. *line [*n_line] has a NUL behind it and no line feed, and is freed with
 * free. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_line(const dpi_release *release, int32_t index,
                                                   const char *text, size_t n_bytes,
                                                   int32_t n_tokens, int32_t end, char **line,
                                                   size_t *n_line, dpi_error *err);

/* Goes on to the next event, and begins the release if it has not begun. Texts are told in their
 * order: the events of one that is drawn beside an earlier one wait, unless as_drawn is set. A text
 * is whole with its END. PROMPT may be of any text.
 * If one text fails, the texts before it are finished. Later texts end where they are, each with
 * its END (and OK). Then the status comes: what was drawn is always told. Cancelled: the same, and
 * all texts end where they are. Each further call gives that status.
 * Errors: those of dpi_release_begin; CANCELLED; FORMAT (PLAIN: the record is null); IO (a record);
 * ENTROPY; NUMERIC (the model); MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_advance(dpi_release *release,
                                                      dpi_release_event *event, dpi_error *err);

/* How far the texts are: public, as the events are. */
typedef struct dpi_release_progress {
    size_t struct_size;
    int32_t n_texts;
    int32_t n_begun, n_ended; /* of them; those that are drawn and not told too */
    int32_t reserved;
    int64_t n_prompts, n_read; /* of all texts; of them read; 0: secret */
    int64_t n_drawn;           /* tokens of all texts */
    int64_t n_tokens_left;     /* most tokens that are still to come */
} dpi_release_progress;

DPI_API void dpi_release_progress_init_size(dpi_release_progress *progress, size_t size);
#define dpi_release_progress_init(o) dpi_release_progress_init_size((o), sizeof *(o))
/* Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_release_progress_get(const dpi_release *release,
                                                           dpi_release_progress *progress,
                                                           dpi_error *err);

/* Makes a call of advance that runs, or the next one, stop soon. From any thread, and from a signal
 * handler. */
DPI_API void dpi_release_cancel(dpi_release *release);

/* Records so far that were null: PRIVATE. -1 where it must not even be shown to the operator: their
 * number is secret too. */
DPI_API int64_t dpi_release_null_records(const dpi_release *release);

#ifdef __cplusplus
}
#endif
#endif
