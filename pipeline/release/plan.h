/* plan.h - what a release will do. Internal.
 *
 * All of it is public, settled before a record is read, and never changes after that: of the
 * records only their number was looked at, where it is public. Threads: immutable once made. */
#ifndef DPI_RELEASE_PLAN_H
#define DPI_RELEASE_PLAN_H

#include "dpinfer/pace.h"
#include "dpinfer/release.h"
#include "pipeline/release/labels.h"

/* The private prompt of a record; tokens NULL: null. */
typedef struct dpi_prompt {
    int32_t *tokens; /* private memory */
    size_t n_tokens;
} dpi_prompt;

/* A record that is read before its text begins. */
typedef struct dpi_kept {
    dpi_prompt prompt; /* or, where that depends on texts that are not written yet: */
    char *text;        /* [n_bytes] private memory, the whole record */
    size_t n_bytes;
} dpi_kept;

typedef struct dpi_plan {
    dpi_release_options options; /* with every default filled in */
    dpi_run claim;             /* without what a ledger counts, but for options.charged */
    dpi_model_info info;
    dpi_label_list labels; /* with a histogram their numbers of texts are not known yet */
    dpi_prompts **prompts; /* [n_prompts] one for all texts, or one for each label */
    int32_t n_prompts;
    dpi_prompts_info prompts_info; /* the longest of them, and the least that is shared */
    dpi_mask *mask;                /* NULL: without a grammar */
    dpi_word_rules *rules;              /* of the wording, always */
    dpi_pace_texts *public_texts;  /* that the pace was found from; NULL: it was given */
    int32_t *sets; /* [labels.n] the control vector's of each label; NULL: it has one for all */
    dpi_sampler_plan sampler;      /* of each text: to calibrate takes long with some accountants */
} dpi_plan;

/* settle.c: makes it. options->session.cancel is what stops all that the plan is for. The plan has
 * nothing to free after a failure. Errors: as dpi_release_open. */
dpi_status dpi_plan_make(const dpi_release_options *options, dpi_plan *plan, dpi_error *err);
void dpi_plan_free(dpi_plan *plan);

bool dpi_plan_is_plain(const dpi_plan *plan);
/* Texts that this process draws, most. */
int32_t dpi_plan_n_texts(const dpi_plan *plan);
/* The prompts of a label; index -1: there are none. */
const dpi_prompts *dpi_plan_prompts(const dpi_plan *plan, int32_t label);
/* What {label} stands for in the prompts of a label; data NULL: they do not name it. */
dpi_bytes dpi_plan_label(const dpi_plan *plan, int32_t label);
/* The random bits of the options: a caller's source, that of the seed with the state *bits, or
 * NULL, the system's. */
void dpi_plan_random(const dpi_plan *plan, uint64_t *bits, dpi_random_fn *random, void **user);

/* Whether the release is to stop. */
bool dpi_plan_is_cancelled(const dpi_plan *plan);
/* The same as a status. Errors: CANCELLED, "cancelled while ...". */
dpi_status dpi_plan_check_cancelled(const dpi_plan *plan, const char *what, dpi_error *err);

/* settle_pace.c: public texts that are drawn before a record is read, most, and at most one in so
 * many of the rows that the run computes: a function of the claim, so that all processes that draw
 * a release count alike. */
int64_t dpi_plan_public_texts(const dpi_run *claim);
/* The pace of the claim, from public texts where it is not given: before a record is read. Errors:
 * as dpi_pace_find, dpi_session_create. */
dpi_status dpi_plan_settle_pace(dpi_plan *plan, dpi_error *err);
/* Steering vectors whose claim is a part of the run's (dpi_release_options.steered). Errors: ARG,
 * UNSUPPORTED, those of dpi_claim_verify_file. */
dpi_status dpi_plan_settle_steering(dpi_plan *plan, dpi_error *err);
/* Which set of the control vector n empty sequences from `first` on have, where labels have their
 * own; label -1, where none is meant: that of the first. Errors: those of dpi_session_steer. */
dpi_status dpi_plan_steer(const dpi_plan *plan, dpi_session *session, int32_t first, int32_t n,
                          int32_t label, dpi_error *err);

/* settle_released.c: whether there can be rounds, without the model. Errors: ARG, UNSUPPORTED. */
dpi_status dpi_plan_check_released(const dpi_release_options *options, dpi_error *err);
/* Whether several processes can draw the texts: not where there are rounds. Errors: UNSUPPORTED. */
dpi_status dpi_plan_check_shared(const dpi_release_options *options, dpi_error *err);
/* *info, of prompts with these options, becomes that of the longest ones with the texts of a round.
 * Errors: ARG (they do not fit), those of dpi_prompts_create. */
dpi_status dpi_plan_released_length(const dpi_plan *plan, const dpi_prompt_options *options,
                                    dpi_prompts_info *info, dpi_error *err);

/* needs.c: most memory that the session and the samplers of n_parallel texts take. */
dpi_status dpi_plan_session_memory(const dpi_plan *plan, int32_t n_parallel, uint64_t *n_bytes,
                                   dpi_error *err);
/* As dpi_release_plan_get. */
dpi_status dpi_plan_needs(const dpi_plan *plan, dpi_release_plan *needs, dpi_error *err);
/* measure.c: rows of a step of one text where each unit has n_unit records; a batch has no more
 * units than there are, if that is public. */
int32_t dpi_plan_rows(const dpi_plan *plan, int32_t n_unit);
/* The measured times of `needs`, of which memory and the prompts' lengths are set.
 * Errors: MEMORY, ENTROPY. */
dpi_status dpi_plan_measure(const dpi_plan *plan, dpi_release_plan *needs, dpi_error *err);

#endif
