/* counts.h - a few counts of records, released with noise. Part of libdpinfer_full.
 *
 *     dpi_counts_open(&options, &counts, &err)       settles the noise and charges the ledger
 *     ...                                            now records may be read
 *     dpi_counts_release(counts, cells, n, &err)     once for each of n_groups groups
 *     dpi_counts_close(counts)
 *
 * A group is a list of cells, counts of records, of which a record adds 1 to one at most: a
 * histogram, or the records that are something. Each cell gets its own exact discrete Gaussian
 * noise of variance s = variance / 256, and all groups are n_groups / (2 s)-zCDP (dp/PRIVACY.md
 * section 26). Neighbours: one record, which is there or null; how many records there are is
 * public. What a record adds may depend on that record and on public data alone, and its null adds
 * nothing: that is the caller's to keep.
 * Threads: one at a time. */
#ifndef DPINFER_COUNTS_H
#define DPINFER_COUNTS_H

#include "dpinfer/ledger.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DPI_COUNTS_GROUPS_MAX 64

typedef struct dpi_counts dpi_counts;

typedef struct dpi_counts_options {
    size_t struct_size;
    double epsilon, delta; /* of all groups; epsilon (0, 1e6], delta (0, 1) */
    int32_t n_groups;      /* 1..DPI_COUNTS_GROUPS_MAX; default 1 */
    int32_t record_kind;   /* a dpi_record_kind, for the ledger; default OTHER: open */
    dpi_random_fn random;  /* NULL (default): getrandom(2) */
    void *random_user;
    dpi_ledger *ledger;    /* charged by dpi_counts_open; NULL (default): none. Scope DATASET */
    const char *dataset;   /* of the ledger */
} dpi_counts_options;

DPI_API void dpi_counts_options_init_size(dpi_counts_options *options, size_t size);
#define dpi_counts_options_init(o) dpi_counts_options_init_size((o), sizeof *(o))

typedef struct dpi_counts_info {
    size_t struct_size;
    double rho;            /* of all groups, rounded up */
    double epsilon, delta; /* what this comes to */
    double deviation;      /* of the noise of a cell */
    int64_t variance;      /* of it, in units of 1/256 */
    int32_t n_groups, n_left;
    dpi_charge charge;     /* id 0: without a ledger */
} dpi_counts_info;

DPI_API void dpi_counts_info_init_size(dpi_counts_info *info, size_t size);
#define dpi_counts_info_init(o) dpi_counts_info_init_size((o), sizeof *(o))

/* With OK the charge is on the disk. *counts is the caller's. Of a budget that is larger than the
 * least noise needs, the rest is not charged. Errors: ARG (ranges; a budget too small), MEMORY;
 * with a ledger those of dpi_ledger_reserve: BUDGET, STATE, IO, ... */
DPI_API DPI_MUST_CHECK dpi_status dpi_counts_open(const dpi_counts_options *options,
                                                  dpi_counts **counts, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_counts_close(dpi_counts *counts);
DPI_API void dpi_counts_info_get(const dpi_counts *counts, dpi_counts_info *info);

/* The next group: cells [n] are true counts and become noisy ones, which may be below 0. Errors:
 * STATE (n_groups were released), ARG, ENTROPY; then all cells are 0, and the group is spent. */
DPI_API DPI_MUST_CHECK dpi_status dpi_counts_release(dpi_counts *counts, int64_t *cells, int32_t n,
                                                     dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
