/* best_texts.h - several texts are drawn for each that is written, and those that together say what
 * the records said are chosen (best_of.h). */
#ifndef DPI_TOOLS_BEST_TEXTS_H
#define DPI_TOOLS_BEST_TEXTS_H

#include "dpinfer/best_of.h"
#include "dpinfer/drawing.h"

enum { BEST_TEXTS_DEFAULT = 4 }; /* docs/results.md */

/* A text that waits, or a place for one. */
typedef struct held_text {
    dpi_drawn_text text; /* data: own, private memory; NULL: a free place */
    int32_t next_free;   /* -1: none */
} held_text;

/* {.n_each = 1}: each text is written. */
typedef struct best_texts {
    int32_t n_each; /* texts that are drawn for one that is written */
    dpi_best_of *of;
    int32_t *n_drawn; /* [labels] */
    held_text *held;  /* [n_held of room] */
    int32_t n_held, first_free;
    size_t room;
    int32_t chosen; /* the place of the text that was told last; -1: none */
    int32_t n_chosen;
} best_texts;

/* n_each texts for each, by the words in the file; 0: BEST_TEXTS_DEFAULT, or 1 where there are no
 * words to choose by. An exit code (cli.h). */
int best_texts_open(best_texts *texts, const char *path, int32_t n_each);
void best_texts_free(best_texts *texts);
/* One more text, of the label at this place in the file. *best: the text that is chosen, with its
 * index among these, until the next call; its index is -1 while more have to come. */
int best_texts_put(best_texts *texts, const dpi_drawn_text *drawn, int32_t label,
                   dpi_drawn_text *best);

#endif
