/* probe_tuner.h - the audit of a private training step, for mutants. */
#ifndef DPI_PROBE_TUNER_H
#define DPI_PROBE_TUNER_H

#include "dpinfer/model.h"

/* What is wrong with who is in a step, with the sum, its noise or what it is divided by; NULL:
 * nothing was noticed. With the system's bits: a sound program fails with a chance below 1e-9.
 * Needs neither argument. */
const char *probe_tuner(const dpi_model *model, const char *folder);

#endif
