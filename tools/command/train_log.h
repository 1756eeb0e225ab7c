/* train_log.h - the loss curve of a training run, as CSV beside its checkpoint. */
#ifndef DPI_TRAIN_LOG_H
#define DPI_TRAIN_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "dpinfer/train.h"

/* Means over the steps since the last line. */
typedef struct train_log {
    FILE *file;
    int64_t n_steps, n_tokens, total_tokens;
    double loss, seconds;
} train_log;

/* Opens CHECKPOINT.csv and drops lines after `step`, which a resumed run will write again. CLI_OK,
 * or CLI_FAILED with a message. */
int train_log_open(train_log *log, const char *checkpoint, int64_t step);
/* A line every `every` steps, at the last one and where there is a held-out loss. */
void train_log_step(train_log *log, const dpi_train_progress *p, int64_t every);
/* False if something could not be written, with errno. */
bool train_log_close(train_log *log);

#endif
