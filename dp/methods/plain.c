/* plain.c - Top-k sampling of the public logits: no reference, no guarantee. */
#include <math.h>
#include <stdio.h>

#include "base/format.h"
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

static const dpi_parameter top_p = {
    .name = "top_p", .option = "top-p", .key = "top_p", .label = "p of nucleus", .unit = "",
    .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(top_p), .min = 0, .min_open = 1, .max = 1,
    .is_optional = 1, .default_text = "all of it",
    .help = "of the likeliest tokens, those that have this part of the mass"};

static const dpi_parameter min_p = {
    .name = "min_p", .option = "min-p", .key = "min_p", .label = "least part of top", .unit = "",
    .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(min_p), .min = 0, .min_open = 1, .max = 1,
    .is_optional = 1, .default_text = "all",
    .help = "no token that is less likely than this part of the likeliest"};

static const dpi_parameter *const parameters[] = {
    &dpi_common[DPI_COMMON_N_TOKENS], &tau, &top_k, &top_p, &min_p,
    &dpi_common[DPI_COMMON_N_VOCAB], NULL};

static void settings(const dpi_sampler_options *o, char *text, size_t size) {
    const int n = dpi_format(text, size, "temperature %.10g, k = %d of %d tokens", o->tau, o->top_k,
                             o->n_vocab);
    if (n > 0 && (size_t)n < size && (o->top_p > 0 || o->min_p > 0))
        dpi_format(text + n, size - (size_t)n, ", p %.10g, least %.10g", o->top_p, o->min_p);
}

/* ---- A step --------------------------------------------------------------------------------- */

static dpi_status plan(const dpi_sampler_options *o, dpi_sampler_plan *made, dpi_error *err) {
    (void)o, (void)err;
    made->eta = made->rho_token = made->rho_total = INFINITY; /* what is not bounded */
    return DPI_STATUS_OK;
}

static dpi_u128 mass_from(const dpi_sampler *s, dpi_u128 least) {
    dpi_u128 mass = 0;
    for (size_t i = 0; i < s->n_support; i++)
        mass += s->weights[i] >= least ? s->weights[i] : 0;
    return mass;
}

/* The largest weight so that tokens of at least this weight have top_p of the mass: a bisection,
 * for which no token need be sorted. Tokens of the same weight stay or go as one. */
static void cut_tail(dpi_sampler *s) {
    const double p = s->options.top_p;
    const dpi_u128 wanted = (dpi_u128)(p * (double)mass_from(s, 0));
    dpi_u128 most = 0, low = 0;
    for (size_t i = 0; i < s->n_support; i++)
        most = s->weights[i] > most ? s->weights[i] : most;
    for (dpi_u128 high = most; p > 0 && low < high;) {
        const dpi_u128 middle = low + (high - low + 1) / 2;
        if (mass_from(s, middle) >= wanted)
            low = middle;
        else
            high = middle - 1;
    }
    const dpi_u128 part = (dpi_u128)(s->options.min_p * (double)most);
    const dpi_u128 least = part > low ? part : low;
    for (size_t i = 0; i < s->n_support; i++)
        if (s->weights[i] < least && s->weights[i] < most)
            s->weights[i] = 0;
}

static dpi_status distribution(dpi_sampler *s, const float *public_logits,
                               const float *const *reference_logits, dpi_error *err) {
    (void)reference_logits;
    int32_t top = 0;
    DPI_TRY(s->n_allowed > 0
                ? dpi_sampler_fix(s, public_logits, err)
                : dpi_public_fix(public_logits, s->options.n_vocab, s->fixed, &top, err));
    if (s->options.tau > 0) {
        dpi_sampler_support(s, s->options.top_k, 1, 0);
    } else if (s->n_allowed > 0) {
        dpi_sampler_support(s, 1, 1, 0); /* of equal ones the first */
        s->n_support = 1;
    } else {
        s->support[0] = top;
        s->n_support = 1;
    }
    for (size_t i = 0; i < s->n_support; i++) {
        s->sum[i] = 0;
        s->utility[i] = s->fixed[s->support[i]];
    }
    dpi_sampler_weigh(s, s->plan.a);
    if (s->options.top_p > 0 || s->options.min_p > 0)
        cut_tail(s);
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
