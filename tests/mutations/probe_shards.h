/* probe_shards.h - what jobs, shards and merges must hold, for mutants. */
#ifndef PROBE_SHARDS_H
#define PROBE_SHARDS_H

#include "dpinfer/shards.h"

/* The first thing that does not hold, static; NULL: all does. Makes files and folders in
 * `folder`. */
const char *probe_shards(const dpi_model *model, const char *folder);

#endif
