/* tang.c - Tang et al. 2024, few-shot generation: the sum of the records' next-token probabilities
 * on the likeliest public tokens, Gaussian noise on each, and the token with the largest sum.
 *
 * WHAT A RECORD CAN CHANGE. P_j(y) >= 0 are integers with sum_y P_j(y) <= 2^16, whatever the bits
 * of its logits, so that the vector P_j has Euclidean norm at most 2^16. A null slot adds nothing.
 * So with replace-by-null, add/remove and secret assignment the sums of neighbours differ by one
 * such vector. (The paper exchanges records: sqrt(2) of that.) With zero-out a null slot would be
 * uniform: refused.
 *
 * UNITS OF SEVERAL RECORDS. P of a unit is the mean of its records' P, rounded DOWN, so that it
 * adds up to 2^16 at most.
 *
 * Of the paper: its vocabulary of the top 100 public tokens, its argmax, its noise for each token.
 * Other than there, a text has the same records for all of its tokens. */
#include "dp/methods/tang.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/mem.h"
#include "base/status.h"
#include "dp/account/account.h"
#include "dp/exact/mass.h"
#include "dp/exact/mean.h"
#include "dp/exact/noisy_max.h"
#include "dp/exact/normal.h"

typedef struct tang_state {
    float *zeros;   /* [n_vocab] in the place of no record */
    float *logits;  /* [n_vocab] of one record on the support, by tau; PRIVATE */
    int64_t *mass;  /* [n_vocab] of one record; PRIVATE */
    int64_t *unit;  /* [n_vocab] sums of one unit's records; PRIVATE */
    int64_t *noise; /* [n_vocab] PRIVATE */
} tang_state;

/* ---- Description ---------------------------------------------------------------------------- */

static const dpi_parameter top_k = {
    .name = "top_k", .option = "top-k", .key = "top_k", .label = "k of Top-k", .unit = "tokens",
    .type = DPI_PARAMETER_INT, .offset = DPI_FIELD(top_k), .min = 1, .max = DPI_WEIGHTS_MAX,
    .zero = "all", .default_value = 100,
    .help = "the k likeliest public tokens, which noise is drawn for"};

static const dpi_parameter *const parameters[] = {
    &dpi_common[DPI_COMMON_ACCOUNTANT],  &dpi_common[DPI_COMMON_ADJACENCY],
    &dpi_common[DPI_COMMON_RHO],         &dpi_common[DPI_COMMON_EPSILON],
    &dpi_common[DPI_COMMON_DELTA],       &dpi_common[DPI_COMMON_SUBSAMPLE],
    &dpi_common[DPI_COMMON_ALLOCATION],
    &dpi_common[DPI_COMMON_N_TOKENS],    &dpi_common[DPI_COMMON_DENOMINATOR],
    &dpi_common[DPI_COMMON_TAU],         &top_k,
    &dpi_common[DPI_COMMON_N_VOCAB],     &dpi_common[DPI_COMMON_MAX_PER_UNIT],
    NULL};

static void settings(const dpi_sampler_options *o, char *text, size_t size) {
    dpi_format(text, size,
               "probabilities at temperature %.10g on the top %d of %d tokens; the largest noisy "
               "sum is the token",
               o->tau, o->top_k, o->n_vocab);
}

static int32_t facts(const dpi_sampler_options *o, const dpi_sampler_plan *plan, dpi_fact *f) {
    (void)o;
    f[0] = (dpi_fact){.key = "noise_sigma", .label = "sigma of noise", .type = DPI_FACT_REAL,
                      .where = DPI_FACT_STATEMENT | DPI_FACT_REALISED,
                      .real = ldexp((double)plan->noise_sigma, -DPI_NORMAL_SHIFT) / DPI_TANG_ONE};
    f[1] = (dpi_fact){.key = "noise_sigma_integer", .type = DPI_FACT_INT,
                      .where = DPI_FACT_REALISED, .integer = plan->noise_sigma};
    return 2;
}

/* ---- Costs and calibration ------------------------------------------------------------------ */

/* The least sigma whose T tokens fit the budget; 0: there is none. */
static int64_t calibrate(int32_t n_tokens, double rho) {
    const double wanted = ceil(ldexp(DPI_TANG_ONE, DPI_NORMAL_SHIFT) * sqrt(n_tokens / (2 * rho)));
    int64_t step = 1;
    if (!(wanted < (double)DPI_NORMAL_SIGMA_MAX))
        return 0;
    /* It is as close as doubles are: some steps up, each twice as far. */
    int64_t sigma = wanted > 1 ? (int64_t)wanted : 1;
    while (sigma <= DPI_NORMAL_SIGMA_MAX &&
           dpi_rho_total_bound(dpi_rho_noisy_max_bound(DPI_TANG_ONE, sigma), n_tokens) > rho) {
        sigma += step;
        step *= 2;
    }
    return sigma <= DPI_NORMAL_SIGMA_MAX ? sigma : 0;
}

static dpi_status make_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan, dpi_error *err) {
    if (o->pace != DPI_PACE_NONE)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "a pace is not proven for the method tang");
    plan->noise_sigma = calibrate(o->n_tokens, plan->rho_budget);
    if (plan->noise_sigma == 0)
        return dpi_fail(err, DPI_STATUS_BUDGET,
                        "rho %g over %d tokens needs noise beyond what is drawn: raise the budget, "
                        "or lower the tokens", plan->rho_budget, o->n_tokens);
    plan->K = DPI_TANG_ONE;
    plan->clip = 1; /* the norm of what a record adds */
    plan->eta = 0;  /* the loss of Gaussian noise has no range */
    plan->rho_token = dpi_rho_noisy_max_bound(DPI_TANG_ONE, plan->noise_sigma);
    plan->rho_total = dpi_rho_total_bound(plan->rho_token, o->n_tokens);
    return DPI_STATUS_OK;
}

/* ---- Private from here: no branch or address depends on reference logits --------------------- */

/* state->mass = P of one record on the support, which is public. */
static void find_mass(dpi_sampler *s, const float *logits) {
    tang_state *state = s->state;
    const float scale = (float)(1 / s->options.tau);
    for (size_t i = 0; i < s->n_support; i++)
        state->logits[i] = logits[s->support[i]] * scale;
    dpi_mass(state->logits, s->n_support, state->mass);
    for (size_t i = 0; i < s->n_support; i++)
        state->mass[i] >>= DPI_MASS_BITS - 16;
}

/* Every slot does the same work. Which of them hold a record is a mask. */
void dpi_tang_sums(dpi_sampler *s, const float *const *reference_logits) {
    tang_state *state = s->state;
    const int32_t M = dpi_sampler_per_unit(&s->options);
    memset(s->sum, 0, s->n_support * sizeof *s->sum);
    for (int32_t j = 0; j < s->options.n_ref; j++) {
        const float *const *records = reference_logits + (size_t)j * (size_t)M;
        int32_t n_records = 0;
        memset(state->unit, 0, s->n_support * sizeof *state->unit);
        for (int32_t i = 0; i < M; i++) {
            const int64_t present = records[i] != NULL;
            n_records += (int32_t)present;
            find_mass(s, records[i] ? records[i] : state->zeros);
            for (size_t y = 0; y < s->n_support; y++)
                state->unit[y] += present * state->mass[y];
        }
        const dpi_mean mean = dpi_mean_of(n_records, M);
        for (size_t y = 0; y < s->n_support; y++)
            s->sum[y] += (int64_t)dpi_mean_floor(mean, (uint64_t)state->unit[y]);
    }
}

/* ---- A step --------------------------------------------------------------------------------- */

/* What a step reads: the likeliest public tokens, alone. Where there is one, nothing. */
static dpi_status candidates(dpi_sampler *s, const float *public_logits, dpi_error *err) {
    DPI_TRY(dpi_sampler_fix(s, public_logits, err));
    dpi_sampler_support(s, s->options.top_k, 1, 0);
    s->is_free = s->n_support == 1;
    return DPI_STATUS_OK;
}

static dpi_status step(dpi_sampler *s, const float *public_logits,
                       const float *const *reference_logits, int32_t *token, dpi_error *err) {
    tang_state *state = s->state;
    size_t index = 0;
    if (!reference_logits && s->options.n_ref > 0)
        return dpi_fail(err, DPI_STATUS_ARG, "the reference logits are NULL, must be pointers to "
                        "the logits of each reference");
    DPI_TRY(candidates(s, public_logits, err));
    if (!s->is_free) {
        dpi_tang_sums(s, reference_logits);
        DPI_TRY(dpi_normal_rounded(s->plan.noise_sigma, s->options.random, s->options.random_user,
                                   state->noise, s->n_support, err));
        index = dpi_noisy_max(s->sum, state->noise, s->n_support);
        s->n_private++;
    }
    *token = s->support[index];
    return DPI_STATUS_OK;
}

/* ---- Life cycle ----------------------------------------------------------------------------- */

static dpi_status create(dpi_sampler *s, dpi_error *err) {
    const size_t n = (size_t)s->options.n_vocab;
    tang_state *state = s->state = dpi_calloc(1, sizeof *state);
    if (state) {
        state->zeros = dpi_calloc(n, sizeof *state->zeros);
        state->logits = dpi_calloc(n, sizeof *state->logits);
        state->mass = dpi_calloc(n, sizeof *state->mass);
        state->unit = dpi_calloc(n, sizeof *state->unit);
        state->noise = dpi_calloc(n, sizeof *state->noise);
    }
    return state && state->zeros && state->logits && state->mass && state->unit && state->noise
               ? DPI_STATUS_OK
               : dpi_no_memory(err, "a sampler of %zu tokens", n);
}

static void forget(dpi_sampler *s) {
    tang_state *state = s->state;
    dpi_wipe(state->logits, s->n_support * sizeof *state->logits);
    dpi_wipe(state->mass, s->n_support * sizeof *state->mass);
    dpi_wipe(state->unit, s->n_support * sizeof *state->unit);
    dpi_wipe(state->noise, s->n_support * sizeof *state->noise);
}

static void release(dpi_sampler *s) {
    const size_t n = (size_t)s->options.n_vocab;
    tang_state *state = s->state;
    if (!state)
        return;
    free(state->zeros);
    dpi_wipe_free(state->logits, n * sizeof *state->logits);
    dpi_wipe_free(state->mass, n * sizeof *state->mass);
    dpi_wipe_free(state->unit, n * sizeof *state->unit);
    dpi_wipe_free(state->noise, n * sizeof *state->noise);
    dpi_wipe_free(state, sizeof *state);
}

const dpi_method_ops dpi_method_tang = {
    .info = {.id = DPI_METHOD_TANG,
             .name = "tang",
             .title = "Tang et al. 2024",
             .help = "the largest sum of probabilities with Gaussian noise, every token private",
             .source = "Tang et al. 2024, Algorithm 1",
             .has_guarantee = 1,
             .min_ref = 1,
             .max_ref = DPI_REF_MAX,
             .accountants = 1u << DPI_ACCOUNTANT_ZCDP,
             .adjacencies = 1u << DPI_ADJACENCY_REPLACE_BY_NULL | 1u << DPI_ADJACENCY_ADD_REMOVE,
             .subsamples = 1,
             .units = 1,
             .output = ""},
    .parameters = parameters,
    .facts = facts,
    .settings = settings,
    .plan = make_plan,
    .create = create,
    .candidates = candidates,
    .step = step,
    .forget = forget,
    .free = release,
};
