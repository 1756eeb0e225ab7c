/* words.h - cuts a text into the words within which bytes are merged (pre-tokenization). Internal
 * to this folder.
 *
 * A rule is a list of patterns, each applied to the pieces that the one before has left: what it
 * matches becomes a piece, and so does what lies between two matches. The pieces of the last
 * pattern are the words; their concatenation is the text (in normal form C where the rule says so).
 * Source: the regular expressions in tokenizer.json of the models, by the name that
 * tokenizer.ggml.pre gives them; the marks, cases and normal forms are those of Hugging Face, not
 * those of llama.cpp.
 */
#ifndef DPI_WORDS_H
#define DPI_WORDS_H

#include <stdbool.h>

#include "gguf/gguf.h"

enum { DPI_WORDS_MAX_PATTERNS = 4 };

typedef struct dpi_words_rule {
    const char *names[4]; /* of tokenizer.ggml.pre, NULL beyond */
    const char *patterns[DPI_WORDS_MAX_PATTERNS]; /* NULL beyond */
    bool nfc; /* the text is brought to normal form C first */
    bool whole_words; /* a word that is a token is that token, whatever the merges say */
    bool add_bos;     /* where the file does not say */
} dpi_words_rule;

/* The rule of that name, NULL if there is none. The empty name is "default". */
const dpi_words_rule *dpi_words_rule_find(dpi_str name);
/* The names of all rules, for messages: writes at most `size` bytes with the NUL. */
void dpi_words_rule_names(char *names, size_t size);

/* Compiled once; any number of threads may use it. Errors: MEMORY, UNSUPPORTED (PCRE2 refuses a
 * pattern). */
typedef struct dpi_words dpi_words;
dpi_status dpi_words_create(const dpi_words_rule *rule, dpi_words **words, dpi_error *err);
void dpi_words_free(dpi_words *words); /* NULL is allowed */

typedef dpi_status (*dpi_word_fn)(void *user, const char *word, size_t n_bytes, dpi_error *err);

/* Calls `emit` with each word (n_bytes >= 1, whole UTF-8 sequences) in order. A byte that is no
 * part of a UTF-8 sequence counts as U+FFFD, as in llama.cpp, so that the words may hold up to
 * 3 * n_bytes bytes. Time is linear in n_bytes, but for marks to sort.
 * Errors: MEMORY, those of `emit`. */
dpi_status dpi_words_split(const dpi_words *words, const char *text, size_t n_bytes,
                           dpi_word_fn emit, void *user, dpi_error *err);

#endif
