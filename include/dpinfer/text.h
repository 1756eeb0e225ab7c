/* text.h - tokens and text: tokenizer, detokenizer, chat formats. */
#ifndef DPINFER_TEXT_H
#define DPINFER_TEXT_H

#include "dpinfer/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A text that may hold NUL bytes. data NULL: none. */
typedef struct dpi_bytes {
    const char *data;
    size_t n_bytes;
} dpi_bytes;

enum {
    DPI_TOKENIZE_BOS = 1 /* begin with the BOS token if the model's metadata wants one */
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
/* The first token that adds exactly `text` [n_bytes >= 1] to a text; -1: there is none. */
DPI_API int32_t dpi_token_find(const dpi_model *model, const char *text, size_t n_bytes);
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
/* Tokens as people read them: those that give text as their text, special ones by their names
 * ("<|im_start|>"). *text is a string that the caller frees with dpi_private_free. Errors: ARG (a
 * token out of range), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_tokens_show(const dpi_model *model, const int32_t *tokens,
                                                  size_t n_tokens, char **text, dpi_error *err);
/* What is held back at the end of a text (U+FFFD or nothing); starts a new text. */
DPI_API void dpi_decoder_finish(dpi_decoder *decoder, const char **text, size_t *n_bytes);
DPI_API void dpi_decoder_free(dpi_decoder *decoder);

/* Chat formats, as fixed renderers of what the published templates write (a template in a model
 * file is recognised, never run): DPI_CHAT_name and its name, by the model that it was published
 * with. Where a template has a system text of its own, it stands there unless the caller gives one;
 * thinking is off where the template can switch it off; the day is always 26 July 2024. "closed":
 * as llama.cpp has the template, with an empty thought. */
#define DPI_CHAT_LIST(X)                                                              \
    X(ZEPHYR, "zephyr") X(LLAMA2, "llama2") X(LLAMA3, "llama3") X(CHATML, "chatml")   \
    X(MISTRAL_V02, "mistral-v0.2") X(MISTRAL_V1, "mistral-v1")                        \
    X(MISTRAL_V3, "mistral-v3") X(MISTRAL_V3_TEKKEN, "mistral-v3-tekken")             \
    X(MISTRAL_V7, "mistral-v7") X(MISTRAL_V7_TEKKEN, "mistral-v7-tekken")             \
    X(MISTRAL_SMALL32, "mistral-small-3.2") X(MINISTRAL3, "ministral-3")              \
    X(DEVSTRAL, "devstral") X(LLAMA31, "llama3.1") X(VIGOGNE, "vigogne")              \
    X(SMOLLM2, "smollm2") X(SMOLLM3, "smollm3")                                       \
    X(SMOLLM3_UNSLOTH, "smollm3-unsloth") X(QWEN15, "qwen1.5") X(QWEN2, "qwen2")      \
    X(QWEN25, "qwen2.5") X(QWEN3, "qwen3") X(QWEN35, "qwen3.5") X(QWQ, "qwq")         \
    X(QWQ_CLOSED, "qwq-closed") X(GEMMA2, "gemma2") X(GEMMA3, "gemma3")               \
    X(PHI3_MINI, "phi3-mini") X(PHI3_MEDIUM, "phi3-medium")                           \
    X(PHI3_SMALL, "phi3-small") X(PHI35, "phi3.5") X(PHI4, "phi4")                    \
    X(PHI4_MINI, "phi4-mini") X(GRANITE, "granite") X(GRANITE33, "granite3.3")        \
    X(GRANITE40, "granite4.0") X(OLMO2, "olmo2") X(DEEPSEEK, "deepseek")              \
    X(DEEPSEEK_R1, "deepseek-r1") X(DEEPSEEK_R1_CLOSED, "deepseek-r1-closed")         \
    X(GEMMA4, "gemma4") X(GEMMA4_E2B, "gemma4-e2b")
#define DPI_CHAT_VALUE_(value, name) DPI_CHAT_##value,
#define DPI_CHAT_NAME_(value, name) "|" name
typedef enum dpi_chat {
    DPI_CHAT_AUTO = 0, /* the one recognised in the model file, else NONE; a thought that it opens
                          is closed */
    DPI_CHAT_NONE = 1, /* BOS, then the text: base models */
    DPI_CHAT_LIST(DPI_CHAT_VALUE_)
    DPI_CHAT_UNKNOWN = -1 /* only in dpi_model_info: a template that is not recognised */
} dpi_chat;

/* All names. */
#define DPI_CHAT_NAMES "auto|none" DPI_CHAT_LIST(DPI_CHAT_NAME_)

/* One of DPI_CHAT_NAMES, and back (NULL if unknown). */
DPI_API DPI_MUST_CHECK dpi_status dpi_chat_parse(const char *name, int32_t *chat, dpi_error *err);
DPI_API const char *dpi_chat_name(int32_t chat);

/* Between documents, where there is no chat format (DPI_CHAT_NONE). */
#define DPI_CHAT_MARK "\n\n---\n\n"

/* Tokens of what a format adds to the texts, and to those of an earlier turn, at most; earlier
 * turns of a prompt, at most. */
enum { DPI_PROMPT_FRAME = 8192, DPI_EARLIER_FRAME = 256, DPI_TURNS_MAX = 64 };

/* Token ids of a whole prompt: BOS where the model wants one, an optional system message
 * (NULL or n_system = 0 for none; where the format has no system turn it stands before the user's
 * text as the template puts it there; those of Phi-3-mini and -medium leave it out), the user's
 * message, and the header of the assistant's turn. Only the renderer makes special tokens; texts
 * stay plain. Writes as dpi_tokenize does. A bound that always suffices: 4 * (n_system + n_user) +
 * DPI_PROMPT_FRAME.
 * Errors: ARG, UNSUPPORTED (the vocabulary lacks a token that the format needs; a system text that
 * the template refuses), LIMIT. */
DPI_API DPI_MUST_CHECK dpi_status dpi_prompt_encode(const dpi_model *model, int32_t chat,
                                                    const char *system, size_t n_system,
                                                    const char *user, size_t n_user,
                                                    int32_t *tokens, size_t capacity,
                                                    size_t *n_tokens, dpi_error *err);

/* An earlier turn of a conversation: what the user said, and what was answered. */
typedef struct dpi_turn {
    const char *user, *answer;
    size_t n_user, n_answer;
} dpi_turn;

/* The same of a conversation: turns [n_turns] come before the user's message, each as the template
 * has it (without the thought of an earlier answer, where it leaves that out); with DPI_CHAT_NONE
 * DPI_CHAT_MARK ends each. The bound is then 4 bytes of all texts + DPI_PROMPT_FRAME +
 * n_turns * DPI_EARLIER_FRAME. Errors: the same; LIMIT with more than DPI_TURNS_MAX. */
DPI_API DPI_MUST_CHECK dpi_status dpi_turns_encode(const dpi_model *model, int32_t chat,
                                                   const char *system, size_t n_system,
                                                   const dpi_turn *turns, size_t n_turns,
                                                   const char *user, size_t n_user,
                                                   int32_t *tokens, size_t capacity,
                                                   size_t *n_tokens, dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
