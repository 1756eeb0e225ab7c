/* terms.h - the words of a text, as hashes of 64 bits: two that differ are the same with a
 * chance of 2^-64 for each pair. */
#ifndef DPI_EVAL_TERMS_H
#define DPI_EVAL_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpinfer/status.h"

/* White space of ASCII. */
bool eval_is_space(char c);

/* What stands between white space: *word [*n] is private memory, the caller's also after a
 * failure. Errors: MEMORY. */
dpi_status eval_words_find(const char *text, size_t n_bytes, uint64_t **word, int32_t *n,
                           dpi_error *err);

/* Of a run of n words. */
uint64_t eval_words_hash(const uint64_t *word, int32_t n);

/* Finds what a classifier counts in texts: words, and pairs of words that follow each other. A word
 * is here two or more letters, digits and underscores of any script, in lower case. So does
 * scikit-learn's TfidfVectorizer(ngram_range=(1, 2)). */
typedef struct eval_terms eval_terms;

/* Errors: MEMORY. */
dpi_status eval_terms_open(eval_terms **terms, dpi_error *err);
void eval_terms_close(eval_terms *terms); /* NULL is allowed */

/* *term [*n], as eval_words_find has it. Errors: MEMORY, ARG (the text is no UTF-8). */
dpi_status eval_terms_find(const eval_terms *terms, const char *text, size_t n_bytes,
                           uint64_t **term, int32_t *n, dpi_error *err);

#endif
