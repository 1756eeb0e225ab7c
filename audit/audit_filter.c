/* audit_filter.c - loss of whole texts under the accountant filter: neighbours with the same
 * history, token after token. What one record's losses cost stays within its own budget, and
 * no other record's contributions depend on it. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "audit/lines.h"

enum { V = DPI_AUDIT_VOCAB, N_TEXTS = 150, N_TOKENS = 60 };

typedef struct text {
    dpi_audit *audit;
    dpi_audit_case records;
    dpi_audit_pair pair; /* the neighbour is without record 0 */
    long double spent;   /* cost of the losses seen so far */
    bool exhausted;
} text;

static void random_options(dpi_audit *a, dpi_sampler_options *o, int32_t i) {
    dpi_sampler_options_init(o);
    o->accountant = DPI_ACCOUNTANT_FILTER;
    o->adjacency = i % 3;
    o->center = i / 3 % 2;
    dpi_audit_options_draw(a, o);
    o->n_tokens = N_TOKENS;
    o->rho = exp(5 * dpi_audit_uniform(a) - 4);
}

/* Logits of the next token: the records' come with another spread for each token and record, so
 * that some use up their budgets and others do not. */
static void next_logits(text *x) {
    dpi_audit *a = x->audit;
    dpi_audit_case *w = &x->records;
    for (int y = 0; y < V; y++)
        w->public_logits[y] = (float)(4 * dpi_audit_normal(a));
    for (int j = 0; j < DPI_AUDIT_REFS; j++) {
        const double spread = exp(4 * dpi_audit_uniform(a) - 3);
        for (int y = 0; y < V; y++)
            w->reference[j][y] = w->public_logits[y] + (float)(spread * dpi_audit_normal(a));
    }
}

/* Record 0 moves what the formulas say, or nothing: what others contribute does not depend on it.
 * And once it moves nothing where it could, that is for good. */
static void check_moved(text *x, const dpi_distribution *d, const dpi_distribution *e) {
    dpi_audit *a = x->audit;
    const dpi_audit_case *w = &x->records;
    const int64_t K = dpi_sampler_plan_get(x->pair.with)->K;
    int64_t own[V], null[V];
    const int64_t off = dpi_audit_contribution(w, w->reference[0], d, K, own) +
                        dpi_audit_contribution(w, NULL, d, K, null);
    bool pays = true, nothing = true, could = false;
    for (int64_t i = 0; i < d->n_support; i++) {
        const int64_t moved = d->sum[i] - e->sum[i], wanted = own[i] - null[i];
        pays &= llabs(moved - wanted) <= off;
        nothing &= moved == 0;
        could |= llabs(wanted) > off;
    }
    dpi_audit_hold(a, pays || nothing, "a record changes what others contribute");
    dpi_audit_hold(a, !x->exhausted || nothing, "a record goes on after its budget");
    x->exhausted |= nothing && could;
}

/* One token in both worlds. */
static dpi_status compare_token(text *x) {
    dpi_audit *a = x->audit;
    const dpi_distribution *d = &x->pair.d, *e = &x->pair.e;
    int32_t ignored;
    next_logits(x);
    DPI_TRY(dpi_audit_pair_compare(a, &x->records, 0, &x->pair));
    if (!dpi_audit_same_support(a, d, e))
        return DPI_STATUS_OK;
    const long double loss = dpi_audit_loss(d, e);
    check_moved(x, d, e);
    x->spent += loss * loss / 8;
    return dpi_audit_pair_step(a, &x->records, &x->pair, &ignored);
}

static dpi_status play(text *x) {
    DPI_TRY(dpi_audit_pair_create(x->audit, &x->records.options, &x->pair));
    for (int round = 0; round < 2; round++) { /* a second text: other records, full budgets */
        DPI_TRY(dpi_audit_pair_begin(x->audit, &x->pair));
        x->spent = 0;
        x->exhausted = false;
        for (int i = 0; i < N_TOKENS; i++)
            DPI_TRY(compare_token(x));
        dpi_audit_hold(x->audit, x->spent <= (long double)x->records.options.rho,
                       "a record spends more than its budget");
    }
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_filter(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_TEXTS);
    long double most = 0;
    DPI_TRY(dpi_audit_begin(a, "loss", "InvisibleInk, texts under filter"));
    for (int32_t i = 0; i < n; i++) {
        text x = {.audit = a};
        random_options(a, &x.records.options, i);
        dpi_audit_fill(&x.records);
        dpi_status status = play(&x);
        dpi_audit_pair_free(&x.pair);
        DPI_TRY(status);
        most = fmaxl(most, x.spent / x.records.options.rho);
    }
    dpi_audit_end(a, "largest cost of losses / rho", (double)most, .97, 1);
    return DPI_STATUS_OK;
}
