/* labelled_rows.h - texts with labels as rows of numbers, for a classifier. */
#ifndef DPI_EVAL_LABELLED_ROWS_H
#define DPI_EVAL_LABELLED_ROWS_H

#include <linear.h>

#include "eval/text_set.h"

/* What a training set says: its terms (terms.h) with their weights, its labels. */
typedef struct eval_vocabulary {
    uint64_t *term; /* [n], ascending; private */
    double *idf;    /* [n] */
    int32_t n;
    const char **label; /* [n_labels], ascending; the texts' */
    int32_t n_labels;
} eval_vocabulary;

/* Texts with labels as rows. */
typedef struct eval_rows {
    struct feature_node **at; /* [n]; private, parts of `nodes`; two nodes of index -1 end each:
                                 there is room for a constant */
    struct feature_node *nodes;
    double *label; /* [n] from 1; 0: one that was not trained */
    int32_t n;
} eval_rows;

/* Errors: ARG (fewer than 2 labels), MEMORY. Both are freed also after a failure. */
dpi_status eval_vocabulary_make(eval_vocabulary *v, const eval_texts *train, dpi_error *err);
void eval_vocabulary_free(eval_vocabulary *v);

/* Rows of length 1 (or 0, without a term of the vocabulary) of the texts with a label. Errors:
 * MEMORY. */
dpi_status eval_rows_make(const eval_vocabulary *v, const eval_texts *texts, eval_rows *r,
                          dpi_error *err);
void eval_rows_free(eval_rows *r);

#endif
