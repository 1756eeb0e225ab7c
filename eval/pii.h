/* pii.h - things in texts that may name a person: addresses, numbers, dates, names. By patterns: it
 * misses some and finds some that are none. */
#ifndef DPI_EVAL_PII_H
#define DPI_EVAL_PII_H

#include "eval/text_set.h"

typedef enum eval_pii_kind {
    EVAL_PII_EMAIL,
    EVAL_PII_PHONE,
    EVAL_PII_IBAN,   /* with check digits that hold */
    EVAL_PII_DATE,
    EVAL_PII_DIGITS, /* six or more, of none of these */
    EVAL_PII_NAME,   /* a word with a capital, of any script, inside a sentence, in `train` and
                        not in `other` */
    EVAL_PII_KINDS
} eval_pii_kind;

typedef struct eval_pii {
    int64_t n_found[EVAL_PII_KINDS];   /* in texts */
    int64_t n_copied[EVAL_PII_KINDS];  /* different ones of these that stand in `train` too */
} eval_pii;

/* train, other: NULL or empty: none, and no names. each [EVAL_PII_KINDS, texts->n]: how many are
 * found in each text; may be NULL. Errors: MEMORY. */
dpi_status eval_find_pii(const eval_texts *texts, const eval_texts *train, const eval_texts *other,
                         eval_pii *pii, int32_t *each, dpi_error *err);

#endif
