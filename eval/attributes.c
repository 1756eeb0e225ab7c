/* attributes.c - see attributes.h. */
#include "eval/attributes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/grammar.h"
#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/values.h"

enum { RESAMPLES = 200 };

/* What texts say: [n][attribute] 0: nothing, else 1 + the value. */
typedef struct said {
    int8_t (*at)[CORPUS_ATTRIBUTES];
    int32_t n, n_well_formed;
} said;

static dpi_status read_all(const eval_texts *s, int32_t domain, said *x, dpi_error *err) {
    x->at = dpi_private_malloc(((size_t)s->n + 1) * sizeof *x->at);
    if (!x->at)
        return eval_fail(err, DPI_STATUS_MEMORY, "out of memory for attributes");
    for (; x->n < s->n; x->n++) {
        corpus_reading r;
        corpus_read(s->at[x->n].text, s->at[x->n].n_bytes, &r);
        const bool is_one = r.domain == domain;
        x->n_well_formed += is_one && r.well_formed;
        for (int32_t a = 0; a < CORPUS_ATTRIBUTES; a++)
            x->at[x->n][a] = (int8_t)(is_one ? 1 + r.values[a] : 0);
    }
    return DPI_STATUS_OK;
}

/* Of attribute a; state NULL: of the texts, else of a resample of the first ones. */
static double distance(const said *x, const said *y, int32_t a, uint64_t *state) {
    double share[CORPUS_VALUES + 1] = {0}, sum = 0;
    for (int32_t i = 0; i < x->n; i++)
        share[x->at[state ? eval_resample(state, x->n) : i][a]] += 1. / x->n;
    for (int32_t i = 0; i < y->n; i++)
        share[y->at[i][a]] -= 1. / y->n;
    for (int32_t v = 0; v <= CORPUS_VALUES; v++)
        sum += fabs(share[v]) / 2;
    return sum;
}

/* With its 95 % by bootstrap over the synthetic texts. */
static void add_mean(evaluation *e, const said *x, const said *y, int32_t n_attributes) {
    double found[RESAMPLES], mean = 0;
    uint64_t state = 1; /* any constant */
    for (int32_t a = 0; a < n_attributes; a++)
        mean += distance(x, y, a, NULL) / n_attributes;
    for (int32_t r = 0; r < RESAMPLES; r++) {
        const uint64_t begin = state;
        found[r] = 0;
        for (int32_t a = 0; a < n_attributes; a++) {
            state = begin; /* the same texts for all of them */
            found[r] += distance(x, y, a, &state) / n_attributes;
        }
    }
    qsort(found, RESAMPLES, sizeof *found, eval_compare_double);
    eval_add_interval(e, "attributes", "attribute_tv_mean",
                      "total variation of an attribute, mean", mean, found[RESAMPLES / 40],
                      found[RESAMPLES - 1 - RESAMPLES / 40]);
}

static dpi_status add_all(evaluation *e, const corpus_domain *d, const said *x, const said *y,
                          dpi_error *err) {
    static const char *const keys[CORPUS_ATTRIBUTES] = {
        "attribute_tv_1", "attribute_tv_2", "attribute_tv_3", "attribute_tv_4",
        "attribute_tv_5", "attribute_tv_6", "attribute_tv_7"};
    EVAL_TRY(eval_add_share(e, "attributes", "well_formed", "texts without a slip, by the grammar",
                            x->n_well_formed, x->n, err));
    EVAL_TRY(eval_add_share(e, "attributes", "well_formed_real", "the same of real texts",
                            y->n_well_formed, y->n, err));
    add_mean(e, x, y, d->n_attributes);
    for (int32_t a = 0; a < d->n_attributes; a++)
        eval_add(e, "attributes", keys[a], d->attributes[a].name, distance(x, y, a, NULL));
    return DPI_STATUS_OK;
}

dpi_status eval_measure_attributes(evaluation *e, const eval_sources *s, dpi_error *err) {
    said synthetic = {0}, real = {0};
    if (!s->domain)
        return DPI_STATUS_OK;
    const int32_t domain = corpus_domain_find(s->domain);
    if (domain < 0)
        return eval_fail(err, DPI_STATUS_ARG, "domain: found '%s', which the corpus does not have",
                         s->domain);
    dpi_status status = read_all(s->synthetic, domain, &synthetic, err);
    if (status == DPI_STATUS_OK)
        status = read_all(s->real, domain, &real, err);
    if (status == DPI_STATUS_OK)
        status = add_all(e, corpus_domains[domain], &synthetic, &real, err);
    dpi_private_free(synthetic.at);
    dpi_private_free(real.at);
    return status;
}
