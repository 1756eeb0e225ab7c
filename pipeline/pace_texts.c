/* pace_texts.c - a pace from public texts, see dpinfer/pace.h: what is kept of the texts, and what
 * follows from it. */
#include "pipeline/pace_texts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "dp/account/pace.h"
#include "dp/methods/method.h"
#include "dpinfer/registry.h"

static const uint64_t SEED = 0x70616365; /* any constant */
static const double WEAK = 1.5;

/* The probabilities of a step by octaves: n[i] tokens have 2^-i <= p < 2^-(i-1), and sum[i] is
 * their sum. The last octave has all below it too. */
enum { OCTAVES = 24 };

typedef struct octaves {
    float n[OCTAVES], sum[OCTAVES];
} octaves;

/* The probability of the likeliest token, and all of them. */
typedef struct public_step {
    double top;
    octaves all;
} public_step;

typedef struct public_text {
    public_step *step; /* [n], room for n_most */
    int32_t n, n_most;
    bool ended; /* by the model */
    bool is_said;  /* what it says is known */
    uint64_t said; /* its hash */
} public_text;

struct dpi_pace_texts {
    dpi_sampler_options method; /* with its kind of pace */
    dpi_sampler *sampler;       /* PLAIN, begun anew for each token; NULL: nothing is open */
    uint64_t state;             /* of its bits */
    int32_t n_texts;
    public_text at[DPI_PACE_TEXTS_MAX];
};

/* ---- Texts ----------------------------------------------------------------------------------- */

static void count_octaves(const dpi_distribution *d, octaves *all) {
    dpi_u128 sum = 0;
    for (int32_t i = 0; i < d->n_support; i++)
        sum += d->weights[i];
    for (int32_t i = 0; i < d->n_support; i++) {
        const double p = (double)d->weights[i] / (double)sum;
        const int octave = p > 0 ? -ilogb(p) : OCTAVES;
        all->n[octave < OCTAVES ? octave : OCTAVES - 1] += 1;
        all->sum[octave < OCTAVES ? octave : OCTAVES - 1] += (float)p;
    }
}

dpi_status dpi_pace_texts_begin(dpi_pace_texts *x, int32_t n_most, dpi_error *err) {
    if (x->n_texts == DPI_PACE_TEXTS_MAX)
        return dpi_fail(err, DPI_STATUS_LIMIT, "public texts: allowed %d",
                        (int)DPI_PACE_TEXTS_MAX);
    public_text *t = &x->at[x->n_texts];
    *t = (public_text){.step = dpi_calloc((size_t)n_most, sizeof *t->step), .n_most = n_most};
    if (!t->step)
        return dpi_no_memory(err, "public texts");
    x->n_texts++;
    return DPI_STATUS_OK;
}

dpi_status dpi_pace_texts_step(dpi_pace_texts *x, int32_t text, const float *logits,
                               dpi_error *err) {
    public_text *t = &x->at[text];
    dpi_distribution d;
    DPI_TRY(dpi_sampler_distribution(x->sampler, logits, NULL, &d, err));
    t->step[t->n].top = dpi_pace_top(d.weights, (size_t)d.n_support);
    count_octaves(&d, &t->step[t->n].all);
    t->n++;
    return DPI_STATUS_OK;
}

dpi_sampler *dpi_pace_texts_sampler(const dpi_pace_texts *x) { return x->sampler; }

void dpi_pace_texts_say(dpi_pace_texts *x, int32_t text, const char *said, size_t n_bytes) {
    x->at[text].is_said = true;
    x->at[text].said = dpi_hash(DPI_HASH_INIT, said, n_bytes);
}

void dpi_pace_texts_end(dpi_pace_texts *x, int32_t text) { x->at[text].ended = true; }

dpi_status dpi_pace_texts_add(dpi_pace_texts *x, const float *logits, int32_t n_tokens,
                              int32_t ended, dpi_error *err) {
    const int32_t text = x->n_texts;
    dpi_status status = DPI_STATUS_OK;
    if (!x->sampler)
        return dpi_fail(err, DPI_STATUS_ARG, "public texts: the pace of this method is not open");
    DPI_TRY(dpi_check_range("n_tokens", n_tokens, 1, x->method.n_tokens, err));
    DPI_TRY(dpi_check_range("ended", ended, 0, 1, err));
    DPI_TRY(dpi_pace_texts_begin(x, n_tokens, err));
    for (int32_t t = 0; t < n_tokens && status == DPI_STATUS_OK; t++) {
        status = dpi_sampler_begin(x->sampler, err);
        if (status == DPI_STATUS_OK)
            status = dpi_pace_texts_step(x, text, logits + (size_t)t * (size_t)x->method.n_vocab,
                                         err);
    }
    if (status != DPI_STATUS_OK) { /* the text is not there */
        free(x->at[--x->n_texts].step);
        return status;
    }
    x->at[text].ended = ended;
    return DPI_STATUS_OK;
}

/* ---- What they say --------------------------------------------------------------------------- */

/* Which steps are private: those with top <= theta, or where swing > 0 those that references could
 * change by theta. */
typedef struct rule {
    double theta, swing;
} rule;

static bool is_private(const rule *r, double top) {
    return r->swing > 0 ? dpi_pace_change(top, r->swing) >= r->theta : top <= r->theta;
}

/* Over the private steps of a public text, on average: how many, and the sum of 1 - top. */
typedef struct average {
    double n, rest;
} average;

/* Of a text in an average, with what it would still have had where it was cut. */
static double share_of(const dpi_pace_texts *x, int32_t text) {
    const double share = 1.0 / x->n_texts;
    return x->at[text].ended ? share : share * x->method.n_tokens / x->at[text].n;
}

static average average_of(const dpi_pace_texts *x, rule r) {
    average a = {0, 0};
    for (int32_t i = 0; i < x->n_texts; i++) {
        const double more = share_of(x, i);
        for (int32_t t = 0; t < x->at[i].n; t++) {
            const double top = x->at[i].step[t].top;
            a.n += is_private(&r, top) ? more : 0;
            a.rest += is_private(&r, top) ? more * (1 - top) : 0;
        }
    }
    return a;
}

static int32_t quota_of(const dpi_pace_texts *x, rule r) {
    const double n = ceil(average_of(x, r).n);
    return n < 1 ? 1 : n < x->method.n_tokens ? (int32_t)n : x->method.n_tokens;
}

/* By how much references move a log weight at most, with a quota. */
static dpi_status swing_of(const dpi_sampler_options *m, int32_t quota, double *swing,
                           dpi_error *err) {
    dpi_sampler_options o = *m;
    dpi_sampler_plan plan;
    dpi_sampler_plan_init(&plan);
    *dpi_method_quota(&o) = quota;
    DPI_TRY(dpi_sampler_plan_make(&o, &plan, err));
    *swing = plan.clip / o.tau;
    return DPI_STATUS_OK;
}

/* What references that all want one token give it at a step, on average over which: its probability
 * p becomes p / (p + (1 - p) e^(-2 swing)). They want an unlikely token more often than the public
 * model would draw it, or there would be nothing to learn from them, but not any token alike: with
 * weights p^.2 (bench/UTILITY.md). */
static double pull_of(const octaves *o, double swing) {
    double sum = 0, pull = 0;
    for (int i = 0; i < OCTAVES; i++) {
        const double p = o->n[i] > 0 ? fmin(1, o->sum[i] / o->n[i]) : 0,
                     wanted = o->n[i] * pow(p, .2);
        sum += wanted;
        pull += p > 0 ? wanted * (p / (p + (1 - p) * exp(-2 * swing)) - p) : 0;
    }
    return pull / sum;
}

/* Over the private steps of a public text, on average. */
static double pull_of_steps(const dpi_pace_texts *x, rule r, double swing) {
    double pull = 0;
    for (int32_t i = 0; i < x->n_texts; i++)
        for (int32_t t = 0; t < x->at[i].n; t++) {
            const public_step *s = &x->at[i].step[t];
            pull += is_private(&r, s->top) ? share_of(x, i) * pull_of(&s->all, swing) : 0;
        }
    return pull;
}

/* Of a theta, with T_p as given (0: its own): the clip bound of each private token is in proportion
 * to 1 / sqrt(T_p); swing is that of T_p = 1. */
static double pull_at(const dpi_pace_texts *x, double theta, int32_t n_private, double swing) {
    const rule r = {.theta = theta};
    const double n = average_of(x, r).n,
                 quota = n_private > 0 ? n_private : quota_of(x, r);
    return pull_of_steps(x, r, swing / sqrt(quota)) * fmin(1, quota / fmax(n, 1));
}

/* The least theta of .5, .55, .. .95 that moves 95 % of what the best one moves. What is free keeps
 * its form and costs no time. A smaller theta than these leaves too few tokens (measured). A clip
 * bound that moves a log weight by less than WEAK is of little use wherever it is, so such a budget
 * is as one of that much: few tokens. */
static dpi_status best_theta(const dpi_pace_texts *x, const dpi_sampler_options *m,
                             int32_t n_private, double *theta, dpi_error *err) {
    enum { FIRST = 10, LAST = 19 };
    const int32_t quota = n_private > 0 ? n_private : quota_of(x, (rule){.theta = .5});
    double pulls[LAST + 1], swing, most = 0;
    DPI_TRY(swing_of(m, quota, &swing, err));
    swing = fmax(swing, WEAK);
    for (int32_t i = FIRST; i <= LAST; i++) {
        pulls[i] = pull_at(x, .05 * i, n_private, swing * sqrt(quota));
        most = fmax(most, pulls[i]);
    }
    int32_t i = FIRST;
    while (i < LAST && (most == 0 || pulls[i] < .95 * most))
        i++;
    *theta = .05 * i;
    return DPI_STATUS_OK;
}

static dpi_status settle_top(const dpi_pace_texts *x, dpi_sampler_options *m, dpi_error *err) {
    int32_t *quota = dpi_method_quota(m);
    if (m->pace_theta == 0)
        DPI_TRY(best_theta(x, m, *quota, &m->pace_theta, err));
    if (*quota == 0)
        *quota = quota_of(x, (rule){.theta = m->pace_theta});
    return DPI_STATUS_OK;
}

/* CHANGE: above which top no step is private. References that move log weights by more than a
 * little can change all unsure steps by the same: the largest change there is. A theta is less than
 * that, and so leaves more of them. */
static double least_top(double theta_top, double swing) {
    return fmax(theta_top, 1 - .95 / (1 + exp(swing)));
}

/* Steps that CHANGE makes private with a quota: those with theta as given, or where it is 0 those
 * of theta_top and all that could change as much. */
static dpi_status count_changed(const dpi_pace_texts *x, const dpi_sampler_options *m,
                                double theta_top, int32_t quota, int32_t *n, dpi_error *err) {
    rule r = {.theta = m->pace_theta};
    DPI_TRY(swing_of(m, quota, &r.swing, err));
    if (m->pace_theta == 0)
        r = (rule){.theta = least_top(theta_top, r.swing)};
    *n = quota_of(x, r);
    return DPI_STATUS_OK;
}

/* The least quota whose clip bound leaves no more private steps than that. A larger quota has a
 * smaller clip bound, and so fewer private steps. */
static dpi_status least_quota(const dpi_pace_texts *x, dpi_sampler_options *m, double theta_top,
                              dpi_error *err) {
    int32_t less = 0, enough = m->n_tokens;
    while (enough - less > 1) {
        const int32_t quota = less + (enough - less) / 2;
        int32_t n;
        DPI_TRY(count_changed(x, m, theta_top, quota, &n, err));
        if (n <= quota)
            enough = quota;
        else
            less = quota;
    }
    m->pace_tokens = enough;
    return DPI_STATUS_OK;
}

static dpi_status settle_change(const dpi_pace_texts *x, dpi_sampler_options *m, dpi_error *err) {
    double swing, theta = 0;
    if (m->pace_theta > 0)
        return least_quota(x, m, 0, err);
    DPI_TRY(best_theta(x, m, m->pace_tokens, &theta, err));
    if (m->pace_tokens == 0)
        DPI_TRY(least_quota(x, m, theta, err));
    DPI_TRY(swing_of(m, m->pace_tokens, &swing, err));
    m->pace_theta = floor(1e6 * dpi_pace_change(least_top(theta, swing), swing)) / 1e6;
    return DPI_STATUS_OK;
}

static dpi_status settle_share(const dpi_pace_texts *x, dpi_sampler_options *m, dpi_error *err) {
    const rule r = {.theta = m->pace_theta > 0 ? m->pace_theta : 1};
    (void)err;
    m->pace_share = ceil(10 * fmax(average_of(x, r).rest, .1)) / 10;
    return DPI_STATUS_OK;
}

static dpi_status settle(const dpi_pace_texts *x, dpi_sampler_options *m, dpi_error *err) {
    return m->pace == DPI_PACE_TOP      ? settle_top(x, m, err)
           : m->pace == DPI_PACE_CHANGE ? settle_change(x, m, err)
                                        : settle_share(x, m, err);
}

/* ---- What they are --------------------------------------------------------------------------- */

static bool are_same(const dpi_pace_texts *x) {
    for (int32_t i = 0; i < x->n_texts; i++)
        if (!x->at[i].is_said || x->at[i].said != x->at[0].said)
            return false;
    return x->n_texts > 1;
}

void dpi_pace_texts_tell(const dpi_pace_texts *x, dpi_public_texts *told) {
    int64_t sum = 0;
    *told = (dpi_public_texts){.n_texts = x ? x->n_texts : 0};
    if (told->n_texts == 0)
        return;
    for (int32_t i = 0; i < x->n_texts; i++) {
        const public_text *t = &x->at[i];
        told->n_ended += t->ended;
        told->n_longest = t->n > told->n_longest ? t->n : told->n_longest;
        sum += t->n;
    }
    told->n_mean = (int32_t)((sum + x->n_texts - 1) / x->n_texts);
    told->are_same = are_same(x);
    const int64_t enough = ((int64_t)told->n_longest * 3 / 2 + 7) / 8 * 8;
    if (told->n_ended == x->n_texts && 4 * enough <= 3 * (int64_t)x->method.n_tokens)
        told->n_enough = (int32_t)enough;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* What follows from the options alone. */
static int32_t automatic(const dpi_sampler_options *m) {
    const dpi_method_ops *ops = dpi_method_ops_get(m->method);
    if (!dpi_method_parameter_find(m->method, "pace") ||
        (ops->finds_tokens && ops->finds_tokens(m)))
        return DPI_PACE_NONE;
    return m->pace_share > 0 ? DPI_PACE_SHARE : DPI_PACE_TOP;
}

static int32_t kind_of(const dpi_sampler_options *m) {
    return m->pace == DPI_PACE_AUTO ? automatic(m) : m->pace;
}

int32_t dpi_pace_is_open(const dpi_sampler_options *method) {
    dpi_sampler_options copy = *method, *m = &copy;
    const int32_t kind = kind_of(m);
    const bool quota = kind == DPI_PACE_TOP || kind == DPI_PACE_CHANGE;
    if (!dpi_method_parameter_find(m->method, "pace"))
        return 0;
    return (quota && (m->pace_theta == 0 || *dpi_method_quota(m) == 0)) ||
           (kind == DPI_PACE_SHARE && m->pace_share == 0);
}

/* Whether the rest of the options makes a plan, before texts are drawn for it. */
static dpi_status check_method(const dpi_sampler_options *m, dpi_error *err) {
    dpi_sampler_options o = *m;
    dpi_sampler_plan plan;
    dpi_sampler_plan_init(&plan);
    if (o.pace == DPI_PACE_SHARE)
        o.pace_share = 1;
    else
        *dpi_method_quota(&o) = 1;
    return dpi_sampler_plan_make(&o, &plan, err);
}

/* Draws by method PLAIN, k and tau being those of the method, from bits that are a constant:
 * nothing private is in the texts, and a plan then says what a run will do. */
static dpi_status open_sampler(dpi_pace_texts *x, dpi_error *err) {
    const dpi_sampler_options *m = &x->method;
    dpi_sampler_options plain;
    dpi_sampler_options_init(&plain);
    plain.method = DPI_METHOD_PLAIN;
    plain.n_vocab = m->n_vocab;
    plain.n_tokens = 1;
    plain.top_k = m->top_k;
    plain.tau = m->tau_public > 0 ? m->tau_public : m->tau;
    plain.isa = m->isa;
    plain.random = dpi_random_insecure;
    plain.random_user = &x->state;
    return dpi_sampler_create(&plain, &x->sampler, err);
}

dpi_status dpi_pace_texts_create(const dpi_sampler_options *method, dpi_pace_texts **texts,
                                 dpi_error *err) {
    dpi_pace_texts *x = dpi_calloc(1, sizeof *x);
    *texts = NULL;
    if (!x)
        return dpi_no_memory(err, "public texts");
    dpi_sampler_options *m = &x->method;
    dpi_status status = DPI_STATUS_OK;
    *m = *method;
    m->pace = kind_of(m);
    x->state = SEED;
    if (m->pace != DPI_PACE_NONE && m->free_top_k == 0 &&
        dpi_method_parameter_find(m->method, "free_top_k"))
        m->free_top_k = m->top_k > 0 && m->top_k < DPI_PACE_FREE_TOP_K ? m->top_k
                                                                       : DPI_PACE_FREE_TOP_K;
    if (dpi_pace_is_open(m)) {
        status = check_method(m, err);
        if (status == DPI_STATUS_OK)
            status = open_sampler(x, err);
    }
    if (status != DPI_STATUS_OK) {
        dpi_pace_texts_free(x);
        return status;
    }
    *texts = x;
    return DPI_STATUS_OK;
}

void dpi_pace_texts_free(dpi_pace_texts *x) {
    for (int32_t i = 0; x && i < x->n_texts; i++)
        free(x->at[i].step);
    if (x)
        dpi_sampler_free(x->sampler);
    free(x);
}

dpi_status dpi_pace_texts_settle(const dpi_pace_texts *x, dpi_sampler_options *method,
                                 dpi_error *err) {
    dpi_sampler_options m = x->method;
    if (x->sampler && x->n_texts == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "public texts: found none, allowed 1..%d",
                        (int)DPI_PACE_TEXTS_MAX);
    if (x->sampler)
        DPI_TRY(settle(x, &m, err));
    *method = m;
    return DPI_STATUS_OK;
}

void dpi_pace_drop(dpi_sampler_options *m) {
    m->pace = DPI_PACE_NONE;
    m->pace_theta = m->pace_share = m->free_tau = 0;
    m->pace_tokens = m->free_top_k = 0;
}

dpi_status dpi_pace_texts_settle_other(const dpi_pace_texts *x, dpi_sampler_options *method,
                                       dpi_error *err) {
    dpi_pace_texts other = *x; /* its texts are those of x, as far as they go */
    dpi_sampler_options own = x->method, *m = &other.method;
    DPI_TRY(dpi_check_range("n_tokens", method->n_tokens, 1, own.n_tokens, err));
    *m = *method;
    m->pace = own.pace, m->pace_theta = own.pace_theta, m->pace_share = own.pace_share;
    m->free_top_k = own.free_top_k;
    *dpi_method_quota(m) = *dpi_method_quota(&own);
    for (int32_t i = 0; i < other.n_texts; i++)
        if (other.at[i].n > m->n_tokens)
            other.at[i].n = m->n_tokens, other.at[i].ended = false;
    return dpi_pace_texts_settle(&other, method, err);
}
