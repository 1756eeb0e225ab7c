/* allocation.c - random allocation: each unit is in one of k batches, drawn evenly and kept secret
 * (Feldman and Shenfeld 2026). dp/PRIVACY.md section 11, Theorem 10b.
 *
 * Let X be the likelihood ratio of a text with a unit to the same text without it, under the law
 * without it: E[X] = 1. Of the k texts one has the unit. So the ratio of all of them is M, the mean
 * of k independent X, and
 *     delta(epsilon) = E[(M - e^epsilon)+] for a unit that goes, E[(1 - e^epsilon M)+] for one that
 * comes. Both are expectations of convex functions of M. So whatever spreads the law of X, or that
 * of a sum, and keeps its mean, gives an upper bound. Three things here spread:
 * - the law of X is the widest one that bounds of delta of one text allow. Its delta is the largest
 *   convex function of e^epsilon below these bounds: corners are masses, what is left at its end is
 *   mass at infinity, of which only its share of the mean counts;
 * - a sum of two values is put on the two points of a grid beside it;
 * - sums that are too small or too large to matter are put on 0 and the lowest point, or on the
 *   highest point and infinity.
 *
 * All masses are sums and products of positive numbers, so that they are as exact, relative to
 * themselves, as their first ones are: those are differences of slopes, and corners where a
 * difference is a small part of its slopes are left out, which spreads as well. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "dp/account/account.h"

enum { POINTS = 512, SIDE = POINTS / 2 };
/* A mass is some delta e^-loss. Within these no mass that counts, and no product of two, is too
 * small for a double: what is lost is below 1e-308 e^300. */
static const double LOSS_MAX = 300, DELTA_MIN = 1e-100;
/* Share of delta that a sum may have beyond the grid at either end. */
static const double SHARE = 1e-7;

/* What is known of one text: one of the three is not 0. */
typedef struct text_cost {
    double rho;   /* zCDP */
    double eta;   /* n_tokens of this bounded range */
    double sigma; /* one sum with Gaussian noise: its noise multiplier */
    int32_t n_tokens;
} text_cost;

/* Values >= 0 with their masses, ascending; x[0] is 0. */
typedef struct value_law {
    size_t n;
    double x[POINTS + 1], q[POINTS + 1];
    double infinite; /* the share of the mean that is at infinity */
} value_law;

/* ---- Bounds of delta of one text ------------------------------------------------------------- */

static double normal_above(double x) { return .5 * erfc(x * M_SQRT1_2); }

/* Gaussian noise: the exact one (Balle and Wang 2018), and a margin for its difference. */
static double gaussian_delta(double sigma, double epsilon) {
    const double shift = epsilon * sigma, half = .5 / sigma;
    const double with = normal_above(shift - half);
    const double without = exp(epsilon) * normal_above(shift + half);
    return fmin(1, fmax(with - without, 0) + 0x1p-44 * with);
}

/* An epsilon from which on delta of a text is below `tail`. */
static dpi_status largest_loss(const text_cost *c, double tail, double *loss, dpi_error *err) {
    const double rho = c->sigma > 0 ? .5 / (c->sigma * c->sigma)
                       : c->eta > 0 ? c->n_tokens * (c->eta * c->eta / 8)
                                    : c->rho;
    DPI_TRY(dpi_zcdp_epsilon(fmin(rho, 1e6), tail, loss, err));
    if (c->eta > 0)
        *loss = fmin(*loss, c->n_tokens * c->eta);
    /* Points of a grid must differ. A larger loss is counted as infinite. */
    *loss = fmin(fmax(*loss, 1e-4), LOSS_MAX);
    return DPI_STATUS_OK;
}

static dpi_status bound_deltas(const text_cost *c, const double epsilon[SIDE], double delta[SIDE],
                               dpi_error *err) {
    if (c->eta > 0)
        return dpi_br_curve(c->eta, c->n_tokens, epsilon, SIDE, delta, err);
    for (int i = 0; i < SIDE; i++)
        delta[i] = c->sigma > 0 ? gaussian_delta(c->sigma, epsilon[i])
                                : dpi_zcdp_delta_bound(c->rho, epsilon[i]);
    return DPI_STATUS_OK;
}

/* ---- The law of X ---------------------------------------------------------------------------- */

/* A bound of delta at the ratio x: of E[(X - x)+] where x > 1, of E[(x - X)+], which is that less
 * 1 - x, below. */
typedef struct corner {
    double x, bound;
} corner;

/* The slope of E[(X - x)+] between two bounds; `below`: that of E[(x - X)+], which is 1 more. Each
 * is taken from the two bounds of its own kind where it can be. */
static double slope(const corner *u, const corner *v, bool below) {
    const double width = v->x - u->x;
    if (v->x <= 1)
        return (v->bound - u->bound) / width - (below ? 0 : 1);
    if (u->x <= 1)
        return (v->bound - (1 - u->x) - u->bound) / width + (below ? 1 : 0);
    return (v->bound - u->bound) / width + (below ? 1 : 0);
}

/* The mass of the middle one of three. It is 0 where it would be a small difference. */
static double corner_mass(const corner *u, const corner *at, const corner *v) {
    const bool below = at->x <= 1;
    const double before = slope(u, at, below), after = slope(at, v, below);
    const double mass = after - before;
    return mass > 0x1p-14 * fmax(fabs(before), fabs(after)) ? mass : 0;
}

static void put_corners(const corner *corners, size_t n, value_law *law) {
    const corner end = {2 * corners[n - 1].x, corners[n - 1].bound};
    law->n = n;
    for (size_t i = 0; i < n; i++) {
        const corner *next = i + 1 < n ? &corners[i + 1] : &end;
        law->x[i] = corners[i].x;
        law->q[i] = i == 0 ? slope(&corners[0], next, true)
                           : corner_mass(&corners[i - 1], &corners[i], next);
    }
    law->infinite = end.bound;
}

/* Bounds at SIDE ratios on either side of 1, the same for both directions. */
static dpi_status make_law(const text_cost *c, double tail, value_law *law, dpi_error *err) {
    double epsilon[SIDE], delta[SIDE], loss;
    corner all[POINTS + 1], kept[POINTS + 1];
    size_t n = 1;
    DPI_TRY(largest_loss(c, tail, &loss, err));
    for (int i = 0; i < SIDE; i++)
        epsilon[i] = (i + .5) * loss / (SIDE - .5);
    DPI_TRY(bound_deltas(c, epsilon, delta, err));
    /* Points are moved away from 1 by more than the rounding of exp: a bound at a smaller loss is a
     * bound. */
    all[SIDE] = (corner){0};
    for (int i = 0; i < SIDE; i++) {
        const double low = exp(-epsilon[i]) * (1 - 0x1p-48);
        all[SIDE - 1 - i] = (corner){low, low * delta[i]};
        all[SIDE + 1 + i] = (corner){exp(epsilon[i]) * (1 + 0x1p-48), delta[i]};
    }
    kept[0] = (corner){0};
    for (int i = 0; i <= POINTS; i++) {
        const corner *next = &all[i];
        if (next->x == 0)
            continue;
        while (n > 1 && corner_mass(&kept[n - 2], &kept[n - 1], next) <= 0)
            n--;
        kept[n++] = *next;
    }
    put_corners(kept, n, law);
    return DPI_STATUS_OK;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Points x[1..n-1] in geometric progression from low to high, and x[0] = 0. */
static void make_grid(value_law *law, double low, double high) {
    law->n = high > low * (1 + 1e-9) ? POINTS + 1 : 2;
    const double step = law->n > 2 ? (log(high) - log(low)) / (double)(law->n - 2) : 0;
    law->x[0] = law->q[0] = 0;
    for (size_t i = 1; i < law->n; i++) {
        law->x[i] = low * exp((double)(i - 1) * step);
        law->q[i] = 0;
    }
    law->x[law->n - 1] = fmax(law->x[law->n - 1], high);
}

/* Mass q at x >= 0 to the two points beside it; *at, the lower one, only goes up. */
static void put(value_law *law, double x, double q, size_t *at) {
    const size_t last = law->n - 1;
    while (*at < last && x >= law->x[*at + 1])
        ++*at;
    const size_t i = *at;
    if (i == last) { /* and what is beyond it to infinity */
        law->q[i] += q;
        law->infinite += q * (x - law->x[i]);
        return;
    }
    const double upper = q * ((x - law->x[i]) / (law->x[i + 1] - law->x[i]));
    law->q[i + 1] += upper;
    law->q[i] += q - upper;
}

static void put_sums(const value_law *a, const value_law *b, value_law *sum) {
    sum->infinite = a->infinite + b->infinite;
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0, at = 0; j < b->n && a->q[i] > 0; j++)
            put(sum, a->x[i] + b->x[j], a->q[i] * b->q[j], &at);
}

/* The points between which all is but `tail` of the mass below, and `tail` of the mean above. */
static void find_ends(const value_law *law, double tail, double *low, double *high) {
    double below = 0, above = 0;
    size_t first = 1, last = law->n - 1;
    for (; first < last && below + law->q[first] <= tail; first++)
        below += law->q[first];
    for (; last > first && above + law->q[last] * law->x[last] <= tail; last--)
        above += law->q[last] * law->x[last];
    *low = law->x[first];
    *high = law->x[last];
}

/* sum = a + b, first on a grid for all of it, and then on one for what counts. */
static void add(const value_law *a, const value_law *b, double tail, value_law *sum) {
    double low = fmin(a->x[1], b->x[1]), high = a->x[a->n - 1] + b->x[b->n - 1];
    for (int round = 0; round < 2; round++) {
        make_grid(sum, low, high);
        put_sums(a, b, sum);
        find_ends(sum, tail, &low, &high);
    }
}

/* law = that of a sum of k; work [2]. */
static void sum_of(int32_t k, double tail, value_law *law, value_law *work) {
    value_law *power = law, *sum = &work[0], *spare = &work[1];
    bool has_sum = false;
    for (; k > 0; k >>= 1) {
        if (k & 1) {
            if (has_sum) {
                add(sum, power, tail, spare);
                value_law *keep = sum;
                sum = spare;
                spare = keep;
            } else {
                *sum = *power;
                has_sum = true;
            }
        }
        if (k > 1) {
            add(power, power, tail, spare);
            value_law *keep = power;
            power = spare;
            spare = keep;
        }
    }
    if (sum != law)
        *law = *sum;
}

/* ---- Epsilon --------------------------------------------------------------------------------- */

/* The larger delta of both directions, for the sum of k. Values are within 2^-44 of what they stand
 * for, in ratio; a first mass is good to 2^-36, and a mass of the sum has k of these. A batch is
 * drawn with a probability within k 2^-64 of 1 / k, in ratio. epsilon is at most LOSS_MAX. */
static double delta_of_sum(const value_law *sum, int32_t k, double epsilon) {
    const double ratio = exp(epsilon - 0x1p-43 - k * 0x1p-62);
    double removed = sum->infinite / k, added = 0;
    for (size_t i = 0; i < sum->n; i++) {
        const double mean = sum->x[i] / k;
        removed += sum->q[i] * fmax(mean - ratio, 0);
        added += sum->q[i] * fmax(1 - ratio * mean, 0);
    }
    return fmax(removed, added) * exp(k * 0x1p-35 + 0x1p-30);
}

static double epsilon_of_sum(const value_law *sum, int32_t k, double delta) {
    double low = 0, high = LOSS_MAX;
    if (delta_of_sum(sum, k, 0) <= delta)
        return 0;
    if (!(delta_of_sum(sum, k, high) <= delta))
        return INFINITY;
    while (high - low > 1e-9 * high) {
        const double mid = low + (high - low) / 2;
        if (delta_of_sum(sum, k, mid) <= delta)
            high = mid;
        else
            low = mid;
    }
    return high;
}

/* INFINITY: none is found. The epsilon of one text bounds that of all as well: M is a mean, and a
 * convex function of it at most that of one ratio on average. */
static dpi_status epsilon_of(const text_cost *c, int32_t k, double delta, double *epsilon,
                             dpi_error *err) {
    *epsilon = INFINITY;
    if (delta < DELTA_MIN)
        return DPI_STATUS_OK;
    value_law *laws = dpi_calloc(3, sizeof *laws);
    if (!laws)
        return dpi_no_memory(err, "laws of likelihood ratios");
    const dpi_status status = make_law(c, SHARE * delta, &laws[0], err);
    if (status == DPI_STATUS_OK) {
        sum_of(k, SHARE * delta, &laws[0], &laws[1]);
        *epsilon = epsilon_of_sum(&laws[0], k, delta);
    }
    free(laws);
    return status;
}

/* ---- The other way round --------------------------------------------------------------------- */

/* The largest cost of a text at which the run has (epsilon, delta), to 1e-5 of it, from one that
 * fits; field is the one of *c that is looked for, and epsilon rises with it. */
static dpi_status largest_cost(text_cost *c, double *field, double fits, double most, int32_t k,
                               double epsilon, double delta, dpi_error *err) {
    double fails = INFINITY, y_fits = -INFINITY, y_fails = 0, found;
    for (int i = 0; i < 60 && !(fails - fits <= 1e-5 * fits); i++) {
        double x = 2 * fits;
        if (fails < INFINITY && y_fits > -INFINITY && i % 3 != 2) {
            x = fits * pow(fails / fits, -y_fits / (y_fails - y_fits));
            x = fmin(fmax(x, fits * (1 + 4e-6)), fails * (1 - 4e-6));
        } else if (fails < INFINITY) {
            x = sqrt(fits) * sqrt(fails);
        }
        *field = fmin(x, most);
        DPI_TRY(epsilon_of(c, k, delta, &found, err));
        const double y = found > 0 ? log(found / epsilon) : -1;
        if (found <= epsilon) {
            fits = *field, y_fits = fmin(y, 0);
            if (fits >= most)
                break;
        } else {
            fails = *field, y_fails = fmin(y, 10);
        }
    }
    *field = fits;
    return DPI_STATUS_OK;
}

static dpi_status check(double delta, int32_t n_batches, dpi_error *err) {
    DPI_TRY(dpi_account_check("delta", delta, 1, true, err));
    return dpi_check_range("n_batches", n_batches, 1, DPI_ALLOCATION_MAX, err);
}

/* ---- Public ---------------------------------------------------------------------------------- */

dpi_status dpi_allocation_epsilon(double rho, int32_t n_batches, double delta, double *epsilon,
                                  dpi_error *err) {
    const text_cost c = {.rho = rho};
    double found, alone;
    DPI_TRY(check(delta, n_batches, err));
    DPI_TRY(dpi_zcdp_epsilon(rho, delta, &alone, err));
    DPI_TRY(epsilon_of(&c, n_batches, delta, &found, err));
    *epsilon = fmin(found, alone);
    return DPI_STATUS_OK;
}

dpi_status dpi_allocation_rho(double epsilon, double delta, int32_t n_batches, double *rho,
                              dpi_error *err) {
    text_cost c = {0};
    double alone;
    DPI_TRY(check(delta, n_batches, err));
    DPI_TRY(dpi_zcdp_rho(epsilon, delta, &alone, err));
    DPI_TRY(largest_cost(&c, &c.rho, alone, 1e6, n_batches, epsilon, delta, err));
    *rho = c.rho;
    return DPI_STATUS_OK;
}

dpi_status dpi_allocation_br_epsilon(double eta, int32_t n_tokens, int32_t n_batches, double delta,
                                     double *epsilon, dpi_error *err) {
    const text_cost c = {.eta = eta, .n_tokens = n_tokens};
    double found, alone;
    DPI_TRY(check(delta, n_batches, err));
    DPI_TRY(dpi_br_epsilon(eta, n_tokens, delta, &alone, err));
    DPI_TRY(epsilon_of(&c, n_batches, delta, &found, err));
    *epsilon = fmin(found, alone);
    return DPI_STATUS_OK;
}

dpi_status dpi_allocation_br_eta(double epsilon, double delta, int32_t n_tokens, int32_t n_batches,
                                 double *eta, dpi_error *err) {
    text_cost c = {.n_tokens = n_tokens};
    double alone;
    DPI_TRY(check(delta, n_batches, err));
    DPI_TRY(dpi_br_eta(epsilon, delta, n_tokens, &alone, err));
    DPI_TRY(largest_cost(&c, &c.eta, alone, 1e3, n_batches, epsilon, delta, err));
    *eta = c.eta;
    return DPI_STATUS_OK;
}

dpi_status dpi_allocation_gaussian_epsilon(double sigma, int32_t n_batches, double delta,
                                           double *epsilon, dpi_error *err) {
    const text_cost c = {.sigma = sigma};
    DPI_TRY(check(delta, n_batches, err));
    if (!(sigma >= 1e-3 && sigma <= 1e6))
        return dpi_fail(err, DPI_STATUS_ARG, "sigma is %g, must be 0.001..1e+06", sigma);
    if (delta < DELTA_MIN)
        return dpi_fail(err, DPI_STATUS_ARG, "delta is %g, must be at least %g", delta, DELTA_MIN);
    return epsilon_of(&c, n_batches, delta, epsilon, err);
}
