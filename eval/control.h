/* control.h - texts beside a control: texts of the public prompt alone, or of the same settings at
 * an epsilon near 0. What is no better than these has not come from the records. */
#ifndef DPI_EVAL_CONTROL_H
#define DPI_EVAL_CONTROL_H

#include "eval/evaluate.h"

/* A metric of the texts, of the control, and the first less the second. low..high: 95 % by
 * bootstrap; NAN: none. The resamples of the texts and of the control are independent, those of the
 * real texts the same for both where the metric is of two sets. */
typedef struct eval_difference {
    const char *key, *label;
    double synthetic, control, value, low, high;
    int32_t verdict; /* 1: the texts are better beyond chance, -1: the control, 0: neither; of the
                        judged metrics */
    bool is_judged;
} eval_difference;

typedef struct eval_control {
    int32_t n_control; /* texts of the control */
    eval_difference at[EVAL_VALUES_MAX];
    int32_t n, n_judged;
    double z; /* deviations beyond which all judged metrics together err in 5 % of cases */
    char verdict[512]; /* whether the budget bought anything, in a sentence */
} eval_control;

/* evaluate() of the synthetic texts and of a control, side by side in e->control. Metrics that say
 * how near texts are to real ones are judged, at 95 % for all of them together (Bonferroni). What a
 * classifier finds differs with the texts that it learns from: for its differences EVAL_TRAININGS
 * classifiers learn from resamples of each side. Errors: those of evaluate(). */
enum { EVAL_TRAININGS = 25 };
dpi_status evaluate_beside_control(const eval_sources *sources, const eval_texts *control,
                                   evaluation *e, dpi_error *err);

#endif
