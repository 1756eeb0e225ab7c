/* steering.c - steering vectors: clipped differences of hidden states, one vector for each unit,
 * added in integers once, with discrete Gaussian noise. Source: EPSVec (arXiv 2602.21218), in
 * integers; dp/PRIVACY.md section 29. */
#include "dp/mechanism/steering.h"

#include <inttypes.h>
#include <math.h>

#include "base/status.h"
#include "base/text.h"
#include "dp/account/account.h"
#include "dp/mechanism/mechanism.h"
#include "dpinfer/gaussian.h"
#include "dpinfer/steer.h"

static const dpi_parameter sigma = {
    .name = "sigma", .key = "sigma", .label = "sigma, noise", .unit = "",
    .type = DPI_PARAMETER_REAL, .max = DPI_STEER_SIGMA_MAX,
    .help = "noise multiplier; 0: no noise"};
static const dpi_parameter clip = {
    .name = "clip", .key = "clip", .label = "C, clip bound", .unit = "", .type = DPI_PARAMETER_REAL,
    .min_open = 1, .max = 1e6, .default_value = 1,
    .help = "the longest vector of a unit; 1: as far as public texts lie from their mean"};
static const dpi_parameter layers = {
    .name = "layers", .key = "layers", .label = "layers", .unit = "", .type = DPI_PARAMETER_INT,
    .min = 1, .max = 1 << 20, .default_value = 1, .help = "how many layers have a vector"};
static const dpi_parameter numbers = {
    .name = "numbers", .key = "numbers", .unit = "", .type = DPI_PARAMETER_INT, .min = 1,
    .max = 0x1p40, .default_value = 1, .help = "how many numbers the vectors have"};
static const dpi_parameter rank = {
    .name = "rank", .key = "rank", .label = "rank", .unit = "", .type = DPI_PARAMETER_INT,
    .min = 1, .max = 1 << 20, .is_optional = 2, .default_text = "all numbers",
    .help = "numbers of each vector that were released, of public directions"};
static const dpi_parameter words = {
    .name = "words", .key = "words", .label = "words, asked for", .unit = "",
    .type = DPI_PARAMETER_INT, .min = 1, .max = DPI_STEER_WORDS_MAX, .is_optional = 2,
    .default_text = "none",
    .help = "words of public texts that units were asked for, for each label"};
static const dpi_parameter tensors = {
    .name = "tensors", .key = "tensors_sha256", .unit = "", .type = DPI_PARAMETER_TEXT, .max = 64,
    .help = "hash of the vectors, and of words"};

static const dpi_parameter *const parameters[] = {
    [DPI_STEERING_SIGMA] = &sigma, [DPI_STEERING_CLIP] = &clip,
    [DPI_STEERING_LAYERS] = &layers, [DPI_STEERING_NUMBERS] = &numbers,
    [DPI_STEERING_RANK] = &rank, [DPI_STEERING_WORDS] = &words, &tensors, NULL};

/* Beside texts labels are those of the texts. 0: there are none of the vectors. */
static int32_t n_labels_of(const dpi_claim *c, const dpi_claim_part *p) {
    return p == &c->parts[0] && c->labels ? c->n_labels : 0;
}

static dpi_status check(const dpi_claim *c, const dpi_claim_part *p, dpi_error *err) {
    const double *v = p->values;
    const int32_t n_labels = n_labels_of(c, p);
    DPI_TRY(dpi_check_range("sums", p->n_runs, 1, 1, err));
    DPI_TRY(dpi_check_range("n_units", c->n_units, 1, INT64_C(1) << 40, err));
    DPI_TRY(dpi_check_range("max_per_unit", c->max_per_unit, 0, DPI_STEER_PER_UNIT_MAX, err));
    if (v[DPI_STEERING_SIGMA] > 0 && v[DPI_STEERING_SIGMA] < DPI_GAUSSIAN_SIGMA_MIN)
        return dpi_fail(err, DPI_STATUS_ARG, "sigma: found %.10g, allowed %g..%g, or 0: no noise",
                        v[DPI_STEERING_SIGMA], DPI_GAUSSIAN_SIGMA_MIN, DPI_STEER_SIGMA_MAX);
    const double width = v[DPI_STEERING_NUMBERS] / v[DPI_STEERING_LAYERS];
    if (width < 1 || width != floor(width) || width > INT32_MAX)
        return dpi_fail(err, DPI_STATUS_ARG, "numbers: found %.10g, allowed as many for each of "
                                             "%.10g layers", v[DPI_STEERING_NUMBERS],
                        v[DPI_STEERING_LAYERS]);
    const double most = width / fmax(n_labels, 1);
    if (v[DPI_STEERING_RANK] > 0 && v[DPI_STEERING_RANK] >= most)
        return dpi_fail(err, DPI_STATUS_ARG, "rank: found %.10g, allowed fewer than the numbers of "
                                             "a vector, %.10g", v[DPI_STEERING_RANK], most);
    return DPI_STATUS_OK;
}

/* Each label has as many numbers; vectors are divided by how many units have it, unless that is a
 * secret. */
static dpi_status check_labels(const dpi_claim *c, const dpi_claim_part *p, dpi_error *err) {
    const double *v = p->values, all = v[DPI_STEERING_LAYERS] * c->n_labels;
    const int32_t n_labels = n_labels_of(c, p);
    const int32_t wanted = c->adjacency == DPI_ADJACENCY_ADD_REMOVE ? DPI_LABELS_PRIVATE
                                                                    : DPI_LABELS_PUBLIC;
    const bool has_sets = c->n_labels > 0 &&
                          fmod(v[DPI_STEERING_NUMBERS], v[DPI_STEERING_LAYERS] * c->n_labels) == 0;
    if (v[DPI_STEERING_WORDS] > 0 && !has_sets)
        return dpi_fail(err, DPI_STATUS_ARG, "words: found %.10g, allowed with labels of vectors",
                        v[DPI_STEERING_WORDS]);
    if (n_labels == 0)
        return DPI_STATUS_OK;
    DPI_TRY(dpi_check_range("n_labels", c->n_labels, 1, DPI_STEER_LABELS_MAX, err));
    DPI_TRY(dpi_check_range("cluster_texts", c->cluster_texts, 0, 0, err));
    if (c->labels != wanted)
        return dpi_fail(err, DPI_STATUS_ARG, "labels: found %s, allowed %s",
                        dpi_labels_name(c->labels), dpi_labels_name(wanted));
    if (v[DPI_STEERING_NUMBERS] < all || fmod(v[DPI_STEERING_NUMBERS], all) != 0)
        return dpi_fail(err, DPI_STATUS_ARG, "numbers: found %.10g, allowed as many for each of "
                                             "%.10g layers of %d labels", v[DPI_STEERING_NUMBERS],
                        v[DPI_STEERING_LAYERS], (int)c->n_labels);
    return DPI_STATUS_OK;
}

/* Beside texts that are counted in zCDP it is counted so too. By itself it has its exact bound. */
static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    dpi_gaussian g;
    DPI_TRY(check(c, p, err));
    DPI_TRY(check_labels(c, p, err));
    DPI_TRY(dpi_part_check_tensors(c, p, err));
    p->epsilon = INFINITY;
    if (p->values[DPI_STEERING_SIGMA] == 0)
        return p == &c->parts[0] ? DPI_STATUS_OK
                                 : dpi_fail(err, DPI_STATUS_ARG, "sigma: found 0, allowed beside "
                                                                 "texts about records is noise");
    dpi_gaussian_init(&g);
    g.sigma = p->values[DPI_STEERING_SIGMA];
    g.sampling = 1;
    g.n_steps = 1;
    dpi_part_cost(p, DPI_COST_GAUSSIAN, 1, g.sigma, 1);
    if (p != &c->parts[0]) /* after the texts about records */
        p->rho = dpi_rho_sum_bound(g.sigma);
    return dpi_gaussian_epsilon(&g, c->delta, &p->epsilon, err);
}

static const char *warning(const dpi_claim *c, const dpi_claim_part *p) {
    (void)c;
    return p->values[DPI_STEERING_SIGMA] > 0 ? NULL : "no noise was added";
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    if (n_labels_of(c, p) > 0)
        dpi_facts_labels(f, c, "each label has vectors of its own");
    dpi_facts_text(f, NULL, "vectors", "%.0f numbers", p->values[DPI_STEERING_NUMBERS]);
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    const char *one = c->max_per_unit > 0 ? "person" : "record";
    dpi_text_add(t,
                 "A language model (%s) read about %" PRId64 " %ss. Each of them said in which "
                 "direction its states lie from those of public texts; "
                 "how far one %s may move the sum is limited%s. Only the vectors%s are given away.",
                 c->model_name, c->n_units, one, one,
                 p->values[DPI_STEERING_SIGMA] > 0 ? ", and random noise was added to it" : "",
                 p->values[DPI_STEERING_WORDS] > 0
                     ? ", and how much the records of each label say each word of public texts,"
                     : "");
}

static const char *const assumptions[] = {
    "The sum of the units' vectors, each of a norm of at most D, with discrete Gaussian noise of "
    "sigma D on each number is bounded by the privacy loss of Gaussian noise (dp/PRIVACY.md, "
    "sections 17 and 29). Holds for any records.",
    NULL};

const dpi_mechanism_ops dpi_mechanism_steering = {
    .info = {.name = "steering",
             .title = "steering vectors of clipped states with Gaussian noise, in integers",
             .help = "a mean of clipped hidden states of units, with noise",
             .source = "EPSVec (arXiv 2602.21218)",
             .proof = "dp/PRIVACY.md section 29",
             .runs = "sums"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_ADD_REMOVE | 1u << DPI_ADJACENCY_REPLACE_BY_NULL,
    .has_records = true,
    .uses = DPI_USES_UNITS | DPI_USES_DELTA | DPI_USES_LABELS | DPI_USES_MODEL,
    .leads = DPI_BEHIND_VECTORS,
    .behind = DPI_BEHIND_NOTHING | DPI_BEHIND_SAMPLER,
    .accounting = "privacy loss distribution of one sum with Gaussian noise",
    .output = "the steering vectors, and the numbers of words, if there are some",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .warning = warning,
    .facts = facts,
};
