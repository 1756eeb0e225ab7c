/* tuning_plan.h - what `dpinfer finetune --plan` tells. */
#ifndef DPI_TUNING_PLAN_H
#define DPI_TUNING_PLAN_H

#include "dpinfer/finetune.h"
#include "tools/options/options.h"

/* Noise and memory, and the time of a few measured gradients, to stdout. CLI_OK or a code with a
 * message. */
int tuning_plan_print(const args *a, const dpi_finetune_options *options);

#endif
