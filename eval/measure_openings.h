/* measure_openings.h - texts that begin with words about the task and not with what was asked for,
 * as models that were trained for conversation do. */
#ifndef DPI_EVAL_MEASURE_OPENINGS_H
#define DPI_EVAL_MEASURE_OPENINGS_H

#include "eval/evaluate.h"

/* Shares of texts that begin with a preamble ("Sure! Here is a message:") and of those that refuse
 * ("I'm sorry, but I can't assist with that."). English, by patterns: some are missed. Errors:
 * MEMORY. */
dpi_status eval_measure_openings(evaluation *e, const eval_sources *sources, dpi_error *err);

#endif
