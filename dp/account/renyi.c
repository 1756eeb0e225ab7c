#include "dp/account/renyi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "dp/account/account.h"

/* A share of the terms of a sum: 128 times what a few operations of 2^-52 can lose. */
static const double MARGIN = 0x1p-45;
static const double LN2 = 0x1.62e42fefa39efp-1;

static double up(double x) { return nextafter(x, INFINITY); }

/* ---- Parts of formulas: relative error below 2^-48 ------------------------------------------- */

/* ln(sinh(x) / x), x >= 0. */
static double log_sinh_ratio(double x) {
    if (x > 2)
        return x - log(2 * x) + log1p(-exp(-2 * x));
    double term = 1, sum = 0;
    for (int k = 1; k <= 16; k++) { /* the first that is left out is below 2^-80 of the sum */
        term *= x * x / (2.0 * k * (2.0 * k + 1));
        sum += term;
    }
    return log1p(sum);
}

/* ln cosh(x), x >= 0. */
static double log_cosh(double x) {
    if (x > 1)
        return x - LN2 + log1p(exp(-2 * x));
    const double half = sinh(x / 2);
    return log1p(2 * half * half);
}

/* ln(1 + e^x). */
static double log1p_exp(double x) { return x > 40 ? x + exp(-x) : log1p(exp(x)); }

/* ln(e^x - 1), x > 0. */
static double log_expm1(double x) { return x > 1 ? x + log1p(-exp(-x)) : log(expm1(x)); }

/* ---- Divergences ----------------------------------------------------------------------------- */

/* rho-zCDP: A rho. */
static double of_zcdp(int32_t order, double rho) { return up(order * rho); }

/* Let h(x) = ln(sinh(x) / x). The largest E_Q[(P/Q)^A] over laws of two ratios e^t and e^(t -
 * eta), over t, is exp(A h(A eta/2) - (A-1) h((A-1) eta/2) - h(eta/2)). */
/* Bounded range eta in (0, 1e6]: exact, and no more than A eta^2 / 8 and eta. */
static double of_range(int32_t order, double eta) {
    const double A = order;
    const double most = A * log_sinh_ratio(A * eta / 2);
    const double less = (A - 1) * log_sinh_ratio((A - 1) * eta / 2) + log_sinh_ratio(eta / 2);
    const double exact = up((most - less + MARGIN * (most + less)) / (A - 1));
    const double square = up(A * up(eta * eta) * 0.125);
    return fmin(eta, fmin(exact, square));
}

/* Pure epsilon: that of randomised response. */
static double of_pure(int32_t order, double epsilon) {
    const double A = order;
    const double most = log_cosh(epsilon * (A - 0.5)), less = log_cosh(epsilon / 2);
    return fmin(epsilon, up((most - less + MARGIN * (most + less)) / (A - 1)));
}

/* ln of C(A,k) (1-q)^(A-k) q^k (e^(k (k-1) / (2 sigma^2)) - 1), rounded up; q < 1. */
static double log_term(double A, double k, double sigma, double q) {
    int sign;
    const double all = lgamma_r(A + 1, &sign);
    const double chosen = lgamma_r(k + 1, &sign) + lgamma_r(A - k + 1, &sign);
    const double out = (A - k) * log1p(-q), in = k * log(q);
    const double x = k * (k - 1) / (2 * sigma * sigma), shift = log_expm1(x);
    /* shift itself may be a small difference: e^x - 1 is good to some units, so its logarithm is
     * to as much of 1. */
    const double size = all + chosen - out - in + fabs(shift) + 1;
    return all - chosen + out + in + shift + MARGIN * size;
}

/* The binomial weights have the sum 1, so that the sum of the formula is 1 + sum of the terms
 * above: no term is lost where q is small. */
double dpi_renyi_of_gaussian(int32_t order, double sigma, double q) {
    const double A = order, all = up(A / (2 * sigma * sigma) * (1 + MARGIN));
    if (q >= 1)
        return all;
    double top = -INFINITY, sum = 0;
    for (int32_t k = 2; k <= order; k++) {
        const double term = log_term(A, k, sigma, q);
        if (term > top) {
            sum = sum * exp(top - term) + 1;
            top = term;
        } else {
            sum += exp(term - top);
        }
    }
    /* Each of A steps loses some units of the sum, and A is at most 2^20. */
    const double log_sum = top + log(sum) + 0x1p-28 + MARGIN * (fabs(top) + 1);
    return fmin(all, up(log1p_exp(log_sum) * (1 + MARGIN) / (A - 1)));
}

/* A mechanism of divergence d against the absence of a record that joins with probability q. */
static double of_subsample(int32_t order, double d, double q) {
    const double A = order, x = (A - 1) * d;
    if (q >= 1 || !isfinite(x))
        return d;
    const double inside = log(q) + log_expm1(x) + MARGIN * (fabs(log(q)) + fabs(log_expm1(x)) + 1);
    return fmin(d, up(log1p_exp(inside) * (1 + MARGIN) / (A - 1)));
}

/* ---- Budgets --------------------------------------------------------------------------------- */

/* Less than a budget by what a divergence of order A must pay for delta: may be negative. */
static double conversion(double delta, int32_t order, double *size) {
    const double A = order, step = log1p(-1 / A), logs = (log(delta) + log(A)) / (A - 1);
    *size = fabs(step) + (fabs(log(delta)) + log(A)) / (A - 1);
    return logs - step;
}

static double budget_at(double epsilon, double delta, int32_t order) {
    double size;
    const double gain = conversion(delta, order, &size);
    return nextafter(epsilon + gain - MARGIN * (epsilon + size), -INFINITY);
}

static dpi_status check_order(int32_t order, dpi_error *err) {
    if (order >= 2 && order <= DPI_RENYI_ORDER_MAX)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "order is %d, must be 2..%d", (int)order,
                    DPI_RENYI_ORDER_MAX);
}

dpi_status dpi_renyi_budget(double epsilon, double delta, int32_t order, double *budget,
                            dpi_error *err) {
    DPI_TRY(dpi_account_check("epsilon", epsilon, 1e6, false, err));
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    DPI_TRY(check_order(order, err));
    const double found = budget_at(epsilon, delta, order);
    if (!(found > 0))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "epsilon %g and delta %g have no Renyi budget at the order %d", epsilon,
                        delta, (int)order);
    *budget = found;
    return DPI_STATUS_OK;
}

/* For each rho the orders that prove delta are an interval, as ln of what each proves is convex in
 * it (account.c). So budget / A rises to its largest value and falls after it. */
dpi_status dpi_renyi_order(double epsilon, double delta, int32_t *order, dpi_error *err) {
    DPI_TRY(dpi_account_check("epsilon", epsilon, 1e6, false, err));
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    int32_t low = 2, high = DPI_RENYI_ORDER_MAX;
    while (low < high) {
        const int32_t mid = low + (high - low) / 2;
        if (budget_at(epsilon, delta, mid) / mid < budget_at(epsilon, delta, mid + 1) / (mid + 1))
            low = mid + 1;
        else
            high = mid;
    }
    double budget;
    DPI_TRY(dpi_renyi_budget(epsilon, delta, low, &budget, err));
    *order = low;
    return DPI_STATUS_OK;
}

dpi_status dpi_renyi_epsilon(double divergence, double delta, int32_t order, double *epsilon,
                             dpi_error *err) {
    if (!(divergence >= 0 && isfinite(divergence)))
        return dpi_fail(err, DPI_STATUS_ARG, "divergence is %g, must be at least 0", divergence);
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    DPI_TRY(check_order(order, err));
    double size;
    const double gain = conversion(delta, order, &size);
    *epsilon = fmax(0, up(divergence - gain + MARGIN * (divergence + size)));
    return DPI_STATUS_OK;
}

/* ---- Costs ----------------------------------------------------------------------------------- */

DPI_STRUCT_DEFAULTS(dpi_cost, 0)

static dpi_status check_part(const dpi_cost_part *p, dpi_error *err) {
    static const char *const names[] = {"rho", "eta", "epsilon", "sigma", "epsilon"};
    if (p->kind < DPI_COST_ZCDP || p->kind > DPI_COST_APPROXIMATE)
        return dpi_fail(err, DPI_STATUS_ARG, "the kind of a cost is %d, must be %d..%d",
                        (int)p->kind, DPI_COST_ZCDP, DPI_COST_APPROXIMATE);
    if (p->kind == DPI_COST_APPROXIMATE)
        return dpi_fail(
            err, DPI_STATUS_UNSUPPORTED,
            "a cost in epsilon and delta: it bounds no Renyi divergence, so that a ledger "
            "cannot count it; give rho or a pure epsilon");
    if (p->n < 1 || p->n > 1 << 30)
        return dpi_fail(err, DPI_STATUS_ARG, "n of a cost is %d, must be 1..%d", (int)p->n,
                        1 << 30);
    DPI_TRY(dpi_account_check(names[p->kind], p->x, 1e6, false, err));
    if (p->kind == DPI_COST_GAUSSIAN)
        return dpi_account_check("q", p->q, 1, false, err);
    return p->q == 0 ? DPI_STATUS_OK
                     : dpi_fail(err, DPI_STATUS_ARG, "q is %g, must be 0 where nothing is sampled",
                                p->q);
}

dpi_status dpi_cost_add(dpi_cost *cost, int32_t kind, int32_t n, double x, double q,
                        dpi_error *err) {
    const dpi_cost_part part = {.kind = kind, .n = n, .x = x, .q = q};
    DPI_CHECK_FIXED(dpi_cost, cost, err);
    if (cost->n_parts < 0 || cost->n_parts >= DPI_COST_PARTS_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "a cost has %d parts, room for %d",
                        (int)cost->n_parts, DPI_COST_PARTS_MAX);
    DPI_TRY(check_part(&part, err));
    cost->parts[cost->n_parts++] = part;
    return DPI_STATUS_OK;
}

static double part_divergence(const dpi_cost_part *p, int32_t order) {
    switch (p->kind) {
    case DPI_COST_ZCDP:
        return of_zcdp(order, p->x);
    case DPI_COST_RANGE:
        return of_range(order, p->x);
    case DPI_COST_PURE:
        return of_pure(order, p->x);
    case DPI_COST_GAUSSIAN:
        return dpi_renyi_of_gaussian(order, p->x, p->q);
    default:
        return INFINITY;
    }
}

static double sum_of_parts(const dpi_cost *cost, int32_t order) {
    double sum = 0;
    for (int32_t i = 0; i < cost->n_parts; i++)
        sum = up(sum + up(cost->parts[i].n * part_divergence(&cost->parts[i], order)));
    return sum;
}

/* ---- Random allocation: dp/PRIVACY.md section 14 -------------------------------------------- */

enum { ALLOCATION_ORDER_MAX = 512 };

/* out = a b as power series up to z^A, all as logarithms; out is another array than a and b. */
static void multiply_series(const double *a, const double *b, int32_t A, double *out) {
    for (int32_t n = 0; n <= A; n++) {
        double top = -INFINITY, sum = 0;
        for (int32_t j = 0; j <= n; j++)
            top = fmax(top, a[j] + b[n - j]);
        for (int32_t j = 0; j <= n && top > -INFINITY; j++)
            sum += exp(a[j] + b[n - j] - top);
        out[n] = top + log(sum);
    }
}

/* ln of the coefficient of z^A in the k-th power of the series; work [2 (A + 1)]. */
static double log_power(double *series, int32_t A, int32_t k, double *work) {
    double *power = series, *product = NULL, *spare = work;
    for (; k > 0; k >>= 1) {
        double *keep;
        if (k & 1) {
            if (product) {
                multiply_series(product, power, A, spare);
                keep = product, product = spare, spare = keep;
            } else {
                product = work + A + 1;
                memcpy(product, power, (size_t)(A + 1) * sizeof *product);
            }
        }
        if (k > 1) {
            multiply_series(power, power, A, spare);
            keep = power, power = spare, spare = keep;
        }
    }
    return product[A];
}

/* A record that goes: E[(sum of k ratios)^A] is A! times the coefficient of z^A in
 * (sum of E[X^j] z^j / j!)^k, and E[X^j] = e^((j - 1) D_j). */
static double of_removed(const dpi_cost *cost, int32_t order, double *work) {
    double *series = work;
    const double A = order, k = cost->allocation;
    int sign;
    for (int32_t j = 0; j <= order; j++)
        series[j] = (j > 1 ? (j - 1) * sum_of_parts(cost, j) : 0) - lgamma_r(j + 1., &sign);
    const double found = log_power(series, order, cost->allocation, work + order + 1);
    /* A coefficient is a product of A others at most, and each of 60 multiplications rounds it by
     * some 2^-42: the margin is more than both. */
    const double all = lgamma_r(A + 1, &sign), size = all + fabs(found) + A * log(k) + 1;
    return up(fmax(0, all + found - A * log(k) + 0x1p-34 * size) / (A - 1));
}

/* A record that comes: E[M^-s], s = A - 1. Two bounds. M is at least the geometric mean of the
 * ratios, so that it is at most the k-th power of E[X^-(s/k)]. And it is the integral of u^(s-1)
 * E[e^(-u M)] / Gamma(s), where E[e^(-v X)] is at most
 * - that of the law on 0 and m = E[X^2] with mean 1, the widest one of these moments: M is then
 *   m / k times a binomial number J of k draws with probability 1 / m;
 * - (t / (e v))^t E[X^-t].
 * The first is taken where J > 0, and up to u = U where J = 0; the second from U on. */

/* ln of what J = 0 and the second bound come to, with the best U and t. */
static double log_rest(const dpi_cost *cost, double s, double k, double log_none) {
    double least = INFINITY;
    int sign;
    const int32_t first = (int32_t)floor(s / k) + 1;
    for (int32_t t = first; t < first + 16; t++) {
        const double n = t * k, log_second = n * (log(n) - 1 + sum_of_parts(cost, 1 + t));
        const double log_U = (log_second - log_none) / n;
        least = fmin(least, log_none + s * log_U + log(1 / s + 1 / (n - s)));
    }
    return least - lgamma_r(s, &sign);
}

static double of_added(const dpi_cost *cost, int32_t order) {
    enum { TEXTS_MAX = 1024 }; /* fewer hide less */
    const double geometric = sum_of_parts(cost, 2 + (order - 2) / cost->allocation);
    const double s = order - 1., k = fmin(cost->allocation, TEXTS_MAX);
    const double log_m = sum_of_parts(cost, 2);
    if (!(log_m < 600))
        return geometric;
    const double log_out = log(-expm1(-log_m)); /* a draw of J is 0 */
    int sign;
    double sum = exp(log_rest(cost, s, k, k * log_out));
    for (double j = 1; j <= k; j++)
        sum += exp(lgamma_r(k + 1, &sign) - lgamma_r(j + 1, &sign) - lgamma_r(k - j + 1, &sign) -
                   j * log_m + (k - j) * log_out - s * (log_m + log(j / k)));
    /* Logarithms of factorials below 10^4 are good to 2^-38; the other terms are products. */
    const double size = k * (log_m - log_out) + s * (log_m + log(k));
    return fmin(geometric, up((log(sum) + 0x1p-34 + 0x1p-46 * size) / s));
}

static dpi_status of_allocation(const dpi_cost *cost, int32_t order, double *divergence,
                                dpi_error *err) {
    *divergence = sum_of_parts(cost, order);
    if (cost->allocation == 0 || order > ALLOCATION_ORDER_MAX)
        return DPI_STATUS_OK;
    double *work = dpi_calloc(3 * ((size_t)order + 1), sizeof *work);
    if (!work)
        return dpi_no_memory(err, "a Renyi divergence");
    *divergence = fmin(*divergence, fmax(of_removed(cost, order, work), of_added(cost, order)));
    free(work);
    return DPI_STATUS_OK;
}

dpi_status dpi_cost_renyi(const dpi_cost *cost, int32_t order, double *divergence,
                          dpi_error *err) {
    double all;
    DPI_CHECK_FIXED(dpi_cost, cost, err);
    if (cost->n_parts < 1 || cost->n_parts > DPI_COST_PARTS_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "a cost has %d parts, must be 1..%d",
                        (int)cost->n_parts, DPI_COST_PARTS_MAX);
    if (cost->subsample != 0)
        DPI_TRY(dpi_account_check("subsample", cost->subsample, 1, false, err));
    DPI_TRY(check_order(order, err));
    if (cost->allocation != 0)
        DPI_TRY(dpi_check_range("allocation", cost->allocation, 2, DPI_ALLOCATION_MAX, err));
    for (int32_t i = 0; i < cost->n_parts; i++)
        DPI_TRY(check_part(&cost->parts[i], err));
    DPI_TRY(of_allocation(cost, order, &all, err));
    *divergence = cost->subsample > 0 ? of_subsample(order, all, cost->subsample) : all;
    return DPI_STATUS_OK;
}
