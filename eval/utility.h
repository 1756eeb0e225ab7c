/* utility.h - what the texts of a setting are worth: attributes, form, perplexity, copies.
 *
 * Evaluation of synthetic records, whose attributes are known. Nothing here is private, nothing of
 * it belongs into a report about real records. */
#ifndef DPI_BENCH_UTILITY_H
#define DPI_BENCH_UTILITY_H

#include "dpinfer.h"
#include "corpus/document_grammar.h"

typedef enum setting_kind {
    DOCUMENTS_PRIVATE, /* fresh documents of the private law, by the grammar: the best there is */
    DOCUMENTS_PUBLIC,  /* the same of the public law */
    TEXT_PUBLIC,       /* the model's answers to the public prompt */
    TEXT_REFERENCE,    /* plain sampling after one reference: no privacy */
    TEXT_PRIVATE,      /* a method with a budget */
} setting_kind;

/* A method, and how its cost is counted. */
typedef struct variant {
    char name[128], title[192];
    dpi_sampler_options options; /* without budget and lengths */
    bool has_tau, has_top_k; /* its own; else that of all settings */
} variant;

typedef struct setting {
    setting_kind kind;
    const variant *v; /* TEXT_PRIVATE */
    int32_t n_ref;       /* B */
    double epsilon;
} setting;

typedef struct sample {
    char *text;
    int32_t *tokens; /* [n_tokens] as drawn, with the token that ended the text */
    int32_t n_tokens;
    int32_t ended;     /* 1: by the model, not at T */
    int32_t n_private; /* TEXT_PRIVATE: tokens that were not free */
    double seconds;    /* TEXT_PRIVATE: of processor time, without the prompts */
    int32_t reference; /* TEXT_REFERENCE: which one, else -1 */
    corpus_reading reading;
    /* under the public prompt, by the model itself or the judge */
    double nll; /* nats of n_scored tokens */
    int32_t n_scored;
    /* with the model's public logits: sizes of V_k+, summed, and tokens from outside Top-k */
    int64_t n_support;
    int32_t n_outside;
    int32_t near_copy; /* 1: of one of the references (is_near_copy) */
} sample;

typedef struct reference {
    char *text;
    int8_t values[CORPUS_ATTRIBUTES];
} reference;

/* ---- Variants (utility_variants.c) ----------------------------------------------------------- */

/* A variant from its name: an accountant of InvisibleInk, or a method; then "-center", "-pace";
 * then ":OPTION=VALUE", options of the command line: "filter-pace:free-top-k=5". False if it is
 * none. */
bool variant_parse(const char *name, variant *v);

/* ---- Making texts (utility_run.c) ----------------------------------------------------------- */

typedef struct maker_options {
    const char *model, *judge; /* judge: NULL for the model itself */
    const char *refs, *attributes;
    int32_t n_tokens, top_k, n_threads, max_ref;
    double tau, delta;
    uint64_t seed;
} maker_options;

typedef struct maker maker;

/* Opens everything; a failure is printed, and NULL returned. The options must outlive it. */
maker *maker_open(const maker_options *o);
void maker_close(maker *m);
const corpus_domain *maker_domain(const maker *m);
const reference *maker_references(const maker *m, int32_t *n_ref);

/* n samples of a setting, a function of the seed and the setting (but for `seconds`). Those of a
 * method take the references in batches as `dpinfer run` does, shuffled anew when there are no B
 * left. 0, or -1 with a message. samples_free in any case. */
int maker_make(maker *m, const setting *s, sample *samples, int32_t n);
void samples_free(sample *samples, int32_t n);

enum { TEXT_BYTES = 1 << 15 }; /* of a sample's text */
/* Text after x->text [*n_text], as far as there is room. */
void sample_add_text(sample *x, size_t *n_text, const char *text, size_t n_bytes);

/* ---- Texts from kept prompts (utility_texts.c) ----------------------------------------------- */

/* The caches of the public prompt and of all references' prompts. */
typedef struct kept_prompts kept_prompts;

/* Reads all prompts, for texts of at most o->max_ref references. A failure is printed, and NULL
 * returned. */
kept_prompts *kept_prompts_open(const dpi_model *model, const char *task, const reference *refs,
                                int32_t n_ref, const maker_options *o);
void kept_prompts_close(kept_prompts *k);
/* n texts of method->n_ref references each, in the order of `order`. 0, or -1 with a message. */
int kept_prompts_draw(kept_prompts *k, const dpi_sampler_options *method, const int32_t *order,
                      sample *samples, int32_t n);

/* ---- Statistics (utility_stats.c) ----------------------------------------------------------- */

/* Shares of the values; the last one of texts that do not say the attribute. */
typedef double attribute_law[CORPUS_ATTRIBUTES][CORPUS_VALUES + 1];

/* Marginals of the private law, from 200000 draws. */
void law_of_private(const corpus_domain *d, attribute_law law);
/* What the references' attributes are. */
void law_of_references(const corpus_domain *d, const reference *refs, int32_t n, attribute_law law);

/* Mattern et al. 2022, section 4.3.2, after Carlini et al. 2021: two texts are duplicates if they
 * share at least half of the trigrams (of words) of the one that has fewer. The paper prints a
 * union where this must be the intersection. */
bool is_near_copy(const char *a, const char *b);

typedef struct estimate {
    double value, half; /* half of a 95 % confidence interval; NAN: none */
} estimate;

enum { N_METRICS = 14 };

typedef struct metric {
    const char *name, *title; /* of a CSV row, of a column */
    const char *format;       /* of value (and half) in the table */
    double scale;
} metric;

extern const metric metrics[N_METRICS];

typedef struct result {
    setting s;
    int32_t n;
    estimate of[N_METRICS];
    estimate distance[CORPUS_ATTRIBUTES];            /* to the private law */
    estimate reference_distance[CORPUS_ATTRIBUTES];  /* to the references' own */
} result;

typedef struct target {
    const corpus_domain *d;
    int32_t domain;
    attribute_law law, reference_law;
    const reference *refs;
} target;

/* Means over the samples. Intervals: 1.96 standard deviations of 400 bootstrap resamples of the
 * texts; none for distinct n-grams, which resampling would make fewer. */
void measure(const setting *s, const sample *samples, int32_t n, const target *t, result *r);

/* ---- Reports (utility_report.c) ------------------------------------------------------------- */

enum { NAME_BYTES = 256 };

/* "InvisibleInk, zcdp, B = 7, eps = 3" */
void setting_name(const setting *s, char *name, size_t size);
/* PREFIX.md, .csv, .svg from what there is so far. 0, or -1 with a message. */
int report_write(const char *prefix, const maker_options *o, const target *t, const result *results,
                 int32_t n_results);

#endif
