/* ledger.h - a budget that is kept: what all runs about a dataset have cost, in a file. Part of
 * libdpinfer_full.
 *
 *     dpi_ledger_open("year.ledger", &options, &ledger, &err);        options.create = 1
 *     dpi_ledger_add(ledger, &dataset, &err);                         name, epsilon, delta, scope
 *     dpi_ledger_reserve(ledger, "letters", &request, &charge, &err)  before a record is read
 *     dpi_ledger_info(ledger, "letters", &info, &err);                what is left
 *     dpi_ledger_close(ledger);
 *
 * A release that is given a ledger (release.h) reserves by itself. Charges are Renyi divergences
 * of one integer order, which is fixed when the dataset is added (account.h). They add up over
 * runs that are chosen one after the other, knowing the earlier texts.
 *
 * Amounts are integers in units of 1 / DPI_LEDGER_ONE, charges rounded up and budgets down: sums
 * are exact. A charge is accepted if the sum with it is at most the budget; check and charge are
 * one transaction.
 *
 * The file is a SQLite database. When a call that charges has returned OK the charge is on the
 * disk, as far as the system's fsync tells the truth; killed at any instruction, a process leaves
 * the charge whole or not at all. The journal is a rollback journal, not a write-ahead log: it
 * needs no shared memory, and each commit is on the disk before the call returns
 * (synchronous=EXTRA). Locks are POSIX locks: the file belongs on a local disk, or on a network
 * file system whose locks work. A symbolic link is followed; a file with two names (hard links) is
 * refused, as each name would have a journal of its own. Dates are for people: no decision depends
 * on the clock.
 *
 * Threads: a ledger may be used by any number of threads; calls wait for each other. Other
 * processes may have the same file open. A process that was forked must open it anew. */
#ifndef DPINFER_LEDGER_H
#define DPINFER_LEDGER_H

#include "dpinfer/account.h"
#include "dpinfer/method.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_ledger dpi_ledger;

/* One unit of divergence as an integer amount: 2^40. */
#define DPI_LEDGER_ONE 1099511627776.0

/* ---- The file -------------------------------------------------------------------------------- */

typedef struct dpi_ledger_options {
    size_t struct_size;
    int32_t create;    /* 1: a file that is not there, or is empty, is made, readable by its owner
                          alone; 0 (default): IO */
    int32_t read_only; /* 1: nothing can be charged; default 0, which refuses a file that cannot be
                          written */
    int32_t busy_ms;   /* how long to wait for other processes, 0..600000; default 10000 */
    int32_t reserved;
} dpi_ledger_options;

DPI_API void dpi_ledger_options_init_size(dpi_ledger_options *options, size_t size);
#define dpi_ledger_options_init(o) dpi_ledger_options_init_size((o), sizeof *(o))

/* `options` may be NULL for the defaults. *ledger is the caller's. A file that an earlier program
 * made is brought to the present form, in one transaction: sums stay what they are, and that
 * program then refuses it. With read_only it stays as it is.
 * Errors: IO (no such file, not writable, locked for too long, a full disk), FORMAT (no ledger, a
 * damaged one, not a regular file), UNSUPPORTED (made by a later program; more than one name),
 * ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_open(const char *path,
                                                  const dpi_ledger_options *options,
                                                  dpi_ledger **ledger, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_ledger_close(dpi_ledger *ledger);

/* ---- Datasets -------------------------------------------------------------------------------- */

#define DPI_DATASET_NAME_MAX 63
#define DPI_UNIT_FIELD_MAX 127

/* Whom a charge protects: what two neighbouring sets of records differ in. Charges add up to a
 * guarantee for someone only where all of them protect the same, so that the first charge of a
 * dataset fixes it for all later ones. What a charge leaves open fits everything. */
typedef struct dpi_privacy_unit {
    int32_t adjacency;    /* a dpi_adjacency; -1 (default): open */
    int32_t is_record;    /* 1: each record is a unit; 0: all records with one ID; -1 (default):
                             open */
    int32_t record_kind;  /* a dpi_record_kind where each record is a unit; OTHER (default): open */
    int32_t max_per_unit; /* with IDs: records of a unit that are used; 0 (default): open */
    char unit_field[DPI_UNIT_FIELD_MAX + 1]; /* with IDs: where they stand; "" (default): open */
} dpi_privacy_unit;

DPI_API void dpi_privacy_unit_init(dpi_privacy_unit *unit);
/* "all records with one ID in 'patient', at most 4 of them used; add-remove"; "" where all is open.
 * As snprintf. */
DPI_API size_t dpi_privacy_unit_text(const dpi_privacy_unit *unit, char *text, size_t size);
/* Whether a charge with `unit` fits a dataset (its name is for the message), and what the dataset
 * fixes after it, in *of_dataset. Errors: ARG (they differ: the message has both; no such unit). */
DPI_API DPI_MUST_CHECK dpi_status dpi_privacy_unit_join(dpi_privacy_unit *of_dataset,
                                                        const dpi_privacy_unit *unit,
                                                        const char *dataset, dpi_error *err);

/* The one dataset of the ledger that a job makes for itself where it is given none (release.h). */
#define DPI_DATASET_OF_JOB "this job alone"

typedef enum dpi_scope {
    DPI_SCOPE_DATASET = 0, /* one sum: every unit is charged for every run */
    DPI_SCOPE_UNIT = 1 /* a sum for each unit, which pays for the runs that it took part in; one
                          that cannot pay is null. Sums of units are private: no call tells them */
} dpi_scope;

/* "dataset", "unit"; NULL for another value. Static. */
DPI_API const char *dpi_scope_name(int32_t scope);

typedef struct dpi_dataset_options {
    size_t struct_size;
    const char *name;      /* 1..DPI_DATASET_NAME_MAX bytes of UTF-8 without control characters */
    double epsilon, delta; /* what all runs together may come to */
    int32_t scope;         /* a dpi_scope; default DATASET */
    int32_t reserved;
    dpi_privacy_unit unit; /* whom all charges protect; what is open is fixed by the first charge
                              that says it */
} dpi_dataset_options;

DPI_API void dpi_dataset_options_init_size(dpi_dataset_options *options, size_t size);
#define dpi_dataset_options_init(o) dpi_dataset_options_init_size((o), sizeof *(o))

/* Opens a dataset: its order and budget are fixed from here on. Errors: ARG (also a name that is
 * there already), ENTROPY; those of the file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_add(dpi_ledger *ledger,
                                                 const dpi_dataset_options *options,
                                                 dpi_error *err);
/* Closes it: nothing can be charged any more, for ever. Errors: ARG (no such dataset), STATE
 * (closed already); those of the file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_seal(dpi_ledger *ledger, const char *dataset,
                                                  dpi_error *err);

typedef struct dpi_dataset_info {
    size_t struct_size;
    char name[DPI_DATASET_NAME_MAX + 1];
    char opened[24], closed[24]; /* dates in UTC, "2026-01-31T23:59:59Z"; closed "": it is open */
    double epsilon, delta;
    int32_t scope, order;
    int64_t budget;  /* amounts, see above */
    int64_t charged; /* the sum of all charges; of UNIT the largest sum of one unit */
    int64_t left;    /* budget - charged, at least 0; of UNIT the budget: that of a new unit */
    int64_t last;    /* the last charge; 0: none */
    int64_t n_charges;
    double epsilon_charged; /* what the charges come to at delta, the smaller of two bounds: that of
                               their sum at `order`, and that of the sum of their rho as zCDP; 0
                               without a charge, with UNIT at most epsilon */
    dpi_privacy_unit unit; /* whom all charges so far protect, and the next ones must */
} dpi_dataset_info;

DPI_API void dpi_dataset_info_init_size(dpi_dataset_info *info, size_t size);
#define dpi_dataset_info_init(o) dpi_dataset_info_init_size((o), sizeof *(o))

/* Errors: ARG (no such dataset: the message names those that are there); those of the file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_info(dpi_ledger *ledger, const char *dataset,
                                                  dpi_dataset_info *info, dpi_error *err);
/* The dataset with the index, from 0, in the order in which they were added; info->name "": there
 * is none. Errors: those of the file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_info_at(dpi_ledger *ledger, int32_t index,
                                                     dpi_dataset_info *info, dpi_error *err);

/* ---- Charges --------------------------------------------------------------------------------- */

#define DPI_CHARGE_METHOD_MAX 63
#define DPI_CHARGE_NOTE_MAX 255
#define DPI_CHARGE_CLAIM_MAX 65536

/* The units of a run, for a dataset with scope UNIT. A unit that stands there more than once pays
 * once. An ID that is an integer is its digits, whatever its form (records.h). Only a keyed hash of
 * an ID is kept. */
typedef struct dpi_ledger_units {
    size_t n;
    const void *const *ids; /* [n] */
    const size_t *n_bytes;  /* [n] */
    uint8_t *pays; /* [n] out, PRIVATE: 1: the unit has paid; 0: it cannot, and must be null */
} dpi_ledger_units;

typedef struct dpi_charge_request {
    size_t struct_size;
    const dpi_cost *cost;          /* what the run costs each unit that is in it */
    const char *method;            /* "invisibleink", or what was done outside; at most
                                      DPI_CHARGE_METHOD_MAX bytes, without control characters */
    const char *note;              /* for people; at most DPI_CHARGE_NOTE_MAX bytes; NULL: none */
    const dpi_ledger_units *units; /* scope UNIT; NULL: DATASET */
    dpi_privacy_unit unit;         /* whom `cost` protects. Default: open, for a caller who has
                                      compared it with that of the dataset */
    const char *claim; /* what was done, as dpi_claim_write has it, without its ledger; at most
                          DPI_CHARGE_CLAIM_MAX bytes. NULL (default): work outside of the program */
} dpi_charge_request;

DPI_API void dpi_charge_request_init_size(dpi_charge_request *request, size_t size);
#define dpi_charge_request_init(o) dpi_charge_request_init_size((o), sizeof *(o))

typedef struct dpi_charge {
    size_t struct_size;
    int64_t id;      /* from 1, in the order of charges over all datasets; 0: no charge */
    int64_t amount;  /* at the dataset's order */
    int64_t before;  /* what dpi_dataset_info.charged was when it was made */
    int32_t counted; /* 0: it was given back */
    int32_t reserved;
    char date[24];
    char method[DPI_CHARGE_METHOD_MAX + 1];
    char note[DPI_CHARGE_NOTE_MAX + 1];
    dpi_privacy_unit unit;
    char cost[256]; /* "range 500 0.0197; pure 3 0.2; subsample 0.01": kind, n, x; gaussian: and q
                     */
    uint64_t room[4]; /* all 0: for what is to come */
} dpi_charge;

DPI_API void dpi_charge_init_size(dpi_charge *charge, size_t size);
#define dpi_charge_init(o) dpi_charge_init_size((o), sizeof *(o))

/* Charges the whole cost of a run, in one transaction that also checks the budget. With OK it is
 * on the disk, and the run may read its first record. *charge (may be NULL) is what was charged.
 * Errors: BUDGET (what is left is too little; with UNIT, the cost is above the whole budget: the
 * units' own sums make no error), STATE (the dataset is closed), UNSUPPORTED (a cost that bounds
 * no divergence), ARG (no such dataset; units or none for this scope; another privacy unit than
 * that of the dataset: the message has both), LIMIT (units), those of the file. Nothing is charged
 * on error, unless the disk failed while it was written. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_reserve(dpi_ledger *ledger, const char *dataset,
                                                     const dpi_charge_request *request,
                                                     dpi_charge *charge, dpi_error *err);
/* The same for one text of a sampler, in a dataset of scope DATASET: dpi_method_cost of its
 * options, its adjacency for a record as the unit, and the name of its method. `note` as in the
 * request, *charge may be NULL. Errors: also UNSUPPORTED (a method without a guarantee). */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_reserve_text(dpi_ledger *ledger, const char *dataset,
                                                          const dpi_sampler *sampler,
                                                          const char *note, dpi_charge *charge,
                                                          dpi_error *err);
/* Which units have paid for a charge that was made: for a run that goes on. Only units->pays is
 * changed. Errors: ARG (no such dataset; no such charge of it), UNSUPPORTED (a file of an earlier
 * form that was opened with read_only); those of the file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_paid(dpi_ledger *ledger, const char *dataset,
                                                  int64_t id, const dpi_ledger_units *units,
                                                  dpi_error *err);
/* Takes a charge back, and with it what it alone fixed of the privacy unit. Only for a run that has
 * read no private record yet, and only by the object that charged it. Errors: STATE (another's
 * charge, given back already, or one of units); those of the file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_give_back(dpi_ledger *ledger, int64_t id,
                                                       dpi_error *err);

/* The first charge of a dataset with an id above `after`; charge->id 0: there is none. Errors:
 * ARG; those of the file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_charge_next(dpi_ledger *ledger, const char *dataset,
                                                         int64_t after, dpi_charge *charge,
                                                         dpi_error *err);
/* The last one with an id below `before`, so that INT64_MAX gives the newest of all. The same
 * errors. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_charge_before(dpi_ledger *ledger, const char *dataset,
                                                           int64_t before, dpi_charge *charge,
                                                           dpi_error *err);
/* The claim of a charge as it was given, *claim, which the caller frees with free; NULL: it has
 * none. Errors: ARG (no such charge), MEMORY; those of the file. */
DPI_API DPI_MUST_CHECK dpi_status dpi_ledger_charge_claim(dpi_ledger *ledger, int64_t id,
                                                          char **claim, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
