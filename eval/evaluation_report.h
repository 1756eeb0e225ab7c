/* evaluation_report.h - an evaluation as text, JSON, CSV or a page of HTML. Each holds all
 * values. */
#ifndef DPI_EVAL_EVALUATION_REPORT_H
#define DPI_EVAL_EVALUATION_REPORT_H

#include <stdio.h>

#include "eval/evaluate.h"

typedef enum eval_form {
    EVAL_TEXT,
    EVAL_JSON, /* keys of values; "intervals", "mauve_seeds", "settings", "model", and what the
                  plots show: "lengths", "mauve_curve", "map", "membership_roc", "canary_roc";
                  "control" */
    EVAL_CSV,  /* key,value,low,high; of lists "KEY:PART" */
    EVAL_HTML, /* one file, with plots, that asks nothing of a network */
    EVAL_FORMS
} eval_form;

/* is_public: the real texts and the training texts are public. false: out of memory, or the stream
 * has failed. */
bool eval_print(const evaluation *e, bool is_public, eval_form form, FILE *stream);

#endif
