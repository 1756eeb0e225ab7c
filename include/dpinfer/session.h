/* session.h - KV caches of several sequences over one model, and their logits. */
#ifndef DPINFER_SESSION_H
#define DPINFER_SESSION_H

#include "dpinfer/isa.h"
#include "dpinfer/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpi_session dpi_session;

typedef enum dpi_kv {
    DPI_KV_F16 = 0,
    DPI_KV_F32 = 1
} dpi_kv;

/* What computes the products of a prompt with f32 activations. These are the products of weights
 * stored as floats, and in an exact session of all weights. Other products of quantised weights are
 * computed by integer kernels. */
typedef enum dpi_prefill {
    DPI_PREFILL_AUTO = 0,    /* BLAS where there is no SIMD kernel (ISA ref), else KERNELS */
    DPI_PREFILL_KERNELS = 1, /* the kernels that also compute steps */
    DPI_PREFILL_BLAS = 2    /* OpenBLAS in one fixed shape; set it to one thread */
} dpi_prefill;

enum { DPI_SEQUENCES_MAX = (1 << 20) + 1 }; /* a public prompt, and the most records of a batch */

typedef struct dpi_session_options {
    size_t struct_size;
    int32_t n_seq;     /* sequences, 1..DPI_SEQUENCES_MAX; default 1 */
    int32_t n_ctx;     /* positions per sequence; 0 (default): the model's n_ctx_train. Models with
                          rope_factors_long rotate by them where it is above the context that they
                          were first trained on, for texts of any length */
    int32_t n_threads; /* 0 (default): the processors this process may use. The session has fewer
                          where the system does not start so many (dpi_process_threads) */
    int32_t isa;       /* a dpi_isa; default AUTO. One that the processor lacks is refused */
    int32_t kv_type;   /* a dpi_kv; default F16 */
    int32_t exact;     /* 1: f32 activations everywhere and an f32 KV cache (slow; default 0) */
    int32_t prefill;   /* a dpi_prefill; default AUTO */
    int32_t n_kept; /* sequences after those of n_seq that only hold tokens: what dpi_session_fork
                       gave them, and may take from them. They have no logits and no rows, so that
                       there may be many; 0 (default) to DPI_SEQUENCES_MAX */
    dpi_cancel_fn cancel; /* may be NULL */
    void *cancel_user;
    int32_t steers; /* 1: sequences choose among the sets of the model's control vector, by
                       dpi_session_steer; 0 (default): a model with several is refused */
    int32_t reserved;
    uint64_t room[7]; /* all 0: for what is to come */
} dpi_session_options;

DPI_API void dpi_session_options_init_size(dpi_session_options *options, size_t size);
#define dpi_session_options_init(o) dpi_session_options_init_size((o), sizeof *(o))

/* The model must outlive the session. Cache memory grows with the tokens that are held.
 * Errors: ARG, MEMORY, UNSUPPORTED (isa). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_create(const dpi_model *model,
                                                     const dpi_session_options *options,
                                                     dpi_session **session, dpi_error *err);
/* Wipes caches and logits. NULL is allowed. */
DPI_API void dpi_session_free(dpi_session *session);

/* Which set of the model's control vector (dpi_model_info.n_control_sets) is added to what sequence
 * `seq` reads, from 0; a model with one or none has number 0. A fork has that of its origin, and a
 * reset keeps it. Errors: ARG; STATE (the sequence has tokens). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_steer(dpi_session *session, int32_t seq, int32_t set,
                                                    dpi_error *err);

/* Appends n_tokens (>= 1) to sequence `seq` and computes the logits after the last one, or
 * after each of them if `all_logits` [n_tokens, n_vocab] is not NULL.
 *
 * PURITY: the logits of a sequence are a function of the weights, the session's options other
 * than n_seq, n_threads and n_ctx (which only decides the rotations of models with
 * rope_factors_long), the set of vectors that steers it, the tokens given to it by prefill and
 * those given by step; their bits do not depend on other sequences or on the thread count
 * (docs/spec.md section 3).
 * Errors: ARG, LIMIT (context full: nothing is appended), MEMORY (nothing is appended; where layers
 * have windows the sequence may be reset), CANCELLED (the sequence is reset). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_prefill(dpi_session *session, int32_t seq,
                                                      const int32_t *tokens, size_t n_tokens,
                                                      float *all_logits, dpi_error *err);

/* Appends tokens[i] to sequence seqs[i] for i in [0, n_rows), seqs distinct, in one pass that
 * reads each weight once. Errors: ARG, LIMIT, MEMORY; nothing is appended on error. */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_step(dpi_session *session, int32_t n_rows,
                                                   const int32_t *seqs, const int32_t *tokens,
                                                   dpi_error *err);

/* The same, with logits of the first n_logits rows only (0..n_rows). The other sequences have no
 * logits until dpi_session_logits_at. For callers who read all logits of some sequences and few of
 * the others: a step is some percent faster, more where the vocabulary is large. */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_step_partial(dpi_session *session, int32_t n_rows,
                                                           const int32_t *seqs,
                                                           const int32_t *tokens,
                                                           int32_t n_logits, dpi_error *err);

/* Logits of the tokens ids [n_ids] (ascending, none twice; NULL: of all tokens, n_ids is ignored)
 * for the rows [first_row, first_row + n_rows) of the last step, which must be rows without logits.
 * They are in dpi_session_logits at these ids, with the bits of a whole step; what is at other ids
 * is no logit of this step. May be called again with other rows and ids: each text of several gets
 * the tokens that it needs. Time: logits are computed 16 at a time, for neighbouring ids.
 * Errors: ARG; STATE (there was no step, or a prefill, fork or reset after it). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_logits_at(dpi_session *session, int32_t first_row,
                                                        int32_t n_rows, const int32_t *ids,
                                                        int32_t n_ids, dpi_error *err);

/* Empties sequence `to` and gives it the first n_tokens (>= 1) tokens that `from` holds, as if they
 * had been given to it in the same way, without computing them again: whole KV blocks are shared,
 * the rest is copied. What happens to one of the two later does not touch the other. `to` has no
 * logits until its next prefill or step, unless it got all tokens of `from`, and `from` has some.
 *
 * Where layers have a sliding window, a sequence gives back what no later token sees; a recurrent
 * state (dpi_model_info.n_recurrent) cannot go back. Then a sequence can be forked as long as it
 * is, and at its pins.
 * Errors: ARG (from == to, out of range, more tokens than `from` holds), STATE (fewer tokens are
 * forkable), MEMORY (`to` is empty). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_fork(dpi_session *session, int32_t from, int32_t to,
                                                   int32_t n_tokens, dpi_error *err);

/* Says that the first n_tokens tokens of `seq` are going to be forked when it is longer. At most
 * DPI_PINS_MAX lengths, which a reset forgets. n_tokens is no less than the sequence holds, and no
 * more than the context. Errors: ARG, LIMIT (too many), MEMORY. */
enum { DPI_PINS_MAX = 2 };
DPI_API DPI_MUST_CHECK dpi_status dpi_session_pin(dpi_session *session, int32_t seq,
                                                  int32_t n_tokens, dpi_error *err);
/* How many of the first n_tokens tokens of `from` can be forked now: the most that is at most
 * n_tokens; 0: none. */
DPI_API int32_t dpi_session_forkable(const dpi_session *session, int32_t from, int32_t n_tokens);

/* Logits [n_vocab] after the last token of `seq`; NULL if it has none or is out of range. After
 * dpi_session_logits_at only those of its ids. The session's; valid until the next
 * prefill or step of that sequence, reset or free. */
DPI_API const float *dpi_session_logits(const dpi_session *session, int32_t seq);
/* What the model makes of a text, as numbers to compare texts by: the last hidden state of `seq`
 * after its last token, normalised as for the output head, into features [n_embd] (dpi_model_info).
 * A function of the same things as the logits, with the same purity: that of a private text is
 * private. Errors: ARG; STATE (the session's last call that computed something was no prefill of
 * seq, or seq was reset after it). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_features(const dpi_session *session, int32_t seq,
                                                       float *features, dpi_error *err);
/* The same after each of the last n tokens, into features [n, n_embd], the last token last. After a
 * prefill with all_logits n may be as large as its tokens since the last position that is a
 * multiple of 64; else it is 1. Errors: those of dpi_session_features. */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_features_last(const dpi_session *session, int32_t seq,
                                                            int32_t n, float *features,
                                                            dpi_error *err);
/* Tokens held by `seq`; -1 if it is out of range. */
DPI_API int32_t dpi_session_length(const dpi_session *session, int32_t seq);
/* Empties the sequence, wipes and frees its cache. Out of range: nothing. */
DPI_API void dpi_session_reset(dpi_session *session, int32_t seq);
DPI_API const dpi_model *dpi_session_model(const dpi_session *session);
DPI_API int32_t dpi_session_n_ctx(const dpi_session *session);
DPI_API int32_t dpi_session_n_threads(const dpi_session *session);
DPI_API int32_t dpi_session_isa(const dpi_session *session);

/* Bytes that a session with these options needs when every one of the n_seq sequences holds
 * n_tokens tokens, of which the first n_prefix (0..n_tokens) came to all but sequence 0 by
 * dpi_session_fork from one of them: caches, states, logits and work space, without the weights and
 * what the n_kept others hold. Where layers have windows or recurrent states it is the most that
 * the growing sequences may need. */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_memory(const dpi_model *model,
                                                     const dpi_session_options *options,
                                                     int32_t n_tokens, int32_t n_prefix,
                                                     uint64_t *n_bytes, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
