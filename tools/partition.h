/* partition.h - which records make up which text. */
#ifndef DPI_PARTITION_H
#define DPI_PARTITION_H

#include "tools/job.h"

/* By position: record i is in batch i / B. Where job.assigned: by the keyed hash of its own content
 * (add/remove), or by a secret draw (--subsample); then all of this is private. */
typedef struct partition {
    int32_t *batch; /* [n_records] -1: in none. NULL: by position */
    size_t n_records;
    int32_t n_slots; /* of the largest batch */
} partition;

/* Reads the records if they are hashed. CLI_OK, or an exit code with a message; partition_free in
 * any case. */
int partition_make(const job *j, partition *p);
void partition_free(partition *p);

#endif
