/* suggest.c - see dpinfer/suggest.h. */
#include "dpinfer/suggest.h"

#include <stdbool.h>

#include "base/format.h"
#include "base/status.h"
#include "dp/methods/method.h"
#include "dp/methods/sampling.h"
#include "dpinfer/account.h"
#include "dpinfer/claim.h"
#include "dpinfer/registry.h"

enum { HEARD = 10, WELL_HEARD = 100, BATCH_MOST = 4096, TOKENS_LEAST = 16 };

double dpi_hearing_factor(const dpi_sampler_options *options, const dpi_sampler_plan *plan) {
    const dpi_method_ops *ops = dpi_method_ops_get(options->method);
    return ops && ops->factor ? ops->factor(options, plan) : 0;
}

int32_t dpi_hearing_of(double factor) {
    return factor >= WELL_HEARD ? DPI_HEARING_WELL
           : factor >= HEARD    ? DPI_HEARING_HEARD
                                : DPI_HEARING_HARDLY;
}

const char *dpi_hearing_text(int32_t hearing) {
    static const char *const all[] = {"hardly", "heard", "well heard"};
    return hearing >= 0 && hearing < 3 ? all[hearing] : NULL;
}

typedef struct table {
    const dpi_sampler_options *options;
    const dpi_pace_texts *texts; /* NULL: the pace is that of the options */
    int64_t n_units;
    dpi_suggestion *all;
    int32_t n;
    dpi_status status; /* of the last setting without a plan */
    dpi_error why;
} table;

/* Of which the units make so many batches, all of them whole. */
static int32_t largest_batch(int64_t n_units, int32_t n_texts) {
    const int64_t batch = n_units / n_texts;
    return batch < BATCH_MOST ? (int32_t)batch : BATCH_MOST;
}

static void add(table *t, int32_t batch, int32_t n_tokens, int32_t n_texts) {
    dpi_sampler_options o = *t->options;
    dpi_sampler_plan plan;
    if (t->n == DPI_SUGGESTIONS_MAX || batch < 1 || n_tokens < 1)
        return;
    for (int32_t i = 0; i < t->n; i++)
        if (t->all[i].batch == batch && t->all[i].n_tokens == n_tokens &&
            t->all[i].n_texts == n_texts)
            return;
    dpi_sampler_plan_init(&plan);
    o.n_ref = o.denominator = batch;
    o.n_tokens = n_tokens;
    o.allocation = o.allocation > 0 && n_texts > 1 ? n_texts : 0;
    dpi_status status = t->texts ? dpi_pace_texts_settle_other(t->texts, &o, &t->why)
                                 : DPI_STATUS_OK;
    if (status == DPI_STATUS_OK)
        status = dpi_sampler_plan_make(&o, &plan, &t->why);
    if (status != DPI_STATUS_OK) {
        t->status = status;
        return;
    }
    const double factor = dpi_hearing_factor(&o, &plan);
    const double rows = (double)n_texts * n_tokens * (batch + 1);
    dpi_suggestion *s = &t->all[t->n++];
    *s = (dpi_suggestion){.batch = batch,
                          .n_tokens = n_tokens,
                          .n_texts = n_texts,
                          .hearing = dpi_hearing_of(factor),
                          .n_units = (int64_t)batch * n_texts,
                          .clip = plan.clip,
                          .factor = factor,
                          .n_private = o.pace_tokens,
                          .work = rows};
}

static bool ends_well(const table *t) {
    return t->n > 0 && t->all[t->n - 1].hearing == DPI_HEARING_WELL;
}

/* All texts and all tokens, in small batches first; then shorter texts; then fewer of them. */
static void fill(table *t, int32_t n_texts) {
    const int32_t n_tokens = t->options->n_tokens, most = largest_batch(t->n_units, n_texts);
    for (int32_t share = 4; share >= 1; share /= 2)
        add(t, most / share, n_tokens, n_texts);
    for (int32_t share = 2; share <= 4; share *= 2)
        if (n_tokens / share >= TOKENS_LEAST)
            add(t, most, n_tokens / share, n_texts);
    for (int32_t n = n_texts / 2; n >= 1 && !ends_well(t); n /= 2)
        add(t, largest_batch(t->n_units, n), n_tokens, n);
}

/* The first that is heard; they stand in the order of preference. Else the largest factor. */
static int32_t choose(const table *t) {
    int32_t best = 0;
    for (int32_t i = 0; i < t->n; i++)
        if (t->all[i].hearing != DPI_HEARING_HARDLY)
            return i;
    for (int32_t i = 1; i < t->n; i++)
        if (t->all[i].factor > t->all[best].factor)
            best = i;
    return best;
}

dpi_status dpi_suggest(const dpi_sampler_options *options, const dpi_pace_texts *texts,
                       int64_t n_units, int32_t n_texts, dpi_suggestion *all, int32_t *n,
                       int32_t *chosen, dpi_error *err) {
    table t = {.options = options, .texts = texts, .n_units = n_units, .all = all};
    if (n_units < 1 || n_texts < 1 || n_texts > n_units)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_texts: found '%d', allowed 1..%lld: each text has a batch of its own, "
                        "of one unit at least",
                        n_texts, (long long)n_units);
    /* As a run of these units does. */
    DPI_TRY(dpi_delta_check(options->delta, n_units, options->max_per_unit, err));
    const dpi_method_ops *ops = dpi_method_ops_get(options->method);
    if (!ops || !ops->factor)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "a suggestion is made for InvisibleInk alone: what C does in other methods "
                        "is not measured");
    fill(&t, n_texts);
    if (t.n == 0) {
        if (err)
            *err = t.why;
        return t.status;
    }
    for (int32_t i = t.n - 1; i >= 0; i--)
        all[i].work /= all[0].work;
    *n = t.n;
    *chosen = choose(&t);
    return DPI_STATUS_OK;
}

/* ---- A budget that fits ---------------------------------------------------------------------- */

/* Whether the run with another budget, rho or epsilon, fits into what is left. */
static bool fits(const dpi_run *claim, const dpi_dataset_info *info, double rho,
                 double epsilon) {
    dpi_run smaller = *claim;
    dpi_cost cost;
    double divergence;
    smaller.method.rho = rho;
    smaller.method.epsilon = epsilon;
    return dpi_sampler_plan_make(&smaller.method, &smaller.plan, NULL) == DPI_STATUS_OK &&
           dpi_run_cost(&smaller, &cost, NULL) == DPI_STATUS_OK &&
           dpi_cost_renyi(&cost, info->order, &divergence, NULL) == DPI_STATUS_OK &&
           divergence * DPI_LEDGER_ONE <= (double)info->left - 1;
}

/* A number that is at most x, in three digits. */
static double three_digits(double x) {
    char text[40];
    dpi_format(text, sizeof text, "%.2e", x * .995);
    return dpi_strtod(text, NULL);
}

/* What fits in zCDP is known; other accountants spend more at the same epsilon. */
double dpi_suggest_budget(const dpi_run *claim, const dpi_dataset_info *info) {
    const bool with_rho = claim->method.rho > 0;
    const double share = claim->method.subsample > 0 ? .5 : .93;
    double rho = (double)info->left / DPI_LEDGER_ONE / info->order, budget = rho;
    if (!(rho > 0) ||
        (!with_rho && dpi_zcdp_epsilon(rho, claim->method.delta, &budget, NULL) != DPI_STATUS_OK))
        return 0;
    for (int i = 0; i < 8; i++, budget *= share) {
        const double found = three_digits(budget);
        if (fits(claim, info, with_rho ? found : 0, with_rho ? 0 : found))
            return found;
    }
    return 0;
}

/* ---- A pace ---------------------------------------------------------------------------------- */

int32_t dpi_pace_gain(const dpi_sampler_options *method, const dpi_sampler_plan *paced,
                      double *clip, double *epsilon) {
    dpi_sampler_options m = *method;
    dpi_sampler_plan plan;
    const bool same_steps = m.accountant == DPI_ACCOUNTANT_ZCDP && m.subsample == 0 &&
                            m.allocation == 0 &&
                            (m.pace == DPI_PACE_TOP || m.pace == DPI_PACE_CHANGE);
    if (!dpi_method_parameter_find(m.method, "pace_tokens") || m.pace == DPI_PACE_NONE)
        return 0; /* its private tokens are not those of a pace alone */
    dpi_pace_drop(&m);
    dpi_sampler_plan_init(&plan);
    if (dpi_sampler_plan_make(&m, &plan, NULL) != DPI_STATUS_OK)
        return 0;
    *clip = plan.clip;
    if (!same_steps || paced->epsilon <= 0 ||
        dpi_zcdp_epsilon(m.n_tokens * paced->rho_token, paced->delta, epsilon, NULL) !=
            DPI_STATUS_OK)
        *epsilon = 0;
    return 1;
}
