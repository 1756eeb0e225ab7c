/* sampler.h - the inside of a dpi_sampler, for the generation loop, white-box audits and tests.
 * Internal; the public contract is in dpinfer.h, the proofs are in dp/PRIVACY.md.
 *
 * A step is three functions in a row, and an audit calls the same ones:
 *     dpi_sampler_distribution   logits -> support and integer weights
 *     dpi_random_fill            256 bits
 *     dpi_weights_draw           weights and bits -> index into the support
 * Threads: a sampler belongs to one thread at a time. */
#ifndef DPI_SAMPLER_H
#define DPI_SAMPLER_H

#include <stdbool.h>

#include "dpinfer/method.h"
#include "dp/exact/weights.h"

/* The distribution of the next token. The arrays are the sampler's, valid until its next step,
 * distribution, forget or free. */
typedef struct dpi_distribution {
    int64_t n_support;       /* >= 1. Public */
    const int32_t *support;  /* [n_support] token ids, ascending: V_k+. Public */
    const int64_t *sum;      /* [n_support] S = sum of clipped contributions. PRIVATE */
    const dpi_u128 *weights; /* [n_support] token i is drawn with weights[i] / sum. PRIVATE */
    bool is_free;            /* no reference was read, nothing will be charged. Public */
} dpi_distribution;

/* The next token's distribution, without drawing it: no state changes and nothing is charged.
 * Arguments and errors as dpi_sampler_step (ARG, NUMERIC). The caller must not release anything
 * that depends on the private arrays, and calls dpi_sampler_forget when done.
 * Trusted: which argument is public, and that reference i is a function of record i, the
 * released tokens and public data. Not trusted: every value of the references.
 * Sensitivity: replacing reference j by NULL changes each sum by an integer in [-K, K] and
 * leaves the support alone; ln of the weights changes within an interval of length eta.
 * Cost: O(n_vocab + n_ref * n_support). */
dpi_status dpi_sampler_distribution(dpi_sampler *sampler, const float *public_logits,
                                    const float *const *reference_logits,
                                    dpi_distribution *distribution, dpi_error *err);

/* As dpi_sampler_create, without calibration: `plan` is that of the same options, which may differ
 * in the random bits, and in n_ref where it is private. */
dpi_status dpi_sampler_create_planned(const dpi_sampler_options *options,
                                      const dpi_sampler_plan *plan, dpi_sampler **sampler,
                                      dpi_error *err);

/* Wipes everything that was computed from reference logits. */
void dpi_sampler_forget(dpi_sampler *sampler);

#endif
