/* drawn_texts.c - texts that are drawn from what was released, an adapter or steering vectors:
 * post-processing, which costs nothing, however many they are. */
#include "base/status.h"
#include "base/text.h"
#include "dp/mechanism/mechanism.h"
#include "dp/methods/parameters.h"
#include "dpinfer/best_of.h"

static const dpi_parameter temp = {
    .name = "temp", .key = "temp", .label = "temperature", .unit = "", .type = DPI_PARAMETER_REAL,
    .max = 100, .default_value = 1, .help = "temperature; 0: the likeliest token"};
static const dpi_parameter top_p = {
    .name = "top_p", .key = "top_p", .label = "top-p", .unit = "", .type = DPI_PARAMETER_REAL,
    .max = 1, .default_value = 1, .help = "likeliest tokens that have this probability together"};
static const dpi_parameter min_p = {
    .name = "min_p", .key = "min_p", .label = "min-p", .unit = "", .type = DPI_PARAMETER_REAL,
    .max = 1, .help = "least probability beside the likeliest token"};

static const dpi_parameter best_of = {
    .name = "best_of", .key = "best_of", .label = "best of", .unit = "", .type = DPI_PARAMETER_INT,
    .min = 2, .max = DPI_BEST_OF_MAX, .is_optional = 2, .default_text = "each text is written",
    .help = "texts that were drawn for each, of which the words that were released chose one"};

enum { BEST_OF = 4 };
static const dpi_parameter *const parameters[] = {
    &dpi_common[DPI_COMMON_N_TOKENS], &temp, &top_p, &min_p, [BEST_OF] = &best_of, NULL};

static dpi_status settle(const dpi_claim *c, dpi_claim_part *p, dpi_error *err) {
    p->is_pure = 1; /* and epsilon 0 */
    if (p != &c->parts[c->n_parts - 1])
        return dpi_fail(err, DPI_STATUS_ARG, "mechanisms: found one behind texts, which are last");
    const dpi_claim_part *vectors = dpi_claim_find(c, "steering");
    if (p->values[BEST_OF] > 0 && !(vectors && dpi_claim_value(vectors, "words") > 0))
        return dpi_fail(err, DPI_STATUS_ARG, "best_of: found %.0f, allowed behind steering vectors "
                                             "with words", p->values[BEST_OF]);
    return dpi_check_range("runs", p->n_runs, 1, INT32_MAX, err);
}

static dpi_status cost(const dpi_claim *c, const dpi_claim_part *p, dpi_cost *all,
                       dpi_error *err) {
    (void)c, (void)p, (void)all, (void)err;
    return DPI_STATUS_OK;
}

static void facts(const dpi_claim *c, const dpi_claim_part *p, dpi_facts *f) {
    (void)c;
    dpi_facts_text(f, NULL, "texts", "%.0f, by post-processing: no further cost",
                   (double)p->n_runs);
}

static void done(const dpi_claim *c, const dpi_claim_part *p, dpi_text *t) {
    (void)c;
    dpi_text_add(t, "Then it wrote %.0f texts of at most %.0f tokens (words, or parts of words) "
                    "each, and read no record for them.", (double)p->n_runs, p->values[0]);
}

static const char *const assumptions[] = {
    "What is computed from something released, and from no record, costs nothing more.", NULL};

const dpi_mechanism_ops dpi_mechanism_texts = {
    .info = {.name = "texts",
             .title = "texts of what was trained",
             .help = "texts that are drawn from what was released, at no cost",
             .source = "Dwork and Roth 2014, Proposition 2.1",
             .proof = "dp/PRIVACY.md section 16",
             .runs = "texts"},
    .parameters = parameters,
    .adjacencies = 1u << DPI_ADJACENCY_ADD_REMOVE | 1u << DPI_ADJACENCY_REPLACE_BY_NULL,
    .has_records = true,
    .uses = DPI_USES_FORM,
    .behind = DPI_BEHIND_TRAINING | DPI_BEHIND_VECTORS,
    .output = "all tokens of all texts",
    .assumptions = assumptions,
    .done = done,
    .settle = settle,
    .cost = cost,
    .facts = facts,
};
