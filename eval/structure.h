/* structure.h - texts of a form: which of them a grammar accepts, which are JSON, and what the
 * fields of JSON objects hold. */
#ifndef DPI_EVAL_STRUCTURE_H
#define DPI_EVAL_STRUCTURE_H

#include <stdbool.h>

#include "dpinfer/grammar.h"
#include "eval/text_set.h"

enum { EVAL_FIELDS_MAX = 64, EVAL_FIELD_BINS = 20 };

typedef enum eval_field_kind {
    EVAL_FIELD_VALUES,  /* one bin for each value: at most 20 values, or more that repeat */
    EVAL_FIELD_NUMBERS, /* bins of the same width from the least to the largest of both sets */
    EVAL_FIELD_WORDS,   /* of texts that hardly repeat: how many words, in such bins */
    EVAL_FIELD_KINDS
} eval_field_kind;

/* A field of JSON objects and its distributions over the texts that are such objects: [0] of the
 * synthetic ones, [1] of the real ones. Private memory. */
typedef struct eval_field {
    char *name; /* "address.city"; "tags[]": how many entries the list has */
    eval_field_kind kind;
    double tv;         /* total variation; a text without the field is a value too */
    double tv_low, tv_high; /* its 95 %; of texts as they stand: NAN until they are found */
    int32_t n_cells;        /* different values, or bins of numbers */
    double present[2]; /* share of the texts that have it */
    int32_t n_bins;
    char *bin[EVAL_FIELD_BINS]; /* what it is: a value, "other", or "12 .. 15" */
    double share[2][EVAL_FIELD_BINS];
    /* Of released_counts.h alone: */
    bool is_released, has_synthetic; /* the real side has noise; there is a synthetic side */
    int64_t count[2][EVAL_FIELD_BINS];
    int64_t noise; /* 95 %: a count of real texts is so far from the true one at most */
} eval_field;

typedef struct eval_structure {
    int32_t n_json[2];     /* texts that are JSON */
    int32_t n_objects[2];  /* of these, those that are objects */
    int32_t n_arrays;      /* of both sets, those that are lists */
    int32_t n_accepted[2]; /* texts that the grammar accepts; 0 without one */
    eval_field *field;     /* [n_fields] the most frequent ones, by their names */
    int32_t n_fields;
    double tv_mean;   /* of all of them */
    int32_t *cell[2]; /* [n_fields, n_objects]: 1 + what an object has of the field, 0: it has it
                         not */
} eval_structure;

/* Of two sets of texts; grammar: NULL: none. eval_structure_free also after a failure. Nested
 * objects are read to a depth of 16. Errors: those of dpi_grammar_accepts; LIMIT, MEMORY. */
dpi_status eval_find_structure(const eval_texts *synthetic, const eval_texts *real,
                               const dpi_grammar *grammar, eval_structure *structure,
                               dpi_error *err);
void eval_structure_free(eval_structure *structure);

/* Total variation of a field between the objects which[0] [n_objects[0]] of the synthetic side and
 * which[1]; NULL: each object once. count: work, [2 * (n_cells + 1)]. */
double eval_field_variation(const eval_structure *structure, int32_t field,
                            const int32_t *const which[2], double *count);

#endif
