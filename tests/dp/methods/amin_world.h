/* amin_world.h - what the tests of Amin et al. share: public logits and records over a small
 * vocabulary, in every adjacency. */
#ifndef DPI_AMIN_WORLD_H
#define DPI_AMIN_WORLD_H

#include <math.h>

#include "dp/methods/amin.h"
#include "dp/methods/sampler.h"
#include "tests/support/support.h"

enum { V = 40, B_MAX = 8 };

static const int32_t adjacencies[] = {DPI_ADJACENCY_REPLACE_BY_NULL, DPI_ADJACENCY_ADD_REMOVE,
                                      DPI_ADJACENCY_ZERO_OUT};

typedef struct world {
    dpi_sampler_options options;
    float public_logits[V];
    float reference[B_MAX][V];
    const float *pointers[B_MAX];
} world;

static inline dpi_sampler_options make_options(int32_t adjacency, int32_t n_ref, double rho) {
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    o.method = DPI_METHOD_AMIN;
    o.adjacency = adjacency;
    o.n_vocab = V;
    o.n_ref = n_ref;
    o.denominator = adjacency == DPI_ADJACENCY_ADD_REMOVE ? n_ref : 0;
    o.n_tokens = 100;
    o.n_private = 10;
    o.top_k = 0;
    o.tau = 1.5;
    o.rho = rho;
    o.svt_threshold = .5;
    o.svt_sigma = 2;
    o.tau_public = 1;
    return o;
}

static inline void random_world(world *w, int32_t adjacency, uint64_t *seed) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f};
    memset(w, 0, sizeof *w);
    w->options = make_options(adjacency, 2 + random_below(seed, B_MAX - 1),
                              exp(8 * random_uniform(seed) - 3));
    w->options.svt_sigma = 1e3; /* leaves the budget to the tokens */
    w->options.n_private = 1 + random_below(seed, 100);
    w->options.tau = .3 + 2 * random_uniform(seed);
    w->options.top_k = random_below(seed, 2) ? random_below(seed, V + 1) : 0;
    double spread = exp(6 * random_uniform(seed) - 3);
    int32_t n_odd = random_below(seed, 3) == 0 ? 8 : 1000;
    for (int y = 0; y < V; y++)
        w->public_logits[y] = (float)(4 * random_normal(seed));
    for (int j = 0; j < w->options.n_ref; j++) {
        for (int y = 0; y < V; y++) {
            w->reference[j][y] = w->public_logits[y] + (float)(spread * random_normal(seed));
            if (random_below(seed, n_odd) == 0)
                w->reference[j][y] = odd[random_below(seed, 6)];
            if (n_odd == 8 && random_below(seed, 8) == 0) { /* any bits */
                uint32_t bits = (uint32_t)random_u64(seed);
                memcpy(&w->reference[j][y], &bits, sizeof bits);
            }
        }
        w->pointers[j] = random_below(seed, 6) ? w->reference[j] : NULL;
    }
}

#endif
