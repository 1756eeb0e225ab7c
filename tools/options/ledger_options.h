/* ledger_options.h - the ledger and the dataset that a command line names. */
#ifndef DPI_LEDGER_OPTIONS_H
#define DPI_LEDGER_OPTIONS_H

#include "dpinfer/release.h"
#include "tools/options/options.h"

/* The dataset of --dataset, or the only one of the ledger. CLI_OK, or an exit code with a message.
 */
int ledger_dataset(const args *a, dpi_ledger *ledger, char name[DPI_DATASET_NAME_MAX + 1]);

/* Opens that of --ledger, and finds its dataset. *ledger stays NULL without the option, which
 * --dataset needs. CLI_OK, or an exit code with a message; the caller closes it in any case. */
int ledger_options_open(const args *a, bool read_only, dpi_ledger **ledger,
                        char dataset[DPI_DATASET_NAME_MAX + 1]);

/* The exit code of an error of a ledger, with its message. */
int ledger_fail(dpi_status status, const dpi_error *err);

/* After BUDGET: what is left, and which smaller job would fit. CLI_BUDGET. */
int ledger_fail_budget(dpi_ledger *ledger, const char *dataset, const dpi_run *claim,
                       const dpi_error *err);

#endif
