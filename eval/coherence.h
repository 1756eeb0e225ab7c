/* coherence.h - how near texts are to their prompts: the cosine of their vectors.
 *
 * Source: Tong et al. 2025, VI-F (after Su et al. 2022), whose vectors are of SimCSE. */
#ifndef DPI_EVAL_COHERENCE_H
#define DPI_EVAL_COHERENCE_H

#include "eval/evaluate.h"

/* Adds the mean cosine of a text and its prompt, and where each has its own, of a text and the
 * prompt of the next one. prompts: as many vectors as texts, in their order, or one for all.
 * Errors: ARG (numbers of vectors or dims that differ), MEMORY. */
dpi_status eval_measure_coherence(evaluation *e, const eval_vectors *texts,
                                  const eval_vectors *prompts, dpi_error *err);

/* The same where each vector is that of a text: the prompt of a text has its place in its source.
 * A text without one, null or not there, is left out. */
dpi_status eval_measure_prompts(evaluation *e, const eval_texts *texts,
                                const eval_vectors *of_texts, const eval_texts *prompts,
                                const eval_vectors *of_prompts, dpi_error *err);

#endif
