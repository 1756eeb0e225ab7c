/* bounds.c - tails of the binomial law, bounds of Clopper and Pearson, and what guesses of canaries
 * prove. */
#include "dpinfer/bounds.h"

#include <math.h>

static double log_gamma(double x) {
    int sign; /* lgamma's would be a global */
    return lgamma_r(x, &sign);
}

/* Chance of i heads of n tosses; p in (0, 1). */
static double binomial_term(int32_t n, int32_t i, double p) {
    return exp(log_gamma(n + 1.) - log_gamma(i + 1.) - log_gamma(n - i + 1.) + i * log(p) +
               (n - i) * log1p(-p));
}

/* Terms from k on, or those before k, whichever fall off; the last ones add nothing. */
double dpi_binomial_tail(int32_t n, int32_t k, double p) {
    if (k <= 0 || p >= 1)
        return 1;
    if (p <= 0 || k > n)
        return 0;
    double sum = 0, term;
    if (k > n * p) {
        term = binomial_term(n, k, p);
        for (int32_t i = k; i <= n && term > 1e-20 * sum; i++) {
            sum += term;
            term *= (double)(n - i) / (i + 1) * p / (1 - p);
        }
        return fmin(sum, 1);
    }
    term = binomial_term(n, k - 1, p);
    for (int32_t i = k - 1; i >= 0 && term > 1e-20 * sum; i--) {
        sum += term;
        term *= (double)i / (n - i + 1) * (1 - p) / p;
    }
    return fmax(1 - sum, 0);
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

/* The largest chance of n_right right guesses or more under (epsilon, delta)-DP. */
static double chance_of_guesses(int32_t m, int32_t r, int32_t v, double epsilon, double delta) {
    const double q = 1 / (1 + exp(-epsilon)), beta = dpi_binomial_tail(r, v, q);
    double most = 0, sum = 0;
    for (int32_t i = 1; i <= v; i++) { /* that the count is v - i to v - 1, divided by i */
        sum += binomial_term(r, v - i, q);
        most = fmax(most, sum / i);
    }
    return fmin(1, beta + 2 * m * delta * most);
}

double dpi_canary_epsilon(int32_t m, int32_t r, int32_t v, double delta, double alpha) {
    double low = 0, high = 50;
    if (chance_of_guesses(m, r, v, 0, delta) >= alpha)
        return 0;
    for (int i = 0; i < 40; i++) {
        const double mid = (low + high) / 2;
        if (chance_of_guesses(m, r, v, mid, delta) < alpha)
            low = mid;
        else
            high = mid;
    }
    return low;
}
