/* dpinfer.h - the public interface of libdpinfer.
 *
 * dpinfer writes text about sensitive documents without giving any one of them away. A GGUF
 * LLaMA model is loaded into an immutable dpi_model; a dpi_session holds one KV cache per
 * sequence (the public prompt and one per reference document) and computes next-token logits;
 * a dpi_sampler turns the B+1 logit vectors of a step into one token by an exact
 * differentially private mechanism, and counts what it spends.
 *
 *     dpi_model (shared, read-only) -> dpi_session (one per thread) -> logits [B+1, n_vocab]
 *     logits -> dpi_sampler -> token -> dpi_decoder -> UTF-8 text
 *
 * The sampler and the accounting functions need no model: any engine can feed them.
 *
 * CONVENTIONS
 * - Every function that can fail returns a dpi_status, which must be checked. The last
 *   argument is a caller-owned dpi_error that is filled in on failure; it may be NULL.
 *   On failure no output argument is changed, unless the function says otherwise.
 * - The library never aborts, exits, prints, reads the environment, installs signal handlers
 *   or keeps global state. Error messages never hold a prompt, a reference document, the name
 *   of one, or a logit that was computed from one.
 * - Option structs begin with `struct_size`. Fill them with their `_init` function, then
 *   change what you need. A struct_size that this library does not know is refused.
 * - Matrices are row-major, shapes are written [rows, columns]. Texts are UTF-8 with an
 *   explicit length in bytes and need no terminating NUL, unless they are called a "string".
 * - Threads: a dpi_model may be used by any number of threads at once. Every other object
 *   belongs to one thread at a time.
 */
#ifndef DPINFER_H
#define DPINFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DPI_API __attribute__((visibility("default")))
#define DPI_MUST_CHECK __attribute__((warn_unused_result))
#else
#define DPI_API
#define DPI_MUST_CHECK
#endif

/* Version of the binary interface: changes when a caller must be recompiled. */
#define DPI_ABI_VERSION 1u

/* ---- Status and errors -------------------------------------------------------------------- */

/* One list for code, name and text. Codes are stable. */
#define DPI_STATUS_MAP(XX)                                                   \
    XX(0, OK, "success")                                                     \
    XX(1, ARG, "invalid argument")                                           \
    XX(2, MEMORY, "out of memory")                                           \
    XX(3, IO, "cannot read or write a file")                                 \
    XX(4, FORMAT, "malformed file")                                          \
    XX(5, UNSUPPORTED, "not supported")                                      \
    XX(6, LIMIT, "a limit was exceeded")                                     \
    XX(7, ENTROPY, "the operating system gave no randomness")                \
    XX(8, NUMERIC, "a number that must be finite is not")                    \
    XX(9, BUDGET, "the privacy budget does not allow this")                  \
    XX(10, STATE, "called in the wrong order")                               \
    XX(11, CANCELLED, "cancelled by the caller")

typedef enum dpi_status {
#define DPI_STATUS_ENUM(code, name, text) DPI_STATUS_##name = (code),
    DPI_STATUS_MAP(DPI_STATUS_ENUM)
#undef DPI_STATUS_ENUM
} dpi_status;

/* offset is the position in the file, in bytes, where the fault was found; UINT64_MAX if the
 * error has no position. message is a NUL-terminated string that names the thing, what was
 * found and what is allowed. */
typedef struct dpi_error {
    int32_t code; /* a dpi_status */
    int32_t reserved;
    uint64_t offset;
    char message[488];
} dpi_error;

DPI_API uint32_t dpi_abi_version(void);
/* Static string such as "0.1.0". */
DPI_API const char *dpi_version(void);
/* Static strings, "unknown" for a code that is not in the list. */
DPI_API const char *dpi_status_name(int32_t status);
DPI_API const char *dpi_status_text(int32_t status);

/* ---- Instruction sets --------------------------------------------------------------------- */

typedef enum dpi_isa {
    DPI_ISA_AUTO = 0, /* the best that the processor has */
    DPI_ISA_REF = 1,  /* readable scalar C */
    DPI_ISA_AVX2 = 2, /* AVX2, FMA, F16C */
    DPI_ISA_AVX512 = 3, /* AVX-512 F, BW, DQ, VL, VNNI */
} dpi_isa;

/* "ref", "avx2", "avx512", "auto" to a dpi_isa, and back (static string, NULL if unknown). */
DPI_API DPI_MUST_CHECK dpi_status dpi_isa_parse(const char *name, int32_t *isa, dpi_error *err);
DPI_API const char *dpi_isa_name(int32_t isa);
/* The best ISA that this processor runs. Never DPI_ISA_AUTO. */
DPI_API int32_t dpi_isa_best(void);

/* The limits of this machine, measured now (about half a second), for benchmarks. */
typedef struct dpi_machine {
    size_t struct_size;
    double read_bytes_per_second; /* memory, all threads together */
    double int8_ops_per_second;   /* 8-bit multiply and add, two operations each; 0 for ISA ref */
    double f32_ops_per_second;    /* the same in f32 */
} dpi_machine;

/* n_threads 0: the processors this process may use; isa: a dpi_isa. machine->struct_size must be
 * set. Errors: ARG, UNSUPPORTED (isa), MEMORY (256 MB are read). */
DPI_API DPI_MUST_CHECK dpi_status dpi_machine_measure(int32_t n_threads, int32_t isa,
                                                      dpi_machine *machine, dpi_error *err);

/* ---- Model -------------------------------------------------------------------------------- */

typedef struct dpi_model dpi_model;

/* When quantised weights are rearranged for the integer kernels, and the file's pages given back.
 * Until then each pass rearranges them for itself, so that logits do not differ by a bit; those of a
 * file that is not mapped are rearranged at once. */
typedef enum dpi_repack {
    DPI_REPACK_NONE = 0,  /* never: for inspection (sessions compute with f32 activations) */
    DPI_REPACK_SOON = 1,  /* as the model opens, for less than half a second or so; what is left
                             before the second pass of a session, so that the first is not late */
    DPI_REPACK_LATER = 2, /* all before the second pass */
} dpi_repack;

typedef struct dpi_model_options {
    size_t struct_size;
    int32_t use_mmap;   /* 1 (default): map the file; 0: read it into memory */
    int32_t vocab_only; /* 1: tokenizer and metadata only, the file may have no weights */
    int32_t check_weights; /* 1: read every weight first, and refuse non-finite ones by tensor, row
                              and offset (NUMERIC). Slow */
    int32_t repack;        /* a dpi_repack; default SOON */
} dpi_model_options;

typedef struct dpi_model_info {
    size_t struct_size;
    int32_t n_layer, n_embd, n_ff, n_head, n_kv_head;
    int32_t head_dim;   /* of q and k: {arch}.attention.key_length, or n_embd / n_head */
    int32_t head_dim_v; /* of v: {arch}.attention.value_length, or n_embd / n_head */
    int32_t n_rot;      /* dimensions of a head that are rotated */
    int32_t n_vocab;
    int32_t n_ctx_train; /* {arch}.context_length */
    int32_t chat_template; /* recognised dpi_chat, DPI_CHAT_NONE if the file has none,
                              DPI_CHAT_UNKNOWN if it has one that is not recognised */
    int32_t tied_output;   /* 1: the output head is the embedding matrix */
    int32_t random_weights; /* 1: the file says that its weights are random (timing only) */
    int64_t n_params;
    int64_t weight_bytes; /* of all tensors, as stored in the file */
    float rope_freq_base, rope_freq_scale, rms_eps;
    char architecture[32];
    char name[64];
    char weight_types[96]; /* for example "Q4_K Q6_K F32", by share of bytes */
} dpi_model_info;

DPI_API void dpi_model_options_init(dpi_model_options *options);

/* Opens a GGUF v2 or v3 file of architecture "llama". `options` may be NULL for the defaults.
 * On success *model belongs to the caller, who closes it after every session on it. A mapped
 * file must not be truncated while the model is open (SIGBUS): use_mmap = 0 avoids that.
 * Errors: IO, FORMAT (with offset), UNSUPPORTED (a type or architecture, by name), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_open(const char *path, const dpi_model_options *options,
                                                 dpi_model **model, dpi_error *err);

/* The same from memory. `data` stays the caller's and must outlive the model. ARG if it is not
 * aligned to 8 bytes and the file has weights. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_open_buffer(const void *data, size_t n_bytes,
                                                        const dpi_model_options *options,
                                                        dpi_model **model, dpi_error *err);
/* NULL is allowed. */
DPI_API void dpi_model_close(dpi_model *model);

/* Fills *info; info->struct_size must be set by the caller. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_info_get(const dpi_model *model, dpi_model_info *info,
                                                     dpi_error *err);

/* Bytes of weights that computing brings into memory and that opening the model did not: matrices
 * that are not rearranged yet, of a mapped file all that are used in place, and about so much of an
 * embedding that is only looked up as n_tokens tokens need. */
DPI_API uint64_t dpi_model_unread_bytes(const dpi_model *model, int64_t n_tokens);

/* The metadata and tensors of the file, for inspection. Index in [0, count). The strings live
 * as long as the model. `value` renders scalars and strings in full and arrays shortened. */
DPI_API int64_t dpi_model_metadata_count(const dpi_model *model);
DPI_API DPI_MUST_CHECK dpi_status dpi_model_metadata_get(const dpi_model *model, int64_t index,
                                                         const char **key, const char **type,
                                                         char *value, size_t value_size,
                                                         dpi_error *err);
DPI_API int64_t dpi_model_tensor_count(const dpi_model *model);
/* shape: 4 dimensions, GGUF order (columns first), unused ones 1. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_tensor_get(const dpi_model *model, int64_t index,
                                                       const char **name, const char **type,
                                                       int64_t shape[4], uint64_t *offset,
                                                       uint64_t *n_bytes, dpi_error *err);

/* ---- Tokens and text ---------------------------------------------------------------------- */

enum {
    DPI_TOKENIZE_BOS = 1, /* begin with the BOS token if the model's metadata asks for one */
};

/* Token ids of a text. The text of special tokens ("</s>", "<|eot_id|>") is plain text here,
 * always: a document cannot forge a turn. Writes up to `capacity` ids to `tokens` and the full
 * count to *n_tokens. If the count exceeds the capacity nothing else is wrong: the status is
 * LIMIT, *n_tokens is set, and the first `capacity` ids are valid. After another error the content
 * of `tokens` is unspecified. A bound that always suffices: 4 * n_bytes + 5. Time and work memory
 * grow as n_bytes log n_bytes. */
DPI_API DPI_MUST_CHECK dpi_status dpi_tokenize(const dpi_model *model, const char *text,
                                               size_t n_bytes, int32_t flags, int32_t *tokens,
                                               size_t capacity, size_t *n_tokens, dpi_error *err);

/* 1 if `token` ends a text (any of the model's end-of-generation ids), else 0. */
DPI_API int32_t dpi_token_is_eog(const dpi_model *model, int32_t token);
/* BOS id, or -1 if the model has none. */
DPI_API int32_t dpi_token_bos(const dpi_model *model);

/* Streaming detokenizer: tokens in, whole UTF-8 sequences out. Bytes of an unfinished sequence
 * are held back; bytes that cannot be UTF-8 come out as U+FFFD. Special tokens give no text. */
typedef struct dpi_decoder dpi_decoder;
DPI_API DPI_MUST_CHECK dpi_status dpi_decoder_create(const dpi_model *model, dpi_decoder **decoder,
                                                     dpi_error *err);
/* The text that `token` completes. *text belongs to the decoder and is valid until the next
 * call on it. Errors: ARG (token out of range), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_decoder_push(dpi_decoder *decoder, int32_t token,
                                                   const char **text, size_t *n_bytes,
                                                   dpi_error *err);
/* What is held back at the end of a text (U+FFFD or nothing); starts a new text. */
DPI_API void dpi_decoder_finish(dpi_decoder *decoder, const char **text, size_t *n_bytes);
DPI_API void dpi_decoder_free(dpi_decoder *decoder);

/* Chat formats, as fixed renderers (a template in a model file is recognised, never run). */
typedef enum dpi_chat {
    DPI_CHAT_AUTO = 0, /* the one recognised in the model file, else NONE */
    DPI_CHAT_NONE = 1, /* BOS, then the text: base models */
    DPI_CHAT_ZEPHYR = 2,
    DPI_CHAT_LLAMA2 = 3,
    DPI_CHAT_LLAMA3 = 4,
    DPI_CHAT_CHATML = 5,
    DPI_CHAT_MISTRAL = 6,
    DPI_CHAT_UNKNOWN = -1, /* only in dpi_model_info: a template that is not recognised */
} dpi_chat;

/* "auto", "none", "zephyr", "llama2", "llama3", "chatml", "mistral", and back (NULL if unknown). */
DPI_API DPI_MUST_CHECK dpi_status dpi_chat_parse(const char *name, int32_t *chat, dpi_error *err);
DPI_API const char *dpi_chat_name(int32_t chat);

/* Token ids of a whole prompt: BOS where the model wants one, an optional system message
 * (NULL or n_system = 0 for none; before the text, set off by a blank line, where the format
 * has no system turn), the user's message, and the header of the assistant's turn. Only the
 * renderer makes special tokens; texts stay plain. Writes as dpi_tokenize does. A bound that
 * always suffices: 4 * (n_system + n_user) + 256.
 * Errors: ARG, UNSUPPORTED (the vocabulary lacks a token that the format needs), LIMIT. */
DPI_API DPI_MUST_CHECK dpi_status dpi_prompt_encode(const dpi_model *model, int32_t chat,
                                                    const char *system, size_t n_system,
                                                    const char *user, size_t n_user,
                                                    int32_t *tokens, size_t capacity,
                                                    size_t *n_tokens, dpi_error *err);

/* ---- Session: KV caches and logits -------------------------------------------------------- */

typedef struct dpi_session dpi_session;

typedef enum dpi_kv {
    DPI_KV_F16 = 0,
    DPI_KV_F32 = 1,
} dpi_kv;

/* Who computes the products of a prompt that have f32 activations: weights stored as floats, and
 * every weight in an exact session. Quantised weights otherwise have integer kernels of their own.
 */
typedef enum dpi_prefill {
    DPI_PREFILL_AUTO = 0,    /* BLAS where there is no SIMD kernel (ISA ref), else KERNELS */
    DPI_PREFILL_KERNELS = 1, /* the kernels that also compute steps */
    DPI_PREFILL_BLAS = 2,    /* OpenBLAS in one fixed shape; set it to one thread */
} dpi_prefill;

/* Asked now and then during long work: non-zero stops it with status CANCELLED. */
typedef int32_t (*dpi_cancel_fn)(void *user);

typedef struct dpi_session_options {
    size_t struct_size;
    int32_t n_seq;     /* sequences, 1..4097; default 1 */
    int32_t n_ctx;     /* positions per sequence; 0 (default): the model's n_ctx_train */
    int32_t n_threads; /* 0 (default): the processors this process may use */
    int32_t isa;       /* a dpi_isa; default AUTO. One that the processor lacks is refused */
    int32_t kv_type;   /* a dpi_kv; default F16 */
    int32_t exact;     /* 1: f32 activations everywhere and an f32 KV cache (slow; default 0) */
    int32_t prefill;   /* a dpi_prefill; default AUTO */
    int32_t reserved;
    dpi_cancel_fn cancel; /* may be NULL */
    void *cancel_user;
} dpi_session_options;

DPI_API void dpi_session_options_init(dpi_session_options *options);

/* The model must outlive the session. Cache memory grows with the tokens that are held.
 * Errors: ARG, MEMORY, UNSUPPORTED (isa). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_create(const dpi_model *model,
                                                     const dpi_session_options *options,
                                                     dpi_session **session, dpi_error *err);
/* Wipes caches and logits. NULL is allowed. */
DPI_API void dpi_session_free(dpi_session *session);

/* Appends n_tokens (>= 1) to sequence `seq` and computes the logits after the last one, or
 * after each of them if `all_logits` [n_tokens, n_vocab] is not NULL.
 *
 * PURITY: the logits of a sequence are a function of the weights, the session's options other
 * than n_seq, n_threads and n_ctx, the tokens given to it by prefill and those given by step;
 * their bits do not depend on other sequences or on the thread count (privacy.md section 3).
 * Errors: ARG, LIMIT (context full: nothing is appended), MEMORY (nothing is appended),
 * CANCELLED (the sequence is reset). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_prefill(dpi_session *session, int32_t seq,
                                                      const int32_t *tokens, size_t n_tokens,
                                                      float *all_logits, dpi_error *err);

/* Appends tokens[i] to sequence seqs[i] for i in [0, n_rows), seqs distinct, in one pass that
 * reads each weight once. Errors: ARG, LIMIT, MEMORY; nothing is appended on error. */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_step(dpi_session *session, int32_t n_rows,
                                                   const int32_t *seqs, const int32_t *tokens,
                                                   dpi_error *err);

/* The same, with logits of the first n_logits rows only (0..n_rows): the other sequences have none
 * before dpi_session_logits_at. For callers who read all logits of some sequences and few of the
 * others: it saves some percent of a step, more where the vocabulary is large. */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_step_partial(dpi_session *session, int32_t n_rows,
                                                           const int32_t *seqs,
                                                           const int32_t *tokens,
                                                           int32_t n_logits, dpi_error *err);

/* Logits of the tokens ids [n_ids] (ascending, none twice; NULL: of all, and n_ids does not count)
 * for the sequences of the last step that it left without. They are in dpi_session_logits at these
 * ids, the same bits as a whole step's; what stands at other ids is no logit of this step. May be
 * called again with other ids. Time: 16 tokens side by side cost what one does.
 * Errors: ARG; STATE (there was no step, or a prefill, fork or reset after it). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_logits_at(dpi_session *session, const int32_t *ids,
                                                        int32_t n_ids, dpi_error *err);

/* Empties sequence `to` and gives it the first n_tokens (>= 1) tokens that `from` holds, as if they
 * had been given to it in the same way, without computing them again: whole KV blocks are shared,
 * the rest is copied. What happens to one of the two later does not touch the other. `to` has no
 * logits until its next prefill or step, unless it got all tokens of `from`.
 * Errors: ARG (from == to, out of range, more tokens than `from` holds), MEMORY (`to` is empty). */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_fork(dpi_session *session, int32_t from, int32_t to,
                                                   int32_t n_tokens, dpi_error *err);

/* Logits [n_vocab] after the last token of `seq`; NULL if it has none or is out of range. After
 * dpi_session_logits_at only those that it was asked for. The session's; valid until the next
 * prefill or step of that sequence, reset or free. */
DPI_API const float *dpi_session_logits(const dpi_session *session, int32_t seq);
/* Tokens held by `seq`; -1 if it is out of range. */
DPI_API int32_t dpi_session_length(const dpi_session *session, int32_t seq);
/* Empties the sequence, wipes and frees its cache. Out of range: nothing. */
DPI_API void dpi_session_reset(dpi_session *session, int32_t seq);
DPI_API const dpi_model *dpi_session_model(const dpi_session *session);
DPI_API int32_t dpi_session_n_ctx(const dpi_session *session);
DPI_API int32_t dpi_session_n_threads(const dpi_session *session);
DPI_API int32_t dpi_session_isa(const dpi_session *session);

/* Bytes that a session with these options needs when every sequence holds n_tokens tokens, of which
 * the first n_prefix (0..n_tokens) came to all but sequence 0 by dpi_session_fork from one of them:
 * caches, logits and work space, without the weights. */
DPI_API DPI_MUST_CHECK dpi_status dpi_session_memory(const dpi_model *model,
                                                     const dpi_session_options *options,
                                                     int32_t n_tokens, int32_t n_prefix,
                                                     uint64_t *n_bytes, dpi_error *err);

/* ---- Accounting (no model needed) --------------------------------------------------------- */

/* zCDP to approximate DP, by the optimal order (privacy.md 4.1). Each returns the safe end:
 * delta and epsilon are upper bounds, rho is a lower bound.
 * Ranges: rho in (0, 1e6], epsilon in (0, 1e6], delta in (0, 1). Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_delta(double rho, double epsilon, double *delta,
                                                 dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_epsilon(double rho, double delta, double *epsilon,
                                                   dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_zcdp_rho(double epsilon, double delta, double *rho,
                                               dpi_error *err);

#define DPI_BR_TOKENS_MAX 16384

/* n_tokens tokens, each of bounded range eta and each chosen knowing the ones before: the exact
 * worst case over adaptive adversaries (privacy.md 4.2), discretised upwards. Tighter than zCDP.
 * delta and epsilon are upper bounds (epsilon within 1e-9 of what dpi_br_delta gives), eta is
 * the largest that fits, less 1e-9 of it at most.
 * Ranges: eta in (0, 1e3], n_tokens 1..DPI_BR_TOKENS_MAX, epsilon in (0, 1e6], delta in (0, 1).
 * Time: some 30 ms for delta at 500 tokens, ten times that for the other two.
 * Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_br_delta(double eta, int32_t n_tokens, double epsilon,
                                               double *delta, dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_br_epsilon(double eta, int32_t n_tokens, double delta,
                                                 double *epsilon, dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_br_eta(double epsilon, double delta, int32_t n_tokens,
                                             double *eta, dpi_error *err);

/* Secret assignment: each record independently joins one of the batches with total probability
 * q in (0, 1], else none (privacy.md 4.4). If the mechanism without it is (epsilon, delta)-DP
 * against the absence of a record, in both directions, then with it the run is
 * (ln(1 + q (e^epsilon - 1)), q delta)-DP. The assignment and the sizes of batches must stay
 * secret and be drawn anew for each run.
 * dpi_subsample_outside: what the run has, upper bounds. dpi_subsample_inside: what the mechanism
 * without it may have so that the run has (epsilon, delta), lower bounds. Ranges as above.
 * Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_subsample_outside(double epsilon, double delta, double q,
                                                        double *epsilon_run, double *delta_run,
                                                        dpi_error *err);
DPI_API DPI_MUST_CHECK dpi_status dpi_subsample_inside(double epsilon_run, double delta_run,
                                                       double q, double *epsilon, double *delta,
                                                       dpi_error *err);

/* ---- Records to batches (no model needed) --------------------------------------------------- */

/* The batch 0..n_batches-1 of a record, from its own ID and nothing else: the upper bits of
 * SipHash-2-4 of the ID. Adding or removing other records moves none, which add/remove adjacency
 * needs. The key is public data for that purpose; fresh random bits keep batches even against
 * IDs that were made to collide. n_batches 1..2^30. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_assign_hash(const uint8_t key[16], const void *id,
                                                  size_t n_bytes, int32_t n_batches,
                                                  int32_t *batch, dpi_error *err);

/* Source of random bits: fills `buffer` with n_bytes, 0 on success. */
typedef int32_t (*dpi_random_fn)(void *user, void *buffer, size_t n_bytes);

/* The batch of one record under secret assignment: -1 (none), or 0..n_batches-1, all equally
 * likely, with total probability at most q (and less by 2^-64 at most). One call per record,
 * whatever the others got. `random` as in dpi_sampler_options. Errors: ARG, ENTROPY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_assign_secret(double q, int32_t n_batches,
                                                    dpi_random_fn random, void *random_user,
                                                    int32_t *batch, dpi_error *err);

/* ---- Sampler ------------------------------------------------------------------------------ */

/* One session of a method, as a state machine that takes the logits of any engine:
 *
 *     create(options with the budget of a text)
 *         -> begin -> step(public logits, reference logits) -> token, at most n_tokens times
 *         -> begin again, or free
 *
 * A server has one for each question in flight, with that question's budget, slots and length, and
 * begins it again for the next question that has the same. Making one takes less than a millisecond
 * with 32,000 tokens of vocabulary, but half a second of plan with ACCOUNTANT_BR, and at most 100
 * bytes per token. examples/other_engine.c is a whole program. */
typedef struct dpi_sampler dpi_sampler;

typedef enum dpi_method {
    DPI_METHOD_PLAIN = 0,        /* Top-k sampling of the public logits: no privacy claim */
    DPI_METHOD_INVISIBLEINK = 1, /* InvisibleInk, Algorithm 1 */
    DPI_METHOD_AMIN = 2,         /* Amin et al. 2024, Algorithm 1: private and public tokens */
    DPI_METHOD_ADAPMIXED = 3,    /* for comparison: its cost depends on the records, so it is NOT a
                                    DP guarantee; refused without acknowledge_not_dp */
} dpi_method;

/* Which two lists of records a guarantee cannot tell apart (PRIVACY.md section 10). */
typedef enum dpi_adjacency {
    DPI_ADJACENCY_REPLACE_BY_NULL = 0, /* a record, and an empty slot in its place */
    DPI_ADJACENCY_ADD_REMOVE = 1,      /* a record, and one record less. Needs a denominator */
    DPI_ADJACENCY_ZERO_OUT = 2, /* a record, and logits that are all 0: so are a null slot's */
} dpi_adjacency;

/* How the cost of a text is counted. */
typedef enum dpi_accountant {
    DPI_ACCOUNTANT_ZCDP = 0,   /* the same cost for every token and record, in zCDP */
    DPI_ACCOUNTANT_BR = 1,     /* the same for every token and record, exact (dpi_br_delta) */
    DPI_ACCOUNTANT_FILTER = 2, /* each record has a budget of its own and spends what it moves */
} dpi_accountant;

typedef struct dpi_sampler_options {
    size_t struct_size;
    int32_t method;  /* a dpi_method; default INVISIBLEINK */
    int32_t n_vocab; /* 1..2^18 */
    int32_t n_ref;   /* reference slots: 1..4096 (0 for PLAIN). Public, fixed; but private, and
                        0..2^20, with ADD_REMOVE or subsample: the records of the batch */
    int32_t n_tokens; /* T, the most tokens of one text: 1..2^20 */
    int32_t top_k;   /* 1..n_vocab; 0: the whole vocabulary. Default 100 */
    double tau;      /* temperature, 0.01..100; default 1. PLAIN only: 0 is the most likely token */
    /* The budget of one text (and so of a run over disjoint batches), ignored by PLAIN: either
     * rho, in zCDP, or epsilon at delta. The other one is 0. */
    double rho;     /* (0, 1e6] */
    double epsilon; /* (0, 1e6]; BR and subsample need it */
    double delta;   /* (0, 1); with rho it may be 0: then the plan has no epsilon */
    dpi_random_fn random; /* NULL (default): getrandom(2). Anything else voids the guarantee */
    void *random_user;
    int32_t adjacency;   /* a dpi_adjacency; default REPLACE_BY_NULL */
    int32_t accountant;  /* a dpi_accountant; default ZCDP */
    int32_t denominator; /* 1..4096, public: what sums over references are divided by; 0 (default):
                            n_ref. With ADD_REMOVE or subsample it must be given */
    int32_t center;      /* 1: logits of a reference are shifted to the mass of the public ones on
                            the candidates before they are clipped; default 0 */
    double clip;         /* FILTER: the clip bound C in logits, public, (0, 2047]; 0 (default):
                            DPI_FILTER_CLIP_FACTOR times what ZCDP allows. Else 0 */
    double subsample;    /* q in (0, 1]: the records of each text come from dpi_assign_secret with
                            this q, the budget is that of the run; 0 (default): no such claim */
    /* Of the methods amin and adapmixed; 0 (default) and ignored for the others. */
    double threshold;  /* amin: a token is private where the distance of the mean of the references'
                          distributions to the public one (L1: 0..2) is above it, up to noise;
                          -1000..1000. adapmixed: Renyi divergence of screening; 0: 4.5 */
    double sigma;      /* amin: Laplace noise of the threshold, twice that on each distance,
                          1e-6..1000; 0: every token is private while the budget lasts.
                          adapmixed: noise of screening; 0: .01 */
    double tau_public; /* amin: temperature of public tokens, .01..100; 0: tau */
    int32_t n_private; /* amin: the most private tokens of a text, which share rho; 0: n_tokens */
    int32_t acknowledge_not_dp; /* adapmixed, which is not a DP method: must be 1 */
    int32_t isa; /* a dpi_isa; default AUTO. Decides time, not one bit of what is drawn */
} dpi_sampler_options;

/* See dpi_sampler_candidates: with one candidate for so many tokens, at least half of the groups of
 * 16 have none. */
#define DPI_CANDIDATES_FEW 32

/* See clip in dpi_sampler_options; PRIVACY.md section 11 says why 2. */
#define DPI_FILTER_CLIP_FACTOR 2

/* What the budget comes to, computed from the integers that the sampler uses. D is the
 * denominator, f is 2 (4 with ZERO_OUT). Source: PRIVACY.md, privacy.md sections 1, 2 and 4. */
typedef struct dpi_sampler_plan {
    size_t struct_size;
    int64_t K;        /* integer clip bound, units of 2^-20 logits */
    uint64_t a;       /* inverse temperature: tau_effective = 2^48 / (a ln2 2^20 D) */
    double clip;      /* C, the real clip bound that K realises */
    double eta;       /* bounded range of one token, rounded up: f K a ln2 / 2^48 + 2^-38 */
    double rho_token; /* eta^2 / 8, rounded up; with FILTER the most that a token can spend */
    double rho_total; /* zCDP of a text, rounded up: T * rho_token; with FILTER the budget. With
                         subsample: of the mechanism inside */
    double rho_budget;    /* zCDP that the budget allows (inside, with subsample), rounded down; 0
                             with BR */
    double epsilon, delta; /* what the accountant proves for the run at delta, rounded up, subsample
                              included; 0 if options.delta is 0 */
    /* amin, else 0: private tokens that share the budget, and its sparse vector (0 without one) in
     * integers. rho_total is n_private (rho_svt + rho_token), rounded up. */
    int32_t n_private;
    int32_t reserved;
    int64_t svt_threshold;   /* in units of 2^-30 / D, like the next two */
    int64_t svt_scale;       /* of the threshold's Laplace noise; twice that on each distance */
    int64_t svt_sensitivity; /* what a record moves a distance by, at most */
    double svt_epsilon;      /* of one instance: 2 svt_sensitivity / svt_scale, rounded up */
    double rho_svt;          /* the same in zCDP, rounded up; spent when an instance is armed */
} dpi_sampler_plan;

DPI_API void dpi_sampler_options_init(dpi_sampler_options *options);

/* Calibrates without making a sampler: the largest K whose cost over T tokens fits the budget.
 * plan->struct_size must be set. Errors: ARG (with the allowed range), UNSUPPORTED (a combination
 * that is not proven, with the reason), BUDGET (no K >= 1 fits), MEMORY (BR). */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_plan_make(const dpi_sampler_options *options,
                                                        dpi_sampler_plan *plan, dpi_error *err);

/* Errors: as dpi_sampler_plan_make, MEMORY, and ARG or UNSUPPORTED for options->isa. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_create(const dpi_sampler_options *options,
                                                     dpi_sampler **sampler, dpi_error *err);
/* Wipes its buffers. NULL is allowed. */
DPI_API void dpi_sampler_free(dpi_sampler *sampler);

/* What the sampler's options came to, as dpi_sampler_plan_make computes it: what a statement of the
 * guarantee is made of. The sampler's. */
DPI_API const dpi_sampler_plan *dpi_sampler_plan_get(const dpi_sampler *sampler);

/* Starts a text, at any time: the next n_tokens steps share one budget. The caller promises that
 * reference i is the same record in every step of a text, and that the references of different
 * texts are disjoint (parallel composition), so that budgets of records (FILTER) start anew too.
 * Where a record serves in several texts, of one sampler or more, what they cost it adds up: the
 * plans' rho_total (dpi_zcdp_epsilon makes epsilon of the sum), or with subsample their epsilons
 * and their deltas. The caller keeps that sum below what the record may spend. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_begin(dpi_sampler *sampler, dpi_error *err);

/* The tokens whose reference logits a step with these public logits [n_vocab] reads: *ids [*n],
 * ascending, the sampler's, valid until the next call on it. The others need not be computed. *ids
 * is NULL and *n n_vocab where all may be read (AMIN, ADAPMIXED), or so many, more than n_vocab /
 * DPI_CANDIDATES_FEW, that leaving out the others does not pay; and for PLAIN.
 * Trusted: public_logits must not depend on any reference. The candidates are a function of them
 * and of the options alone, so they are public. No state changes, nothing is charged.
 * Errors: ARG, NUMERIC as step. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_candidates(dpi_sampler *sampler,
                                                         const float *public_logits,
                                                         const int32_t **ids, int32_t *n,
                                                         dpi_error *err);

/* Draws the next token. `public_logits` [n_vocab]; `reference_logits` n_ref pointers to
 * [n_vocab], NULL for a null slot (ignored by PLAIN; may be NULL if n_ref is 0). What they hold
 * beside the candidates is not read, where dpi_sampler_candidates gives some.
 * Trusted: public_logits must not depend on any reference, and reference_logits[i] on no
 * reference but i. Not trusted: the values of reference_logits, which may be anything.
 * Distribution: softmax(phi / tau_effective) on V_k+, exact to 2^-38 in log probability.
 * Errors: BUDGET (n_tokens were drawn: the text is over until the next begin), NUMERIC (a public
 * logit is not finite or is beyond 1e4 in magnitude), ENTROPY, STATE (no begin), ARG. No token is
 * drawn on error, *token is unchanged, and the step may be tried again. */
DPI_API DPI_MUST_CHECK dpi_status dpi_sampler_step(dpi_sampler *sampler, const float *public_logits,
                                                   const float *const *reference_logits,
                                                   int32_t *token, dpi_error *err);

/* Tokens that the text may still have: n_tokens less those drawn since begin; 0 before the first
 * begin, and then step fails with STATE or BUDGET. Public: it depends on the options and the number
 * of released tokens alone. There is no such number for the budget: ending a text early earns
 * nothing back, because where it ends is part of what was released. */
DPI_API int32_t dpi_sampler_tokens_left(const dpi_sampler *sampler);

/* A reproducible, insecure random source for tests: set options->random to this and
 * random_user to a uint64_t state that holds the seed. Output is then NOT PRIVATE. */
DPI_API int32_t dpi_random_insecure(void *state, void *buffer, size_t n_bytes);

/* ---- Generation: session and sampler together --------------------------------------------- */

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

/* ---- Audits ------------------------------------------------------------------------------- */

/* Attempts to catch this program leaking more than it claims, on this machine: made-up records, and
 * a model if there is one, through the functions that write texts (PRIVACY.md section 9). What
 * passes is not a proof; what fails is a fault. Source: privacy.md section 5. */
typedef struct dpi_audit_options {
    size_t struct_size;
    const dpi_model *model; /* for the audit of logits; NULL (default): without it */
    dpi_session_options session; /* of the model; n_seq and n_ctx are the audit's own */
    uint64_t seed;          /* of the made-up records; default 1 */
    double effort;          /* (0, 1]: share of the cases and draws; default 1 */
    double false_alarm;     /* [1e-12, 0.01]: chance, for each statistical bound, that a sound
                               program misses it; default 1e-4 */
    dpi_random_fn random;   /* what audited draws use: NULL (default): getrandom(2) */
    void *random_user;
    dpi_cancel_fn cancel; /* asked between audits; may be NULL */
    void *cancel_user;
} dpi_audit_options;

/* One line of the report. Strings are static. */
typedef struct dpi_audit_result {
    size_t struct_size;
    const char *audit;    /* letter of privacy.md section 5: "A" to "D" */
    const char *subject;  /* "InvisibleInk, zero-out, centred, filter" */
    const char *quantity; /* what `measured` is */
    double measured;
    double min, max; /* where `measured` has to lie; either may be infinite */
    int64_t n_cases;
    int32_t passed;      /* 1: all checks held, and min <= measured <= max */
    const char *failure; /* the first check that did not hold, or NULL */
    double seconds;
} dpi_audit_result;

typedef void (*dpi_audit_fn)(void *user, const dpi_audit_result *result);

DPI_API void dpi_audit_options_init(dpi_audit_options *options);

/* Runs all audits and reports each as it ends. *n_failed (not NULL) counts those that did not pass:
 * that is no error. Errors: ARG, CANCELLED, and those of audited functions (MEMORY, ENTROPY). */
DPI_API DPI_MUST_CHECK dpi_status dpi_audit_run(const dpi_audit_options *options,
                                                dpi_audit_fn on_result, void *user,
                                                int32_t *n_failed, dpi_error *err);

/* ---- Making model files -------------------------------------------------------------------- */

typedef struct dpi_write_options {
    size_t struct_size;
    /* What the weights become: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K for
     * every matrix, or a mixture, Q4_K_M or Q5_K_M, that holds the output head and the most
     * sensitive half of attn_v and ffn_down as Q6_K. Rows that are not a multiple of 256 become
     * Q5_0, Q5_1, Q8_0 in place of Q4_K, Q5_K, Q6_K. Vectors (norms, biases) stay as they are. */
    const char *type;
    int32_t n_threads; /* 0 (default): the processors this process may use */
    int32_t reserved;
    /* Weights written so far, and in all. May be NULL. */
    void (*on_progress)(void *user, int64_t n_done, int64_t n_weights);
    dpi_cancel_fn cancel; /* may be NULL */
    void *user;
} dpi_write_options;

DPI_API void dpi_write_options_init(dpi_write_options *options);

/* Both functions below write tensor by tensor and hold some rows at a time. The file appears under
 * its name when it is whole; until then it is a temporary file beside it, removed on failure. The
 * bytes written do not depend on n_threads. */

/* Writes the model in `in_path` with its weights as options->type. Errors: those of
 * dpi_model_open; ARG (out_path is in_path; a type that is not in the list), NUMERIC (a weight is
 * not finite or beyond what the type holds, by tensor and offset), IO, MEMORY, CANCELLED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_quantize(const char *in_path, const char *out_path,
                                                     const dpi_write_options *options,
                                                     dpi_error *err);

typedef struct dpi_model_shape {
    size_t struct_size;
    int32_t n_layer, n_embd, n_ff; /* n_embd a multiple of n_head, n_embd / n_head even */
    int32_t n_head, n_kv_head;     /* n_head a multiple of n_kv_head */
    int32_t n_vocab;               /* 260..2^18: <unk>, <s>, </s>, 256 bytes and made-up words */
    int32_t n_ctx_train;
    int32_t tied_output; /* 1: the output head is the embedding matrix */
    float rope_freq_base;
} dpi_model_shape;

/* Fills *shape (struct_size set by the caller) with that of "tinyllama-1.1b", "llama-3.2-1b" or
 * "llama-3-8b". Errors: ARG, with the list. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_shape_find(const char *name, dpi_model_shape *shape,
                                                       dpi_error *err);

/* Writes a model of that shape with random weights, for timing and tests: its metadata says
 * dpinfer.random_weights = true. The weights follow from `seed` and are scaled so that logits are
 * about normal with deviation 3. `vocab_path`: a GGUF file whose vocabulary (and its size) is
 * taken; NULL: a synthetic SPM vocabulary, with dpinfer.synthetic_vocabulary = true.
 * Errors: ARG, those of reading the vocabulary, IO, MEMORY, CANCELLED. */
DPI_API DPI_MUST_CHECK dpi_status dpi_model_make(const dpi_model_shape *shape,
                                                 const char *vocab_path, uint64_t seed,
                                                 const char *out_path,
                                                 const dpi_write_options *options, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
