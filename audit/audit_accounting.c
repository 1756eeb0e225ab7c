/* audit_accounting.c - loss of plans: the (epsilon, delta) that a plan states, against what its
 * integers give by the formulas of docs/spec.md 4.1 and 4.4, and against an attacker; and what a
 * ledger counts of it, against those of 4.8. */
#include <math.h>

#include "base/status.h"
#include "audit/lines.h"
#include "dpinfer/registry.h"

enum { N_PLANS = 60 };

/* delta of 4.1 at the best order 1 + x, in long double. */
static long double zcdp_delta(long double rho, long double epsilon) {
    long double low = -60, high = 60, best = INFINITY; /* of ln x */
    for (int i = 0; i < 200; i++) {
        const long double x = expl((low + high) / 2);
        const long double slope = (2 * x + 1) * rho - epsilon - log1pl(1 / x);
        const long double exponent =
            x * ((1 + x) * rho - epsilon) - (1 + x) * log1pl(1 / x) - logl(x);
        best = fminl(best, expl(exponent)); /* every order is a bound */
        if (slope < 0)
            low = logl(x);
        else
            high = logl(x);
    }
    return best;
}

/* What an attacker gets at epsilon from T tokens whose loss is t with chance p_t and t - eta else,
 * the same t each time: sum over k of Binomial(T, p_t)(k) (1 - e^(epsilon - loss))+. */
static long double attack(long double eta, int32_t T, long double epsilon, long double t) {
    const long double p = expm1l(t - eta) / expm1l(-eta);
    long double delta = 0;
    int sign;
    for (int32_t k = 0; k <= T; k++) {
        const long double loss = T * t - (T - k) * eta;
        if (loss <= epsilon)
            continue;
        const double choose =
            lgamma_r(T + 1., &sign) - lgamma_r(k + 1., &sign) - lgamma_r(T - k + 1., &sign);
        delta += expl(choose + k * logl(p) + (T - k) * log1pl(-p)) * -expm1l(epsilon - loss);
    }
    return delta;
}

static long double best_attack(long double eta, int32_t T, long double epsilon) {
    enum { N_GRID = 400 };
    long double best = 0;
    for (int i = 1; i < N_GRID; i++)
        best = fmaxl(best, attack(eta, T, epsilon, eta * i / N_GRID));
    return best;
}

/* The same with k texts, of which one has the unit: what an attacker sees of all of them is the
 * mean of k ratios, one of each text's at its chance, under the law without the unit. k 2 or 3. */
static long double attack_of_texts(long double eta, int32_t T, int32_t k, long double epsilon) {
    const long double t = eta / 2, p = expm1l(t - eta) / expm1l(-eta), q = p * expl(-t);
    long double removed = 0, added = 0;
    int sign;
    long double x[64], mass[64];
    for (int32_t i = 0; i <= T; i++) {
        const long double choose =
            lgamma_r(T + 1., &sign) - lgamma_r(i + 1., &sign) - lgamma_r(T - i + 1., &sign);
        x[i] = expl(i * t + (T - i) * (t - eta));
        mass[i] = expl(choose + i * logl(q) + (T - i) * log1pl(-q));
    }
    const int32_t n = T + 1, n_ways = n * n * (k > 2 ? n : 1);
    for (int32_t i = 0; i < n_ways; i++) {
        const int32_t a = i % n, b = i / n % n, c = i / n / n;
        const long double mean = (x[a] + x[b] + (k > 2 ? x[c] : 0)) / k;
        const long double chance = mass[a] * mass[b] * (k > 2 ? mass[c] : 1);
        removed += chance * fmaxl(mean - expl(epsilon), 0);
        added += chance * fmaxl(1 - expl(epsilon) * mean, 0);
    }
    return fmaxl(removed, added);
}

/* The (epsilon, delta) before secret assignment that give those of the plan (4.4). */
static void inside(const dpi_sampler_options *o, const dpi_sampler_plan *p, long double *epsilon,
                   long double *delta) {
    const long double q = o->subsample > 0 ? o->subsample : 1;
    *epsilon = log1pl(expm1l(p->epsilon) / q);
    *delta = p->delta / q;
}

static void random_options(dpi_audit *a, dpi_sampler_options *o, bool is_paced) {
    o->n_vocab = 100;
    o->n_ref = o->denominator = 1 + dpi_audit_below(a, 30);
    o->tau = .3 + 2 * dpi_audit_uniform(a);
    o->n_tokens = o->accountant == DPI_ACCOUNTANT_BR ? 1 + dpi_audit_below(a, 6)
                                                     : 1 + dpi_audit_below(a, 500);
    if (is_paced) { /* two private tokens at least: a cost of fewer shows */
        o->n_tokens++;
        o->pace = DPI_PACE_TOP;
        o->pace_theta = .7;
        o->pace_tokens = 2 + dpi_audit_below(a, o->n_tokens - 1);
    }
    o->epsilon = exp(4 * dpi_audit_uniform(a) - 1);
    o->delta = exp(-2 - 20 * dpi_audit_uniform(a));
    o->subsample = dpi_audit_below(a, 2) ? fmax(.01 + dpi_audit_uniform(a), 2 * o->delta) : 0;
    o->subsample = fmin(o->subsample, 1);
}

/* Batches that stay secret: two or three texts, at the epsilon that is stated. */
static dpi_status audit_allocation(dpi_audit *a) {
    static const int32_t accountants[] = {DPI_ACCOUNTANT_ZCDP, DPI_ACCOUNTANT_BR,
                                          DPI_ACCOUNTANT_FILTER};
    long double most = 0;
    const int32_t n = dpi_audit_count(a, N_PLANS / 4);
    DPI_TRY(dpi_audit_begin(a, "loss", "the accountants, one of many batches"));
    for (int32_t i = 0; i < n; i++) {
        dpi_sampler_options o;
        dpi_sampler_plan p;
        long double epsilon, delta;
        dpi_sampler_plan_init(&p);
        dpi_sampler_options_init(&o);
        o.accountant = accountants[i % 3];
        random_options(a, &o, i % 2);
        o.n_tokens = 2 + dpi_audit_below(a, 40);
        o.pace_tokens = o.pace == DPI_PACE_NONE ? 0 : o.n_tokens;
        o.adjacency = DPI_ADJACENCY_ADD_REMOVE;
        o.allocation = 2 + dpi_audit_below(a, 2);
        DPI_TRY(dpi_sampler_plan_make(&o, &p, a->err));
        inside(&o, &p, &epsilon, &delta);
        a->result.n_cases++;
        dpi_audit_hold(a, p.epsilon <= o.epsilon, "epsilon exceeds the budget");
        const int32_t T = o.accountant == DPI_ACCOUNTANT_FILTER ? 1 : o.n_tokens;
        const long double eta = sqrtl(8 * (long double)p.rho_total / T);
        most = fmaxl(most, attack_of_texts(o.accountant == DPI_ACCOUNTANT_BR ? p.eta : eta, T,
                                           o.allocation, epsilon) / delta);
    }
    dpi_audit_end(a, "delta of an attacker / stated", (double)most, .05, 1 + 1e-9);
    return DPI_STATUS_OK;
}

static dpi_status audit_accountant(dpi_audit *a, int32_t accountant, const char *subject) {
    const bool br = accountant == DPI_ACCOUNTANT_BR;
    long double most = 0;
    const int32_t n = dpi_audit_count(a, N_PLANS);
    DPI_TRY(dpi_audit_begin(a, "loss", subject));
    for (int32_t i = 0; i < n; i++) {
        dpi_sampler_options o;
        dpi_sampler_plan p;
        dpi_sampler_plan_init(&p);
        dpi_sampler_options_init(&o);
        o.accountant = accountant;
        random_options(a, &o, i % 2);
        DPI_TRY(dpi_sampler_plan_make(&o, &p, a->err));
        long double epsilon, delta;
        inside(&o, &p, &epsilon, &delta);
        a->result.n_cases++;
        dpi_audit_hold(a, dpi_audit_charges(&o, &p, 2), "the plan charges less than it costs");
        dpi_audit_hold(a, p.epsilon <= o.epsilon, "epsilon exceeds the budget");
        const int32_t n_private = o.pace == DPI_PACE_NONE ? o.n_tokens : o.pace_tokens;
        const long double real =
            br ? best_attack(p.eta, n_private, epsilon) : zcdp_delta(p.rho_total, epsilon);
        most = fmaxl(most, real / delta);
        if (!br) { /* whatever the formula: an attacker gets less */
            const int32_t T = accountant == DPI_ACCOUNTANT_FILTER ? 1 : n_private;
            const long double eta = sqrtl(8 * (long double)p.rho_total / T);
            dpi_audit_hold(a, attack(eta, T, epsilon, eta / 2) <= delta, "an attack beats delta");
        }
    }
    dpi_audit_end(a, br ? "delta of an attacker / stated" : "delta of the formula / stated",
                  (double)most, br ? .9 : .999, 1 + 1e-9);
    return DPI_STATUS_OK;
}

/* ---- Exact composition of long texts --------------------------------------------------------- */

/* delta of T tokens of range eta = sqrt(8 mu / T) as T grows: the loss is normal with mean mu and
 * variance 2 mu (t = eta / 2 at every token). */
static double gaussian_limit(double mu, double epsilon) {
    const double deviation = sqrt(2 * mu);
    return .5 * (erfc((epsilon - mu) / deviation * M_SQRT1_2) -
                 exp(epsilon) * erfc((epsilon + mu) / deviation * M_SQRT1_2));
}

/* The best of attackers whose t is the same at each token, near eta / 2, where it is best. */
static long double attack_long(long double eta, int32_t T, long double epsilon) {
    long double best = 0;
    for (int i = -1; i <= 1; i++)
        best = fmaxl(best, attack(eta, T, epsilon, eta * (.5L + .02L * i)));
    return best;
}

/* br at T from 500 to 10,000, where brute force is out of reach: no less than any attacker gets,
 * and not much more than the limit. */
static dpi_status audit_long_texts(dpi_audit *a) {
    static const int32_t lengths[] = {500, 2000, 5000, 10000};
    static const double cases[][2] = {{.01, .2}, {.25, .2}, {.25, 1}, {1, 1}, {1, 3}, {4, 1}};
    long double most = 0, least = INFINITY;
    DPI_TRY(dpi_audit_begin(a, "loss", "br of 500 to 10,000 tokens"));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            const double mu = cases[k][0], epsilon = cases[k][1], eta = sqrt(8 * mu / lengths[i]);
            const double limit = gaussian_limit(mu, epsilon);
            double delta;
            DPI_TRY(dpi_br_delta(eta, lengths[i], epsilon, &delta, a->err));
            most = fmaxl(most, attack_long(eta, lengths[i], epsilon) / delta);
            least = fminl(least, limit / delta);
            dpi_audit_hold(a, delta >= limit * .999, "delta is below the Gaussian limit");
            a->result.n_cases++;
        }
    dpi_audit_hold(a, least > .85, "delta is far above the Gaussian limit");
    dpi_audit_end(a, "delta of an attacker / stated", (double)most, .9, 1 + 1e-9);
    return DPI_STATUS_OK;
}

/* ---- What a ledger counts -------------------------------------------------------------------- */

/* ln(sinh(x) / x); below 1e-3 its series, as the quotient is too close to 1 there. */
static long double log_sinh_ratio(long double x) {
    const long double square = x * x;
    return x < 1e-3L ? square / 6 - square * square / 180 : logl(sinhl(x) / x);
}

/* The divergences of 4.8 of order A. */
static long double renyi_of_range(long double A, long double eta) {
    return (A * log_sinh_ratio(A * eta / 2) - (A - 1) * log_sinh_ratio((A - 1) * eta / 2) -
            log_sinh_ratio(eta / 2)) / (A - 1);
}

static long double renyi_of_pure(long double A, long double epsilon) {
    return logl(coshl(epsilon * (A - .5L)) / coshl(epsilon / 2)) / (A - 1);
}

static long double renyi_of_secret(long double A, long double divergence, long double q) {
    return log1pl(q * expm1l((A - 1) * divergence)) / (A - 1);
}

/* Whether each private token has the range eta. Under the filter a text ends after no number of
 * private tokens, with the pace SHARE a token costs what is left: both have their rho alone. */
static bool has_ranges(const dpi_sampler_options *o) {
    return o->method != DPI_METHOD_TANG && o->accountant != DPI_ACCOUNTANT_FILTER &&
           o->pace != DPI_PACE_SHARE;
}

/* The cost of one text, by the options and the integers of the plan alone. */
static long double text_cost(const dpi_sampler_options *o, const dpi_sampler_plan *p,
                               int32_t order) {
    const int32_t quota = o->method == DPI_METHOD_AMIN ? o->n_private : o->pace_tokens;
    const int32_t n = quota > 0 ? quota : o->n_tokens;
    long double all = order * (long double)p->rho_total;
    if (o->method == DPI_METHOD_TANG) { /* of the noise itself, 2^-20 of its unit a count of sums */
        const long double ratio = 65536 / ((long double)p->noise_sigma * 0x1p-20L);
        all = order * o->n_tokens * ratio * ratio / 2;
    }
    if (has_ranges(o))
        all = n * renyi_of_range(order, p->eta);
    if (p->svt_scale > 0) /* one instance for each private token */
        all += n * renyi_of_pure(order, 2 * (long double)p->svt_sensitivity / p->svt_scale);
    return all;
}

/* Of two texts, one of which has the unit and nobody knows which: E[((X + Y) / 2)^A] by the
 * binomial theorem, of a unit that goes. */
static long double renyi_of_two(const dpi_sampler_options *o, const dpi_sampler_plan *p,
                                int32_t order) {
    long double sum = 0;
    int sign;
    for (int32_t j = 0; j <= order; j++) {
        const int32_t rest = order - j;
        const long double choose =
            lgamma_r(order + 1., &sign) - lgamma_r(j + 1., &sign) - lgamma_r(rest + 1., &sign);
        sum += expl(choose - order * logl(2) + (j > 1 ? (j - 1) * text_cost(o, p, j) : 0) +
                    (rest > 1 ? (rest - 1) * text_cost(o, p, rest) : 0));
    }
    return fminl(text_cost(o, p, order), logl(sum) / (order - 1));
}

static long double ledger_cost(const dpi_sampler_options *o, const dpi_sampler_plan *p,
                               int32_t order) {
    const long double all =
        o->allocation > 0 ? renyi_of_two(o, p, order) : text_cost(o, p, order);
    return o->subsample > 0 ? renyi_of_secret(order, all, o->subsample) : all;
}

/* A method with a pace and an accountant, each with and without secret assignment. */
typedef struct ledger_plan {
    int32_t method, accountant, pace;
} ledger_plan;

/* Budgets of a text: rho .002..2, or with secret assignment as much as hides in epsilon. */
static void draw_plan(dpi_audit *a, const ledger_plan *l, bool secret, dpi_sampler_options *o) {
    const bool has_quota = l->pace == DPI_PACE_TOP || l->pace == DPI_PACE_CHANGE;
    o->method = l->method;
    o->accountant = l->accountant;
    o->pace = l->pace;
    o->n_vocab = 100;
    o->n_ref = o->denominator = 2 + dpi_audit_below(a, 30);
    o->n_tokens = 2 + dpi_audit_below(a, l->accountant == DPI_ACCOUNTANT_BR ? 6 : 300);
    o->adjacency = dpi_audit_below(a, 2) ? DPI_ADJACENCY_ADD_REMOVE : DPI_ADJACENCY_REPLACE_BY_NULL;
    o->delta = 1e-6;
    if (secret || l->accountant == DPI_ACCOUNTANT_BR)
        o->epsilon = exp(3 * dpi_audit_uniform(a) - 1);
    else
        o->rho = exp(7 * dpi_audit_uniform(a) - 6.2);
    o->subsample = secret ? .01 + .9 * dpi_audit_uniform(a) : 0;
    o->allocation = secret && dpi_audit_below(a, 2) ? 2 : 0;
    if (l->pace != DPI_PACE_NONE)
        o->pace_theta = .5;
    if (has_quota && l->method == DPI_METHOD_INVISIBLEINK)
        o->pace_tokens = 1 + dpi_audit_below(a, o->n_tokens);
    if (l->pace == DPI_PACE_SHARE)
        o->pace_share = .5 + 20 * dpi_audit_uniform(a);
    if (l->accountant == DPI_ACCOUNTANT_FILTER) /* so small that few steps do not use up rho */
        o->clip = .01;
    if (l->method == DPI_METHOD_AMIN) {
        o->n_private = 1 + dpi_audit_below(a, o->n_tokens);
        if (dpi_audit_below(a, 4)) /* else it has no thresholds */
            o->svt_sigma = 2 * sqrt(o->n_private) * (1 + dpi_audit_uniform(a));
        o->rho += o->rho > 0 ? .5 : 0; /* what the thresholds take */
        o->epsilon += o->epsilon > 0 ? 3 : 0;
    }
}

static dpi_status audit_ledger_plan(dpi_audit *a, const ledger_plan *l, bool secret,
                                    long double *most) {
    static const int32_t orders[] = {2, 3, 8, 22, 60};
    dpi_sampler_options o;
    dpi_sampler_plan p;
    dpi_cost cost;
    dpi_sampler_options_init(&o);
    dpi_sampler_plan_init(&p);
    DPI_TRY(dpi_method_defaults(l->method, &o, a->err));
    draw_plan(a, l, secret, &o);
    DPI_TRY(dpi_sampler_plan_make(&o, &p, a->err));
    DPI_TRY(dpi_method_cost(&o, &p, &cost, a->err));
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        double counted;
        DPI_TRY(dpi_cost_renyi(&cost, orders[i], &counted, a->err));
        *most = fmaxl(*most, ledger_cost(&o, &p, orders[i]) / counted);
        a->result.n_cases++;
    }
    return DPI_STATUS_OK;
}

/* A ledger adds up what it counts: each plan must be counted as no less than the formulas say. */
static dpi_status audit_ledger(dpi_audit *a) {
    static const ledger_plan plans[] = {
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_TOP},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_CHANGE},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_ZCDP, DPI_PACE_SHARE},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_BR, DPI_PACE_NONE},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_BR, DPI_PACE_TOP},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, DPI_PACE_NONE},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, DPI_PACE_TOP},
        {DPI_METHOD_INVISIBLEINK, DPI_ACCOUNTANT_FILTER, DPI_PACE_SHARE},
        {DPI_METHOD_AMIN, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE},
        {DPI_METHOD_AMIN, DPI_ACCOUNTANT_ZCDP, DPI_PACE_TOP},
        {DPI_METHOD_TANG, DPI_ACCOUNTANT_ZCDP, DPI_PACE_NONE},
    };
    enum { N_KINDS = sizeof plans / sizeof *plans };
    const int32_t n = dpi_audit_count(a, N_PLANS);
    long double most = 0;
    DPI_TRY(dpi_audit_begin(a, "loss", "plans as a ledger counts them"));
    for (int32_t i = 0; i < 2 * n * N_KINDS; i++)
        DPI_TRY(audit_ledger_plan(a, &plans[i / 2 % N_KINDS], i % 2, &most));
    dpi_audit_end(a, "divergence of the formula / counted", (double)most, .999999, 1 + 1e-9);
    return DPI_STATUS_OK;
}

dpi_status dpi_audit_accounting(dpi_audit *a) {
    DPI_TRY(audit_accountant(a, DPI_ACCOUNTANT_ZCDP, "plans of zcdp"));
    DPI_TRY(audit_accountant(a, DPI_ACCOUNTANT_BR, "plans of br"));
    DPI_TRY(audit_long_texts(a));
    DPI_TRY(audit_accountant(a, DPI_ACCOUNTANT_FILTER, "plans of filter"));
    DPI_TRY(audit_allocation(a));
    return audit_ledger(a);
}
