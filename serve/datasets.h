/* datasets.h - the records that answers are about, their budgets in one ledger, and the answers
 * that were paid for. */
#ifndef DPI_SERVE_DATASETS_H
#define DPI_SERVE_DATASETS_H

#include <stdatomic.h>

#include "dpinfer.h"
#include "dpinfer/ledger.h"
#include "dpinfer/records.h"
#include "dpinfer/release.h"
#include "serve/request.h"
#include "serve/store.h"

enum {
    DATASETS_MAX = 32,
    DATASET_BATCH_DEFAULT = 16, /* most records, or units, that answer a question */
};

/* Where a dataset is described, for messages. */
typedef struct dataset_source {
    char where[40];   /* "--dataset", "--config: datasets[0]" */
    const char *keys; /* there beside those of dataset_set: "name, path, "; static */
} dataset_source;

typedef struct dataset {
    dataset_source source;
    char name[DATASET_NAME_MAX + 1]; /* letters, digits, '.', '_', '-' */
    char *path, *text, *unit, *label; /* NULL: none */
    dpi_records_options form; /* of its files; the fields above are set last */
    double epsilon, delta;
    int32_t batch; /* most B of an answer */
    int32_t scope; /* a dpi_scope, of the ledger */
    int32_t pace;  /* a dpi_pace, with the numbers that it has; AUTO: found for each question */
    double pace_theta, pace_share;
    int32_t pace_tokens;
    dpi_records *records;
    int64_t n_units;
    int32_t max_per_unit; /* M; 0: each record is a unit. Before that what is asked for, or 0 */
    /* What the ledger said last, for whoever cannot wait for it. */
    atomic_llong budget, left;
} dataset;

typedef struct datasets {
    dataset *v; /* [n] */
    int n;
    dpi_ledger *ledger;
    store *store;
    bool refused; /* datasets_open failed for the records of one */
} datasets;

/* "NAME=PATH,KEY=VALUE,..." with the keys of dataset_set into *d, which dataset_free frees in any
 * case. Errors: ARG, MEMORY. */
dpi_status dataset_parse(const char *spec, dataset *d, dpi_error *err);
/* The same in steps: a dataset of nothing; its name, path and values; what is missing is told at
 * the end. Keys: unit, label, text, fields, epsilon, delta, batch, max-per-unit, scope, pace,
 * pace-theta, pace-tokens, pace-share. Errors: ARG (no such key or value), MEMORY. */
void dataset_init(dataset *d, const dataset_source *source);
dpi_status dataset_name(dataset *d, const char *name, dpi_error *err);
dpi_status dataset_path(dataset *d, const char *path, dpi_error *err);
dpi_status dataset_set(dataset *d, const char *key, const char *value, dpi_error *err);
bool dataset_key_is_text(const char *key); /* and no number */
dpi_status dataset_check(const dataset *d, dpi_error *err);
void dataset_free(dataset *d);

/* Takes over what `sets` [n] hold, which are then empty. Opens the ledger, which is made if it is
 * not there, and the file of answers beside it (LEDGER.answers). Answers that an earlier server had
 * begun are settled. *d is datasets_close's in any case. Errors: ARG, and those of the files. */
dpi_status datasets_open(dataset *sets, int n, const char *ledger, datasets *d, dpi_error *err);
/* Then opens the records. A dataset that the ledger does not have is added; one that it has must
 * have the same epsilon and delta. Errors: as above. */
dpi_status datasets_read(datasets *d, dpi_error *err);
void datasets_close(datasets *d);
/* An answer that was begun, is not drawn now and was never released: with its charge it is lost,
 * and drawn by nobody again; without one its row goes, as if it had never been begun. */
dpi_status datasets_settle(const datasets *d, const stored *a, dpi_error *err);

/* Of a dpi_pace: "none", "top", "change", "share", "auto". */
const char *dataset_pace(int32_t pace);
/* NULL: there is none of that name. */
dataset *datasets_find(const datasets *d, const char *name);
/* Records that may answer, of all datasets; most of a unit count, whether it has them or not. */
int64_t datasets_records(const datasets *d);
/* Most sequences of an answer: 1 without any dataset. */
int32_t datasets_rows(const datasets *d);
/* Most sequences of a session in which a pace is found; 0: no dataset has it found. */
int32_t datasets_searching(const datasets *d);

/* What the ledger says of a dataset now; its last words are kept, too. */
dpi_status datasets_info(const datasets *d, dataset *one, dpi_dataset_info *info, dpi_error *err);

#endif
