/* amount.c - see amount.h. */
#include "pipeline/ledger/amount.h"

#include "base/status.h"
#include "pipeline/ledger/ledger.h"

dpi_status dpi_claim_ledger_settle(dpi_claim_ledger *l, const dpi_cost *cost, dpi_error *err) {
    int32_t order;
    double budget, charge;
    DPI_TRY(dpi_ledger_check_text("the ledger's dataset", l->dataset, DPI_DATASET_NAME_MAX, err));
    DPI_TRY(dpi_renyi_order(l->epsilon, l->delta, &order, err));
    if (l->order != order)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "the ledger's order: found %d, that of epsilon %g at delta %g is %d",
                        (int)l->order, l->epsilon, l->delta, (int)order);
    DPI_TRY(dpi_renyi_budget(l->epsilon, l->delta, order, &budget, err));
    DPI_TRY(dpi_cost_renyi(cost, order, &charge, err));
    l->budget = dpi_ledger_amount_down(budget);
    l->charge = dpi_ledger_amount_up(charge);
    const int64_t before = l->scope == DPI_SCOPE_UNIT ? 0 : l->before;
    /* A mathematical library may differ in the last places. */
    if ((double)l->charge <= ((double)l->budget - (double)before) * (1 + 2e-9))
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_BUDGET,
                    "the ledger's dataset has %g of %g left at this order, and the run costs %g: "
                    "it cannot have been charged",
                    ((double)l->budget - (double)before) / DPI_LEDGER_ONE, budget, charge);
}
