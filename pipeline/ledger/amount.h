/* amount.h - divergences as the integers of a ledger. Internal. */
#ifndef DPI_LEDGER_AMOUNT_H
#define DPI_LEDGER_AMOUNT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "dpinfer/run.h"
#include "dpinfer/ledger.h"

/* A charge: rounded up; more than every budget if it cannot be expressed. */
static inline int64_t dpi_ledger_amount_up(double divergence) {
    const double amount = ceil(divergence * DPI_LEDGER_ONE); /* a power of two: exact */
    return amount < 0x1p62 ? (int64_t)amount : INT64_MAX;
}

/* A budget: rounded down. Budgets are at most 1e6 and some, below 2^62 units. */
static inline int64_t dpi_ledger_amount_down(double divergence) {
    return (int64_t)floor(divergence * DPI_LEDGER_ONE);
}

/* Whether two amounts are the same but for the last places, in which mathematical libraries may
 * differ. */
static inline bool dpi_ledger_amount_is(double found, double wanted) {
    return fabs(found - wanted) <= 2e-9 * fabs(wanted) + 1;
}

/* Order, budget and charge of a run that costs `cost`, computed from the dataset's epsilon and
 * delta, in the place of those that are there. Errors: ARG (the order is another one), BUDGET (what
 * was charged before leaves too little). */
DPI_MUST_CHECK dpi_status dpi_claim_ledger_settle(dpi_claim_ledger *ledger, const dpi_cost *cost,
                                                  dpi_error *err);

#endif
