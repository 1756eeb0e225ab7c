/* partition.h - which records make up which batch. Internal.
 *
 * By position: the record i is in batch i / B, or with labels where it is put by its position
 * within its label. Assigned: by the keyed hash of the record's own content (add/remove), or by a
 * secret draw (subsample). Then all of this is private, the sizes of batches too, and there is no
 * limit on them here.
 *
 *     dpi_partition_create(&options, n_records, &partition, err);
 *     dpi_partition_assign(partition, i, text, n_bytes, err);      assigned: for each record
 *     dpi_partition_index(partition, err);
 *     dpi_partition_batch(partition, b, &batch);
 *
 * Source: dp/PRIVACY.md section 10. */
#ifndef DPI_PARTITION_H
#define DPI_PARTITION_H

#include <stdbool.h>

#include "dpinfer/batch.h"

typedef struct dpi_partition_options {
    int32_t n_batches;
    int32_t n_slots;  /* B; of a batch by position */
    bool by_content;  /* add/remove: hashed */
    double subsample; /* q > 0: drawn, whatever by_content says */
    bool by_label;    /* not assigned: each record is put into a batch (dpi_partition_put) */
    const uint8_t *key; /* [16] of the hash; NULL: drawn */
    dpi_random_fn random; /* NULL: getrandom(2) */
    void *random_user;
} dpi_partition_options;

typedef struct dpi_partition dpi_partition;

/* The records of a batch: records[0..n_records-1] in the order of the source. records NULL: the
 * n_records from `first` on. */
typedef struct dpi_batch {
    const size_t *records;
    size_t first, n_records;
} dpi_batch;

/* Draws the key, if there is one. Errors: MEMORY, ENTROPY. */
dpi_status dpi_partition_create(const dpi_partition_options *options, size_t n_records,
                                dpi_partition **partition, dpi_error *err);
/* Wipes. NULL is allowed. */
void dpi_partition_free(dpi_partition *partition);

/* Whether records go to batches by what they hold, or by a draw: not by position. */
bool dpi_partition_is_assigned(const dpi_partition *partition);

/* Batches of one label: first .. first + n - 1. */
typedef struct dpi_batch_range {
    int32_t first, n;
} dpi_batch_range;

enum { DPI_BATCHES_MOST = 1 << 30 };

/* The batch of record i within a range (-1: in none). The ID of a record is its content, so that
 * its batch depends on no other record, whatever form the records come in. text NULL is a null
 * record, which adds nothing in any batch: by content it is in none. Errors: ENTROPY. */
dpi_status dpi_partition_assign(dpi_partition *partition, size_t i, dpi_batch_range range,
                                const char *text, size_t n_bytes, int32_t *batch, dpi_error *err);

/* Record i is in this batch (-1: in none): by label, or as dpi_partition_assign has said before, in
 * a run that goes on. */
void dpi_partition_put(dpi_partition *partition, size_t i, int32_t batch);

/* Puts record i, which was assigned among the DPI_BATCHES_MOST batches from 0 on, into the range: a
 * function of what it was assigned to. */
void dpi_partition_narrow(dpi_partition *partition, size_t i, dpi_batch_range range);

/* After all were assigned: makes the list of each batch. Errors: MEMORY. */
dpi_status dpi_partition_index(dpi_partition *partition, dpi_error *err);

void dpi_partition_batch(const dpi_partition *partition, int32_t b, dpi_batch *batch);
/* Records of the largest batch; by position B. */
size_t dpi_partition_largest(const dpi_partition *partition);

#endif
