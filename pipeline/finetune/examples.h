/* examples.h - records as training examples: the instruction, the text, the end. PRIVATE.
 * Internal.
 *
 * An instruction is public; there is one, or one for each label. The loss of a record x with label
 * a, prompt i(a) and n_wrong other labels w is
 *
 *     NLL(i(a) x) - mismatch / n_wrong * (sum of NLL(i(w) x))
 *
 * so that a text is made likelier after its own instruction alone. Source: Mattern et al. 2022,
 * section 4.2. */
#ifndef DPI_FINETUNE_EXAMPLES_H
#define DPI_FINETUNE_EXAMPLES_H

#include "dpinfer/prompts.h"
#include "dpinfer/records.h"
#include "dpinfer/wording.h"
#include "train/tuner.h"

enum { DPI_WRONG_MAX = 16 };

/* Of which instructions are made, as in dpi_finetune_options. */
typedef struct dpi_instruction_options {
    dpi_bytes text;
    dpi_bytes description; /* in place of a text: records are items of a list (wording.h), and
                              labels stand there in words (dpi_label_in_prompt) */
    int32_t chat;
    const char *const *labels;
    const char *const *meanings; /* [n_labels] what {label} stands for, without attributes; NULL,
                                    and each that is NULL: the label */
    int32_t n_labels; /* 0: one instruction */
    const char *const *attributes;
    int32_t n_attributes;
    int32_t n_positions;
} dpi_instruction_options;

/* Public: what stands before a record. */
typedef struct dpi_instructions {
    int32_t n;            /* 1, or one for each label */
    dpi_prompts **prompts; /* [n] */
    char **labels;        /* [n] strings; NULL: there are none */
    int32_t longest;      /* tokens */
    int32_t chat;         /* a dpi_chat, never AUTO */
    char *text;           /* the instruction as it was given; NULL: the default */
    char *description;    /* in its place; NULL: none */
    int32_t n_text;       /* of a description whose texts are long; else 0 */
    dpi_word_rules *rules; /* where a text of the description ends; NULL: none */
    char *lines;          /* the labels; NULL: there are none */
    char *meanings;       /* lines, one of each label, empty for one that stands for itself; NULL:
                             all do */
    char *attributes;     /* their names, with tabs between; NULL: there are none */
    int32_t **others;     /* [n] of each label those that its records may be made less likely after:
                             all others, or those with one other value of an attribute; NULL: there
                             are no labels */
    int32_t *n_others;    /* [n] */
} dpi_instructions;

/* Copies. Errors: ARG (an instruction without {label} where labels are, or the other way about; an
 * instruction and a description; one as long as n_positions; labels that are blank or the same;
 * meanings that are blank or of two lines, or with attributes;
 * attributes that the instruction or a label does not have), UNSUPPORTED, MEMORY; *made is then
 * empty. */
DPI_MUST_CHECK dpi_status dpi_instructions_make(const dpi_model *model,
                                                const dpi_instruction_options *options,
                                                dpi_instructions *made, dpi_error *err);
void dpi_instructions_free(dpi_instructions *instructions);

/* Of one record: its text and the end; tokens NULL: it is null, or has a label that is none. */
typedef struct dpi_example {
    int32_t *tokens; /* [n] private memory */
    int32_t n;
    int32_t label;   /* of the instructions */
} dpi_example;

typedef struct dpi_example_format {
    const dpi_model *model;
    const dpi_instructions *instructions;
    int32_t n_positions; /* an example has one token more at most */
    int32_t max_per_unit;
    int32_t n_wrong;     /* 0: no mismatch */
    float mismatch;
    bool loss_on_all;    /* also of the instruction's tokens */
    const uint8_t *pays; /* [units] 0: the unit is null, and not read; NULL: there is none such */
    dpi_cancel_fn cancel;
    void *cancel_user;
} dpi_example_format;

typedef struct dpi_examples {
    dpi_example *of; /* [n_records] */
    size_t n_records;
    const dpi_records *records;
    dpi_example_format format;
} dpi_examples;

/* Reads all records. A text that is cut has no end token. Errors: IO, MEMORY, CANCELLED; none
 * depends on what is in a record. *examples is the caller's, and empty after a failure. */
DPI_MUST_CHECK dpi_status dpi_examples_read(const dpi_records *records,
                                            const dpi_example_format *format,
                                            dpi_examples *examples, dpi_error *err);
/* counts [labels] = how many units have each. PRIVATE. */
void dpi_examples_count(const dpi_examples *examples, int64_t *counts);
/* Tells lists of examples apart. PRIVATE. */
uint64_t dpi_examples_hash(const dpi_examples *examples);
/* Wipes. */
void dpi_examples_free(dpi_examples *examples);

/* The units of a tuner. A unit's records are those that are not null of the first max_per_unit; a
 * record has 1 + n_wrong rows at most, of which the others are drawn by the unit's bits. `user` is
 * the examples. */
dpi_tuner_units dpi_examples_units(const dpi_examples *examples);

#endif
