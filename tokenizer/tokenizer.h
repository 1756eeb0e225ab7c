/* tokenizer.h - the vocabulary of a GGUF file: text to ids, ids to text, chat formats. Internal.
 *
 * What it does: dpi_vocab is the checked, immutable content of tokenizer.ggml.*; it may be used
 * by any number of threads. Encoding reads plain text only: the text of a control token is never
 * parsed, and merges never make one, so a document cannot forge a turn. Only the prompt renderer
 * places control tokens, by id.
 * Errors: a file that breaks a rule is a FORMAT error with the offset. Messages hold file content
 * (keys, numbers, indices), never text that is being encoded. Work buffers are wiped.
 * Source: GGUF keys tokenizer.ggml.*; the public contracts are in dpinfer.h.
 */
#ifndef DPI_TOKENIZER_H
#define DPI_TOKENIZER_H

#include "dpinfer/text.h"
#include "gguf/gguf.h"

enum {
    DPI_VOCAB_MAX_TOKENS = 1 << 18, /* the sampler sums this many weights at most */
    DPI_TOKEN_MAX_BYTES = 1024,     /* bounds the work per merge; real ones are below 300 */
};

typedef struct dpi_vocab dpi_vocab;

/* Reads and checks tokenizer.ggml.*. The vocabulary keeps its own copies: `gguf` may be closed.
 * *vocab is the caller's, to be freed; unchanged on failure.
 * Errors: FORMAT (docs/spec.md section 6, items 11 to 13; duplicate tokens), UNSUPPORTED
 * (tokenizer.ggml.model or tokenizer.ggml.pre, by name), MEMORY. */
dpi_status dpi_vocab_create(const dpi_gguf *gguf, dpi_vocab **vocab, dpi_error *err);
void dpi_vocab_free(dpi_vocab *vocab); /* NULL is allowed */

int32_t dpi_vocab_size(const dpi_vocab *vocab);
int32_t dpi_vocab_bos(const dpi_vocab *vocab); /* -1 if none */
int32_t dpi_vocab_is_eog(const dpi_vocab *vocab, int32_t token);
/* 1 for tokens that stand for no text (control and unknown tokens), else 0. */
int32_t dpi_vocab_is_control(const dpi_vocab *vocab, int32_t token);
/* The dpi_chat recognised in tokenizer.chat_template, NONE or UNKNOWN. */
int32_t dpi_vocab_chat(const dpi_vocab *vocab);
/* The same, or for UNKNOWN the one that the template looks most like. */
int32_t dpi_vocab_chat_nearest(const dpi_vocab *vocab);

/* What AUTO stands for with a recognised template: one that opens a thought has it closed, since a
 * text is wanted and no thought about it. */
int32_t dpi_chat_without_thought(int32_t recognised);

/* Contracts as dpi_tokenize, dpi_prompt_encode and dpi_turns_encode; the count is at most 4 * bytes
 * + 5 for a text, and for a prompt what they say, whatever the vocabulary. After an error other
 * than LIMIT the content of `tokens` is unspecified. */
dpi_status dpi_vocab_encode(const dpi_vocab *vocab, const char *text, size_t n_bytes, int32_t flags,
                            int32_t *tokens, size_t capacity, size_t *n_tokens, dpi_error *err);
dpi_status dpi_vocab_encode_prompt(const dpi_vocab *vocab, int32_t chat, const char *system,
                                   size_t n_system, const char *user, size_t n_user,
                                   int32_t *tokens, size_t capacity, size_t *n_tokens,
                                   dpi_error *err);
dpi_status dpi_vocab_encode_turns(const dpi_vocab *vocab, int32_t chat, const char *system,
                                  size_t n_system, const dpi_turn *turns, size_t n_turns,
                                  const char *user, size_t n_user, int32_t *tokens,
                                  size_t capacity, size_t *n_tokens, dpi_error *err);
/* What a token adds to a text, whatever comes before it: its number of bytes, at most
 * DPI_TOKEN_MAX_BYTES. 0: it stands for no text, or what it adds depends on its place. */
size_t dpi_vocab_token_bytes(const dpi_vocab *vocab, int32_t token, uint8_t *bytes);
/* 1: a text loses its first character if that is a space, which encoding has added. */
int32_t dpi_vocab_drops_space(const dpi_vocab *vocab);
/* As dpi_tokens_show. */
dpi_status dpi_vocab_show(const dpi_vocab *vocab, const int32_t *tokens, size_t n_tokens,
                          char **text, dpi_error *err);
/* 1: U+2581 is shown as a space, in whatever tokens its bytes come. */
int32_t dpi_vocab_marks_spaces(const dpi_vocab *vocab);
/* The decoder object of dpinfer.h over a vocabulary (which must outlive it). */
dpi_status dpi_vocab_decoder(const dpi_vocab *vocab, dpi_decoder **decoder, dpi_error *err);

#endif
