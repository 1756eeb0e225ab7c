/* audit_invisibleink.c - loss: what one record can do to the next token's distribution, measured
 * on the integers that tokens are drawn with. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/methods/method.h"

enum { V_MAX = DPI_AUDIT_WIDE, N_SETTINGS = 100, N_CASES = 20 };

typedef struct setting {
    dpi_audit *audit;
    dpi_audit_pair pair;
    int32_t range_factor; /* f of the plan's eta */
    double max_ratio;     /* of a loss to eta */
} setting;

/* ---- A pair of neighbours ------------------------------------------------------------------- */

/* c[n_support] of the unit in slot j: the mean of its records' clipped contributions, a null's if
 * it has none. Returns by how much the values may be off. */
static int64_t unit_contribution(const dpi_audit_case *w, int32_t j, const dpi_distribution *d,
                                 int64_t K, int64_t *c) {
    const int32_t M = dpi_audit_per_unit(w);
    int64_t one[V_MAX], off = 0;
    int32_t m = 0;
    memset(c, 0, (size_t)d->n_support * sizeof *c);
    for (int32_t k = 0; k < M; k++) {
        const float *l = w->pointers[j * M + k];
        const int64_t own = l ? dpi_audit_contribution(w, l, d, K, one) : 0;
        off = own > off ? own : off;
        for (int64_t i = 0; l && i < d->n_support; i++)
            c[i] += one[i];
        m += l != NULL;
    }
    if (m == 0)
        return dpi_audit_contribution(w, NULL, d, K, c);
    for (int64_t i = 0; i < d->n_support; i++)
        c[i] = dpi_audit_mean(c[i], m);
    return off > 0 && M > 1 ? off + 1 : off;
}

static bool within(int64_t x, int64_t bound) { return x <= bound && x >= -bound; }

/* rho of one token in which a record moves utilities within an interval of length `range`. */
static double cost(int64_t range, const dpi_sampler_plan *plan) {
    const double eta = (double)range * (double)plan->a * 0x1.62e42fefa39efp-49;
    return eta * eta / 8;
}

/* What unit j moves: its contribution, less a null's; or, with the filter, nothing at all
 * if that costs more than a whole budget. */
static void check_moved(const setting *s, const dpi_audit_case *w, int32_t j,
                        const dpi_distribution *d, const dpi_distribution *e,
                        const dpi_sampler_plan *plan) {
    const int64_t K = plan->K;
    int64_t own[V_MAX], null[V_MAX], low = INT64_MAX, high = INT64_MIN, least = 0, most = 0;
    bool exact = true, nothing = true, bounded = true;
    const int64_t off = unit_contribution(w, j, d, K, own) +
                        dpi_audit_contribution(w, NULL, d, K, null);
    for (int64_t i = 0; i < d->n_support; i++) {
        const int64_t moved = d->sum[i] - e->sum[i], wanted = own[i] - null[i];
        bounded &= within(moved + null[i], K + w->options.center);
        bounded &= w->options.adjacency == DPI_ADJACENCY_ZERO_OUT || within(moved, K);
        exact &= within(moved - wanted, off);
        nothing &= moved == 0;
        least = i == 0 || moved < least ? moved : least;
        most = i == 0 || moved > most ? moved : most;
        low = wanted < low ? wanted : low;
        high = wanted > high ? wanted : high;
    }
    if (w->options.accountant == DPI_ACCOUNTANT_FILTER) {
        exact |= nothing && cost(high - low + 2 * off, plan) >= plan->rho_budget * (1 - 1e-9);
        dpi_audit_hold(s->audit, cost(most - least, plan) <= plan->rho_budget,
                       "a record moves more than its whole budget");
    }
    dpi_audit_hold(s->audit, bounded, "|c| exceeds K");
    dpi_audit_hold(s->audit, exact, "S differs by other than c of the record");
}

/* S is the sum of all contributions: no slot is left out, counted twice or given another's. With
 * the filter check_moved says as much, record by record. */
static void check_sum(const setting *s, const dpi_audit_case *w, const dpi_distribution *d,
                      const dpi_sampler_plan *plan) {
    int64_t sum[V_MAX] = {0}, c[V_MAX], off = 0;
    if (w->options.accountant == DPI_ACCOUNTANT_FILTER)
        return;
    for (int32_t j = 0; j < w->options.n_ref; j++) {
        off += unit_contribution(w, j, d, plan->K, c);
        for (int64_t i = 0; i < d->n_support; i++)
            sum[i] += c[i];
    }
    bool same = true;
    for (int64_t i = 0; i < d->n_support; i++)
        same &= within(d->sum[i] - sum[i], off);
    dpi_audit_hold(s->audit, same, "S is not the sum of the contributions");
}

/* The same units in other slots, with their records in another order. Overwrites the distribution
 * of s->pair.with. */
static dpi_status check_order(const setting *s, const dpi_audit_case *w, dpi_distribution *d) {
    dpi_audit *a = s->audit;
    int64_t sum[V_MAX];
    const float *reversed[DPI_AUDIT_REFS];
    const int32_t n = w->options.n_ref * dpi_audit_per_unit(w);
    memcpy(sum, d->sum, (size_t)d->n_support * sizeof *sum);
    for (int32_t j = 0; j < n; j++)
        reversed[j] = w->pointers[n - 1 - j];
    DPI_TRY(dpi_sampler_distribution(s->pair.with, w->public_logits, reversed, d, a->err));
    dpi_audit_hold(a, memcmp(sum, d->sum, (size_t)d->n_support * sizeof *sum) == 0,
                   "S depends on the order of slots");
    return DPI_STATUS_OK;
}

static dpi_status compare(setting *s, const dpi_audit_case *w, int32_t j) {
    dpi_audit *a = s->audit;
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(s->pair.with);
    dpi_distribution *const d = &s->pair.d, *const e = &s->pair.e;
    DPI_TRY(dpi_audit_pair_compare(a, w, j, &s->pair));
    if (!dpi_audit_same_support(a, d, e))
        return DPI_STATUS_OK;
    s->max_ratio = fmax(s->max_ratio, dpi_audit_loss_ratio(a, d, e, plan->eta));
    dpi_audit_formulas(a, w, plan, dpi_sampler_denominator(&w->options), w->options.top_k,
                       2 * plan->K, d);
    check_moved(s, w, j, d, e, plan);
    check_sum(s, w, d, plan);
    return check_order(s, w, d);
}

/* ---- Crafted cases --------------------------------------------------------------------------- */

/* Records `distance` clip bounds above the public logits on even tokens, below on odd ones: so
 * many at +K as at -K, or on the edge. Public logits are a clip bound up or down themselves, so
 * that a zeroed record is at the other end. */
static void craft_halves(dpi_audit_case *w, const dpi_sampler_plan *plan, double distance) {
    const double clip = ldexp((double)plan->K, -20);
    dpi_audit_fill(w);
    for (int y = 0; y < w->options.n_vocab; y++) {
        const double sign = y % 2 ? -1 : 1, p = sign * fmin(1.01 * clip, 4);
        w->public_logits[y] = (float)p;
        for (int j = 0; j < DPI_AUDIT_REFS; j++)
            w->reference[j][y] = (float)(p + sign * distance * clip);
    }
}

/* Centred at its worst: a record with all its mass on a token whose public share is 1/8. */
static void craft_centred(dpi_audit_case *w) {
    dpi_audit_fill(w);
    for (int y = 0; y < w->options.n_vocab; y++) {
        w->public_logits[y] = y < 8 ? 0 : -10;
        for (int j = 0; j < DPI_AUDIT_REFS; j++)
            w->reference[j][y] = y == j ? 1e4f : 0;
    }
}

/* Records of a unit that differ: one far above the public logits, one below by a little. The mean
 * of clipped values is not the clipped mean. */
static void craft_split(dpi_audit_case *w) {
    dpi_audit_fill(w);
    for (int y = 0; y < w->options.n_vocab; y++) {
        w->public_logits[y] = 0;
        for (int j = 0; j < DPI_AUDIT_REFS; j++)
            w->reference[j][y] = (y + j) % 2 ? 1e4f : -1e-5f * (float)(1 + y % 7);
    }
}

/* Public logits exactly at the threshold of V_k+, a unit above and a unit below; exact floats as
 * long as the threshold is within 16 logits. */
static void craft_threshold(dpi_audit_case *w, const dpi_sampler_plan *plan) {
    const int64_t edge = 2 * plan->K / dpi_sampler_denominator(&w->options);
    const int32_t top_k = w->options.top_k, k = top_k > 0 && top_k < 60 ? top_k : 10;
    dpi_audit_fill(w);
    for (int y = 0; y < w->options.n_vocab; y++) {
        const int64_t units = y < k ? -3 * y : -3 * (k - 1) - edge + y % 5 - 2;
        w->public_logits[y] = (float)ldexp((double)units, -20);
        for (int j = 0; j < DPI_AUDIT_REFS; j++)
            w->reference[j][y] = w->public_logits[y] + (float)(y % 2 ? 50 : -50);
    }
}

/* Like the public logits on the first candidates, and at both ends of the clip range on the last.
 */
static void craft_late(dpi_audit_case *w) {
    const int32_t n = w->options.n_vocab;
    dpi_audit_fill(w);
    for (int32_t y = 0; y < n; y++) {
        w->public_logits[y] = 0;
        for (int j = 0; j < DPI_AUDIT_REFS; j++)
            w->reference[j][y] = y < n * 3 / 4 ? 0 : y % 2 ? 5000 : -5000;
    }
}

static void craft_odd(dpi_audit_case *w, int kind) {
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    dpi_audit_fill(w);
    for (int y = 0; y < w->options.n_vocab; y++)
        w->reference[0][y] = kind < 3 ? odd[kind] : y % 2 ? odd[y % 3] : w->public_logits[y] + 50;
}

static dpi_status crafted(setting *s, dpi_audit_case *w) {
    static const double distances[] = {2, 1e3, 1.000001, 1, .999999, .5, -1, -1e3};
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(s->pair.with);
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        craft_halves(w, plan, distances[i]);
        DPI_TRY(compare(s, w, 0));
        for (int j = 1; j < DPI_AUDIT_REFS; j++) /* alone among nulls */
            w->pointers[j] = NULL;
        DPI_TRY(compare(s, w, 0));
    }
    craft_centred(w);
    DPI_TRY(compare(s, w, 0));
    craft_split(w);
    DPI_TRY(compare(s, w, 0));
    craft_threshold(w, plan);
    DPI_TRY(compare(s, w, 0));
    craft_late(w);
    DPI_TRY(compare(s, w, 0));
    for (int kind = 0; kind < 4; kind++) {
        craft_odd(w, kind);
        DPI_TRY(compare(s, w, 0));
    }
    memset(w->pointers, 0, sizeof w->pointers); /* all null */
    return compare(s, w, 0);
}

/* ---- Settings -------------------------------------------------------------------------------- */

static void random_options(dpi_audit *a, dpi_sampler_options *o) {
    dpi_audit_options_draw(a, o);
    if (o->max_per_unit > 1) {
        dpi_audit_units(a, o);
        o->center = dpi_audit_below(a, 2);
    }
    if (o->accountant == DPI_ACCOUNTANT_BR) {
        o->n_tokens = 1 + dpi_audit_below(a, 4);
        o->epsilon = .5 + 4 * dpi_audit_uniform(a);
        o->delta = 1e-6;
        if (o->adjacency != DPI_ADJACENCY_ZERO_OUT && dpi_audit_below(a, 2))
            o->subsample = .01 + .99 * dpi_audit_uniform(a);
        return;
    }
    o->n_tokens = 4 + dpi_audit_below(a, 500);
    o->rho = exp(10 * dpi_audit_uniform(a) - 5);
    if (o->accountant == DPI_ACCOUNTANT_FILTER && dpi_audit_below(a, 2))
        o->clip = exp(6 * dpi_audit_uniform(a) - 3);
}

/* Options under which the crafted cases reach eta: a clip bound of 1.5 logits, and all tokens. */
static dpi_status sharp_options(dpi_audit *a, dpi_sampler_options *o) {
    dpi_sampler_plan plan;
    dpi_sampler_plan_init(&plan);
    o->top_k = 0;
    o->clip = 0;
    if (o->rho > 0)
        o->rho = .5;
    DPI_TRY(dpi_sampler_plan_make(o, &plan, a->err));
    o->tau = fmin(fmax(o->tau * 1.5 / plan.clip, .01), 100);
    return DPI_STATUS_OK;
}

/* Accountant filter: a clip bound at whose ends one token costs twice a budget. */
static dpi_status unaffordable_options(dpi_audit *a, dpi_sampler_options *o) {
    dpi_sampler_plan plan;
    dpi_sampler_plan_init(&plan);
    o->clip = 0;
    DPI_TRY(dpi_sampler_plan_make(o, &plan, a->err));
    o->clip = fmin(plan.clip * sqrt(2 * plan.rho_total / plan.rho_token), 2047);
    return DPI_STATUS_OK;
}

/* The largest clip bounds that there are: sums of 8 records pass 2^31 many times. */
static void loud_options(dpi_sampler_options *o) {
    o->n_ref = DPI_AUDIT_REFS / (o->max_per_unit > 1 ? o->max_per_unit : 1);
    o->denominator = 2 * DPI_AUDIT_REFS;
    o->n_tokens = 1;
    o->tau = 2;
    o->rho = 1e6;
    o->clip = 0;
}

static dpi_status create_pair(setting *s, const dpi_sampler_options *o) {
    dpi_audit *a = s->audit;
    DPI_TRY(dpi_audit_pair_create(a, o, &s->pair));
    const dpi_sampler_plan *p = dpi_sampler_plan_get(s->pair.with);
    const dpi_sampler_plan *q = dpi_sampler_plan_get(s->pair.without);
    dpi_audit_hold(a, memcmp(p, q, sizeof *p) == 0, "the plans of neighbours differ");
    dpi_audit_hold(a, dpi_audit_charges(o, p, s->range_factor),
                   "the plan charges less than its integers cost");
    return DPI_STATUS_OK;
}

static dpi_status run_setting(setting *s, dpi_audit_case *w, bool sharp, bool loud) {
    dpi_audit *a = s->audit;
    random_options(a, &w->options);
    w->options.center &= !(sharp && w->options.max_per_unit > 1);
    if (loud && w->options.accountant != DPI_ACCOUNTANT_BR)
        loud_options(&w->options);
    else if (sharp)
        DPI_TRY(sharp_options(a, &w->options));
    else if (w->options.n_vocab == DPI_AUDIT_WIDE && w->options.accountant == DPI_ACCOUNTANT_FILTER)
        DPI_TRY(unaffordable_options(a, &w->options));
    DPI_TRY(create_pair(s, &w->options));
    for (int i = 0; i < N_CASES; i++) {
        dpi_audit_logits(a, w);
        DPI_TRY(compare(s, w, dpi_audit_below(a, w->options.n_ref)));
    }
    return crafted(s, w);
}

static dpi_status audit_options(dpi_audit *a, const dpi_sampler_options *o, const char *subject) {
    setting s = {.audit = a, .range_factor = o->adjacency == DPI_ADJACENCY_ZERO_OUT ? 4 : 2};
    const int32_t n = dpi_audit_count(a, N_SETTINGS / (o->max_per_unit > 1 ? 2 : 1));
    DPI_TRY(dpi_audit_begin(a, "loss", subject));
    for (int32_t i = 0; i < n; i++) {
        dpi_audit_case w;
        memset(&w, 0, sizeof w);
        w.options = *o;
        w.options.n_vocab = i % 25 == 1 ? DPI_AUDIT_WIDE : DPI_AUDIT_VOCAB;
        dpi_status status = run_setting(&s, &w, i % 4 == 0, i % 25 == 2);
        dpi_audit_pair_free(&s.pair);
        DPI_TRY(status);
    }
    dpi_audit_end(a, "largest loss / eta", s.max_ratio, .999, 1 + 1e-9);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_invisibleink(dpi_audit *a) {
    /* [adjacency][centring][accountant], in the order of their enums */
#define ACCOUNTANTS(text)                                                                          \
    {                                                                                              \
        "InvisibleInk, " text ", zcdp", "InvisibleInk, " text ", br",                              \
            "InvisibleInk, " text ", filter"                                                       \
    }
    static const char *const subjects[3][2][3] = {
        {ACCOUNTANTS("replace-by-null"), ACCOUNTANTS("replace-by-null, centred")},
        {ACCOUNTANTS("add-remove"), ACCOUNTANTS("add-remove, centred")},
        {ACCOUNTANTS("zero-out"), ACCOUNTANTS("zero-out, centred")},
    };
    static const char *const units[3][3] = {ACCOUNTANTS("units, replace-by-null"),
                                            ACCOUNTANTS("units, add-remove"),
                                            ACCOUNTANTS("units, zero-out")};
#undef ACCOUNTANTS
    dpi_sampler_options o;
    dpi_sampler_options_init(&o);
    for (o.adjacency = 0; o.adjacency <= DPI_ADJACENCY_ZERO_OUT; o.adjacency++)
        for (o.center = 0; o.center <= 1; o.center++)
            for (o.accountant = 0; o.accountant <= DPI_ACCOUNTANT_FILTER; o.accountant++)
                DPI_TRY(audit_options(a, &o, subjects[o.adjacency][o.center][o.accountant]));
    o.max_per_unit = 2; /* how many, and whether centred, is made up */
    for (o.adjacency = 0; o.adjacency <= DPI_ADJACENCY_ZERO_OUT; o.adjacency++)
        for (o.accountant = 0; o.accountant <= DPI_ACCOUNTANT_FILTER; o.accountant++)
            DPI_TRY(audit_options(a, &o, units[o.adjacency][o.accountant]));
    return DPI_STATUS_OK;
}
