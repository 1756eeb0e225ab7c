/* utility_stats.c - see utility.h. */
#include "eval/utility.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/grams.h"
#include "eval/variation.h"

enum { N_LAW_DRAWS = 200000, N_RESAMPLES = 400 };

/* ---- Laws ----------------------------------------------------------------------------------- */

void law_of_private(const corpus_domain *d, attribute_law law) {
    corpus_law odds = corpus_law_of(d, CORPUS_PRIVATE);
    uint64_t rng = 1;
    memset(law, 0, sizeof(attribute_law));
    for (int32_t i = 0; i < N_LAW_DRAWS; i++) {
        int8_t values[CORPUS_ATTRIBUTES];
        corpus_draw(d, &odds, true, &rng, values);
        for (int32_t a = 0; a < d->n_attributes; a++)
            law[a][values[a]] += 1.0 / N_LAW_DRAWS;
    }
}

void law_of_references(const corpus_domain *d, const reference *refs, int32_t n,
                       attribute_law law) {
    memset(law, 0, sizeof(attribute_law));
    for (int32_t i = 0; i < n; i++)
        for (int32_t a = 0; a < d->n_attributes; a++)
            law[a][refs[i].values[a]] += 1.0 / n;
}

/* ---- N-grams of words ------------------------------------------------------------------------ */

static void need(dpi_status status) {
    if (status != DPI_STATUS_OK) /* no memory */
        abort();
}

bool is_near_copy(const char *a, const char *b) {
    const char *const both[] = {a, b};
    eval_texts texts;
    bool found;
    need(eval_texts_make(both, NULL, 2, &texts, NULL));
    need(eval_is_near_copy(&texts.at[0], &texts.at[1], &found, NULL));
    eval_texts_free(&texts);
    return found;
}

/* Share of the n-grams of all texts together that are different ones. */
static double distinct_share(const sample *samples, int32_t n_samples, int32_t n) {
    const char **text = calloc((size_t)n_samples + 1, sizeof *text);
    eval_texts texts;
    double of_all, of_text;
    if (!text)
        abort();
    for (int32_t i = 0; i < n_samples; i++)
        text[i] = samples[i].text;
    need(eval_texts_make(text, NULL, n_samples, &texts, NULL));
    need(eval_distinct(&texts, n, &of_all, &of_text, NULL, NULL));
    eval_texts_free(&texts);
    free(text);
    return of_all;
}

/* ---- Metrics -------------------------------------------------------------------------------- */

/* A resample: samples[index[i]], i < n. */
typedef struct bag {
    const sample *samples;
    const int32_t *index;
    int32_t n;
    const target *t;
} bag;

/* What is read. Texts without the attribute, or of another domain, are all off. */
static void law_of_texts(const bag *b, attribute_law law) {
    memset(law, 0, sizeof(attribute_law));
    for (int32_t i = 0; i < b->n; i++) {
        const corpus_reading *r = &b->samples[b->index[i]].reading;
        for (int32_t a = 0; a < b->t->d->n_attributes; a++) {
            const bool said = r->domain == b->t->domain && r->values[a] >= 0;
            law[a][said ? r->values[a] : CORPUS_VALUES] += 1.0 / b->n;
        }
    }
}

static double mean_variation(const bag *b, const attribute_law law) {
    attribute_law own;
    law_of_texts(b, own);
    return eval_variation_mean(own[0], law[0], b->t->d->n_attributes, CORPUS_VALUES + 1);
}

/* Share of the attributes that are the reference's. */
static double as_reference(const target *t, const sample *x) {
    int32_t n = 0;
    if (x->reference < 0 || x->reading.domain != t->domain)
        return 0;
    for (int32_t a = 0; a < t->d->n_attributes; a++)
        n += x->reading.values[a] == t->refs[x->reference].values[a];
    return (double)n / t->d->n_attributes;
}

enum { M_LAW, M_REFS, M_WELL, M_SENTENCES, M_PPL, M_TOKENS, M_ENDED, M_COPIES, M_SUPPORT,
       M_OUTSIDE, M_AS_REFERENCE, M_DISTINCT, M_PRIVATE, M_SECONDS };

const metric metrics[N_METRICS] = {
    [M_LAW] = {"tv_law", "TV to the law", "%.3f", 1},
    [M_REFS] = {"tv_references", "TV to the references", "%.3f", 1},
    [M_WELL] = {"well_formed", "well-formed, %", "%.0f", 100},
    [M_SENTENCES] = {"sentences", "sentences recognised, %", "%.1f", 100},
    [M_PPL] = {"perplexity", "perplexity", "%.2f", 1},
    [M_TOKENS] = {"tokens", "tokens", "%.0f", 1},
    [M_ENDED] = {"ended", "ended, %", "%.0f", 100},
    [M_COPIES] = {"near_copies", "near-copies, %", "%.1f", 100},
    [M_SUPPORT] = {"support", "Top-k+ size", "%.1f", 1},
    [M_OUTSIDE] = {"outside", "from the expansion, %", "%.2f", 100},
    [M_AS_REFERENCE] = {"as_reference", "attributes of its reference, %", "%.0f", 100},
    [M_DISTINCT] = {"distinct_3", "distinct trigrams, %", "%.1f", 100},
    [M_PRIVATE] = {"private_tokens", "private tokens", "%.0f", 1},
    [M_SECONDS] = {"seconds", "processor s a text", "%.2f", 1},
};

static double compute(const bag *b, int32_t which) {
    double sum = 0, n = 0;
    if (which == M_LAW)
        return mean_variation(b, b->t->law);
    if (which == M_REFS)
        return mean_variation(b, b->t->reference_law);
    for (int32_t i = 0; i < b->n; i++) {
        const sample *x = &b->samples[b->index[i]];
        const double each[N_METRICS][2] = { /* sum, and what it is divided by */
            [M_WELL] = {x->reading.well_formed, 1},
            [M_SENTENCES] = {x->reading.n_recognised, x->reading.n_sentences},
            [M_PPL] = {x->nll, x->n_scored},
            [M_TOKENS] = {x->n_tokens, 1},
            [M_ENDED] = {x->ended, 1},
            [M_COPIES] = {x->near_copy, 1},
            [M_SUPPORT] = {(double)x->n_support, x->n_tokens},
            [M_OUTSIDE] = {x->n_outside, x->n_tokens},
            [M_AS_REFERENCE] = {as_reference(b->t, x), 1},
            [M_PRIVATE] = {x->n_private, 1},
            [M_SECONDS] = {x->seconds, 1},
        };
        sum += each[which][0];
        n += each[which][1];
    }
    double mean = n > 0 ? sum / n : 0;
    return which == M_PPL ? exp(mean) : mean;
}

/* Metrics, then distances to the law of each attribute, then to the references'. */
enum { N_ALL = N_METRICS + 2 * CORPUS_ATTRIBUTES };

static void compute_all(const bag *b, double *out) {
    for (int32_t i = 0; i < N_METRICS; i++)
        out[i] = i == M_DISTINCT ? 0 : compute(b, i);
    attribute_law own;
    law_of_texts(b, own);
    for (int32_t a = 0; a < b->t->d->n_attributes; a++) {
        out[N_METRICS + a] = eval_variation(own[a], b->t->law[a], CORPUS_VALUES + 1);
        out[N_METRICS + CORPUS_ATTRIBUTES + a] =
            eval_variation(own[a], b->t->reference_law[a], CORPUS_VALUES + 1);
    }
}

void measure(const setting *s, const sample *samples, int32_t n, const target *t, result *r) {
    int32_t *index = calloc((size_t)n, sizeof *index);
    double value[N_ALL] = {0}, sum[N_ALL] = {0}, squares[N_ALL] = {0}, one[N_ALL] = {0};
    uint64_t rng = 7;
    if (!index)
        abort();
    for (int32_t i = 0; i < n; i++)
        index[i] = i;
    bag b = {samples, index, n, t};
    compute_all(&b, value);
    for (int32_t k = 0; k < N_RESAMPLES; k++) {
        for (int32_t i = 0; i < n; i++)
            index[i] = (int32_t)corpus_below(&rng, (uint32_t)n);
        compute_all(&b, one);
        for (int32_t i = 0; i < N_ALL; i++) {
            sum[i] += one[i] - value[i];
            squares[i] += (one[i] - value[i]) * (one[i] - value[i]);
        }
    }
    free(index);
    *r = (result){.s = *s, .n = n};
    estimate all[N_ALL];
    for (int32_t i = 0; i < N_ALL; i++) {
        double mean = sum[i] / N_RESAMPLES, variance = squares[i] / N_RESAMPLES - mean * mean;
        all[i] = (estimate){value[i], 1.96 * sqrt(variance > 0 ? variance : 0)};
    }
    memcpy(r->of, all, sizeof r->of);
    memcpy(r->distance, all + N_METRICS, sizeof r->distance);
    memcpy(r->reference_distance, all + N_METRICS + CORPUS_ATTRIBUTES,
           sizeof r->reference_distance);
    r->of[M_DISTINCT] = (estimate){distinct_share(samples, n, 3), NAN};
    if (s->kind != TEXT_REFERENCE)
        r->of[M_AS_REFERENCE] = (estimate){NAN, NAN};
    if (s->kind <= DOCUMENTS_PUBLIC)
        r->of[M_SUPPORT] = r->of[M_OUTSIDE] = (estimate){NAN, NAN};
    if (s->kind != TEXT_PRIVATE)
        r->of[M_PRIVATE] = r->of[M_SECONDS] = (estimate){NAN, NAN};
    /* Candidates are what a method centres on: one that does not has none. With a pace there are as
     * many sizes as steps. */
    else if (!dpi_method_get(s->v->options.method)->centers || s->v->options.pace != DPI_PACE_NONE)
        r->of[M_SUPPORT] = (estimate){NAN, NAN};
}
