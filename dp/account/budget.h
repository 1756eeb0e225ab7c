/* budget.h - from the budget in the options to what the accountant may spend, and back. Internal.
 *
 * The budget is rho, or (epsilon, delta) of the run. Inside secret assignment the mechanism may
 * have more (dpi_subsample_inside). Pure functions; errors name the option and the range. */
#ifndef DPI_BUDGET_H
#define DPI_BUDGET_H

#include "dpinfer/method.h"

/* The options of the budget: exactly one of rho and epsilon, delta where it is needed, ranges,
 * subsample. Errors: ARG. */
dpi_status dpi_budget_check(const dpi_sampler_options *options, dpi_error *err);

/* (epsilon, delta) that the mechanism itself may have; epsilon budgets only. Errors: ARG. */
dpi_status dpi_budget_inside(const dpi_sampler_options *options, double *epsilon, double *delta,
                             dpi_error *err);

/* rho that the mechanism itself may have, rounded down. Errors: ARG (too small). */
dpi_status dpi_budget_rho(const dpi_sampler_options *options, double *rho, dpi_error *err);

/* plan->epsilon and plan->delta from plan->rho_total, or for BR from plan->eta; 0 if the options
 * have no delta. Errors: ARG (out of the accountant's range), MEMORY. */
dpi_status dpi_budget_realise(const dpi_sampler_options *options, dpi_sampler_plan *plan,
                              dpi_error *err);

#endif
