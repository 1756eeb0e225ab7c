/* inside.h - the inside of a dpi_attack. Internal; the contract is in attack.h. */
#ifndef DPI_ATTACK_INSIDE_H
#define DPI_ATTACK_INSIDE_H

#include "audit/attack/attack.h"
#include "pipeline/perturb/vocabulary.h"

/* One word of a document and what stands in its place. PRIVATE. */
typedef struct attacked_word {
    int32_t from, to;   /* places in the vocabulary; -1: none */
    int32_t how;        /* a dpi_replaced */
    int32_t n_list;     /* words that it was drawn from; 0: it was not drawn */
    bool known;         /* stands there in a spelling that nothing else becomes: all know it */
    uint64_t old_key;   /* of the word, by its place if it has one */
    uint64_t new_key;   /* of what stands there; of no use where it is dropped */
} attacked_word;

typedef struct attacked_document {
    char *text; /* [n_bytes] PRIVATE */
    size_t n_bytes;
    attacked_word *words; /* [n], of the last run */
    size_t n;
    char **numbers; /* [n] the text that stands in the place of a word that has no place; or NULL */
} attacked_document;

/* A word, by its spelling, and a line of the synonyms that it stands in. */
typedef struct synonym {
    uint64_t key;
    int32_t line;
} synonym;

typedef struct synonyms {
    synonym *at; /* [n] by key, then by line */
    size_t n, capacity;
} synonyms;

struct dpi_attack {
    const dpi_vocabulary *vocabulary;
    dpi_attack_options options;
    attacked_document *documents;
    size_t n, capacity;
    synonyms synonyms; /* none: they are not counted */
};

/* What an attacker knows of a mechanism: the channel from words to what stands in their place. The
 * words x are 0..n-1, those of the vocabulary, and n: all that are drawn for alike, whatever they
 * are, so that no guess among them is better than the most frequent one. These are words without a
 * place, and with rantext the numbers. What is seen, y, is 0..n-1, and n: a number of 1..1000 that
 * has no place in the vocabulary. */
typedef struct dpi_channel {
    int32_t n;
    float *log_p;   /* [n, n + 1] ln P(y | x); NULL: not needed */
    double *score;  /* [n + 1] for each y: max over x of the expected number of x that become y */
    int32_t *guess; /* [n + 1] that x; -1: no word becomes y */
    uint64_t other_key; /* old_key of the most frequent of the words n. PRIVATE */
} dpi_channel;

/* Of the mechanism of `perturb` for the words of the documents. `matrix`: log_p for all words.
 * Errors: MEMORY. */
dpi_status dpi_channel_create(const dpi_attack *attack, const dpi_perturb_options *perturb,
                              bool matrix, dpi_channel *channel, dpi_error *err);
void dpi_channel_free(dpi_channel *channel);
/* What is seen of a word, 0..n, unless it is known or dropped. */
static inline int32_t dpi_channel_seen(const dpi_channel *c, const attacked_word *w) {
    return w->to >= 0 ? w->to : c->n;
}

/* Counts the guesses of the language model into *result. */
dpi_status dpi_attack_language(const dpi_attack *attack, const dpi_channel *channel,
                               dpi_attack_result *result, dpi_error *err);

/* One key for all spellings of a word: in small ASCII letters, without the mark of a space. */
uint64_t dpi_attack_spelling(const char *word, size_t n_bytes);
/* In small letters, without the mark of a space before it. */
bool dpi_attack_same_word(const char *a, const char *b);
/* Whether words x and y of the vocabulary are the same word or stand in one line of synonyms. */
bool dpi_attack_same_meaning(const dpi_attack *attack, int32_t x, int32_t y);

/* Order of keys, uint64_t, for qsort and bsearch. */
int dpi_attack_by_key(const void *a, const void *b);
/* Counts n-grams of one document into *result. Errors: MEMORY. */
dpi_status dpi_attack_grams(const attacked_document *document, dpi_attack_result *result,
                            dpi_error *err);

#endif
