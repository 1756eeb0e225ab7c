/* adapmixed.c - AdaPMixED (Flemings et al. 2024), for comparison with the methods that do
 * guarantee something.
 *
 * NOT DIFFERENTIALLY PRIVATE. The cost of each token is measured on the very records that it is to
 * protect: the total is private itself, it bounds the loss for these records and not for all
 * neighbours, and stopping when it reaches the budget is one more function of the records. The
 * arithmetic is double, with branches on private data. A caller has to set acknowledge_not_dp.
 *
 * One step, N slots, a null slot being p0 (docs/spec.md 4.7):
 *     p0 = softmax(p / tau)    p_i = softmax(l_i / tau)    m = (1 - lambda) p0 + lambda mean(p_i)
 *     screening, on the top k of p0:  a = p0 / sum    b = (m + N(0, sigma^2)) / sum
 *         costs alpha (lambda / (N sigma))^2;  max(D(a, b), D(b, a)) > threshold: draw from p0
 *     else  x_i = the largest x in [0, 1] with D(x p_i + (1 - x) p0, p0) <= beta alpha
 *         g_i = x_i p_i + (1 - x_i) p0    pr = mean(g_i)    r_i = pr - (g_i - p0) / N
 *         costs max_i D(pr, r_i);  draw from pr
 * D is the Renyi divergence of order alpha. Once the costs E would mean
 *     E + ln(1 - 1/alpha) - ln(delta alpha) / (alpha - 1)
 * above the budget, the text goes on from p0 alone. */
#include "dp/methods/adapmixed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dpinfer/account.h"
#include "base/format.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

/* Of the paper, as in docs/spec.md 4.7. */
enum { ALPHA = 15 };
static const double BETA = .3, LAMBDA = 1e-4, THRESHOLD = 4.5, SIGMA = .01;

typedef struct adapmixed_state {
    double threshold, sigma;
    double budget; /* epsilon at delta */
    double spent;  /* E */
    bool stopped;
    /* all of them PRIVATE but p0; [n_vocab] but x */
    double *p0, *p, *mean;
    double *x; /* [n_ref] */
} adapmixed_state;

/* ---- Description ---------------------------------------------------------------------------- */

static const dpi_parameter screen_top_k = {
    .name = "screen_top_k", .option = "screen-top-k", .old_option = "top-k", .key = "top_k",
    .label = "k of screening", .unit = "tokens", .type = DPI_PARAMETER_INT,
    .offset = DPI_FIELD(top_k), .min = 1, .max = DPI_WEIGHTS_MAX, .zero = "all",
    .default_value = 60, .help = "screening compares the k likeliest public tokens"};

static const dpi_parameter screen_threshold = {
    .name = "screen_threshold", .option = "screen-threshold", .old_option = "threshold",
    .key = "threshold", .label = "threshold", .unit = "", .type = DPI_PARAMETER_REAL,
    .offset = DPI_FIELD(screen_threshold), .max = 1e6, .min_open = 1, .is_optional = 1,
    .default_text = "4.5", .help = "Renyi divergence above which a token is public"};

static const dpi_parameter screen_sigma = {
    .name = "screen_sigma", .option = "screen-sigma", .old_option = "sigma", .key = "sigma",
    .label = "sigma of screening", .unit = "", .type = DPI_PARAMETER_REAL,
    .offset = DPI_FIELD(screen_sigma), .max = 1e6, .min_open = 1, .is_optional = 1,
    .default_text = "0.01", .help = "noise of screening"};

static const dpi_parameter *const parameters[] = {
    &dpi_common[DPI_COMMON_RHO],      &dpi_common[DPI_COMMON_EPSILON],
    &dpi_common[DPI_COMMON_DELTA],    &dpi_common[DPI_COMMON_N_TOKENS],
    &dpi_common[DPI_COMMON_DENOMINATOR], &dpi_common[DPI_COMMON_TAU],
    &screen_top_k,                    &dpi_common[DPI_COMMON_N_VOCAB],
    &screen_threshold,                &screen_sigma,
    NULL};

static double or_default(double value, double unset) { return value == 0 ? unset : value; }

static void settings(const dpi_sampler_options *o, char *text, size_t size) {
    dpi_format(text, size, "temperature %.10g, k = %d of %d tokens", o->tau, o->top_k, o->n_vocab);
}

static int32_t facts(const dpi_sampler_options *o, const dpi_sampler_plan *plan, dpi_fact *f) {
    (void)plan;
    f[0] = (dpi_fact){.label = "its count stops at", .type = DPI_FACT_TEXT,
                      .where = DPI_FACT_STATEMENT};
    dpi_format(f[0].text, sizeof f[0].text, "%s %g at delta %g", o->epsilon > 0 ? "epsilon" : "rho",
               o->epsilon > 0 ? o->epsilon : o->rho, o->delta);
    f[1] = (dpi_fact){.key = "threshold", .label = "threshold", .type = DPI_FACT_REAL,
                      .where = DPI_FACT_STATEMENT,
                      .real = or_default(o->screen_threshold, THRESHOLD)};
    f[2] = (dpi_fact){.key = "sigma", .label = "sigma of screening", .type = DPI_FACT_REAL,
                      .where = DPI_FACT_STATEMENT, .real = or_default(o->screen_sigma, SIGMA)};
    return 3;
}

/* ---- Options -------------------------------------------------------------------------------- */

static dpi_status check_options(const dpi_sampler_options *o, dpi_error *err) {
    if (o->acknowledge_not_dp != 1)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "adapmixed is not differentially private: its cost depends on the records. "
                        "It runs only with acknowledge_not_dp = 1, found %d",
                        o->acknowledge_not_dp);
    if (!(o->delta > 0 && o->delta < 1))
        return dpi_fail(err, DPI_STATUS_ARG, "delta is %g, must be above 0 and below 1", o->delta);
    return DPI_STATUS_OK;
}

static dpi_status make_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan, dpi_error *err) {
    DPI_TRY(check_options(o, err));
    plan->rho_budget = 0;
    plan->eta = plan->rho_token = plan->rho_total = INFINITY; /* what is not bounded */
    return DPI_STATUS_OK;
}

/* ---- Distributions -------------------------------------------------------------------------- */

/* p = softmax(logits / tau) on the tokens that are allowed; what is not finite has no mass, unless
 * nothing is. */
static void softmax(const dpi_sampler *s, const float *logits, double *p) {
    const int32_t n_vocab = s->options.n_vocab, n = s->n_allowed > 0 ? s->n_allowed : n_vocab;
    double top = -INFINITY, sum = 0;
#define TOKEN(i) (s->n_allowed > 0 ? s->allowed[i] : (i))
    for (int32_t i = 0; i < n; i++)
        if (isfinite(logits[TOKEN(i)]))
            top = fmax(top, (double)logits[TOKEN(i)]);
    memset(p, 0, (size_t)n_vocab * sizeof *p);
    for (int32_t i = 0; i < n; i++) {
        const double l = (double)logits[TOKEN(i)];
        p[TOKEN(i)] = isfinite(l) ? exp((l - top) / s->options.tau) : isinf(top) ? 1 : 0;
        sum += p[TOKEN(i)];
    }
    for (int32_t i = 0; i < n; i++)
        p[TOKEN(i)] /= sum;
#undef TOKEN
}

static double power(double x, int32_t n) {
    double result = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1)
            result *= x;
    return result;
}

/* p^alpha q^(1 - alpha). Noise makes some numbers negative; their powers are computed all the
 * same, as in the published code. */
static double renyi_term(double p, double q) {
    return p == 0 ? 0 : p * power(p / q, ALPHA - 1);
}

/* The divergence from the sum of such terms: +inf if undefined, and the sum at least 1e-12. */
static double renyi_divergence(double sum) {
    return isnan(sum) ? INFINITY : log(fmax(sum, 1e-12)) / (ALPHA - 1);
}

/* p = softmax of slot i, p0 for a null. */
static void load_slot(const dpi_sampler *s, const float *const *reference_logits, int32_t i,
                      double *p) {
    const adapmixed_state *state = s->state;
    const size_t n = (size_t)s->options.n_vocab;
    if (reference_logits[i])
        softmax(s, reference_logits[i], p);
    else
        memcpy(p, state->p0, n * sizeof *p);
}

/* ---- Screening ------------------------------------------------------------------------------ */

/* Normal, mean 0, deviation 1 (Box and Muller). */
static dpi_status normal(const dpi_sampler *s, double *z, dpi_error *err) {
    uint64_t bits[2];
    DPI_TRY(dpi_random_fill(s->options.random, s->options.random_user, bits, sizeof bits, err));
    double u = (double)((bits[0] >> 11) + 1) * 0x1p-53; /* (0, 1] */
    double v = (double)(bits[1] >> 11) * 0x1p-53;
    *z = sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
    return DPI_STATUS_OK;
}

/* The larger of D(a, b) and D(b, a). */
static dpi_status screen(dpi_sampler *s, const float *const *reference_logits, double *divergence,
                         dpi_error *err) {
    adapmixed_state *state = s->state;
    const size_t n = (size_t)s->options.n_vocab, k = s->n_support;
    double *b = state->p, a_sum = 0, b_sum = 0;
    memset(state->mean, 0, n * sizeof *state->mean);
    for (int32_t i = 0; i < s->options.n_ref; i++) {
        load_slot(s, reference_logits, i, state->p);
        for (size_t y = 0; y < n; y++)
            state->mean[y] += state->p[y] / s->options.n_ref;
    }
    for (size_t i = 0; i < k; i++) {
        const int32_t y = s->support[i];
        double z;
        DPI_TRY(normal(s, &z, err));
        b[i] = (1 - LAMBDA) * state->p0[y] + LAMBDA * state->mean[y] + state->sigma * z;
        a_sum += state->p0[y];
        b_sum += b[i];
    }
    double ab = 0, ba = 0;
    for (size_t i = 0; i < k; i++) {
        const double a = state->p0[s->support[i]] / a_sum;
        ab += renyi_term(a, b[i] / b_sum);
        ba += renyi_term(b[i] / b_sum, a);
    }
    *divergence = fmax(renyi_divergence(ab), renyi_divergence(ba));
    return DPI_STATUS_OK;
}

/* ---- Mixing --------------------------------------------------------------------------------- */

/* D(x p + (1 - x) p0, p0). */
static double mixture_divergence(const adapmixed_state *state, size_t n, double x) {
    double sum = 0;
    for (size_t y = 0; y < n; y++)
        sum += renyi_term(x * state->p[y] + (1 - x) * state->p0[y], state->p0[y]);
    return renyi_divergence(sum);
}

/* The largest x whose mixture is in the ball, from below: the divergence increases with x. */
static double mixing_weight(const adapmixed_state *state, size_t n) {
    const double radius = BETA * ALPHA;
    double inside = 0, outside = 1;
    if (mixture_divergence(state, n, 1) <= radius)
        return 1;
    for (int i = 0; i < 52; i++) {
        double x = inside + (outside - inside) / 2;
        if (mixture_divergence(state, n, x) <= radius)
            inside = x;
        else
            outside = x;
    }
    return inside;
}

/* mean = pr; *cost = max_i D(pr, r_i). */
static void mix(dpi_sampler *s, const float *const *reference_logits, double *cost) {
    adapmixed_state *state = s->state;
    const size_t n = (size_t)s->options.n_vocab;
    const int32_t N = s->options.n_ref;
    memset(state->mean, 0, n * sizeof *state->mean);
    for (int32_t i = 0; i < N; i++) {
        load_slot(s, reference_logits, i, state->p);
        const double x = state->x[i] = mixing_weight(state, n);
        for (size_t y = 0; y < n; y++)
            state->mean[y] += (x * state->p[y] + (1 - x) * state->p0[y]) / N;
    }
    *cost = 0;
    for (int32_t i = 0; i < N; i++) {
        load_slot(s, reference_logits, i, state->p);
        double sum = 0;
        for (size_t y = 0; y < n; y++) {
            /* (g_i - p0) / N, without forming g_i */
            double moved = state->x[i] * (state->p[y] - state->p0[y]) / N;
            sum += renyi_term(state->mean[y], state->mean[y] - moved);
        }
        *cost = fmax(*cost, renyi_divergence(sum));
    }
}

/* ---- A step --------------------------------------------------------------------------------- */

static double to_epsilon(const dpi_sampler *s, double renyi) {
    const double alpha = ALPHA;
    return fmax(0, renyi + log1p(-1 / alpha) - log(s->options.delta * alpha) / (alpha - 1));
}

/* *drawn = state->p0 or state->mean, what the token is drawn from. */
static dpi_status choose(dpi_sampler *s, const float *const *reference_logits,
                         const double **drawn, dpi_error *err) {
    adapmixed_state *state = s->state;
    const double noise_ratio = LAMBDA / (s->options.n_ref * state->sigma);
    double cost, divergence, spent = state->spent + ALPHA * noise_ratio * noise_ratio;
    *drawn = state->p0;
    if (state->stopped)
        return DPI_STATUS_OK;
    DPI_TRY(screen(s, reference_logits, &divergence, err));
    if (divergence <= state->threshold) {
        mix(s, reference_logits, &cost);
        spent += cost;
        *drawn = state->mean;
    }
    state->stopped = to_epsilon(s, spent) > state->budget;
    if (state->stopped)
        *drawn = state->p0;
    else
        state->spent = spent;
    return DPI_STATUS_OK;
}

static dpi_status step(dpi_sampler *s, const float *public_logits,
                       const float *const *reference_logits, int32_t *token, dpi_error *err) {
    adapmixed_state *state = s->state;
    const int32_t n = s->options.n_vocab;
    const double *drawn;
    uint64_t bits;
    if (!reference_logits)
        return dpi_fail(err, DPI_STATUS_ARG, "the reference logits are NULL, must be %d pointers",
                        s->options.n_ref);
    DPI_TRY(dpi_sampler_fix(s, public_logits, err));
    if (s->n_allowed == 1) { /* there is no choice */
        *token = s->allowed[0];
        return DPI_STATUS_OK;
    }
    dpi_sampler_support(s, s->options.top_k, 1, 0);
    softmax(s, public_logits, state->p0);
    DPI_TRY(choose(s, reference_logits, &drawn, err));
    DPI_TRY(dpi_random_fill(s->options.random, s->options.random_user, &bits, sizeof bits, err));
    double left = (double)(bits >> 11) * 0x1p-53;
    *token = 0;
    for (int32_t y = 0; y < n; y++) {
        if (drawn[y] > 0)
            *token = y; /* what rounding leaves over is the last one's with mass */
        left -= drawn[y];
        if (left < 0)
            break;
    }
    return DPI_STATUS_OK;
}

/* ---- Life cycle ----------------------------------------------------------------------------- */

static dpi_status create(dpi_sampler *s, dpi_error *err) {
    const size_t n = (size_t)s->options.n_vocab;
    adapmixed_state *state = s->state = dpi_calloc(1, sizeof *state);
    if (state) {
        state->p0 = dpi_calloc(n, sizeof *state->p0);
        state->p = dpi_calloc(n, sizeof *state->p);
        state->mean = dpi_calloc(n, sizeof *state->mean);
        state->x = dpi_calloc((size_t)s->options.n_ref, sizeof *state->x);
    }
    if (!state || !state->p0 || !state->p || !state->mean || !state->x)
        return dpi_no_memory(err, "a sampler of %zu tokens", n);
    state->threshold = or_default(s->options.screen_threshold, THRESHOLD);
    state->sigma = or_default(s->options.screen_sigma, SIGMA);
    if (s->options.epsilon > 0)
        state->budget = s->options.epsilon;
    else
        DPI_TRY(dpi_zcdp_epsilon(s->options.rho, s->options.delta, &state->budget, err));
    return DPI_STATUS_OK;
}

static dpi_status begin(dpi_sampler *s, dpi_error *err) {
    (void)err;
    adapmixed_state *state = s->state;
    state->spent = 0;
    state->stopped = false;
    return DPI_STATUS_OK;
}

static void wipe(dpi_sampler *s, bool release) {
    adapmixed_state *state = s->state;
    const size_t n = (size_t)s->options.n_vocab, n_ref = (size_t)s->options.n_ref;
    double *arrays[] = {state->p0, state->p, state->mean, state->x};
    for (int i = 0; i < 4; i++) {
        size_t n_bytes = (i < 3 ? n : n_ref) * sizeof **arrays;
        if (release)
            dpi_wipe_free(arrays[i], n_bytes);
        else
            dpi_wipe(arrays[i], n_bytes);
    }
}

static void forget(dpi_sampler *s) { wipe(s, false); }

static void free_state(dpi_sampler *s) {
    if (!s->state)
        return;
    wipe(s, true);
    dpi_wipe_free(s->state, sizeof(adapmixed_state));
}

dpi_adapmixed_spent dpi_adapmixed_spent_get(const dpi_sampler *s) {
    const adapmixed_state *state = s->state;
    return (dpi_adapmixed_spent){state->spent, to_epsilon(s, state->spent), state->stopped};
}

const dpi_method_ops dpi_method_adapmixed = {
    .info = {.id = DPI_METHOD_ADAPMIXED,
             .name = "adapmixed",
             .title = "AdaPMixED",
             .help = "for comparison alone, it guarantees nothing",
             .source = "Flemings et al. 2024",
             .warning = "adapmixed counts its cost on the records themselves; what it counts is "
                        "data-dependent and not a guarantee",
             .needs_acknowledgement = 1,
             .min_ref = 1,
             .max_ref = DPI_REF_MAX,
             .output = ""},
    .parameters = parameters,
    .facts = facts,
    .settings = settings,
    .plan = make_plan,
    .create = create,
    .begin = begin,
    .step = step,
    .forget = forget,
    .free = free_state,
};
