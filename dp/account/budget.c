#include "dp/account/budget.h"

#include <math.h>

#include "base/status.h"
#include "dp/account/account.h"

dpi_status dpi_budget_check(const dpi_sampler_options *o, dpi_error *err) {
    const bool with_rho = o->rho != 0;
    if (with_rho && o->epsilon != 0)
        return dpi_fail(err, DPI_STATUS_ARG, "rho is %g and epsilon %g: one of them must be 0",
                        o->rho, o->epsilon);
    if (o->epsilon == 0)
        DPI_TRY(dpi_account_check("rho", o->rho, 1e6, false, err));
    else
        DPI_TRY(dpi_account_check("epsilon", o->epsilon, 1e6, false, err));
    if (!with_rho || o->delta != 0)
        DPI_TRY(dpi_account_check("delta", o->delta, 1, true, err));
    if (o->subsample != 0)
        DPI_TRY(dpi_account_check("subsample", o->subsample, 1, false, err));
    if (with_rho && o->subsample != 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "rho: found a budget with secret assignment (subsample): the run then is "
                        "(epsilon, delta)-DP and no zCDP is proven; give epsilon and delta");
    if (with_rho && o->allocation != 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "rho: found a budget with batches that stay secret (allocation): the run "
                        "then is (epsilon, delta)-DP and no zCDP is proven; give epsilon and "
                        "delta");
    if (with_rho && o->accountant == DPI_ACCOUNTANT_BR)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "rho: found a budget with the accountant br, which counts in epsilon and "
                        "delta; give those");
    return DPI_STATUS_OK;
}

/* Inside secret assignment, and outside random allocation. */
static dpi_status inside_subsample(const dpi_sampler_options *o, double *epsilon, double *delta,
                                   dpi_error *err) {
    if (o->subsample != 0)
        return dpi_subsample_inside(o->epsilon, o->delta, o->subsample, epsilon, delta, err);
    *epsilon = o->epsilon;
    *delta = o->delta;
    return DPI_STATUS_OK;
}

dpi_status dpi_budget_eta(const dpi_sampler_options *o, int32_t n_tokens, double *eta,
                          dpi_error *err) {
    double epsilon, delta;
    DPI_TRY(inside_subsample(o, &epsilon, &delta, err));
    if (o->allocation != 0)
        return dpi_allocation_br_eta(epsilon, delta, n_tokens, o->allocation, eta, err);
    return dpi_br_eta(epsilon, delta, n_tokens, eta, err);
}

dpi_status dpi_budget_rho(const dpi_sampler_options *o, double *rho, dpi_error *err) {
    double epsilon, delta;
    if (o->rho > 0) {
        *rho = o->rho;
        return DPI_STATUS_OK;
    }
    DPI_TRY(inside_subsample(o, &epsilon, &delta, err));
    if (o->allocation != 0)
        return dpi_allocation_rho(epsilon, delta, o->allocation, rho, err);
    return dpi_zcdp_rho(epsilon, delta, rho, err);
}

/* What is proven of all texts, before secret assignment. The budget itself was put to the test by
 * calibration: `inside` is what it allows, 0 if it was given in rho. */
static dpi_status epsilon_of_texts(const dpi_sampler_options *o, const dpi_sampler_plan *plan,
                                   double delta, double inside, double *epsilon, dpi_error *err) {
    const int32_t n_tokens = plan->n_private > 0 ? plan->n_private : o->n_tokens;
    const bool br = o->accountant == DPI_ACCOUNTANT_BR;
    if (br && o->allocation != 0)
        return dpi_allocation_br_epsilon(plan->eta, n_tokens, o->allocation, delta, epsilon, err);
    if (br)
        return dpi_br_epsilon_below(plan->eta, n_tokens, delta, inside, epsilon, err);
    if (o->allocation != 0)
        return dpi_allocation_epsilon(plan->rho_total, o->allocation, delta, epsilon, err);
    return dpi_zcdp_epsilon(plan->rho_total, delta, epsilon, err);
}

dpi_status dpi_budget_realise(const dpi_sampler_options *o, dpi_sampler_plan *plan,
                              dpi_error *err) {
    plan->epsilon = plan->delta = 0;
    if (o->delta == 0 || !isfinite(plan->rho_total))
        return DPI_STATUS_OK;
    double epsilon, delta = o->delta, inside = o->epsilon, ignored;
    if (o->epsilon > 0)
        DPI_TRY(inside_subsample(o, &inside, &delta, err));
    DPI_TRY(epsilon_of_texts(o, plan, delta, inside, &epsilon, err));
    const bool fits = o->accountant == DPI_ACCOUNTANT_BR || plan->rho_total <= plan->rho_budget;
    if (o->epsilon > 0 && fits)
        epsilon = fmin(epsilon, inside);
    if (o->subsample != 0)
        DPI_TRY(dpi_subsample_outside(epsilon, delta, o->subsample, &epsilon, &ignored, err));
    plan->epsilon = o->epsilon > 0 && fits ? fmin(epsilon, o->epsilon) : epsilon;
    plan->delta = o->delta;
    return DPI_STATUS_OK;
}
