/* bench_run.h - one measurement of `dpinfer bench`: prompts read and tokens drawn with random
 * tokens, several times. */
#ifndef DPI_BENCH_RUN_H
#define DPI_BENCH_RUN_H

#include "dpinfer/bench.h"
#include "tools/options/options.h"

enum { BENCH_MAX_REPEATS = 100, BENCH_MAX_TEXTS = 64 };

typedef struct bench_setting {
    int32_t method;  /* a dpi_method */
    int32_t n_texts; /* drawn side by side */
    int32_t n_ref;   /* references of each; 0 for plain */
    int32_t n_prompt, n_prefix; /* tokens of each prompt; of them, the same in every reference's */
    int32_t n_tokens;           /* drawn */
    int32_t n_threads;          /* 0: all processors */
} bench_setting;

/* What all measurements share. */
typedef struct bench_context {
    const dpi_model *model;
    dpi_model_info info;
    dpi_session_options session; /* isa, kv_type and exact are used */
    double rho;                  /* decides no time */
    int32_t top_k;
    int32_t n_repeats;
} bench_context;

/* Tokens a second over the runs. */
typedef struct bench_rate {
    double mean, deviation; /* sample standard deviation; 0 of one run */
} bench_rate;

typedef struct bench_result {
    bench_setting s; /* with the threads that were used */
    double t_pp, t_tg; /* median seconds: all prompts; all steps with their draws */
    double t_sampler; /* median seconds of the draws alone, of all texts */
    double pp_attention, tg_attention; /* medians of the share of attention in t_pp, in t_tg */
    double pp_attention_rate; /* its operations a second while prompts are read, median */
    double t_token; /* median over the runs of the median seconds of a step with its draws, which a
                       pause of the machine does not move */
    double n_logits;   /* that the steps computed; prompts compute one row each */
    bench_rate pp, tg, all; /* tokens of all sequences: prompts, drawn, both */
    double rho, clip; /* of the sampler's plan; 0 for plain */
    /* Medians over the runs of the time beside that of the plain run just before it, for as many
     * texts and drawn tokens after a prompt as long; 1 for plain. */
    double overhead, overhead_all; /* steps alone; prompts included */
    double job; /* prompts and steps, beside as many plain texts as there are sequences */
    double overhead_token; /* of t_token */
    double read_bytes_per_second; /* median of what memory gave just before each run, all threads */
    double readable, readable_token; /* what it would have given in t_tg, in t_token; bytes */
    uint64_t peak_rss; /* bytes; 0 where the system does not tell */
} bench_result;

/* One run to warm up, then n_repeats. CLI_OK, or an exit code with a message. */
int bench_measure(const bench_context *c, const bench_setting *s, bench_result *r);

#endif
