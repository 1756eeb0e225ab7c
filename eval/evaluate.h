/* evaluate.h - all metrics of a set of synthetic texts, as one list of values.
 *
 * The values are computed from the real texts as they stand: they are private where these are. */
#ifndef DPI_EVAL_EVALUATE_H
#define DPI_EVAL_EVALUATE_H

#include <stdbool.h>

#include "dpinfer/counts.h"
#include "eval/features.h"
#include "eval/mauve.h"
#include "eval/members.h"
#include "eval/structure.h"
#include "eval/text_set.h"

enum { EVAL_VALUES_MAX = 160, EVAL_BINS = 20, EVAL_NEIGHBOURS = 3 };

/* low..high: 95 % by bootstrap over texts; NAN: none. draws: of its resamples (intervals.h),
 * private memory; NULL: none. */
typedef struct eval_value {
    const char *group, *key, *label; /* "length", "words_mean", "words of a text, mean" */
    double value, low, high;
    double *draws;
} eval_value;

typedef struct eval_sources {
    const eval_texts *synthetic, *real;
    bool is_control; /* the synthetic texts are a control (control.h): other resamples */
    const eval_reading *reading; /* of the real texts by the model; NULL: not read yet */
    const eval_texts *train;  /* what the synthetic texts come from; NULL: not known */
    const eval_texts *prompts;  /* of the synthetic texts, or one for all; NULL: not known */
    const eval_texts *canaries, *controls; /* records that were planted, and others like them that
                                              were not; NULL: none */
    int32_t ngram; /* words that membership inference counts, 1..EVAL_NGRAM_MAX */
    double claimed_epsilon, claimed_delta; /* 0: none */
    const char *domain; /* of made-up documents, a name of the corpus; NULL: they are not */
    const dpi_grammar *grammar; /* the form that texts should have; NULL: none */
    const dpi_model *model;     /* NULL: no features, no perplexity, no coherence */
    dpi_session_options session;
    mauve_options mauve;
    const eval_watch *watch; /* what is being computed; may be NULL */
} eval_sources;

typedef struct evaluation {
    eval_value at[EVAL_VALUES_MAX];
    int32_t n;
    int32_t n_synthetic, n_real;
    uint64_t stream; /* of resamples of the synthetic texts */
    int32_t lengths[2][EVAL_BINS], words_in_bin; /* synthetic, real */
    bool has_mauve;
    mauve_score mauve;
    mauve_options settings;
    bool is_released; /* counts with noise, see released_counts.h: nothing in it is private then */
    dpi_counts_info released;
    bool has_members, has_canaries;
    eval_ranking members, canaries;
    bool has_structure;
    eval_structure structure;
    double *map; /* [n_synthetic + n_real, 2]; NULL without features */
    char model_name[64]; /* of the model, as its file has it; empty without one */
    struct eval_control *control; /* control.h; private memory; NULL: there is none */
} evaluation;

/* evaluation_free also after a failure. Metrics for which there are too few texts or labels are
 * left out. Errors: those of the parts; CANCELLED. */
dpi_status evaluate(const eval_sources *sources, evaluation *e, dpi_error *err);
/* The metrics of features alone. prompts: vectors as many as synthetic texts, or one; NULL: none */
dpi_status evaluate_features(const eval_vectors *synthetic, const eval_vectors *real,
                             const eval_vectors *prompts, const mauve_options *options,
                             evaluation *e, dpi_error *err);
void evaluation_free(evaluation *e);

#endif
