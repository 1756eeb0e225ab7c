/* members.h - membership inference: how well scores tell members from controls, and what epsilon
 * this refutes.
 *
 * Sources: Carlini et al. 2019 (exposure), 2022 (true positives at 1 % false positives); Jagielski
 * et al. 2020 (epsilon from Clopper-Pearson intervals); Steinke, Nasr, Jagielski 2023 (epsilon from
 * one run). */
#ifndef DPI_EVAL_MEMBERS_H
#define DPI_EVAL_MEMBERS_H

#include "eval/text_set.h"

enum { EVAL_ROC_POINTS = 61 };

/* low..high: 95 % by bootstrap over members and over controls. */
typedef struct eval_ranking {
    int32_t n_members, n_controls;
    double auc, auc_low, auc_high; /* chance that a member's score is the larger one, ties half */
    double tpr, tpr_low, tpr_high; /* share of the members above all but 1 % of the controls */
    double epsilon;         /* lower bound, 95 %, if each record is an independent trial: the best
                               threshold of every second record, judged by the others */
    double epsilon_one_run; /* lower bound, 95 %, if a fair coin made each record a member: guesses
                               of a tenth at each end */
    double roc_fpr[EVAL_ROC_POINTS], roc_tpr[EVAL_ROC_POINTS]; /* from .001 to 1, logarithmic */
} eval_ranking;

/* Of scores of members and of controls, larger ones for members; delta is that of the claim. A
 * ranking below chance has bounds of 0. Errors: ARG (fewer than 2 of either), MEMORY. */
dpi_status eval_rank(const double *members, int32_t n_members, const double *controls,
                     int32_t n_controls, double delta, eval_ranking *ranking, dpi_error *err);

/* log2(controls + 1) - log2(rank), the rank among the controls from 1, ties before it. */
double eval_exposure(double score, const double *controls, int32_t n, int32_t *rank);

#endif
