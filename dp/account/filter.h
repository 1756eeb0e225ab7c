/* filter.h - the budget of one record, in integers (individual Renyi filter, docs/spec.md 4.3).
 * Internal.
 *
 * A record whose contributions differ from those of null by integers that span `range` makes a
 * token of bounded range eta = range a ln2 / 2^48 + 2^-38, which costs eta^2 / 8. With
 *     E = range a + 1478,   1478 > 2^10 / ln2,
 * eta <= E ln2 / 2^48, so the cost is at most E^2 in units of ln2^2 / 2^99. Costs are whole
 * numbers of these units, sums are exact, and only the budget is rounded: down.
 *
 * Ranges, costs and what is spent are private; `a` and the limit are public. No branch or
 * address depends on private values. */
#ifndef DPI_FILTER_H
#define DPI_FILTER_H

#include "dp/exact/weights.h"

/* floor(rho 2^99 / ln2^2) or less, in [0, 2^121); rho in (0, 1e6]. */
dpi_u128 dpi_filter_limit(double rho);

/* What one token costs: E^2, or 2^126, which no limit allows, if E >= 2^63. range in [0, 2^34],
 * a < 2^37. */
static inline dpi_u128 dpi_filter_cost(int64_t range, uint64_t a) {
    dpi_u128 e = (dpi_u128)(uint64_t)range * a + 1478;
    const uint64_t most = UINT64_C(1) << 63;
    uint64_t beyond = dpi_mask_hide(0 - (uint64_t)((e >> 63) != 0));
    uint64_t capped = ((uint64_t)e & ~beyond) | (most & beyond);
    return (dpi_u128)capped * capped;
}

/* Whether a record that has spent `spent` can pay `cost`: all ones, and *after is what it has
 * spent then; or 0, and *after is 2^126: it pays nothing any more. spent, cost <= 2^126. */
static inline uint64_t dpi_filter_pay(dpi_u128 spent, dpi_u128 cost, dpi_u128 limit,
                                      dpi_u128 *after) {
    dpi_u128 total = spent + cost;
    uint64_t pays = dpi_mask_hide((uint64_t)((limit - total) >> 127) - 1);
    dpi_u128 wide = (dpi_u128)pays << 64 | pays;
    *after = (total & wide) | (((dpi_u128)1 << 126) & ~wide);
    return pays;
}

#endif
