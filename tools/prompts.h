/* prompts.h - the two prompts of a run: the public one, and the private one of a record.
 *
 * The public prompt depends on no record. The private prompt is a text in which {reference}
 * stands for the body of a record; a body that does not fit is cut at the longest prefix, in
 * whole UTF-8 characters, whose prompt has at most n_limit tokens, which is public. The text
 * around it is never cut. A query, which is public, makes both: it is the public prompt, and the
 * private one is a record and then the query. */
#ifndef DPI_PROMPTS_H
#define DPI_PROMPTS_H

#include "tools/options.h"

typedef struct prompts {
    /* Set by prompts_load. private_text, query and system may be NULL: the default, none. */
    char *private_text, *public_text, *query, *system;
    size_t n_private, n_public, n_query, n_system;
    /* Set by prompts_prepare. */
    const dpi_model *model;
    int32_t chat;           /* the dpi_chat that is used */
    size_t before;          /* bytes of private_text before {reference} */
    int32_t *public_tokens; /* [n_public_tokens] */
    size_t n_public_tokens;
    size_t n_frame;         /* tokens of the private prompt with an empty body */
    size_t n_prefix;        /* tokens that private prompts begin with, whatever the record */
    size_t n_limit;         /* most tokens of a private prompt */
} prompts;

/* Reads the texts of the options and files and checks what can be checked without a model.
 * CLI_OK, or CLI_USAGE with a message. prompts_free in any case. */
int prompts_load(const args *a, prompts *p);

/* Chooses defaults and chat format and encodes the public prompt. n_room: tokens of a prompt
 * that the context allows; max_ref_tokens: most tokens of a body, 0 for what n_room leaves.
 * The model must outlive p. CLI_OK, or an exit code with a message. */
int prompts_prepare(prompts *p, const dpi_model *model, const dpi_model_info *info, int32_t chat,
                    size_t n_room, size_t max_ref_tokens);

/* Tokens of the private prompt of a record, private memory that the caller frees with
 * private_free. *tokens = NULL (and CLI_OK) if not one character of the body fits: null. */
int prompts_encode(const prompts *p, const char *body, size_t n_body, int32_t **tokens,
                   size_t *n_tokens);

void prompts_free(prompts *p);

#endif
