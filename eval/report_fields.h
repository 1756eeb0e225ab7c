/* report_fields.h - the fields of JSON texts, and the noisy counts of released_counts.h, as
 * parts of the
 * reports of evaluation_report.c. Names and values come from texts: what would be markup or a
 * control character is written otherwise. */
#ifndef DPI_EVAL_REPORT_FIELDS_H
#define DPI_EVAL_REPORT_FIELDS_H

#include <jansson.h>
#include <stdio.h>

#include "eval/structure.h"

/* A text as text, as a value of CSV. */
void report_put_plain(const char *text, FILE *f);
void report_put_quoted(const char *text, FILE *f);

void fields_print_text(const eval_structure *s, FILE *f);
/* Rows "field_tv:NAME,value,,"; of counts "count:NAME:CELL,noisy,low,high" and
 * "count_synthetic:NAME:CELL,count,,". */
void fields_print_csv(const eval_structure *s, FILE *f);
/* The object "fields"; NULL: out of memory. */
json_t *fields_json(const eval_structure *s);
/* A table with a small plot of each field. */
void fields_print_html(const eval_structure *s, FILE *f);

#endif
