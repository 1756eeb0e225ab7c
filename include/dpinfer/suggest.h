/* suggest.h - which batches and lengths a budget leaves room for, which budget a ledger does, and
 * what a pace buys. Part of libdpinfer_full.
 *
 * The clip bound C limits how far references move a token. Where all of them agree, a token gets at
 * most e^(2C / tau) times likelier beside another one. Below a factor of 10 the texts can hardly be
 * told from those of the public prompt alone (bench/UTILITY.md): the budget is spent and nothing is
 * learnt. C grows with B and with the budget, and falls with the square root of T.
 *
 * Threads: pure functions. */
#ifndef DPINFER_SUGGEST_H
#define DPINFER_SUGGEST_H

#include "dpinfer/run.h"
#include "dpinfer/ledger.h"
#include "dpinfer/pace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpi_hearing {
    DPI_HEARING_HARDLY = 0, /* a factor below 10 */
    DPI_HEARING_HEARD = 1,
    DPI_HEARING_WELL = 2 /* 100 and above */
} dpi_hearing;

/* e^(2C / tau) of a plan of INVISIBLEINK with these options; 0 for other methods. */
DPI_API double dpi_hearing_factor(const dpi_sampler_options *options, const dpi_sampler_plan *plan);
/* The dpi_hearing of a factor. */
DPI_API int32_t dpi_hearing_of(double factor);
/* "hardly", "heard", "well heard"; NULL for another value. Static. */
DPI_API const char *dpi_hearing_text(int32_t hearing);

typedef struct dpi_suggestion {
    int32_t batch, n_tokens, n_texts; /* B, T */
    int32_t hearing;                  /* a dpi_hearing */
    int64_t n_units;                  /* that are used; the others are left over */
    double clip, factor;              /* C; e^(2C / tau) */
    int32_t n_private; /* T_p of a pace that counts tokens; 0: another one, or none */
    int32_t reserved;
    double work; /* rows that all steps compute, beside those of the first suggestion */
} dpi_suggestion;

#define DPI_SUGGESTIONS_MAX 24

/* Settings for n_texts texts about n_units units: all[DPI_SUGGESTIONS_MAX], *n of them, and
 * *chosen, the index of the one that would be taken: the first of these that there is, in this
 * order: all texts with all tokens in the smallest batches with which references are heard; shorter
 * texts; fewer texts; the largest factor. `options` has method, budget, tau, and the wanted
 * n_tokens; what is said of batches is ignored, but that with an allocation that is not 0 they stay
 * secret, as many as a setting has texts. Errors: ARG (n_texts 1..n_units); those of
 * dpi_sampler_plan_make, if no setting has a plan. texts: public ones, of which the pace of each
 * setting is found: of as many tokens as are wanted, or more. NULL: the pace is as given. */
DPI_API DPI_MUST_CHECK dpi_status dpi_suggest(const dpi_sampler_options *options,
                                              const dpi_pace_texts *texts, int64_t n_units,
                                              int32_t n_texts, dpi_suggestion *all, int32_t *n,
                                              int32_t *chosen, dpi_error *err);

/* The largest budget that was found with which the run of the claim would fit into what is left of
 * the dataset: rho where the claim's budget is one, else epsilon, in three digits; 0: none. */
DPI_API double dpi_suggest_budget(const dpi_run *run, const dpi_dataset_info *info);

/* What a method's pace buys. 1: *clip is C of the same charge without a pace, beside that of the
 * plan `paced`; *epsilon is that of the same C without one, at paced->delta, or 0 where the two
 * cannot be compared. 0: the method has no pace, or without it nothing fits the budget. */
DPI_API int32_t dpi_pace_gain(const dpi_sampler_options *method, const dpi_sampler_plan *paced,
                              double *clip, double *epsilon);

#ifdef __cplusplus
}
#endif
#endif
