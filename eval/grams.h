/* grams.h - what texts are made of: n-grams of words, and runs of words that two sets share.
 *
 * Words are compared by hashes of 64 bits: two words that differ are the same with a chance of
 * 2^-64 for each pair. */
#ifndef DPI_EVAL_GRAMS_H
#define DPI_EVAL_GRAMS_H

#include <stdbool.h>

#include "eval/text_set.h"

/* Share of the n-grams that are different ones: of all texts together, and the mean over the texts
 * that have one; 0 where there is none. each [texts->n]: of each text, NAN without one; may be
 * NULL. Errors: MEMORY. */
dpi_status eval_distinct(const eval_texts *texts, int32_t n, double *of_all, double *of_text,
                         double *each, dpi_error *err);

/* Mean over the texts of BLEU-4 (Papineni et al. 2002) of a text against all others: 1 where texts
 * repeat each other. A precision of 0 counts as .1 / n-grams; the length is compared with the
 * closest of the others. Texts with fewer than 4 words have no score. 0 where fewer than 2 have
 * one. each [texts->n]: of each text, NAN without a score; may be NULL.
 * Errors: MEMORY. */
dpi_status eval_self_bleu(const eval_texts *texts, double *bleu, double *each, dpi_error *err);

/* What a text has of a set of others. */
typedef struct eval_copies {
    int32_t n_near_copies; /* texts that share half of the trigrams of the shorter with one of
                              them */
    int32_t n_exact;     /* texts that are one of them, word for word */
    int32_t n_rare;      /* texts with a run of 5 words that exactly one of them has, and `other`
                            does not */
    int64_t n_rare_runs; /* such runs, each once */
} eval_copies;

/* Of texts against `train`. other: texts that are not those; n = 0 or NULL: none.
 * Sources: near copies after Mattern et al. 2022, 4.3.2, and Carlini et al. 2021: their printed
 * rule, |A u B| >= 2 min(|A|, |B|), holds for sets that share nothing; here it is
 * |A n B| >= min(|A|, |B|) / 2. Errors: MEMORY. */
dpi_status eval_compare(const eval_texts *texts, const eval_texts *train, const eval_texts *other,
                        eval_copies *copies, dpi_error *err);

/* longest [texts->n]: of each text the longest run of words that stands in one of `train`. Errors:
 * MEMORY. */
dpi_status eval_longest_runs(const eval_texts *texts, const eval_texts *train, double *longest,
                             dpi_error *err);

/* Texts that are near copies of another one of them. Errors: MEMORY. */
dpi_status eval_count_alike(const eval_texts *texts, int32_t *n_alike, dpi_error *err);

/* Whether two texts are near copies: they share half of the trigrams of the shorter. Errors:
 * MEMORY. */
dpi_status eval_is_near_copy(const eval_text *a, const eval_text *b, bool *is_near_copy,
                             dpi_error *err);

#endif
