/* label_counts.c - how many units have each label, with discrete Laplace noise; a part of a
 * training. dp/PRIVACY.md section 17. */
#include <math.h>

#include "base/status.h"
#include "base/text.h"
#include "dp/mechanism/mechanism.h"

static const dpi_parameter scale = {
    .name = "scale", .key = "scale", .unit = "units", .type = DPI_PARAMETER_INT, .min = 1,
    .max = 1 << 20, .default_value = 1, .help = "of the noise of a count; its inverse is epsilon"};

static const dpi_parameter *const parameters[] = {&scale, NULL};

/* A unit moves one count by 1, or none. */
static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    (void)c;
    DPI_TRY(dpi_check_range("runs", p->n_runs, 1, 1, err));
    p->epsilon = nextafter(1 / p->values[0], INFINITY);
    p->is_pure = 1;
    dpi_part_cost(p, DPI_COST_PURE, 1, p->epsilon, 0);
    return DPI_STATUS_OK;
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    (void)c;
    dpi_facts_text(f, NULL, "numbers of units", "of each label, with Laplace noise of scale %.0f: "
                                                "epsilon %.4g of it", p->values[0], p->epsilon);
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    (void)p;
    dpi_text_add(t, "How many %s have each label is given away too, with random noise on each "
                    "number.", c->max_per_unit > 0 ? "persons" : "records");
}

static const char *const assumptions[] = {
    "A unit moves one count by 1; discrete Laplace noise of scale b is 1 / b-DP (Ghosh et al. "
    "2009). Holds for any records.", NULL};

const dpi_mechanism_ops dpi_mechanism_label_counts = {
    .info = {.name = "label_counts",
             .title = "numbers of units of each label, with Laplace noise",
             .help = "how many units have each label, with noise",
             .source = "Ghosh et al. 2009",
             .proof = "dp/PRIVACY.md section 17",
             .runs = "histograms"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_ADD_REMOVE,
    .has_records = true,
    .behind = DPI_BEHIND_TRAINING,
    .accounting = "pure DP of a histogram",
    .output = "how many units have each label, with noise",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .facts = facts,
};
