/* audit_products.c - loss of features together: a method with an adjacency, an accountant, a
 * pace, units, centring, secret assignment and a mask, drawn at random, in every step of a text to
 * its last one. A fault may show in one combination, or in the last step alone. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "audit/lines.h"
#include "dp/exact/noisy_max.h"
#include "dp/exact/normal.h"
#include "dp/methods/method.h"
#include "dp/methods/tang.h"

enum { V = DPI_AUDIT_VOCAB, N_TEXTS = 1000, MOST_TOKENS = 6 };

typedef struct product {
    dpi_audit *audit;
    dpi_audit_case w;
    dpi_audit_pair pair;
    dpi_audit_tokens allowed; /* n = 0: all */
    uint64_t bits;            /* state of the source of `with` */
    double max_ratio;
    int32_t unit; /* that the neighbour does not have, in all steps */
} product;

static int32_t chosen(dpi_audit *a, const int32_t *values, int32_t n) {
    return values[dpi_audit_below(a, n)];
}

static void draw_options(product *p) {
    static const int32_t methods[] = {DPI_METHOD_INVISIBLEINK, DPI_METHOD_INVISIBLEINK,
                                      DPI_METHOD_AMIN, DPI_METHOD_TANG};
    dpi_audit *a = p->audit;
    dpi_sampler_options *o = &p->w.options;
    dpi_sampler_options_init(o);
    o->method = chosen(a, methods, 4);
    const bool ink = o->method == DPI_METHOD_INVISIBLEINK, tang = o->method == DPI_METHOD_TANG;
    dpi_audit_options_draw(a, o);
    o->adjacency = dpi_audit_below(a, tang ? 2 : 3);
    o->n_ref = 2 + dpi_audit_below(a, DPI_AUDIT_REFS - 1);
    if (dpi_audit_below(a, 2))
        dpi_audit_units(a, o);
    o->n_tokens = 1 + dpi_audit_below(a, MOST_TOKENS);
    o->top_k = dpi_audit_below(a, 12); /* no more than may be allowed */
    o->center = ink && dpi_audit_below(a, 2);
    if (ink)
        o->accountant = dpi_audit_below(a, 8) ? dpi_audit_below(a, 2) * DPI_ACCOUNTANT_FILTER
                                              : DPI_ACCOUNTANT_BR;
    if (o->method == DPI_METHOD_AMIN)
        o->n_private = 1 + dpi_audit_below(a, o->n_tokens);
    if (!tang && dpi_audit_below(a, 3) == 0) {
        o->pace = ink && dpi_audit_below(a, 2) ? DPI_PACE_CHANGE : DPI_PACE_TOP;
        o->pace_theta = .3 * dpi_audit_uniform(a) + (o->pace == DPI_PACE_TOP ? .6 : 0);
        if (ink)
            o->pace_tokens = 1 + dpi_audit_below(a, o->n_tokens);
    }
    if (o->accountant != DPI_ACCOUNTANT_FILTER && o->adjacency != DPI_ADJACENCY_ZERO_OUT &&
        dpi_audit_below(a, 3) == 0)
        o->subsample = .05 + .9 * dpi_audit_uniform(a);
    if (o->subsample > 0 || o->accountant == DPI_ACCOUNTANT_BR) {
        o->epsilon = 2 + 10 * dpi_audit_uniform(a);
        o->delta = 1e-6;
    } else {
        o->rho = exp(5 * dpi_audit_uniform(a) - 2);
    }
    o->random = dpi_random_insecure;
    o->random_user = &p->bits;
}

/* ---- What a step must draw: the law of its own inside, by the bits of its source ------------- */

/* The support and sums of tang; the caller has the sampler's distribution else. */
static dpi_status tang_token(product *p, int32_t *token) {
    dpi_sampler *s = p->pair.with;
    int64_t noise[V];
    uint64_t bits = p->bits;
    DPI_TRY(s->method->candidates(s, p->w.public_logits, p->audit->err));
    if (s->n_support == 1) {
        *token = s->support[0];
        return DPI_STATUS_OK;
    }
    dpi_tang_sums(s, p->w.pointers);
    DPI_TRY(dpi_normal_rounded(s->plan.noise_sigma, dpi_random_insecure, &bits, noise,
                               s->n_support, p->audit->err));
    *token = s->support[dpi_noisy_max(s->sum, noise, s->n_support)];
    return DPI_STATUS_OK;
}

static dpi_status law_token(product *p, int32_t *token) {
    const dpi_distribution *d = &p->pair.d;
    uint64_t state = p->bits, bits[DPI_DRAW_WORDS];
    DPI_TRY(dpi_random_fill(dpi_random_insecure, &state, bits, sizeof bits, p->audit->err));
    *token = d->n_support == 1
                 ? d->support[0]
                 : d->support[dpi_weights_draw(d->weights, (size_t)d->n_support, bits)];
    return DPI_STATUS_OK;
}

/* ---- Neighbours ------------------------------------------------------------------------------ */

static dpi_status compare(product *p) {
    dpi_audit *a = p->audit;
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(p->pair.with);
    const dpi_distribution *d = &p->pair.d, *e = &p->pair.e;
    DPI_TRY(dpi_audit_pair_compare(a, &p->w, p->unit, &p->pair));
    if (!dpi_audit_same_support(a, d, e))
        return DPI_STATUS_OK;
    const double ratio = dpi_audit_loss_ratio(a, d, e, plan->eta);
    if (d->is_free && p->w.options.method == DPI_METHOD_INVISIBLEINK)
        dpi_audit_hold(a, ratio == 0, "a free step depends on a record");
    p->max_ratio = fmax(p->max_ratio, ratio);
    return DPI_STATUS_OK;
}

static dpi_status play_step(product *p) {
    dpi_audit *a = p->audit;
    const bool tang = p->w.options.method == DPI_METHOD_TANG;
    int32_t wanted = -1, token = -2;
    p->allowed.n = 0;
    if (dpi_audit_below(a, 2))
        dpi_audit_tokens_draw(a, &p->allowed);
    dpi_audit_logits(a, &p->w);
    if (dpi_audit_below(a, 3) == 0)
        dpi_audit_loud(&p->w, &p->allowed);
    DPI_TRY(dpi_audit_pair_allow(a, &p->allowed, &p->pair));
    if (tang)
        dpi_audit_leave_out(&p->w, p->unit, p->pair.neighbour);
    else
        DPI_TRY(compare(p));
    const bool is_free = !tang && p->pair.d.is_free;
    DPI_TRY(tang ? tang_token(p, &wanted) : law_token(p, &wanted));
    const size_t n_support = p->pair.with->n_support;
    int32_t n_private = dpi_sampler_n_private(p->pair.with);
    DPI_TRY(dpi_audit_pair_step(a, &p->w, &p->pair, &token));
    n_private = dpi_sampler_n_private(p->pair.with) - n_private; /* amin: the budget may be over */
    dpi_audit_hold(a, n_private == 0 || token == wanted,
                   "a token that its law and bits do not give");
    dpi_audit_hold(a, n_private == !is_free || p->w.options.method == DPI_METHOD_AMIN ||
                          (p->w.options.method == DPI_METHOD_TANG && n_private == (n_support > 1)),
                   "a free step is counted as a private one, or the other way round");
    dpi_audit_hold(a, dpi_audit_is_allowed(&p->allowed, token), "a token that is not allowed");
    return DPI_STATUS_OK;
}

/* What the integers of the plan cost a text: each method by its own formula. */
static void check_plan(product *p) {
    dpi_audit *a = p->audit;
    const dpi_sampler_options *o = &p->w.options;
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(p->pair.with);
    if (o->method == DPI_METHOD_TANG) {
        const long double ratio = DPI_TANG_ONE / ((long double)plan->noise_sigma * 0x1p-20L);
        dpi_audit_hold(a, plan->rho_total >= o->n_tokens * ratio * ratio / 2,
                       "a text of tang is charged less than its noise costs");
        return;
    }
    const bool two = o->method == DPI_METHOD_AMIN &&
                     o->adjacency == DPI_ADJACENCY_REPLACE_BY_NULL && o->subsample == 0;
    const bool wide = o->method == DPI_METHOD_AMIN ? two
                                                   : o->adjacency == DPI_ADJACENCY_ZERO_OUT;
    const int32_t factor = wide ? 4 : 2;
    dpi_audit_hold(a, dpi_audit_charges(o, plan, factor),
                   "the plan charges less than its integers cost");
}

static dpi_status play(product *p) {
    dpi_audit *a = p->audit;
    p->bits = dpi_audit_random(a);
    DPI_TRY(dpi_audit_pair_create(a, &p->w.options, &p->pair));
    check_plan(p);
    DPI_TRY(dpi_audit_pair_begin(a, &p->pair));
    p->unit = dpi_audit_below(a, p->w.options.n_ref);
    for (int32_t i = 0; i < p->w.options.n_tokens; i++)
        DPI_TRY(play_step(p));
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_products(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_TEXTS);
    double most = 0;
    DPI_TRY(dpi_audit_begin(a, "loss", "features together, to the last step"));
    for (int32_t i = 0; i < n; i++) {
        product p = {.audit = a};
        draw_options(&p);
        const dpi_status status = play(&p);
        dpi_audit_pair_free(&p.pair);
        DPI_TRY(status);
        most = fmax(most, p.max_ratio);
    }
    dpi_audit_end(a, "largest loss / eta", most, .99, 1 + 1e-9);
    return DPI_STATUS_OK;
}
