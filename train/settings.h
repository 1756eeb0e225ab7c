/* settings.h - checks of a dpi_train_config. Internal. */
#ifndef DPI_TRAIN_SETTINGS_H
#define DPI_TRAIN_SETTINGS_H

#include "dpinfer/train.h"

/* Every member in its range, and the rules between them. Errors: ARG. */
dpi_status dpi_train_config_check(const dpi_train_config *config, dpi_error *err);

/* Of the members that decide what a step does: a checkpoint belongs to one value of it. steps,
 * epochs, threads, paths and intervals are not in it. */
uint64_t dpi_train_config_hash(const dpi_train_config *config);

#endif
