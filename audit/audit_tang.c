/* audit_tang.c - loss and draws of Tang et al.: what one record can do to the sums, what a plan
 * charges for noise on them, and the law of the token that comes out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dp/methods/tang.h"

enum {
    V = DPI_AUDIT_VOCAB,
    N_SETTINGS = 80,
    N_CASES = 20,
    N_DRAWS = 20000,
    V_EMPTY = 130, /* more than two blocks of 64 */
    CELLS_EMPTY = 10,
    N_EMPTY = 6000,
};

typedef struct setting {
    dpi_audit *audit;
    dpi_audit_pair pair;
    dpi_audit_tokens allowed; /* n = 0: all */
    long double max_norm; /* of what a record moves, as a part of DPI_TANG_ONE */
} setting;

/* ---- The formulas ---------------------------------------------------------------------------- */

/* The k likeliest public tokens of those that are allowed, ties of the integers P included
 * (dp/PRIVACY.md, section 2); by brute force. */
static int32_t find_support(const setting *s, const dpi_audit_case *w, int32_t support[V]) {
    const float *p = w->public_logits;
    const int32_t k = w->options.top_k > 0 ? w->options.top_k : V;
    const int32_t n_allowed = s->allowed.n > 0 ? s->allowed.n : V;
    int32_t token[V], n = 0;
    double fixed[V], top = -INFINITY;
    for (int i = 0; i < n_allowed; i++) {
        token[i] = s->allowed.n > 0 ? s->allowed.at[i] : i;
        top = fmax(top, (double)p[token[i]]);
    }
    for (int i = 0; i < n_allowed; i++)
        fixed[i] = fmax(rint(((double)p[token[i]] - top) * 1048576), -1e4 * 1048576);
    for (int i = 0; i < n_allowed; i++) {
        int32_t n_above = 0;
        for (int j = 0; j < n_allowed; j++)
            n_above += fixed[j] > fixed[i];
        if (n_above < k)
            support[n++] = token[i];
    }
    return n;
}

/* What the unit in slot j adds to all sums, in units of 1. */
static void add_unit(const dpi_audit_case *w, int32_t j, const int32_t *support, int32_t n,
                     double sum[V]) {
    const int32_t M = dpi_audit_per_unit(w), m = dpi_audit_n_records(w, j);
    for (int32_t k = 0; k < M; k++)
        if (w->pointers[j * M + k])
            dpi_audit_add_softmax(w->pointers[j * M + k], support, n, (float)(1 / w->options.tau),
                                  1. / m, sum);
}

/* ---- Neighbours ------------------------------------------------------------------------------ */

static dpi_status find_sums(const setting *s, dpi_sampler *sampler, const dpi_audit_case *w,
                            const float *const *pointers, int64_t sums[V], int32_t *n) {
    DPI_TRY(dpi_sampler_begin(sampler, s->audit->err));
    if (s->allowed.n > 0)
        DPI_TRY(dpi_sampler_allow(sampler, s->allowed.bits, s->audit->err));
    /* As a step does: dpi_sampler_candidates finds no support where all tokens are candidates. */
    DPI_TRY(sampler->method->candidates(sampler, w->public_logits, s->audit->err));
    dpi_tang_sums(sampler, pointers);
    *n = (int32_t)sampler->n_support;
    memcpy(sums, sampler->sum, sampler->n_support * sizeof *sums);
    return DPI_STATUS_OK;
}

/* What left the sums with the record: no value below 0, at most one in all, and so of norm one. */
static void check_moved(setting *s, const dpi_audit_case *w, int32_t j, const int32_t *support,
                        int32_t n, const int64_t *with, const int64_t *without) {
    double wanted[V] = {0};
    int64_t total = 0;
    dpi_u128 square = 0;
    bool positive = true, exact = true;
    add_unit(w, j, support, n, wanted);
    for (int32_t i = 0; i < n; i++) {
        const int64_t x = with[i] - without[i];
        positive &= x >= 0;
        total += x;
        square += (dpi_u128)(uint64_t)(x * x);
        exact &= fabs((double)x - wanted[i] * DPI_TANG_ONE) <= 2;
    }
    dpi_audit_hold(s->audit, positive, "a record lowers a sum");
    dpi_audit_hold(s->audit, total <= DPI_TANG_ONE, "a record adds more than one in all");
    dpi_audit_hold(s->audit, exact, "a record adds other than its probabilities");
    s->max_norm = fmaxl(s->max_norm, sqrtl((long double)square) / DPI_TANG_ONE);
}

static dpi_status compare(setting *s, const dpi_audit_case *w, int32_t j) {
    dpi_audit *a = s->audit;
    int64_t with[V], without[V];
    int32_t support[V], n, m;
    double sums[V] = {0};
    bool same = true;
    const int32_t n_support = find_support(s, w, support);
    dpi_audit_leave_out(w, j, s->pair.neighbour);
    a->result.n_cases++;
    DPI_TRY(find_sums(s, s->pair.with, w, w->pointers, with, &n));
    same &= n == n_support && !memcmp(s->pair.with->support, support, (size_t)n * sizeof *support);
    DPI_TRY(find_sums(s, s->pair.without, w, s->pair.neighbour, without, &m));
    same &= m == n && !memcmp(s->pair.without->support, support, (size_t)n * sizeof *support);
    if (!dpi_audit_hold(a, same, "the support is not that of the public logits"))
        return DPI_STATUS_OK;
    check_moved(s, w, j, support, n, with, without);
    for (int32_t i = 0; i < w->options.n_ref; i++)
        add_unit(w, i, support, n, sums);
    for (int32_t i = 0; i < n; i++)
        same &= fabs((double)with[i] - sums[i] * DPI_TANG_ONE) <= 2 * w->options.n_ref;
    dpi_audit_hold(a, same, "the sums are not those of all records");
    return DPI_STATUS_OK;
}

/* The token is one of the support. */
static dpi_status check_token(setting *s, const dpi_audit_case *w) {
    int32_t support[V], token = -1;
    bool found = false;
    const int32_t n = find_support(s, w, support);
    DPI_TRY(dpi_sampler_begin(s->pair.with, s->audit->err));
    if (s->allowed.n > 0)
        DPI_TRY(dpi_sampler_allow(s->pair.with, s->allowed.bits, s->audit->err));
    DPI_TRY(dpi_sampler_step(s->pair.with, w->public_logits, w->pointers, &token, s->audit->err));
    for (int32_t i = 0; i < n; i++)
        found |= support[i] == token;
    dpi_audit_hold(s->audit, found, "a token that is none of the likeliest public ones");
    dpi_audit_hold(s->audit, dpi_sampler_n_private(s->pair.with) == (n > 1),
                   "a step without a choice is charged, or one with a choice is not");
    return DPI_STATUS_OK;
}

/* D^2 / (2 s^2) of the integers, and T of it within the budget. */
static void check_plan(setting *s, const dpi_sampler_options *o) {
    const dpi_sampler_plan *p = dpi_sampler_plan_get(s->pair.with);
    const long double ratio = 65536.L / ((long double)p->noise_sigma * 0x1p-20L);
    const long double rho = ratio * ratio / 2;
    dpi_audit_hold(s->audit, p->rho_token >= rho && p->rho_token <= rho * (1 + 1e-12L),
                   "a token is charged less than its noise costs");
    dpi_audit_hold(s->audit, p->rho_total >= rho * o->n_tokens && p->rho_total <= o->rho,
                   "the text costs more than the budget");
    dpi_audit_hold(s->audit, p->rho_total >= o->rho * (1 - 1e-6), "the noise is too large");
}

static dpi_status run_setting(setting *s, dpi_audit_case *w) {
    dpi_audit *a = s->audit;
    DPI_TRY(dpi_audit_pair_create(a, &w->options, &s->pair));
    check_plan(s, &w->options);
    for (int i = 0; i < N_CASES; i++) {
        dpi_audit_logits(a, w);
        s->allowed.n = 0;
        if (dpi_audit_below(a, 2))
            dpi_audit_tokens_draw(a, &s->allowed);
        if (i % 4 == 0) { /* all of a record's mass on one token: the largest norm */
            dpi_audit_fill(w);
            for (int j = 0; j < DPI_AUDIT_REFS; j++)
                for (int y = 0; y < V; y++)
                    w->reference[j][y] = w->public_logits[y] + (float)(y % (j + 3) ? -2e3 : y);
            for (int j = 1; j < DPI_AUDIT_REFS && i % 8 == 0; j++) /* alone among nulls */
                w->pointers[j] = NULL;
        }
        DPI_TRY(compare(s, w, i % 4 == 0 ? 0 : dpi_audit_below(a, w->options.n_ref)));
        if (i % 4 == 0)
            DPI_TRY(check_token(s, w));
    }
    return DPI_STATUS_OK;
}

static dpi_status audit_sums(dpi_audit *a) {
    const int32_t n = dpi_audit_count(a, N_SETTINGS);
    setting s = {.audit = a};
    DPI_TRY(dpi_audit_begin(a, "loss", "Tang et al., sums and what noise costs"));
    for (int32_t i = 0; i < n; i++) {
        dpi_audit_case w = {0};
        dpi_sampler_options *o = &w.options;
        dpi_sampler_options_init(o);
        o->method = DPI_METHOD_TANG;
        o->adjacency = i % 2 ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
        dpi_audit_options_draw(a, o);
        if (i % 3 == 0)
            dpi_audit_units(a, o);
        o->n_tokens = 1 + dpi_audit_below(a, 500);
        o->rho = exp(10 * dpi_audit_uniform(a) - 5);
        const dpi_status status = run_setting(&s, &w);
        dpi_audit_pair_free(&s.pair);
        DPI_TRY(status);
    }
    dpi_audit_end(a, "largest norm of a record", (double)s.max_norm, .999, 1);
    return DPI_STATUS_OK;
}

/* ---- The law of a token ---------------------------------------------------------------------- */

/* Two tokens, one record that has all its mass on the first: with noise of deviation s on each sum
 * the first one comes with probability Phi(1 / (sqrt(2) s)). Pairs of tokens that follow each
 * other: noise that is kept, or halved, is another law. */
static dpi_status audit_law(dpi_audit *a) {
    static const float public_logits[] = {0, 0}, record[] = {1e4f, -1e4f};
    const double p = .5 * erfc(-.5); /* Phi(1 / sqrt(2)) */
    const double wanted[] = {p * p, p * (1 - p), p * (1 - p), (1 - p) * (1 - p)};
    const int32_t n = dpi_audit_count(a, N_DRAWS) / 2;
    int64_t count[4] = {0};
    dpi_sampler_options o;
    dpi_audit_defaults(a, &o);
    o.method = DPI_METHOD_TANG;
    o.n_vocab = 2;
    o.top_k = 0;
    o.n_ref = 1;
    o.n_tokens = 2;
    o.rho = 1; /* of two tokens: s = 1 */
    DPI_TRY(dpi_audit_begin(a, "draws", "Tang et al., frequencies of tokens"));
    DPI_TRY(dpi_audit_count_draws(a, &o, public_logits, (const float *const[]){record}, n, true,
                                  count));
    dpi_audit_end_chi_square(a, dpi_audit_chi_square(count, wanted, 4, n), 3);
    return DPI_STATUS_OK;
}

/* Without any record all sums are 0 and noise alone decides: each token is as likely. */
static dpi_status audit_no_record(dpi_audit *a) {
    static const float public_logits[V_EMPTY];
    const int32_t n = dpi_audit_count(a, N_EMPTY);
    int64_t count[V_EMPTY] = {0}, cells[CELLS_EMPTY] = {0};
    double wanted[CELLS_EMPTY] = {0};
    dpi_sampler_options o;
    dpi_audit_defaults(a, &o);
    o.method = DPI_METHOD_TANG;
    o.n_vocab = V_EMPTY;
    o.top_k = 0;
    o.n_ref = 2;
    o.n_tokens = n;
    o.rho = 1;
    DPI_TRY(dpi_audit_begin(a, "draws", "Tang et al., tokens without a record"));
    DPI_TRY(dpi_audit_count_draws(a, &o, public_logits, (const float *const[]){NULL, NULL}, n,
                                  false, count));
    for (int y = 0; y < V_EMPTY; y++) {
        cells[y * CELLS_EMPTY / V_EMPTY] += count[y];
        wanted[y * CELLS_EMPTY / V_EMPTY] += 1. / V_EMPTY;
    }
    dpi_audit_end_chi_square(a, dpi_audit_chi_square(cells, wanted, CELLS_EMPTY, n),
                             CELLS_EMPTY - 1);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_tang(dpi_audit *a) {
    DPI_TRY(audit_sums(a));
    DPI_TRY(audit_law(a));
    return audit_no_record(a);
}
