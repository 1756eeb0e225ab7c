/* probe_finetune.h - what a private training must hold from its records to its file, for mutants.
 */
#ifndef DPI_PROBE_FINETUNE_H
#define DPI_PROBE_FINETUNE_H

#include "dpinfer/model.h"

/* The first thing that does not hold, static; NULL: all does. `folder` is for its files. */
const char *probe_finetune(const dpi_model *model, const char *folder);

#endif
