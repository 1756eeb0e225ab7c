/* gemma.h - what the Gemmas share. Internal. */
#ifndef DPI_ARCH_GEMMA_H
#define DPI_ARCH_GEMMA_H

#include <math.h>

#include "engine/arch/parts.h"

#define DPI_GEMMA_KEYS                                                                             \
    DPI_KEYS, "attention.sliding_window_pattern", "final_logit_softcapping"

/* The scale of the embedding; and that of attention in the model of `n_layer` layers, which no key
 * tells: there it is by n_embd / n_head in place of head_dim. */
static inline void dpi_gemma_scales(dpi_config *c, int32_t n_layer) {
    const int32_t width = c->n_layer == n_layer ? c->n_embd / c->n_head : c->head_dim;
    c->embedding_scale = sqrtf((float)c->n_embd);
    c->attention_scale = 1 / sqrtf((float)width);
}

#endif
