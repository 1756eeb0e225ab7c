/* job.h - everything about a run that is settled before the first record is read: what `plan`
 * shows and what `run` does. All of it is public. */
#ifndef DPI_JOB_H
#define DPI_JOB_H

#include "tools/options.h"
#include "tools/prompts.h"
#include "tools/records.h"

typedef struct job {
    bool plain;      /* --plain */
    bool is_private; /* neither --plain nor --seed */
    const char *warning; /* why not, NULL if private */
    records *docs;       /* NULL if only their number is known, or none are needed */
    const char *unit;    /* what one record is, in words; static */
    int64_t n_records;   /* 0 in a plain run without records */
    bool assigned;       /* records are drawn or hashed to batches: how many a batch holds is
                            private, and -B is what sums are divided by */
    int64_t reference;   /* plain: the record that is continued, counted from 0; -1: none */
    int32_t n_texts;
    double delta;
    dpi_model *model;
    dpi_model_info info;
    prompts prompts;
    dpi_session_options session;
    dpi_sampler_options sampler; /* n_ref = denominator = B, n_tokens = T, top_k, tau, budget */
    dpi_sampler_plan plan;       /* zero if plain */
    dpi_sampler *made;           /* a sampler by that plan, which can take long to make twice; NULL
                                    if plain or assigned */
    uint64_t seed;               /* state of --seed; sampler.random_user points here */
} job;

/* Sets is_private and warning from plain, and the sampler's method and source of randomness. */
void job_set_private(job *j);

/* Checks the options, finds the records, opens the model, settles every number. CLI_OK, or an
 * exit code with a message. job_free in any case. `quiet` suppresses notes. */
int job_prepare(const args *a, bool quiet, job *j);
void job_free(job *j);

/* Session options from the options of a command; usable without a job. CLI_OK or CLI_USAGE. */
int job_session_options(const args *a, dpi_session_options *options);
/* Notes on stderr that n_ctx is beyond what the model was trained with, if it is. */
void job_note_context(int64_t n_ctx, const dpi_model_info *info);

/* Tokens that one sequence holds at most. */
int32_t job_max_tokens(const job *j);

#endif
