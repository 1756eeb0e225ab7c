/* attribute_values.h - made-up documents: what texts say of each attribute of their law. */
#ifndef DPI_EVAL_ATTRIBUTE_VALUES_H
#define DPI_EVAL_ATTRIBUTE_VALUES_H

#include "eval/evaluate.h"

/* Adds, where sources->domain is a name: the share of texts without a slip, of both sides, and the
 * total variation of each attribute, as the corpus grammar reads it; a text that does not say it
 * counts as a value. Source: corpus/document_grammar.h. Errors: ARG (no such domain), MEMORY. */
dpi_status eval_measure_attributes(evaluation *e, const eval_sources *sources, dpi_error *err);

#endif
