/* release.h - the parts of a release, see dpinfer/release.h. Internal. */
#ifndef DPI_RELEASE_RELEASE_H
#define DPI_RELEASE_RELEASE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "dpinfer/generation.h"
#include "dpinfer/release.h"
#include "pipeline/partition.h"
#include "pipeline/release/labels.h"

enum { MAX_SEQUENCES = 4097 }; /* of several texts at a time */

/* The private prompt of a record; tokens NULL: null. */
typedef struct dpi_prompt {
    int32_t *tokens; /* private memory */
    size_t n_tokens;
} dpi_prompt;

/* Room for a text that is drawn: sequences of the session, a sampler, the prompts of a batch. */
typedef struct dpi_place {
    int32_t first_seq;
    int32_t **tokens; /* [n_slots] the prompts, private memory; NULL: null */
    size_t *n_tokens; /* [n_slots] */
    dpi_sampler *sampler;
    uint64_t bits;              /* seeded: the state of the sampler's random bits */
    dpi_generation *generation; /* NULL: the place is free */
} dpi_place;

typedef struct dpi_waiting_event {
    int32_t type, token, n_drawn, end;
    size_t n_bytes;
    int64_t sequence; /* of the journal: the disk must have it before it is told; 0: it may be
                         told */
} dpi_waiting_event;

/* A text that has begun, with the events that were not told yet: texts are told in their order,
 * whichever ends first. Private memory. */
typedef struct dpi_release_text {
    struct dpi_release_text *next; /* the one after it */
    int32_t index;
    dpi_place *place;          /* NULL: all of it is drawn */
    int32_t n_read, n_prompts; /* n_prompts 0: its generation has not said yet */
    int32_t n_drawn;           /* tokens among its events */
    int32_t n_recalled;        /* of them, those that an earlier process has drawn */
    int32_t *recalled;         /* [n_recalled] */
    int32_t n_lost;            /* tokens that the disk did not get: nothing after them is told */
    bool is_cut;               /* an event is lost: nothing follows but its END, without text */
    dpi_waiting_event *events; /* [n_events], of which n_told are told */
    size_t n_events, n_told, capacity;
    char *bytes; /* [n_bytes] the text of all events, of which n_bytes_told are told */
    size_t n_bytes, n_bytes_told, bytes_capacity;
} dpi_release_text;

/* The texts of one pass, in their order. */
typedef struct dpi_pass {
    int32_t n;
    dpi_release_text **texts; /* [n_places] */
    dpi_generation **generations;
    dpi_generation_event *events;
} dpi_pass;

/* Random bits that are the same in each process of a release. */
typedef struct dpi_keyed_bits {
    uint8_t key[DPI_RELEASE_KEY_BYTES];
    uint64_t n_blocks; /* that were given */
} dpi_keyed_bits;

struct dpi_release {
    /* Settled by open; public. */
    dpi_release_options options; /* with every default filled in */
    dpi_claim claim;
    dpi_model_info info;
    dpi_label_list labels;
    dpi_prompts **prompts; /* [n_prompts] one for all texts, or one for each label */
    int32_t n_prompts;
    dpi_prompts_info prompts_info; /* the longest of them, and the least that is shared */
    dpi_mask *mask; /* NULL: without a grammar */
    dpi_sampler *sampler; /* from open on by position, until the first place has it */

    int64_t charge; /* its id in the ledger; 0: none, or given back */
    dpi_ledger *own_ledger; /* of a job that was given none, also in options; NULL: none */
    char *own_path;
    dpi_keyed_bits keyed; /* with options.key: what batches follow from. Private */

    uint8_t *pays; /* [units] with scope UNIT, once it is charged: 1: the unit has paid. Private */

    /* From begin on; private. */
    dpi_partition *partition;
    int32_t *group_of; /* [units] with n_clusters, else NULL: their labels */
    dpi_prompt *kept; /* [units, max_per_unit] by content: the prompts of records that were read;
                         else NULL */
    size_t n_kept;
    dpi_session *session;
    int64_t n_null;
    uint64_t bits; /* seeded: the state of the random bits that no text has */
    atomic_int cancelled;

    /* Texts. */
    bool begun;
    size_t n_slots; /* prompts of references: with max_per_unit so many for each unit */
    dpi_place *places; /* [n_places] */
    int32_t n_places;
    dpi_pass pass;
    dpi_release_text *texts; /* those that have begun and are not told to their end, in order */
    int32_t next;       /* index of the text that begins next; n_texts: there is none */
    bool next_known;    /* with next_text: it was called */
    int32_t n_begun;
    int32_t n_ended;    /* texts that are drawn */
    int64_t n_read;     /* prompts of all texts that are read */
    int64_t n_drawn;    /* tokens of all texts */
    int64_t n_durable;  /* what the journal has on the disk */
    bool lost;          /* it gets no more */
    int32_t stopped_at; /* with a failure: index of the text that has failed */
    dpi_error failure;  /* code: what a call returns when no event waits; OK: none yet */
};

/* The prompts of a label; index -1: there are none. */
const dpi_prompts *dpi_release_prompts(const dpi_release *r, int32_t label);
/* The label of a text; -1: there are none. */
int32_t dpi_release_label_index(const dpi_release *r, int32_t text);

/* Slots of the sampler: units. */
int32_t dpi_release_n_ref(const dpi_release *r);
/* Whether a unit may be read: with scope UNIT only if it has paid. */
bool dpi_release_unit_pays(const dpi_release *r, size_t unit);
/* Takes the charge back, if there is one: no record was read. */
void dpi_release_give_back(dpi_release *r);

/* ---- own_ledger.c ---------------------------------------------------------------------------- */

/* A job without a ledger gets one in its folder, which the options have from then on; a job that
 * goes on has that of its first begin. Nothing happens where a ledger cannot count the run. Errors:
 * IO, MEMORY; those of the ledger. */
dpi_status dpi_release_own_ledger(dpi_release *r, const char *folder, dpi_error *err);
/* Closes it; without `keep` no record was read, and its file goes. */
void dpi_release_end_ledger(dpi_release *r, bool keep);

/* ---- job.c ----------------------------------------------------------------------------------- */

/* Whether a release with these options can be a job. Errors: UNSUPPORTED, ARG. */
dpi_status dpi_release_check_job(const dpi_release_options *options, dpi_error *err);
/* The journal is that of a job that has begun. */
bool dpi_release_goes_on(const dpi_release *r);
/* Of such a job: the charge that it was begun with, if there is a ledger. Errors: STATE; those of
 * the ledger. */
dpi_status dpi_release_find_charge(dpi_release *r, dpi_charge *charge, dpi_error *err);
/* The facts of the release to the disk, or compared with those that it was begun with. Errors:
 * STATE (one is another), IO, MEMORY. */
dpi_status dpi_release_begin_job(dpi_release *r, dpi_error *err);
/* The same for all records, as one keyed hash. Errors: STATE, IO, MEMORY, CANCELLED. */
dpi_status dpi_release_check_records(dpi_release *r, dpi_error *err);
/* [16] of the job; NULL: it is drawn. */
const uint8_t *dpi_release_batch_key(const dpi_release *r);
/* What was drawn for n units or labels, to the disk under a name if there is a job. */
dpi_status dpi_release_keep_list(dpi_release *r, const char *name, const int32_t *list, size_t n,
                                 dpi_error *err);
/* The same back, freed with dpi_private_free; NULL: none is kept. Errors: FORMAT, IO, MEMORY. */
dpi_status dpi_release_kept_list(const dpi_release *r, const char *name, size_t n, int32_t **list,
                                 dpi_error *err);

/* ---- clusters.c ------------------------------------------------------------------------------ */

/* The groups of a release with n_clusters: its labels. */
typedef struct dpi_groups dpi_groups;
/* Public texts that centroids are found from: a function of the claim. */
int32_t dpi_release_cluster_texts(const dpi_claim *claim);
/* The centroids, before a record is read. Errors: as dpi_release_begin; they follow from public
 * data. */
dpi_status dpi_groups_find(const dpi_release *r, dpi_groups **groups, dpi_error *err);
/* Wipes. NULL is allowed. */
void dpi_groups_free(dpi_groups *groups);
/* The group of a unit whose first record has that prompt; -1: it is null. Errors: MEMORY,
 * CANCELLED. */
dpi_status dpi_groups_of_record(dpi_groups *groups, const dpi_prompt *prompt, int32_t *group,
                                dpi_error *err);

/* Records to batches. Errors: as dpi_release_begin. */
dpi_status dpi_release_make_batches(dpi_release *r, dpi_error *err);
/* Wipes them. */
void dpi_release_free_batches(dpi_release *r);

/* The prompts of text `index` into a place. Errors: IO, MEMORY, FORMAT, CANCELLED. */
dpi_status dpi_release_load_batch(dpi_release *r, int32_t index, dpi_place *place, dpi_error *err);
/* Wipes them. */
void dpi_release_drop_batch(const dpi_release *r, dpi_place *place);

/* As a dpi_random_fn: the blocks of HMAC-SHA-256 under the key, one after the other. `user`: a
 * dpi_keyed_bits. */
int32_t dpi_release_keyed_random(void *user, void *bytes, size_t n_bytes);

/* The random bits of the options: a caller's source, that of the seed with the state *bits, or
 * NULL, the system's. */
void dpi_release_random(const dpi_release *r, uint64_t *bits, dpi_random_fn *random, void **user);

/* Places, their samplers and the session. Errors: MEMORY; those of dpi_session_create. */
dpi_status dpi_release_make_places(dpi_release *r, dpi_error *err);
/* Wipes them, and the texts. */
void dpi_release_free_texts(dpi_release *r);

/* Most memory that the session and the samplers of n_parallel texts take. */
dpi_status dpi_release_session_memory(const dpi_release *r, int32_t n_parallel, uint64_t *n_bytes,
                                      dpi_error *err);

/* The measured times of a plan, of which memory and the prompts' lengths are set. Errors: MEMORY,
 * ENTROPY. */
dpi_status dpi_release_measure(const dpi_release *r, dpi_release_plan *plan, dpi_error *err);

/* Texts that this process draws, most. */
int32_t dpi_release_n_texts(const dpi_release *r);
/* Whether no text is left that could begin. */
bool dpi_release_is_last(const dpi_release *r);

/* One pass of all texts that are drawn, and the begin of the next one if there is room. What comes
 * of it waits in the texts; a failure is kept. The text that has read a prompt; NULL: none. */
const dpi_release_text *dpi_release_pass(dpi_release *r);
/* Whether an event waits that may be told: of the first text, as_drawn of any. */
bool dpi_release_has_event(const dpi_release *r);
/* The first of them. False: none waits. */
bool dpi_release_tell(dpi_release *r, dpi_release_event *event);
/* Whether nothing is left to do but to wait until the disk has what is to be told, and that. */
bool dpi_release_waits(const dpi_release *r);
void dpi_release_wait(dpi_release *r);
/* Frees the texts whose END is told. */
void dpi_release_drop_told(dpi_release *r);

/* The pace of the claim, from public texts where it is not given: before a record is read. Errors:
 * as dpi_pace_find, dpi_session_create. */
dpi_status dpi_release_settle_pace(dpi_release *r, dpi_error *err);

/* Whether dpi_release_cancel was called, or the caller's own function says so. */
bool dpi_release_is_cancelled(const dpi_release *r);

#endif
