/* steer.h - the state of steering vectors, and the parts of their release. Internal. */
#ifndef DPI_PIPELINE_STEER_H
#define DPI_PIPELINE_STEER_H

#include <stdbool.h>

#include "dpinfer/steer.h"
#include "engine/states.h"
#include "pipeline/finetune/examples.h"

/* Where the states of public texts lie. PUBLIC. */
typedef struct dpi_public_states {
    double *mean;   /* [n_layers, n_embd] over texts, of states that are divided by their size */
    double *spread; /* [n_layers] median distance of a text from the mean, above 0 */
    double *size;   /* [n_layers] mean over tokens of the root mean square */
} dpi_public_states;

struct dpi_steer {
    dpi_steer_options options; /* n_threads, n_units and layers settled */
    int32_t *layers;           /* [n_layers] own */
    int32_t n_layers, n_embd;
    int64_t n; /* n_layers n_embd: numbers */
    dpi_claim claim; /* of steering alone */
    dpi_instructions instructions; /* one */
    dpi_public_states at;
    bool prepared, released;
    int64_t charge;  /* of the ledger; 0: none */
    uint8_t *pays;   /* [units] with scope UNIT: 1: the unit has paid. PRIVATE */
    int64_t *sum;    /* [n] what was released: the units' vectors and the noise */
    float *vectors;  /* [n] made of it, in the residual stream's units */
};

/* Fills options, layers and the claim. */
DPI_MUST_CHECK dpi_status dpi_steer_settle(dpi_steer *steer, dpi_error *err);

/* Reads texts: the states of a model that stands behind the instruction. One at a time. */
typedef struct dpi_reader {
    const dpi_steer *steer;
    dpi_session *session;
    double *sums, *sizes; /* of one text: [n], [n_layers] */
    int32_t n_prompt;
} dpi_reader;

DPI_MUST_CHECK dpi_status dpi_reader_open(const dpi_steer *steer, dpi_reader *reader,
                                          dpi_error *err);
void dpi_reader_close(dpi_reader *reader);

/* Of public examples. Errors: MEMORY, CANCELLED; ARG (fewer than two texts, or all alike);
 * *states is then empty. */
DPI_MUST_CHECK dpi_status dpi_public_states_find(dpi_reader *reader, const dpi_examples *examples,
                                                 dpi_public_states *states, dpi_error *err);
void dpi_public_states_free(dpi_public_states *states);

/* sum [n] += the clipped vectors of all units. PRIVATE. Errors: MEMORY, CANCELLED. */
DPI_MUST_CHECK dpi_status dpi_directions_add(dpi_reader *reader, const dpi_examples *examples,
                                             int64_t *sum, dpi_error *err);
/* Of the noisy sum [n] the vectors [n]. */
void dpi_directions_make(const dpi_steer *steer, const int64_t *sum, float *vectors);

/* What is read of records, but of units that cannot pay, and of public texts before the charge. */
dpi_example_format dpi_steer_format(const dpi_steer *steer);

#endif
