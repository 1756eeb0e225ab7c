/* prompts.h - the two prompts of a text: the public one, and the private one of a record.
 *
 * The public prompt depends on no record. The private prompt has the text of a record in one place.
 * A record that does not fit is cut at the longest prefix, in whole UTF-8 characters, whose prompt
 * has at most n_limit tokens, which is public. The text around it is never cut. A query, which is
 * public, makes both prompts: it is the public one, and the private one is a record and then the
 * query.
 *
 * A description and an answer make a list: the public text is for one, and behind the header of
 * the answer stand its first items. Each is a number, the answer, a text and the answer's end; the
 * last one is a number and the answer, from which a text goes on. An answer's end that begins with
 * a line end and ends with a blank, as "\n# No. ", is a heading: it stands before the number of
 * each item. Without a private prompt the record is the first item.
 *
 * Examples are public texts of the form that is wished for. Each is an item of the list, or else an
 * earlier turn: the public prompt, and the example as its answer. Without a private prompt the
 * record stands in their place, as the one item or turn. A model without turns sees documents, one
 * after the other, with DPI_CHAT_MARK (text.h) behind each. */
#ifndef DPINFER_PROMPTS_H
#define DPINFER_PROMPTS_H

#include "dpinfer/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which prompts examples stand in. */
typedef enum dpi_example_in { DPI_EXAMPLE_IN_PUBLIC = 0, DPI_EXAMPLE_IN_BOTH = 1 } dpi_example_in;

enum { DPI_EXAMPLES_MAX = DPI_TURNS_MAX - 1 };

typedef struct dpi_prompt_options {
    size_t struct_size;
    int32_t chat;                 /* a dpi_chat; default AUTO */
    int32_t max_reference_tokens; /* a record is cut to so many; 0 (default): what the context
                                     leaves */
    dpi_bytes public_prompt;  /* without {reference}; none: the default of prompt_texts.h */
    dpi_bytes private_prompt; /* with {reference} once, which is a record; none: the public prompt
                                 behind a record */
    dpi_bytes description;    /* PUBLIC: what kind of documents these are, such as "hospital
                                 discharge letters": the public prompt is for one of them. Instead
                                 of public_prompt and query */
    dpi_bytes query;          /* a question, instead of both prompts */
    dpi_bytes label;          /* PUBLIC: what {label} stands for in the prompts, where it may stand
                                 any number of times; none: {label} is text like any other */
    dpi_bytes system;         /* the system message of every prompt; none: without one */
    const dpi_turn *turns;    /* [n_turns] PUBLIC: earlier turns of a conversation, which stand in
                                 every prompt before all but the system message, which some formats
                                 (mistral-v3) put behind them. Each is text as it is, {label} and
                                 {reference} too. NULL (default): none */
    int32_t n_turns;          /* 0..DPI_EXAMPLES_MAX - n_examples */
    int32_t n_text;           /* of a description: tokens that a text may have; with more than
                                 DPI_LISTED_TOKENS (prompt_texts.h) texts are not in quotes but
                                 below headings (dpi_wording_choose). In a release it is its
                                 n_tokens. 0 (default): not known, in quotes */
    dpi_bytes answer;         /* PUBLIC: every prompt ends with it, behind the header of the answer,
                                 and earlier answers begin with it. In a release it is that of the
                                 wording. None: without one */
    dpi_bytes answer_end;      /* PUBLIC: earlier answers end with it. In a release it is the first
                                  stop of the wording. None: without one */
    const dpi_bytes *examples; /* [n_examples] PUBLIC, each with some text; NULL (default): none */
    int32_t n_examples;        /* 0..DPI_EXAMPLES_MAX */
    int32_t example_in;        /* a dpi_example_in; default PUBLIC */
    uint64_t room[8]; /* all 0: for what is to come */
} dpi_prompt_options;

DPI_API void dpi_prompt_options_init_size(dpi_prompt_options *options, size_t size);
#define dpi_prompt_options_init(o) dpi_prompt_options_init_size((o), sizeof *(o))
/* What can be checked without a model. Errors: ARG, in the form "query: found ..., allowed ...". */
DPI_API DPI_MUST_CHECK dpi_status dpi_prompt_options_check(const dpi_prompt_options *options,
                                                           dpi_error *err);

/* 1: {label} is in one of the texts. */
DPI_API int32_t dpi_prompt_options_have_label(const dpi_prompt_options *options);
/* What {label} stands for in a prompt, the caller's, to free with free: the meaning; where that is
 * NULL the label itself, and `described`, in the prompts of a description, in words: each '_' is a
 * blank, so that a model does not write "card_arrival". Both are strings. NULL: no memory. */
DPI_API char *dpi_label_in_prompt(const char *label, const char *meaning, int32_t described);

/* 1: by its first word a text is an order to somebody ("Write ..."), with which a model that has no
 * chat format goes on, and which it does not follow. English. data NULL: 0. */
DPI_API int32_t dpi_prompt_is_order(dpi_bytes text);
/* The dpi_chat of prompts whose options have `chat`: never AUTO; NONE: the model does not chat. */
DPI_API int32_t dpi_prompts_chat(int32_t chat, const dpi_model_info *model);

/* The prompts of one model. Immutable. */
typedef struct dpi_prompts dpi_prompts;

typedef struct dpi_prompts_info {
    size_t struct_size;
    int32_t chat;     /* the dpi_chat that is used; never AUTO */
    int32_t n_public; /* tokens of the public prompt */
    int32_t n_answer; /* of them, and of each private prompt, the last ones are the answer's */
    int32_t n_frame;  /* tokens of the private prompt of an empty record */
    int32_t n_prefix; /* tokens that private prompts begin with, whatever the record. One that
                         begins in an unusual way may share less */
    int32_t n_limit;  /* most tokens of a private prompt */
} dpi_prompts_info;

DPI_API void dpi_prompts_info_init_size(dpi_prompts_info *info, size_t size);
#define dpi_prompts_info_init(o) dpi_prompts_info_init_size((o), sizeof *(o))

/* Copies the texts and encodes the public prompt. n_room: tokens of a prompt that the context
 * leaves. The model must outlive the prompts. Errors: ARG (the options; a prompt without a record
 * that does not fit), UNSUPPORTED (the chat format), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_prompts_create(const dpi_model *model,
                                                     const dpi_prompt_options *options,
                                                     int32_t n_room, dpi_prompts **prompts,
                                                     dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_prompts_free(dpi_prompts *prompts);

/* Fills in *info, after dpi_prompts_info_init. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_prompts_info_get(const dpi_prompts *prompts,
                                                       dpi_prompts_info *info, dpi_error *err);
/* [n_public] tokens, those of the prompts. */
DPI_API const int32_t *dpi_prompts_public(const dpi_prompts *prompts);

/* The private prompt of a record: *tokens [*n_tokens], which the caller frees with
 * dpi_private_free. NULL (and OK) if the record is NULL, or not one character of it fits: null.
 * Errors: MEMORY, UNSUPPORTED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_prompts_encode(const dpi_prompts *prompts, const char *record,
                                                     size_t n_bytes, int32_t **tokens,
                                                     size_t *n_tokens, dpi_error *err);

/* Prompts whose public one is the private prompt of this record, for texts that one PUBLIC record
 * gives alone: *made is the caller's. Nothing of a private record may come in here. Errors: ARG
 * (the record does not fit, not one character of it), MEMORY, UNSUPPORTED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_prompts_of_record(const dpi_prompts *prompts,
                                                        const char *record, size_t n_bytes,
                                                        dpi_prompts **made, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
