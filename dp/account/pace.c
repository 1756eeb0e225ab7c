#include "dp/account/pace.h"

#include <math.h>

#include "dp/account/account.h"

double dpi_pace_top(const dpi_u128 *weights, size_t n) {
    dpi_u128 top = 0, sum = 0; /* n <= 2^18 weights of at most 2^109 */
    for (size_t i = 0; i < n; i++) {
        top = weights[i] > top ? weights[i] : top;
        sum += weights[i];
    }
    return (double)top / (double)sum; /* conversions and quotient are rounded correctly */
}

/* Tokens of mass m are raised by `swing`, the others lowered by it: the mass becomes
 * m e^s / (m e^s + (1 - m) e^-s). What m gains has its maximum at m = 1 / (1 + e^s). Tokens beside
 * the likeliest one have mass 1 - top at most; where that is less than the best m, raising all of
 * them gains most: raising sets that hold the likeliest token gains less, as m and 1 - m change
 * places. */
double dpi_pace_change(double top, double swing) {
    const double best = 1 / (1 + exp(swing)), rest = 1 - top;
    const double m = rest < best ? rest : best;
    const double up = m * exp(swing), down = (1 - m) * exp(-swing);
    return isfinite(up) ? up / (up + down) - m : 1 - m;
}

/* What the text has spent after a step of clip bound K, rounded up. */
static double after(const dpi_pacing *p, const dpi_pace_spent *spent, int64_t K) {
    const double rho = dpi_rho_token_bound(dpi_eta_bound(p->factor * K, p->a));
    return nextafter(spent->rho + rho, INFINITY);
}

/* The largest K in [0, most] that what is left of rho pays for. */
static int64_t affordable(const dpi_pacing *p, const dpi_pace_spent *spent, int64_t most) {
    int64_t fits = 0, too_big = most + 1;
    if (most < 1 || after(p, spent, most) <= p->rho)
        return most < 1 ? 0 : most;
    while (too_big - fits > 1) {
        const int64_t K = fits + (too_big - fits) / 2;
        if (after(p, spent, K) <= p->rho)
            fits = K;
        else
            too_big = K;
    }
    return fits;
}

int64_t dpi_pace_clip(const dpi_pacing *p, const dpi_pace_spent *spent, double top) {
    switch (p->pace) {
    case DPI_PACE_TOP:
        return top <= p->theta && spent->n_private < p->n_private ? p->K : 0;
    case DPI_PACE_CHANGE:
        return dpi_pace_change(top, p->swing) >= p->theta && spent->n_private < p->n_private ? p->K
                                                                                             : 0;
    case DPI_PACE_SHARE:
        if (p->theta > 0 && top > p->theta)
            return 0;
        return affordable(p, spent, (int64_t)floor((double)p->K * sqrt(fmax(0, 1 - top))));
    default:
        return p->K;
    }
}

bool dpi_pace_is_over(const dpi_pacing *p, const dpi_pace_spent *spent) {
    switch (p->pace) {
    case DPI_PACE_TOP:
    case DPI_PACE_CHANGE:
        return spent->n_private >= p->n_private;
    case DPI_PACE_SHARE:
        return affordable(p, spent, 1) == 0;
    default:
        return false;
    }
}

void dpi_pace_charge(const dpi_pacing *p, dpi_pace_spent *spent, int64_t K) {
    if (K < 1)
        return;
    spent->rho = after(p, spent, K);
    spent->n_private++;
}
