/* plain.c - Top-k sampling of the public logits: no reference, no guarantee. */
#include <math.h>

#include "base/status.h"
#include "dp/methods/method.h"

static dpi_status plan(const dpi_sampler_options *o, dpi_sampler_plan *made, dpi_error *err) {
    (void)o, (void)err;
    made->eta = made->rho_token = made->rho_total = INFINITY; /* what is not bounded */
    return DPI_STATUS_OK;
}

static dpi_status distribution(dpi_sampler *s, const float *public_logits,
                               const float *const *reference_logits, dpi_error *err) {
    (void)reference_logits;
    const int32_t n = s->options.n_vocab;
    int32_t top;
    DPI_TRY(dpi_public_fix(public_logits, n, s->fixed, &top, err));
    if (s->options.tau > 0) {
        s->n_support = dpi_support_find(s->fixed, n, s->options.top_k, 1, 0, s->support);
    } else {
        s->support[0] = top;
        s->n_support = 1;
    }
    for (size_t i = 0; i < s->n_support; i++) {
        s->sum[i] = 0;
        s->utility[i] = s->fixed[s->support[i]];
    }
    dpi_sampler_weigh(s, s->plan.a);
    return DPI_STATUS_OK;
}

const dpi_method_ops dpi_method_plain = {
    .name = "plain", .greedy = true, .plan = plan, .distribution = distribution};
