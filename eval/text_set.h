/* text_set.h - a set of texts in memory, with their words. They may be private: all of it is
 * wiped. */
#ifndef DPI_EVAL_TEXT_SET_H
#define DPI_EVAL_TEXT_SET_H

#include <stdbool.h>

#include "dpinfer/records.h"

/* One text. Words are what stands between white space, as hashes of 64 bits. */
typedef struct eval_text {
    char *text; /* with a NUL behind it */
    size_t n_bytes;
    char *label; /* NULL: it has none */
    uint64_t *word, *term; /* terms (terms.h) are there where a label is */
    int32_t n_words, n_terms;
    int32_t record; /* its position in the source */
} eval_text;

typedef struct eval_texts {
    eval_text *at; /* [n] */
    int32_t n;
    int64_t n_words, n_terms;
    int32_t n_null; /* records that are null: left out */
} eval_texts;

/* All records of a source (dpinfer/records.h). eval_texts_free also after a failure. Errors: those
 * of records; LIMIT, MEMORY. */
dpi_status eval_texts_read(const char *path, const dpi_records_options *options, eval_texts *texts,
                           dpi_error *err);
/* The same of texts that were made. Where no text stands as the options say, they are read as
 * `dpinfer run` writes them: "text", UTF-8, commas. Labels, where the options want them, are those
 * of "text_label", which run writes, else of label_field. Errors: also ARG (no text has a label).
 */
dpi_status eval_texts_read_made(const char *path, const dpi_records_options *options,
                                eval_texts *texts, dpi_error *err);
/* Whether a text has a label. */
bool eval_texts_have_labels(const eval_texts *texts);
/* The same as eval_texts_read of texts in memory; labels may be NULL. */
dpi_status eval_texts_make(const char *const *text, const char *const *label, int32_t n,
                           eval_texts *texts, dpi_error *err);
void eval_texts_free(eval_texts *texts);

#endif
