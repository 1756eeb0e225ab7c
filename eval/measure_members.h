/* measure_members.h - what synthetic texts alone tell about who was a record. */
#ifndef DPI_EVAL_MEASURE_MEMBERS_H
#define DPI_EVAL_MEASURE_MEMBERS_H

#include "eval/evaluate.h"

/* Adds membership inference of training texts against real ones, and of canaries against controls.
 * A record's score is its mean log probability under n-grams of the synthetic texts, less the same
 * under n-grams of real texts it is not among (Watson et al. 2022 call this difficulty). Nothing
 * for fewer than 4 training or real texts, or 2 canaries or controls. Errors: MEMORY. */
dpi_status eval_measure_members(evaluation *e, const eval_sources *sources, dpi_error *err);

#endif
