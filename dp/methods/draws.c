/* draws.c - what methods draw a token with: candidates, weights, the draw; and what options come to
 * that all of them have. */
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"

bool dpi_sampler_n_ref_private(const dpi_sampler_options *o) {
    return o->adjacency == DPI_ADJACENCY_ADD_REMOVE || o->subsample != 0;
}

int32_t dpi_sampler_denominator(const dpi_sampler_options *o) {
    return o->denominator > 0 ? o->denominator : o->n_ref > 0 ? o->n_ref : 1;
}

int32_t dpi_sampler_per_unit(const dpi_sampler_options *o) {
    return o->max_per_unit > 0 ? o->max_per_unit : 1;
}

dpi_status dpi_sampler_fix(dpi_sampler *s, const float *public_logits, dpi_error *err) {
    const int32_t n = s->options.n_vocab;
    return s->n_allowed > 0 ? dpi_public_fix_among(public_logits, n, s->allowed, s->n_allowed,
                                                   s->fixed, err)
                            : dpi_public_fix(public_logits, n, s->fixed, NULL, err);
}

void dpi_sampler_support(dpi_sampler *s, int32_t top_k, int64_t D, int64_t slack) {
    s->n_support = s->n_allowed > 0
                       ? dpi_support_find_among(s->fixed, s->allowed, s->n_allowed, top_k, D,
                                                slack, s->support)
                       : dpi_support_find(s->fixed, s->options.n_vocab, top_k, D, slack,
                                          s->support);
}

void dpi_sampler_weigh(dpi_sampler *s, uint64_t a) {
    const uint64_t(*table)[256] = (const uint64_t(*)[256])s->tables.table;
    s->kernels.exp2_weights(s->weights, s->utility, a, table, (int64_t)s->n_support);
}

dpi_status dpi_sampler_draw(dpi_sampler *s, size_t *index, dpi_error *err) {
    uint64_t bits[DPI_DRAW_WORDS];
    DPI_TRY(dpi_random_fill(s->options.random, s->options.random_user, bits, sizeof bits, err));
    *index = dpi_weights_draw(s->weights, s->n_support, bits);
    dpi_wipe(bits, sizeof bits);
    return DPI_STATUS_OK;
}
