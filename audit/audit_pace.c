/* audit_pace.c - loss of whole texts with a pace: neighbours with the same history, token after
 * token. Decisions are recomputed from the public logits by the formulas of dp/PRIVACY.md section
 * 13, in long double. A free step is the same in both worlds and adds nothing; another one loses no
 * more than its own eta; and what they cost adds up to no more than the budget. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/exact/weights.h"
#include "dp/methods/method.h"

enum { V = DPI_AUDIT_VOCAB, N_TEXTS = 270, N_TOKENS = 60 }; /* a tenth has each pace with all */

static const long double LN2 = 0.693147180559945309417232121458176568L;
/* Between the formulas and the fixed-point numbers that decisions are made of. */
static const long double MARGIN = 1e-5L;

typedef struct text {
    dpi_audit *audit;
    dpi_audit_case records;
    dpi_audit_pair pair; /* the neighbour is without record 0 */
    /* What a public rule allows in a step, and the case on a vocabulary of these tokens alone: the
     * formulas are held to that one. */
    bool is_masked;
    dpi_audit_tokens allowed;
    dpi_audit_case seen;
    int32_t support[V]; /* of a distribution, as tokens of `seen` */
    const dpi_sampler_plan *plan;
    int32_t factor;
    int32_t n_private;
    long double cost, most; /* of the private steps, by their clip bounds: at least, at most */
    long double losses; /* of what record 0 changed */
    double max_ratio;   /* of a loss to its step's eta */
} text;

/* ---- Cases ----------------------------------------------------------------------------------- */

static void random_options(dpi_audit *a, dpi_sampler_options *o, int32_t i) {
    dpi_sampler_options_init(o);
    o->accountant = i % 3;
    o->adjacency = i / 3 % 3;
    o->pace = 1 + i / 9 % 3;
    if (o->pace == DPI_PACE_SHARE && o->accountant == DPI_ACCOUNTANT_BR)
        o->accountant = DPI_ACCOUNTANT_ZCDP; /* not proven, refused */
    o->center = i / 27 % 2;
    dpi_audit_options_draw(a, o);
    o->n_tokens = N_TOKENS;
    if (o->pace == DPI_PACE_SHARE)
        o->pace_share = exp(4 * dpi_audit_uniform(a) - 1);
    if (o->pace == DPI_PACE_SHARE && dpi_audit_below(a, 2))
        o->pace_theta = .3 + .65 * dpi_audit_uniform(a);
    if (o->pace != DPI_PACE_SHARE)
        o->pace_tokens = dpi_audit_below(a, N_TOKENS);
    if (o->pace != DPI_PACE_SHARE)
        o->pace_theta = o->pace == DPI_PACE_TOP ? .3 + .65 * dpi_audit_uniform(a)
                                                : .02 + .4 * dpi_audit_uniform(a);
    if (dpi_audit_below(a, 2))
        o->free_top_k = 1 + dpi_audit_below(a, V);
    if (dpi_audit_below(a, 2))
        o->free_tau = dpi_audit_tau(a);
    if (o->accountant == DPI_ACCOUNTANT_BR) { /* of few steps: its plans take long */
        o->pace_tokens = 1 + dpi_audit_below(a, 4);
        o->epsilon = .5 + 4 * dpi_audit_uniform(a);
        o->delta = 1e-6;
    } else if (o->accountant == DPI_ACCOUNTANT_ZCDP && o->adjacency != DPI_ADJACENCY_ZERO_OUT &&
               o->pace != DPI_PACE_SHARE && i % 2 == 0) { /* secret batches, a quota that ends */
        o->pace_tokens = 1 + dpi_audit_below(a, N_TOKENS / 6);
        o->subsample = .01 + .99 * dpi_audit_uniform(a);
        o->epsilon = .5 + 4 * dpi_audit_uniform(a);
        o->delta = 1e-6;
    } else {
        o->rho = exp(5 * dpi_audit_uniform(a) - 4);
    }
}

/* Public logits from nearly sure to nearly even. Record 0 is often at both ends of the clip
 * range. */
static void next_logits(text *x) {
    dpi_audit *a = x->audit;
    dpi_audit_case *w = &x->records;
    const double sure = exp(4 * dpi_audit_uniform(a) - 2);
    const bool extreme = dpi_audit_below(a, 2);
    for (int y = 0; y < V; y++)
        w->public_logits[y] = (float)(sure * dpi_audit_normal(a));
    for (int j = 0; j < DPI_AUDIT_REFS; j++)
        for (int y = 0; y < V; y++)
            w->reference[j][y] = w->public_logits[y] + (float)dpi_audit_normal(a);
    for (int y = 0; y < V && extreme; y++)
        w->reference[0][y] = w->public_logits[y] + (y % 2 ? 500 : -500);
}

/* Tokens that are allowed, of both texts. */
static dpi_status next_mask(text *x) {
    dpi_audit_case *w = &x->records, *seen = &x->seen;
    const dpi_sampler_options *o = &w->options;
    x->allowed.n = V;
    if (x->is_masked) {
        dpi_audit_tokens_draw(x->audit, &x->allowed);
        DPI_TRY(dpi_audit_pair_allow(x->audit, &x->allowed, &x->pair));
    }
    const int32_t n = x->allowed.n;
    seen->options = *o;
    seen->options.n_vocab = n;
    seen->options.top_k = o->top_k > 0 && o->top_k < n ? o->top_k : n;
    seen->options.free_top_k = o->free_top_k > 0 && o->free_top_k < n ? o->free_top_k : n;
    if (o->free_top_k == 0)
        seen->options.free_top_k = seen->options.top_k;
    for (int32_t i = 0; i < n; i++)
        seen->public_logits[i] = w->public_logits[x->is_masked ? x->allowed.at[i] : i];
    return DPI_STATUS_OK;
}

/* d as of `seen`. False: a token that is not allowed. */
static bool as_seen(text *x, const dpi_distribution *d, dpi_distribution *own) {
    *own = *d;
    if (!x->is_masked)
        return true;
    for (int64_t i = 0, k = 0; i < d->n_support; i++, k++) {
        while (k < x->allowed.n && x->allowed.at[k] != d->support[i])
            k++;
        if (k == x->allowed.n)
            return false;
        x->support[i] = (int32_t)k;
    }
    own->support = x->support;
    return true;
}

/* ---- What the formulas say ------------------------------------------------------------------- */

static int descending(const void *x, const void *y) {
    const float a = *(const float *)x, b = *(const float *)y;
    return (a < b) - (a > b);
}

/* Probability of the likeliest token among the top_k public ones, ties included. */
static long double top_of(const text *x) {
    const dpi_sampler_options *o = &x->seen.options;
    const int64_t D = dpi_sampler_denominator(o);
    const long double unit = (long double)x->plan->a * (long double)D * LN2 * 0x1p-28L;
    float sorted[V];
    long double sum = 0;
    memcpy(sorted, x->seen.public_logits, sizeof sorted);
    qsort(sorted, (size_t)o->n_vocab, sizeof *sorted, descending);
    const float least = sorted[o->top_k - 1];
    for (int y = 0; y < o->n_vocab && sorted[y] >= least; y++)
        sum += expl((long double)(sorted[y] - sorted[0]) * unit);
    return 1 / sum;
}

static long double eta_of(const text *x, long double K) {
    return (long double)x->factor * K * (long double)x->plan->a * LN2 * 0x1p-48L + 0x1p-38L;
}

static long double cost_of(const text *x, long double K) {
    return K > 0 ? eta_of(x, K) * eta_of(x, K) / 8 : 0;
}

/* The largest change that clipped references can make: dp/PRIVACY.md section 13. */
static long double change_of(const text *x, long double top) {
    const int64_t D = dpi_sampler_denominator(&x->records.options);
    const long double s = (long double)D * (long double)x->plan->K * (long double)x->plan->a * LN2 *
                          0x1p-48L;
    const long double m = fminl(1 - top, 1 / (1 + expl(s)));
    return m / (m + (1 - m) * expl(-2 * s)) - m;
}

/* Clip bound of the step, if it is private, and by how much it may be off; 0 if it must be free.
 * *close: it may be free all the same, or have less, as the decision is too close to call. */
static long double clip_of(const text *x, long double *off, bool *close) {
    const dpi_sampler_options *o = &x->records.options;
    const long double top = top_of(x), K = (long double)x->plan->K;
    const bool filter = o->accountant == DPI_ACCOUNTANT_FILTER;
    *off = 0;
    *close = false;
    if (x->allowed.n == 1) /* there is no choice */
        return 0;
    if (o->pace != DPI_PACE_SHARE) {
        const long double found = o->pace == DPI_PACE_TOP ? o->pace_theta - top
                                                          : change_of(x, top) - o->pace_theta;
        *close = fabsl(found) < MARGIN;
        return !filter && x->n_private >= x->plan->n_private ? *close = false, 0
               : found >= 0 || *close                        ? K
                                                             : 0;
    }
    if (o->pace_theta > 0 && top > o->pace_theta + MARGIN)
        return 0;
    const bool close_to_theta = o->pace_theta > 0 && top > o->pace_theta - MARGIN;
    const long double wanted = K * sqrtl(1 - top);
    *off = K * (sqrtl(fminl(1, 1 - top + MARGIN)) - sqrtl(fmaxl(0, 1 - top - MARGIN))) + 1;
    const bool left = filter || x->most + cost_of(x, wanted + *off) <= x->plan->rho_budget;
    /* The last step takes what is left, which may be nothing. */
    *close = close_to_theta || wanted <= *off || !left;
    return wanted;
}

/* ---- Comparisons ----------------------------------------------------------------------------- */

/* A free step: nothing of a record is in it, and it has the law that the options say. */
static void check_free(text *x, const dpi_distribution *d, const dpi_distribution *e) {
    const dpi_sampler_options *o = &x->seen.options;
    const int64_t D = dpi_sampler_denominator(o);
    dpi_sampler_plan law = *x->plan;
    bool nothing = true;
    for (int64_t i = 0; i < d->n_support; i++)
        nothing &= d->sum[i] == 0 && e->sum[i] == 0 && d->weights[i] == e->weights[i];
    dpi_audit_hold(x->audit, nothing, "a reference is in a free step");
    law.a = dpi_weights_scale((int32_t)D, o->free_tau > 0 ? o->free_tau : o->tau);
    dpi_audit_formulas(x->audit, &x->seen, &law, D, o->free_top_k, 0, d);
}

/* Another step: it loses at most its own eta, whatever the pace says of other steps. */
static void check_private(text *x, const dpi_distribution *d, const dpi_distribution *e,
                          long double K, long double off, bool close) {
    const dpi_sampler_options *o = &x->records.options;
    const long double loss = dpi_audit_loss(d, e), eta = eta_of(x, K + off);
    dpi_audit_hold(x->audit, loss <= eta + 0x1p-50L, "a loss exceeds the eta of its step");
    if (o->pace != DPI_PACE_SHARE)
        dpi_audit_formulas(x->audit, &x->seen, x->plan, dpi_sampler_denominator(o),
                           x->seen.options.top_k, 2 * x->plan->K, d);
    x->n_private++;
    x->cost += close ? loss * loss / 8 : cost_of(x, K - off);
    x->most += cost_of(x, K + off);
    x->losses += loss * loss / 8;
    x->max_ratio = fmax(x->max_ratio, (double)(loss / eta));
}

/* Whether the references are still needed: public, and they are where the token is private. */
static void check_need(text *x, bool is_free) {
    const bool needed = dpi_sampler_needs_references(x->pair.with);
    dpi_audit_hold(x->audit, dpi_sampler_needs_references(x->pair.without) == needed,
                   "whether references are needed depends on a record");
    dpi_audit_hold(x->audit, needed || is_free, "a private token where no record is needed");
}

/* One token in both worlds. */
static dpi_status compare_token(text *x) {
    dpi_audit *a = x->audit;
    const dpi_distribution *d = &x->pair.d, *e = &x->pair.e;
    long double off;
    bool close;
    int32_t ignored;
    next_logits(x);
    DPI_TRY(next_mask(x));
    DPI_TRY(dpi_audit_pair_compare(a, &x->records, 0, &x->pair));
    if (!dpi_audit_same_support(a, d, e))
        return DPI_STATUS_OK;
    dpi_distribution own;
    if (!dpi_audit_hold(a, as_seen(x, d, &own), "a token that is not allowed"))
        return DPI_STATUS_OK;
    const long double K = clip_of(x, &off, &close);
    check_need(x, d->is_free);
    dpi_audit_hold(a, close || d->is_free == (K == 0), "a decision is not that of the pace");
    if (d->is_free)
        check_free(x, &own, e);
    else
        check_private(x, &own, e, K, off, close);
    return dpi_audit_pair_step(a, &x->records, &x->pair, &ignored);
}

static void check_budget(const text *x) {
    const dpi_sampler_options *o = &x->records.options;
    const bool filter = o->accountant == DPI_ACCOUNTANT_FILTER;
    if (filter)
        dpi_audit_hold(x->audit, x->losses <= (long double)o->rho,
                       "a record spends more than its budget");
    else if (o->pace != DPI_PACE_SHARE)
        dpi_audit_hold(x->audit, x->n_private <= x->plan->n_private,
                       "more private tokens than the quota");
    if (o->accountant == DPI_ACCOUNTANT_ZCDP)
        dpi_audit_hold(x->audit, x->cost <= (long double)x->plan->rho_total * (1 + 1e-12L) &&
                                     x->plan->rho_total <=
                                         (o->rho > 0 ? o->rho : x->plan->rho_budget),
                       "steps cost more than the budget");
}

static dpi_status play(text *x) {
    const dpi_sampler_options *o = &x->records.options;
    DPI_TRY(dpi_audit_pair_create(x->audit, o, &x->pair));
    x->plan = dpi_sampler_plan_get(x->pair.with);
    x->factor = o->adjacency == DPI_ADJACENCY_ZERO_OUT ? 4 : 2;
    dpi_audit_hold(x->audit, dpi_audit_charges(o, x->plan, x->factor),
                   "the plan charges less than its integers cost");
    for (int round = 0; round < 2; round++) { /* a second text: a whole budget */
        DPI_TRY(dpi_audit_pair_begin(x->audit, &x->pair));
        x->n_private = 0;
        x->cost = x->most = x->losses = 0;
        for (int i = 0; i < N_TOKENS; i++)
            DPI_TRY(compare_token(x));
        check_budget(x);
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_pace(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_TEXTS);
    double most = 0;
    DPI_TRY(dpi_audit_begin(a, "loss", "InvisibleInk, texts with a pace"));
    for (int32_t i = 0; i < n; i++) {
        text x = {.audit = a, .is_masked = dpi_audit_below(a, 3) == 0};
        random_options(a, &x.records.options, i);
        dpi_audit_fill(&x.records);
        dpi_status status = play(&x);
        dpi_audit_pair_free(&x.pair);
        DPI_TRY(status);
        most = fmax(most, x.max_ratio);
    }
    dpi_audit_end(a, "largest loss / eta of its step", most, .99, 1 + 1e-9);
    return DPI_STATUS_OK;
}
