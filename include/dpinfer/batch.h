/* batch.h - records to batches. No model is needed. */
#ifndef DPINFER_BATCH_H
#define DPINFER_BATCH_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The batch 0..n_batches-1 of a record, from its own ID and nothing else: the upper bits of
 * SipHash-2-4 of the ID. No record moves when others are added or removed, as add/remove
 * adjacency needs. The key is public data for that purpose. With fresh random bits as the key,
 * batches are even in size, also for IDs that were made to collide. n_batches 1..2^30.
 * Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_assign_hash(const uint8_t key[16], const void *id,
                                                  size_t n_bytes, int32_t n_batches,
                                                  int32_t *batch, dpi_error *err);

/* The batch of one record under secret assignment: -1 (none), or 0..n_batches-1, all equally
 * likely, with total probability at most q (and less by 2^-64 at most). One call per record,
 * whatever the others got. `random` as in dpi_sampler_options. Errors: ARG, ENTROPY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_assign_secret(double q, int32_t n_batches,
                                                    dpi_random_fn random, void *random_user,
                                                    int32_t *batch, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
