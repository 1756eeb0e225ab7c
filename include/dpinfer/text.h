/* text.h - tokens and text: tokenizer, detokenizer, chat formats. */
#ifndef DPINFER_TEXT_H
#define DPINFER_TEXT_H

#include "dpinfer/model.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    DPI_CHAT_UNKNOWN = -1 /* only in dpi_model_info: a template that is not recognised */
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

#ifdef __cplusplus
}
#endif
#endif
