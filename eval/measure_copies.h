/* measure_copies.h - what texts have word for word of the training texts, as values. */
#ifndef DPI_EVAL_MEASURE_COPIES_H
#define DPI_EVAL_MEASURE_COPIES_H

#include "eval/evaluate.h"

/* Adds the values of grams.h, runs of words and, with sources->model, of its tokens. Nothing
 * without training texts. Errors: those of dpi_tokenize; LIMIT, MEMORY. */
dpi_status eval_measure_copies(evaluation *e, const eval_sources *sources, dpi_error *err);

#endif
