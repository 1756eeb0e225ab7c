/* audit_stats.c - tails of chi-square and of the binomial law, and bounds of Clopper and Pearson.
 */
#include <math.h>

#include "dp/audit/audit.h"

static double log_gamma(double x) {
    int sign; /* lgamma's would be a global */
    return lgamma_r(x, &sign);
}

/* Q(n/2, x/2), from Q(1/2, x) = erfc(sqrt x), Q(1, x) = e^-x and
 * Q(s+1, x) = Q(s, x) + x^s e^-x / Gamma(s+1). */
double dpi_chi_square_tail(double x, int32_t n) {
    double h = x / 2, s = n % 2 ? .5 : 1, q = n % 2 ? erfc(sqrt(h)) : exp(-h);
    for (; s < n / 2. - .25; s++)
        q += exp(s * log(h) - h - log_gamma(s + 1));
    return q;
}

/* Terms from k on; beyond the mean they fall off, and the last ones add nothing. */
double dpi_binomial_tail(int32_t n, int32_t k, double p) {
    if (k <= 0 || p >= 1)
        return 1;
    if (p <= 0)
        return 0;
    const double log_p = log(p), log_q = log1p(-p), all = log_gamma(n + 1.);
    double sum = 0;
    for (int32_t i = k; i <= n; i++) {
        double term =
            exp(all - log_gamma(i + 1.) - log_gamma(n - i + 1.) + i * log_p + (n - i) * log_q);
        sum += term;
        if (i > n * p && term < 1e-20 * sum)
            break;
    }
    return fmin(sum, 1);
}

double dpi_binomial_lower(int32_t n, int32_t k, double alpha) {
    double below = 0, above = 1; /* the tail from k on increases with p */
    for (int i = 0; i < 40; i++) {
        double p = (below + above) / 2;
        if (dpi_binomial_tail(n, k, p) < alpha)
            below = p;
        else
            above = p;
    }
    return below;
}

double dpi_binomial_upper(int32_t n, int32_t k, double alpha) {
    return 1 - dpi_binomial_lower(n, n - k, alpha);
}
