/* openings.h - texts that begin with a sentence about the task, or refuse it: what chat models
 * write where a document was asked for. */
#ifndef DPI_EVAL_OPENINGS_H
#define DPI_EVAL_OPENINGS_H

#include "eval/text_set.h"

typedef enum eval_opening {
    EVAL_PREAMBLE, /* "Sure! Here is a message:" */
    EVAL_REFUSAL,  /* "I'm sorry, but I can't assist with that." */
    EVAL_OPENINGS
} eval_opening;

/* found [texts->n]: 1 where a text begins so, else 0. Errors: MEMORY. */
dpi_status eval_openings_find(const eval_texts *texts, eval_opening opening, double *found,
                              dpi_error *err);

#endif
