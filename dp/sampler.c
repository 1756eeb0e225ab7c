/* sampler.c - one token from B+1 logit vectors: clip, aggregate, Top-k+, weights, draw.
 *
 * Layout: options and plan; the public half (fixed-point logits, support); the private half
 * (clip and aggregate); the methods, one table row each; the state machine. PRIVACY.md goes
 * through the same steps with their proofs. */
#include "sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "mem.h"
#include "rng.h"
#include "status.h"

enum {
    N_REF_MAX = 4096,
    N_TOKENS_MAX = 1 << 20,
};

static const double LOGIT_MAX = 1e4; /* magnitude of a public logit */
static const double UNIT = 0x1p20;   /* fixed point: 2^20 per logit */

struct dpi_sampler {
    dpi_sampler_options options;
    dpi_sampler_plan plan;
    dpi_weight_tables tables;
    bool begun;
    int32_t n_drawn; /* of the current text */

    int64_t *fixed;   /* [n_vocab] P, the public logits below their maximum */
    int32_t *support; /* [n_vocab] the first n_support are V_k+ */
    size_t n_support;

    /* Private; only the first n_support entries are used, and they are wiped after each step. */
    int64_t *sum;      /* [n_vocab] S */
    int64_t *utility;  /* [n_vocab] U = B P + S */
    dpi_u128 *weights; /* [n_vocab] */
};

/* A method is a row of `methods`: what it costs, and how it turns logits into a distribution. */
typedef struct method {
    int32_t min_ref, max_ref;
    bool greedy; /* tau = 0 is allowed */
    dpi_status (*plan)(const dpi_sampler_options *options, dpi_sampler_plan *plan, dpi_error *err);
    /* Fills support, n_support, sum and weights. */
    dpi_status (*distribution)(dpi_sampler *sampler, const float *public_logits,
                               const float *const *reference_logits, dpi_error *err);
} method;

static const method *find_method(int32_t id);

/* ---- Options and plan ----------------------------------------------------------------------- */

void dpi_sampler_options_init(dpi_sampler_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->method = DPI_METHOD_INVISIBLEINK;
    options->top_k = 100;
    options->tau = 1;
}

static dpi_status check_int(const char *name, int32_t value, int32_t min, int32_t max,
                            dpi_error *err) {
    if (value >= min && value <= max)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "%s is %d, must be %d..%d", name, value, min, max);
}

static dpi_status check_options(const dpi_sampler_options *o, dpi_error *err) {
    if (!o)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler options are NULL");
    if (o->struct_size != sizeof *o)
        return dpi_fail(err, DPI_STATUS_ARG, "sampler options of %zu bytes, must be %zu",
                        o->struct_size, sizeof *o);
    const method *m = find_method(o->method);
    if (!m)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "method is %d, must be %d (plain) or %d (invisibleink)", o->method,
                        DPI_METHOD_PLAIN, DPI_METHOD_INVISIBLEINK);
    DPI_TRY(check_int("n_vocab", o->n_vocab, 1, DPI_WEIGHTS_MAX, err));
    DPI_TRY(check_int("n_ref", o->n_ref, m->min_ref, m->max_ref, err));
    DPI_TRY(check_int("n_tokens", o->n_tokens, 1, N_TOKENS_MAX, err));
    DPI_TRY(check_int("top_k", o->top_k, 0, o->n_vocab, err));
    /* Written so that a NaN is refused. */
    if (!(o->tau >= 0.01 && o->tau <= 100) && !(m->greedy && o->tau == 0))
        return dpi_fail(err, DPI_STATUS_ARG, "tau is %g, must be 0.01..100%s", o->tau,
                        m->greedy ? " or 0" : "");
    if (m->max_ref > 0 && !(o->rho > 0 && o->rho <= 1e6))
        return dpi_fail(err, DPI_STATUS_ARG, "rho is %g, must be above 0 and at most 1e6", o->rho);
    return DPI_STATUS_OK;
}

/* The slots that utilities are multiplied by. */
static int32_t denominator(const dpi_sampler_options *o) { return o->n_ref > 0 ? o->n_ref : 1; }

static dpi_status make_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan, dpi_error *err) {
    DPI_TRY(check_options(o, err));
    dpi_sampler_plan made = {.struct_size = sizeof made};
    made.a = dpi_weights_scale(denominator(o), o->tau > 0 ? o->tau : 1);
    DPI_TRY(find_method(o->method)->plan(o, &made, err));
    *plan = made;
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_plan_make(const dpi_sampler_options *options, dpi_sampler_plan *plan,
                                 dpi_error *err) {
    if (!plan || plan->struct_size != sizeof *plan)
        return dpi_fail(err, DPI_STATUS_ARG, "a sampler plan of %zu bytes, must be %zu",
                        plan ? plan->struct_size : 0, sizeof *plan);
    return make_plan(options, plan, err);
}

/* ---- The public half: P and V_k+ ------------------------------------------------------------ */

/* Nearest integer, ties to even, |x| < 2^51: adding 1.5 * 2^52 leaves no fraction bits. The same
 * as llrint in the default rounding mode; in any other mode still an integer next to x. */
static inline int64_t round_even(double x) {
    const double shift = 0x1.8p52;
    double shifted = x + shift;
    int64_t bits, zero;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&zero, &shift, sizeof zero);
    return bits - zero;
}

/* fixed = P = rne((p - max p) * 2^20), saturated at -1e4 logits; *top = the most likely token,
 * lowest id on ties. The difference is one double subtraction of two floats, the product is
 * exact, so every implementation gets the same integers. */
static dpi_status fix_public(const float *logits, int32_t n, int64_t *fixed, int32_t *top,
                             dpi_error *err) {
    int32_t best = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!(fabs((double)logits[i]) <= LOGIT_MAX))
            return dpi_fail(err, DPI_STATUS_NUMERIC,
                            "public logit %d of %d is not finite or is beyond +-%g", i, n,
                            LOGIT_MAX);
        if (logits[i] > logits[best])
            best = i;
    }
    const double max = (double)logits[best], lowest = -LOGIT_MAX * UNIT;
    for (int32_t i = 0; i < n; i++) {
        double d = ((double)logits[i] - max) * UNIT;
        fixed[i] = round_even(d < lowest ? lowest : d);
    }
    *top = best;
    return DPI_STATUS_OK;
}

/* The k-th largest of fixed[n] (k in 1..n; duplicates count), by the digits of -P < 2^36 from the
 * top: three linear passes, whatever the values. */
static int64_t kth_largest(const int64_t *fixed, int32_t n, int32_t k) {
    enum { DIGIT_BITS = 12, N_DIGITS = 1 << DIGIT_BITS };
    int64_t prefix = 0; /* the digits found so far of the answer's -P */
    int64_t rank = k;   /* among the values that share them */
    for (int shift = 2 * DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        int32_t count[N_DIGITS] = {0};
        for (int32_t i = 0; i < n; i++) {
            int64_t digits = -fixed[i] >> shift;
            if (digits >> DIGIT_BITS == prefix)
                count[digits & (N_DIGITS - 1)]++;
        }
        int64_t digit = 0;
        while (rank > count[digit])
            rank -= count[digit++];
        prefix = prefix << DIGIT_BITS | digit;
    }
    return -prefix;
}

/* V_k+ = { y : B P(y) >= B P_(k) - 2K }, ties included, ascending (PRIVACY.md, Lemma 2). A
 * function of public numbers: branches and addresses are free here. */
static void find_support(dpi_sampler *s) {
    const int32_t n = s->options.n_vocab, k = s->options.top_k;
    const int64_t B = denominator(&s->options);
    const int64_t least = k == 0 ? INT64_MIN : B * kth_largest(s->fixed, n, k) - 2 * s->plan.K;
    s->n_support = 0;
    for (int32_t i = 0; i < n; i++)
        if (B * s->fixed[i] >= least)
            s->support[s->n_support++] = i;
}

/* ---- The private half: c, S, U -------------------------------------------------------------- */

/* x, or +0 if it is not finite; without a branch. */
static inline double finite_or_zero(double x) {
    const uint64_t exponent = UINT64_C(0x7ff) << 52;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= (uint64_t)0 - (uint64_t)((bits & exponent) != exponent);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* c = clip(l - p - centre) in units of 2^-20, NaN and infinities 0: an integer in [-K, K] for any
 * bits of `l` (PRIVACY.md, Lemma 1). The clamp of doubles keeps the rounding in range, the clamp
 * of integers is the one that the proof needs. Centring comes before clipping, never after. */
static inline int64_t contribution(float l, float p, double centre, int64_t K) {
    const double bound = (double)K;
    double d = finite_or_zero(((double)l - (double)p - centre) * UNIT);
    d = d < -bound ? -bound : d;
    d = d > bound ? bound : d;
    return dpi_i64_max(dpi_i64_min(round_even(d), K), -K);
}

/* sum += the contributions of one record on the support. */
static void add_record(const dpi_sampler *s, const float *public_logits, const float *logits,
                       int64_t *sum) {
    const double centre = 0; /* m_i: a function of this record and public data only */
    const int64_t K = s->plan.K;
    for (size_t i = 0; i < s->n_support; i++) {
        int32_t y = s->support[i];
        sum[i] += contribution(logits[y], public_logits[y], centre, K);
    }
}

/* A null slot is given the public logits, whose contribution is exactly 0 and whose work is that
 * of any other record. */
static void aggregate(dpi_sampler *s, const float *public_logits,
                      const float *const *reference_logits) {
    const int64_t B = denominator(&s->options);
    memset(s->sum, 0, s->n_support * sizeof *s->sum);
    for (int32_t j = 0; j < s->options.n_ref; j++) {
        const float *logits = reference_logits[j];
        add_record(s, public_logits, logits ? logits : public_logits, s->sum);
    }
    for (size_t i = 0; i < s->n_support; i++)
        s->utility[i] = B * s->fixed[s->support[i]] + s->sum[i];
}

/* ---- InvisibleInk, Algorithm 1 -------------------------------------------------------------- */

static dpi_status invisibleink_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan,
                                    dpi_error *err) {
    const int32_t factor = DPI_RANGE_REPLACE_BY_NULL;
    plan->K = dpi_clip_calibrate(plan->a, factor, o->n_tokens, o->rho);
    if (plan->K < 1)
        return dpi_fail(err, DPI_STATUS_BUDGET,
                        "rho %g over %d tokens with %d references at temperature %g leaves no clip "
                        "range: raise rho, the references or the temperature, or lower the tokens",
                        o->rho, o->n_tokens, o->n_ref, o->tau);
    plan->clip =
        fmin(o->n_ref * o->tau * sqrt(2 * o->rho / o->n_tokens), (double)DPI_CLIP_MAX / UNIT);
    plan->eta = dpi_eta_bound(factor * plan->K, plan->a);
    plan->rho_token = dpi_rho_token_bound(plan->eta);
    plan->rho_total = dpi_rho_total_bound(plan->rho_token, o->n_tokens);
    return DPI_STATUS_OK;
}

static dpi_status invisibleink_distribution(dpi_sampler *s, const float *public_logits,
                                            const float *const *reference_logits, dpi_error *err) {
    if (!reference_logits)
        return dpi_fail(err, DPI_STATUS_ARG, "the reference logits are NULL, must be %d pointers",
                        s->options.n_ref);
    int32_t top;
    DPI_TRY(fix_public(public_logits, s->options.n_vocab, s->fixed, &top, err));
    find_support(s);
    aggregate(s, public_logits, reference_logits);
    dpi_weights_compute(&s->tables, s->plan.a, s->utility, s->n_support, s->weights);
    return DPI_STATUS_OK;
}

/* ---- Plain Top-k: no reference, no guarantee ------------------------------------------------ */

static dpi_status plain_plan(const dpi_sampler_options *o, dpi_sampler_plan *plan, dpi_error *err) {
    (void)o, (void)err;
    plan->eta = plan->rho_token = plan->rho_total = INFINITY; /* what is not bounded */
    return DPI_STATUS_OK;
}

static dpi_status plain_distribution(dpi_sampler *s, const float *public_logits,
                                     const float *const *reference_logits, dpi_error *err) {
    (void)reference_logits;
    int32_t top;
    DPI_TRY(fix_public(public_logits, s->options.n_vocab, s->fixed, &top, err));
    if (s->options.tau > 0) {
        find_support(s);
    } else {
        s->support[0] = top;
        s->n_support = 1;
    }
    aggregate(s, public_logits, NULL);
    dpi_weights_compute(&s->tables, s->plan.a, s->utility, s->n_support, s->weights);
    return DPI_STATUS_OK;
}

static const method methods[] = {
    [DPI_METHOD_PLAIN] = {0, 0, true, plain_plan, plain_distribution},
    [DPI_METHOD_INVISIBLEINK] = {1, N_REF_MAX, false, invisibleink_plan, invisibleink_distribution},
};

static const method *find_method(int32_t id) {
    return id >= 0 && id < (int32_t)(sizeof methods / sizeof *methods) ? &methods[id] : NULL;
}

/* ---- Life cycle and state machine ----------------------------------------------------------- */

dpi_status dpi_sampler_create(const dpi_sampler_options *options, dpi_sampler **sampler,
                              dpi_error *err) {
    dpi_sampler_plan plan;
    DPI_TRY(make_plan(options, &plan, err));
    dpi_sampler *s = dpi_calloc(1, sizeof *s);
    if (!s)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a sampler");
    s->options = *options;
    s->plan = plan;
    dpi_weights_tables(&s->tables);
    const size_t n = (size_t)options->n_vocab;
    s->fixed = dpi_calloc(n, sizeof *s->fixed);
    s->support = dpi_calloc(n, sizeof *s->support);
    s->sum = dpi_calloc(n, sizeof *s->sum);
    s->utility = dpi_calloc(n, sizeof *s->utility);
    s->weights = dpi_calloc(n, sizeof *s->weights);
    if (!s->fixed || !s->support || !s->sum || !s->utility || !s->weights) {
        dpi_sampler_free(s);
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a sampler of %zu tokens", n);
    }
    *sampler = s;
    return DPI_STATUS_OK;
}

void dpi_sampler_free(dpi_sampler *s) {
    if (!s)
        return;
    const size_t n = (size_t)s->options.n_vocab;
    /* The public half too: a plain run may have been given a reference as its prompt. */
    dpi_wipe_free(s->fixed, n * sizeof *s->fixed);
    dpi_wipe_free(s->support, n * sizeof *s->support);
    dpi_wipe_free(s->sum, n * sizeof *s->sum);
    dpi_wipe_free(s->utility, n * sizeof *s->utility);
    dpi_wipe_free(s->weights, n * sizeof *s->weights);
    dpi_wipe_free(s, sizeof *s);
}

dpi_status dpi_sampler_begin(dpi_sampler *sampler, dpi_error *err) {
    if (!sampler)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler is NULL");
    sampler->begun = true;
    sampler->n_drawn = 0;
    return DPI_STATUS_OK;
}

void dpi_sampler_forget(dpi_sampler *s) {
    dpi_wipe(s->sum, s->n_support * sizeof *s->sum);
    dpi_wipe(s->utility, s->n_support * sizeof *s->utility);
    dpi_wipe(s->weights, s->n_support * sizeof *s->weights);
}

dpi_status dpi_sampler_distribution(dpi_sampler *s, const float *public_logits,
                                    const float *const *reference_logits,
                                    dpi_distribution *distribution, dpi_error *err) {
    dpi_sampler_forget(s);
    DPI_TRY(find_method(s->options.method)->distribution(s, public_logits, reference_logits, err));
    *distribution = (dpi_distribution){.n_support = (int64_t)s->n_support,
                                       .support = s->support,
                                       .sum = s->sum,
                                       .weights = s->weights};
    return DPI_STATUS_OK;
}

dpi_status dpi_sampler_step(dpi_sampler *s, const float *public_logits,
                            const float *const *reference_logits, int32_t *token, dpi_error *err) {
    if (!s || !public_logits || !token)
        return dpi_fail(err, DPI_STATUS_ARG, "the sampler, the public logits or the token is NULL");
    if (!s->begun)
        return dpi_fail(err, DPI_STATUS_STATE, "a sampler's step comes after its begin");
    if (s->n_drawn >= s->options.n_tokens)
        return dpi_fail(err, DPI_STATUS_BUDGET, "all %d tokens of this text have been drawn",
                        s->options.n_tokens);
    dpi_distribution d;
    DPI_TRY(dpi_sampler_distribution(s, public_logits, reference_logits, &d, err));
    uint64_t bits[DPI_DRAW_WORDS];
    dpi_status status =
        dpi_random_fill(s->options.random, s->options.random_user, bits, sizeof bits, err);
    if (status == DPI_STATUS_OK) {
        s->n_drawn++;
        *token = d.support[dpi_weights_draw(d.weights, (size_t)d.n_support, bits)];
    }
    dpi_wipe(bits, sizeof bits);
    dpi_sampler_forget(s);
    return status;
}

const dpi_sampler_options *dpi_sampler_options_get(const dpi_sampler *sampler) {
    return &sampler->options;
}

const dpi_sampler_plan *dpi_sampler_plan_get(const dpi_sampler *sampler) { return &sampler->plan; }
