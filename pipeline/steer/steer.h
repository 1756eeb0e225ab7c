/* steer.h - the state of steering vectors, and the parts of their release. Internal. */
#ifndef DPI_PIPELINE_STEER_H
#define DPI_PIPELINE_STEER_H

#include <stdbool.h>

#include "dpinfer/steer.h"
#include "engine/states.h"
#include "pipeline/finetune/examples.h"
#include "pipeline/release/labels.h"

/* Where the states of the public texts of each label lie. PUBLIC. */
typedef struct dpi_public_states {
    double *mean;   /* [n_sets, n_layers, n_embd] over texts, of states divided by their size */
    double *spread; /* [n_sets, n_layers] median distance of a text from the mean, above 0 */
    double *size;   /* [n_sets, n_layers] mean over tokens of the root mean square */
    double *basis;  /* [n_sets, n_layers, width, n_embd] orthonormal rows, or zeros: the directions
                       in which these texts differ most; NULL: all directions are released */
} dpi_public_states;

/* A word of public texts. PUBLIC. */
enum { DPI_KEY_WORD_MAX = 32 }; /* with its NUL */
typedef struct dpi_key_word {
    char name[DPI_KEY_WORD_MAX];
    int32_t n_texts; /* that have it */
    int64_t text;    /* the last of these, while they are counted */
    double weight;   /* how much it tells: ln(texts / n_texts) */
} dpi_key_word;

struct dpi_steer {
    dpi_steer_options options; /* n_threads, n_units and layers settled */
    int32_t *layers;           /* [n_layers] own */
    dpi_label_list labels; /* PUBLIC; n_units NULL: which unit has which is a secret */
    int32_t n_sets; /* labels, or 1 */
    int32_t n_layers, n_embd;
    int32_t width; /* numbers of a layer that are released: n_embd, or as many as the basis has */
    int64_t n_states; /* n_layers n_embd */
    int64_t n_one;    /* n_layers width: numbers of a set */
    int64_t n_vectors; /* of all sets, one after the other */
    int64_t n;         /* with those of words behind them, n_words of each set */
    dpi_claim claim; /* of steering alone */
    dpi_instructions instructions; /* [n_sets] */
    dpi_public_states at;
    dpi_key_word *key_words; /* [n_key_words] PUBLIC, in the order of the alphabet; n_words at most
                              */
    int32_t n_key_words;
    bool prepared, released;
    int64_t charge;  /* of the ledger; 0: none */
    uint8_t *pays;   /* [units] with scope UNIT: 1: the unit has paid. PRIVATE */
    int64_t *sum;    /* [n] what was released: the units' vectors and words, and the noise */
    char *words;     /* made of it: lines of key words, of one label each; NULL: there are none */
    char *vocabulary; /* key_words, with spaces between; NULL: there are none */
    float *said;      /* [1 + n_sets, n_key_words]: what each word tells, and what units of each set
                         say of it on average, as long together as 1, with noise */
    float *vectors;  /* [n_sets, n_states] made of it, in the residual stream's units */
};

/* Errors: ARG, LIMIT, MEMORY; *labels is to be freed then, too. */
DPI_MUST_CHECK dpi_status dpi_steer_labels_make(const dpi_steer_options *options,
                                                dpi_label_list *labels, dpi_error *err);
/* What the vectors of a label are divided by: the units that have it; where that is a secret, as
 * many of the public number as of each other one. Without labels, label 0: all. */
double dpi_steer_units(const dpi_steer *steer, int32_t label);

/* Fills options, layers and the claim. */
DPI_MUST_CHECK dpi_status dpi_steer_settle(dpi_steer *steer, dpi_error *err);

/* Reads texts: the states of a model that stands behind the instruction. One at a time. */
typedef struct dpi_reader {
    const dpi_steer *steer;
    dpi_session *session;
    double *sums, *sizes; /* of one text: [n_states], [n_layers] */
    int32_t *n_prompt;    /* [n_sets] tokens of each prompt, in the sequence of this number */
} dpi_reader;

DPI_MUST_CHECK dpi_status dpi_reader_open(const dpi_steer *steer, dpi_reader *reader,
                                          dpi_error *err);
void dpi_reader_close(dpi_reader *reader);

/* Of public examples. Errors: MEMORY, CANCELLED; ARG (fewer than two texts, or all alike);
 * *states is then empty. */
DPI_MUST_CHECK dpi_status dpi_public_states_find(dpi_reader *reader, const dpi_examples *examples,
                                                 dpi_public_states *states, dpi_error *err);
void dpi_public_states_free(dpi_public_states *states);

/* The `rank` directions in which texts [n_texts, n of stride] differ most from their mean [n], as
 * orthonormal rows of basis [rank, n]; zeros, where they do not differ in so many. Errors:
 * MEMORY. */
DPI_MUST_CHECK dpi_status dpi_steer_basis_find(const double *texts, int64_t n_texts, int64_t stride,
                                               const double *mean, int32_t n, int32_t rank,
                                               double *basis, dpi_error *err);

/* sum [n] += the clipped vectors of all units. PRIVATE. Errors: MEMORY, CANCELLED. */
DPI_MUST_CHECK dpi_status dpi_directions_add(dpi_reader *reader, const dpi_examples *examples,
                                             int64_t *sum, dpi_error *err);
/* How long the words of a unit are, in units of C (docs/results.md). */
#define DPI_WORDS_LONG .6
/* Which of `words` [n_words], in the order of the alphabet, a text has: their places, each once, in
 * found [n_words]; how many. seen [n_words]: zeros, also behind it. */
int32_t dpi_key_words_in(const dpi_key_word *words, int32_t n_words, const char *text,
                         size_t n_bytes, uint8_t *seen, int32_t *found);
/* The words of public texts, and what each tells. Errors: IO, MEMORY. */
DPI_MUST_CHECK dpi_status dpi_key_words_find(dpi_steer *steer, const dpi_records *texts,
                                             dpi_error *err);
/* said [n_words] += the weights of the words that record i has. PRIVATE. Errors: IO, MEMORY. */
DPI_MUST_CHECK dpi_status dpi_key_words_add(const dpi_steer *steer, const dpi_records *records,
                                            size_t i, double *said, dpi_error *err);
/* Of the noisy sum [n] the words of each label. Errors: MEMORY. */
DPI_MUST_CHECK dpi_status dpi_key_words_choose(dpi_steer *steer, const int64_t *sum,
                                               dpi_error *err);

/* Of the noisy sum [n] what is said of all words: `vocabulary` and `said`. Errors: MEMORY. */
DPI_MUST_CHECK dpi_status dpi_key_words_keep(dpi_steer *steer, const int64_t *sum, dpi_error *err);

/* Of the noisy sum [n] the vectors [n_sets, n_states]. */
void dpi_directions_make(const dpi_steer *steer, const int64_t *sum, float *vectors);

/* What is read of records, but of units that cannot pay, and of public texts before the charge. */
dpi_example_format dpi_steer_format(const dpi_steer *steer);

#endif
