/* preview.h - prompts tried on public texts: what a model writes after the public prompt, and after
 * the private prompt of single PUBLIC example records, side by side. It spends no budget, since no
 * private record comes in. */
#ifndef DPI_EVAL_PREVIEW_H
#define DPI_EVAL_PREVIEW_H

#include <stdio.h>

#include "dpinfer.h"
#include "eval/advice.h"

enum { EVAL_PREVIEW_TEXTS_MAX = 64 };

/* The caller's, all of it, until eval_preview_make returns. */
typedef struct eval_preview_options {
    const dpi_model *model;
    dpi_prompt_options prompts;
    const char *const *labels;  /* [n_labels] in turn for public texts; NULL: none */
    const char *const *meanings; /* [n_labels] what {label} stands for; NULL, or NULL of one: the
                                    label */
    int32_t n_labels;
    const dpi_wording *wording; /* NULL: the default */
    const dpi_grammar *grammar; /* NULL: none */
    dpi_sampler_options method; /* PLAIN; n_tokens 0: dpi_tokens_default */
    dpi_session_options session;
    const eval_texts *records;  /* 1.. of them, of which n_texts are used; a record with a label is
                                   shown in the prompts of that one */
    int32_t n_texts;            /* public ones, 1..EVAL_PREVIEW_TEXTS_MAX; and as many of records,
                                   one of each at most */
    int32_t seeded;
    uint64_t seed;
} eval_preview_options;

typedef struct eval_preview {
    char *public_prompt, *private_prompt; /* with special tokens by their names; of the first label
                                             and the first record */
    int32_t n_public, n_private;          /* tokens of both */
    eval_texts public_texts, record_texts, records; /* text i is of record i */
    bool public_cut[EVAL_PREVIEW_TEXTS_MAX], record_cut[EVAL_PREVIEW_TEXTS_MAX];
    int32_t n_tokens;
    eval_advice advice[EVAL_FAULTS];
    int32_t n_advice;
} eval_preview;

/* n made-up support tickets, 1..EVAL_PREVIEW_TEXTS_MAX, for who has no example record. Errors:
 * MEMORY. */
dpi_status eval_preview_tickets(int32_t n, eval_texts *records, dpi_error *err);

/* eval_preview_free also after a failure. Errors: ARG (options), UNSUPPORTED, CANCELLED, MEMORY;
 * those of a session. */
dpi_status eval_preview_make(const eval_preview_options *options, eval_preview *preview,
                             dpi_error *err);
void eval_preview_free(eval_preview *preview);

typedef enum eval_preview_form { EVAL_PREVIEW_TEXT, EVAL_PREVIEW_JSON, EVAL_PREVIEW_HTML }
    eval_preview_form;

/* false: out of memory, or the stream has failed. */
bool eval_preview_print(const eval_preview *preview, eval_preview_form form, FILE *stream);

#endif
