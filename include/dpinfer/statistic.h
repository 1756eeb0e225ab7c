/* statistic.h - numbers of records that a mechanism releases by itself, without a model: whichever
 * of the registry (mechanism.h) says how. Part of libdpinfer_full.
 *
 *     dpi_statistic_open(&options, &statistic, &err)      settles the claim; reads no record
 *     dpi_statistic_reserve(statistic, &err)              charges the ledger
 *     dpi_statistic_release(statistic, &numbers, &n, &err)   once
 *     dpi_statistic_free(statistic)
 *
 * Neighbours: one record, which is there or null; how many records there are is public.
 * Threads: one at a time. */
#ifndef DPINFER_STATISTIC_H
#define DPINFER_STATISTIC_H

#include "dpinfer/claim.h"
#include "dpinfer/ledger.h"
#include "dpinfer/records.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_statistic dpi_statistic;

typedef struct dpi_statistic_options {
    size_t struct_size;
    const char *mechanism;      /* its name; one whose info.is_statistic is 1 */
    const char *const *keys;    /* [n_values] of its parameters; the others have their defaults */
    const char *const *values;  /* [n_values] as text: decimal numbers, names of choices */
    int32_t n_values;           /* default 0 */
    double delta;               /* (0, 1), below 1 / number of records; default 1e-6 */
    const dpi_records *records; /* the caller's, must outlive the statistic; NULL (default):
                                   n_records of them, for a plan */
    int64_t n_records;          /* if records is NULL; default 0: not said */
    int32_t seeded;             /* 1: NOT PRIVATE: noise comes from `seed`; default 0 */
    uint64_t seed;
    dpi_ledger *ledger;         /* charged by _reserve; NULL (default): none. Scope DATASET */
    const char *dataset;        /* of the ledger */
} dpi_statistic_options;

DPI_API void dpi_statistic_options_init_size(dpi_statistic_options *options, size_t size);
#define dpi_statistic_options_init(o) dpi_statistic_options_init_size((o), sizeof *(o))

/* *statistic is the caller's. Errors: ARG (no such mechanism or parameter; a value, which the
 * message names; those of dpi_claim_settle), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_statistic_open(const dpi_statistic_options *options,
                                                     dpi_statistic **statistic, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_statistic_free(dpi_statistic *statistic);

/* What it guarantees; the statistic's own. */
DPI_API const dpi_claim *dpi_statistic_claim(const dpi_statistic *statistic);
/* How many numbers it gives, and what number i is, as snprintf. Both follow from the claim. */
DPI_API int32_t dpi_statistic_count(const dpi_statistic *statistic);
DPI_API void dpi_statistic_name(const dpi_statistic *statistic, int32_t i, char *text, size_t size);

/* With OK the charge is on the disk; without a ledger nothing happens. Errors: those of
 * dpi_ledger_reserve: BUDGET, STATE, IO, ... */
DPI_API DPI_MUST_CHECK dpi_status dpi_statistic_reserve(dpi_statistic *statistic, dpi_error *err);
/* Reads all records: numbers [*n] are released with it. The statistic's own. Errors: STATE (with a
 * ledger that was not charged; a second time), ARG (without records), IO, ENTROPY, MEMORY. After
 * OK and after the last three it is spent. */
DPI_API DPI_MUST_CHECK dpi_status dpi_statistic_release(dpi_statistic *statistic,
                                                        const int64_t **numbers, int32_t *n,
                                                        dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
