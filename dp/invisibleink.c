/* invisibleink.c - InvisibleInk, Algorithm 1: clip, aggregate, Top-k+, exponential mechanism.
 * PRIVACY.md goes through the same steps with their proofs. */
#include <math.h>
#include <stdlib.h>

#include "account.h"
#include "budget.h"
#include "center.h"
#include "filter.h"
#include "mem.h"
#include "method.h"
#include "status.h"

typedef struct ink_state {
    int64_t *moved;    /* [n_vocab] what one record adds beyond null; PRIVATE */
    int64_t *baseline; /* [n_vocab] what a null slot adds: 0, but for zero-out. Public */
    float *zeros;      /* [n_vocab] zero-out: the logits of a null slot */
    double public_mass;
    /* Accountant FILTER; PRIVATE */
    dpi_u128 limit;          /* public */
    dpi_u128 *spent, *after; /* [n_ref] before and after the token of this step */
} ink_state;

/* ---- What a token costs --------------------------------------------------------------------- */

/* Length of the interval in which one record can move utilities, per unit of K. */
static int32_t range_factor(const dpi_sampler_options *o) {
    return o->adjacency == DPI_ADJACENCY_ZERO_OUT ? DPI_RANGE_ZERO_OUT : DPI_RANGE_REPLACE_BY_NULL;
}

/* The same cost for every token and record: the largest K that fits. *eta is the real number that
 * K comes up to. */
static dpi_status calibrate(const dpi_sampler_options *o, dpi_sampler_plan *plan, double *eta,
                            dpi_error *err) {
    if (o->accountant == DPI_ACCOUNTANT_BR) {
        double epsilon, delta;
        DPI_TRY(dpi_budget_inside(o, &epsilon, &delta, err));
        DPI_TRY(dpi_br_eta(epsilon, delta, o->n_tokens, eta, err));
        plan->K = dpi_clip_fit(plan->a, range_factor(o), *eta);
    } else {
        *eta = sqrt(8 * plan->rho_budget / o->n_tokens);
        plan->K = dpi_clip_calibrate(plan->a, range_factor(o), o->n_tokens, plan->rho_budget);
    }
    return DPI_STATUS_OK;
}

static dpi_status make_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan, dpi_error *err) {
    const int32_t factor = range_factor(o), D = dpi_sampler_denominator(o);
    const bool filter = o->accountant == DPI_ACCOUNTANT_FILTER;
    const double clip_max = (double)DPI_CLIP_MAX / DPI_UNIT;
    double eta;
    DPI_TRY(calibrate(o, plan, &eta, err));
    plan->clip = fmin(eta * D * o->tau / factor, clip_max);
    if (filter) { /* C is chosen, records stop when their budget is used up */
        plan->clip = o->clip > 0 ? o->clip : fmin(DPI_FILTER_CLIP_FACTOR * plan->clip, clip_max);
        plan->K = llrint(plan->clip * DPI_UNIT);
    }
    if (plan->K < 1)
        return dpi_fail(err, DPI_STATUS_BUDGET,
                        "%s %g over %d tokens with denominator %d at temperature %g leaves no clip "
                        "range: raise the budget, the references or the temperature, or lower the "
                        "tokens",
                        o->rho > 0 ? "rho" : "epsilon", o->rho > 0 ? o->rho : o->epsilon,
                        o->n_tokens, D, o->tau);
    plan->eta = dpi_eta_bound(factor * plan->K, plan->a);
    plan->rho_token = dpi_rho_token_bound(plan->eta);
    plan->rho_total = filter ? plan->rho_budget : dpi_rho_total_bound(plan->rho_token, o->n_tokens);
    return DPI_STATUS_OK;
}

/* ---- State ---------------------------------------------------------------------------------- */

static dpi_status create(dpi_sampler *s, dpi_error *err) {
    const size_t n = (size_t)s->options.n_vocab, n_ref = (size_t)s->options.n_ref;
    ink_state *state = s->state = dpi_calloc(1, sizeof *state);
    if (!state)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a sampler");
    if (s->options.accountant == DPI_ACCOUNTANT_FILTER)
        state->limit = dpi_filter_limit(s->plan.rho_total);
    state->moved = dpi_calloc(n, sizeof *state->moved);
    state->baseline = dpi_calloc(n, sizeof *state->baseline);
    state->zeros = dpi_calloc(n, sizeof *state->zeros);
    state->spent = dpi_calloc(n_ref, sizeof *state->spent);
    state->after = dpi_calloc(n_ref, sizeof *state->after);
    if (!state->moved || !state->baseline || !state->zeros || !state->spent || !state->after)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a sampler of %zu tokens", n);
    return DPI_STATUS_OK;
}

static void release(dpi_sampler *s) {
    const size_t n = (size_t)s->options.n_vocab, n_ref = (size_t)s->options.n_ref;
    ink_state *state = s->state;
    if (!state)
        return;
    dpi_wipe_free(state->moved, n * sizeof *state->moved);
    dpi_wipe_free(state->spent, n_ref * sizeof *state->spent);
    dpi_wipe_free(state->after, n_ref * sizeof *state->after);
    free(state->baseline);
    free(state->zeros);
    dpi_wipe_free(state, sizeof *state);
}

/* New records: nobody has spent anything. */
static dpi_status begin(dpi_sampler *s, dpi_error *err) {
    (void)err;
    ink_state *state = s->state;
    dpi_wipe(state->spent, (size_t)s->options.n_ref * sizeof *state->spent);
    return DPI_STATUS_OK;
}

static void charge(dpi_sampler *s) {
    ink_state *state = s->state;
    if (s->options.accountant == DPI_ACCOUNTANT_FILTER)
        memcpy(state->spent, state->after, (size_t)s->options.n_ref * sizeof *state->spent);
}

static void forget(dpi_sampler *s) {
    ink_state *state = s->state;
    dpi_wipe(state->moved, s->n_support * sizeof *state->moved);
    dpi_wipe(state->after, (size_t)s->options.n_ref * sizeof *state->after);
}

/* ---- Private from here: no branch or address depends on reference logits --------------------- */

/* c = clip(l - p - centre) in units of 2^-20, NaN and infinities 0: an integer in [-K, K] for any
 * bits of `l` (PRIVACY.md, Lemma 1). The clamp of doubles keeps the rounding in range, the clamp
 * of integers is the one that the proof needs. Centring comes before clipping, never after. */
static inline int64_t contribution(float l, float p, double centre, int64_t K) {
    const double bound = (double)K;
    double d = dpi_finite_or_zero(((double)l - (double)p - centre) * DPI_UNIT);
    d = d < -bound ? -bound : d;
    d = d > bound ? bound : d;
    return dpi_i64_max(dpi_i64_min(dpi_round_even(d), K), -K);
}

/* out = what a sequence with these logits contributes, less `baseline`. */
static void contributions(const dpi_sampler *s, const float *public_logits, const float *logits,
                          const int64_t *baseline, int64_t *out) {
    const ink_state *state = s->state;
    const int64_t K = s->plan.K;
    double centre = 0; /* m_i: a function of this reference and public data only */
    if (s->options.center)
        centre = dpi_log_mass(logits, s->support, s->n_support) - state->public_mass;
    for (size_t i = 0; i < s->n_support; i++) {
        int32_t y = s->support[i];
        out[i] = contribution(logits[y], public_logits[y], centre, K) - baseline[i];
    }
}

/* Accountant FILTER: all ones if record j can pay for this token, else 0. */
static uint64_t pay(const dpi_sampler *s, int32_t j) {
    const ink_state *state = s->state;
    const int64_t *moved = state->moved;
    int64_t low = moved[0], high = moved[0];
    for (size_t i = 1; i < s->n_support; i++) {
        low = dpi_i64_min(low, moved[i]);
        high = dpi_i64_max(high, moved[i]);
    }
    dpi_u128 cost = dpi_filter_cost(high - low, s->plan.a);
    return dpi_filter_pay(state->spent[j], cost, state->limit, &state->after[j]);
}

/* S += what record j moves: all of it, or nothing once its budget is used up. */
static void add_record(dpi_sampler *s, const float *public_logits, const float *logits, int32_t j) {
    ink_state *state = s->state;
    uint64_t pays = ~UINT64_C(0);
    contributions(s, public_logits, logits, state->baseline, state->moved);
    if (s->options.accountant == DPI_ACCOUNTANT_FILTER)
        pays = pay(s, j);
    for (size_t i = 0; i < s->n_support; i++)
        s->sum[i] += (int64_t)((uint64_t)state->moved[i] & pays);
}

/* A null slot is given logits that move nothing, and its work is that of any other record. */
static void aggregate(dpi_sampler *s, const float *public_logits,
                      const float *const *reference_logits) {
    const int64_t D = dpi_sampler_denominator(&s->options);
    const bool zero_out = s->options.adjacency == DPI_ADJACENCY_ZERO_OUT;
    ink_state *state = s->state;
    const float *null_logits = zero_out ? state->zeros : public_logits;
    if (s->options.center)
        state->public_mass = dpi_log_mass(public_logits, s->support, s->n_support);
    memset(state->baseline, 0, s->n_support * sizeof *state->baseline);
    contributions(s, public_logits, null_logits, state->baseline, state->baseline);
    for (size_t i = 0; i < s->n_support; i++)
        s->sum[i] = s->options.n_ref * state->baseline[i];
    for (int32_t j = 0; j < s->options.n_ref; j++) {
        const float *logits = reference_logits[j];
        add_record(s, public_logits, logits ? logits : null_logits, j);
    }
    for (size_t i = 0; i < s->n_support; i++)
        s->utility[i] = D * s->fixed[s->support[i]] + s->sum[i];
}

static dpi_status distribution(dpi_sampler *s, const float *public_logits,
                               const float *const *reference_logits, dpi_error *err) {
    const dpi_sampler_options *o = &s->options;
    if (!reference_logits && o->n_ref > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the reference logits are NULL, must be pointers to "
                        "the logits of each reference");
    DPI_TRY(dpi_public_fix(public_logits, o->n_vocab, s->fixed, NULL, err));
    s->n_support = dpi_support_find(s->fixed, o->n_vocab, o->top_k, dpi_sampler_denominator(o),
                                    2 * s->plan.K, s->support);
    aggregate(s, public_logits, reference_logits);
    dpi_weights_compute(&s->tables, s->plan.a, s->utility, s->n_support, s->weights);
    return DPI_STATUS_OK;
}

const dpi_method_ops dpi_method_invisibleink = {
    .name = "invisibleink",
    .min_ref = 1,
    .max_ref = DPI_REF_MAX,
    .accountants = 1u << DPI_ACCOUNTANT_BR | 1u << DPI_ACCOUNTANT_FILTER,
    .adjacencies = 1u << DPI_ADJACENCY_ADD_REMOVE | 1u << DPI_ADJACENCY_ZERO_OUT,
    .centers = true,
    .subsamples = true,
    .plan = make_plan,
    .create = create,
    .begin = begin,
    .distribution = distribution,
    .charge = charge,
    .forget = forget,
    .free = release,
};
