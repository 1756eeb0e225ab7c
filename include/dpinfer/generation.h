/* generation.h - session and sampler together: texts. */
#ifndef DPINFER_GENERATION_H
#define DPINFER_GENERATION_H

#include "dpinfer/method.h"
#include "dpinfer/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_generate_input {
    size_t struct_size;
    const int32_t *public_tokens; /* [n_public], the public prompt */
    size_t n_public;
    const int32_t *const *reference_tokens; /* [n_ref] prompts; NULL entries are null slots */
    const size_t *n_reference_tokens;       /* [n_ref] */
    int32_t n_ref;                          /* the sampler's n_ref; 0 for PLAIN */
    int32_t n_tokens;                       /* the sampler's n_tokens, T */
    size_t n_prefix; /* public: how many tokens the references' prompts begin with that depend on no
                        record. Where two prompts, the public one included, have these in common
                        they are computed once. Decides time and memory, not the text. 0: none */
} dpi_generate_input;

typedef struct dpi_generate_hooks {
    size_t struct_size;
    /* Each released token, end-of-text included. Non-zero stops the text (CANCELLED). */
    int32_t (*on_token)(void *user, int32_t token);
    /* Public progress: tokens drawn so far (0 while prompts are read), and T. May be NULL. */
    void (*on_progress)(void *user, int32_t n_drawn, int32_t n_tokens);
    dpi_cancel_fn cancel; /* between tokens and prompts; may be NULL */
    void *user;
} dpi_generate_hooks;

typedef struct dpi_generate_result {
    size_t struct_size;
    int32_t n_drawn; /* tokens released, end-of-text included */
    int32_t ended;   /* 1: an end-of-generation token was drawn; 0: n_tokens was reached */
} dpi_generate_result;

/* One text from one batch. Resets the session's sequences 0..n_ref, reads the prompts
 * (sequence 0 is public, i + 1 is reference i), then draws until an end-of-generation token or
 * n_tokens. The caches are wiped before it returns, on success and on failure. `result` (may
 * be NULL; struct_size set) is filled in either way.
 * Errors: those of prefill, step and the sampler; ARG if a prompt with n_tokens does not fit. */
DPI_API DPI_MUST_CHECK dpi_status dpi_generate(dpi_session *session, dpi_sampler *sampler,
                                               const dpi_generate_input *input,
                                               const dpi_generate_hooks *hooks,
                                               dpi_generate_result *result, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
