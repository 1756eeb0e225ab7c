/* noisy_counts.c - groups of counts of records, each cell with discrete Gaussian noise
 * (dpinfer/counts.h). dp/PRIVACY.md section 26. */
#include "dp/mechanism/noisy_counts.h"

#include <math.h>

#include "base/status.h"
#include "base/text.h"
#include "dp/account/account.h"
#include "dp/exact/noise.h"
#include "dp/mechanism/mechanism.h"
#include "dp/methods/parameters.h"
#include "dpinfer/counts.h"

static const dpi_parameter *const parameters[] = {
    [DPI_COUNTS_EPSILON] = &dpi_common[DPI_COMMON_EPSILON], NULL};

/* A record adds 1 to one cell of each group at most; each group has an equal part of the budget. */
static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    const double epsilon = p->values[DPI_COUNTS_EPSILON];
    const int32_t n = (int32_t)p->n_runs;
    double rho;
    DPI_TRY(dpi_check_range("n_groups", p->n_runs, 1, DPI_COUNTS_GROUPS_MAX, err));
    DPI_TRY(dpi_zcdp_rho(epsilon, c->delta, &rho, err));
    const int64_t variance = dpi_noise_variance_for(
        fmin(nextafter(rho / n, 0), 128.0 / DPI_NOISE_VARIANCE_MIN));
    if (variance == 0)
        return dpi_fail(err, DPI_STATUS_ARG, "epsilon: found %g, too small for the noise of %d "
                        "groups", epsilon, n);
    p->results[DPI_COUNTS_VARIANCE] = (double)variance;
    p->rho = nextafter(n * dpi_rho_gaussian_bound(variance), INFINITY);
    dpi_part_cost(p, DPI_COST_ZCDP, 1, p->rho, 0);
    return dpi_zcdp_epsilon(p->rho, c->delta, &p->epsilon, err);
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    (void)c;
    dpi_facts_add(f, "variance", NULL, DPI_FACT_INT, DPI_FACT_REALISED)->integer =
        (int64_t)p->results[DPI_COUNTS_VARIANCE];
    dpi_facts_real(f, NULL, "sigma, noise", sqrt(p->results[DPI_COUNTS_VARIANCE] / 256));
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    (void)c;
    dpi_text_add(t, "Records were counted in %.0f ways, and random noise was added to each number. "
                    "Only these numbers are given away.", (double)p->n_runs);
}

static const char *const assumptions[] = {
    "A record adds 1 to one cell of each group; discrete Gaussian noise of variance s on each cell "
    "is 1 / (2 s)-zCDP (Canonne, Kamath and Steinke 2020). Holds for any records.", NULL};

const dpi_mechanism_ops dpi_mechanism_counts = {
    .info = {.name = "counts",
             .title = "counts of records, with discrete Gaussian noise",
             .help = "groups of counts of records, with noise on each cell",
             .source = "Canonne, Kamath and Steinke 2020",
             .proof = "dp/PRIVACY.md section 26",
             .runs = "groups"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_REPLACE_BY_NULL,
    .uses = DPI_USES_UNITS | DPI_USES_DELTA,
    .accounting = "zCDP of groups of counts, one after the other",
    .output = "counts of records, with noise on each",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .facts = facts,
};
