/* text_set.h - a set of texts in memory, with their words. They may be private: all of it is
 * wiped. */
#ifndef DPI_EVAL_TEXT_SET_H
#define DPI_EVAL_TEXT_SET_H

#include "dpinfer/records.h"

/* One text. Words are what stands between white space, as hashes of 64 bits. */
typedef struct eval_text {
    char *text; /* with a NUL behind it */
    size_t n_bytes;
    char *label; /* NULL: it has none */
    uint64_t *word;
    int32_t n_words;
    int32_t record; /* its position in the source */
} eval_text;

typedef struct eval_texts {
    eval_text *at; /* [n] */
    int32_t n;
    int64_t n_words;
    int32_t n_null; /* records that are null: left out */
} eval_texts;

/* All records of a source (dpinfer/records.h); a .jsonl with texts as `dpinfer run` writes them is
 * one. eval_texts_free also after a failure. Errors: those of records; LIMIT, MEMORY. */
dpi_status eval_texts_read(const char *path, const dpi_records_options *options, eval_texts *texts,
                           dpi_error *err);
/* The same of texts in memory; labels may be NULL. */
dpi_status eval_texts_make(const char *const *text, const char *const *label, int32_t n,
                           eval_texts *texts, dpi_error *err);
void eval_texts_free(eval_texts *texts);

#endif
