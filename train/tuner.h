/* tuner.h - private training of adapters, or of all weights: the step, whose sum is of integers and
 * has noise. Internal.
 *
 *     dpi_tuner_create(&options, &tuner, err)
 *     dpi_tuner_step(tuner, &units, err)                 options.n_steps times
 *     dpi_tuner_adapters(tuner)
 *
 * A step: each unit joins by a draw of its own (dp/exact/poisson.h); its gradient, the sum over its
 * rows, is clipped once and added as integers (dp/exact/gradient.h); noise is added once; the sum,
 * divided by a public number, moves the adapters by Adam. What leaves a step is a function of the
 * sum with its noise and of public numbers: dp/PRIVACY.md section 17.
 *
 * Trust: rows of a unit are a function of that unit, public data and the bits that it is given; no
 * number in the options depends on a record. Each call is one step in the sense of
 * dpinfer/gaussian.h: whoever calls counts them.
 *
 * The same options, units and random bits give the same adapters, bit for bit, on the same
 * instruction set, whatever the number of threads and of ranks. OpenBLAS is set to one thread of
 * its own for the whole process.
 *
 * Threads: a tuner belongs to one thread at a time, and starts its own. */
#ifndef DPI_TRAIN_TUNER_H
#define DPI_TRAIN_TUNER_H

#include <stdbool.h>

#include "dpinfer/model.h"
#include "dpinfer/train.h"
#include "train/lora.h"
#include "train/packing.h"

typedef struct dpi_tuner_options {
    const dpi_model *model; /* the base; must outlive the tuner */
    int32_t full;           /* 1: all weights are trained, and there is no adapter: rank, alpha,
                               targets and seed are not read. "Adapters" below are these weights */
    int32_t rank;           /* 1..1024 */
    double alpha;           /* > 0 */
    uint32_t targets;       /* bits, as in lora.h */
    uint64_t seed;          /* of the first adapters; public */
    int32_t n_positions;    /* most positions of a row */
    int32_t n_threads;
    int64_t share;          /* a unit joins with probability share / 2^32 */
    double expected;        /* what sums are divided by: a public number, > 0 */
    double clip;            /* C > 0 */
    double sigma;           /* noise multiplier; 0: no noise, NOT PRIVATE */
    int64_t n_steps;
    double lr, lr_floor;    /* peak; what the cosine ends at */
    int64_t n_warmup;       /* steps */
    int32_t unbiased;       /* 1: the noise is taken off Adam's second moments */
    double least;           /* with unbiased: what stays of them at least, as a share of the
                               noise */
    dpi_random_fn random;   /* NULL: the system's */
    void *random_user;
    dpi_cancel_fn cancel; /* between units: the step is then undone; may be NULL */
    void *cancel_user;
    const dpi_train_ranks *ranks; /* NULL: this process alone; must outlive the tuner */
} dpi_tuner_options;

/* Whoever is protected. */
typedef struct dpi_tuner_units {
    int64_t n;
    /* Row k = 0, 1, ... of a unit; false: it has no more. `bits` are uniform, of this unit in this
     * step alone. The row points into the buffer (n_positions) or to what outlives the step. Called
     * by several threads at once. */
    bool (*row)(void *user, int64_t unit, int32_t k, uint64_t bits, const dpi_row_buffer *buffer,
                dpi_row *row);
    void *user;
    /* For audits: a unit's gradient [n_params] itself, in place of its rows, before it is clipped.
     * False: the unit adds nothing. NULL: there are rows. */
    bool (*gradient)(void *user, int64_t unit, float *gradient);
} dpi_tuner_units;

typedef struct dpi_tuner dpi_tuner;

/* What dpi_tuner_create and a step take, in bytes; the model itself is not in it. */
typedef struct dpi_tuner_memory {
    int64_t state_bytes;  /* weights in f32, adapters, moments, what was released last */
    int64_t step_bytes;   /* the sum, and what a step that fails goes back to */
    int64_t thread_bytes; /* of each thread: gradients, integers, activations of one row, the
                             buffer of OpenBLAS */
    int64_t blas_bytes;   /* OpenBLAS itself, where the process has not used it yet: measured */
} dpi_tuner_memory;

/* Errors: those of dpi_tuner_create, without MEMORY for what is counted. */
DPI_MUST_CHECK dpi_status dpi_tuner_memory_of(const dpi_tuner_options *options,
                                              dpi_tuner_memory *memory, dpi_error *err);

/* Errors: ARG, UNSUPPORTED (OpenBLAS is not installed; full, and weights that are not stored as
 * floats), MEMORY. */
DPI_MUST_CHECK dpi_status dpi_tuner_create(const dpi_tuner_options *options, dpi_tuner **tuner,
                                           dpi_error *err);
/* Wipes what it holds. NULL is allowed. */
void dpi_tuner_free(dpi_tuner *tuner);

/* One step. On failure the adapters are as they were, and nothing of the step is left.
 * Where the adapters would not be finite after it, they stay as they were, and the step is done.
 * Errors: ENTROPY, MEMORY, CANCELLED; STATE: all steps are done. */
DPI_MUST_CHECK dpi_status dpi_tuner_step(dpi_tuner *tuner, const dpi_tuner_units *units,
                                         dpi_error *err);

/* sum [n_params] = the integers that the units with joins[i] != 0 add up to, without noise; of
 * several ranks those of this one's share of them. bits [units->n] are those that they are given.
 * PRIVATE. For dpi_tuner_step and for audits. Errors: CANCELLED. */
DPI_MUST_CHECK dpi_status dpi_tuner_sum(dpi_tuner *tuner, const dpi_tuner_units *units,
                                        const uint8_t *joins, const uint64_t *bits,
                                        int64_t *sum, dpi_error *err);

/* The sum of the last step with its noise, divided: [n_params], zeros before the first. */
const float *dpi_tuner_released(const dpi_tuner *tuner);
/* [n_params], by the layout of dpi_tuner_lora; with full by that of dpi_tuner_shape. */
const float *dpi_tuner_adapters(const dpi_tuner *tuner);
/* With full n_params alone. */
const dpi_lora *dpi_tuner_lora(const dpi_tuner *tuner);
const dpi_graph_shape *dpi_tuner_shape(const dpi_tuner *tuner);
int64_t dpi_tuner_steps_done(const dpi_tuner *tuner);
/* Of the steps of this object, those that left the adapters as they were. */
int64_t dpi_tuner_steps_unchanged(const dpi_tuner *tuner);

/* Adapters and both moments, [n_params] each, and the steps done, to be kept: a function of noisy
 * sums alone. */
void dpi_tuner_state(const dpi_tuner *tuner, const float *arrays[3], int64_t *n_steps);
/* The same back, from arrays that are copied. Errors: ARG (steps), NUMERIC (not finite). */
DPI_MUST_CHECK dpi_status dpi_tuner_restore(dpi_tuner *tuner, const float *const arrays[3],
                                            int64_t n_steps, dpi_error *err);

/* With ranks: all of them get the adapters and the steps done of rank 0. Errors: those of
 * dpi_train_ranks. */
DPI_MUST_CHECK dpi_status dpi_tuner_share(dpi_tuner *tuner, dpi_error *err);

/* Seconds of a gradient of the longest row that there can be, of made-up tokens, in one thread, and
 * of what a step does besides: noise, the update. Nothing that is trained changes. Errors: MEMORY,
 * ENTROPY. */
DPI_MUST_CHECK dpi_status dpi_tuner_measure(dpi_tuner *tuner, double *gradient, double *step,
                                            dpi_error *err);

/* The loss of a PUBLIC row, the sum over its weights, with the adapters as they are. */
double dpi_tuner_loss(dpi_tuner *tuner, const dpi_row *row);

#endif
