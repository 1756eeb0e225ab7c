/* probe_ledger.h - what a ledger must hold, for mutants. */
#ifndef PROBE_LEDGER_H
#define PROBE_LEDGER_H

#include "dpinfer/ledger.h"
#include "dpinfer/release.h"

/* The first thing that does not hold, static; NULL: all does. Makes files in `folder`. */
const char *probe_ledger(const dpi_model *model, const char *folder);

/* Of the ledgers of probes: a dataset more; what it was charged, -1: it is not there; a charge of
 * rho for these units (NULL: for all). */
dpi_status probe_add(dpi_ledger *ledger, const char *name, double epsilon, double delta,
                     int32_t scope);
int64_t probe_charged(dpi_ledger *ledger, const char *name);
dpi_status probe_reserve(dpi_ledger *ledger, const char *name, double rho,
                         const dpi_ledger_units *units);

#endif
