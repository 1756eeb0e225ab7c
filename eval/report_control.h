/* report_control.h - the texts beside a control, as a part of the reports of evaluation_report.c.
 * Nothing where c is NULL. */
#ifndef DPI_EVAL_REPORT_CONTROL_H
#define DPI_EVAL_REPORT_CONTROL_H

#include <jansson.h>
#include <stdio.h>

#include "eval/control.h"

void control_print_text(const eval_control *c, FILE *f);
/* Rows "control:KEY,value,," and "difference:KEY,value,low,high"; "n_control" and
 * "control_verdict". */
void control_print_csv(const eval_control *c, FILE *f);
/* The object "control"; NULL: out of memory. */
json_t *control_json(const eval_control *c);
void control_print_html(const eval_control *c, FILE *f);

#endif
