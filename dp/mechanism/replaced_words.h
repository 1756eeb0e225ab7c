/* replaced_words.h - where the values of the mechanism `words` stand. Internal. */
#ifndef DPI_MECHANISM_WORDS_H
#define DPI_MECHANISM_WORDS_H

/* Parameters: the mechanism's, the vocabulary's, what its certificate says, what was released. */
enum {
    DPI_OF_WORDS_KIND,
    DPI_OF_WORDS_NOMINAL,
    DPI_OF_WORDS_RARE,
    DPI_OF_WORDS_REPLACED,
    DPI_OF_WORDS_GROUP,
    DPI_OF_WORDS_SIZE,
    DPI_OF_WORDS_DIMENSIONS,
    DPI_OF_WORDS_CERTIFIED,
    DPI_OF_WORDS_FINITE,
    DPI_OF_WORDS_INFINITE,
    DPI_OF_WORDS_KEPT,
    DPI_OF_WORDS_GUESS,
    DPI_OF_WORDS_DOCUMENTS,
    DPI_OF_WORDS_ALL
};

#endif
