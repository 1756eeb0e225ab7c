/* classify.h - what a classifier learns from texts: logistic regression on TF-IDF, by liblinear. It
 * is loaded where it is used. */
#ifndef DPI_EVAL_CLASSIFY_H
#define DPI_EVAL_CLASSIFY_H

#include "eval/text_set.h"

typedef struct eval_accuracy {
    double accuracy;       /* share of the test texts whose label is predicted */
    double macro_f1;       /* mean over the labels of F1 */
    double majority;       /* accuracy of the most frequent label of the training texts */
    int32_t n_train, n_test, n_labels;
} eval_accuracy;

/* Trained on the texts with a label, tested on those with a label. TF-IDF: count of a term (a word
 * or a pair of words, terms.h) times ln((1 + n) / (1 + texts with it)) + 1, n the training
 * texts, rows of length 1; L2-regularised logistic regression with an intercept, C = 1, one against
 * the rest (liblinear -s 0 -B 1, which draws nothing). These are the defaults of scikit-learn,
 * which learns all labels together: as good where labels have similar counts.
 * A label that was not trained is predicted wrong. each [2, test->n]: of the n_test texts with a
 * label, which one it is, 1..n_labels, 0: not trained, and from test->n on, what is predicted; may
 * be NULL. Errors: ARG (fewer than 2 labels, or no test text), UNSUPPORTED, MEMORY. */
dpi_status eval_classify(const eval_texts *train, const eval_texts *test, eval_accuracy *accuracy,
                         int32_t *each, dpi_error *err);

/* Mean over labels 1..n_labels of F1: label [n] and predicted [n] of the texts which[i], i < n;
 * NULL: of each once. counts [3, n_labels + 1] is scratch. */
double eval_macro_f1(const int32_t *label, const int32_t *predicted, const int32_t *which,
                     int32_t n, int32_t n_labels, int32_t *counts);

#endif
