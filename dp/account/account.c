#include "dp/account/account.h"

#include <float.h>
#include <math.h>

#include "base/status.h"

/* ---- Cost of tokens, rounded up ------------------------------------------------------------- */

/* A bound above the exact result of the one operation that gave x: a correctly rounded result is
 * less than one unit in the last place away, whatever the rounding mode. Applied to operations
 * that increase with their arguments, it carries upper bounds to upper bounds. */
static double up(double x) { return nextafter(x, INFINITY); }

double dpi_eta_bound(int64_t range, uint64_t a) {
    const double ln2_above = 0x1.62e42fefa39f0p-1;  /* ln2 = 0x1.62e42fefa39ef357...p-1 */
    double product = up((double)range * (double)a); /* both factors are below 2^53: exact */
    return up(up(product * ln2_above) * 0x1p-48 + 0x1p-38);
}

double dpi_rho_token_bound(double eta) { return up(eta * eta) * 0.125; /* exact */ }

double dpi_rho_sum_bound(double sigma) { return up(up(0.5 / sigma) / sigma); }

double dpi_rho_total_bound(double rho_token, int32_t n_tokens) {
    return up((double)n_tokens * rho_token);
}

/* The bounds never decrease with K, so bisection over the integers is exact. */
static int64_t largest_clip(uint64_t a, int32_t factor, int32_t n_tokens, double rho, double eta) {
    int64_t fits = 0, too_big = DPI_CLIP_MAX + 1;
    while (too_big - fits > 1) {
        int64_t K = fits + (too_big - fits) / 2;
        double eta_token = dpi_eta_bound(factor * K, a);
        double rho_total = dpi_rho_total_bound(dpi_rho_token_bound(eta_token), n_tokens);
        if (eta_token <= eta && rho_total <= rho)
            fits = K;
        else
            too_big = K;
    }
    return fits;
}

int64_t dpi_clip_calibrate(uint64_t a, int32_t factor, int32_t n_tokens, double rho) {
    return largest_clip(a, factor, n_tokens, rho, INFINITY);
}

int64_t dpi_clip_fit(uint64_t a, int32_t factor, double eta) {
    return largest_clip(a, factor, 1, INFINITY, eta);
}

/* ---- zCDP to approximate DP, docs/spec.md 4.1 ----------------------------------------------- */

/* delta(rho, epsilon) is the infimum over x > 0 (the order is 1 + x) of exp(L),
 *     L(x) = x ((1 + x) rho - epsilon) - (1 + x) ln(1 + 1/x) - ln x
 * (Canonne, Kamath, Steinke 2020, Proposition 12). EVERY x gives an upper bound, so the search
 * for the best x needs no care: only the evaluation at the x that is found does. */

/* The sign of dL/dx, which increases with x: negative below the best order. */
static double slope(double rho, double epsilon, double x) {
    return (2 * x + 1) * rho - epsilon - log1p(1 / x);
}

static double best_order(double rho, double epsilon) {
    /* x spans hundreds of decades, so bisect its logarithm. slope > 0 at the upper end:
     * there (2x+1) rho >= epsilon + 1 + 3 rho and log1p(1/x) <= ln2. Beyond e^300 only
     * rho < 1e-120 would matter: the bound is then not the best one, and still a bound. */
    double lo = -690, hi = fmin(log((epsilon + 1) / (2 * rho) + 1), 300);
    for (int i = 0; i < 60; i++) {
        double mid = lo + (hi - lo) / 2;
        if (slope(rho, epsilon, exp(mid)) < 0)
            lo = mid;
        else
            hi = mid;
    }
    return exp(hi);
}

/* exp(L(x)) at the best x, rounded up. The margin: with u = 2^-53 and library functions good to
 * 4 units in the last place (glibc: below 1), each of the three terms is computed with a
 * relative error below 16 u of the sum of its parts' magnitudes, and the two additions add
 * less than 2 u of all of them; 32 u is twice what is needed. The same for exp, 2^-48. */
double dpi_zcdp_delta_bound(double rho, double epsilon) {
    double x = best_order(rho, epsilon);
    double spread = (1 + x) * log1p(1 / x);
    double log_delta = x * ((1 + x) * rho - epsilon) - spread - log(x);
    double size = x * ((1 + x) * rho + epsilon) + spread + fabs(log(x));
    double delta = up(exp(log_delta + size * 0x1p-48) * (1 + 0x1p-48));
    return delta < 1 ? delta : 1; /* also if delta is NaN: 1 is always true */
}

dpi_status dpi_account_check(const char *name, double value, double max, bool open,
                             dpi_error *err) {
    if (value > 0 && (open ? value < max : value <= max))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "%s is %g, must be above 0 and %s %g", name, value,
                    open ? "below" : "at most", max);
}

static const double RHO_MAX = 1e6, EPSILON_MAX = 1e6;

dpi_status dpi_zcdp_delta(double rho, double epsilon, double *delta, dpi_error *err) {
    DPI_TRY(dpi_account_check("rho", rho, RHO_MAX, false, err));
    DPI_TRY(dpi_account_check("epsilon", epsilon, EPSILON_MAX, false, err));
    *delta = dpi_zcdp_delta_bound(rho, epsilon);
    return DPI_STATUS_OK;
}

/* The end of each bisection that is returned has itself been put to dpi_zcdp_delta_bound. */

dpi_status dpi_zcdp_epsilon(double rho, double delta, double *epsilon, dpi_error *err) {
    DPI_TRY(dpi_account_check("rho", rho, RHO_MAX, false, err));
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    double bad = 0, good = rho + 2 * sqrt(rho * -log(delta)); /* Bun and Steinke 2016 */
    while (dpi_zcdp_delta_bound(rho, good) > delta) /* at most once: rounding */
        good = 2 * good + DBL_MIN;
    for (;;) {
        double mid = bad + (good - bad) / 2;
        if (mid <= bad || mid >= good)
            break;
        if (dpi_zcdp_delta_bound(rho, mid) <= delta)
            good = mid;
        else
            bad = mid;
    }
    *epsilon = good;
    return DPI_STATUS_OK;
}

dpi_status dpi_zcdp_rho(double epsilon, double delta, double *rho, dpi_error *err) {
    DPI_TRY(dpi_account_check("epsilon", epsilon, EPSILON_MAX, false, err));
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    double good = 0, bad = RHO_MAX;
    if (dpi_zcdp_delta_bound(bad, epsilon) <= delta)
        good = bad;
    for (;;) {
        double mid = good + (bad - good) / 2;
        if (mid <= good || mid >= bad)
            break;
        if (dpi_zcdp_delta_bound(mid, epsilon) <= delta)
            good = mid;
        else
            bad = mid;
    }
    if (good <= 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "epsilon %g and delta %g are too small for any rho to be expressed",
                        epsilon, delta);
    *rho = good;
    return DPI_STATUS_OK;
}
