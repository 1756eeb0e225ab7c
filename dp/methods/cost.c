/* cost.c - what a text costs, in parts that a ledger can count (dpinfer/account.h). */
#include "base/status.h"
#include "dp/methods/method.h"
#include "dpinfer/registry.h"

static bool tokens_cost_the_same(const dpi_sampler_options *o) {
    const dpi_method_ops *m = dpi_method_ops_get(o->method);
    return m->has_equal_steps && m->has_equal_steps(o) && o->accountant != DPI_ACCOUNTANT_FILTER;
}

dpi_status dpi_method_cost(const dpi_sampler_options *o, const dpi_sampler_plan *plan,
                           dpi_cost *cost, dpi_error *err) {
    const dpi_method_info *m = dpi_method_get(o->method);
    dpi_cost made;
    dpi_cost_init(&made);
    if (!m || !m->has_guarantee)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "the method %s has no guarantee: a ledger cannot count what it costs",
                        m ? m->name : "?");
    made.subsample = o->subsample;
    made.allocation = o->allocation;
    if (tokens_cost_the_same(o)) {
        const int32_t n = plan->n_private > 0 ? plan->n_private : o->n_tokens;
        DPI_TRY(dpi_cost_add(&made, DPI_COST_RANGE, n, plan->eta, 0, err));
        if (plan->svt_epsilon > 0) /* a sparse vector for each private token */
            DPI_TRY(dpi_cost_add(&made, DPI_COST_PURE, n, plan->svt_epsilon, 0, err));
    } else if (o->accountant == DPI_ACCOUNTANT_BR) {
        return dpi_fail(
            err, DPI_STATUS_UNSUPPORTED,
            "exact composition of steps of different ranges: its cost is not bounded at "
            "one order");
    } else {
        DPI_TRY(dpi_cost_add(&made, DPI_COST_ZCDP, 1, plan->rho_total, 0, err));
    }
    *cost = made;
    return DPI_STATUS_OK;
}
