/* generation.h - texts, from a session and a sampler.
 *
 * A generation is one text from one batch, as a state machine. It does nothing by itself:
 * dpi_generation_advance reads one of its prompts, or draws its next token, or ends it. Any number
 * of them share one session and its passes, begin and end when they like, and each has the bits of
 * logits and the tokens that it would have alone. One text:
 *
 *     dpi_generation_options o;
 *     dpi_generation_options_init(&o);
 *     o.session = session, o.sampler = sampler, o.text = DPI_TEXT_PIECES;
 *     o.public_tokens = public_tokens, o.n_public = n_public;
 *     o.reference_tokens = tokens, o.n_reference_tokens = n_tokens, o.n_ref = n_ref;
 *     dpi_generation *g = NULL;
 *     dpi_generation_event e = {0};
 *     dpi_status status = dpi_generation_create(&o, &g, &err);
 *     while (status == DPI_STATUS_OK && e.type != DPI_EVENT_END) {
 *         status = dpi_generation_advance(&g, 1, &e, &err);
 *         fwrite(e.text, 1, e.n_bytes, stdout);
 *     }
 *     dpi_generation_free(g);
 *
 * Several, with a sampler each and sequences of their own (first_seq); one that ends makes room for
 * the next (NULL is a free place):
 *
 *     do {
 *         for (int32_t i = 0; i < n; i++)
 *             if (!live[i] && next_text(&o, i))
 *                 status = dpi_generation_create(&o, &live[i], &err);
 *         status = dpi_generation_advance(live, n, events, &err);
 *         for (int32_t i = 0; i < n; i++) {
 *             show(i, events[i].text, events[i].n_bytes);
 *             if (events[i].type == DPI_EVENT_END || events[i].type == DPI_EVENT_ERROR)
 *                 dpi_generation_free(live[i]), live[i] = NULL;
 *         }
 *     } while (any(live, n));
 */
#ifndef DPINFER_GENERATION_H
#define DPINFER_GENERATION_H

#include "dpinfer/grammar.h"
#include "dpinfer/method.h"
#include "dpinfer/session.h"
#include "dpinfer/wording.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_generation dpi_generation;

/* What one advance did for a generation. */
typedef enum dpi_event {
    DPI_EVENT_NONE = 0,   /* nothing: END was before */
    DPI_EVENT_PROMPT = 1, /* a prompt was read, or a piece of one, or a null slot passed */
    DPI_EVENT_TOKEN = 2,  /* a token was drawn, and is released with this event */
    DPI_EVENT_END = 3,    /* the text is finished and its caches are wiped; those of references were
                             already after the last token that could be private
                             (dpi_sampler_needs_references) */
    DPI_EVENT_ERROR = 4   /* nothing was done; the generation is as it was before */
} dpi_event;

typedef enum dpi_end {
    DPI_END_NONE = 0,
    DPI_END_EOG = 1,      /* an end-of-generation token was drawn */
    DPI_END_LENGTH = 2,   /* the sampler's n_tokens were drawn */
    DPI_END_CANCELLED = 3, /* dpi_generation_cancel */
    DPI_END_STOP = 4,      /* a stop has come (wording.h) */
    DPI_END_WORDS = 5      /* the last of max_words has come (wording.h) */
} dpi_end;

/* 1: the text came to an end of its own: EOG, STOP or WORDS. */
DPI_API int32_t dpi_end_is_own(int32_t end);

/* Which events have text. */
typedef enum dpi_text_of_events {
    DPI_TEXT_NONE = 0,
    DPI_TEXT_PIECES = 1, /* TOKEN: what the token completes; END: what was held back */
    DPI_TEXT_WHOLE = 2   /* END alone: the whole text */
} dpi_text_of_events;

typedef struct dpi_generation_event {
    int32_t type;   /* a dpi_event */
    int32_t status; /* a dpi_status: why, with ERROR; else OK */
    int32_t n_read;    /* slots whose prompts are read, null ones too, the public one first */
    int32_t n_prompts; /* of so many: n_ref + 1, or n_ref max_per_unit + 1. Private where the
                          sampler's n_ref is */
    int32_t token;     /* with TOKEN; else -1 */
    int32_t n_drawn;   /* tokens released so far, end-of-generation included */
    int32_t end; /* a dpi_end: how the text ended; the last TOKEN has it already */
    int32_t reserved;
    const char *text; /* [n_bytes] as dpi_text_of_events says; never NULL. The generation's, until
                         its next advance, cancel or free */
    size_t n_bytes;
} dpi_generation_event;

/* One text whose references are spread over processes, each with a generation of its own (method.h
 * says what is added and why). Part 0 draws. All parts advance one text at a time, in the same
 * order. */
typedef struct dpi_spread {
    int32_t index, count; /* of the parts: 0..count-1, 1..DPI_PARTS_MAX */
    /* Called by each part once for each token. add: the sums [n] of all parts, added entry by
     * entry, into those of part 0. token: *token of part 0 to all; -1: it has failed. They wait for
     * the other parts; a status that is not OK ends the text. */
    dpi_status (*add)(void *user, int64_t *sums, int32_t n, dpi_error *err);
    dpi_status (*token)(void *user, int32_t *token, dpi_error *err);
    void *user;
} dpi_spread;

typedef struct dpi_generation_options {
    size_t struct_size;
    dpi_session *session; /* must outlive the generation */
    dpi_sampler *sampler; /* its n_tokens is T. It must outlive the generation and serve no other
                             one in between, which is noticed (STATE) */
    /* Prompts are the caller's. They are read until the event with n_read == n_prompts, and not
     * after it. A reference that is empty, does not leave room for T tokens in the context, or
     * holds an id outside of the vocabulary is a null slot like NULL: no failure depends on a
     * record. */
    const int32_t *public_tokens; /* [n_public], the public prompt */
    size_t n_public;
    /* [n_ref] prompts; NULL entries are null slots. If the sampler has max_per_unit,
     * [n_ref max_per_unit]: those of the unit in slot i from i max_per_unit on, NULL for none. */
    const int32_t *const *reference_tokens;
    const size_t *n_reference_tokens; /* as many */
    int32_t n_ref;     /* the sampler's n_ref; 0 for PLAIN */
    int32_t first_seq; /* the sequence of the public prompt; reference i has first_seq + 1 + i. They
                          are empty, and nothing else uses them. Default 0 */
    size_t n_prefix; /* public: how many tokens the references' prompts begin with that depend on no
                        record. Where two prompts, the public one included, have these in common
                        they are computed once. Decides time and memory, not the text. Default 0 */
    int32_t n_piece; /* most tokens of a prompt that one advance reads, so that other texts do not
                        wait for a long one; best a multiple of 64. Decides time alone. 0 (default):
                        one whole prompt */
    const int32_t *recalled_tokens; /* [n_recalled] tokens that this text has released before: they
                                       come as TOKEN events again, and are booked, not drawn
                                       (dpi_sampler_recall). Until all of them have come; default
                                       none */
    int32_t n_recalled;
    int32_t text; /* a dpi_text_of_events; default NONE */
    int32_t ignore_eog; /* 1: an end-of-generation token is one like others, and T tokens are drawn;
                           default 0 */
    const dpi_spread *spread; /* the references are this part of the text's, n_ref those of the
                                 part; must outlive the generation. After a failure in add or token
                                 it cannot go on. NULL (default): they are all of them */
    int64_t number; /* of the text, with spread: the same in all parts and another for each text */
    const int32_t *prompt_seqs; /* [n_ref + 1] sequences of the session that hold the prompts
                                   already, the public one first: they are forked and stay as they
                                   are, for texts that share records. -1: the prompt is read. NULL
                                   (default): all are read. The caller's until all prompts are
                                   read */
    const int32_t *n_held; /* [n_ref + 1] with prompt_seqs: how many tokens of its prompt, from the
                              first on, are those that the sequence begins with; the rest is read.
                              NULL (default): sequences hold whole prompts. The caller's as long */
    dpi_mask *mask; /* the text is one of its grammar, or the beginning of one where T tokens end
                       before it does; must outlive the generation, which shares it with others of
                       its thread. NULL (default): any text */
    const dpi_word_rules *rules; /* how the text is worded; must outlive the generation. NULL
                                    (default): as the model writes it, with all white space */
    int32_t n_answer; /* with rules: the last n_answer tokens of the public prompt are the beginning
                         of the answer. Default 0 */
    int32_t n_begun; /* with a mask or rules: the text begins with the last n_begun tokens of the
                        public prompt, and grammar and rules go on behind them; the answer stands
                        before. With rules events have them, too. Default 0 */
} dpi_generation_options;

DPI_API void dpi_generation_options_init_size(dpi_generation_options *options, size_t size);
#define dpi_generation_options_init(o) dpi_generation_options_init_size((o), sizeof *(o))

/* Checks, and computes nothing yet. The sampler begins its text before the first token is drawn.
 * Errors: ARG (a public prompt that is empty or does not fit with T tokens; n_ref; a sequence that
 * the session does not have; a sampler of another vocabulary), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_generation_create(const dpi_generation_options *options,
                                                        dpi_generation **generation,
                                                        dpi_error *err);
/* Cancels it first, so that its caches are wiped. At any time between advances. NULL is allowed. */
DPI_API void dpi_generation_free(dpi_generation *generation);

/* Ends the text where it is and wipes the caches of its sequences; what was released stays
 * released. The next advance gives END, with the text that END has. After the last token:
 * nothing. */
DPI_API void dpi_generation_cancel(dpi_generation *generation);

/* One step of each of n (>= 1) generations of one session, all of them different; events [n] says
 * what happened to each. NULL is a free place: NONE. Tokens that were drawn before go through one
 * pass that reads the weights once, new ones are drawn, and then prompts are read. The session is
 * not used for anything else meanwhile, but may be between two calls, on other sequences.
 *
 * On failure the status and *err are those of the first generation that failed, and the events
 * are filled in all the same: of the others some have released tokens. A generation with an ERROR
 * event is as it was before: another advance tries again, or it is freed. Each token that was drawn
 * is in exactly one event, and is charged once.
 * Errors of a generation: MEMORY; CANCELLED (the session's cancel, while a prompt was read: it is
 * read again from its beginning); ENTROPY, NUMERIC, BUDGET, as dpi_sampler_step; STATE (its
 * sequences or its sampler serve something else, or prompt_seqs do not hold its prompts). ARG
 * without any event: the arguments. */
DPI_API DPI_MUST_CHECK dpi_status dpi_generation_advance(dpi_generation *const *generations,
                                                         int32_t n, dpi_generation_event *events,
                                                         dpi_error *err);

/* ---- One text in one call -------------------------------------------------------------------- */

typedef struct dpi_generate_input {
    size_t struct_size;
    const int32_t *public_tokens; /* [n_public], the public prompt */
    size_t n_public;
    const int32_t *const *reference_tokens; /* [n_ref], as in dpi_generation_options */
    const size_t *n_reference_tokens;       /* [n_ref] */
    int32_t n_ref;                          /* the sampler's n_ref; 0 for PLAIN */
    int32_t n_tokens;                       /* the sampler's n_tokens, T */
    size_t n_prefix;                        /* as in dpi_generation_options */
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

DPI_API void dpi_generate_input_init_size(dpi_generate_input *input, size_t size);
#define dpi_generate_input_init(o) dpi_generate_input_init_size((o), sizeof *(o))
DPI_API void dpi_generate_hooks_init_size(dpi_generate_hooks *hooks, size_t size);
#define dpi_generate_hooks_init(o) dpi_generate_hooks_init_size((o), sizeof *(o))
DPI_API void dpi_generate_result_init_size(dpi_generate_result *result, size_t size);
#define dpi_generate_result_init(o) dpi_generate_result_init_size((o), sizeof *(o))

/* One text from one batch, by a generation. Resets the session's sequences 0..n_ref, reads the
 * prompts (sequence 0 is public, i + 1 is reference i), then draws until an end-of-generation token
 * or n_tokens. The caches are wiped before it returns, on success and on failure. `result` (may be
 * NULL) is filled in either way.
 * Errors: those of dpi_generation_create and dpi_generation_advance, which end the text. */
DPI_API DPI_MUST_CHECK dpi_status dpi_generate(dpi_session *session, dpi_sampler *sampler,
                                               const dpi_generate_input *input,
                                               const dpi_generate_hooks *hooks,
                                               dpi_generate_result *result, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
