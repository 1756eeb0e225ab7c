/* text_words.h - the words of a text. Internal. */
#ifndef DPI_PERTURB_TEXT_WORDS_H
#define DPI_PERTURB_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "dpinfer/perturb.h"

/* The word of text [n_bytes] that begins at *at or behind it: *n bytes from *at. White space is
 * passed over. A word is letters, digits, bytes beyond ASCII, and the apostrophe, hyphen, point or
 * comma between two of them; every other character is a word of its own. false: there is none. */
bool dpi_word_next(const char *text, size_t n_bytes, size_t *at, size_t *n);

/* Digits, with points or commas among them. */
bool dpi_word_is_number(const char *word, size_t n_bytes);
/* An English word that every text has: articles, pronouns, prepositions, auxiliaries. In any case.
 */
bool dpi_word_is_stop(const char *word, size_t n_bytes);

/* A word [*n_bytes] without the mark that tokenizers have for the space before it. */
const char *dpi_word_bare(const char *word, size_t *n_bytes);
/* What becomes of a word of the vocabulary: NUMBER, KEPT or DRAWN, a dpi_replaced. */
int32_t dpi_word_fate(int32_t mechanism, const char *word);

#endif
