/* budget.h - from the budget in the options to what the accountant may spend, and back. Internal.
 *
 * The budget is rho, or (epsilon, delta) of the run. Inside secret assignment and in one of many
 * secret batches a text may have more (dpi_subsample_inside, dpi_allocation_rho). Pure functions;
 * errors name the option and the range. */
#ifndef DPI_BUDGET_H
#define DPI_BUDGET_H

#include "dpinfer/method.h"

/* The options of the budget: exactly one of rho and epsilon, delta where it is needed, ranges,
 * subsample. Errors: ARG. */
dpi_status dpi_budget_check(const dpi_sampler_options *options, dpi_error *err);

/* The bounded range that each of n_tokens tokens may have, with the accountant BR, rounded down.
 * Errors: ARG (too small), MEMORY. */
dpi_status dpi_budget_eta(const dpi_sampler_options *options, int32_t n_tokens, double *eta,
                          dpi_error *err);

/* rho that a text may have, rounded down. Errors: ARG (too small), MEMORY. */
dpi_status dpi_budget_rho(const dpi_sampler_options *options, double *rho, dpi_error *err);

/* plan->epsilon and plan->delta from plan->rho_total, or for BR from plan->eta; 0 if the options
 * have no delta. Errors: ARG (out of the accountant's range), MEMORY. */
dpi_status dpi_budget_realise(const dpi_sampler_options *options, dpi_sampler_plan *plan,
                              dpi_error *err);

#endif
