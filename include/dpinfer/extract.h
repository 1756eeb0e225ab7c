/* extract.h - out of what a model elsewhere has written for perturbed words (perturb.h) a local
 * model writes what fits the true document: InferDPT, Tong et al. 2025, section IV D and Appendix
 * A. All texts are PRIVATE, in private memory, and as private as the document. Part of
 * libdpinfer_full. Threads: an object belongs to one thread at a time. */
#ifndef DPINFER_EXTRACT_H
#define DPINFER_EXTRACT_H

#include "dpinfer/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The prompt to the model elsewhere, with {document} for the perturbed one. Static. */
DPI_API const char *dpi_extract_prompt_remote(void);
/* The prompt to the local model (Appendix A), with {document} for the true document and
 * {generation} for what the other model has written. Static. */
DPI_API const char *dpi_extract_prompt_local(void);

/* *text: a prompt in which {document} and {generation} stand for texts, strings; NULL: it stays as
 * it is. The caller frees it with dpi_private_free. Errors: MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_extract_fill(const char *prompt, const char *document,
                                                   const char *generation, char **text,
                                                   dpi_error *err);
/* *text: the first n tokens of a document [n_bytes] as a string; n 0: all of it. The caller frees
 * it with dpi_private_free. Errors: MEMORY, UNSUPPORTED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_extract_cut(const dpi_model *model, const char *document,
                                                  size_t n_bytes, int32_t n, char **text,
                                                  dpi_error *err);

typedef struct dpi_extract_options {
    size_t struct_size;
    const dpi_model *model;      /* must outlive the object */
    dpi_session_options session; /* n_seq is 1; a prompt and n_tokens have to fit into n_ctx */
    int32_t n_tokens;            /* most of a text, fewer than the context has; default 100 */
    double tau;                  /* 0 (default): what the model's file recommends, else .7 */
} dpi_extract_options;

DPI_API void dpi_extract_options_init_size(dpi_extract_options *options, size_t size);
#define dpi_extract_options_init(o) dpi_extract_options_init_size((o), sizeof *(o))

typedef struct dpi_extract dpi_extract;

/* Errors: ARG (the options; n_tokens is called T), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_extract_open(const dpi_extract_options *options,
                                                   dpi_extract **extract, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_extract_free(dpi_extract *extract);

/* *text: a string that the model writes after the prompt, a filled one; the caller frees it with
 * dpi_private_free. NULL (and OK) where the prompt does not leave room in the context. between,
 * which may be NULL, is called after each token: not 0 ends it (CANCELLED). Errors: those of
 * dpi_generation_advance. */
DPI_API DPI_MUST_CHECK dpi_status dpi_extract_write(dpi_extract *extract, const char *prompt,
                                                    dpi_cancel_fn between, void *user, char **text,
                                                    dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
