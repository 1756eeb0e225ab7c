/* measure_structure.h - the form of texts, as values. */
#ifndef DPI_EVAL_MEASURE_STRUCTURE_H
#define DPI_EVAL_MEASURE_STRUCTURE_H

#include "eval/evaluate.h"

/* Fills e->structure and adds its values. Nothing is added where no text is JSON and there is no
 * grammar. Errors: those of eval_find_structure. */
dpi_status eval_measure_structure(evaluation *e, const eval_sources *sources, dpi_error *err);

#endif
