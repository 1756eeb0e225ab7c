/* advice.h - what is wrong with a prompt, told from texts that a model wrote after it, and which
 * option mends it. Nothing here knows a model: texts come in, sentences go out. */
#ifndef DPI_EVAL_ADVICE_H
#define DPI_EVAL_ADVICE_H

#include <stdbool.h>

#include "eval/text_set.h"

/* What was tried. All of it is public. */
typedef struct eval_tried {
    const eval_texts *public_texts;  /* after the public prompt */
    const bool *public_cut;          /* [public_texts->n] it had as many tokens as it may have */
    const eval_texts *record_texts;  /* text i after the private prompt of records->at[i % n] */
    const bool *record_cut;
    const eval_texts *records;       /* n of them; record_texts has a multiple of it */
    int32_t n_tokens;                /* that a text may have */
    bool is_base;                    /* the model has no chat format */
    bool is_instruction;             /* the prompt is an instruction, and no beginning of a text */
    bool has_answer, has_stop;       /* --answer, --stop or a grammar are given */
} eval_tried;

typedef enum eval_fault {
    EVAL_FAULT_BASE,     /* an instruction for a base model */
    EVAL_FAULT_OPENING,  /* texts begin with a preamble or a refusal */
    EVAL_FAULT_CUT,      /* texts are cut at their last token */
    EVAL_FAULT_CIRCLES,  /* texts say the same words over and over */
    EVAL_FAULT_ALIKE,    /* the texts of the public prompt are all the same */
    EVAL_FAULT_COPIES,   /* texts copy the record that they are shown */
    EVAL_FAULT_DEAF,     /* the private prompt has no effect */
    EVAL_FAULTS
} eval_fault;

typedef struct eval_advice {
    eval_fault fault;
    char text[320]; /* what is wrong, and the option that mends it */
} eval_advice;

/* The name of a fault for programs: "base-model", "opening", "cut", "circles", "alike",
 * "copies", "no-effect". Static. */
const char *eval_fault_name(eval_fault fault);

/* advice [EVAL_FAULTS], *n of them, each fault once. Errors: MEMORY. */
dpi_status eval_advise(const eval_tried *tried, eval_advice *advice, int32_t *n, dpi_error *err);

#endif
