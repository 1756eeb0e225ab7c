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

typedef struct dataset {
    char name[DATASET_NAME_MAX + 1]; /* letters, digits, '.', '_', '-' */
    char *path, *text, *unit, *label; /* NULL: none */
    int32_t public_fields; /* 1: names of fields are no secret (dpinfer/records.h) */
    double epsilon, delta;
    int32_t batch; /* most B of an answer */
    int32_t scope; /* a dpi_scope, of the ledger */
    int32_t pace;  /* a dpi_pace, with the numbers that it has; not AUTO */
    double pace_theta, pace_share;
    int32_t pace_tokens;
    dpi_records *records;
    int64_t n_units;
    int32_t max_per_unit; /* M; 0: each record is a unit */
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

/* "NAME=PATH,unit=FIELD,label=FIELD,text=FIELD,fields=public,epsilon=E,delta=D,batch=B,scope=unit,
 * pace=top,pace-theta=X,pace-tokens=N,pace-share=E" into *d, which dataset_free frees in any case.
 * Errors: ARG, MEMORY. */
dpi_status dataset_parse(const char *spec, dataset *d, dpi_error *err);
void dataset_free(dataset *d);

/* Reads `specs` and opens the ledger, which is made if it is not there, and the file of answers
 * beside it (LEDGER.answers). Answers that an earlier server had begun are settled. *d is
 * datasets_close's in any case. Errors: ARG, and those of the files. */
dpi_status datasets_open(const char *const *specs, int n, const char *ledger, datasets *d,
                         dpi_error *err);
/* Then opens the records. A dataset that the ledger does not have is added; one that it has must
 * have the same epsilon and delta. Errors: as above. */
dpi_status datasets_read(datasets *d, dpi_error *err);
void datasets_close(datasets *d);
/* An answer that was begun, is not drawn now and was never released: with its charge it is lost,
 * and drawn by nobody again; without one its row goes, as if it had never been begun. */
dpi_status datasets_settle(const datasets *d, const stored *a, dpi_error *err);

/* "none", "top", "change", "share". */
const char *dataset_pace(const dataset *d);
/* NULL: there is none of that name. */
dataset *datasets_find(const datasets *d, const char *name);
/* Records that may answer, of all datasets; most of a unit count, whether it has them or not. */
int64_t datasets_records(const datasets *d);
/* Most sequences of an answer: 1 without any dataset. */
int32_t datasets_rows(const datasets *d);

/* What the ledger says of a dataset now; its last words are kept, too. */
dpi_status datasets_info(const datasets *d, dataset *one, dpi_dataset_info *info, dpi_error *err);

#endif
