/* task_labels.h - the labels of an adapter or of steering vectors, and what stands for them in the
 * prompts of `generate`. */
#ifndef DPINFER_TASK_LABELS_H
#define DPINFER_TASK_LABELS_H

#include <stdbool.h>

#include "dpinfer/records.h"
#include "tools/options/label_options.h"

/* Lines as a file has them, one of each label; NULL: it has none. They are cut up. */
typedef struct task_lines {
    char *labels, *meanings, *words;
    char *attributes; /* their names, with TABs between */
    bool claimed;     /* it has all labels that there are */
} task_lines;

/* Of n prompts. Strings are those of the lines and of the command line. */
typedef struct task_labels {
    label_input own;       /* of the command line */
    const char **names;    /* [n] NULL: there are none */
    const char **meanings; /* [n] what {label} stands for; one that is NULL: the label */
    char **hints;          /* [n] what stands behind it; NULL, and one that is NULL: nothing */
    int32_t *sets;         /* [n] of the vectors' file; NULL: it has vectors of no label */
    int32_t n, n_names;    /* as many as n, or fewer names, each in several prompts */
    const char *attributes[DPI_LABEL_FIELDS_MAX];
    int32_t n_attributes;
} task_labels;

/* CLI_USAGE, CLI_MODEL, CLI_FAILED with a message; *labels is to be freed then, too. */
int task_labels_read(const args *a, const task_lines *lines, task_labels *labels);
void task_labels_free(task_labels *labels);

/* What {label} stands for in the i-th prompt, for free; described: a description has it. NULL: out
 * of memory. */
char *task_label_in_prompt(const task_labels *labels, int32_t i, bool described);

#endif
