/* extract.h - the local model writes what fits the true document, out of what a model elsewhere has
 * written for its perturbed words (Tong et al. 2025, section IV D and Appendix A). All texts are
 * PRIVATE. */
#ifndef DPI_EXTRACT_H
#define DPI_EXTRACT_H

#include "tools/options/options.h"

/* The prompts of the paper; {document} and {generation} stand for texts. */
extern const char extract_prompt_remote[], extract_prompt_local[];

/* A prompt in which each name stands for its text. The caller frees it with dpi_private_free; NULL:
 * no memory. */
char *extract_fill(const char *prompt, const char *document, const char *generation);
/* The text of a file that is a prompt and has each of `names` (between commas) once, or `own`
 * without a file; *text, which the caller frees with dpi_private_free. CLI_OK or a code with a
 * message. */
int extract_prompt_read(const args *a, option_id file, const char *own, const char *names,
                        char **text);

typedef struct extract {
    const dpi_model *model;
    dpi_session *session;
    dpi_sampler *sampler;
    int n_tokens;
} extract;

/* CLI_OK or a code with a message. */
int extract_open(const args *a, const dpi_model *model, extract *x);
void extract_close(extract *x); /* safe on {0} */

/* The first n tokens of a document as text; n 0: all of it. The caller frees *text with
 * dpi_private_free. */
int extract_cut(const dpi_model *model, const char *document, size_t n_bytes, int n, char **text);

/* Calls `between` after each token. *text is NULL where the prompt does not leave room in the
 * context; else the caller frees it with dpi_private_free. */
typedef int (*extract_between)(void *user);
int extract_write(extract *x, const char *prompt, extract_between between, void *user, char **text);

#endif
