/* audit_mask.c - loss of steps that may draw some tokens alone. The oracle is a vocabulary that
 * has no others: a sampler of n_allowed tokens, with their logits, must have the same distribution,
 * bit for bit. And neighbours, as without a mask: the same support, a loss of at most eta. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/methods/amin.h"
#include "dp/methods/method.h"

enum { V = DPI_AUDIT_VOCAB, N_SETTINGS = 120, N_CASES = 12 };

typedef struct masked {
    dpi_audit *audit;
    dpi_audit_case w;
    dpi_audit_pair pair;
    dpi_audit_case few; /* the same with the allowed tokens alone */
    dpi_audit_tokens allowed;
    double max_ratio;
} masked;

static void random_options(dpi_audit *a, dpi_sampler_options *o, int32_t i) {
    dpi_sampler_options_init(o);
    o->method = i % 3 == 2 ? DPI_METHOD_AMIN : DPI_METHOD_INVISIBLEINK;
    o->adjacency = i / 3 % 3;
    dpi_audit_options_draw(a, o);
    o->n_tokens = 4 + dpi_audit_below(a, 200);
    o->top_k = dpi_audit_below(a, 12); /* no more than there may be allowed tokens */
    o->rho = exp(6 * dpi_audit_uniform(a) - 3);
    o->n_private = o->method == DPI_METHOD_AMIN ? 1 + dpi_audit_below(a, o->n_tokens) : 0;
    if (o->method == DPI_METHOD_INVISIBLEINK) {
        o->accountant = i / 9 % 2 ? DPI_ACCOUNTANT_FILTER : DPI_ACCOUNTANT_ZCDP;
        o->center = dpi_audit_below(a, 2);
    }
}

static void restrict_logits(const float *all, const masked *m, float *few) {
    for (int32_t i = 0; i < m->allowed.n; i++)
        few[i] = all[m->allowed.at[i]];
}

/* amin: between the neighbours by a record's mass at most, on the allowed tokens. */
static void compare_distances(masked *m, dpi_sampler *restricted) {
    const bool moves_two = m->w.options.adjacency == DPI_ADJACENCY_REPLACE_BY_NULL;
    const float *p = m->w.public_logits;
    int64_t with, without, few;
    dpi_amin_distance(m->pair.with, p, m->w.pointers, &with);
    dpi_amin_distance(m->pair.without, p, m->pair.neighbour, &without);
    dpi_amin_distance(restricted, m->few.public_logits, m->few.pointers, &few);
    dpi_audit_hold(m->audit, with == few, "a mask gives another distance");
    dpi_audit_hold(m->audit, llabs(with - without) <= (moves_two ? 2ll : 1ll) << 30,
                   "the distance moves by more than its sensitivity");
}

/* The case on a vocabulary that has the allowed tokens alone. */
static dpi_status compare_restricted(masked *m, dpi_distribution d) {
    dpi_audit *a = m->audit;
    dpi_sampler *s = NULL;
    dpi_distribution e;
    m->few.options = m->w.options;
    m->few.options.n_vocab = m->allowed.n;
    m->few.options.top_k = m->w.options.top_k < m->allowed.n ? m->w.options.top_k : m->allowed.n;
    restrict_logits(m->w.public_logits, m, m->few.public_logits);
    for (int j = 0; j < DPI_AUDIT_REFS; j++) {
        restrict_logits(m->w.reference[j], m, m->few.reference[j]);
        m->few.pointers[j] = m->w.pointers[j] ? m->few.reference[j] : NULL;
    }
    DPI_TRY(dpi_sampler_create(&m->few.options, &s, a->err));
    dpi_status status =
        dpi_sampler_distribution(s, m->few.public_logits, m->few.pointers, &e, a->err);
    bool same = status == DPI_STATUS_OK && d.n_support == e.n_support;
    for (int64_t i = 0; same && i < d.n_support; i++)
        same = d.support[i] == m->allowed.at[e.support[i]] &&
               (m->allowed.n == 1 || (d.sum[i] == e.sum[i] && d.weights[i] == e.weights[i]));
    dpi_audit_hold(a, same, "a mask gives another distribution than a vocabulary without the rest");
    if (status == DPI_STATUS_OK && m->w.options.method == DPI_METHOD_AMIN)
        compare_distances(m, s);
    dpi_sampler_free(s);
    return status;
}

static dpi_status compare(masked *m) {
    dpi_audit *a = m->audit;
    const dpi_sampler_plan *plan = dpi_sampler_plan_get(m->pair.with);
    const dpi_distribution *d = &m->pair.d, *e = &m->pair.e;
    int32_t token = -1;
    DPI_TRY(dpi_audit_pair_begin(a, &m->pair));
    DPI_TRY(dpi_audit_pair_allow(a, &m->allowed, &m->pair));
    DPI_TRY(dpi_audit_pair_compare(a, &m->w, dpi_audit_below(a, m->w.options.n_ref), &m->pair));
    if (!dpi_audit_same_support(a, d, e))
        return DPI_STATUS_OK;
    m->max_ratio = fmax(m->max_ratio, dpi_audit_loss_ratio(a, d, e, plan->eta));
    DPI_TRY(compare_restricted(m, *d));
    DPI_TRY(dpi_audit_pair_step(a, &m->w, &m->pair, &token));
    dpi_audit_hold(a, dpi_audit_is_allowed(&m->allowed, token),
                   "a token that is not allowed");
    dpi_audit_hold(a, m->allowed.n > 1 || dpi_sampler_n_private(m->pair.with) == 0,
                   "a step without a choice is charged");
    return DPI_STATUS_OK;
}

static dpi_status run_setting(masked *m) {
    DPI_TRY(dpi_audit_pair_create(m->audit, &m->w.options, &m->pair));
    for (int i = 0; i < N_CASES; i++) {
        dpi_audit_logits(m->audit, &m->w);
        dpi_audit_tokens_draw(m->audit, &m->allowed);
        if (i % 3 == 0)
            dpi_audit_loud(&m->w, &m->allowed);
        DPI_TRY(compare(m));
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_mask(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_SETTINGS);
    double most = 0;
    DPI_TRY(dpi_audit_begin(a, "loss", "tokens that a public rule allows"));
    for (int32_t i = 0; i < n; i++) {
        masked m = {.audit = a};
        random_options(a, &m.w.options, i);
        const dpi_status status = run_setting(&m);
        dpi_audit_pair_free(&m.pair);
        DPI_TRY(status);
        most = fmax(most, m.max_ratio);
    }
    dpi_audit_end(a, "largest loss / eta", most, .99, 1 + 1e-9);
    return DPI_STATUS_OK;
}
