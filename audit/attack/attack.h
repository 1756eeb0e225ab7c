/* attack.h - how much of a document can be found out from its perturbed words
 * (dpinfer/perturb.h). No part of the library.
 *
 * Documents are perturbed, attackers who know the mechanism, its epsilon and the vocabulary guess
 * the word behind each replacement, and their guesses are counted. A mechanism is measured by it,
 * and no guarantee follows: dpi_perturb_certify computes what is guaranteed. The attacks are those
 * of Tong et al. 2025, section VI, and two that know more. docs/inferdpt.md has results. */
#ifndef DPI_AUDIT_ATTACK_H
#define DPI_AUDIT_ATTACK_H

#include "dpinfer/perturb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who guesses. Each is right if the guess is the word that stood there. */
typedef enum dpi_guess {
    DPI_GUESS_NEAREST = 0,    /* embedding inversion, K = 1: the replacement itself */
    DPI_GUESS_NEAREST_10 = 1, /* K = 10: right if the word is among the 10 nearest of it */
    /* argmax_x P(x) P(y | x), with P(x) the share of each word in the documents at hand: no guess
     * from a replacement alone is right more often. Words are those that left something, in the
     * vocabulary or not, and numbers. */
    DPI_GUESS_BAYES = 2,
    /* The word of the vocabulary that a language model expects after the perturbed words before. */
    DPI_GUESS_LANGUAGE = 3,
    /* argmax_x P(x | the guesses before) P(y | x) over the vocabulary, with the language model's
     * probability: a language model that knows the mechanism. */
    DPI_GUESS_CONTEXT = 4,
    /* The guesses of the caller, which is shown the perturbed words: dpi_attack_shown,
     * dpi_attack_guess. */
    DPI_GUESS_REMOTE = 5
} dpi_guess;
enum { DPI_N_GUESSES = 6 };

typedef struct dpi_attack_options {
    size_t struct_size;
    int32_t language;  /* 1: the guesses of a language model too, which is still open: that of the
                          vocabulary (dpi_vocabulary_of_model), or `model`. 4 n^2 bytes */
    int32_t n_threads; /* 0: the processors this process may use */
    /* Of a vocabulary that is no model's: its words are read as this one's tokens, and are as
     * likely as the first of these. Else NULL */
    const dpi_model *model;
} dpi_attack_options;

DPI_API void dpi_attack_options_init_size(dpi_attack_options *options, size_t size);
#define dpi_attack_options_init(o) dpi_attack_options_init_size((o), sizeof *(o))

/* What came of one mechanism at one epsilon. Counts of words of all documents together. */
typedef struct dpi_attack_result {
    size_t struct_size;
    int64_t n_words;   /* that left a word in their place: they are attacked */
    int64_t n_dropped; /* that left nothing */
    int64_t n_guessed[DPI_N_GUESSES]; /* n_words; 0: this attack was not made */
    int64_t n_right[DPI_N_GUESSES];
    double best;          /* expected n_right[BAYES], over n_words: over all draws, not these */
    int64_t n_grams[3];   /* 1-, 2- and 3-grams of words of the documents */
    int64_t n_leaked[3];  /* those that stand in the perturbed document too */
    int64_t n_drawn;      /* words of the vocabulary for which a word was drawn */
    int64_t n_alike;      /* of them: the same word again, or one of its 10 nearest */
    int64_t n_synonyms;   /* of them: the same word again, or a synonym; 0 without a list */
    double distance;      /* mean, from a word to the one drawn for it */
    double list[3];       /* share of the vocabulary that a word was drawn from: of one word in ten
                             less, of half of them less, of nine in ten less */
} dpi_attack_result;

DPI_API void dpi_attack_result_init_size(dpi_attack_result *result, size_t size);
#define dpi_attack_result_init(o) dpi_attack_result_init_size((o), sizeof *(o))

typedef struct dpi_attack dpi_attack;

/* `vocabulary` must have been measured and, like the model, outlive the attack. One thread at a
 * time. Errors: ARG, STATE (not measured; language without a model), MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_attack_create(const dpi_vocabulary *vocabulary,
                                                    const dpi_attack_options *options,
                                                    dpi_attack **attack, dpi_error *err);
DPI_API void dpi_attack_free(dpi_attack *attack); /* wipes; NULL is allowed */

/* Adds a document, which is copied. Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_attack_add(dpi_attack *attack, const char *text,
                                                 size_t n_bytes, dpi_error *err);

/* Words that mean the same stand in one line of text [n_bytes], between spaces; a word may stand in
 * several lines. Letters count as small ones. Errors: ARG (no word), LIMIT, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_attack_synonyms(dpi_attack *attack, const char *text,
                                                      size_t n_bytes, dpi_error *err);

/* Perturbs all documents with fresh randomness, and attacks. What is known of P(y | x) for rantext
 * has the error that perturb.h names. May be called again with other options. The result is as
 * private as the documents. Errors: ARG, ENTROPY, MEMORY; of the session (session.h). */
DPI_API DPI_MUST_CHECK dpi_status dpi_attack_run(dpi_attack *attack,
                                                 const dpi_perturb_options *perturb,
                                                 dpi_attack_result *result, dpi_error *err);

DPI_API size_t dpi_attack_documents(const dpi_attack *attack);
/* What an attacker sees of a document after dpi_attack_run: the words that stand in the places of
 * its words, in their order, the attack's until its next run. *n: how many there are, of which the
 * first `room` are in words. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_attack_shown(const dpi_attack *attack, size_t document,
                                                   const char **words, size_t room, size_t *n,
                                                   dpi_error *err);
/* Counts guesses [n] of the words behind these into result: n_guessed and n_right of REMOTE. NULL,
 * and what is missing at the end, is a wrong guess. A guess is right in small and in capital
 * letters. Errors: ARG. */
DPI_API DPI_MUST_CHECK dpi_status dpi_attack_guess(const dpi_attack *attack, size_t document,
                                                   const char *const *guesses, size_t n,
                                                   dpi_attack_result *result, dpi_error *err);

/* 95 % confidence interval of Clopper and Pearson for k of n. For the guesses from a word alone it
 * holds for these documents, over draws: words are drawn independently of each other. */
DPI_API void dpi_attack_interval(int64_t k, int64_t n, double *low, double *high);

#ifdef __cplusplus
}
#endif
#endif
