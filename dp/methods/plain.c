/* plain.c - Top-k sampling of the public logits: no reference, no guarantee. */
#include <math.h>
#include <stdio.h>

#include "base/status.h"
#include "dp/methods/method.h"

/* ---- Description ---------------------------------------------------------------------------- */

static const dpi_parameter tau = {
    .name = "tau", .option = "temp", .key = "tau", .label = "tau, temperature", .unit = "",
    .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(tau), .min = .01, .max = 100,
    .zero = "the likeliest token", .default_value = 1, .help = "temperature tau"};

static const dpi_parameter top_k = {
    .name = "top_k", .option = "top-k", .key = "top_k", .label = "k of Top-k", .unit = "tokens",
    .type = DPI_PARAMETER_INT, .offset = DPI_FIELD(top_k), .min = 1, .max = DPI_WEIGHTS_MAX,
    .zero = "all", .default_value = 100, .help = "draw from the k likeliest tokens"};

static const dpi_parameter *const parameters[] = {
    &dpi_common[DPI_COMMON_N_TOKENS], &tau, &top_k, &dpi_common[DPI_COMMON_N_VOCAB], NULL};

static void settings(const dpi_sampler_options *o, char *text, size_t size) {
    snprintf(text, size, "temperature %.10g, k = %d of %d tokens", o->tau, o->top_k, o->n_vocab);
}

/* ---- A step --------------------------------------------------------------------------------- */

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
    .info = {.id = DPI_METHOD_PLAIN, .name = "plain", .title = "plain", .source = "",
             .help = "Top-k sampling of the public logits, or of one record's",
             .warning = "--plain applies no privacy mechanism", .output = ""},
    .parameters = parameters,
    .settings = settings,
    .plan = plan,
    .distribution = distribution,
};
