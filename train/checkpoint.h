/* checkpoint.h - the state of a run in a file: position, weights, moments. Internal.
 *
 * A file is written beside the old one, flushed to the disk and put in its place by rename:
 * whenever the process is killed, one of the two is there, whole. Native byte order: it is not
 * for exchange. */
#ifndef DPI_TRAIN_CHECKPOINT_H
#define DPI_TRAIN_CHECKPOINT_H

#include "dpinfer/train.h"

typedef struct dpi_checkpoint {
    uint64_t config_hash, data_hash; /* of the run that it belongs to */
    int64_t n_params;
    int64_t step;       /* steps done */
    int64_t epoch, row; /* the next row */
} dpi_checkpoint;

/* `arrays`: parameters, first and second moments, [n_params] each. Errors: IO. */
dpi_status dpi_checkpoint_write(const char *path, const dpi_checkpoint *state,
                                const float *const arrays[3], dpi_error *err);

/* `state` comes with what the run expects (hashes, n_params), and on success has the position
 * too. may_change: what the configuration leaves out, for a message. *found = false, and nothing
 * else is changed, if there is no such file. On failure the arrays are unspecified. Errors: IO;
 * FORMAT: not a checkpoint, truncated, damaged, of another configuration or other data. */
dpi_status dpi_checkpoint_read(const char *path, dpi_checkpoint *state, float *const arrays[3],
                               const char *may_change, int32_t *found, dpi_error *err);

#endif
