/* plots.h - an evaluation as plots in SVG, part of a page of HTML (evaluation_report.c). */
#ifndef DPI_EVAL_PLOTS_H
#define DPI_EVAL_PLOTS_H

#include <stdio.h>

#include "eval/evaluate.h"

/* How long texts are. */
void plot_lengths(const evaluation *e, FILE *f);
/* The curve whose area is MAUVE. */
void plot_frontier(const evaluation *e, FILE *f);
/* Texts by the two directions in which their features vary most. */
void plot_map(const evaluation *e, FILE *f);

/* Membership inference: true positives against false ones. */
void plot_members(const evaluation *e, FILE *f);

#endif
