/* attribute_values.c - see attribute_values.h. */
#include "eval/attribute_values.h"

#include <string.h>

#include "corpus/document_grammar.h"
#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/intervals.h"
#include "eval/variation.h"

/* What texts say: [n][attribute] 0: nothing, else 1 + the value. */
typedef struct said {
    int8_t (*at)[CORPUS_ATTRIBUTES];
    int32_t n, n_well_formed;
} said;

static dpi_status read_all(const eval_texts *s, int32_t domain, said *x, dpi_error *err) {
    x->at = dpi_private_malloc(((size_t)s->n + 1) * sizeof *x->at);
    if (!x->at)
        return eval_no_memory(err, "attributes");
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

/* Two sets, and which attribute. */
typedef struct pair {
    const said *set[2];
    int32_t first, n; /* attributes */
} pair;

typedef double shares[CORPUS_ATTRIBUTES][CORPUS_VALUES + 1];

/* Mean over the attributes, of resamples. */
static double distance(const void *user, const int32_t *const which[2]) {
    const pair *p = user;
    shares share[2] = {{{0}}};
    for (int32_t k = 0; k < 2; k++)
        for (int32_t i = 0; i < p->set[k]->n; i++)
            for (int32_t a = 0; a < p->n; a++)
                share[k][a][p->set[k]->at[which[k][i]][p->first + a]] += 1. / p->set[k]->n;
    return eval_variation_mean(share[0][0], share[1][0], p->n, CORPUS_VALUES + 1);
}

static dpi_status add_distance(evaluation *e, const char *key, const char *label, const pair *p,
                               dpi_error *err) {
    const eval_number number = {.of = distance,
                                .user = p,
                                .n = {p->set[0]->n, p->set[1]->n},
                                .is_distance = true};
    return eval_add_number(e, "attributes", key, label, &number, err);
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
    EVAL_TRY(add_distance(e, "attribute_tv_mean", "total variation of an attribute, mean",
                          &(pair){{x, y}, 0, d->n_attributes}, err));
    for (int32_t a = 0; a < d->n_attributes; a++)
        EVAL_TRY(add_distance(e, keys[a], d->attributes[a].name, &(pair){{x, y}, a, 1}, err));
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
