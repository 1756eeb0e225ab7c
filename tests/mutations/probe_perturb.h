/* probe_perturb.h - what words that are replaced must hold, for mutants. */
#ifndef PROBE_PERTURB_H
#define PROBE_PERTURB_H

#include "dpinfer/model.h"

/* The first thing that does not hold, static; NULL: all does. Needs neither argument. */
const char *probe_perturb(const dpi_model *model, const char *folder);

#endif
