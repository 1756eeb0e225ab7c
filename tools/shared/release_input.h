/* release_input.h - what `run`, `plan` and `demo` open: model, records, ledger, job, release. */
#ifndef DPI_RELEASE_INPUT_H
#define DPI_RELEASE_INPUT_H

#include "dpinfer/shards.h"
#include "tools/options/release_options.h"

/* Must not move while it is open. */
typedef struct release_input {
    dpi_model *model;
    dpi_model_info info;
    dpi_records *records;
    dpi_release *release;
    release_texts texts;
    dpi_ledger *ledger; /* of --ledger; NULL: none */
    dpi_shards *shards; /* of --job, joined for a shard; NULL: none */
    dpi_journal *journal; /* of --job, made here, or of the shard; NULL: none */
    char dataset[DPI_DATASET_NAME_MAX + 1];
} release_input;

/* Checks the options, finds the records, opens the model, settles every number; no record is read.
 * CLI_OK, or an exit code with a message. release_close in any case. `quiet` suppresses notes;
 * cancel may be NULL. */
int release_open(const args *a, bool quiet, dpi_cancel_fn cancel, release_input *in);
void release_close(release_input *in);

#endif
