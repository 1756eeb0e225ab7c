/* pace_texts.c - a pace from public texts, see dpinfer/pace.h.
 *
 * The texts are drawn by method PLAIN, k and tau being those of the method. Their random bits are a
 * constant: nothing private is in them, and a plan then says what a run will do. */
#include "dpinfer/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/account/pace.h"
#include "dp/methods/method.h"
#include "dp/methods/sampler.h"
#include "dpinfer/registry.h"
#include "dpinfer/text.h"
#include "engine/session.h"
#include "pipeline/released_text.h"

enum { TEXTS_MOST = 64, TEXTS = 8 };

static const uint64_t SEED = 0x70616365; /* any constant */
static const double WEAK = 1.5;

/* The probabilities of a step by octaves: n[i] tokens have 2^-i <= p < 2^-(i-1), and sum[i] is
 * their sum. The last octave has all below it too. */
enum { OCTAVES = 24 };

typedef struct octaves {
    float n[OCTAVES], sum[OCTAVES];
} octaves;

/* The public texts: of each step the probability of the likeliest token, and all of them. */
typedef struct walk {
    const dpi_pace_search *search;
    const dpi_sampler_options *method;
    dpi_sampler *sampler; /* PLAIN, begun anew for each token */
    int32_t n_steps;
    double *top;               /* [n_texts, n_steps] */
    octaves *all;              /* [n_texts, n_steps] */
    int32_t n[TEXTS_MOST];     /* steps of each text */
    bool ended[TEXTS_MOST];    /* by the model */
    int32_t live[TEXTS_MOST];  /* [n_live] texts that go on */
    int32_t token[TEXTS_MOST]; /* their last tokens */
    dpi_mask_text *masked[TEXTS_MOST]; /* places in the grammar; NULL: there is none */
    dpi_released released[TEXTS_MOST]; /* without rules nothing is kept of a text */
    int32_t n_live;
} walk;

void dpi_pace_search_init(dpi_pace_search *search) {
    *search = (dpi_pace_search){.struct_size = sizeof *search, .n_texts = TEXTS};
}

/* ---- Public texts ---------------------------------------------------------------------------- */

static dpi_status check_search(const dpi_pace_search *x, dpi_error *err) {
    if (!x || x->struct_size != sizeof *x)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_pace_search: struct_size is %zu, must be %zu",
                        x ? x->struct_size : 0, sizeof *x);
    if (!x->session || !x->public_tokens || x->n_public == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "the session of a pace is NULL, or the "
                        "public prompt empty");
    DPI_TRY(dpi_check_range("n_texts", x->n_texts, 1, TEXTS_MOST, err));
    DPI_TRY(dpi_check_range("n_steps", x->n_steps, 0, INT32_MAX, err));
    DPI_TRY(dpi_check_range("n_answer", x->n_answer, 0, (int64_t)x->n_public, err));
    for (int32_t i = 0; i < x->n_texts; i++)
        if (dpi_session_length(x->session, i) != 0)
            return dpi_fail(err, DPI_STATUS_STATE,
                            "sequence %d is not the session's, or not empty: public texts need "
                            "sequences 0..%d", (int)i, (int)x->n_texts - 1);
    return DPI_STATUS_OK;
}

static dpi_status open_texts(walk *w, dpi_error *err) {
    const dpi_pace_search *x = w->search;
    const int32_t *answer = x->public_tokens + x->n_public - x->n_answer;
    for (int32_t i = 0; i < x->n_texts; i++) {
        if (x->mask)
            DPI_TRY(dpi_mask_text_create(x->mask, &w->masked[i], err));
        if (x->rules)
            DPI_TRY(dpi_released_open_ruled(x->rules, DPI_TEXT_NONE, answer, (size_t)x->n_answer,
                                            &w->released[i], err));
    }
    return DPI_STATUS_OK;
}

static dpi_status open_walk(walk *w, uint64_t *state, dpi_error *err) {
    const dpi_sampler_options *m = w->method;
    dpi_sampler_options plain;
    dpi_sampler_options_init(&plain);
    plain.method = DPI_METHOD_PLAIN;
    plain.n_vocab = m->n_vocab;
    plain.n_tokens = 1;
    plain.top_k = m->top_k;
    plain.tau = m->tau_public > 0 ? m->tau_public : m->tau;
    plain.isa = m->isa;
    plain.random = dpi_random_insecure;
    plain.random_user = state;
    w->n_steps = w->search->n_steps > 0 && w->search->n_steps < m->n_tokens ? w->search->n_steps
                                                                            : m->n_tokens;
    DPI_TRY(dpi_sampler_create(&plain, &w->sampler, err));
    const size_t n = (size_t)w->search->n_texts * (size_t)w->n_steps;
    w->top = dpi_calloc(n, sizeof *w->top);
    w->all = dpi_calloc(n, sizeof *w->all);
    if (!w->top || !w->all)
        return dpi_no_memory(err, "public texts");
    return open_texts(w, err);
}

/* The prompt is read once. */
static dpi_status read_prompt(walk *w, dpi_error *err) {
    const dpi_pace_search *x = w->search;
    DPI_TRY(dpi_session_prefill(x->session, 0, x->public_tokens, x->n_public, NULL, err));
    for (int32_t i = 0; i < x->n_texts; i++) {
        if (i > 0)
            DPI_TRY(dpi_session_fork(x->session, 0, i, (int32_t)x->n_public, err));
        w->live[i] = i;
    }
    w->n_live = x->n_texts;
    return DPI_STATUS_OK;
}

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

/* The next token of a text, and how sure the public model was. */
static dpi_status draw(walk *w, int32_t text, int32_t *token, dpi_error *err) {
    float *logits = dpi_session_logits_row(w->search->session, text);
    const dpi_worded *worded = w->released[text].ruled;
    dpi_distribution d;
    dpi_worded_shift(worded, logits);
    DPI_TRY(dpi_sampler_begin(w->sampler, err));
    DPI_TRY(dpi_worded_allow(w->masked[text], w->released[text].ruled, w->sampler, err));
    DPI_TRY(dpi_sampler_distribution(w->sampler, logits, NULL, &d, err));
    const size_t step = (size_t)text * (size_t)w->n_steps + (size_t)w->n[text]++;
    w->top[step] = dpi_pace_top(d.weights, (size_t)d.n_support);
    count_octaves(&d, &w->all[step]);
    DPI_TRY(dpi_sampler_step(w->sampler, logits, NULL, token, err));
    DPI_TRY(dpi_released_push(&w->released[text], *token, NULL, NULL, err));
    return w->masked[text] && !dpi_worded_is_cut(worded)
               ? dpi_mask_text_push(w->masked[text], *token, err)
               : DPI_STATUS_OK;
}

static dpi_status draw_all(walk *w, dpi_error *err) {
    const dpi_model *model = dpi_session_model(w->search->session);
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_live; i++) {
        const int32_t text = w->live[i];
        int32_t token;
        DPI_TRY(draw(w, text, &token, err));
        w->ended[text] =
            dpi_released_end_of(&w->released[text], model, token) != DPI_END_NONE;
        w->live[n] = text;
        w->token[n] = token;
        n += !w->ended[text];
    }
    w->n_live = n;
    return DPI_STATUS_OK;
}

static dpi_status draw_texts(walk *w, dpi_error *err) {
    const dpi_pace_search *x = w->search;
    DPI_TRY(read_prompt(w, err));
    for (int32_t t = 0; t < w->n_steps && w->n_live > 0; t++) {
        if (x->cancel && x->cancel(x->cancel_user))
            return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled");
        if (t > 0)
            DPI_TRY(dpi_session_step(x->session, w->n_live, w->live, w->token, err));
        DPI_TRY(draw_all(w, err));
    }
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
static double share_of(const walk *w, int32_t text) {
    const double share = 1.0 / w->search->n_texts;
    return w->ended[text] ? share : share * w->method->n_tokens / w->n[text];
}

static average average_of(const walk *w, rule r) {
    average a = {0, 0};
    for (int32_t i = 0; i < w->search->n_texts; i++) {
        const double more = share_of(w, i);
        for (int32_t t = 0; t < w->n[i]; t++) {
            const double top = w->top[(size_t)i * (size_t)w->n_steps + (size_t)t];
            a.n += is_private(&r, top) ? more : 0;
            a.rest += is_private(&r, top) ? more * (1 - top) : 0;
        }
    }
    return a;
}

static int32_t quota_of(const walk *w, rule r) {
    const double n = ceil(average_of(w, r).n);
    return n < 1 ? 1 : n < w->method->n_tokens ? (int32_t)n : w->method->n_tokens;
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
static double pull_of_steps(const walk *w, rule r, double swing) {
    double pull = 0;
    for (int32_t i = 0; i < w->search->n_texts; i++)
        for (int32_t t = 0; t < w->n[i]; t++) {
            const size_t step = (size_t)i * (size_t)w->n_steps + (size_t)t;
            pull += is_private(&r, w->top[step]) ? share_of(w, i) * pull_of(&w->all[step], swing)
                                                 : 0;
        }
    return pull;
}

/* Of a theta, with T_p as given (0: its own): the clip bound of each private token is in proportion
 * to 1 / sqrt(T_p); swing is that of T_p = 1. */
static double pull_at(const walk *w, double theta, int32_t n_private, double swing) {
    const rule r = {.theta = theta};
    const double n = average_of(w, r).n,
                 quota = n_private > 0 ? n_private : quota_of(w, r);
    return pull_of_steps(w, r, swing / sqrt(quota)) * fmin(1, quota / fmax(n, 1));
}

/* The least theta of .5, .55, .. .95 that moves 95 % of what the best one moves. What is free keeps
 * its form and costs no time. A smaller theta than these leaves too few tokens (measured). A clip
 * bound that moves a log weight by less than WEAK is of little use wherever it is, so such a budget
 * is as one of that much: few tokens. */
static dpi_status best_theta(const walk *w, const dpi_sampler_options *m, int32_t n_private,
                             double *theta, dpi_error *err) {
    enum { FIRST = 10, LAST = 19 };
    const int32_t quota = n_private > 0 ? n_private : quota_of(w, (rule){.theta = .5});
    double pulls[LAST + 1], swing, most = 0;
    DPI_TRY(swing_of(m, quota, &swing, err));
    swing = fmax(swing, WEAK);
    for (int32_t i = FIRST; i <= LAST; i++) {
        pulls[i] = pull_at(w, .05 * i, n_private, swing * sqrt(quota));
        most = fmax(most, pulls[i]);
    }
    int32_t i = FIRST;
    while (i < LAST && (most == 0 || pulls[i] < .95 * most))
        i++;
    *theta = .05 * i;
    return DPI_STATUS_OK;
}

static dpi_status settle_top(const walk *w, dpi_sampler_options *m, dpi_error *err) {
    int32_t *quota = dpi_method_quota(m);
    if (m->pace_theta == 0)
        DPI_TRY(best_theta(w, m, *quota, &m->pace_theta, err));
    if (*quota == 0)
        *quota = quota_of(w, (rule){.theta = m->pace_theta});
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
static dpi_status count_changed(const walk *w, const dpi_sampler_options *m, double theta_top,
                                int32_t quota, int32_t *n, dpi_error *err) {
    rule r = {.theta = m->pace_theta};
    DPI_TRY(swing_of(m, quota, &r.swing, err));
    if (m->pace_theta == 0)
        r = (rule){.theta = least_top(theta_top, r.swing)};
    *n = quota_of(w, r);
    return DPI_STATUS_OK;
}

/* The least quota whose clip bound leaves no more private steps than that. A larger quota has a
 * smaller clip bound, and so fewer private steps. */
static dpi_status least_quota(const walk *w, dpi_sampler_options *m, double theta_top,
                              dpi_error *err) {
    int32_t less = 0, enough = m->n_tokens;
    while (enough - less > 1) {
        const int32_t quota = less + (enough - less) / 2;
        int32_t n;
        DPI_TRY(count_changed(w, m, theta_top, quota, &n, err));
        if (n <= quota)
            enough = quota;
        else
            less = quota;
    }
    m->pace_tokens = enough;
    return DPI_STATUS_OK;
}

static dpi_status settle_change(const walk *w, dpi_sampler_options *m, dpi_error *err) {
    double swing, theta = 0;
    if (m->pace_theta > 0)
        return least_quota(w, m, 0, err);
    DPI_TRY(best_theta(w, m, m->pace_tokens, &theta, err));
    if (m->pace_tokens == 0)
        DPI_TRY(least_quota(w, m, theta, err));
    DPI_TRY(swing_of(m, m->pace_tokens, &swing, err));
    m->pace_theta = floor(1e6 * dpi_pace_change(least_top(theta, swing), swing)) / 1e6;
    return DPI_STATUS_OK;
}

static dpi_status settle_share(const walk *w, dpi_sampler_options *m, dpi_error *err) {
    const rule r = {.theta = m->pace_theta > 0 ? m->pace_theta : 1};
    (void)err;
    m->pace_share = ceil(10 * fmax(average_of(w, r).rest, .1)) / 10;
    return DPI_STATUS_OK;
}

static dpi_status settle(const walk *w, dpi_sampler_options *m, dpi_error *err) {
    return m->pace == DPI_PACE_TOP      ? settle_top(w, m, err)
           : m->pace == DPI_PACE_CHANGE ? settle_change(w, m, err)
                                        : settle_share(w, m, err);
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

static dpi_status find(const dpi_pace_search *search, dpi_sampler_options *m, dpi_error *err) {
    walk w = {.search = search, .method = m};
    uint64_t state = SEED;
    DPI_TRY(check_method(m, err));
    DPI_TRY(check_search(search, err));
    dpi_status status = open_walk(&w, &state, err);
    if (status == DPI_STATUS_OK)
        status = draw_texts(&w, err);
    for (int32_t i = 0; i < search->n_texts; i++) {
        dpi_session_reset(search->session, i);
        dpi_mask_text_free(w.masked[i]);
        dpi_released_close(&w.released[i]);
    }
    if (status == DPI_STATUS_OK)
        status = settle(&w, m, err);
    free(w.top);
    free(w.all);
    dpi_sampler_free(w.sampler);
    return status;
}

dpi_status dpi_pace_find(const dpi_pace_search *search, dpi_sampler_options *method,
                         dpi_error *err) {
    dpi_sampler_options m = *method;
    m.pace = kind_of(&m);
    if (m.pace != DPI_PACE_NONE && m.free_top_k == 0 &&
        dpi_method_parameter_find(m.method, "free_top_k"))
        m.free_top_k = m.top_k > 0 && m.top_k < DPI_PACE_FREE_TOP_K ? m.top_k : DPI_PACE_FREE_TOP_K;
    if (dpi_pace_is_open(&m))
        DPI_TRY(find(search, &m, err));
    *method = m;
    return DPI_STATUS_OK;
}
