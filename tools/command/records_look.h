/* records_look.h - what stands in files of records, for their owner: why records are null, lengths,
 * copies. All of it is PRIVATE. */
#ifndef DPI_RECORDS_LOOK_H
#define DPI_RECORDS_LOOK_H

#include "dpinfer/records.h"
#include "tools/terminal/cli.h"

enum { LOOK_FAULTS = DPI_FAULT_NO_ID + 1 };

/* Private memory. */
typedef struct records_look {
    const dpi_records *records;
    size_t n, n_read;
    size_t n_faults[LOOK_FAULTS]; /* how many have each; [DPI_FAULT_NONE] is n_read */
    uint8_t *fault;               /* [n] */
    char **text;                  /* [n], NULL: null */
    size_t *n_bytes;              /* [n] */
    int64_t *n_tokens;            /* [n]; NULL without a model */
    size_t *sorted;               /* [n_read] those that are read, copies one after the other */
} records_look;

/* Reads all records, and counts their tokens if there is a model. CLI_OK or an exit code with a
 * message. look_free in any case. */
int look_read(const dpi_records *records, const dpi_model *model, records_look *l);
void look_free(records_look *l);

/* Whether records sorted[k] and sorted[k - 1] have the same text. */
bool look_is_copy(const records_look *l, size_t k);

#endif
