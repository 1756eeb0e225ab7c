#include "dpinfer/gaussian.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "base/struct.h"
#include "dp/account/account.h"
#include "dp/account/renyi.h"
#include "dp/pld/bracket.h"
#include "dp/pld/compose.h"
#include "dpinfer/account.h"

static const double SIGMA_MIN = DPI_GAUSSIAN_SIGMA_MIN, SIGMA_MAX = DPI_GAUSSIAN_SIGMA_MAX;
/* Points of a law of losses and of a transform. */
static const size_t POINTS_MAX = (size_t)1 << 22;
/* The grid is made finer until epsilon changes by less than this share. A grid four times as fine
 * has a sixteenth of the error. */
static const double CHANGE = 2e-4;
/* The first grid of a law has some 2^12 points, the finest one 2^18: their number is the time. */
enum { CELLS = 4096, GRIDS = 4 };
/* Of the range of ln sigma, until a part is at most 1e-6. */
enum { HALVINGS = 24 };

DPI_STRUCT_DEFAULTS(dpi_gaussian,
    .sigma = 1, .sampling = 1, .n_steps = 1, .accountant = DPI_GAUSSIAN_PLD)

static dpi_status check(const dpi_gaussian *g, double delta, dpi_error *err) {
    if (!(g->sigma >= SIGMA_MIN && g->sigma <= SIGMA_MAX))
        return dpi_fail(err, DPI_STATUS_ARG, "sigma is %g, must be %g..%g", g->sigma, SIGMA_MIN,
                        SIGMA_MAX);
    DPI_TRY(dpi_account_check("q", g->sampling, 1, false, err));
    DPI_TRY(dpi_check_range("n_steps", g->n_steps, 1, DPI_GAUSSIAN_STEPS_MAX, err));
    DPI_TRY(
        dpi_check_range("accountant", g->accountant, DPI_GAUSSIAN_RENYI, DPI_GAUSSIAN_PLD, err));
    if (!(delta >= 1e-100 && delta < 1))
        return dpi_fail(err, DPI_STATUS_ARG, "delta is %g, must be at least 1e-100 and below 1",
                        delta);
    return DPI_STATUS_OK;
}

/* ---- Renyi ----------------------------------------------------------------------------------- */

/* The best of the orders 2 to 64, and of larger ones that grow by a sixteenth each. */
static dpi_status renyi_epsilon(const dpi_gaussian *g, double delta, double *epsilon,
                                dpi_error *err) {
    *epsilon = INFINITY;
    for (int32_t order = 2; order <= 4096; order += order < 64 ? 1 : order / 16) {
        const double step = dpi_renyi_of_gaussian(order, g->sigma, g->sampling);
        const double all = nextafter(step * g->n_steps, INFINITY);
        double found;
        if (!isfinite(all))
            continue;
        DPI_TRY(dpi_renyi_epsilon(all, delta, order, &found, err));
        *epsilon = fmin(*epsilon, found);
    }
    return DPI_STATUS_OK;
}

/* ---- Privacy loss ---------------------------------------------------------------------------- */

/* On a grid of this step, or of the finest that fits; *step becomes what it was. */
static dpi_status law_epsilon(const dpi_gaussian *g, loss_direction direction, double delta,
                              double *step, double *epsilon, dpi_error *err) {
    const double tail = 1e-7 * delta / g->n_steps;
    loss_law law;
    DPI_TRY(loss_law_make(g->sigma, g->sampling, direction, *step, tail, POINTS_MAX, &law, err));
    *step = law.step;
    const dpi_status status = loss_sum_epsilon(&law, g->n_steps, delta, POINTS_MAX, epsilon, err);
    free(law.mass);
    return status;
}

/* Nothing below `enough` is of interest: the search ends with the first bound that is not above. */
static dpi_status direction_epsilon(const dpi_gaussian *g, loss_direction direction, double delta,
                                    double enough, double *epsilon, dpi_error *err) {
    double step = loss_range(g->sigma, g->sampling, 1e-7 * delta / g->n_steps) / CELLS;
    double last = INFINITY, least = INFINITY;
    for (int i = 0; i < GRIDS; i++) {
        double next = step, found;
        DPI_TRY(law_epsilon(g, direction, delta, &next, &found, err));
        least = fmin(least, found);
        /* A coarser grid than wanted: no finer one fits. Where a finer one is worse, what rounding
         * and the window of the sum do is all that is left. */
        if (least <= enough || next > step || last - found <= CHANGE * found)
            break;
        last = found;
        step /= 4;
    }
    *epsilon = least;
    return DPI_STATUS_OK;
}

/* The larger one of both directions. That of a unit that is added is the smaller one as a rule, by
 * far with few steps, and its grid is as fine only as it needs to be to see that. */
static dpi_status pld_epsilon(const dpi_gaussian *g, double delta, double enough, double *epsilon,
                              dpi_error *err) {
    double removed, added;
    DPI_TRY(direction_epsilon(g, LOSS_REMOVE, delta, enough, &removed, err));
    DPI_TRY(direction_epsilon(g, LOSS_ADD, delta, fmax(removed, enough), &added, err));
    *epsilon = fmax(removed, added);
    return DPI_STATUS_OK;
}

/* An upper bound; where it is not above `enough` a coarse one. */
static dpi_status epsilon_of(const dpi_gaussian *g, double delta, double enough, double *epsilon,
                             dpi_error *err) {
    return g->accountant == DPI_GAUSSIAN_RENYI ? renyi_epsilon(g, delta, epsilon, err)
                                               : pld_epsilon(g, delta, enough, epsilon, err);
}

/* ---- Public ---------------------------------------------------------------------------------- */

dpi_status dpi_gaussian_epsilon(const dpi_gaussian *gaussian, double delta, double *epsilon,
                                dpi_error *err) {
    DPI_COPY_STRUCT(dpi_gaussian, g, gaussian, err);
    DPI_TRY(check(&g, delta, err));
    return epsilon_of(&g, delta, 0, epsilon, err);
}

/* The places 0..2^HALVINGS at which that many halvings of the range of ln sigma can end. Sigma is
 * one of these, so that it does not depend on the way on which it was found. */
static double sigma_at(double place) {
    double low = log(SIGMA_MIN), high = log(SIGMA_MAX);
    if (place <= 0)
        return SIGMA_MIN;
    for (int bit = HALVINGS - 1; bit >= 0; bit--) {
        const double mid = (low + high) / 2;
        if (((int64_t)place - 1) >> bit & 1)
            low = mid;
        else
            high = mid;
    }
    return fmin(exp(high), SIGMA_MAX);
}

/* *value: bracket_value of the epsilon at a place. */
static dpi_status try_sigma(dpi_gaussian *g, double place, double epsilon, double delta,
                            double *value, dpi_error *err) {
    double found;
    g->sigma = sigma_at(place);
    DPI_TRY(epsilon_of(g, delta, epsilon, &found, err));
    *value = bracket_value(found, epsilon);
    return DPI_STATUS_OK;
}

/* Epsilon falls with sigma. The sigma that is returned has itself been tried: what
 * dpi_gaussian_epsilon finds for it goes through the same bounds and ends at most as high. */
dpi_status dpi_gaussian_sigma(const dpi_gaussian *gaussian, double epsilon, double delta,
                              double *sigma, dpi_error *err) {
    DPI_COPY_STRUCT(dpi_gaussian, g, gaussian, err);
    g.sigma = SIGMA_MAX;
    DPI_TRY(check(&g, delta, err));
    DPI_TRY(dpi_account_check("epsilon", epsilon, 1e6, false, err));
    const double last = (double)((int64_t)1 << HALVINGS);
    double at_high, at_low;
    DPI_TRY(try_sigma(&g, last, epsilon, delta, &at_high, err));
    if (at_high > 0)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "epsilon %g at delta %g: sigma %g is not enough for %d steps at q %g",
                        epsilon, delta, SIGMA_MAX, (int)g.n_steps, g.sampling);
    DPI_TRY(try_sigma(&g, 0, epsilon, delta, &at_low, err));
    bracket b = bracket_make(0, at_low, at_low > 0 ? last : 0, at_high);
    while (b.high - b.low >= 2) {
        const double place = bracket_next(&b, 1);
        double value;
        DPI_TRY(try_sigma(&g, place, epsilon, delta, &value, err));
        bracket_put(&b, place, value);
    }
    *sigma = sigma_at(b.high);
    return DPI_STATUS_OK;
}
