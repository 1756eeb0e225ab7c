/* vocabulary.h - the inside of a dpi_vocabulary. Internal; the contract is in dpinfer/perturb.h. */
#ifndef DPI_VOCABULARY_H
#define DPI_VOCABULARY_H

#include <stdbool.h>

#include "dpinfer/perturb.h"

struct dpi_vocabulary {
    int32_t n, dim;
    char **words;   /* [n] */
    float *vectors; /* [n, dim] */
    int32_t *index; /* [2^index_bits] places of words by hash; -1: none */
    int32_t index_bits;
    double *range;      /* [dim] largest less smallest value */
    uint64_t hash;      /* of words and vectors */
    uint32_t *distance; /* [n, n]; NULL: not measured */
    void *mapped;       /* the file that holds them; NULL: they are in memory */
    size_t mapped_bytes;
    const dpi_model *model; /* whose tokens the words are; NULL: words of a file */
    int32_t *place;         /* [n_vocab] of each token; -1: not in the vocabulary */
    int32_t *token;         /* [n] */
};

#endif
