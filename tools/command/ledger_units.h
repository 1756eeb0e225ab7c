/* ledger_units.h - the units of a charge that was made outside, from a file with their IDs, and the
 * file that says which of them have paid. Both are private. */
#ifndef DPI_LEDGER_UNITS_H
#define DPI_LEDGER_UNITS_H

#include "dpinfer/ledger.h"
#include "tools/terminal/output.h"

/* IDs, one a line; blank lines are none. Private memory. */
typedef struct ledger_units {
    dpi_ledger_units units;
    char *text;
    int64_t n_text; /* bytes of a file that has them all, one a line */
    const void **ids; /* [units.n] */
    size_t *n_bytes;  /* [units.n] */
} ledger_units;

/* CLI_OK, or an exit code with a message. ledger_units_free in any case. */
int ledger_units_read(const char *path, ledger_units *u);
void ledger_units_free(ledger_units *u);

/* The IDs of those that have paid, in the order of the file. CLI_OK or CLI_FAILED. */
int ledger_units_write(const ledger_units *u, output *out);

#endif
