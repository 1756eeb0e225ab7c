/* worker.h - the thread that draws: it owns the session, and all answers that are drawn share its
 * passes. Connections wait for what it has drawn.
 *
 * An answer has the tokens that it would have alone: generations share passes and no bit
 * (generation.h), and each has random bits of its own. Which answers are drawn side by side decides
 * time alone. */
#ifndef DPI_SERVE_WORKER_H
#define DPI_SERVE_WORKER_H

#include <pthread.h>

#include "dpinfer.h"
#include "serve/kept.h"
#include "serve/refusal.h"

typedef struct worker worker;

/* One text: first what is wanted, then, under the worker's lock, what has come of it. Made by
 * answer_create, owned by who made it until answer_leave. */
typedef struct answer {
    /* Set before worker_submit, and not changed after it. */
    int32_t *tokens; /* [n_tokens] the public prompt; private memory, the answer's */
    size_t n_tokens;
    dpi_sampler_options method; /* n_tokens is T */
    dpi_word_rules *rules; /* how it is worded; the answer's */
    dpi_grammar *grammar;  /* of its texts, and the mask of it; the answer's. NULL: any text */
    dpi_mask *mask;
    bool is_seeded;
    uint64_t bits; /* the state of its random bits, with is_seeded */
    int32_t n_seq; /* sequences that it needs: 1, and one for each prompt of a record */
    /* An answer about records (NULL: one without): called on the worker's thread once there is room
     * for it, and returns at once. Whoever is called sets what follows and calls worker_prepared.
     * prepare is not called for one that is refused before. */
    void (*prepare)(void *owner);
    void (*ended)(void *owner); /* it is over: called once, with the worker's lock held */
    void *owner;
    int32_t **references; /* [n_seq - 1] prompts of records, NULL for null ones; private memory */
    size_t *n_references; /* as many */
    record_name *records; /* as many: which record each prompt is of */
    size_t n_prefix;      /* as in dpi_generation_options */

    /* The worker's. */
    struct answer *next; /* that waits, or that is prepared */
    dpi_sampler *sampler;
    dpi_generation *generation;
    int32_t first_seq;
    int32_t *prompt_seqs, *n_held; /* [n_seq] while prompts are read: what was kept of them */
    int n_owners; /* the worker and the one who waits */
    bool is_left; /* nobody waits for it any more */
    bool is_over;
    int32_t n_drawn, end; /* end: a dpi_end */
    refusal failure;      /* http 0: none */
    char *text;           /* [n_bytes] what was drawn; private memory */
    size_t n_bytes, capacity;
    void (*wake)(void *user); /* a thread sleeps: called once, with the lock held */
    void *user;
    bool wakes_at_end; /* not before the text is whole */
} answer;

typedef struct worker_options {
    const dpi_model *model;
    dpi_session_options session; /* n_seq and cancel follow from the rest */
    int32_t n_parallel;          /* answers that are drawn at a time */
    int32_t n_seq_most;          /* sequences of one answer, most; at least 1 */
    int32_t n_waiting;           /* answers that may wait for that */
    int32_t n_searching;         /* sequences of one more session, where others find a pace; 0:
                                    there is none */
    int64_t kept_bytes;          /* for caches of records between answers; 0: none is kept */
    int64_t n_records;           /* that there are */
    uint64_t n_bytes;            /* memory of the process without records and answers */
    void (*at_rest)(void); /* nothing has been drawn for a moment: called once, on the worker's
                              thread, after the last of many answers. May be NULL */
} worker_options;

/* Makes the session and starts the thread. Errors: those of dpi_session_create; SYSTEM. */
dpi_status worker_create(const worker_options *options, worker **w, dpi_error *err);
/* Answers that wait are refused, those that are drawn go on to their end, and so the thread ends.
 * Returns at once; no further answer is begun. */
void worker_stop(worker *w);
/* After worker_stop: waits for the thread's end. */
void worker_join(worker *w);
void worker_free(worker *w);

/* Tokens of one prompt and its text. */
int32_t worker_n_ctx(const worker *w);

/* Bytes of this process: once it has answered and nothing is drawn, without caches of records; of
 * these at most; and in all with all answers that may be drawn at a time, each with its context
 * full, and a pace that is searched. They follow from the options: clients see them. */
typedef struct worker_memory {
    int64_t idle, kept, most;
} worker_memory;
worker_memory worker_memory_get(const worker *w);

/* NULL: out of memory. */
answer *answer_create(void);
/* How it is worded and of which form it is, once its method is set. *grammar (NULL: any text) is
 * the answer's from here on. False: *why. */
bool answer_shape(answer *a, const dpi_model *model, const dpi_wording *wording,
                  dpi_grammar **grammar, refusal *why);
/* The caller needs it no more: an answer that is drawn is stopped. NULL is allowed. */
void answer_leave(worker *w, answer *a);

/* The caller does not wait for it any more, and needs it still. */
void answer_forget(worker *w, answer *a);

/* False: *why says that too many wait, or that the server stops. */
bool worker_submit(worker *w, answer *a, refusal *why);

/* After prepare: it is drawn, or with `why` over. From any thread. */
void worker_prepared(worker *w, answer *a, const refusal *why);

/* What there is of an answer at one moment. */
typedef struct answer_view {
    bool is_over;
    int32_t n_drawn, end;
    refusal failure;
    char *text; /* [n_bytes] from byte `from` on, which the caller frees with dpi_private_free;
                   NULL: nothing, or no memory for it */
    size_t n_bytes;
} answer_view;
void answer_look(worker *w, answer *a, size_t from, answer_view *view);

/* True: there is more than `known` bytes (not with whole), or it is over. Else sleep(user) is
 * called, and wake(user) once there is; both with the lock held. */
bool answer_wait(worker *w, answer *a, bool whole, size_t known, void (*sleep)(void *user),
                 void (*wake)(void *user), void *user);

typedef struct worker_counts {
    int64_t n_answers; /* begun so far */
    int64_t n_tokens, n_prompt_tokens; /* of answers that are over; of public prompts */
    int32_t n_drawn, n_waiting; /* answers now */
} worker_counts;
void worker_count(worker *w, worker_counts *counts);

#endif
