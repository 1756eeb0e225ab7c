/* label_histogram.c - how many units have each private label, with discrete Gaussian noise:
 * what numbers of texts follow from. dp/PRIVACY.md section 20. */
#include "base/status.h"
#include "base/text.h"
#include "dp/account/account.h"
#include "dp/exact/noise.h"
#include "dp/mechanism/mechanism.h"

static const dpi_parameter variance = {
    .name = "variance", .key = "variance", .unit = "1/256", .type = DPI_PARAMETER_INT,
    .min = DPI_NOISE_VARIANCE_MIN, .max = DPI_NOISE_VARIANCE_MAX,
    .default_value = DPI_NOISE_VARIANCE_MIN, .help = "variance of the noise of a count"};

static const dpi_parameter *const parameters[] = {&variance, NULL};

/* A unit moves one count by 1. */
static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    const int64_t s = (int64_t)p->values[0];
    DPI_TRY(dpi_check_range("runs", p->n_runs, 1, 1, err));
    if (s > DPI_NOISE_VARIANCE_FINE && s % 256 != 0)
        return dpi_fail(err, DPI_STATUS_ARG, "histogram: found %d / 256, above %d it is whole",
                        (int)s, DPI_NOISE_VARIANCE_FINE / 256);
    if (c->labels != DPI_LABELS_PRIVATE)
        return dpi_fail(err, DPI_STATUS_ARG, "histogram: allowed with private labels");
    p->rho = dpi_rho_gaussian_bound(s);
    dpi_part_cost(p, DPI_COST_ZCDP, 1, p->rho, 0);
    return dpi_zcdp_epsilon(p->rho, c->delta, &p->epsilon, err);
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    (void)c;
    dpi_facts_add(f, "rho_histogram", "rho, of histogram", DPI_FACT_BOUND,
                  DPI_FACT_STATEMENT | DPI_FACT_REALISED)->real = p->rho;
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    (void)p;
    dpi_text_add(t, "How many texts each label has follows from how many %s have it, with random "
                    "noise on each number.", c->max_per_unit > 0 ? "persons" : "records");
}

static const char *const assumptions[] = {
    "A unit moves one count of the histogram by 1; discrete Gaussian noise of variance s is "
    "1 / (2 s)-zCDP (Canonne, Kamath and Steinke 2020). Holds for any records.", NULL};

const dpi_mechanism_ops dpi_mechanism_histogram = {
    .info = {.name = "histogram",
             .title = "histogram of labels, with discrete Gaussian noise",
             .help = "how many units have each label, with noise",
             .source = "Canonne, Kamath and Steinke 2020",
             .proof = "dp/PRIVACY.md section 20",
             .runs = "histograms"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_ADD_REMOVE,
    .has_records = true,
    .uses = DPI_USES_DELTA | DPI_USES_LABELS,
    .behind = DPI_BEHIND_SAMPLER,
    .accounting = "zCDP of a histogram",
    .output = "how many texts each label has",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .facts = facts,
};
