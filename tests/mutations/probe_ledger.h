/* probe_ledger.h - what a ledger must hold, for mutants. */
#ifndef PROBE_LEDGER_H
#define PROBE_LEDGER_H

#include "dpinfer/release.h"

/* The first thing that does not hold, static; NULL: all does. Makes files in `folder`. */
const char *probe_ledger(const dpi_model *model, const char *folder);

#endif
