/* case.c - records for audits, their neighbours, and the formulas of dp/PRIVACY.md sections 2
 * and 3 a second time: in real arithmetic and by brute force. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/methods/method.h"

enum { V_MAX = DPI_AUDIT_WIDE };

static const long double LN2 = 0.693147180559945309417232121458176568L;

/* ---- Options and draws ----------------------------------------------------------------------- */

void dpi_audit_defaults(const dpi_audit *a, dpi_sampler_options *o) {
    dpi_sampler_options_init(o);
    o->random = a->options.random;
    o->random_user = a->options.random_user;
}

int32_t dpi_audit_isa(dpi_audit *a) {
    int32_t n = 0, chosen = DPI_ISA_AUTO;
    for (int32_t isa = dpi_isa_next(DPI_ISA_AUTO); isa != DPI_ISA_AUTO; isa = dpi_isa_next(isa))
        n++;
    for (int32_t left = dpi_audit_below(a, n); left >= 0; left--)
        chosen = dpi_isa_next(chosen);
    return chosen;
}

double dpi_audit_tau(dpi_audit *a) { return .3 + 2 * dpi_audit_uniform(a); }

void dpi_audit_options_draw(dpi_audit *a, dpi_sampler_options *o) {
    o->n_vocab = o->n_vocab > 0 ? o->n_vocab : DPI_AUDIT_VOCAB;
    o->isa = dpi_audit_isa(a);
    o->n_ref = 3 + dpi_audit_below(a, DPI_AUDIT_REFS - 2);
    o->denominator = 1 + dpi_audit_below(a, 2 * DPI_AUDIT_REFS);
    o->top_k = dpi_audit_below(a, o->n_vocab + 1);
    o->tau = dpi_audit_tau(a);
}

dpi_status dpi_audit_count_draws(dpi_audit *a, const dpi_sampler_options *o,
                                 const float *public_logits, const float *const *references,
                                 int32_t n, bool pairs, int64_t *count) {
    dpi_sampler *s;
    DPI_TRY(dpi_sampler_create(o, &s, a->err));
    dpi_status status = dpi_sampler_begin(s, a->err);
    for (int32_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        int32_t token[2] = {0, 0};
        if (dpi_sampler_tokens_left(s) == 0)
            status = dpi_sampler_begin(s, a->err);
        for (int k = !pairs; k < 2 && status == DPI_STATUS_OK; k++)
            status = dpi_sampler_step(s, public_logits, references, &token[k], a->err);
        if (status == DPI_STATUS_OK)
            count[token[0] * o->n_vocab + token[1]]++;
    }
    dpi_sampler_free(s);
    a->result.n_cases = n;
    return status;
}

/* ---- Cases ---------------------------------------------------------------------------------- */

void dpi_audit_logits(dpi_audit *a, dpi_audit_case *c) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f};
    const double spread = exp(6 * dpi_audit_uniform(a) - 4);
    const int32_t V = c->options.n_vocab;
    const bool ties = dpi_audit_below(a, 4) == 0, nulls = dpi_audit_below(a, 3) == 0;
    const int32_t n_odd = dpi_audit_below(a, 3) == 0 ? 12 : 1000;
    for (int y = 0; y < V; y++) {
        double p = 4 * dpi_audit_normal(a);
        c->public_logits[y] = (float)(ties ? rint(p) : p);
    }
    for (int j = 0; j < DPI_AUDIT_REFS; j++) {
        for (int y = 0; y < V; y++) {
            float *l = &c->reference[j][y];
            *l = c->public_logits[y] + (float)(spread * dpi_audit_normal(a));
            if (dpi_audit_below(a, n_odd) == 0)
                *l = odd[dpi_audit_below(a, sizeof odd / sizeof *odd)];
            if (n_odd == 12 && dpi_audit_below(a, 24) == 0) { /* any bits */
                uint32_t bits = (uint32_t)dpi_audit_random(a);
                memcpy(l, &bits, sizeof bits);
            }
        }
        c->pointers[j] = nulls && dpi_audit_below(a, 2) ? NULL : c->reference[j];
    }
}

void dpi_audit_fill(dpi_audit_case *c) {
    for (int j = 0; j < DPI_AUDIT_REFS; j++)
        c->pointers[j] = c->reference[j];
}

/* ---- Pairs ---------------------------------------------------------------------------------- */

void dpi_audit_leave_out(const dpi_audit_case *c, int32_t j,
                         const float *pointers[DPI_AUDIT_REFS]) {
    const int32_t M = dpi_audit_per_unit(c);
    memcpy(pointers, c->pointers, sizeof c->pointers);
    for (int32_t k = 0; k < M; k++)
        pointers[j * M + k] = NULL;
    if (c->options.adjacency == DPI_ADJACENCY_ADD_REMOVE)
        for (int32_t i = j * M; i + M < c->options.n_ref * M; i++)
            pointers[i] = c->pointers[i + M];
}

dpi_status dpi_audit_pair_create(dpi_audit *audit, const dpi_sampler_options *o,
                                 dpi_audit_pair *pair) {
    dpi_sampler_options fewer = *o;
    fewer.n_ref -= o->adjacency == DPI_ADJACENCY_ADD_REMOVE;
    DPI_TRY(dpi_sampler_create(o, &pair->with, audit->err));
    return dpi_sampler_create(&fewer, &pair->without, audit->err);
}

void dpi_audit_pair_free(dpi_audit_pair *pair) {
    dpi_sampler_free(pair->with);
    dpi_sampler_free(pair->without);
    memset(pair, 0, sizeof *pair);
}

dpi_status dpi_audit_pair_compare(dpi_audit *audit, const dpi_audit_case *c, int32_t j,
                                  dpi_audit_pair *pair) {
    const float *p = c->public_logits;
    dpi_audit_leave_out(c, j, pair->neighbour);
    DPI_TRY(dpi_sampler_distribution(pair->with, p, c->pointers, &pair->d, audit->err));
    DPI_TRY(dpi_sampler_distribution(pair->without, p, pair->neighbour, &pair->e, audit->err));
    audit->result.n_cases++;
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_pair_begin(dpi_audit *audit, dpi_audit_pair *pair) {
    DPI_TRY(dpi_sampler_begin(pair->with, audit->err));
    return dpi_sampler_begin(pair->without, audit->err);
}

dpi_status dpi_audit_pair_allow(dpi_audit *audit, const dpi_audit_tokens *tokens,
                                dpi_audit_pair *pair) {
    const uint64_t *bits = tokens->n > 0 ? tokens->bits : NULL;
    DPI_TRY(dpi_sampler_allow(pair->with, bits, audit->err));
    return dpi_sampler_allow(pair->without, bits, audit->err);
}

dpi_status dpi_audit_pair_step(dpi_audit *audit, const dpi_audit_case *c, dpi_audit_pair *pair,
                               int32_t *token) {
    const float *p = c->public_logits;
    int32_t other;
    DPI_TRY(dpi_sampler_step(pair->with, p, c->pointers, token, audit->err));
    return dpi_sampler_step(pair->without, p, pair->neighbour, &other, audit->err);
}

bool dpi_audit_same_support(dpi_audit *audit, const dpi_distribution *d,
                            const dpi_distribution *e) {
    return dpi_audit_hold(audit, d->is_free == e->is_free, "a decision depends on a record") &&
           dpi_audit_hold(audit,
                          d->n_support == e->n_support &&
                              memcmp(d->support, e->support,
                                     (size_t)d->n_support * sizeof *d->support) == 0,
                          "the supports of neighbours differ");
}

double dpi_audit_loss_ratio(dpi_audit *audit, const dpi_distribution *d, const dpi_distribution *e,
                            long double eta) {
    const long double loss = dpi_audit_loss(d, e);
    /* 2^-55: rounding of the logarithms. */
    dpi_audit_hold(audit, loss <= eta + 0x1p-55L, "a loss exceeds eta");
    return (double)(loss / eta);
}

/* ---- Tokens that are allowed ----------------------------------------------------------------- */

void dpi_audit_tokens_draw(dpi_audit *a, dpi_audit_tokens *t) {
    const int32_t share = 1 + dpi_audit_below(a, 8), only = dpi_audit_below(a, DPI_AUDIT_VOCAB);
    const bool one = dpi_audit_below(a, 6) == 0;
    memset(t, 0, sizeof *t);
    for (int32_t y = 0; y < DPI_AUDIT_VOCAB; y++)
        if (y == only || (!one && dpi_audit_below(a, 8) < share)) {
            t->bits[y / 64] |= UINT64_C(1) << (y % 64);
            t->at[t->n++] = y;
        }
}

bool dpi_audit_is_allowed(const dpi_audit_tokens *t, int32_t token) {
    return t->n == 0 || (t->bits[token / 64] >> (token % 64) & 1);
}

void dpi_audit_loud(dpi_audit_case *c, const dpi_audit_tokens *t) {
    const int32_t n = t->n > 0 ? t->n : c->options.n_vocab;
    for (int32_t i = 0; i < n; i++) {
        const int32_t y = t->n > 0 ? t->at[i] : i;
        c->public_logits[y] = 0;
        for (int j = 0; j < DPI_AUDIT_REFS; j++)
            c->reference[j][y] = (i + j) % 2 ? 5000 : -5000;
    }
    dpi_audit_fill(c);
}

/* ---- Units ----------------------------------------------------------------------------------- */

int32_t dpi_audit_per_unit(const dpi_audit_case *c) {
    return c->options.max_per_unit > 1 ? c->options.max_per_unit : 1;
}

int32_t dpi_audit_n_records(const dpi_audit_case *c, int32_t j) {
    const int32_t M = dpi_audit_per_unit(c);
    int32_t n = 0;
    for (int32_t k = 0; k < M; k++)
        n += c->pointers[j * M + k] != NULL;
    return n;
}

void dpi_audit_units(dpi_audit *a, dpi_sampler_options *o) {
    o->max_per_unit = 2 + dpi_audit_below(a, 3);
    o->n_ref = DPI_AUDIT_REFS / o->max_per_unit;
}

int64_t dpi_audit_mean(int64_t sum, int32_t m) {
    return m > 0 ? llrintl((long double)sum / m) : 0;
}

/* ---- Contributions --------------------------------------------------------------------------- */

static long double log_mass(const float *l, const dpi_distribution *d) {
    long double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < d->n_support; i++)
        if (isfinite(l[d->support[i]]))
            top = fmaxl(top, l[d->support[i]]);
    if (top == -INFINITY)
        return 0; /* every entry contributes 0 */
    for (int64_t i = 0; i < d->n_support; i++)
        if (isfinite(l[d->support[i]]))
            sum += expl(l[d->support[i]] - top);
    return top + logl(sum);
}

double dpi_audit_finite(float l) { return isfinite(l) ? (double)l : -0x1.fffffep127; }

void dpi_audit_add_softmax(const float *l, const int32_t *support, int32_t n, float scale,
                           double factor, double *sum) {
    double p[V_MAX], z = 0, top = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        p[i] = dpi_audit_finite(l[support ? support[i] : i] * scale);
        top = fmax(top, p[i]);
    }
    for (int32_t i = 0; i < n; i++)
        z += p[i] = exp(p[i] - top);
    for (int32_t i = 0; i < n; i++)
        sum[i] += factor * p[i] / z;
}

/* Without centring the definition is one double subtraction, and they are exact. */
int64_t dpi_audit_contribution(const dpi_audit_case *w, const float *l, const dpi_distribution *d,
                               int64_t K, int64_t *c) {
    static const float zeros[V_MAX];
    long double m = 0;
    if (!l && w->options.adjacency == DPI_ADJACENCY_ZERO_OUT)
        l = zeros;
    if (l && w->options.center)
        m = log_mass(l, d) - log_mass(w->public_logits, d);
    for (int64_t i = 0; i < d->n_support; i++) {
        const int32_t y = d->support[i];
        long double x = 0;
        if (l && isfinite(l[y]))
            x = ((double)l[y] - (double)w->public_logits[y] - m) * 1048576;
        c[i] = x >= K ? K : x <= -K ? -K : llrintl(x);
    }
    /* exp and log have last bits; of a huge m little is left in double. */
    return !w->options.center ? 0 : fabsl(m) < 0x1p25L ? 1 : 2 * K;
}

/* ---- Distributions -------------------------------------------------------------------------- */

long double dpi_audit_loss(const dpi_distribution *d, const dpi_distribution *e) {
    long double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < d->n_support; i++) {
        if (d->weights[i] == 0 || e->weights[i] == 0)
            return INFINITY;
        long double loss = logl((long double)d->weights[i] / (long double)e->weights[i]);
        low = fminl(low, loss);
        high = fmaxl(high, loss);
    }
    return high - low;
}

static int descending(const void *x, const void *y) {
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

static void fix(const dpi_audit_case *c, int64_t *P) {
    const int32_t V = c->options.n_vocab;
    double top = -INFINITY;
    for (int y = 0; y < V; y++)
        top = fmax(top, (double)c->public_logits[y]);
    for (int y = 0; y < V; y++)
        P[y] = llrint(fmax((double)c->public_logits[y] - top, -1e4) * 1048576);
}

/* V_k+ by sorting. */
static bool support_is(const int64_t *P, int32_t V, int32_t top_k, int64_t D, int64_t slack,
                       const dpi_distribution *d) {
    int64_t sorted[V_MAX], n = 0;
    memcpy(sorted, P, (size_t)V * sizeof *sorted);
    qsort(sorted, (size_t)V, sizeof *sorted, descending);
    for (int32_t y = 0; y < V; y++) {
        if (top_k > 0 && D * P[y] < D * sorted[top_k - 1] - slack)
            continue;
        if (n >= d->n_support || d->support[n] != y)
            return false;
        n++;
    }
    return n == d->n_support;
}

/* Weights of dp/PRIVACY.md Lemma 4, within its margins. */
static bool weights_are(const int64_t *U, uint64_t a, const dpi_distribution *d) {
    int64_t top = U[0];
    for (int64_t i = 1; i < d->n_support; i++)
        top = U[i] > top ? U[i] : top;
    for (int64_t i = 0; i < d->n_support; i++) {
        long double bits = 0x1p-48L * (long double)(top - U[i]) * (long double)a;
        long double error = logl((long double)d->weights[i]) - (109 - fminl(bits, 69)) * LN2;
        if (!(error >= -0x1p-40L - 0x1p-55L && error <= 0x1p-55L))
            return false;
    }
    return true;
}

void dpi_audit_formulas(dpi_audit *audit, const dpi_audit_case *c, const dpi_sampler_plan *plan,
                        int64_t public_scale, int32_t top_k, int64_t slack,
                        const dpi_distribution *d) {
    const int64_t D = dpi_sampler_denominator(&c->options);
    int64_t P[V_MAX], U[V_MAX];
    fix(c, P);
    if (!dpi_audit_hold(audit, support_is(P, c->options.n_vocab, top_k, D, slack, d),
                        "the support is not V_k+"))
        return;
    for (int64_t i = 0; i < d->n_support; i++)
        U[i] = public_scale * P[d->support[i]] + d->sum[i];
    dpi_audit_hold(audit, weights_are(U, plan->a, d), "a weight is not that of its utility");
}

/* ---- Charges -------------------------------------------------------------------------------- */

bool dpi_audit_charges(const dpi_sampler_options *o, const dpi_sampler_plan *p, int32_t factor) {
    const long double eta =
        (long double)factor * (long double)p->K * (long double)p->a * LN2 * 0x1p-48L + 0x1p-38L;
    const long double exact = 1 - 0x1p-60L; /* rounding here */
    const long double own = p->eta, token = p->rho_token;
    if (!(own >= eta * exact && token >= own * own / 8 && p->eta <= 1.000001 * (double)eta))
        return false;
    if (o->accountant == DPI_ACCOUNTANT_BR)
        return true;
    if (!(p->rho_total <= p->rho_budget && (o->rho == 0 || p->rho_budget <= o->rho)))
        return false;
    return o->accountant == DPI_ACCOUNTANT_FILTER || o->method != DPI_METHOD_INVISIBLEINK ||
           p->rho_total >= (p->n_private > 0 ? p->n_private : o->n_tokens) * token * exact ||
           o->pace == DPI_PACE_SHARE;
}
