/* path.h - what audits of releases drive, and what they see of it. Internal.
 *
 *     dpi_path_open(&world, audit, model, source);     made-up records; their logits, a second time
 *     dpi_path_observe(&world, &setup, &trace);        one release, through dpi_release_advance
 *     dpi_path_layout(&world, &trace, &layout);        which record is in which slot, by its logits
 *
 * Everything is made up: nothing in it is private. Threads: one at a time. */
#ifndef DPI_AUDIT_PATH_H
#define DPI_AUDIT_PATH_H

#include "audit/lines.h"
#include "pipeline/release/release.h"

enum {
    DPI_PATH_RECORDS = 20,
    DPI_PATH_TEXTS = 8,
    DPI_PATH_SLOTS = DPI_PATH_RECORDS,
    DPI_PATH_TOKENS = 3,
    DPI_PATH_BYTES = 128,        /* of a record */
    DPI_PATH_RECORD_TOKENS = 30, /* that a record may have; what is longer is cut */
    DPI_PATH_CTX = 160
};

/* The public prompt, and what stands before a record in the private one. It ends in a letter, so
 * that a record may merge with it. */
#define DPI_PATH_TASK "Now another:"
#define DPI_PATH_TASK_LABEL "Now another {label}:" /* with labels */
#define DPI_PATH_BEFORE "One is this: x"

/* Where records come from. */
typedef enum path_source {
    PATH_MEMORY,
    PATH_FOLDER,
    PATH_JSONL,
    PATH_CSV,
    PATH_SOURCES
} path_source;

/* PATH_EMPTY: the record is in its place and is null. PATH_GONE: it is not there. */
typedef enum path_state { PATH_PRESENT, PATH_EMPTY, PATH_GONE } path_state;

typedef struct path_prompt {
    int32_t tokens[4 * DPI_PATH_BYTES + 256];
    size_t n;
} path_prompt;

typedef struct path_world {
    dpi_audit *audit;
    const dpi_model *model;
    int32_t n_vocab;
    path_source source;
    int32_t chat;      /* of the prompts */
    int32_t last_word; /* the first token of texts, after which record 0 wants to end; -1: none is
                          known */
    dpi_session *session; /* one sequence: logits that stand beside those of releases */
    int32_t n_records;
    char text[DPI_PATH_RECORDS][DPI_PATH_BYTES];
    path_state state[DPI_PATH_RECORDS];
    int32_t n_units; /* 0: each record is a unit; else record i is one of unit i % n_units */
    int32_t labels;  /* a dpi_labels: unit u has label u % 2, and one record another one than its
                        unit; each label has prompts of its own */
    int32_t flipped; /* the unit that has the other label; -1: none */
    int32_t empty_form; /* in which of three ways an empty record is empty */
    path_prompt prompt[DPI_PATH_RECORDS], public_prompt[2]; /* of each label */
} path_world;

/* One release. */
typedef struct path_setup {
    int32_t adjacency;
    double subsample;
    bool secret; /* with add/remove: batches are drawn and their secrecy counts; else by hash. With
                    subsample it counts */
    int32_t batch, n_texts; /* n_texts 0: one for each batch */
    int32_t n_tokens;       /* at most DPI_PATH_TOKENS */
    int32_t top_k;
    int32_t stop_after; /* the number of the token that ends texts; 0: none does */
    int32_t per_unit; /* with units: most records of one */
    double histogram; /* private labels: rho of the histogram; 0: as many texts of each label */
    uint64_t bits;   /* seed of keys and assignments; 0: the audit's source */
    int32_t n_shards; /* processes that draw the texts, with one key; 0: one process, without it */
    int32_t n_clusters; /* groups of similar records; 0: none. Only by content */
    int32_t pace;    /* a dpi_pace; AUTO is found from public texts */
    int32_t n_released; /* texts of a round, which stand in the prompts of the next one; 0: none */
    double tau;      /* 0: 1 */
} path_setup;

static inline bool dpi_path_is_assigned(const path_setup *setup) {
    return setup->subsample > 0 || setup->adjacency == DPI_ADJACENCY_ADD_REMOVE;
}

/* Whether each record's batch is a draw of its own. */
static inline bool dpi_path_draws(const path_setup *setup) {
    return setup->subsample > 0 || setup->secret;
}

/* Whether logits tell which record is in which slot: each step has them, after the same prompts. */
static inline bool dpi_path_has_layout(const path_setup *setup) {
    return setup->pace == DPI_PACE_NONE && setup->n_released == 0;
}

/* Of one text. Rows are hashes of logits on the support. 0: an empty slot. */
typedef struct path_text {
    int32_t n_seen, n_drawn, end, n_slots, label;
    int32_t token[DPI_PATH_TOKENS];
    uint64_t public_row[DPI_PATH_TOKENS];
    uint64_t row[DPI_PATH_TOKENS][DPI_PATH_SLOTS];
    size_t n_support[DPI_PATH_TOKENS];
    bool is_free[DPI_PATH_TOKENS]; /* then rows are 0: they are not computed */
    /* of a token: [n_vocab], parts of the trace's memory */
    int32_t *support[DPI_PATH_TOKENS];
    int64_t *sum[DPI_PATH_TOKENS];
    dpi_u128 *weights[DPI_PATH_TOKENS];
} path_text;

typedef struct path_trace {
    void *memory;
    int32_t n_texts; /* that ended */
    uint64_t events; /* hash of what a caller is told, other than released tokens */
    uint64_t claim;  /* hash of the statement */
    dpi_sampler_plan plan;
    path_text text[DPI_PATH_TEXTS];
} path_trace;

/* The record in each slot; NO_RECORD: the slot is empty; UNKNOWN: its logits are no record's. */
enum { PATH_NO_RECORD = -1, PATH_UNKNOWN = -2 };
typedef struct path_layout {
    int32_t record[DPI_PATH_TEXTS][DPI_PATH_SLOTS];
    /* of a record: where it is, n_places times in all */
    int32_t text[DPI_PATH_RECORDS], slot[DPI_PATH_RECORDS], n_places[DPI_PATH_RECORDS];
} path_layout;

/* n_records made-up records, all of them present. To be freed after a failure, too. */
dpi_status dpi_path_open(path_world *world, dpi_audit *audit, const dpi_model *model,
                         path_source source, int32_t n_records);
void dpi_path_close(path_world *world);

/* Makes the prompts again, after units, labels or flipped have changed. */
dpi_status dpi_path_encode(path_world *world);

/* The unit of a record, the label of a unit, and whether a record has it: 0 or 1. */
static inline int32_t dpi_path_unit(const path_world *world, int32_t record) {
    return world->n_units > 0 ? record % world->n_units : record;
}
static inline int32_t dpi_path_label(const path_world *world, int32_t unit) {
    return world->labels ? (unit + (unit == world->flipped)) % 2 : 0;
}
static inline bool dpi_path_has_label(const path_world *world, int32_t record) {
    return !world->labels || record != world->n_units + 1;
}

/* Room for a trace. */
dpi_status dpi_path_trace_create(const path_world *world, path_trace *trace);
void dpi_path_trace_free(path_trace *trace);
/* A whole release, in one process or in shards. What is wrong by itself is noted: sums that are not
 * those of the slots, a text that ends where no token says so. */
dpi_status dpi_path_observe(path_world *world, const path_setup *setup, path_trace *trace);
/* Notes rows that are no record's, at any token, and public rows that are not the public prompt's.
 */
dpi_status dpi_path_layout(path_world *world, const path_trace *trace, path_layout *layout);

/* audit_places.c: both, and notes records that are not where they have to be. Without a layout
 * where logits do not tell it. */
dpi_status dpi_path_check(path_world *world, const path_setup *setup, path_trace *trace,
                          path_layout *layout);

/* The options of a release of the setup, with the system's random bits. */
void dpi_path_options(const path_world *world, const path_setup *setup, const dpi_records *records,
                      dpi_release_options *options);

/* The records as a source; *records is the caller's, who calls dpi_path_records_close. */
dpi_status dpi_path_records_open(const path_world *world, dpi_records **records);
void dpi_path_records_close(const path_world *world, dpi_records *records);

/* path_runs.c: which records and labels are in which texts, over many releases. */
dpi_status dpi_path_audit_runs(dpi_audit *audit, const dpi_model *model);
/* path_open.c: releases that no trace watches: refusals, texts side by side, spread texts. */
dpi_status dpi_path_audit_open(dpi_audit *audit, const dpi_model *model);

#endif
