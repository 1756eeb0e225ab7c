/* probe_training.h - what the accountants of training must hold, for mutants. */
#ifndef PROBE_TRAINING_H
#define PROBE_TRAINING_H

#include "dpinfer/model.h"

/* The first thing that does not hold, static; NULL: all does. Needs neither argument. */
const char *probe_training(const dpi_model *model, const char *folder);

#endif
