/* amin_world.h - what the tests of Amin et al. share: records over a small vocabulary, in every
 * adjacency. */
#ifndef DPI_AMIN_WORLD_H
#define DPI_AMIN_WORLD_H

#include "dp/methods/amin.h"
#include "tests/dp/samplers.h"

enum { V = 40, B_MAX = 8 };

static const int32_t adjacencies[] = {DPI_ADJACENCY_REPLACE_BY_NULL, DPI_ADJACENCY_ADD_REMOVE,
                                      DPI_ADJACENCY_ZERO_OUT};

static inline dpi_sampler_options make_options(int32_t adjacency, int32_t n_ref, double rho) {
    dpi_sampler_options o = ink_options(V, n_ref, 100, 1.5, rho);
    o.method = DPI_METHOD_AMIN, o.adjacency = adjacency;
    o.denominator = adjacency == DPI_ADJACENCY_ADD_REMOVE ? n_ref : 0;
    o.n_private = 10, o.svt_threshold = .5, o.svt_sigma = 2, o.tau_public = 1;
    return o;
}

/* Each third time any bits among the logits, too. */
static inline void random_world(dpi_sampler_options *o, batch *b, int32_t adjacency,
                                uint64_t *seed) {
    *o = make_options(adjacency, 2 + random_below(seed, B_MAX - 1),
                      exp(8 * random_uniform(seed) - 3));
    o->svt_sigma = 1e3; /* leaves the budget to the tokens */
    o->n_private = 1 + random_below(seed, 100), o->tau = .3 + 2 * random_uniform(seed);
    o->top_k = random_below(seed, 2) ? random_below(seed, V + 1) : 0;
    const bool any = random_below(seed, 3) == 0;
    const double spread = exp(6 * random_uniform(seed) - 3);
    batch_law law = {.n_vocab = V, .n_slots = o->n_ref, .sure = 4, .spread = spread, .null = 6};
    law.odd = any ? 8 : 1000, law.n_odd = 6;
    random_batch(b, &law, seed);
    for (int i = 0; i < o->n_ref * V && any; i++) {
        const uint32_t bits = (uint32_t)random_u64(seed);
        if (random_below(seed, 8) == 0)
            memcpy(&b->reference[i / V][i % V], &bits, sizeof bits);
    }
}

#endif
