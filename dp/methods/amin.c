/* amin.c - Amin et al. 2024, Algorithm 1: recentred clipping, the mean of logits, and the sparse
 * vector technique, which lets the public model write where the records have nothing to add.
 *
 * WHAT A RECORD CAN CHANGE. c_j(y) in [-K, K] is its recentred clipped logit and P_j its mass,
 * sum P_j <= 2^30. A null slot is one of two things, by adjacency:
 *  - add/remove with a fixed denominator, zero-out, and secret assignment (where a record may
 *    not be there at all): it adds nothing to either sum. Then a record more or less
 *    moves each utility within an interval of length 2K, and the distance by at most
 *    sum P_j <= 2^30 (reverse triangle inequality, in integers).
 *  - replace-by-null: it holds the public logits, so that empty slots pull towards the
 *    public text and not towards the uniform distribution. The change is c_j - c_pub in
 *    [-2K, 2K], length 4K, and sum |P_j - P_pub| <= 2 * 2^30. Replace-one is the same.
 * One number, `records moved` (1 or 2), thus gives both constants.
 *
 * UNITS OF SEVERAL RECORDS. c of a unit is the rounded mean of its c_j, in [-K, K]; P of a unit is
 * the mean of its P_j rounded DOWN, so that sum P <= 2^30. All else is as for one record. */
#include "dp/methods/amin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "dp/account/account.h"
#include "dp/account/pace.h"
#include "dp/exact/aggregate.h"
#include "dp/exact/mass.h"
#include "dp/exact/mean.h"
#include "dp/exact/svt.h"

typedef struct amin_state {
    int64_t *mass;    /* [n_vocab] of one sequence; PRIVATE */
    float *logits;    /* [n_vocab] of one sequence, those of allowed tokens alone; PRIVATE. NULL
                         until tokens are not allowed */
    int64_t *unit;    /* [n_vocab] sums of one unit's records; PRIVATE. NULL if each is its own */
    int64_t *surplus; /* [n_vocab] sum_i P_i - D P_pub; PRIVATE */
    dpi_amin_plan plan;
    uint64_t a_public; /* inverse temperature of public tokens, as an integer */
    dpi_svt svt;
    bool armed;
    int32_t n_armed; /* of the current text */
} amin_state;

/* Records' worth of change between neighbours: 2 where a record is exchanged for something
 * else that counts, 1 where it is exchanged for nothing. */
static int32_t records_moved(const dpi_sampler_options *o) {
    return o->adjacency == DPI_ADJACENCY_REPLACE_BY_NULL && o->subsample == 0 ? 2 : 1;
}

/* ---- Description ---------------------------------------------------------------------------- */

static const dpi_parameter public_top_k = {
    .name = "public_top_k", .option = "public-top-k", .old_option = "top-k", .key = "top_k",
    .label = "k of public tokens", .unit = "tokens", .type = DPI_PARAMETER_INT,
    .offset = DPI_FIELD(top_k), .min = 1, .max = DPI_WEIGHTS_MAX, .zero = "all",
    .default_value = 100, .help = "draw public tokens from the k likeliest"};

static const dpi_parameter private_tokens = {
    .name = "n_private", .option = "private-tokens", .key = "n_private",
    .label = "private tokens, most", .unit = "tokens", .type = DPI_PARAMETER_INT,
    .offset = DPI_FIELD(n_private), .min = 1, .max = DPI_TOKENS_MAX, .is_optional = 1,
    .default_text = "all of them",
    .help = "the most private tokens of a text, which share the budget"};

static const dpi_parameter svt_threshold = {
    .name = "svt_threshold", .option = "svt-threshold", .old_option = "threshold",
    .key = "threshold", .label = "threshold, L1", .unit = "", .type = DPI_PARAMETER_REAL,
    .offset = DPI_FIELD(svt_threshold), .min = -1000, .max = 1000, .needs = "svt_sigma",
    .help = "distance (0..2) of records to the public text above which a token is private"};

static const dpi_parameter svt_sigma = {
    .name = "svt_sigma", .option = "svt-sigma", .old_option = "sigma", .key = "sigma",
    .label = "sigma of threshold", .unit = "", .type = DPI_PARAMETER_REAL,
    .offset = DPI_FIELD(svt_sigma), .min = 1e-6, .max = 1000, .is_optional = 1,
    .default_text = "no threshold, all tokens are private while the budget lasts",
    .needs = "svt_threshold",
    .help = "noise of the threshold"};

static const dpi_parameter tau_public = {
    .name = "tau_public", .option = "public-temp", .key = "tau_public",
    .label = "tau of public tokens", .unit = "", .type = DPI_PARAMETER_REAL,
    .offset = DPI_FIELD(tau_public), .min = .01, .max = 100, .is_optional = 1,
    .default_text = "that of private tokens", .help = "temperature of public tokens"};

static const dpi_parameter *const parameters[] = {
    &dpi_common[DPI_COMMON_ACCOUNTANT], &dpi_common[DPI_COMMON_ADJACENCY],
    &dpi_common[DPI_COMMON_RHO],        &dpi_common[DPI_COMMON_EPSILON],
    &dpi_common[DPI_COMMON_DELTA],      &dpi_common[DPI_COMMON_SUBSAMPLE],
    &dpi_common[DPI_COMMON_ALLOCATION],
    &dpi_common[DPI_COMMON_N_TOKENS],   &dpi_common[DPI_COMMON_DENOMINATOR],
    &dpi_common[DPI_COMMON_TAU],        &public_top_k,
    &dpi_common[DPI_COMMON_N_VOCAB],    &dpi_common[DPI_COMMON_CLIP],
    &dpi_common[DPI_COMMON_CENTER],     &dpi_pace_kind,
    &dpi_pace_theta,                    &private_tokens,
    &svt_threshold,                     &svt_sigma,
    &tau_public,                        &dpi_common[DPI_COMMON_MAX_PER_UNIT],
    NULL};

static double public_temperature(const dpi_sampler_options *o) {
    return o->tau_public > 0 ? o->tau_public : o->tau;
}

static void settings(const dpi_sampler_options *o, char *text, size_t size) {
    dpi_format(text, size,
               "private tokens at temperature %.10g, of %d; public ones at temperature %.10g, "
               "Top-k with k = %d",
               o->tau, o->n_vocab, public_temperature(o), o->top_k);
}

static const char *neighbours(const dpi_sampler_options *o) {
    return o->adjacency == DPI_ADJACENCY_ADD_REMOVE ? NULL
           : records_moved(o) == 2 ? "the record's slot stays, with the public prompt's logits"
                                   : "the record's slot stays, and adds nothing";
}

static int32_t facts(const dpi_sampler_options *o, const dpi_sampler_plan *plan, dpi_fact *f) {
    enum { IN_BOTH = DPI_FACT_STATEMENT | DPI_FACT_REALISED };
    const bool svt = o->svt_sigma > 0;
    int32_t n = 0;
    f[n++] = (dpi_fact){.key = "n_private", .label = "private tokens, most", .type = DPI_FACT_INT,
                        .where = DPI_FACT_STATEMENT, .integer = plan->n_private};
    f[n++] = (dpi_fact){.key = "private_tokens_most", .type = DPI_FACT_INT,
                        .where = DPI_FACT_REALISED, .integer = plan->n_private};
    if (svt) {
        f[n++] = (dpi_fact){.key = "threshold", .label = "threshold, L1", .type = DPI_FACT_REAL,
                            .where = DPI_FACT_STATEMENT, .real = o->svt_threshold};
        f[n++] = (dpi_fact){.key = "sigma", .label = "sigma of threshold", .type = DPI_FACT_REAL,
                            .where = DPI_FACT_STATEMENT, .real = o->svt_sigma};
    }
    f[n++] = (dpi_fact){.key = "svt_threshold", .type = DPI_FACT_INT, .where = DPI_FACT_REALISED,
                        .integer = plan->svt_threshold};
    f[n++] = (dpi_fact){.key = "svt_scale", .type = DPI_FACT_INT, .where = DPI_FACT_REALISED,
                        .integer = plan->svt_scale};
    f[n++] = (dpi_fact){.key = "svt_sensitivity", .type = DPI_FACT_INT, .where = DPI_FACT_REALISED,
                        .integer = plan->svt_sensitivity};
    f[n++] = (dpi_fact){.key = "svt_epsilon", .type = DPI_FACT_BOUND, .where = DPI_FACT_REALISED,
                        .real = plan->svt_epsilon};
    f[n++] = (dpi_fact){.key = "rho_svt", .label = "rho, of a threshold", .type = DPI_FACT_BOUND,
                        .where = svt ? IN_BOTH : DPI_FACT_REALISED, .real = plan->rho_svt};
    if (o->pace != DPI_PACE_NONE) {
        f[n] = (dpi_fact){.key = "pace", .label = "pace", .type = DPI_FACT_TEXT,
                          .where = DPI_FACT_STATEMENT};
        dpi_format(f[n].text, sizeof f[n].text,
                   "top: public where the likeliest public token has more than %.10g",
                   o->pace_theta);
        n++;
    }
    f[n] = (dpi_fact){.label = "private are", .type = DPI_FACT_TEXT, .where = DPI_FACT_STATEMENT};
    snprintf(f[n].text, sizeof f[n].text, "%s%s", o->pace != DPI_PACE_NONE ? "of the others, " : "",
             svt ? "tokens whose distribution is far from the public one (sparse vector)"
                 : "all tokens while the budget lasts");
    n++;
    f[n] = (dpi_fact){.label = "other tokens", .type = DPI_FACT_TEXT, .where = DPI_FACT_STATEMENT};
    snprintf(f[n].text, sizeof f[n].text, "from the public prompt alone, at no cost");
    n++;
    f[n++] = (dpi_fact){.key = "tau_public", .label = "tau of public tokens", .type = DPI_FACT_REAL,
                        .where = DPI_FACT_STATEMENT, .real = public_temperature(o)};
    return n;
}

/* ---- Costs and calibration ------------------------------------------------------------------ */

static double up(double x) { return nextafter(x, INFINITY); }

/* n_armed instances and n_private tokens, rounded up. */
static double cost(double rho_svt, double rho_token, int32_t n_armed, int32_t n_private) {
    return up(dpi_rho_total_bound(rho_svt, n_armed) + dpi_rho_total_bound(rho_token, n_private));
}

static dpi_status check_pace(const dpi_sampler_options *o, dpi_error *err) {
    const char *name = dpi_pace_kind.choices[o->pace];
    if (o->pace == DPI_PACE_AUTO)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "pace is 'auto', must be none or top: a release finds it from public "
                        "texts");
    if (o->pace != DPI_PACE_NONE && o->pace != DPI_PACE_TOP)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the pace '%s' is not proven for the method amin, whose private tokens all "
                        "cost the same; take the pace 'top'", name);
    if (o->pace == DPI_PACE_NONE && o->pace_theta != 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "pace_theta is given, but the pace 'none' does not use it");
    return DPI_STATUS_OK;
}

/* sigma and the threshold are in units of the distance, which is in 0..2. */
static dpi_status check_options(const dpi_sampler_options *o, dpi_error *err) {
    DPI_TRY(check_pace(o, err));
    if (o->n_private > o->n_tokens)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_private is %d, must be 1..%d (n_tokens), or 0 (all of them)",
                        o->n_private, o->n_tokens);
    double scale = o->svt_sigma * dpi_sampler_denominator(o) * DPI_MASS_ONE;
    if (scale > (double)(DPI_NOISE_SCALE_MAX / 2))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "svt_sigma is %g, must be at most %g with denominator %d", o->svt_sigma,
                        0x1p15 / dpi_sampler_denominator(o), dpi_sampler_denominator(o));
    return DPI_STATUS_OK;
}

/* The scale of the noise is the integer that is used, and what is paid for. */
dpi_amin_plan dpi_amin_plan_get(const dpi_sampler_options *o) {
    const double unit = (double)dpi_sampler_denominator(o) * DPI_MASS_ONE;
    dpi_amin_plan plan = {.n_private = o->n_private > 0 ? o->n_private : o->n_tokens,
                          .svt_sensitivity = (int64_t)records_moved(o) * DPI_MASS_ONE};
    if (o->svt_sigma == 0)
        return plan;
    plan.svt_scale = llrint(o->svt_sigma * unit);
    plan.svt_threshold = llrint(o->svt_threshold * unit);
    plan.svt_epsilon = up((double)(2 * plan.svt_sensitivity) / (double)plan.svt_scale);
    plan.rho_svt = dpi_rho_pure_bound(plan.svt_epsilon);
    return plan;
}

static dpi_status make_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan, dpi_error *err) {
    DPI_TRY(check_options(o, err));
    const dpi_amin_plan amin = dpi_amin_plan_get(o);
    const int32_t moved = records_moved(o), n = amin.n_private, D = dpi_sampler_denominator(o);
    const double rho = plan->rho_budget, svt = dpi_rho_total_bound(amin.rho_svt, n);
    /* Below what is left, so that the rounded sum stays within the budget. */
    const double left = nextafter(rho - svt, -INFINITY);
    if (left > 0)
        plan->K = dpi_clip_calibrate(plan->a, 2 * moved, n, left);
    if (plan->K < 1)
        return dpi_fail(err, DPI_STATUS_BUDGET,
                        "rho %g over %d private tokens with denominator %d at temperature %g "
                        "leaves no clip range (%g of it go to the sparse vector): raise the "
                        "budget, sigma, the references or the temperature, or lower the private "
                        "tokens",
                        rho, n, D, o->tau, svt);
    plan->n_private = n;
    plan->svt_threshold = amin.svt_threshold;
    plan->svt_scale = amin.svt_scale;
    plan->svt_sensitivity = amin.svt_scale > 0 ? amin.svt_sensitivity : 0;
    plan->svt_epsilon = amin.svt_epsilon;
    plan->rho_svt = amin.rho_svt;
    plan->clip = fmin(D * o->tau * sqrt(2 * left / n) / moved, (double)DPI_CLIP_MAX / DPI_UNIT);
    plan->eta = dpi_eta_bound(2 * moved * plan->K, plan->a);
    plan->rho_token = dpi_rho_token_bound(plan->eta);
    plan->rho_total =
        fmin(cost(amin.rho_svt, plan->rho_token, o->svt_sigma > 0 ? n : 0, n), rho);
    return DPI_STATUS_OK;
}

/* ---- Private from here: no branch or address depends on reference logits --------------------- */

/* The records of one slot. */
typedef struct slot {
    const float *const *logits; /* [M] */
    int32_t n_records;
    bool holds_public; /* it has no record, and the public logits stand in it */
} slot;

static slot slot_of(const dpi_sampler *s, const float *const *reference_logits, int32_t j) {
    const int32_t M = dpi_sampler_per_unit(&s->options);
    slot u = {.logits = reference_logits + (size_t)j * (size_t)M};
    for (int32_t i = 0; i < M; i++)
        u.n_records += u.logits[i] != NULL;
    const bool null_is_public = records_moved(&s->options) == 2;
    u.holds_public = u.n_records == 0 && null_is_public;
    return u;
}

/* What stands for record i of a slot, and whether it counts. Null does the work of any other. */
static const float *slot_logits(const slot *u, const float *public_logits, int32_t i,
                                int64_t *present) {
    *present = u->logits[i] || (i == 0 && u->holds_public);
    return u->logits[i] ? u->logits[i] : public_logits;
}

/* Tokens that may be drawn: what is a vocabulary here. */
static size_t n_tokens(const dpi_sampler *s) {
    return (size_t)(s->n_allowed > 0 ? s->n_allowed : s->options.n_vocab);
}

/* The logits of these. Where they are depends on public data. */
static const float *logits_of(dpi_sampler *s, const float *logits) {
    amin_state *state = s->state;
    if (s->n_allowed == 0)
        return logits;
    for (int32_t i = 0; i < s->n_allowed; i++)
        state->logits[i] = logits[s->allowed[i]];
    return state->logits;
}

/* surplus += factor * mass of `logits`. */
static void add_mass(dpi_sampler *s, const float *logits, int64_t factor) {
    amin_state *state = s->state;
    const size_t n = n_tokens(s);
    dpi_mass(logits_of(s, logits), n, state->mass);
    for (size_t y = 0; y < n; y++)
        state->surplus[y] += factor * state->mass[y];
}

/* surplus += P of a unit of several records: rounded down, so that P adds up to 2^30 at most. */
static void add_unit_mass(dpi_sampler *s, const slot *u, const float *public_logits) {
    amin_state *state = s->state;
    const int32_t M = dpi_sampler_per_unit(&s->options);
    const dpi_mean mean = dpi_mean_of(u->n_records, M);
    const size_t n = n_tokens(s);
    memset(state->unit, 0, n * sizeof *state->unit);
    for (int32_t i = 0; i < M; i++) {
        int64_t present;
        dpi_mass(logits_of(s, slot_logits(u, public_logits, i, &present)), n, state->mass);
        for (size_t y = 0; y < n; y++)
            state->unit[y] += present * state->mass[y];
    }
    for (size_t y = 0; y < n; y++)
        state->surplus[y] += (int64_t)dpi_mean_floor(mean, (uint64_t)state->unit[y]);
}

void dpi_amin_distance(dpi_sampler *s, const float *public_logits,
                       const float *const *reference_logits, int64_t *distance) {
    amin_state *state = s->state;
    const size_t n = n_tokens(s);
    memset(state->surplus, 0, n * sizeof *state->surplus);
    for (int32_t j = 0; j < s->options.n_ref; j++) {
        const slot u = slot_of(s, reference_logits, j);
        int64_t present;
        const float *logits = slot_logits(&u, public_logits, 0, &present);
        if (state->unit)
            add_unit_mass(s, &u, public_logits);
        else
            add_mass(s, logits, present);
    }
    add_mass(s, public_logits, -(int64_t)dpi_sampler_denominator(&s->options));
    *distance = 0;
    for (size_t y = 0; y < n; y++)
        *distance += dpi_i64_max(state->surplus[y], -state->surplus[y]);
}

static dpi_status check_references(dpi_sampler *s, const float *const *reference_logits,
                                   dpi_error *err) {
    amin_state *state = s->state;
    const size_t n = (size_t)s->options.n_vocab;
    if (s->n_allowed > 0 && !state->logits)
        state->logits = dpi_calloc(n, sizeof *state->logits);
    if (s->n_allowed > 0 && !state->logits)
        return dpi_no_memory(err, "a sampler of %zu tokens", n);
    if (reference_logits || s->options.n_ref == 0)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "the reference logits are NULL, must be pointers to the "
                    "logits of each reference");
}

/* sum += c of a unit of several records. */
static void add_unit(dpi_sampler *s, const slot *u, const float *public_logits) {
    amin_state *state = s->state;
    const int32_t M = dpi_sampler_per_unit(&s->options);
    const dpi_mean mean = dpi_mean_of(u->n_records, M);
    memset(state->unit, 0, s->n_support * sizeof *state->unit);
    for (int32_t i = 0; i < M; i++) {
        int64_t present;
        const float *logits = slot_logits(u, public_logits, i, &present);
        dpi_aggregate_add_recentred(logits_of(s, logits), s->n_support, s->plan.K, present,
                                    state->unit);
    }
    for (size_t y = 0; y < s->n_support; y++)
        s->sum[y] += dpi_mean_round(mean, state->unit[y]);
}

/* The private token's distribution: softmax(S / (D tau)) on the candidates. */
static dpi_status distribution(dpi_sampler *s, const float *public_logits,
                               const float *const *reference_logits, dpi_error *err) {
    DPI_TRY(check_references(s, reference_logits, err));
    DPI_TRY(dpi_sampler_fix(s, public_logits, err));
    dpi_sampler_support(s, 0, 1, 0); /* everything */
    memset(s->sum, 0, s->n_support * sizeof *s->sum);
    for (int32_t j = 0; j < s->options.n_ref; j++) {
        const slot u = slot_of(s, reference_logits, j);
        int64_t present;
        const float *logits = slot_logits(&u, public_logits, 0, &present);
        if (((const amin_state *)s->state)->unit)
            add_unit(s, &u, public_logits);
        else
            dpi_aggregate_add_recentred(logits_of(s, logits), s->n_support, s->plan.K, present,
                                        s->sum);
    }
    memcpy(s->utility, s->sum, s->n_support * sizeof *s->utility);
    dpi_sampler_weigh(s, s->plan.a);
    return DPI_STATUS_OK;
}

/* ---- A step --------------------------------------------------------------------------------- */

static bool has_svt(const dpi_sampler *s) { return s->options.svt_sigma > 0; }

/* The a-priori filter: one more instance AND the private token that ends it. While an instance is
 * armed nothing else is spent, so its token needs no second look. */
static bool affordable(const dpi_sampler *s) {
    const amin_state *state = s->state;
    return s->n_private < state->plan.n_private &&
           cost(state->plan.rho_svt, s->plan.rho_token, state->n_armed + has_svt(s),
                s->n_private + 1) <= s->plan.rho_budget;
}

/* softmax(p / tau_public) on Top-k, which is for public tokens only. */
static void public_distribution(dpi_sampler *s) {
    const amin_state *state = s->state;
    dpi_sampler_support(s, s->options.top_k, 1, 0);
    for (size_t i = 0; i < s->n_support; i++)
        s->utility[i] = s->fixed[s->support[i]];
    dpi_sampler_weigh(s, state->a_public);
}

static bool is_over(const dpi_sampler *s) {
    return !((const amin_state *)s->state)->armed && !affordable(s);
}

/* Whether the next token is public whatever the records are: nothing is left, or the pace says so.
 * A function of public logits and of what was released. An instance that is armed stays so. */
static bool is_free(dpi_sampler *s) {
    if (is_over(s) || s->n_allowed == 1)
        return true;
    if (s->options.pace == DPI_PACE_NONE)
        return false;
    public_distribution(s);
    return dpi_pace_top(s->weights, s->n_support) > s->options.pace_theta;
}

/* Whether the next token is private. Decided by public numbers and the noisy comparison. */
static dpi_status decide(dpi_sampler *s, const float *public_logits,
                         const float *const *reference_logits, bool *is_private, dpi_error *err) {
    amin_state *state = s->state;
    s->is_free = is_free(s);
    *is_private = !s->is_free && !has_svt(s);
    if (s->is_free || !has_svt(s))
        return DPI_STATUS_OK;
    if (!state->armed) {
        DPI_TRY(dpi_svt_arm(&state->svt, s->options.random, s->options.random_user, err));
        state->armed = true;
        state->n_armed++; /* charged now, whether it ever fires or not */
    }
    int64_t distance;
    dpi_amin_distance(s, public_logits, reference_logits, &distance);
    dpi_status status = dpi_svt_query(&state->svt, distance, s->options.random,
                                      s->options.random_user, is_private, err);
    dpi_wipe(&distance, sizeof distance);
    return status;
}

/* A free token reads no reference; another one may read all of them. */
static dpi_status candidates(dpi_sampler *s, const float *public_logits, dpi_error *err) {
    DPI_TRY(dpi_sampler_fix(s, public_logits, err));
    s->is_free = is_free(s);
    dpi_sampler_support(s, 0, 1, 0);
    return DPI_STATUS_OK;
}

static dpi_status step(dpi_sampler *s, const float *public_logits,
                       const float *const *reference_logits, int32_t *token, dpi_error *err) {
    amin_state *state = s->state;
    bool is_private;
    size_t index;
    DPI_TRY(check_references(s, reference_logits, err));
    DPI_TRY(dpi_sampler_fix(s, public_logits, err));
    DPI_TRY(decide(s, public_logits, reference_logits, &is_private, err));
    if (is_private) {
        state->armed = false;
        s->n_private++; /* booked before the draw */
        DPI_TRY(distribution(s, public_logits, reference_logits, err));
    } else {
        public_distribution(s);
    }
    DPI_TRY(dpi_sampler_draw(s, &index, err));
    *token = s->support[index];
    return DPI_STATUS_OK;
}

/* ---- Life cycle ----------------------------------------------------------------------------- */

static dpi_status create(dpi_sampler *s, dpi_error *err) {
    const size_t n = (size_t)s->options.n_vocab;
    const bool units = dpi_sampler_per_unit(&s->options) > 1;
    amin_state *state = s->state = dpi_calloc(1, sizeof *state);
    if (state) {
        state->mass = dpi_calloc(n, sizeof *state->mass);
        state->surplus = dpi_calloc(n, sizeof *state->surplus);
        state->unit = units ? dpi_calloc(n, sizeof *state->unit) : NULL;
    }
    if (!state || !state->mass || !state->surplus || (units && !state->unit))
        return dpi_no_memory(err, "a sampler of %zu tokens", n);
    state->a_public = dpi_weights_scale(1, public_temperature(&s->options));
    state->plan = dpi_amin_plan_get(&s->options);
    state->svt.scale = state->plan.svt_scale;
    state->svt.threshold = state->plan.svt_threshold;
    return DPI_STATUS_OK;
}

static dpi_status begin(dpi_sampler *s, dpi_error *err) {
    (void)err;
    amin_state *state = s->state;
    state->armed = false;
    state->n_armed = 0;
    dpi_wipe(&state->svt.noisy, sizeof state->svt.noisy);
    return DPI_STATUS_OK;
}

static void forget(dpi_sampler *s) {
    amin_state *state = s->state;
    const size_t n = (size_t)s->options.n_vocab;
    dpi_wipe(state->mass, n * sizeof *state->mass);
    if (state->logits)
        dpi_wipe(state->logits, n * sizeof *state->logits);
    if (state->unit)
        dpi_wipe(state->unit, n * sizeof *state->unit);
    dpi_wipe(state->surplus, n * sizeof *state->surplus);
    if (!state->armed)
        dpi_wipe(&state->svt.noisy, sizeof state->svt.noisy);
}

static void free_state(dpi_sampler *s) {
    amin_state *state = s->state;
    if (!state)
        return;
    const size_t n = (size_t)s->options.n_vocab;
    dpi_wipe_free(state->mass, n * sizeof *state->mass);
    dpi_wipe_free(state->logits, n * sizeof *state->logits);
    dpi_wipe_free(state->surplus, n * sizeof *state->surplus);
    dpi_wipe_free(state->unit, n * sizeof *state->unit);
    dpi_wipe_free(state, sizeof *state);
}

dpi_amin_spent dpi_amin_spent_get(const dpi_sampler *s) {
    const amin_state *state = s->state;
    return (dpi_amin_spent){state->n_armed, s->n_private,
                            cost(state->plan.rho_svt, s->plan.rho_token, state->n_armed,
                                 s->n_private)};
}

int64_t dpi_amin_noisy_threshold(const dpi_sampler *s) {
    const amin_state *state = s->state;
    return state->svt.noisy;
}

static bool has_equal_steps(const dpi_sampler_options *o) {
    (void)o;
    return true;
}

/* A sparse vector does, where there is one. */
static bool finds_tokens(const dpi_sampler_options *o) { return o->svt_sigma > 0; }

static int32_t *quota(dpi_sampler_options *o) { return &o->n_private; }

const dpi_method_ops dpi_method_amin = {
    .info = {.id = DPI_METHOD_AMIN,
             .name = "amin",
             .title = "Amin et al. 2024",
             .help = "private tokens where records and the public text differ, else public ones",
             .source = "Amin et al. 2024, Algorithm 1",
             .has_guarantee = 1,
             .min_ref = 1,
             .max_ref = DPI_REF_MAX,
             .accountants = 1u << DPI_ACCOUNTANT_ZCDP,
             .adjacencies = 1u << DPI_ADJACENCY_REPLACE_BY_NULL | 1u << DPI_ADJACENCY_ADD_REMOVE |
                            1u << DPI_ADJACENCY_ZERO_OUT,
             .subsamples = 1,
             .units = 1,
             .output = ", and which tokens are private",
             .assumption = "A threshold is paid for when it is drawn, a private token before it is "
                           "drawn, and a text goes on without the records when its budget is used "
                           "up. Public tokens cost nothing."},
    .parameters = parameters,
    .facts = facts,
    .neighbours = neighbours,
    .settings = settings,
    .has_equal_steps = has_equal_steps,
    .finds_tokens = finds_tokens,
    .quota = quota,
    .plan = make_plan,
    .create = create,
    .begin = begin,
    .candidates = candidates,
    .is_over = is_over,
    .distribution = distribution,
    .step = step,
    .forget = forget,
    .free = free_state,
};
