/* texts_told.h - what is told of the texts of a release when all are there: how many were cut, how
 * many are alike. A function of released texts: it costs nothing. */
#ifndef DPI_TOOLS_TEXTS_TOLD_H
#define DPI_TOOLS_TEXTS_TOLD_H

#include <stdbool.h>

#include "dpinfer/report.h"

/* {0} holds no text. */
typedef struct texts_told {
    char **text; /* [n] strings, private memory */
    int32_t n;
    size_t n_most;
    char *open; /* [n_open] the text that is not whole yet, private memory; NULL: nothing of it */
    size_t n_open, n_room;
    int32_t n_cut, n_at_max_words;
} texts_told;

/* More of the text that is open. An exit code (cli.h). */
int texts_told_add(texts_told *told, const char *text, size_t n_bytes);
/* It is whole; end: a dpi_end. */
int texts_told_end(texts_told *told, int32_t end);

/* Into the report (NULL: none), and where `note` is set into notes; of texts of at most n_tokens
 * tokens. knows_words: the ends say what max_words has ended. */
int texts_told_say(const texts_told *told, int32_t n_tokens, bool knows_words, bool note,
                   dpi_report *report);
void texts_told_free(texts_told *told);

#endif
