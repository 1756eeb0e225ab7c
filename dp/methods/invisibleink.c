/* invisibleink.c - InvisibleInk, Algorithm 1: clip, aggregate, Top-k+, exponential mechanism.
 * dp/PRIVACY.md goes through the same steps with their proofs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "dp/account/account.h"
#include "dp/account/budget.h"
#include "dp/account/filter.h"
#include "dp/account/pace.h"
#include "dp/exact/aggregate.h"
#include "dp/methods/method.h"

typedef struct ink_state {
    /* Pacing; public */
    dpi_pacing pacing;
    dpi_pace_spent paid; /* before this step */
    uint64_t free_a;     /* inverse temperature of free steps */
    float *zeros;      /* [n_vocab] zero-out: the logits of a null slot */
    double *centre;    /* [n_ref M] m_j; PRIVATE */
    uint64_t *pays;    /* [n_ref] masks: whether what a record moves counts; PRIVATE */
    dpi_aggregate aggregate;
    /* Accountant FILTER; PRIVATE */
    dpi_u128 limit;          /* public */
    dpi_u128 *spent, *after; /* [n_ref] before and after the token of this step */
    int64_t (*range)[2];     /* [n_ref] least and most that a record moves utilities by */
} ink_state;

/* ---- Description ---------------------------------------------------------------------------- */

static const dpi_parameter top_k = {
    .name = "top_k", .option = "top-k", .key = "top_k", .label = "k of Top-k+", .unit = "tokens",
    .type = DPI_PARAMETER_INT, .offset = DPI_FIELD(top_k), .min = 1, .max = DPI_WEIGHTS_MAX,
    .zero = "all", .default_value = 100,
    .help = "draw from the k likeliest public tokens and those as likely within the clip bound"};

static const dpi_parameter pace_tokens = {
    .name = "pace_tokens", .option = "pace-tokens", .key = "pace_tokens",
    .label = "private tokens, most", .unit = "tokens", .type = DPI_PARAMETER_INT,
    .offset = DPI_FIELD(pace_tokens), .min = 1, .max = 1 << 20, .is_optional = 1,
    .default_text = "found from public texts",
    .help = "top and change: the most private tokens of a text, which share the budget"};
static const dpi_parameter pace_share = {
    .name = "pace_share", .option = "pace-share", .key = "pace_share", .label = "share of the pace",
    .unit = "tokens", .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(pace_share), .min = .01,
    .max = 1 << 20, .is_optional = 1, .default_text = "found from public texts",
    .help = "share: a token costs the budget times (1 - likeliest) / X"};
static const dpi_parameter free_top_k = {
    .name = "free_top_k", .option = "free-top-k", .key = "free_top_k", .label = "k of free tokens",
    .unit = "tokens", .type = DPI_PARAMETER_INT, .offset = DPI_FIELD(free_top_k), .min = 1,
    .max = DPI_WEIGHTS_MAX, .is_optional = 1, .default_text = "5",
    .help = "a free token is one of the k likeliest public tokens"};
static const dpi_parameter free_tau = {
    .name = "free_tau", .option = "free-temp", .key = "free_tau", .label = "tau of free tokens",
    .unit = "", .type = DPI_PARAMETER_REAL, .offset = DPI_FIELD(free_tau), .min = .01, .max = 100,
    .is_optional = 1, .default_text = "tau", .help = "temperature of free tokens"};

static const dpi_parameter *const parameters[] = {
    &dpi_common[DPI_COMMON_ACCOUNTANT], &dpi_common[DPI_COMMON_ADJACENCY],
    &dpi_common[DPI_COMMON_RHO],        &dpi_common[DPI_COMMON_EPSILON],
    &dpi_common[DPI_COMMON_DELTA],      &dpi_common[DPI_COMMON_SUBSAMPLE],
    &dpi_common[DPI_COMMON_ALLOCATION],
    &dpi_common[DPI_COMMON_N_TOKENS],   &dpi_common[DPI_COMMON_DENOMINATOR],
    &dpi_common[DPI_COMMON_TAU],        &top_k,
    &dpi_common[DPI_COMMON_N_VOCAB],    &dpi_common[DPI_COMMON_CLIP],
    &dpi_common[DPI_COMMON_CENTER],     &dpi_pace_kind,
    &dpi_pace_theta,                    &pace_tokens,
    &pace_share,                        &free_top_k,
    &free_tau,                          &dpi_common[DPI_COMMON_MAX_PER_UNIT],
    NULL};

/* Which steps pay, in words. clip_alone: T_p decides the clip bound and ends nothing, as under the
 * filter, where a record's own budget ends its influence. */
static void pace_text(const dpi_sampler_options *o, bool clip_alone, char *text, size_t size) {
    if (o->pace != DPI_PACE_SHARE) {
        dpi_format(text, size, "%s: free where %s %.10g%s %d private tokens",
                   dpi_pace_kind.choices[o->pace],
                   o->pace == DPI_PACE_TOP ? "the likeliest token has more than"
                                           : "records could change less than",
                   o->pace_theta, clip_alone ? "; the clip bound is that of" : ", and after",
                   (int)(o->pace_tokens > 0 ? o->pace_tokens : o->n_tokens));
        return;
    }
    const int n = dpi_format(text, size,
                             "share: a token costs the budget times (1 - likeliest) / %.10g",
                             o->pace_share > 0 ? o->pace_share : o->n_tokens);
    if (o->pace_theta > 0 && n > 0 && (size_t)n < size)
        dpi_format(text + n, size - (size_t)n, "; free where that is above %.10g", o->pace_theta);
}

static void settings(const dpi_sampler_options *o, char *text, size_t size) {
    char pace_words[128];
    const int n = dpi_format(text, size,
                             "temperature %.10g, Top-k+ with k = %d of %d tokens, logits %scentred "
                             "before they are clipped", o->tau, o->top_k, o->n_vocab,
                             o->center ? "" : "not ");
    if (o->pace == DPI_PACE_NONE || n < 0 || (size_t)n >= size)
        return;
    /* Reports that were written say it so, and are held to it. */
    pace_text(o, false, pace_words, sizeof pace_words);
    dpi_format(text + n, size - (size_t)n,
               "; pace %s; free tokens at temperature %.10g, Top-k with k = %d", pace_words,
               o->free_tau > 0 ? o->free_tau : o->tau,
               (int)(o->free_top_k > 0 ? o->free_top_k : o->top_k));
}

static int32_t facts(const dpi_sampler_options *o, const dpi_sampler_plan *plan, dpi_fact *f) {
    if (o->pace == DPI_PACE_NONE)
        return 0;
    f[0] = (dpi_fact){.key = "pace", .label = "pace", .type = DPI_FACT_TEXT,
                      .where = DPI_FACT_STATEMENT};
    pace_text(o, o->accountant == DPI_ACCOUNTANT_FILTER, f[0].text, sizeof f[0].text);
    int32_t n = 1;
    if (o->accountant != DPI_ACCOUNTANT_FILTER)
        f[n++] = (dpi_fact){.key = "n_private", .label = "private tokens, most",
                            .type = DPI_FACT_INT, .where = DPI_FACT_STATEMENT,
                            .integer = plan->n_private};
    f[n++] = (dpi_fact){.key = "free_top_k", .label = "k of free tokens", .type = DPI_FACT_INT,
                        .where = DPI_FACT_STATEMENT,
                        .integer = o->free_top_k > 0 ? o->free_top_k : o->top_k};
    f[n++] = (dpi_fact){.key = "free_tau", .label = "tau of free tokens", .type = DPI_FACT_REAL,
                        .where = DPI_FACT_STATEMENT,
                        .real = o->free_tau > 0 ? o->free_tau : o->tau};
    return n;
}

/* ---- What a token costs --------------------------------------------------------------------- */

/* Length of the interval in which one record can move utilities, per unit of K. */
static int32_t range_factor(const dpi_sampler_options *o) {
    return o->adjacency == DPI_ADJACENCY_ZERO_OUT ? DPI_RANGE_ZERO_OUT : DPI_RANGE_REPLACE_BY_NULL;
}

/* Steps that are not free, at most. */
static int32_t private_tokens(const dpi_sampler_options *o) {
    const bool quota = o->pace == DPI_PACE_TOP || o->pace == DPI_PACE_CHANGE;
    return quota && o->pace_tokens > 0 && o->pace_tokens < o->n_tokens ? o->pace_tokens
                                                                         : o->n_tokens;
}

/* SHARE: how many steps of the plan's K the budget is for. */
static double divisor(const dpi_sampler_options *o) {
    return fmax(1, o->pace_share > 0 ? o->pace_share : o->n_tokens);
}

/* The largest K that fits, for steps that cost the same: all of them, those of the quota, or with
 * SHARE those of which the public model knows nothing. *eta is the real number that K comes up
 * to. */
static dpi_status calibrate(const dpi_sampler_options *o, dpi_sampler_plan *plan, double *eta,
                            dpi_error *err) {
    if (o->accountant == DPI_ACCOUNTANT_BR) {
        DPI_TRY(dpi_budget_eta(o, private_tokens(o), eta, err));
        plan->K = dpi_clip_fit(plan->a, range_factor(o), *eta);
    } else if (o->pace == DPI_PACE_SHARE) {
        *eta = sqrt(8 * plan->rho_budget / divisor(o));
        plan->K = dpi_clip_calibrate(plan->a, range_factor(o), 1, plan->rho_budget / divisor(o));
    } else {
        *eta = sqrt(8 * plan->rho_budget / private_tokens(o));
        plan->K =
            dpi_clip_calibrate(plan->a, range_factor(o), private_tokens(o), plan->rho_budget);
    }
    return DPI_STATUS_OK;
}

static dpi_status check_pace(const dpi_sampler_options *o, dpi_error *err) {
    const bool has_theta = o->pace != DPI_PACE_NONE;
    const bool has_quota = o->pace == DPI_PACE_TOP || o->pace == DPI_PACE_CHANGE;
    const dpi_parameter *unused = o->pace == DPI_PACE_NONE && o->free_top_k != 0 ? &free_top_k
                                  : o->pace == DPI_PACE_NONE && o->free_tau != 0 ? &free_tau
                                  : !has_theta && o->pace_theta != 0             ? &dpi_pace_theta
                                  : !has_quota && o->pace_tokens != 0            ? &pace_tokens
                                  : o->pace != DPI_PACE_SHARE && o->pace_share != 0 ? &pace_share
                                                                                    : NULL;
    if (o->pace == DPI_PACE_AUTO)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "pace is 'auto', must be none, top, change or share: a release finds it "
                        "from public texts");
    if (unused)
        return dpi_fail(err, DPI_STATUS_ARG, "%s is given, but the pace '%s' does not use it",
                        unused->name, dpi_pace_kind.choices[o->pace]);
    if (o->pace == DPI_PACE_SHARE && o->accountant == DPI_ACCOUNTANT_BR)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the pace 'share' with the accountant br: it counts steps of one range; "
                        "choose zcdp or filter, or the pace 'top'");
    if (o->free_top_k > o->n_vocab)
        return dpi_fail(err, DPI_STATUS_ARG, "free_top_k is %d, must be 1..%d (the vocabulary)",
                        (int)o->free_top_k, (int)o->n_vocab);
    return DPI_STATUS_OK;
}

static dpi_status make_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan, dpi_error *err) {
    const int32_t factor = range_factor(o), D = dpi_sampler_denominator(o);
    const bool filter = o->accountant == DPI_ACCOUNTANT_FILTER;
    const double clip_max = (double)DPI_CLIP_MAX / DPI_UNIT;
    double eta;
    DPI_TRY(check_pace(o, err));
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
                        private_tokens(o), D, o->tau);
    plan->n_private = o->pace == DPI_PACE_NONE ? 0 : private_tokens(o);
    plan->eta = dpi_eta_bound(factor * plan->K, plan->a);
    plan->rho_token = dpi_rho_token_bound(plan->eta);
    plan->rho_total = filter || o->pace == DPI_PACE_SHARE
                          ? plan->rho_budget
                          : dpi_rho_total_bound(plan->rho_token, private_tokens(o));
    return DPI_STATUS_OK;
}

/* What a text keeps to. Under the filter each record's own budget ends its influence. */
static dpi_pacing pacing_of(const dpi_sampler_options *o, const dpi_sampler_plan *plan) {
    const bool filter = o->accountant == DPI_ACCOUNTANT_FILTER;
    const double unit = ldexp(0x1.62e42fefa39efp-1, -48);
    return (dpi_pacing){
        .pace = o->pace,
        .n_private = filter ? INT32_MAX : private_tokens(o),
        .factor = range_factor(o),
        .theta = o->pace_theta,
        .swing = dpi_sampler_denominator(o) * (double)plan->K * (double)plan->a * unit,
        .rho = filter ? INFINITY : plan->rho_budget,
        .K = plan->K,
        .a = plan->a,
    };
}

/* ---- State ---------------------------------------------------------------------------------- */

/* Pointers to logits, NULL or not. */
static size_t n_records(const dpi_sampler *s) {
    return (size_t)s->options.n_ref * (size_t)dpi_sampler_per_unit(&s->options);
}

static dpi_status create(dpi_sampler *s, dpi_error *err) {
    const size_t n = (size_t)s->options.n_vocab, n_ref = (size_t)s->options.n_ref;
    ink_state *state = s->state = dpi_calloc(1, sizeof *state);
    if (!state)
        return dpi_no_memory(err, "a sampler");
    if (s->options.accountant == DPI_ACCOUNTANT_FILTER)
        state->limit = dpi_filter_limit(s->plan.rho_total);
    state->pacing = pacing_of(&s->options, &s->plan);
    state->free_a = dpi_weights_scale(dpi_sampler_denominator(&s->options),
                                      s->options.free_tau > 0 ? s->options.free_tau
                                                              : s->options.tau);
    state->zeros = dpi_calloc(n, sizeof *state->zeros);
    state->centre = dpi_calloc(n_records(s), sizeof *state->centre);
    state->pays = dpi_calloc(n_ref, sizeof *state->pays);
    state->spent = dpi_calloc(n_ref, sizeof *state->spent);
    state->after = dpi_calloc(n_ref, sizeof *state->after);
    state->range = dpi_calloc(n_ref, sizeof *state->range);
    if (!state->zeros || !state->centre || !state->pays || !state->spent || !state->after ||
        !state->range)
        return dpi_no_memory(err, "a sampler of %zu tokens", n);
    return DPI_STATUS_OK;
}

static void release(dpi_sampler *s) {
    const size_t n_ref = (size_t)s->options.n_ref;
    ink_state *state = s->state;
    if (!state)
        return;
    dpi_wipe_free(state->centre, n_records(s) * sizeof *state->centre);
    dpi_wipe_free(state->pays, n_ref * sizeof *state->pays);
    dpi_wipe_free(state->spent, n_ref * sizeof *state->spent);
    dpi_wipe_free(state->after, n_ref * sizeof *state->after);
    dpi_wipe_free(state->range, n_ref * sizeof *state->range);
    free(state->zeros);
    dpi_wipe_free(state, sizeof *state);
}

/* New records, which have spent nothing. */
static dpi_status begin(dpi_sampler *s, dpi_error *err) {
    (void)err;
    ink_state *state = s->state;
    dpi_wipe(state->spent, (size_t)s->options.n_ref * sizeof *state->spent);
    state->paid = (dpi_pace_spent){0};
    return DPI_STATUS_OK;
}

static void charge(dpi_sampler *s) {
    ink_state *state = s->state;
    dpi_pace_charge(&state->pacing, &state->paid, s->K);
    if (s->options.accountant == DPI_ACCOUNTANT_FILTER && s->K > 0)
        memcpy(state->spent, state->after, (size_t)s->options.n_ref * sizeof *state->spent);
}

static void forget(dpi_sampler *s) {
    const size_t n_ref = (size_t)s->options.n_ref;
    ink_state *state = s->state;
    dpi_aggregate_wipe(&state->aggregate);
    dpi_wipe(state->centre, n_records(s) * sizeof *state->centre);
    dpi_wipe(state->pays, n_ref * sizeof *state->pays);
    dpi_wipe(state->after, n_ref * sizeof *state->after);
    dpi_wipe(state->range, n_ref * sizeof *state->range);
}

/* ---- Public ---------------------------------------------------------------------------------- */

/* K of this step. On a part of a text that is spread (spread.c) it was decided with the partial
 * sums, which have paid for it. */
static void decide(dpi_sampler *s) {
    const dpi_sampler_options *o = &s->options;
    ink_state *state = s->state;
    double top = 0;
    if (s->to_merge)
        return;
    if (s->n_allowed == 1) { /* no choice: whatever the references are, that token comes */
        s->K = 0;
        return;
    }
    if (o->pace != DPI_PACE_NONE) {
        const int64_t D = dpi_sampler_denominator(o);
        dpi_sampler_support(s, o->top_k, D, 0);
        for (size_t i = 0; i < s->n_support; i++)
            s->utility[i] = D * s->fixed[s->support[i]];
        dpi_sampler_weigh(s, s->plan.a);
        top = dpi_pace_top(s->weights, s->n_support);
    }
    s->K = dpi_pace_clip(&state->pacing, &state->paid, top);
}

static dpi_status find_candidates(dpi_sampler *s, const float *public_logits, dpi_error *err) {
    const dpi_sampler_options *o = &s->options;
    DPI_TRY(dpi_sampler_fix(s, public_logits, err));
    decide(s);
    s->is_free = s->K == 0;
    dpi_sampler_support(s, s->is_free && o->free_top_k > 0 ? o->free_top_k : o->top_k,
                        dpi_sampler_denominator(o), 2 * s->K);
    return DPI_STATUS_OK;
}

static bool is_over(const dpi_sampler *s) {
    const ink_state *state = s->state;
    return dpi_pace_is_over(&state->pacing, &state->paid);
}

/* ---- Private from here: no branch or address depends on reference logits --------------------- */

/* Accountant FILTER: all ones for each record that can pay for this token, else 0. */
static void pay(dpi_sampler *s, const float *const *reference_logits) {
    ink_state *state = s->state;
    dpi_aggregate_range(&state->aggregate, reference_logits, s->options.n_ref, state->centre,
                        state->range);
    for (int32_t j = 0; j < s->options.n_ref; j++) {
        dpi_u128 cost = dpi_filter_cost(state->range[j][1] - state->range[j][0], s->plan.a);
        state->pays[j] = dpi_filter_pay(state->spent[j], cost, state->limit, &state->after[j]);
    }
}

/* S of this sampler's slots, on the candidates. */
static void aggregate(dpi_sampler *s, const float *public_logits,
                      const float *const *reference_logits) {
    const bool zero_out = s->options.adjacency == DPI_ADJACENCY_ZERO_OUT;
    const int32_t n_ref = s->options.n_ref;
    ink_state *state = s->state;
    const dpi_aggregate_step step = {
        .public_logits = public_logits,
        .null_logits = zero_out ? state->zeros : public_logits,
        .support = s->support,
        .n_vocab = (size_t)s->options.n_vocab,
        .n_support = s->n_support,
        .K = s->K,
        .center = s->options.center,
        .per_unit = dpi_sampler_per_unit(&s->options),
    };
    dpi_aggregate_begin(&state->aggregate, &s->kernels, &step);
    dpi_aggregate_centre(&state->aggregate, reference_logits, n_ref, state->centre);
    if (s->options.accountant == DPI_ACCOUNTANT_FILTER)
        pay(s, reference_logits);
    else
        memset(state->pays, 0xff, (size_t)n_ref * sizeof *state->pays);
    memset(s->sum, 0, s->n_support * sizeof *s->sum);
    dpi_aggregate_add(&state->aggregate, reference_logits, n_ref, state->centre, state->pays,
                      s->sum);
}

/* Weights from S. */
static void weigh(dpi_sampler *s) {
    dpi_aggregate_utility(s->fixed, s->support, s->sum, s->n_support,
                          dpi_sampler_denominator(&s->options), s->utility);
    dpi_sampler_weigh(s, s->is_free ? ((const ink_state *)s->state)->free_a : s->plan.a);
}

static dpi_status partial(dpi_sampler *s, const float *public_logits,
                          const float *const *reference_logits, dpi_error *err) {
    if (!reference_logits && s->options.n_ref > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the reference logits are NULL, must be pointers to "
                        "the logits of each reference");
    DPI_TRY(find_candidates(s, public_logits, err));
    if (s->is_free)
        memset(s->sum, 0, s->n_support * sizeof *s->sum);
    else
        aggregate(s, public_logits, reference_logits);
    return DPI_STATUS_OK;
}

static dpi_status distribution(dpi_sampler *s, const float *public_logits,
                               const float *const *reference_logits, dpi_error *err) {
    DPI_TRY(partial(s, public_logits, reference_logits, err));
    weigh(s);
    return DPI_STATUS_OK;
}

static bool has_equal_steps(const dpi_sampler_options *o) {
    return o->pace == DPI_PACE_NONE || o->pace == DPI_PACE_TOP || o->pace == DPI_PACE_CHANGE;
}

/* Each utility is in [-C, C], and is divided by tau. */
static double factor(const dpi_sampler_options *o, const dpi_sampler_plan *plan) {
    return exp(2 * plan->clip / o->tau);
}

const dpi_method_ops dpi_method_invisibleink = {
    .info = {.id = DPI_METHOD_INVISIBLEINK,
             .name = "invisibleink",
             .title = "InvisibleInk",
             .help = "clipped differences of logits; tokens pay, or the pace makes them free",
             .source = "Vinod et al. 2025, Algorithm 1",
             .has_guarantee = 1,
             .min_ref = 1,
             .max_ref = DPI_REF_MAX,
             .accountants = 1u << DPI_ACCOUNTANT_ZCDP | 1u << DPI_ACCOUNTANT_BR |
                            1u << DPI_ACCOUNTANT_FILTER,
             .adjacencies = 1u << DPI_ADJACENCY_REPLACE_BY_NULL | 1u << DPI_ADJACENCY_ADD_REMOVE |
                            1u << DPI_ADJACENCY_ZERO_OUT,
             .centers = 1,
             .subsamples = 1,
             .units = 1,
             .output = ""},
    .parameters = parameters,
    .facts = facts,
    .settings = settings,
    .has_equal_steps = has_equal_steps,
    .factor = factor,
    .plan = make_plan,
    .create = create,
    .begin = begin,
    .candidates = find_candidates,
    .is_over = is_over,
    .distribution = distribution,
    .partial = partial,
    .weigh = weigh,
    .charge = charge,
    .forget = forget,
    .free = release,
};
